"""Policies: pure answers, and layouts that they refuse (R29, R31)."""

from __future__ import annotations

import pytest

from roll_ts.core.policies import make_policy
from roll_ts.core.policies.base import View
from tests.roll_ts.core.layouts import LAYOUTS, settings_for

POLICIES = sorted(LAYOUTS)


@pytest.mark.parametrize("policy", POLICIES)
def test_R31_a_layout_that_does_not_fit_the_policy_is_refused(policy):
    for other in POLICIES:
        problems = make_policy(policy).check(settings_for(other))
        assert bool(problems) == (LAYOUTS[policy] != LAYOUTS[other]), (policy, other)


def view(**changes: object) -> View:
    fields: dict = dict(
        now=0.0,
        version=1,
        complete=(3, 1, 0, 2),
        groups_needed=4,
        unsettled=3,
        running=2,
        queued=1,
        lendable=(0, 1),
        keepable=(2,),
    )
    return View(**{**fields, **changes})


def test_colocated_waits_for_the_last_sample_and_lends_every_rank():
    policy = make_policy("colocated")
    assert not policy.decide(view()).train
    assert policy.decide(view(unsettled=0)).lend == (0, 1)


def test_disaggregated_lends_nothing():
    assert make_policy("disaggregated").decide(view()).train
    assert make_policy("disaggregated").decide(view()).lend == ()


def test_time_sharing_trains_at_a_complete_batch_while_the_tail_goes_on():
    policy = make_policy("time_sharing")
    assert policy.decide(view()).lend == (0, 1)
    assert not policy.decide(view(complete=(3, 1, 0))).train


def test_R4_time_sharing_with_no_rank_to_keep_waits_until_nothing_is_in_flight():
    policy = make_policy("time_sharing")
    assert not policy.decide(view(keepable=())).train
    assert policy.decide(view(keepable=(), unsettled=0)).train


def test_an_unknown_policy_is_refused_with_the_choices():
    with pytest.raises(ValueError, match="round_robin"):
        make_policy("round_robin")
