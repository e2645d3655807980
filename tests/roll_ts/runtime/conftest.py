"""One Ray for all tests with real processes, and one run per policy that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roll_ts.config import RunConfig
from roll_ts.config_file import load_config

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """A Ray instance that `launch` finds and leaves alone."""
    import ray

    from roll_ts.config import RayOptions
    from roll_ts.runtime.session import ray_session

    assert not ray.is_initialized()
    with ray_session(RayOptions()):
        yield


@pytest.fixture(scope="session")
def finished_run(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a finished run of the policy's two-device example; made when first asked for."""
    from roll_ts.runtime.launch import launch
    from roll_ts.runtime.results import write_results

    made: dict[str, Path] = {}

    def run(policy: str) -> Path:
        if policy not in made:
            folder = tmp_path_factory.mktemp("runs") / policy
            config = load_config(EXAMPLES / f"two_devices_{policy}.yaml", [f"out={folder}"])
            assert isinstance(config, RunConfig)
            ended = launch(config)
            assert ended.ok, ended.finish
            write_results(ended.folder)
            made[policy] = ended.folder
        return made[policy]

    return run
