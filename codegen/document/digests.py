"""Digests of what a document says, blind to how a Markdown formatter lays it out.

A digest is the first eight hex digits of a SHA-256 over a JSON list of texts, so that it is the same on every Python
version and machine.
"""

from __future__ import annotations

import hashlib
import json
import textwrap
from collections.abc import Iterable
from functools import lru_cache

from codegen.document.blocks import Block, Html, Item
from codegen.document.model import Fence, Table


def digest(parts: Iterable[str]) -> str:
    """Eight hex digits over the texts and their order."""
    canonical = json.dumps(list(parts), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:8]


@lru_cache(maxsize=50_000)
def normal_code(code: str) -> str:
    """Code without blank lines, trailing blanks and common indentation. Comments count: they hold annotations."""
    lines = [line.rstrip() for line in textwrap.dedent(code).split("\n")]
    return "\n".join(line for line in lines if line)


def normal_block(block: Block) -> list[str]:
    """The texts of a block in a form that a formatter does not change."""
    if isinstance(block, Fence):
        return [block.language, normal_code(block.code)]
    if isinstance(block, Table):
        return [*block.columns, *(cell for row in block.rows for cell in row.cells)]
    if isinstance(block, Item):
        return [block.text, *block.nested]
    if isinstance(block, Html):
        return [" ".join(block.text.split())]
    return [block.text]
