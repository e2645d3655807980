"""The staleness ledger with a real-valued async ratio (R17)."""

from __future__ import annotations

import pytest

from roll_ts.core.staleness import StalenessLedger


def test_R17_the_bound_does_not_lose_a_group_to_rounding():
    assert StalenessLedger(0.1, 10).capacity == 11
    assert StalenessLedger(0.5, 3).capacity == 4
    assert [StalenessLedger(r, 4).allowed for r in (0, 0.1, 1, 1.5)] == [0, 1, 1, 2]


def test_R17_a_sample_is_too_old_one_version_after_the_allowed_staleness():
    ledger = StalenessLedger(1.0, 4)
    assert not ledger.too_old(oldest=2, version=3)
    assert ledger.too_old(oldest=2, version=4)
    assert not ledger.too_old(oldest=-1, version=9)


def test_R17_a_group_over_the_bound_cannot_start():
    ledger = StalenessLedger(0.0, 2)
    ledger.start()
    ledger.start()
    with pytest.raises(ValueError, match="free"):
        ledger.start()
    ledger.trained += 1
    assert ledger.room() == 1
