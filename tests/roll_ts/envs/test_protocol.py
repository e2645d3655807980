import pytest

from roll_ts.envs.protocol import Environment, EnvSpec, env_spec, make_env, register


def test_a_shipped_environment_is_made_by_name() -> None:
    env = make_env("frozen_lake", size=4)
    observation, info = env.reset(0)
    assert isinstance(env, Environment)
    assert observation.count("/") == 3
    assert info["success"] is False


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match=r"name must be one of .*frozen_lake.*got 'lake'"):
        make_env("lake")


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="got 'frozen_lake' - the name is taken"):
        register(EnvSpec("frozen_lake", env_spec("frozen_lake").factory, "x"))


def test_arguments_override_the_defaults_of_the_spec() -> None:
    seen: dict[str, object] = {}

    def factory(**kwargs: object) -> Environment:
        seen.update(kwargs)
        return make_env("frozen_lake")

    register(EnvSpec("test_defaults", factory, "x", defaults={"size": 3, "slippery": False}))
    make_env("test_defaults", size=5)
    assert seen == {"size": 5, "slippery": False}
