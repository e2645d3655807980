"""Decisions: the level-3 headings `D-n: Title` of Section 3."""

from __future__ import annotations

import re
from itertools import chain

from codegen.document.digests import digest, normal_block
from codegen.document.model import Decision
from codegen.document.outline import Outline, read_fields

HEADING = re.compile(r"(D-\d+)\s*(?:[:.—–-]\s*(.*))?$")
FIELDS = ("status", "drivers", "options", "outcome", "consequences", "affects", "confirmation")


def read_decisions(outline: Outline) -> tuple[Decision, ...]:
    """The decisions in order. A digest leaves out `affects:`, which lists who follows and not what was decided."""
    found: list[Decision] = []
    for heading in outline.below(outline.chapter(3)):
        match = HEADING.match(heading.text)
        if not match:
            continue
        blocks = outline.body(heading)
        fields = read_fields(blocks)
        affects = fields["affects"].line if "affects" in fields else 0
        sealed = [normal_block(block) for block in [heading, *blocks] if block.line != affects]
        title = (match.group(2) or "").strip()
        seal = digest(chain.from_iterable(sealed))
        found.append(Decision(match.group(1), title, fields, heading.line, outline.end(heading), seal))
    return tuple(found)
