"""Settings: all problems are told at once, and a rank is never cut (R5, R31)."""

from __future__ import annotations

from roll_ts.core.settings import Layout, check_layout, check_settings
from tests.roll_ts.core.layouts import settings_for


def test_R5_a_layout_that_cuts_a_rank_is_refused_at_configuration_time():
    problems = check_layout(Layout(ranks=((0, 1), (2, 3)), train_devices=(0, 1, 2)))
    assert [problem.key for problem in problems] == ["layout.train_devices"]
    assert "rank 1" in problems[0].wrong


def test_R31_all_configuration_errors_are_told_at_once():
    bad = settings_for(
        "time_sharing",
        groups_per_batch=0,
        group_size=1,
        async_ratio=-1.0,
        max_reply_tokens=500,
        layout=Layout(((0,), (0,)), ()),
    )
    keys = {problem.key for problem in check_settings(bad)}
    assert keys >= {"groups_per_batch", "group_size", "async_ratio", "max_reply_tokens", "layout.train_devices"}
    assert all(problem.fix for problem in check_settings(bad))
