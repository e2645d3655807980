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


def test_R37_the_devices_that_keep_the_trainer_waiting_are_counted():
    leases = Leases(train_devices=(0, 1))
    leases.grant(rollout(0), (0, 1, 2))
    assert leases.taken == 2
    leases.grant(rollout(0), (0, 1))
    assert leases.taken == 2
    leases.give_back(rollout(0))
    assert leases.taken == 0 and leases.free((0, 1, 2))
    leases.grant("training", (0, 1))
    assert leases.taken == 0
