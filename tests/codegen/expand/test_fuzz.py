"""Random insertions into real files; more of them every night."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.expand.comments import read_layout
from codegen.expand.expander import expand_bytes
from codegen.expand.grammar import NotationError, parse_notation
from codegen.expand.model import Options
from codegen.expand.source import Unreadable, read_source
from tests.codegen.expand.fuzz import Tally, fuzz, still_fresh
from tests.codegen.expand.helpers import LIBRARY, MARKS

TAGS = frozenset({"VAL", "AST"})
HEAD = b"def take(x):\n    # VAL: VAL_POSITIVE\n    y = x\n"
BIN = Path(sys.executable).parent
RUFF = [str(BIN / "ruff"), "format", "--isolated", "-q"]
BLACK = [str(BIN / "black"), "-q", "--fast"]


def reformat(tally: Tally, folder: Path, command: Sequence[str], every: int = 1) -> int:
    """Format each `every`-th expanded text and hold it to the promise; returns how many."""
    texts = [(name, text) for name, found in sorted(tally.texts.items()) for text in found][::every]
    paths = []
    for number, (_, text) in enumerate(texts):
        path = folder / f"text_{number}.py"
        path.write_bytes(text)
        paths.append(path)
    subprocess.run([*command, *map(str, paths)], check=False, capture_output=True)
    for (name, _), path in zip(texts, paths, strict=True):
        still_fresh(tally, f"{Path(command[0]).name} {name}", path.read_bytes())
    return len(paths)


@pytest.mark.slow
def test_three_hundred_insertions_into_real_files(tmp_path: Path) -> None:
    tally = fuzz(seed=20, count=300, limit=9_000)
    assert reformat(tally, tmp_path, RUFF) > 150
    print(tally.summary())
    assert not tally.failures, "\n".join(tally.failures)
    assert tally.expanded > 200


@pytest.mark.nightly
@pytest.mark.timeout(2_400)
def test_five_thousand_insertions_into_real_files(tmp_path: Path) -> None:
    tally = fuzz(seed=31, count=5_000, limit=60_000)
    for name, command, every in (("ruff", RUFF, 1), ("black", BLACK, 5)):
        folder = tmp_path / name
        folder.mkdir()
        reformat(tally, folder, command, every)
    print(tally.summary())
    assert not tally.failures, "\n".join(tally.failures)


PIECES = ["VAL_POSITIVE", "AST_INVARIANT", "VAL:", "(", ")", "[", "]", "{", "}", ",", " ", " - ", "=", "x", "'", '"']
NOTATION = st.lists(st.sampled_from(PIECES) | st.characters(codec="utf-8"), max_size=24).map("".join)


BYTES = st.binary(max_size=80) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))


def check_notation(text: str) -> None:
    line = text.replace("\n", " ").replace("\r", " ")
    try:
        parsed = parse_notation("VAL", line, TAGS)
    except NotationError as error:
        assert 0 <= error.offset <= len(line) + 1 and error.fix
    else:
        assert parsed.items and all(item.id and item.tag in TAGS for item in parsed.items)


def check_expansion(data: bytes) -> None:
    report = expand_bytes("a.py", data, LIBRARY, MARKS, Options())
    if report.text is None:
        assert any(finding.severity == "error" for finding in report.findings)
        return
    rows = iter(report.text.splitlines())
    assert all(any(row == other for other in rows) for row in read_source(data).text.splitlines())


def check_reading(data: bytes) -> None:
    try:
        source = read_source(data)
    except Unreadable:
        return
    assert source.encode(source.text) == data
    try:
        read_layout(source.lines)
    except SyntaxError:
        return


@settings(max_examples=300, deadline=None, derandomize=True)
@given(NOTATION)
def test_any_text_after_a_tag_is_an_annotation_or_a_located_error(text: str) -> None:
    check_notation(text)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(BYTES, st.sampled_from([b"", b"    "]))
def test_any_bytes_are_expanded_or_refused_and_never_changed_elsewhere(data: bytes, indent: bytes) -> None:
    check_expansion(HEAD + indent + data)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.binary(max_size=120))
def test_reading_gives_the_same_bytes_back_or_refuses(data: bytes) -> None:
    check_reading(data)


@pytest.mark.nightly
@pytest.mark.timeout(1_800)
def test_ten_minutes_of_hypothesis_find_no_crash_hang_or_byte_change() -> None:
    many = settings(max_examples=20_000, deadline=None, print_blob=True)
    many(given(NOTATION)(check_notation))()
    many(given(st.binary(max_size=200))(check_reading))()
    many(
        given(st.builds(lambda indent, data: HEAD + indent + data, st.sampled_from([b"", b"    "]), BYTES))(
            check_expansion
        )
    )()
