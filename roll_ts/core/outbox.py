"""What the scheduler has said and whose answer is still owed (R26).

Invariant: a command leaves `waiting` once, by its answer, by its deadline, or because it was called off; an answer to
a command that is not waiting is late and changes nothing (R3).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection
from typing import Any, TypeVar

from roll_ts.core.alphabet import Command, SetTimer

C = TypeVar("C", bound=Command)


class Outbox:
    """Collects the commands of one `handle` call and remembers the ones that expect an answer.

    `late_answers`: answers that nobody waits for, and words of dead incarnations; `misfits`: answers that do not fit
    the command they name.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.waiting: dict[int, Command] = {}
        self.late_answers = 0
        self.misfits = 0
        self._said: list[Command] = []
        self._next_id = 0
        self._due: list[tuple[float, int]] = []
        self._owed: dict[str, dict[int, None]] = {}
        self._alarms: list[tuple[float, int]] = []
        self._alarm: dict[int, tuple[str, int]] = {}
        self._next_alarm = 0
        self._timer: float | None = None
        self._stirred = True

    def say(self, message: type[C], /, *, within: float | None = None, awaits: str | None = None, **fields: Any) -> C:
        """Add a command; with `within` seconds, `awaits` owes the answer by then."""
        due = None if within is None else self.now + within
        command = message(id=self._next_id, due=due, awaits=awaits, **fields)
        self._next_id += 1
        self._said.append(command)
        if due is not None:
            self.waiting[command.id] = command
            heapq.heappush(self._due, (due, command.id))
            if command.lane == "control" and awaits is not None:
                self._owed.setdefault(awaits, {})[command.id] = None
        return command

    def answered(self, command: int | None) -> Command | None:
        """Close the wait for `command` and return it; None, counted, when nobody waits for it any more."""
        found = None if command is None else self._close(command)
        if found is None:
            self.late_answers += 1
        return found

    def call_off(self, command: int) -> None:
        """Wait no longer for `command`."""
        self._close(command)

    def call_off_all(self, awaits: str) -> None:
        """Wait no longer for what `awaits` owes in the control lane; attempts end by themselves."""
        for command in self._owed.pop(awaits, {}):
            self.waiting.pop(command, None)

    def stir(self) -> None:
        """Something that the control side waits for may have happened: it is asked before this `handle` returns."""
        self._stirred = True

    def stirred(self) -> bool:
        """Whether `stir` was called since the last time this was asked."""
        stirred, self._stirred = self._stirred, False
        return stirred

    def set_alarm(self, at: float, what: str, which: int) -> int:
        """Have `overdue_alarms` return (what, which) once the time is `at`. Returns a ticket for `drop_alarm`."""
        # VAL: VAL_NON_EMPTY(what)
        if len(what) == 0:
            raise ValueError(f"Outbox.set_alarm: what must not be empty, got {what!r:.200}")
        # END VAL c4430c
        ticket = self._next_alarm
        self._next_alarm += 1
        self._alarm[ticket] = (what, which)
        heapq.heappush(self._alarms, (at, ticket))
        return ticket

    def drop_alarm(self, ticket: int) -> None:
        """The alarm shall not ring; nothing happens when it has rung."""
        if self._alarm.pop(ticket, None) is not None:
            self._alarms = _without_dead(self._alarms, self._alarm)

    def timer_fired(self) -> None:
        """The driver's one timer is used up, on time or early: the next `take` sets it again."""
        self._timer = None

    def overdue(self) -> list[Command]:
        """Commands whose deadline has passed, oldest first; they wait no longer."""
        late: list[Command] = []
        while self._due and (self._due[0][0] <= self.now or self._due[0][1] not in self.waiting):
            command = self._close(heapq.heappop(self._due)[1])
            if command is not None:
                late.append(command)
        return late

    def overdue_alarms(self) -> list[tuple[str, int]]:
        """The alarms whose time has come."""
        rung: list[tuple[str, int]] = []
        while self._alarms and (self._alarms[0][0] <= self.now or self._alarms[0][1] not in self._alarm):
            _, ticket = heapq.heappop(self._alarms)
            if ticket in self._alarm:
                rung.append(self._alarm.pop(ticket))
        return rung

    def take(self, timer: bool = True) -> list[Command]:
        """All commands said since the last call and, with `timer`, the timer that the earliest deadline needs."""
        self._due = _without_dead(self._due, self.waiting)
        earliest = self._due[0][0] if self._due else None
        if self._alarms and (earliest is None or self._alarms[0][0] < earliest):
            earliest = self._alarms[0][0]
        is_set = self._timer is not None and self.now < self._timer and (earliest is None or self._timer <= earliest)
        if timer and earliest is not None and not is_set:
            self._timer = earliest
            self.say(SetTimer, at=earliest)
        said, self._said = self._said, []
        return said

    def _close(self, command: int) -> Command | None:
        found = self.waiting.pop(command, None)
        if found is not None and found.awaits in self._owed:
            self._owed[found.awaits].pop(command, None)
        return found


def _without_dead(heap: list[tuple[float, int]], alive: Collection[int]) -> list[tuple[float, int]]:
    """The heap with a living head; rebuilt when most of it is dead, so that it never outgrows what is alive (R37)."""
    while heap and heap[0][1] not in alive:
        heapq.heappop(heap)
    if len(heap) > 64 + 2 * len(alive):
        heap = [entry for entry in heap if entry[1] in alive]
        heapq.heapify(heap)
    return heap
