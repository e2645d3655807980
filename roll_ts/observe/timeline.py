"""The journal as a Chrome trace (JSON) that Perfetto loads: https://ui.perfetto.dev, "Open trace file".

Processes: "devices" (a lane per device: its activity, and under it the rank's state), "control" (phases,
trainer and rank commands), "rollouts" (a lane per trajectory slot: turns and waits). Counters: requests in
flight per rank, complete groups in the buffer, weight version. Arrows join the attempts of a turn that moved.
Times are microseconds from the start of the journal, as the format wants (Trace Event Format, "X", "C", "i",
"s"/"f", "M" events).
"""

from __future__ import annotations

import heapq
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

from roll_ts.core import alphabet as a
from roll_ts.observe.activity import device_activity, devices, phases
from roll_ts.observe.intervals import AttemptSpan, History, read_history
from roll_ts.observe.journal import Journal

DEVICES, CONTROL, ROLLOUTS, COUNTERS = 1, 2, 3, 4
_PROCESSES = {DEVICES: "devices", CONTROL: "control", ROLLOUTS: "rollouts", COUNTERS: "counters"}
# reserved colour names of the format, so that lanes read like the picture
_COLORS = {
    "busy": "good",
    "training": "rail_animation",
    "switching": "bad",
    "idle": "grey",
    "ACTIVE": "good",
    "LENT": "rail_animation",
}

Record = dict[str, Any]


def make_timeline(journal: Journal) -> dict[str, Any]:
    """The trace as a JSON-ready object."""
    history = read_history(journal)
    trace = _Trace(history.start)
    _draw_devices(trace, history)
    _draw_control(trace, history)
    _draw_rollouts(trace, history)
    _draw_counters(trace, history)
    return {
        "displayTimeUnit": "ms",
        "otherData": {"policy": history.header.policy, "driver": history.header.driver},
        "traceEvents": trace.records,
    }


