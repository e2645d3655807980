"""Random insertions into real files; more of them every night."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.expand.driver.expansion import expand_bytes, strip_bytes
from codegen.expand.model import Options
from codegen.expand.reading.comments import read_layout
from codegen.expand.reading.grammar import NotationError, parse_notation
from codegen.expand.reading.source import Unreadable, read_source
from tests.codegen.expand.fuzz import JOB, Tally, fuzz, same_names, still_fresh
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
    (tmp_path / "names").mkdir()
    assert same_names(tally, tmp_path / "names") > 150
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
    (tmp_path / "names").mkdir()
    same_names(tally, tmp_path / "names")
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


PAGE = """\
import math  # VAL import


class Box:
    # AST: AST_ENSURES(result > old(self.n))
    def grow(self, by: int, names: list[str]) -> int:  # VAL: VAL_NON_EMPTY(names)
        \"\"\"Grow.\"\"\"
        # VAL: VAL_POSITIVE(by), VAL_INT_RANGE(by,
        #     max=9) - a note that
        #   goes on
        if by:
            # VAL: VAL_FINITE(by)
            return self.n + by
        else:  # VAL: VAL_ONE_OF(by, (0, 1))
            self.n += by
        return self.n


# VAL: VAL_OFF_LOOP
async def wait(rank):
    # VAL: VAL_DEADLINE(30, waiting_for=rank)
    await rank.done()
    for each in rank:  # AST: AST_INVARIANT(each)
        yield each
"""
LINES = [
    "",
    "    # VAL: VAL_POSITIVE(by)",
    "        # END VAL 0a1b2c",
    "    # AST on entry: AST_X",
    "    pass",
    "\tx = 1",
    "        #   goes on",
    "        # - by the way",
    '    """',
    "        return",
    "    # VAL on return: VAL_FINITE(x)",
    "import math  # VAL import",
    "        raise ValueError(",
    "x = 1; y = 2  # VAL: VAL_POSITIVE(x)",
    "\\",
    "\x0c",
]
EDIT = st.tuples(
    st.sampled_from(["drop", "twice", "swap", "put", "indent", "dedent", "cut"]),
    st.integers(0, 80),
    st.integers(0, 80),
    st.sampled_from(LINES),
)


def edited(text: str, edits: list[tuple[str, int, int, str]]) -> str:
    """The text after edits such as people and merges make."""
    lines = text.split("\n")
    for kind, first, second, line in edits:
        a, b = first % len(lines), second % len(lines)
        if kind == "drop":
            del lines[a : a + 1 + second % 3]
        elif kind == "twice":
            lines[b:b] = lines[a : a + 1 + second % 4]
        elif kind == "swap":
            lines[a], lines[b] = lines[b], lines[a]
        elif kind == "put":
            lines.insert(a, line)
        elif kind == "indent":
            lines[a] = f"    {lines[a]}"
        elif kind == "dedent":
            lines[a] = lines[a].removeprefix("    ")
        else:
            lines[a] = lines[a][: second % (len(lines[a]) + 1)]
        lines = lines or [""]
    return "\n".join(lines)


def check_edited(edits: list[tuple[str, int, int, str]], expanded: bool) -> None:
    """An edited file is refused with a reason, or its expansion is proven, holds still and can be taken out again."""
    data = edited(EXPANDED_PAGE if expanded else PAGE, edits).encode()
    outcome = JOB.process("a.py", data)
    codes = [finding.code for finding in outcome.report.findings]
    assert "unproven" not in codes and "pattern-defect" not in codes, outcome.report.findings
    if outcome.report.text is None:
        assert any(finding.severity == "error" for finding in outcome.report.findings)
        return
    new = data if outcome.new is None else outcome.new
    again = JOB.process("a.py", new)
    assert again.new is None and again.report.clean
    base = strip_bytes("a.py", new, MARKS, Options())
    if base.text is None:
        assert all("with a comment in it" in finding.message for finding in base.findings)
        return
    third = JOB.process("a.py", base.text.encode())
    assert not third.report.refused
    last = strip_bytes("a.py", third.new or base.text.encode(), MARKS, Options())
    assert last.text == base.text


EXPANDED_PAGE = (JOB.process("a.py", PAGE.encode()).new or b"").decode()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(EDIT, min_size=1, max_size=5), st.booleans())
def test_a_file_edited_by_people_is_refused_or_expanded_and_proven(
    edits: list[tuple[str, int, int, str]], expanded: bool
) -> None:
    assert EXPANDED_PAGE
    check_edited(edits, expanded)


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
    some = settings(many, max_examples=5_000)
    some(given(st.lists(EDIT, min_size=1, max_size=6), st.booleans())(check_edited))()
    many(
        given(st.builds(lambda indent, data: HEAD + indent + data, st.sampled_from([b"", b"    "]), BYTES))(
            check_expansion
        )
    )()
