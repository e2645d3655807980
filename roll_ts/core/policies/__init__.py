"""The schemes of using devices, as policy objects of one scheduler; a policy of one's own by its import path."""

from __future__ import annotations

import difflib
from importlib import import_module

from roll_ts.core.policies.adaptive import Adaptive
from roll_ts.core.policies.base import Decision, Policy, View
from roll_ts.core.policies.colocated import Colocated
from roll_ts.core.policies.disaggregated import Disaggregated
from roll_ts.core.policies.time_sharing import TimeSharing
from roll_ts.core.settings import Problem, Settings

POLICIES: dict[str, type] = {policy.name: policy for policy in (Colocated, Disaggregated, TimeSharing, Adaptive)}
PARTS = ("name", "sees", "check", "decide")


def make_policy(name: str) -> Policy:
    """The policy called `name`, or a class of one's own by its path, `package.module:Class`, called without arguments.

    Raises ValueError, saying what there is or what is missing.
    """
    if ":" not in name:
        # VAL: VAL_KEY_IN(name, mapping=POLICIES) - yours are named package.module:Class
        if name not in POLICIES:
            raise ValueError(
                f"make_policy: name must be a key of POLICIES, got {name!r:.200} - yours are named package.module:Class"
            )
        # END VAL 39e0a8
        policy: Policy = POLICIES[name]()
        return policy
    module, _, attribute = name.partition(":")
    try:
        policy = getattr(import_module(module), attribute)()
    except (ImportError, AttributeError, TypeError) as error:
        raise ValueError(  # unmanaged: says how it is found
            f"{name} cannot be made: {error}; install its package or put its folder on PYTHONPATH"
        ) from error
    lacks = [part for part in PARTS if not hasattr(policy, part)]
    # VAL: VAL_EMPTY(lacks, about=name) - a policy has a name, sees, check and decide
    if len(lacks) != 0:
        raise ValueError(
            f"make_policy: lacks must be empty, got {lacks!r:.200} (name={name!r:.200}) - a policy has "
            "a name, sees, check and decide"
        )
    # END VAL a1e4d1
    return policy


def policy_problems(name: str, settings: Settings) -> list[Problem]:
    """What is wrong with the policy's name, or with `settings` under it."""
    if ":" not in name and name not in POLICIES:
        near = difflib.get_close_matches(name, POLICIES, 1)
        others = f"use {', '.join(POLICIES)}, or yours as package.module:Class"
        return [Problem("policy", name, "is no policy", f"did you mean {near[0]!r}?" if near else others)]
    try:
        policy = make_policy(name)
    except ValueError as error:
        return [Problem("policy", name, str(error), "name a class that can be made without arguments")]
    return policy.check(settings)


__all__ = [
    "POLICIES",
    "Adaptive",
    "Colocated",
    "Decision",
    "Disaggregated",
    "Policy",
    "TimeSharing",
    "View",
    "make_policy",
    "policy_problems",
]
