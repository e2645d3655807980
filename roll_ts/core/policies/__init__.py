"""The schemes of using devices, as policy objects of one scheduler."""

from __future__ import annotations

from roll_ts.core.policies.base import Decision, Policy, View
from roll_ts.core.policies.colocated import Colocated
from roll_ts.core.policies.disaggregated import Disaggregated
from roll_ts.core.policies.time_sharing import TimeSharing

POLICIES: dict[str, type] = {policy.name: policy for policy in (Colocated, Disaggregated, TimeSharing)}


def make_policy(name: str) -> Policy:
    """The policy called `name`. Raises ValueError naming the choices."""
    # VAL: VAL_KEY_IN(name, mapping=POLICIES)
    if name not in POLICIES:
        raise ValueError(f"make_policy: name must be a key of POLICIES, got {name!r:.200}")
    # END VAL c6c4e3
    policy: Policy = POLICIES[name]()
    return policy


__all__ = ["POLICIES", "Colocated", "Decision", "Disaggregated", "Policy", "TimeSharing", "View", "make_policy"]
