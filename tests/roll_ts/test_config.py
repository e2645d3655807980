"""The run configuration: what is read, and how every mistake is told at once."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.config import RunConfig
from roll_ts.config_file import dump_config, load_config
from roll_ts.core.settings import Problem

EXAMPLES = Path(__file__).parents[2] / "examples"
TWO = EXAMPLES / "two_devices_time_sharing.yaml"


def good(*overrides: str, path: Path = TWO) -> RunConfig:
    config = load_config(path, overrides)
    assert isinstance(config, RunConfig), config
    return config


def bad(*overrides: str, path: Path = TWO) -> dict[str, Problem]:
    problems = load_config(path, overrides)
    assert isinstance(problems, list)
    assert len(set(problems)) == len(problems), "a mistake was told twice"
    return {problem.key: problem for problem in problems}


@pytest.mark.parametrize("policy", ["colocated", "disaggregated", "time_sharing"])
def test_each_two_device_example_is_sound_and_runs_its_own_policy(policy: str) -> None:
    config = good(path=EXAMPLES / f"two_devices_{policy}.yaml")
    assert config.policy == policy
    assert config.settings().layout.train_devices == config.layout.train_devices


@pytest.mark.parametrize("policy", ["colocated", "disaggregated", "time_sharing"])
def test_the_demo_runs_under_every_policy_with_the_devices_it_needs(policy: str) -> None:
    config = good(f"policy={policy}", path=EXAMPLES / "frozen_lake.yaml")
    lent = config.settings().layout.shared_ranks
    assert len(lent) == {"colocated": 2, "disaggregated": 0, "time_sharing": 1}[policy]


def test_six_different_mistakes_are_six_findings_in_one_report() -> None:
    found = bad(
        "trainer.learning_rat=1e-3",
        "rollout.group_size=true",
        "steps=0",
        "layout.train_devices=[1, 1]",
        "environment.arguments.siz=4",
        "deadlines.boot=-1",
    )
    assert set(found) == {
        "trainer.learning_rat",
        "rollout.group_size",
        "steps",
        "layout.train_devices",
        "environment.arguments.siz",
        "deadlines.boot",
    }
    assert all(problem.wrong and problem.fix for problem in found.values())
    assert "learning_rate" in found["trainer.learning_rat"].fix


def test_a_finding_that_only_follows_from_another_is_not_told() -> None:
    assert set(bad("rollout.max_context_tokens=many")) == {"rollout.max_context_tokens"}
    assert set(bad("layout=none")) == {"layout"}
    assert set(bad("environment=frozen_lake")) == {"environment"}
    assert set(bad("policy=time_shering")) == {"policy"}
    assert set(bad("layout.ranks=none")) == {"layout.ranks"}


def test_a_mistake_hides_no_other_of_its_section() -> None:
    wanted = {"rollout.groups_per_batch", "rollout.async_ratio", "environment.name", "layout", "policy"}
    found = bad(
        "rollout.groups_per_batch=eight",
        "rollout.async_ratio=-0.5",
        "environment.name=frozen_leak",
        "layout.ranks=[[0],[77]]",
        "policy=time_shering",
    )
    assert set(found) == wanted
    assert "did you mean 'frozen_lake'?" in found["environment.name"].wrong


def test_a_key_given_twice_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text(TWO.read_text() + "steps: 9\n")
    [problem] = load_config(path)  # type: ignore[misc]
    assert problem.key == "steps" and "lines 4 and" in problem.value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [1\n", "is not YAML"),
        ("- one\n- two\n", "must be a mapping"),
        ("", "must be a mapping"),
        ("a: \0\n", "is not YAML"),
        ("a: &itself\n  b: *itself\n", "is not YAML"),
        ("steps: " + "9" * 5_000 + "\n", "is no value of its kind"),
        ("a: 2020-99-99\n", "is no value of its kind"),
        ("a: !!bool x\n", "is no value of its kind"),
        ("[" * 5_000, "is nested too deeply"),
    ],
)
def test_a_file_that_is_no_configuration_says_why(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    [problem] = load_config(path)  # type: ignore[misc]
    assert told in problem.wrong


def test_a_policy_that_is_no_word_is_told_beside_a_section_for_policies() -> None:
    assert "text" in bad("policy=[]", "per_policy.colocated.steps=3")["policy"].wrong


def test_a_missing_file_is_a_finding() -> None:
    [problem] = load_config("nowhere.yaml")  # type: ignore[misc]
    assert "nowhere.yaml" in problem.value and "cannot be read" in problem.wrong


def test_numbers_with_an_exponent_are_numbers() -> None:
    assert good("trainer.learning_rate=1e-3").trainer.learning_rate == 0.001
    assert good("trainer.learning_rate=2E-4").trainer.learning_rate == 0.0002


def test_yes_is_not_taken_for_text() -> None:
    assert "true and false" in bad("name=yes")["name"].fix


def test_an_override_wins_over_the_policy_section_and_that_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "layers.yaml"
    path.write_text(TWO.read_text() + "per_policy:\n  time_sharing:\n    rollout: {group_size: 6, async_ratio: 0.25}\n")
    config = good("rollout.group_size=5", path=path)
    assert (config.rollout.group_size, config.rollout.async_ratio, config.rollout.max_turns) == (5, 0.25, 4)


def test_a_section_for_an_unknown_policy_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "unknown.yaml"
    path.write_text(TWO.read_text() + "per_policy:\n  time_shering: {steps: 2}\n")
    [problem] = load_config(path)  # type: ignore[misc]
    assert problem.key == "per_policy" and problem.value == "time_shering"


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        (["policy=colocated", "rollout.async_ratio=0"], "layout.train_devices"),
        (["policy=disaggregated"], "layout.train_devices"),
        (["name=../elsewhere"], "name"),
        (["name=''"], "name"),
        (["seed=-1"], "seed"),
        (["layout.ranks=[[0, 1]]"], "layout.train_devices"),
        (["trainer.tensor_parallel=2"], "trainer.tensor_parallel"),
        (["model.path=nowhere", "model.scratch=null"], "model.path"),
        (["model.path=nowhere"], "model"),
        (["model.scratch.hidden=100"], "model.scratch.hidden"),
        (["model.scratch.positions=64"], "model.scratch.positions"),
        (["environment.name=frozen_sea"], "environment.name"),
        (["environment.arguments.size=1"], "environment.arguments"),
        (["layout.ranks=[[0],[1000]]", "layout.train_devices=[1000]"], "layout"),
        (["trainer.resume=nowhere"], "trainer.resume"),
        (["nonsense"], "--set"),
    ],
)
def test_a_value_that_cannot_work_is_told_under_its_key(overrides: list[str], key: str) -> None:
    assert key in bad(*overrides)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(
    groups=st.integers(1, 100),
    size=st.integers(2, 50),
    ratio=st.floats(0, 4),
    rate=st.floats(1e-9, 1),
    seed=st.integers(0, 2**31),
    versions=st.lists(st.integers(0, 50), max_size=4),
)
def test_what_is_written_is_read_back_equal(
    tmp_path_factory: pytest.TempPathFactory,
    groups: int,
    size: int,
    ratio: float,
    rate: float,
    seed: int,
    versions: list[int],
) -> None:
    config = good(
        f"rollout.groups_per_batch={groups}",
        f"rollout.group_size={size}",
        f"rollout.async_ratio={ratio!r}",
        f"trainer.learning_rate={rate!r}",
        f"seed={seed}",
        f"replay_check.versions={versions}",
    )
    assert (config.rollout.async_ratio, config.trainer.learning_rate) == (ratio, rate)
    path = tmp_path_factory.mktemp("round") / "config.yaml"
    path.write_text(dump_config(config))
    assert load_config(path) == config


def test_problems_are_found_within_two_seconds_and_before_anything_heavy_is_imported() -> None:
    code = (
        "import sys; from roll_ts.config_file import load_config; found = load_config(sys.argv[1], ['steps=0']); "
        "heavy = {'torch', 'ray', 'vllm', 'transformers', 'megatron'} & set(sys.modules); "
        "sys.exit(f'{found} {heavy}' if heavy or len(found) != 1 else 0)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code, str(TWO)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (used.ru_utime + used.ru_stime) - (before.ru_utime + before.ru_stime) < 2.0


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([], 1e-3),
        (["trainer.dtype=bfloat16"], 0.15),
        (["engine.dtype=float16"], 0.02),
        (["engine.dtype=float16", "trainer.dtype=bfloat16"], 0.15),
        (["trainer.dtype=bfloat16", "weights.canary_tolerance=0.01"], 0.01),
    ],
)
def test_the_canary_follows_the_coarser_number_format_unless_it_is_set(overrides: list[str], expected: float) -> None:
    config = load_config(EXAMPLES / "two_devices_time_sharing.yaml", overrides)
    assert isinstance(config, RunConfig)
    assert config.settings().canary_tolerance == expected


def test_an_empty_mapping_clears_what_the_file_says() -> None:
    config = load_config(EXAMPLES / "two_devices_time_sharing.yaml", ["environment.arguments={}"])
    assert isinstance(config, RunConfig)
    assert config.environment.arguments == {}


@pytest.mark.parametrize(
    ("overrides", "key", "words"),
    [
        (["layout.device=cuda"], "layout.device", "this machine has none"),
        (["model.scratch.layers=40", "engine.kv_mib=1"], "engine.kv_mib", "holds less than one context"),
        (["environment.processes=0"], "environment.processes", "at least 1"),
        (["environment.observation_tokens=0"], "environment.observation_tokens", "at least 1"),
        (["environment.limits.memory_mib=-1"], "environment.limits.memory_mib", "at least 0"),
        (["trainer.clip_low=0.2", "trainer.clip_high=0.2"], "trainer.clip_low", "no clip acts"),
        (["trainer.weight_decay=-0.1"], "trainer.weight_decay", "zero or positive"),
    ],
)
def test_what_could_only_fail_later_is_told_before_anything_starts(
    overrides: list[str], key: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("roll_ts.config_check._GPUS", tmp_path / "none")
    found = load_config(EXAMPLES / "two_devices_time_sharing.yaml", overrides)
    assert isinstance(found, list)
    assert [problem for problem in found if problem.key == key and words in problem.wrong], found
