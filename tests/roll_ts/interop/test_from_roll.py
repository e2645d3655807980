"""A file of ROLL's gives a configuration of ours, and everything wrong with it is said at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from roll_ts.cli import main
from roll_ts.interop.from_roll import Imported, import_roll
from roll_ts.interop.roll_yaml import BadFile, devices_of, read_roll_yaml

PIPELINE = """
exp_name: sokoban
max_steps: 200
seed: 3
rollout_batch_size: 64
async_generation_ratio: 1
sequence_length: 8192
adv_estimator: grpo
pretrain: Qwen/Qwen3-8B
actor_train:
  training_args: {learning_rate: 1.0e-6, warmup_steps: 10}
  strategy_args: {strategy_name: megatron_train, strategy_config: {tensor_model_parallel_size: 2}}
  device_mapping: list(range(0, 4))
actor_infer:
  generating_args: {max_new_tokens: 128}
  strategy_args: {strategy_name: vllm, strategy_config: {tensor_parallel_size: 2}}
  device_mapping: list(range(0, 8))
reference:
  device_mapping: list(range(0, 4))
train_env_manager:
  num_env_groups: 16
  group_size: 8
  tags: [Sokoban]
  num_groups_partition: [16]
custom_envs:
  Sokoban: {env_type: sokoban, max_steps: 20}
