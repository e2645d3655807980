import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.envs.frozen_lake import ALPHABET, FrozenLake, distances_to_goal, parse_action

OPEN = ["SFF", "FFF", "FFG"]
HOLES = ["SHF", "FFF", "HFG"]


@pytest.mark.parametrize(
    ("reply", "action"),
    [("L", 0), ("D", 1), ("R", 2), ("U", 3), ("xx R then D", 2), ("", None), ("ldru 123", None)],
)
def test_the_action_is_the_first_of_the_four_letters(reply: str, action: int | None) -> None:
    assert parse_action(reply) == action


def test_the_shortest_way_on_the_open_map_reaches_the_goal() -> None:
    env = FrozenLake(desc=OPEN)
    assert env.reset(0)[0] == "\nAFF/FFF/FFG 00"
    for action in "DDR":
        _, reward, terminated, truncated, info = env.step(action)
        assert (reward, terminated, truncated, info["success"]) == (0.0, False, False, False)
    observation, reward, terminated, truncated, info = env.step("R")
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    assert observation == "\nSFF/FFF/FFA 22"


def test_a_hole_ends_the_episode_without_success() -> None:
    env = FrozenLake(desc=HOLES)
    env.reset(0)
    _, reward, terminated, truncated, info = env.step("R")
    assert (reward, terminated, truncated, info["success"]) == (0.0, True, False, False)


def test_a_reply_without_an_action_passes_the_turn() -> None:
    env = FrozenLake(desc=OPEN, max_turns=2)
    before = env.reset(0)[0]
    observation, _, _, truncated, _ = env.step("hm, no idea")
    assert observation == before and not truncated
    assert env.step("")[3] is True


def test_the_goal_on_the_last_turn_is_a_success_and_not_a_truncation() -> None:
    env = FrozenLake(desc=OPEN, max_turns=4)
    env.reset(0)
    last = [env.step(a) for a in "DDRR"][-1]
    assert last[2:4] == (True, False) and last[4]["success"]


def test_a_finished_episode_cannot_be_stepped() -> None:
    env = FrozenLake(desc=OPEN, max_turns=1)
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step("D")
    env.reset(0)
    env.step("D")
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step("D")


def test_closing_twice_is_allowed_and_ends_the_episode() -> None:
    env = FrozenLake(desc=OPEN)
    env.reset(0)
    env.close()
    env.close()
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step("D")


def test_the_progress_reward_pays_for_the_way_and_a_hole_takes_it_back() -> None:
    env = FrozenLake(desc=HOLES, progress_reward=0.4)
    env.reset(0)
    assert env.step("D")[1] == pytest.approx(0.1)
    assert env.step("U")[1] == pytest.approx(-0.1)
    env.step("D")
    assert env.step("D")[1] == pytest.approx(-0.1)


def test_shaping_never_touches_success() -> None:
    env = FrozenLake(desc=OPEN, progress_reward=0.5, turn_cost=0.1, max_turns=8)
    env.reset(0)
    steps = [env.step(a) for a in "DDRR"]
    assert sum(s[1] for s in steps) == pytest.approx(1.0 + 0.5 - 4 * 0.1)
    assert [s[4]["success"] for s in steps] == [False, False, False, True]


def test_the_views_show_map_position_surroundings_and_safe_moves() -> None:
    env = FrozenLake(desc=HOLES, view=("map", "position", "around", "moves"))
    assert env.reset(0)[0] == "\nAHF/FFF/HFG 00 ##FH D"
    assert env.step("D")[0] == "\nSHF/AFF/HFG 10 S#HF UR"
    assert env.step("R")[0] == "\nSHF/FAF/HFG 11 HFFF LDR"
    assert FrozenLake(desc=HOLES, view=("moves",)).reset(0)[0] == "\nD"


def test_slippery_ice_moves_aside_sometimes_and_the_same_seed_slips_alike() -> None:
    def places(seed: int) -> list[tuple[int, int]]:
        env = FrozenLake(desc=OPEN, slippery=True, max_turns=6)
        env.reset(seed)
        seen = []
        for _ in range(6):
            _, _, terminated, truncated, info = env.step("D")
            seen.append(info["position"])
            if terminated or truncated:
                break
        return seen

    walks = [places(seed) for seed in range(20)]
    assert any(column for walk in walks for _, column in walk), "pressing down never slipped to the side"
    assert walks == [places(seed) for seed in range(20)]


@settings(deadline=None, derandomize=True, max_examples=40)
@given(seed=st.integers(0, 2**31), size=st.integers(3, 6), share=st.sampled_from([0.5, 0.8, 1.0]))
def test_every_random_map_can_be_solved_by_its_shortest_way(seed: int, size: int, share: float) -> None:
    env = FrozenLake(size=size, frozen_share=share, max_turns=size * size)
    text, info = env.reset(seed)
    rows = text.strip("\n").split(" ")[0].split("/")
    cell, success = (0, 0), info["success"]
    desc = ["S" + rows[0][1:], *rows[1:]]
    ways = distances_to_goal(desc)
    for _ in range(ways[cell]):
        for letter, (dr, dc) in zip("LDRU", ((0, -1), (1, 0), (0, 1), (-1, 0)), strict=True):
            ahead = (cell[0] + dr, cell[1] + dc)
            if ways.get(ahead) == ways[cell] - 1:
                success, cell = env.step(letter)[4]["success"], ahead
                break
    assert success


@settings(deadline=None, derandomize=True, max_examples=30)
@given(seed=st.integers(0, 2**31), slippery=st.booleans())
def test_an_episode_is_rebuilt_by_replaying_its_seed_and_actions(seed: int, slippery: bool) -> None:
    def play() -> list[object]:
        env = FrozenLake(slippery=slippery, view=("map", "position", "around", "moves"))
        trace: list[object] = [env.reset(seed)]
        actions = random.Random(seed)
        while True:
            trace.append(env.step(actions.choice("LDRUx")))
            if trace[-1][2] or trace[-1][3]:  # type: ignore[index]
                return trace

    first = play()
    assert first == play()
    assert all(set(t[0]) <= set(ALPHABET) for t in first)  # type: ignore[index]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"size": 1}, "size must be at least 2, got 1"),
        ({"frozen_share": 0}, r"frozen_share must lie in \(0, 1\], got 0"),
        ({"max_turns": 0}, "max_turns must be at least 1, got 0"),
        ({"view": ()}, "view must not be empty"),
        ({"view": ("maps",)}, r"\['maps'\] outside \('map', 'position', 'around', 'moves'\)"),
        ({"size": 11}, "rows must be at most 10, got 11 - the view `position` shows two digits"),
        ({"desc": ["SH", "HG"]}, "a way leads from S to G"),
        ({"desc": ["SF", "FGF"]}, r"widths must have one element, got 2: \[2, 3\] .*equally long"),
        ({"desc": ["SX", "FG"]}, r"has \['X'\] outside 'SFHG' .*made of S, F, H and G"),
    ],
)
def test_a_bad_argument_is_named_with_its_value(kwargs: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FrozenLake(**kwargs)  # type: ignore[arg-type]
