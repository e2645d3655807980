"""Policies and rules of admission, through the simulator: what a user names in a file happens in the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from roll_ts.core import alphabet as a
from roll_ts.observe.report import make_report
from roll_ts.sim.comparison import simulate_file
from tests.roll_ts.sim.small import run

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_R29_a_policy_of_ones_own_runs_beside_ours_and_its_no_is_on_record(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    comparison = simulate_file(EXAMPLES / "patient.yaml")
    assert comparison.ok
    mine = comparison.runs[2].journal
    assert mine.header.policy == "patient_policy:Patient"
    said = [c.decision for entry in mine.entries for c in entry.commands if isinstance(c, a.Decided)]
    assert "wait: too much is in flight" in said and "train+lend" in said


def test_R30_adaptive_says_what_lending_now_and_later_would_lose(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    journal = simulate_file(EXAMPLES / "patient.yaml").runs[1].journal
    decided = [c for entry in journal.entries for c in entry.commands if isinstance(c, a.Decided)]
    weighed = [c for c in decided if "lost_now" in c.figures]
    assert weighed and all({"lost_later", "away", "running"} <= set(c.figures) for c in weighed)


def settled(journal, reason: str) -> list[a.Settled]:
    return [c for entry in journal.entries for c in entry.commands if isinstance(c, a.Settled) and c.reason == reason]


@pytest.mark.parametrize("policy", ["colocated", "disaggregated", "time_sharing"])
def test_R13_members_beyond_those_needed_are_cancelled_as_redundant_and_batches_stay_whole(policy):
    journal = run(policy, redundant_members=2)
    assert make_report(journal).ok
    lost = settled(journal, "redundant")
    assert lost and {c.outcome for c in lost} == {"cancelled"}
    batches = [c.batch for entry in journal.entries for c in entry.commands if isinstance(c, a.Train)]
    trained = {item.trajectory for batch in batches for item in batch}
    assert all(len(batch) == 9 and len({(i.group, i.member) for i in batch}) == 9 for batch in batches)
    assert not trained & {c.trajectory for c in lost}


def test_R13_groups_of_equal_rewards_are_filtered_and_refilled_at_once():
    journal = run("time_sharing", filter_equal_rewards=True)
    assert make_report(journal).ok
    dropped = {c.group for entry in journal.entries for c in entry.commands if isinstance(c, a.GroupDropped)
               if c.reason == "filtered"}  # fmt: skip
    assert dropped
    rewards: dict[int, set[float]] = {}
    for entry in journal.entries:
        for c in entry.commands:
            if isinstance(c, a.Settled) and c.kind == "train" and c.outcome in ("scored", "policy-failed"):
                rewards.setdefault(c.group, set()).add(c.reward)
    batches = [c.batch for entry in journal.entries for c in entry.commands if isinstance(c, a.Train)]
    assert all(len(rewards[item.group]) > 1 for batch in batches for item in batch)
