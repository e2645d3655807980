"""What the core offers beyond the three schemes, on real engines: two steps each, with what must be true afterwards."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from roll_ts.config import RunConfig
from roll_ts.config_file import load_config
from roll_ts.core import alphabet as a
from roll_ts.observe.journal import read_journal
from roll_ts.runtime.launch import launch
from roll_ts.runtime.replay import replay

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.timeout(600)]

EXAMPLE = Path(__file__).parents[3] / "examples" / "two_devices_time_sharing.yaml"
KINDS = {
    "adaptive": ["policy=adaptive"],
    "a policy of one's own": ["policy=examples.patient_policy:Patient"],
    "redundancy and filtering": ["rollout.redundant_members=1", "rollout.filter_equal_rewards=true"],
    "session admission": ["rollout.session_admission=true"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_two_live_steps_end_well_with_one_outcome_each_and_replay(cluster: None, tmp_path: Path, kind: str) -> None:
    config = load_config(EXAMPLE, [f"out={tmp_path / 'run'}", "steps=2", "replay_check.versions=[]", *KINDS[kind]])
    assert isinstance(config, RunConfig), config
    ended = launch(config)
    assert ended.ok, ended.finish
    journal = read_journal(tmp_path / "run" / "journal.jsonl")
    commands = [command for _, command in journal.commands()]
    started = {c.trajectory for c in commands if isinstance(c, a.StepEnvironment)}
    outcomes = Counter(c.trajectory for c in commands if isinstance(c, a.Settled))
    assert started == set(outcomes)
    assert set(outcomes.values()) == {1}
    assert sum(isinstance(c, a.Train) for c in commands) == 2
    assert replay(journal) is None
    if kind == "redundancy and filtering":
        size = config.rollout.group_size
        members = Counter(c.group for c in commands if isinstance(c, a.StepEnvironment) and c.turn == 0)
        assert max(members.values()) > size, "more members start than a group needs"
