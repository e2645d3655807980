import pytest

from roll_ts.envs.protocol import Environment, EnvSpec
from roll_ts.envs.registry import SHIPPED, env_spec, make_env

SEEN: dict[str, object] = {}


def recorded(**arguments: object) -> Environment:
    SEEN.update(arguments)
    return make_env("frozen_lake")


SPEC = EnvSpec("mine", recorded, "x", defaults={"size": 3, "slippery": False})


def test_a_shipped_environment_is_made_by_name() -> None:
    env = make_env("frozen_lake", size=4)
    observation, info = env.reset(0)
    assert isinstance(env, Environment)
    assert observation.count("/") == 3
    assert info["success"] is False


@pytest.mark.parametrize("name", SHIPPED)
def test_each_shipped_name_leads_to_a_spec_of_that_name(name: str) -> None:
    assert env_spec(name).name == name


def test_anybodys_environment_is_found_by_the_path_of_its_spec_and_arguments_override_its_defaults() -> None:
    make_env(f"{__name__}:SPEC", size=5)
    assert SEEN == {"size": 5, "slippery": False}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("frozen_leak", r"no environment, did you mean 'frozen_lake'\?"),
        ("chess", "no environment, shipped: frozen_lake, yours: package.module:SPEC"),
        ("nowhere.at_all:SPEC", "cannot be imported: No module named 'nowhere', install its package"),
        ("roll_ts.envs.registry:NOTHING", "cannot be imported: .*has no attribute 'NOTHING'"),
        ("roll_ts.envs.registry:SHIPPED", "spec must be.*EnvSpec.*got"),
    ],
)
def test_a_name_that_leads_nowhere_says_why_and_what_would_do(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        env_spec(name)
