"""Feeds the events of a journal to a fresh scheduler and compares its commands with the journal's, element by element.

A live run and a simulated one are replayed alike (R29). Under another policy the events hold until it first decides
otherwise: there the comparison ends. Needs neither Ray nor engines, and holds one entry at a time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from roll_ts.core.alphabet import Command, Decided, Event, SetTimer
from roll_ts.core.errors import SchedulerError
from roll_ts.core.policies import make_policy
from roll_ts.core.scheduler import Scheduler, Snapshot
from roll_ts.observe.journal import Entry, Header, Journal, JournalError


@dataclass(frozen=True)
class Difference:
    """The first place where replay and journal part: entry (from 0), its event, and the two commands there (None:
    that side said nothing more)."""

    entry: int
    t: float
    event: Event
    position: int
    recorded: Command | None
    replayed: Command | None

    def __str__(self) -> str:
        return (
            f"entry {self.entry} (t={self.t:.3f}), command {self.position} after {self.event}:\n"
            f"  journal: {self.recorded}\n  replay:  {self.replayed}"
        )


@dataclass(frozen=True)
class Replayed:
    """How a replay went: how many events gave how many equal commands, the first difference if there is one, how the
    scheduler stood at the end, and the last decisions on both sides, where they part under another policy."""

    entries: int
    commands: int
    difference: Difference | None
    last: Snapshot
    recorded_decision: Decided | None = None
    replayed_decision: Decided | None = None


def replay(journal: Journal) -> Difference | None:
    """The first difference, or None when every command is equal. Raises like `replay_entries`."""
    return replay_entries(journal.header, journal.entries).difference


def replay_entries(
    header: Header, entries: Iterable[Entry], policy: str | None = None, until: float = float("inf")
) -> Replayed:
    """Replay what happened up to `until` seconds of the run's clock, under the journal's policy or another one.

    Under another policy the numbers of commands, timers and the decisions themselves are not compared: what counts is
    what is done. Raises JournalError for a header or an event that no scheduler takes: then it was another one, or
    none, that wrote the journal; ValueError when the run's settings do not fit `policy`.
    """
    other = policy is not None and policy != header.policy
    scheduler = _fresh(header, policy)
    numbers: dict[int, int] = {}
    count = commands = 0
    decisions: list[Decided | None] = [None, None]
    for entry in entries:
        if entry.t > until:
            break
        event = entry.event
        if other and event.command is not None:
            event = dataclasses.replace(event, command=numbers.get(event.command, event.command))
        try:
            said = scheduler.handle(event, entry.t)
        except (SchedulerError, ValueError, AssertionError) as error:
            raise JournalError(f"line {count + 2}: the scheduler refuses {entry.event}: {error}") from error
        for side, words in enumerate((entry.commands, said)):
            decisions[side] = next((c for c in reversed(words) if isinstance(c, Decided)), decisions[side])
        recorded = [c for c in entry.commands if not (other and isinstance(c, Decided | SetTimer))]
        replayed = [c for c in said if not (other and isinstance(c, Decided | SetTimer))]
        for position, (old, new) in enumerate(zip_longest(recorded, replayed)):
            if old is not None and new is not None:
                numbers[old.id] = new.id
            same = old == (
                dataclasses.replace(new, id=old.id) if other and old is not None and new is not None else new
            )
            if not same:
                difference = Difference(count, entry.t, entry.event, position, old, new)
                return Replayed(count, commands, difference, scheduler.snapshot(), *(decisions if other else ()))
            commands += 1
        count += 1
    return Replayed(count, commands, None, scheduler.snapshot())


def _fresh(header: Header, policy: str | None) -> Scheduler:
    if policy is not None and policy != header.policy:
        chosen = make_policy(policy)
        problems = [f"{p.key} = {p.value} {p.wrong}" for p in chosen.check(header.settings)]
        # VAL: VAL_NO_PROBLEMS(problems) - the run's settings must fit the other policy
        if len(problems) != 0:
            raise ValueError(
                f"_fresh: problems must be empty, got {len(problems)!r}: {'; '.join(map(str, problems))} - "
                "the run's settings must fit the other policy"
            )
        # END VAL 9d1fe4
        return Scheduler(header.settings, chosen)
    try:
        return Scheduler(header.settings, make_policy(header.policy))
    except ValueError as error:
        raise JournalError(f"line 1: no scheduler has this header: {error}") from error
