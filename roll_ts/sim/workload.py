"""What trajectories are made of: number of turns, tokens and waits, drawn from quantile tables.

Invariant: the content of a trajectory depends on (workload seed, kind, group, member) and on nothing else, so
every policy plays the same work, and a replaced member plays the same episode again.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
import random
from dataclasses import dataclass

from roll_ts.core.settings import Problem


@dataclass(frozen=True)
class Quantiles:
    """A distribution as (probability, value) points, linear between them. Probabilities rise from 0 to 1."""

    points: tuple[tuple[float, float], ...]

    def at(self, probability: float) -> float:
        """The value at `probability` in [0, 1]."""
        probabilities = [p for p, _ in self.points]
        right = min(bisect.bisect_right(probabilities, probability), len(self.points) - 1)
        if right == 0:
            return self.points[0][1]
        (p0, v0), (p1, v1) = self.points[right - 1], self.points[right]
        return v0 + (v1 - v0) * (probability - p0) / (p1 - p0)

    def scaled(self, factor: float) -> Quantiles:
        """The distribution of `factor` times the value."""
        return Quantiles(tuple((p, v * factor) for p, v in self.points))

    def problems(self, key: str) -> list[Problem]:
        """What makes the table no distribution of a non-negative number; empty if it is one."""
        probabilities = [p for p, _ in self.points]
        values = [v for _, v in self.points]
        if len(self.points) < 2 or probabilities[0] != 0 or probabilities[-1] != 1:
            return [Problem(key, str(probabilities), "must span the probabilities 0 to 1", "add the points 0 and 1")]
        if any(a >= b for a, b in itertools.pairwise(probabilities)):
            return [Problem(key, str(probabilities), "probabilities must rise", "sort the points and drop doubles")]
        if values != sorted(values) or values[0] < 0:
            return [Problem(key, str(values), "values must not fall or be negative", "sort the values, lowest first")]
        return []


def table(*points: tuple[float, float]) -> Quantiles:
    """A quantile table from its points."""
    return Quantiles(tuple(points))


def constant(value: float) -> Quantiles:
    """The distribution of one value."""
    return Quantiles(((0.0, value), (1.0, value)))


@dataclass(frozen=True)
class Episode:
    """The content of one trajectory. `replies[i]`, `observations[i]` and `waits[i]` belong to turn i + 1;
    `reset_wait` and `prompt_tokens` to its start. `luck` in [0, 1) decides success: the policy must be at least
    this good."""

    prompt_tokens: int
    reset_wait: float
    replies: tuple[int, ...]
    observations: tuple[int, ...]
    waits: tuple[float, ...]
    luck: float

    @property
    def turns(self) -> int:
        """Number of turns until the environment says done."""
        return len(self.replies)


@dataclass(frozen=True)
class Workload:
    """Distributions of an episode. Tokens and turns are rounded, at least 1 (observations: 0); waits in
    seconds.

    An episode succeeds when its luck is under `skill(v)` for the weight version v of its last turn,
    `success_start + (success_end − success_start) · (1 − exp(−v / success_versions))`: a stand-in for learning,
    so that curves have something to show.
    """

    turns: Quantiles
    prompt_tokens: Quantiles
    reply_tokens: Quantiles
    observation_tokens: Quantiles
    wait_seconds: Quantiles
    reset_seconds: Quantiles
    success_start: float = 0.3
    success_end: float = 0.8
    success_versions: float = 8.0
    seed: int = 0

    def episode(self, kind: str, group: int, member: int) -> Episode:
        """The content of one trajectory."""
        draw = random.Random(f"{self.seed}/{kind}/{group}/{member}").random
        turns = max(1, round(self.turns.at(draw())))
        luck = draw()
        prompt = max(1, round(self.prompt_tokens.at(draw())))
        reset = self.reset_seconds.at(draw())
        return Episode(
            prompt,
            reset,
            tuple(max(1, round(self.reply_tokens.at(draw()))) for _ in range(turns)),
            tuple(max(0, round(self.observation_tokens.at(draw()))) for _ in range(turns)),
            tuple(self.wait_seconds.at(draw()) for _ in range(turns)),
            luck,
        )

    def skill(self, version: int) -> float:
        """Probability of success under weight `version`."""
        learned = 1.0 - math.exp(-max(version, 0) / self.success_versions)
        return self.success_start + (self.success_end - self.success_start) * learned

    def scaled(self, turns: float = 1.0, tokens: float = 1.0, waits: float = 1.0) -> Workload:
        """The workload with turns, tokens per turn (not the prompt) and waits multiplied."""
        return dataclasses.replace(
            self,
            turns=self.turns.scaled(turns),
            reply_tokens=self.reply_tokens.scaled(tokens),
            observation_tokens=self.observation_tokens.scaled(tokens),
            wait_seconds=self.wait_seconds.scaled(waits),
            reset_seconds=self.reset_seconds.scaled(waits),
        )

    def problems(self, prefix: str = "workload") -> list[Problem]:
        """All bad values; empty if there are none."""
        found: list[Problem] = []
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            if isinstance(value, Quantiles):
                found += value.problems(f"{prefix}.{spec.name}")
        for name in ("success_start", "success_end"):
            if not 0 <= getattr(self, name) <= 1:
                found.append(Problem(f"{prefix}.{name}", repr(getattr(self, name)), "is no probability", "use 0 to 1"))
        if not self.success_versions > 0:
            found.append(
                Problem(
                    f"{prefix}.success_versions",
                    repr(self.success_versions),
                    "must be positive",
                    "use 1 or more",
                )
            )
        return found


SWE = Workload(
    turns=table(
        (0, 13), (0.05, 20), (0.1, 22), (0.25, 27), (0.5, 36), (0.75, 46), (0.85, 56), (0.9, 66), (0.95, 83),
        (0.99, 115), (1, 145),
    ),
    prompt_tokens=table(
        (0, 1317), (0.1, 1394), (0.25, 1482), (0.5, 1647), (0.75, 1963), (0.9, 2376), (0.95, 2932), (0.99, 4574),
        (0.997, 4823), (1, 10427),
    ),
    reply_tokens=table(
        (0, 1), (0.02, 21), (0.1, 27), (0.25, 43), (0.5, 89), (0.6, 138), (0.7, 220), (0.8, 372), (0.9, 681),
        (0.95, 1038), (0.98, 1703), (0.99, 2425), (0.998, 4644), (1, 8192),
    ),
    observation_tokens=table(
        (0, 0), (0.05, 0), (0.1, 17), (0.25, 19), (0.5, 91), (0.7, 227), (0.8, 365), (0.85, 504), (0.9, 757),
        (0.925, 918), (0.95, 1395), (0.97, 2494), (0.99, 3416), (0.999, 4270), (1, 14847),
    ),
    wait_seconds=table(
        (0, 0), (0.08, 0), (0.25, 0.75), (0.5, 1.3), (0.75, 2.9), (0.85, 4.3), (0.9, 6.0), (0.95, 10.3), (0.98, 18.3),
        (0.99, 30.1), (0.998, 52.3), (1, 73.9),
    ),
    reset_seconds=table((0, 2.0), (0.5, 5.0), (0.9, 12.0), (1, 30.0)),
)  # fmt: skip
"""Software-engineering agent: quantiles fitted to 20,163 turns of 500 SWE-bench-Verified runs in the public
repository gruckion/mini-swe-agent (MIT), commit d12a71af, folder swebench_results/20251118_gemini-3-pro-74pct.
Turns, first prompt and completion are read directly (completions are capped at 8,192 tokens here); an
observation is the growth of the prompt less the completion; the wait is the wall time of a step less a
generation model of 1.5 s + tokens ÷ 110 per second (whole seconds in the source, so rough). Resets are not in
the source: assumed seconds of a warm sandbox."""

FROZEN_LAKE = Workload(
    turns=table((0, 1), (0.3, 2), (0.6, 4), (0.85, 6), (1, 8)),
    prompt_tokens=constant(60),
    reply_tokens=table((0, 1), (0.2, 4), (0.7, 20), (1, 24)),
    observation_tokens=constant(30),
    wait_seconds=table((0, 0.001), (1, 0.01)),
    reset_seconds=table((0, 0.001), (1, 0.01)),
    success_start=0.2,
)
"""The demo game: short replies, hardly any wait. Round figures of its rules, not measured."""

LONG_TAIL = Workload(
    turns=table((0, 2), (0.5, 4), (0.8, 7), (0.92, 14), (1, 30)),
    prompt_tokens=table((0, 600), (1, 1400)),
    reply_tokens=table((0, 60), (0.5, 260), (0.9, 700), (1, 2000)),
    observation_tokens=table((0, 20), (0.5, 120), (0.9, 600), (1, 1500)),
    wait_seconds=table((0, 0.2), (0.5, 1.0), (0.9, 4.0), (1, 12.0)),
    reset_seconds=table((0, 0.5), (1, 3.0)),
)
"""A small illustration of the long tail: most episodes end in a few turns, one in twelve needs many.
Invented."""

PRESETS: dict[str, Workload] = {"swe": SWE, "frozen_lake": FROZEN_LAKE, "long_tail": LONG_TAIL}
"""Named workloads, for configuration files."""
