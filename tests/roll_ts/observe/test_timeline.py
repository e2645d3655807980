"""The Perfetto trace: well formed, nested, and true to the journal."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from roll_ts.core import alphabet as a
from roll_ts.observe.intervals import read_history
from roll_ts.observe.journal import Journal
from roll_ts.observe.timeline import CONTROL, DEVICES, ROLLOUTS, buffer_levels, make_timeline, write_timeline
from roll_ts.sim.faults import Fault, Faults, Kill
from tests.roll_ts.observe.handmade import Script, finished_run, moved_turn, tick
from tests.roll_ts.sim.small import run

Record = dict[str, Any]


def slices(trace: Record, process: int | None = None) -> list[Record]:
    return [r for r in trace["traceEvents"] if r["ph"] == "X" and process in (None, r["pid"])]


def names(trace: Record) -> dict[tuple[int, int], str]:
    return {(r["pid"], r["tid"]): r["args"]["name"] for r in trace["traceEvents"] if r["name"] == "thread_name"}


TROUBLE = Faults(
    on_commands=(Fault("drop", "Drain", rank=0), Fault("drop", "LoadWeights", nth=6), Fault("drop", "Dispatch", nth=9)),
    kills=(Kill(25.0, 3),),
    environment_failure_rate=0.05,
    environment_hang_rate=0.01,
)


@pytest.mark.parametrize("journal", [finished_run(), run(), run(faults=TROUBLE)], ids=["hand", "plain", "trouble"])
def test_slices_of_a_lane_nest(journal: Journal) -> None:
    lanes: dict[tuple[int, int], list[Record]] = defaultdict(list)
    for record in slices(make_timeline(journal)):
        lanes[record["pid"], record["tid"]].append(record)
    for records in lanes.values():
        stack: list[float] = []
        for record in sorted(records, key=lambda r: (r["ts"], -r["dur"])):
            # times are written to a thousandth of a microsecond
            while stack and stack[-1] <= record["ts"] + 0.002:
                stack.pop()
            end = record["ts"] + record["dur"]
            assert not stack or end <= stack[-1] + 0.002, f"{record} sticks out of the slice around it"
            stack.append(end)


def test_every_lane_that_is_drawn_has_a_name() -> None:
    trace = make_timeline(finished_run())
    assert {(r["pid"], r["tid"]) for r in slices(trace)} <= names(trace).keys()
    assert names(trace)[DEVICES, 0] == "device 0 (rank 0, trainer)"
    assert names(trace)[DEVICES, 2] == "device 1 (rank 1)"


def test_a_migrated_turn_has_one_arrow_between_its_two_attempts() -> None:
    trace = make_timeline(finished_run())
    start, end = (next(r for r in trace["traceEvents"] if r["ph"] == kind) for kind in "sf")
    assert start["id"] == end["id"] and start["name"] == "rank 0 → 1" and end["bp"] == "e"
    attempts = {r["args"]["attempt"]: r for r in slices(trace, ROLLOUTS) if "attempt" in r["args"]}
    for arrow, attempt in ((start, "0.1.1"), (end, "0.1.2")):
        inside = attempts[attempt]
        assert inside["ts"] <= arrow["ts"] <= inside["ts"] + inside["dur"] and inside["tid"] == arrow["tid"]


def test_trajectories_that_are_open_together_have_lanes_of_their_own() -> None:
    trace = make_timeline(finished_run())
    drawn = [r for r in slices(trace, ROLLOUTS) if r["name"].startswith("trajectory")]
    assert len(drawn) == 5
    for one in drawn:
        for other in drawn:
            if one is not other and one["tid"] == other["tid"]:
                assert one["ts"] + one["dur"] <= other["ts"] or other["ts"] + other["dur"] <= one["ts"]


def test_counters_follow_the_requests_in_flight() -> None:
    trace = make_timeline(finished_run())
    counts = [r["args"]["value"] for r in trace["traceEvents"] if r["ph"] == "C" and r["name"] == "rank 1 in flight"]
    assert counts == [0, 1, 2, 1, 0]
    versions = [r for r in trace["traceEvents"] if r["ph"] == "C" and r["name"] == "version"]
    assert [(r["ts"], r["args"]["value"]) for r in versions] == [(9e6, 1)]


def test_the_buffer_counts_complete_groups_until_they_are_taken() -> None:
    assert buffer_levels(read_history(finished_run())) == [(0.0, 0), (0.0, 1), (6.0, 0), (7.0, 1)]
    script = moved_turn()
    script.at(12.0, tick(), script.say(a.GroupDropped, group=0, reason="stale", trajectories=(0, 1)))
    assert buffer_levels(read_history(script.journal()))[-1] == (12.0, 0)


def test_commands_and_decisions_are_on_the_control_lanes() -> None:
    script = Script()
    decided = script.say(a.Decided, policy="time_sharing", decision="train", figures={"complete_groups": 2.0})
    drain = script.say(a.Drain, rank=1, epoch=1, due=9.0)
    script.at(1.0, tick(), decided, drain)
    script.at(2.0, a.RankDied(rank=1, incarnation=1, reason="gone"))
    trace = make_timeline(script.journal())
    marks = {r["name"]: r for r in trace["traceEvents"] if r["ph"] == "i"}
    assert marks["decided: train"]["args"] == {"complete_groups": 2.0}
    assert marks["rank 1 died"]["args"] == {"reason": "gone"}
    (command,) = [r for r in slices(trace, CONTROL) if r["name"] == "Drain"]
    assert names(trace)[CONTROL, command["tid"]] == "rank 1 commands" and command["dur"] == 1e6


def test_the_file_is_json_of_the_same_trace(tmp_path: Path) -> None:
    write_timeline(finished_run(), tmp_path / "timeline.json")
    assert json.loads((tmp_path / "timeline.json").read_text()) == make_timeline(finished_run())
    assert [path.name for path in tmp_path.iterdir()] == ["timeline.json"]
