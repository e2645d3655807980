"""Which hand-written checks of a text are gone from its next version, whatever way they are written there.

A check is kept where the next version makes it in other words, as a generated block, or in one condition with others:
its normal form (see `forms`) is what counts. A block that stood there before keeps nothing that was written beside it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from codegen.expand.judging.adopt import unordered_at
from codegen.expand.judging.forms import forms_of, measured
from codegen.expand.judging.unmanaged import TAGS, managed_blocks, written_by_hand
from codegen.expand.reading.parsing import parse_python

Key = tuple[str, str, str]
"""Kind, error and normal form of one condition; the text of a check that has no normal form."""


@dataclass(frozen=True)
class Lost:
    """A check that is gone: its line in the old text, and what it was."""

    line: int
    shown: str


def lost_checks(old: str, new: str, own: Iterable[range] = (), tags: Iterable[str] = TAGS) -> list[Lost]:
    """The hand-written checks of `old` outside the lines `own` that `new` does not make.

    Raises SyntaxError for a text that is no Python, Unreadable for one that cannot be read.
    """
    spans = list(own)
    before, after = _Text(old, tags), _Text(new, tags)
    containers = measured(before.tree.body) | measured(after.tree.body)
    there = Counter(key for keys, _, _ in after.all(containers) for key in keys)
    there -= Counter(key for keys in before.generated(containers) for key in keys)
    lost: list[Lost] = []
    for keys, line, shown in before.by_hand(containers):
        if any(line in span for span in spans):
            continue
        missing = Counter(keys) - there
        there -= Counter(keys)
        if missing:
            lost.append(Lost(line, shown))
    return lost


class _Text:
    """The checks of one text."""

    def __init__(self, text: str, tags: Iterable[str]) -> None:
        self.text = text
        self.tree = parse_python(text)
        self.blocks = managed_blocks(self.tree, text, tags)
        self.managed = {line for _, lines in self.blocks for line in lines}

    def all(self, containers: frozenset[str]) -> Iterator[tuple[list[Key], int, str]]:
        for keys in self.generated(containers):
            yield keys, 0, ""
        yield from self.by_hand(containers)

    def generated(self, containers: frozenset[str]) -> Iterator[list[Key]]:
        """The conditions of each block, without the author's return in it."""
        for statements, _ in self.blocks:
            checks = [s for s in statements if not isinstance(s, ast.Return)]
            unordered = unordered_at(checks[0], self.tree) if checks else frozenset()
            yield [(form.kind, form.error, form.failing) for form in forms_of(checks, unordered, containers)]

    def by_hand(self, containers: frozenset[str]) -> Iterator[tuple[list[Key], int, str]]:
        """Conditions, line and text of each check outside the blocks; a loop of nothing but checks is one check."""
        done: set[int] = set()
        for loop in ast.walk(self.tree):
            if isinstance(loop, ast.For) and loop.lineno not in self.managed and loop.lineno not in done:
                forms = forms_of([loop], unordered_at(loop, self.tree), containers)
                if forms:
                    done.update(node.lineno for node in ast.walk(loop) if isinstance(node, ast.stmt))
                    keys = [(form.kind, form.error, form.failing) for form in forms]
                    yield (
                        keys,
                        loop.lineno,
                        f"for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)}: {_shown(loop)}",
                    )
        for statement, shown in written_by_hand(self.tree, self.text):
            if statement.lineno not in self.managed and statement.lineno not in done:
                alone = _alone(statement)
                forms = forms_of([alone], unordered_at(statement, self.tree), containers)
                yield [(f.kind, f.error, f.failing) for f in forms] or [("", "", shown)], statement.lineno, shown


def _alone(statement: ast.If | ast.Assert) -> ast.stmt:
    """The check without an `elif` or an `else` of its own, which is another matter than the check."""
    if isinstance(statement, ast.If) and not isinstance(statement.body[0], ast.Pass):
        return ast.If(statement.test, statement.body, [])
    return statement


def _shown(loop: ast.For) -> str:
    checks = [n for n in ast.walk(loop) if isinstance(n, ast.If | ast.Assert)]
    return "; ".join(
        f"if {ast.unparse(n.test)}: raise" if isinstance(n, ast.If) else f"assert {ast.unparse(n.test)}" for n in checks
    )
