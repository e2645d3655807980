"""Feeds the events of a journal to a fresh scheduler and compares its commands with the journal's, element by element.

A live run and a simulated one are replayed alike (R29). Needs neither Ray nor engines.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from roll_ts.core.alphabet import Command, Event
from roll_ts.core.errors import SchedulerError
from roll_ts.core.policies import make_policy
from roll_ts.core.scheduler import Scheduler
from roll_ts.observe.journal import Journal, JournalError


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


def replay(journal: Journal) -> Difference | None:
    """The first difference, or None when every command is equal. Raises JournalError for a header or an event that
    no scheduler takes: then it was another one, or none, that wrote the journal."""
    header = journal.header
    try:
        scheduler = Scheduler(header.settings, make_policy(header.policy))
    except ValueError as error:
        raise JournalError(f"line 1: no scheduler has this header: {error}") from error
    for number, entry in enumerate(journal.entries):
        try:
            said = scheduler.handle(entry.event, entry.t)
        except (SchedulerError, ValueError, AssertionError) as error:
            raise JournalError(f"line {number + 2}: the scheduler refuses {entry.event}: {error}") from error
        for position, (recorded, replayed) in enumerate(zip_longest(entry.commands, said)):
            if recorded != replayed:
                return Difference(number, entry.t, entry.event, position, recorded, replayed)
    return None
