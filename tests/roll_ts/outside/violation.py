"""A rule that was broken, seen from outside."""

from __future__ import annotations


class Violation(AssertionError):
    """`rule` is the name of the rule in the scheduler's design ("R8"); the message says what was seen."""

    def __init__(self, rule: str, seen: str) -> None:
        super().__init__(rule, seen)  # as given: what a process of a pool raises is made again from these
        self.rule = rule
        self.seen = seen

    def __str__(self) -> str:
        return f"{self.rule}: {self.seen}"
