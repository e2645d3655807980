"""Each policy on real engines: two devices, real training, and what must be true of the run afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from roll_ts.core import alphabet as a
from roll_ts.observe.journal import Journal, read_journal
from roll_ts.runtime.replay import replay
from roll_ts.runtime.verify import logprob_figures

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.timeout(600)]

POLICIES = ["colocated", "disaggregated", "time_sharing"]
FinishedRun = Callable[[str], Path]


def journal_of(folder: Path) -> Journal:
    return read_journal(folder / "journal.jsonl")


@pytest.mark.parametrize("policy", POLICIES)
def test_training_changes_the_weights_and_every_engine_holds_what_the_trainer_has(
    finished_run: FinishedRun, policy: str
) -> None:
    journal = journal_of(finished_run(policy))
    events = [entry.event for entry in journal.entries]
    digest = {event.version: event.digest for event in events if isinstance(event, a.TrainingFinished)}
    [ready] = [event for event in events if isinstance(event, a.TrainerReady)]
    digest[ready.version] = ready.digest
    assert len(digest) >= 3 and len(set(digest.values())) == len(digest), (
        "a training step left the weights as they were"
    )
    loaded = [event for event in events if isinstance(event, a.WeightsLoaded)]
    assert all(event.digest == digest[event.version] for event in loaded)
    last = max(digest)
    assert {event.rank for event in loaded if event.version == last} == set(
        range(len(journal.header.settings.layout.ranks))
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_the_saved_checkpoint_is_the_last_version_in_hugging_face_format(
    finished_run: FinishedRun, policy: str
) -> None:
    from roll_ts.engines.checkpoint import checkpoint_tensors
    from roll_ts.weights.digest import digest

    folder = finished_run(policy)
    [checkpoint] = (folder / "checkpoint").iterdir()
    assert json.loads((checkpoint / "config.json").read_text())["model_type"] == "qwen3"
    trained = [e.event for e in journal_of(folder).entries if isinstance(e.event, a.TrainingFinished)]
    assert digest(checkpoint_tensors(str(checkpoint))) == trained[-1].digest


@pytest.mark.parametrize("policy", POLICIES)
def test_engine_and_trainer_agree_on_the_log_probs_of_every_step(finished_run: FinishedRun, policy: str) -> None:
    steps = logprob_figures(journal_of(finished_run(policy)))
    assert len(steps) == 3
    assert all(step.max <= 1e-4 for step in steps)
    assert sum(step.n for step in steps) > 0


@pytest.mark.parametrize("policy", POLICIES)
def test_every_trajectory_has_one_outcome_and_no_token_is_made_twice(finished_run: FinishedRun, policy: str) -> None:
    folder = finished_run(policy)
    commands = [command for _, command in journal_of(folder).commands()]
    started = {command.trajectory for command in commands if isinstance(command, a.StepEnvironment)}
    outcomes = Counter(command.trajectory for command in commands if isinstance(command, a.Settled))
    assert started == set(outcomes) and set(outcomes.values()) == {1}
    tokens = json.loads((folder / "report.json").read_text())["tokens"]
    assert tokens["regenerated"] == 0 and tokens["lost"] == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_the_live_journal_gives_the_same_commands_when_it_is_replayed(finished_run: FinishedRun, policy: str) -> None:
    assert replay(journal_of(finished_run(policy))) is None


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_leaves_all_its_files(finished_run: FinishedRun, policy: str) -> None:
    folder = finished_run(policy)
    names = {path.name for path in folder.iterdir()}
    files = {"config.yaml", "journal.jsonl", "samples.jsonl", "metrics.jsonl", "report.json", "timeline.json"}
    assert files | {"picture.html", "checkpoint"} <= names
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 3
    assert json.loads((folder / "timeline.json").read_text())["traceEvents"]


def test_time_sharing_lends_a_rank_and_takes_it_back_each_step(finished_run: FinishedRun) -> None:
    commands = [command for _, command in journal_of(finished_run("time_sharing")).commands()]
    moves = [(c.old, c.new) for c in commands if isinstance(c, a.RankMoved) and c.rank == 1]
    assert moves.count(("RELEASING", "LENT")) == 3 and moves.count(("LENT", "LOADING")) == 3
    assert moves[-1] == ("LOADING", "ACTIVE")


def test_a_greedy_turn_that_moved_has_the_tokens_it_would_have_had(finished_run: FinishedRun) -> None:
    folder = finished_run("time_sharing")
    command = [sys.executable, "-m", "roll_ts", "verify", str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    result = json.loads(done.stdout)
    assert result["turns"], "no greedy turn moved with a token before and after"
    assert all(turn["same"] for turn in result["turns"]), result["turns"]
