"""CPU seconds of `roll-ts simulate examples/four_gpus.yaml` beside a floor: the same events, fed to a bare scheduler.

    python bench/simulate.py [--config FILE] [--rounds 3] [--check]

What the ratio leaves above 1 is the simulator: engines, workload, journals and reports. The fastest of the rounds
counts. `--check`: exit 1 when the three schemes take 10 s or more. The last line is JSON.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from _closing import closing_line

from roll_ts.core.policies import make_policy
from roll_ts.core.scheduler import Scheduler
from roll_ts.observe.journal import Journal
from roll_ts.sim.comparison import Comparison, simulate_file

LIMIT_SECONDS = 10.0
EXAMPLE = Path(__file__).parents[1] / "examples" / "four_gpus.yaml"


def through_simulator(config: Path) -> tuple[float, Comparison]:
    """CPU seconds to simulate every scheme and to say what came of it."""
    began = time.process_time()
    comparison = simulate_file(config, lambda told: None)
    comparison.text()
    return time.process_time() - began, comparison


def through_core(journal: Journal) -> float:
    """CPU seconds of the scheduler alone."""
    scheduler = Scheduler(journal.header.settings, make_policy(journal.header.policy))
    began = time.process_time()
    for entry in journal.entries:
        scheduler.handle(entry.event, entry.t)
    return time.process_time() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=Path, default=EXAMPLE)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    seconds, comparison = min((through_simulator(args.config) for _ in range(args.rounds)), key=lambda r: r[0])
    print(f"{'scheme':<16} {'events':>8} {'bare core s':>12}")
    floor, events = 0.0, 0
    for run in comparison.runs:
        bare = min(through_core(run.journal) for _ in range(args.rounds))
        print(f"{run.scheme.policy:<16} {len(run.journal.entries):>8} {bare:>12.2f}")
        floor, events = floor + bare, events + len(run.journal.entries)
    print(f"{'simulated':<16} {events:>8} {seconds:>12.2f}   {seconds / floor:.2f} x the bare core")
    figures = {"seconds": round(seconds, 3), "floor_seconds": round(floor, 3), "ratio": round(seconds / floor, 3)}
    print(closing_line("simulate", figures | {"events": events}, [comparison.config.seed]))
    return int(args.check and seconds >= LIMIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
