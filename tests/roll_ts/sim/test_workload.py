"""Episodes depend on who plays, not on when; the presets say what their source says."""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.sim.workload import LONG_TAIL, PRESETS, SWE, Quantiles, constant, table


def test_an_episode_depends_on_seed_kind_group_and_member_only() -> None:
    first = LONG_TAIL.episode("train", 3, 1)
    for group in range(20):
        LONG_TAIL.episode("train", group, 0)
    assert LONG_TAIL.episode("train", 3, 1) == first
    others = [
        LONG_TAIL.episode("train", 3, 2),
        LONG_TAIL.episode("train", 4, 1),
        LONG_TAIL.episode("eval", 3, 1),
        replace(LONG_TAIL, seed=1).episode("train", 3, 1),
    ]
    assert first not in others


def test_an_episode_is_the_same_in_every_process() -> None:
    episode = LONG_TAIL.episode("train", 0, 0)
    assert (episode.turns, episode.prompt_tokens, episode.replies[:2]) == GOLDEN


GOLDEN = (5, 682, (65, 979))


@given(st.floats(0, 1), st.floats(0, 1))
@settings(deadline=None, derandomize=True)
def test_quantiles_rise_and_stay_within_the_table(p: float, q: float) -> None:
    low, high = sorted((p, q))
    turns = SWE.turns
    assert 13 <= turns.at(low) <= turns.at(high) <= 145


def test_table_points_are_hit_exactly() -> None:
    for p, value in SWE.reply_tokens.points:
        assert SWE.reply_tokens.at(p) == pytest.approx(value)
    assert constant(7).at(0.3) == 7


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_the_presets_are_sound(name: str) -> None:
    assert PRESETS[name].problems() == []


@pytest.mark.parametrize(
    ("points", "wrong"),
    [
        ([(0, 1)], "span"),
        ([(0, 1), (0.5, 2)], "span"),
        ([(0, 1), (0.5, 2), (0.5, 3), (1, 4)], "rise"),
        ([(0, 5), (1, 4)], "fall"),
        ([(0, -1), (1, 4)], "negative"),
    ],
)
def test_a_broken_table_is_named(points: list[tuple[float, float]], wrong: str) -> None:
    (problem,) = replace(LONG_TAIL, turns=Quantiles(tuple(points))).problems()
    assert problem.key == "workload.turns" and wrong in problem.wrong


def test_scaling_scales_the_means() -> None:
    def mean(work: object) -> float:
        episodes = [work.episode("train", g, 0) for g in range(300)]  # type: ignore[attr-defined]
        return sum(e.turns for e in episodes) / len(episodes)

    assert mean(SWE.scaled(turns=0.5)) == pytest.approx(mean(SWE) / 2, rel=0.03)


def test_skill_rises_with_the_version_towards_its_end() -> None:
    skills = [LONG_TAIL.skill(v) for v in (0, 1, 8, 1000)]
    assert skills == sorted(skills) and skills[0] == LONG_TAIL.success_start
    assert skills[-1] == pytest.approx(LONG_TAIL.success_end)


def test_a_table_needs_its_two_ends() -> None:
    assert table((0, 1), (1, 2)).problems("x") == []


TRACE = Path(os.environ.get("ROLL_TS_SWE_TURNS", ""))


@pytest.mark.skipif(not TRACE.is_file(), reason="ROLL_TS_SWE_TURNS names no file with the turns of the public trace")
def test_the_swe_preset_has_the_quantiles_of_its_trace() -> None:
    runs: dict[str, list[dict[str, int]]] = defaultdict(list)
    with open(TRACE, newline="") as file:
        for row in csv.DictReader(file):
            runs[row.pop("instance_id")].append({key: int(value) for key, value in row.items()})
    completions, observations = [], []
    for run in runs.values():
        run.sort(key=lambda row: row["turn"])
        completions += [row["completion"] for row in run]
        pairs = pairwise(run)
        observations += [max(0, b["prompt"] - a["prompt"] - a["completion"]) for a, b in pairs]
    measured = {
        "turns": sorted(len(run) for run in runs.values()),
        "prompt_tokens": sorted(run[0]["prompt"] for run in runs.values()),
        "reply_tokens": sorted(completions),
        "observation_tokens": sorted(observations),
    }
    for name, values in measured.items():
        for p in (0.1, 0.5, 0.9, 0.99):
            expected = values[int(p * len(values))]
            assert getattr(SWE, name).at(p) == pytest.approx(expected, rel=0.06, abs=2), f"{name} at {p}"
        points = getattr(SWE, name).points
        mean = sum((q - p) * (u + v) / 2 for (p, u), (q, v) in pairwise(points))
        capped = [min(value, points[-1][1]) for value in values]
        assert mean == pytest.approx(sum(capped) / len(capped), rel=0.05), f"mean of {name}"