def write_timeline(journal: Journal, path: Path | str) -> None:
    """Write the trace, replacing `path` only when it is complete."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(make_timeline(journal), separators=(",", ":")))
    os.replace(part, path)


class _Trace:
    """Collects records; `start` is the journal time that becomes 0."""

    def __init__(self, start: float) -> None:
        self.start = start
        self.records: list[Record] = []
        self._arrows = 0
        for process, name in _PROCESSES.items():
            self._meta("process_name", process, 0, {"name": name})
            self._meta("process_sort_index", process, 0, {"sort_index": process})

    def lane(self, process: int, lane: int, name: str) -> None:
        """Name a lane; lanes are sorted by number."""
        self._meta("thread_name", process, lane, {"name": name})
        self._meta("thread_sort_index", process, lane, {"sort_index": lane})

    def span(self, process: int, lane: int, name: str, start: float, end: float, **args: Any) -> None:
        """A slice from `start` to `end` seconds."""
        record = self._record("X", process, lane, name, start) | {"dur": round(self._us(end) - self._us(start), 3)}
        if name in _COLORS:
            record["cname"] = _COLORS[name]
        self.records.append(record | ({"args": args} if args else {}))

    def instant(self, process: int, lane: int, name: str, t: float, **args: Any) -> None:
        """A mark at one moment."""
        self.records.append(self._record("i", process, lane, name, t) | {"s": "t", "args": args})

    def count(self, name: str, t: float, value: float) -> None:
        """A new value of a counter."""
        self.records.append(self._record("C", COUNTERS, 0, name, t) | {"args": {"value": value}})

    def arrow(self, name: str, source: tuple[int, int, float], target: tuple[int, int, float]) -> None:
        """An arrow between two slices, each (process, lane, a time inside the slice)."""
        self._arrows += 1
        for kind, (process, lane, t) in (("s", source), ("f", target)):
            record = self._record(kind, process, lane, name, t) | {"id": self._arrows, "cat": "migration"}
            # "e" binds the arrow's head to the slice around it, not to the next one
            self.records.append(record | ({"bp": "e"} if kind == "f" else {}))

    def _us(self, t: float) -> float:
        return round((t - self.start) * 1e6, 3)

    def _record(self, kind: str, process: int, lane: int, name: str, t: float) -> Record:
        return {"ph": kind, "pid": process, "tid": lane, "name": name, "ts": self._us(t)}

    def _meta(self, name: str, process: int, lane: int, args: Record) -> None:
        self.records.append({"ph": "M", "pid": process, "tid": lane, "name": name, "args": args})


def _draw_devices(trace: _Trace, history: History) -> None:
    layout = history.header.settings.layout
    for index, device in enumerate(devices(history)):
        rank = next((number for number, own in enumerate(layout.ranks) if device in own), None)
        trainer = "trainer" if device in layout.train_devices else ""
        owners = ", ".join(filter(None, ["" if rank is None else f"rank {rank}", trainer]))
        trace.lane(DEVICES, 2 * index, f"device {device} ({owners})")
        for span in device_activity(history, device):
            trace.span(DEVICES, 2 * index, span.label, span.start, span.end)
        if rank is not None:
            trace.lane(DEVICES, 2 * index + 1, f"device {device}: rank {rank} state")
            for span in history.states[rank]:
                trace.span(DEVICES, 2 * index + 1, span.label, span.start, span.end, rank=rank)


def _draw_control(trace: _Trace, history: History) -> None:
    ranks = len(history.header.settings.layout.ranks)
    trace.lane(CONTROL, 0, "phase")
    trace.lane(CONTROL, 1, "trainer")
    trace.lane(CONTROL, 2, "weights")
    for rank in range(ranks):
        trace.lane(CONTROL, 3 + rank, f"rank {rank} commands")
    for span in phases(history):
        trace.span(CONTROL, 0, span.label, span.start, span.end)
    for control in history.control:
        command = control.command
        lane = 3 + getattr(command, "rank", -3)
        if isinstance(command, a.FormGroup | a.Sync):
            lane = 2
        elif lane == 0:
            lane = 1
        answer = type(control.answer).__name__ if control.answer is not None else "not answered"
        details = {"answer": answer, "epoch": getattr(command, "epoch", None)}
        trace.span(CONTROL, lane, type(command).__name__, control.start, control.end, **details)
    for t, decided in history.decisions:
        trace.instant(CONTROL, 0, f"decided: {decided.decision}", t, **decided.figures)
    for t, death in history.deaths:
        trace.instant(CONTROL, 3 + death.rank, f"rank {death.rank} died", t, reason=death.reason)


def _draw_rollouts(trace: _Trace, history: History) -> None:
    """Trajectories share lanes: one that has ended leaves its lane to the next."""
    ends = {settled.trajectory: t for t, settled in history.outcomes}
    for attempt in history.attempts:
        number = attempt.id.trajectory
        ends[number] = max(ends.get(number, history.end), attempt.end)
    lanes = _lanes(history, ends)
    for lane in sorted(set(lanes.values())):
        trace.lane(ROLLOUTS, lane, f"slot {lane}")
    outcomes = {settled.trajectory: settled for _, settled in history.outcomes}
    for trajectory, lane in lanes.items():
        who, settled = history.members[trajectory], outcomes.get(trajectory)
        details: Record = {"kind": who.kind, "group": who.group, "member": who.member}
        if settled is not None:
            details |= {"outcome": settled.outcome, "reason": settled.reason, "reward": settled.reward}
            details |= {"tokens": settled.tokens, "staleness": settled.staleness}
        end = ends.get(trajectory, history.end)
        trace.span(ROLLOUTS, lane, f"trajectory {trajectory}", who.start, end, **details)
    for wait in history.environments:
        name = "reset" if wait.turn == 0 else "environment"
        end = min(wait.end, ends.get(wait.trajectory, wait.end))
        trace.span(ROLLOUTS, lanes[wait.trajectory], name, wait.start, end, ended=wait.ended)
    for attempts in history.turns().values():
        for attempt in attempts:
            _draw_attempt(trace, lanes[attempt.id.trajectory], attempt)
        for before, after in pairwise(attempts):
            if before.rank != after.rank:
                lane = lanes[after.id.trajectory]
                source = (ROLLOUTS, lane, (before.start + before.end) / 2)
                trace.arrow(
                    f"rank {before.rank} → {after.rank}",
                    source,
                    (ROLLOUTS, lane, (after.start + after.end) / 2),
                )


def _draw_attempt(trace: _Trace, lane: int, attempt: AttemptSpan) -> None:
    trace.span(
        ROLLOUTS,
        lane,
        f"rank {attempt.rank}",
        attempt.start,
        attempt.end,
        attempt=str(attempt.id),
        carried=attempt.carried,
        tokens=attempt.tokens,
        version=attempt.version,
        ended=attempt.ended,
        reason=attempt.reason,
    )


def _lanes(history: History, ends: dict[int, float]) -> dict[int, int]:
    """The lowest free lane for every trajectory, in the order of their starts."""
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    lanes: dict[int, int] = {}
    for trajectory, who in sorted(history.members.items(), key=lambda item: (item[1].start, item[0])):
        while busy and busy[0][0] <= who.start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        lanes[trajectory] = lane
        heapq.heappush(busy, (ends.get(trajectory, history.end), lane))
    return lanes


def _draw_counters(trace: _Trace, history: History) -> None:
    for rank, points in history.loads.items():
        for t, value in points:
            trace.count(f"rank {rank} in flight", t, value)
    for t, value in buffer_levels(history):
        trace.count("complete groups", t, value)
    for t, version in history.versions:
        trace.count("version", t, version)


def buffer_levels(history: History) -> list[tuple[float, int]]:
    """(time, complete groups waiting to be trained from then on): a group counts when its last member has a
    trainable end, until it is taken for training or dropped."""
    size = history.header.settings.group_size
    done: dict[int, set[int]] = {}
    complete: set[int] = set()
    events: list[tuple[float, int, object]] = [(t, 0, item) for t, item in history.outcomes]
    events += [(span.start, 1, span.command) for span in history.controls(a.Train)]
    events += [(t, 1, drop) for t, drop in history.drops]
    levels = [(history.start, 0)]
    for t, _, item in sorted(events, key=lambda event: event[:2]):
        match item:
            case a.Settled(kind="train", outcome="scored" | "policy-failed"):
                members = done.setdefault(item.group, set())
                members.add(item.member)
                if len(members) == size:
                    complete.add(item.group)
            case a.Train():
                complete -= {member.group for member in item.batch}
            case a.GroupDropped():
                complete.discard(item.group)
        if levels[-1][1] != len(complete):
            levels.append((t, len(complete)))
    return levels
