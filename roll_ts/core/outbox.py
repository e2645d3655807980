"""What the scheduler has said and whose answer is still owed (R26).

Invariant: a command leaves `waiting` once, by its answer, by its deadline, or because it was called off; an answer to
a command that is not waiting is late and must be ignored (R3).
"""

from __future__ import annotations

import heapq
from typing import Any, TypeVar

from roll_ts.core.alphabet import Command, SetTimer

C = TypeVar("C", bound=Command)


class Outbox:
    """Collects the commands of one `handle` call and remembers the ones that expect an answer."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waiting: dict[int, Command] = {}
        self.late_answers = 0
        self._said: list[Command] = []
        self._next_id = 0
        self._due: list[tuple[float, int]] = []
        self._alarms: list[tuple[float, int, str, int]] = []
        self._timer: float | None = None

    def say(self, message: type[C], /, *, within: float | None = None, awaits: str | None = None, **fields: Any) -> C:
        """Add a command; with `within` seconds, `awaits` owes the answer by then."""
        due = None if within is None else self.now + within
        command = message(id=self._next_id, due=due, awaits=awaits, **fields)
        self._next_id += 1
        self._said.append(command)
        if due is not None:
            self.waiting[command.id] = command
            heapq.heappush(self._due, (due, command.id))
        return command

    def answered(self, command: int | None) -> Command | None:
        """Close the wait for `command` and return it; None, counted, when nobody waits for it any more."""
        found = None if command is None else self.waiting.pop(command, None)
        if found is None:
            self.late_answers += 1
        return found

    def call_off(self, command: int) -> None:
        """Wait no longer for `command`."""
        self.waiting.pop(command, None)

    def set_alarm(self, at: float, what: str, which: int) -> None:
        """Have `overdue_alarms` return (what, which) once the time is `at`."""
        # VAL: VAL_NON_EMPTY(what)
        if len(what) == 0:
            raise ValueError(f"set_alarm: what must not be empty, got {what!r:.200}")
        # END VAL 688471
        heapq.heappush(self._alarms, (at, len(self._alarms), what, which))

    def overdue(self) -> list[Command]:
        """Commands whose deadline has passed, oldest first; they wait no longer."""
        late: list[Command] = []
        while self._due and (self._due[0][0] <= self.now or self._due[0][1] not in self.waiting):
            _, command = heapq.heappop(self._due)
            if command in self.waiting:
                late.append(self.waiting.pop(command))
        return late

    def overdue_alarms(self) -> list[tuple[str, int]]:
        """The alarms whose time has come."""
        rung: list[tuple[str, int]] = []
        while self._alarms and self._alarms[0][0] <= self.now:
            _, _, what, which = heapq.heappop(self._alarms)
            rung.append((what, which))
        return rung

    def take(self) -> list[Command]:
        """All commands said since the last call, with the timer that the earliest deadline needs."""
        while self._due and self._due[0][1] not in self.waiting:
            heapq.heappop(self._due)
        times = [heap[0][0] for heap in (self._due, self._alarms) if heap]
        earliest = min(times) if times else None
        if earliest is not None and (self._timer is None or earliest < self._timer or self._timer <= self.now):
            self._timer = earliest
            self.say(SetTimer, at=earliest)
        said, self._said = self._said, []
        return said
