"""The page about environments, walked as a reader would: its class, its configuration, an episode, its keys."""

from __future__ import annotations

import dataclasses
import queue
import re
from pathlib import Path

import pytest
import yaml

from roll_ts.config import EnvironmentOptions, RunConfig
from roll_ts.config_file import load_config
from roll_ts.envs.hosting.hosts import Hosts
from roll_ts.envs.hosting.wire import Limits, Play, Said, Start

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")


@pytest.fixture
def walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The class in a file on the module path, and the part of the configuration."""
    [code] = re.findall(r"```python\n# guess\.py\n(.*?)```", PAGE, re.DOTALL)
    [part] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "guess.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    found: dict[str, object] = yaml.safe_load(part)["environment"]
    return found


def test_the_example_passes_the_check_of_a_configuration(walked: dict[str, object], tmp_path: Path) -> None:
    text = (ROOT / "examples" / "two_devices_time_sharing.yaml").read_text(encoding="utf-8")
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(yaml.safe_load(text) | {"environment": walked}))
    config = load_config(tmp_path / "run.yaml")
    assert isinstance(config, RunConfig), config
    assert config.environment.arguments == {"turns": 3}


def test_the_example_plays_an_episode_to_its_end(walked: dict[str, object]) -> None:
    said: queue.SimpleQueue[Said] = queue.SimpleQueue()
    hosts = Hosts(Start(str(walked["name"]), {"turns": 3}, threads=1), 1, 0, said.put)
    try:
        answers = []
        for turn, action in enumerate(["", "1", "6"]):
            hosts.submit([Play(turn, 7, turn, seed=5, action=action)])
            answers.append(said.get(timeout=30).answer)
    finally:
        hosts.close()
    assert [answer.text for answer in answers if answer] == ["guess 1-9:", "no, again:", "no, again:"]
    assert [answer.terminated for answer in answers if answer] == [False, False, True]
    assert answers[2] is not None and answers[2].success and answers[2].reward == 1.0


def test_the_page_names_every_key_of_an_environment() -> None:
    keys = {field.name for field in dataclasses.fields(EnvironmentOptions)}
    keys |= {field.name for field in dataclasses.fields(Limits)}
    assert [key for key in sorted(keys) if f"`{key}" not in PAGE and f"{key}:" not in PAGE] == []
