"""Two branches of a document, merged by its parts."""

from __future__ import annotations

import random

import pytest

from codegen.document.parse import parse_document
from codegen.document.threeway import merged

BASE = """---
id: x
---
# X

## 3. Decisions

### D-1: One

- outcome: one
- drivers: many
- affects: x

### D-2: Two

- outcome: two

## 6. Plan

| Step | Title |
|---|---|
| 1 | first |
"""


def merge(ours: str, theirs: str, base: str = BASE) -> str:
    return merged(*(parse_document(text) for text in (base, ours, theirs)))


@pytest.mark.parametrize(
    ("old", "mine", "other", "both"),
    [
        ("### D-2: Two\n", "### D-3: Mine\n\n### D-2: Two\n", "### D-2: Two\n", "### D-3: Mine\n\n### D-2: Two\n"),
        (
            "| 1 | first |\n",
            "| 1 | first |\n| 2 | a |\n",
            "| 1 | first |\n| 2 | b |\n",
            "| 1 | first |\n| 2 | a |\n| 2 | b |\n",
        ),
        (
            "outcome: one\n- drivers: many",
            "outcome: three\n- drivers: many",
            "outcome: one\n- drivers: few",
            "outcome: three\n- drivers: few",
        ),
        ("outcome: two", "outcome: 2", "outcome: 2", "outcome: 2"),
    ],
    ids=["added by one", "rows of both", "neighbours", "the same"],
)
def test_what_one_branch_changed_and_what_both_added_is_kept(old: str, mine: str, other: str, both: str) -> None:
    assert merge(BASE.replace(old, mine), BASE.replace(old, other)) == BASE.replace(old, both)
    backwards = merge(BASE.replace(old, other), BASE.replace(old, mine))
    assert sorted(backwards.split("\n")) == sorted(BASE.replace(old, both).split("\n"))


def test_a_line_that_both_changed_is_marked() -> None:
    text = merge(BASE.replace("outcome: two", "outcome: 2"), BASE.replace("outcome: two", "outcome: II"))
    assert "<<<<<<< ours\n- outcome: 2\n=======\n- outcome: II\n>>>>>>> theirs\n" in text


def test_what_one_took_out_and_the_other_changed_is_marked_and_what_nobody_else_touched_is_gone() -> None:
    cut = BASE[: BASE.index("### D-2")] + BASE[BASE.index("## 6. Plan") :]
    assert merge(cut, BASE) == merge(BASE, cut) == cut
    text = merge(cut, BASE.replace("outcome: two", "outcome: II"))
    assert "<<<<<<< ours\n=======\n### D-2: Two" in text and "- outcome: II" in text


def test_a_part_that_both_added_under_one_title_with_other_words_is_marked() -> None:
    mine, other = (BASE.replace("## 6. Plan", f"### D-3: New\n\n{word}\n\n## 6. Plan") for word in ("a", "b"))
    assert "<<<<<<< ours\n### D-3: New\n\na\n" in merge(mine, other)


def test_parts_below_a_part_that_one_branch_adds_come_with_it_behind_ours() -> None:
    mine, other = (
        BASE.replace("## 6. Plan", f"### D-3: {name}\n\n#### More\n\n{name}\n\n## 6. Plan") for name in ("Aa", "Bb")
    )
    titles = [line for line in merge(mine, other).split("\n") if line.startswith("#")]
    assert titles[-5:] == ["### D-3: Aa", "#### More", "### D-3: Bb", "#### More", "## 6. Plan"]


def test_any_two_branches_that_change_other_parts_merge_to_both_changes() -> None:
    titles = [f"T{n}" for n in range(6)]
    for seed in range(300):
        rng = random.Random(seed)
        blocks = {title: f"- outcome: {title}\n" for title in titles}
        own: list[dict[str, str | None]] = []
        free = titles[:]
        rng.shuffle(free)
        for side in ("a", "b"):
            changes: dict[str, str | None] = {}
            for _ in range(rng.randint(0, 2)):
                title = free.pop()
                changes[title] = rng.choice((None, f"- outcome: {side}{title}\n"))
            own.append(changes)

        def text(*changes: dict[str, str | None], blocks: dict[str, str] = blocks) -> str:
            found: dict[str, str | None] = dict(blocks)
            for each in changes:
                found |= each
            parts = (f"### D-{n}: {title}\n\n{body}\n" for n, (title, body) in enumerate(found.items()) if body)
            return "".join(("# X\n\n## 3. Decisions\n\n", *parts))

        def plain(words: str) -> list[str]:
            return [line.partition(": ")[2] or line for line in words.split("\n") if line]

        assert plain(merge(text(own[0]), text(own[1]), text())) == plain(text(*own)), seed
