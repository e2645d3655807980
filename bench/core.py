"""The scheduler's own cost: events per CPU second at three sizes, beside ROLL's routing rule; journal off, checks on.

    python bench/core.py [--events 200000] [--sizes 4x100 160x10000 1280x10000] [--profile SIZE] [--check]

A stand-in world plays a healthy run once and records its events; then a fresh core hears the record and nothing else
is timed. `lend`: CPU milliseconds from the decision until 80 % of the ranks are lent, all trajectories in flight.
`placement`: microseconds to choose a rank and book the turn there. ROLL's rule counts the environments mapped to each
rank and takes the least. `growth`: the worst ratio of one event type's cost per message (the event and the commands it
leads to) between the smallest and the largest size. `--check`: exit 1 when a target is missed. The last line is JSON.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import random
import sys
import time
from collections import defaultdict, deque
from dataclasses import dataclass
from enum import Enum
from types import FunctionType, MethodType

from _closing import closing_line
from _core_world import StandIn

from roll_ts.core import alphabet as a
from roll_ts.core.policies import make_policy
from roll_ts.core.routing import Placement
from roll_ts.core.scheduler import Scheduler
from roll_ts.core.settings import Layout, Settings

TARGETS = {"4x100": 100_000, "160x10000": 50_000, "1280x10000": 50_000}
Record = list[tuple[a.Event, float]]


def settings_of(ranks: int, trajectories: int, batches: int = 2) -> Settings:
    """Four fifths of the ranks lie on training devices; the ledger leaves room for `trajectories`, that is `batches`
    batches, at once."""
    groups, size = max(trajectories // 8, 2), 8
    batch = max(groups // batches, 1)
    return Settings(
        layout=Layout(tuple((i,) for i in range(ranks)), tuple(range(ranks * 4 // 5))),
        groups_per_batch=batch,
        group_size=size,
        async_ratio=groups / batch - 1,
        max_turns=200,
        max_reply_tokens=4_000,
        max_context_tokens=64_000,
        max_running_per_rank=max(128, trajectories // max(ranks // 5, 1) + 8),
    )


def core(ranks: int, trajectories: int, batches: int = 2) -> Scheduler:
    """A fresh core of that size."""
    return Scheduler(settings_of(ranks, trajectories, batches), make_policy("time_sharing"))


def started(scheduler: Scheduler, turns: int, seed: int) -> StandIn:
    """A stand-in world whose run has been asked for."""
    world = StandIn(scheduler.handle, turns=turns, seed=seed)
    world.post(0.0, a.TrajectoriesWanted(until=1_000))
    return world


@dataclass
class Cost:
    """Of one size. `by_type`: CPU seconds and messages of each event type."""

    events: int
    seconds: float
    by_type: dict[str, tuple[float, int]]


def replay(ranks: int, trajectories: int, record: Record) -> Cost:
    """Feed the record to a fresh core twice: for the total, and for each event type."""
    scheduler = core(ranks, trajectories)
    handle = scheduler.handle
    began = time.process_time()
    for event, now in record:
        handle(event, now)
    seconds = time.process_time() - began
    scheduler = core(ranks, trajectories)
    handle, clock = scheduler.handle, time.thread_time_ns
    spent: dict[str, float] = defaultdict(float)
    messages: dict[str, int] = defaultdict(int)
    empty = min(-clock() + clock() for _ in range(1000))
    for event, now in record:
        start = clock()
        commands = handle(event, now)
        took = clock() - start - empty
        name = type(event).__name__
        spent[name] += took / 1e9
        messages[name] += 1 + len(commands)
    return Cost(len(record), seconds, {name: (spent[name], messages[name]) for name in spent})


def lend_milliseconds(ranks: int, trajectories: int, seed: int) -> tuple[float, int]:
    """CPU milliseconds of the decision to lend, of every turn that is stopped and sent elsewhere for it and of every
    rank's answer, until training starts; and the attempts in flight before."""
    scheduler = core(ranks, trajectories + trajectories // 10, batches=40)
    world = started(scheduler, 40, seed)
    world.short_groups, world.all_long = scheduler.settings.groups_per_batch, True
    spent = [0.0]
    timing = [False]

    def handle(event: a.Event, now: float) -> list[a.Command]:
        start = time.thread_time_ns()
        commands = scheduler.handle(event, now)
        took = time.thread_time_ns() - start
        begins = any(isinstance(command, a.Drain) for command in commands)
        timing[0] = timing[0] or begins
        if begins or (timing[0] and isinstance(event, a.Aborted | a.RankStats | a.MemoryReleased)):
            spent[0] += took / 1e6
        return commands

    batch = scheduler.settings.groups_per_batch
    world.run(3_000_000, lambda event, commands: len(scheduler.rollouts.groups.complete) == batch - 1)
    world.record.clear()
    gc.collect()
    gc.freeze()  # what the stand-in holds is no cost of the core
    world.handle = handle
    world.run(3_000_000, lambda event, commands: timing[0])
    flight = scheduler.snapshot().running
    world.run(1_000_000, lambda event, commands: any(isinstance(command, a.Train) for command in commands))
    gc.unfreeze()
    return spent[0], flight


def bytes_per_trajectory(turns: int, seed: int) -> float:
    """Memory that the whole core holds for each open trajectory when all of them are at `turns` turns or more."""
    trajectories = 400
    scheduler = core(4, trajectories)
    world = started(scheduler, 2 * turns, seed)
    world.all_long = True
    reached: dict[int, int] = {}

    def deep(event: a.Event, commands: list[a.Command]) -> bool:
        if isinstance(event, a.EnvironmentReplied):
            reached[event.trajectory] = event.turn
        return len(reached) >= trajectories and min(reached.values()) >= turns

    empty = size_of(core(4, trajectories), set())
    world.run(10_000_000, deep)
    return (size_of(scheduler, set()) - empty) / len(reached)


def size_of(thing: object, seen: set[int]) -> int:
    """Bytes of an object and of all that it holds, each counted once; classes and functions are not counted."""
    if id(thing) in seen or isinstance(thing, type | FunctionType | MethodType | Enum):
        return 0
    seen.add(id(thing))
    held: list[object] = [vars(thing)] if hasattr(thing, "__dict__") else []
    if isinstance(thing, dict):
        held += [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        held += thing
    held += [getattr(thing, name) for name in getattr(type(thing), "__slots__", ()) if hasattr(thing, name)]
    return sys.getsizeof(thing) + sum(size_of(item, seen) for item in held)


def placement_microseconds(ranks: int, trajectories: int, seed: int) -> float:
    """CPU microseconds to choose a rank for one turn and book it there, beside taking one off."""
    draw = random.Random(seed)
    index = Placement(ranks, max_running=trajectories)
    for rank in range(ranks):
        index.open(rank, version=0, capacity=2_000_000)
    placed: list[tuple[int, int]] = []
    count = 20_000
    began = 0.0
    for turn in range(trajectories + count):
        if turn == trajectories:
            began = time.process_time()
        need = 2_000 + int(draw.random() * 4_000)
        rank = index.choose(need, None, need - 500, 512)
        if rank is None:
            raise SystemExit("no rank had room, so nothing was measured")
        index.add(rank, need)
        placed.append((rank, need))
        if turn >= trajectories:
            index.remove(*placed[turn - trajectories])
    return (time.process_time() - began) / count * 1e6


def least_mapped_microseconds(ranks: int, trajectories: int) -> float:
    """The same by ROLL's rule: count the environments mapped to each rank, take the least."""
    mapped = {environment: environment % ranks for environment in range(trajectories)}
    count = max(1, 2_000_000 // trajectories)
    began = time.process_time()
    for environment in range(count):
        counts = dict.fromkeys(range(ranks), 0)
        for rank in mapped.values():
            counts[rank] += 1
        mapped[environment % trajectories] = min(counts, key=counts.__getitem__)
    return (time.process_time() - began) / count * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--sizes", nargs="+", default=list(TARGETS))
    parser.add_argument("--profile", metavar="SIZE", help="print where the time of this size goes, and nothing else")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    sizes = [args.profile] if args.profile else args.sizes
    figures: dict[str, float] = {}
    costs: dict[str, Cost] = {}
    print(f"{'size':<12} {'events':>8} {'events/s':>9} {'target':>8} {'us/place':>9} {'ROLL us':>9} {'ratio':>7}")
    for size in sizes:
        ranks, trajectories = (int(part) for part in size.split("x"))
        world = started(core(ranks, trajectories), 12, seed=1)
        world.run(args.events)
        record = world.record
        del world
        gc.collect()
        gc.freeze()
        if args.profile:
            scheduler, profile = core(ranks, trajectories), cProfile.Profile()
            profile.enable()
            for event, now in record:
                scheduler.handle(event, now)
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(30)
            return 0
        costs[size] = cost = replay(ranks, trajectories, record)
        rate = cost.events / cost.seconds
        place, roll = placement_microseconds(ranks, trajectories, 1), least_mapped_microseconds(ranks, trajectories)
        target = TARGETS.get(size, 0)
        print(
            f"{size:<12} {cost.events:>8} {rate:>9.0f} {target:>8} {place:>9.1f} {roll:>9.1f} {roll / place:>6.1f}x",
            flush=True,
        )
        figures |= {f"{size}_events_per_s": round(rate), f"{size}_placement_us": round(place, 2)}
        figures[f"{size}_roll_rule_us"] = round(roll, 2)
        gc.unfreeze()
    small, large = costs[sizes[0]].by_type, costs[sizes[-1]].by_type
    print(f"\n{'event':<20} {'us/message ' + sizes[0]:>20} {'us/message ' + sizes[-1]:>22} {'growth':>7}")
    growth = 0.0
    for name in sorted(small.keys() & large.keys()):
        before, after = (seconds / count * 1e6 for seconds, count in (small[name], large[name]))
        print(f"{name:<20} {before:>20.2f} {after:>22.2f} {after / before:>6.2f}x")
        if min(small[name][1], large[name][1]) >= 100:
            growth = max(growth, after / before)
    lend, flight = lend_milliseconds(160, 10_000, 1)
    memory = bytes_per_trajectory(40, 1)
    print(f"\nlend 128 of 160 ranks, {flight} attempts in flight: {lend:.1f} ms of CPU (target 50)")
    print(f"memory of a trajectory at turn 40: {memory:.0f} bytes (target 2048)")
    print(f"growth of the worst event type: {growth:.2f} x (target 2)")
    figures |= {"growth": round(growth, 2), "lend_ms": round(lend, 1), "lend_in_flight": flight}
    figures["bytes_per_trajectory"] = round(memory)
    missed = [size for size in sizes if figures[f"{size}_events_per_s"] < TARGETS.get(size, 0)]
    missed += [f"{size} placement" for size in sizes if figures[f"{size}_placement_us"] > 20]
    missed += [name for name, bad in (("growth", growth > 2), ("lend", lend > 50), ("memory", memory > 2048)) if bad]
    if missed:
        print(f"missed: {', '.join(missed)}; --profile SIZE shows where the time goes")
    print(closing_line("core", figures, [1]))
    return int(args.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
