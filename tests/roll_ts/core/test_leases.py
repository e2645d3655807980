"""Leases: one compute holder per device, one sync window at a time (R2)."""

from __future__ import annotations

import pytest

from roll_ts.core.errors import IllegalTransition
from roll_ts.core.leases import Leases, rollout


def test_R2_a_device_has_one_holder_and_passes_only_when_given_back():
    leases = Leases()
    leases.grant(rollout(0), (0, 1))
    with pytest.raises(IllegalTransition):
        leases.grant("training", (1, 2))
    assert leases.held_by(2) is None
    assert leases.give_back(rollout(0)) == (0, 1)
    leases.grant("training", (1, 2))


def test_R2_one_sync_window_at_a_time_and_within_its_budget():
    leases = Leases(window_bytes=100)
    leases.open_window(1, 60)
    with pytest.raises(IllegalTransition):
        leases.open_window(2, 10)
    leases.close_window()
    with pytest.raises(ValueError, match="101"):
        leases.open_window(2, 101)
