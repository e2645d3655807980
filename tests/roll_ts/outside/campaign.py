"""Many histories at once: what they met, and the first violation as a small scenario that plays again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.roll_ts.outside.coverage import Coverage
from tests.roll_ts.outside.scenario import Scenario
from tests.roll_ts.outside.shrink import shrink
from tests.roll_ts.outside.violation import Violation
from tests.roll_ts.outside.world import World


@dataclass
class Result:
    """What a campaign has met. `failed`: the shrunk scenario of the first violation, and the violation."""

    coverage: Coverage = field(default_factory=Coverage)
    failed: tuple[Scenario, Violation] | None = None

    def report(self) -> str:
        """For the person who reads a red test: what was broken, and the file that plays it again."""
        if self.failed is None:
            return f"{self.coverage.events} events, no violation"
        scenario, violation = self.failed
        return (
            f"{violation}\n\nSave this as history.json and play it: python -m tests.roll_ts.outside history.json\n"
            f"{scenario.to_json()}"
        )


def play(scenario: Scenario, coverage: Coverage | None = None, twin: bool = True) -> World:
    """One history; with `twin` it is fed to a second scheduler without what must not matter. Raises Violation."""
    world = World(scenario, coverage if coverage is not None else Coverage())
    world.run()
    if twin:
        world.replayed()
    return world


def campaign(scenarios: Iterable[Scenario], events: int, twin_every: int = 4) -> Result:
    """Play scenarios until `events` were handled or one is violated; that one is made small."""
    result = Result()
    for number, scenario in enumerate(scenarios):
        if result.coverage.events >= events:
            break
        try:
            play(scenario, result.coverage, twin=number % twin_every == 0)
        except Violation as violation:
            result.failed = shrink(scenario, violation)
            break
    return result
