"""A planned block: what is where after a fresh expansion."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from codegen.expand.reading.blocks import Shape
from codegen.expand.reading.marks import Opener

HOLE_NAME = "_hole_"
MAX_INLINE_LINES = 10
GUARD_LINES = 6


@dataclass(frozen=True)
class Planned:
    """A block that a fresh expansion has. Lines are those of the base text.

    `key` finds its counterpart in the file: ("own", annotation line) or (place, line above). `rank` orders blocks
    below the same line. `code` is at zero indentation with "\\n" endings; in a block with a hole the name `_hole_`
    means the author's code, `statement`, whose lines the block replaces. `openers` are the opening lines of a
    remote site, without indentation. `following` are the statements below the site in its suite. `origin` as in
    SiteReport.
    """

    key: tuple[str, int]
    tag: str
    after: int
    indent: str
    unit: str
    code: str
    form: str
    annotations: tuple[Opener, ...]
    patterns: tuple[str, ...]
    openers: tuple[str, ...] = ()
    rank: int = 0
    shape: Shape = "plain"
    statement: ast.stmt | None = None
    origin: tuple[str, str] = ("", "")
    following: tuple[ast.stmt, ...] = ()

    @property
    def line(self) -> int:
        """Base line of the annotation that asks for the block."""
        return self.annotations[0].line
