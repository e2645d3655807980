"""A small layout for each policy, and settings that fit it."""

from __future__ import annotations

from roll_ts.core.settings import Layout, Settings

LAYOUTS = {
    "colocated": Layout(((0,), (1,), (2,), (3,)), (0, 1, 2, 3)),
    "disaggregated": Layout(((2,), (3,)), (0, 1)),
    "time_sharing": Layout(((0,), (1,), (2,), (3,)), (0, 1)),
    "adaptive": Layout(((0,), (1,), (2,), (3,)), (0, 1)),
}


def settings_for(policy: str, **changes: object) -> Settings:
    """Small settings that fit the policy; `changes` replace fields."""
    fields: dict = dict(
        layout=LAYOUTS[policy],
        groups_per_batch=4,
        group_size=2,
        async_ratio=0.0 if policy == "colocated" else 1.0,
        max_turns=6,
        max_reply_tokens=24,
        max_context_tokens=400,
        max_running_per_rank=8,
    )
    return Settings(**{**fields, **changes})
