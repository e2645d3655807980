"""Small replies: lists and long texts in pages, long strings cut. A client may refuse what is larger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from codegen.diagnostics import UsageError

ITEMS = 25
CHARACTERS = 8000
LONGEST = 600


def page_of(items: Sequence[Any], page: int) -> dict[str, Any]:
    """One page of a list, counted from 1, with the number of pages and of all items.

    A page has at most ITEMS items, and of more than one item at most CHARACTERS characters of JSON.
    """
    pages: list[list[Any]] = [[]]
    size = 0
    for item in items:
        length = len(json.dumps(item, ensure_ascii=False))
        if pages[-1] and (len(pages[-1]) == ITEMS or size + length > CHARACTERS):
            pages.append([])
            size = 0
        pages[-1].append(item)
        size += length
    _known(page, len(pages))
    return {"total": len(items), "page": page, "pages": len(pages), "items": pages[page - 1]}


def text_page(text: str, page: int) -> dict[str, Any]:
    """One page of a text, cut at line ends where they are near."""
    pieces: list[str] = []
    rest = text
    while len(rest) > CHARACTERS:
        cut = rest.rfind("\n", CHARACTERS // 2, CHARACTERS) + 1 or CHARACTERS
        pieces.append(rest[:cut])
        rest = rest[cut:]
    pieces.append(rest)
    _known(page, len(pieces))
    return {"page": page, "pages": len(pieces), "text": pieces[page - 1]}


def short(text: str) -> str:
    """A string of at most LONGEST characters."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _known(page: int, pages: int) -> None:
    if not 1 <= page <= pages:
        raise UsageError(f"there is no page {page}; give 1 to {pages}")
