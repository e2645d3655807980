"""A rule that was broken, seen from outside."""

from __future__ import annotations


class Violation(AssertionError):
    """`rule` is the name of the rule in the scheduler's design ("R8"); the message says what was seen."""

    def __init__(self, rule: str, seen: str) -> None:
        super().__init__(f"{rule}: {seen}")
        self.rule = rule
        self.seen = seen
