"""Play a history again and show it: `python -m tests.roll_ts.outside history.json [--all]`, or by its seed: `--seed 7`.

Exit 0: no rule was broken, 1: one was, 2: wrong usage.
"""

from __future__ import annotations

import argparse
import itertools
import sys

from roll_ts.core import alphabet as a
from tests.roll_ts.outside.campaign import play
from tests.roll_ts.outside.coverage import Coverage
from tests.roll_ts.outside.scenario import Scenario, draw
from tests.roll_ts.outside.shrink import broken, shrink
from tests.roll_ts.outside.violation import Violation
from tests.roll_ts.outside.world import Entry

POLICIES = ("time_sharing", "colocated", "disaggregated")
DULL = (a.SubmitAcked, a.Progress, a.EnvironmentReplied, a.Finished)


def text(message: a.Event | a.Command) -> str:
    """A message in one line, without what is empty."""
    fields = {name: value for name, value in vars(message).items() if value not in (None, {}) and name != "lane"}
    return f"{type(message).__name__}({', '.join(f'{name}={value}' for name, value in fields.items())})"


def show(journal: list[Entry], everything: bool) -> None:
    """Print events and commands in order; without `everything` only what the control side hears and says."""
    for number, entry in enumerate(journal):
        if everything or not isinstance(entry.event, DULL):
            print(f"{number:5} {entry.now:10.3f} > {text(entry.event)}{'  (of no effect)' if entry.void else ''}")
        for command in entry.commands:
            if everything or command.lane == "control":
                print(f"{'':17} < {text(command)}")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.roll_ts.outside", description=__doc__)
    parser.add_argument("file", nargs="?", help="the scenario that a failing test printed")
    parser.add_argument("--seed", type=int, help="a random world instead")
    parser.add_argument("--policies", default=",".join(POLICIES), help="among which a random world chooses")
    parser.add_argument(
        "--events", type=int, help="many random worlds, from --seed on, until so many events; quick to fail"
    )
    parser.add_argument("--shrink", action="store_true", help="make a failing history small and print it")
    parser.add_argument("--all", action="store_true", help="show data events too")
    options = parser.parse_args()
    if (options.file is None) == (options.seed is None):
        parser.error("give a file or a --seed")
    policies = tuple(options.policies.split(","))
    if options.events is not None:
        coverage = Coverage()
        for seed in itertools.count(options.seed or 0):
            if coverage.events >= options.events:
                print(f"{coverage.events} events, no violation")
                return 0
            try:
                play(draw(seed, policies), coverage, twin=seed % 3 == 0)
            except Violation as violation:
                print(f"seed {seed}: {violation}")
                return 1
    scenario = Scenario.read(options.file) if options.file is not None else draw(options.seed, policies)
    violation, world = broken(scenario)
    if violation is not None and options.shrink:
        scenario, violation = shrink(scenario, violation)
        print(scenario.to_json())
        world = broken(scenario)[1]
    show(world.journal, options.all)
    print(violation if violation is not None else f"no rule was broken in {len(world.journal)} events", file=sys.stderr)
    return 1 if violation is not None else 0


if __name__ == "__main__":
    sys.exit(main())
