"""Virtual time: in order, deterministic, never backwards."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.sim.clock import Clock


@given(st.lists(st.integers(0, 5), max_size=30))
@settings(deadline=None, derandomize=True)
def test_happenings_come_by_time_and_then_in_the_order_they_were_asked_for(times: list[int]) -> None:
    clock, heard = Clock(), list[tuple[float, int]]()
    for number, time in enumerate(times):
        clock.at(time, lambda number=number: heard.append((clock.now, number)))  # type: ignore[misc]
    while clock.step():
        pass
    assert heard == sorted((float(time), number) for number, time in enumerate(times))


def test_a_cancelled_happening_does_not_happen() -> None:
    clock, heard = Clock(), list[str]()
    clock.at(2.0, lambda: heard.append("kept"))
    clock.cancel(clock.at(1.0, lambda: heard.append("cancelled")))
    assert clock.next_time() == 2.0
    assert clock.step() and not clock.step()
    assert heard == ["kept"]


def test_the_past_happens_now() -> None:
    clock = Clock()
    clock.at(5.0, lambda: None)
    clock.step()
    clock.at(1.0, lambda: None)
    clock.step()
    assert clock.now == 5.0
    with pytest.raises(ValueError, match="nothing can happen in the past"):
        clock.after(-1.0, lambda: None)