"""


def run(tmp_path: Path, text: str = PIPELINE, **changes: Any) -> Imported:
    data = yaml.safe_load(text)
    for key, value in changes.items():
        *path, last = key.split("__")
        place = data
        for name in path:
            place = place[name]
        place[last] = value
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(data))
    return import_roll(file)


def keys(imported: Imported, errors: bool = True) -> set[str]:
    return {finding.key for finding in imported.findings if finding.error is errors}


def test_a_sound_file_becomes_a_configuration_with_its_numbers(tmp_path: Path) -> None:
    imported = run(tmp_path)
    assert imported.ok, [str(f) for f in imported.findings]
    config = imported.config
    assert config["policy"] == "time_sharing"
    assert config["layout"]["ranks"] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert config["layout"]["train_devices"] == [0, 1, 2, 3]
    roll = config["rollout"]
    assert (roll["groups_per_batch"], roll["group_size"], roll["async_ratio"], roll["max_turns"]) == (8, 8, 1.0, 20)
    assert (roll["max_reply_tokens"], roll["max_context_tokens"]) == (128, 8192)
    assert config["trainer"]["advantage"] == "grpo"
    assert config["trainer"]["tensor_parallel"] == 2
    assert (config["steps"], config["seed"], config["name"]) == (200, 3, "sokoban")


@pytest.mark.parametrize(
    ("train", "infer", "policy"),
    [
        ("list(range(0, 8))", "list(range(0, 8))", "colocated"),
        ("list(range(0, 4))", "list(range(4, 8))", "disaggregated"),
        ("[0, 1]", "[0, 1] + list(range(2, 8))", "time_sharing"),
    ],
)
def test_which_devices_are_shared_says_which_scheme_it_is(tmp_path: Path, train: str, infer: str, policy: str) -> None:
    imported = run(
        tmp_path, actor_train__device_mapping=train, actor_infer__device_mapping=infer, reference__device_mapping=train
    )
    assert imported.config["policy"] == policy


@pytest.mark.parametrize(
    ("change", "key", "when"),
    [
        ({"actor_train__device_mapping": "[6, 7, 8, 9]", "reference__device_mapping": "[6, 7, 8, 9]"},
         "actor_train.device_mapping", "after the models are loaded"),
        ({"async_generation_ratio": 0}, "async_generation_ratio", "after the models are loaded"),
        ({"reference__device_mapping": "[4, 5]"}, "reference.device_mapping", "after the models are loaded"),
        ({"actor_infer__device_mapping": "list(range(0, 7))"}, "actor_infer.device_mapping",
         "after the models are loaded"),
        ({"actor_train__device_mapping": "[0, 1, 2]", "reference__device_mapping": "[0, 1, 2]"},
         "actor_train.device_mapping", "after the models are loaded"),
        ({"train_env_manager__num_groups_partition": [8, 4]}, "train_env_manager.num_groups_partition",
         "at its configuration"),
        ({"train_env_manager__tags": ["Lake"]}, "train_env_manager.tags", "at its configuration"),
        ({"train_env_manager__group_size": 1}, "train_env_manager.group_size", "never"),
        ({"rollout_batch_size": 60}, "rollout_batch_size", "never"),
    ],
)  # fmt: skip
def test_what_roll_tells_late_or_never_is_told_at_once(
    tmp_path: Path, change: dict[str, Any], key: str, when: str
) -> None:
    imported = run(tmp_path, **change)
    assert not imported.ok
    assert (key, when) in {(finding.key, finding.roll_says) for finding in imported.findings if finding.error}


def test_engines_that_training_would_cut_are_named(tmp_path: Path) -> None:
    imported = run(
        tmp_path,
        actor_train__device_mapping="[1, 2]",
        reference__device_mapping="[1, 2]",
    )
    [finding] = [f for f in imported.findings if "part of the engines" in f.wrong]
    assert "[0, 1]" in finding.wrong and "[2, 3]" in finding.wrong


def test_more_trajectories_than_places_is_a_note(tmp_path: Path) -> None:
    [note] = [f for f in run(tmp_path, rollout_batch_size=128).findings if f.key == "rollout_batch_size"]
    assert "256 trajectories" in note.wrong and "128 environments" in note.wrong
    assert not note.error


def test_a_key_that_roll_drops_is_named_with_what_was_meant(tmp_path: Path) -> None:
    imported = run(tmp_path, actor_train__use_remove_padding=True, rolout_batch_size=4)
    notes = {finding.key: finding for finding in imported.findings if not finding.error}
    assert "drops it" in notes["actor_train.use_remove_padding"].wrong
    assert "rollout_batch_size" in notes["rolout_batch_size"].fix
    assert str(notes["rolout_batch_size"]).endswith("(ROLL never says so)")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('x')",
        "[i for i in range(8)]",
        "list(range(10 ** 9))",
        "list(range(0, 10000000))",
        "[0, 'a']",
        "list(range())",
        "8",
        "[0, 0]",
        "(lambda: [0])()",
        "list(range(True))",
    ],
)
def test_a_device_list_is_never_evaluated(text: str) -> None:
    with pytest.raises(BadFile, match="actor_train"):
        devices_of(text, "actor_train.device_mapping")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("list(range(2, 8, 2)) + [1]", (2, 4, 6, 1)), ([3, 4], (3, 4)), ("[]", ()), (None, ()), ("None", ())],
)
def test_lists_ranges_and_sums_are_understood(value: Any, expected: tuple[int, ...]) -> None:
    assert devices_of(value, "x") == expected


def test_defaults_and_references_are_followed(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "envs.yaml").write_text(
        "steps: 7\nspare: 1\ncustom_env:\n  Sokoban: {max_steps: '${steps}'}\n"
    )
    text = "defaults:\n  - config/envs@_here_\n  - config/absent@_here_\n" + PIPELINE.replace(
        "Sokoban: {env_type: sokoban, max_steps: 20}", "Sokoban: ${custom_env.Sokoban}"
    )
    file = tmp_path / "pipeline.yaml"
    file.write_text(text + "logging_dir: ${oc.env:NO_SUCH_VARIABLE,./logs}/${exp_name}/${now:%Y}\n")
    imported = import_roll(file)
    assert imported.config["rollout"]["max_turns"] == 7
    assert read_roll_yaml(file).data["logging_dir"] == "./logs/sokoban/${now:%Y}"
    assert ("defaults", "config/absent") in {(f.key, f.value) for f in imported.findings}
    assert "spare" not in keys(imported, errors=False)


@pytest.mark.parametrize(
    "text", ["a: ${b}\nb: ${a}\n", "a: ${nowhere}\n", "a: [1\n", "- 1\n", "defaults: [pipeline]\n"]
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, text: str) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(text)
    with pytest.raises(BadFile):
        read_roll_yaml(file)


def test_the_command_prints_a_configuration_and_says_what_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "pipeline.yaml", tmp_path / "ours.yaml"
    file.write_text(PIPELINE)
    assert main(["import-roll", str(file), "--out", str(out)]) == 0
    assert "note: model.path" in capsys.readouterr().err
    assert yaml.safe_load(out.read_text())["policy"] == "time_sharing"
    assert main(["import-roll", str(file), "--out", str(out)]) == 2, "never over another file"
    assert main(["import-roll", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["config"]["seed"] == 3
    assert main(["import-roll", str(tmp_path / "absent.yaml")]) == 2


def test_what_is_written_reads_back_once_model_and_environment_are_given(tmp_path: Path) -> None:
    from roll_ts.config_file import load_config

    out = tmp_path / "ours.yaml"
    out.write_text(run(tmp_path).text("pipeline.yaml"))
    problems = load_config(out)
    assert isinstance(problems, list)
    assert {problem.key for problem in problems} == {"environment.name", "model.path", "layout.device"}
