from __future__ import annotations

from pathlib import Path

from codegen.expand.judging.unmanaged import find_unmanaged
from tests.codegen.expand.helpers import dedent, expand

GUARDED = dedent("""
    def take(count):
        if count < 0:
            raise ValueError(count)
        for item in range(count):
            if item > 7:
                text = f"{item} is too big"
                raise ValueError(text)
        assert count, "nothing"
        return count
""")


def lines_of(text: str, severity: str = "error") -> list[int]:
    return [finding.line for finding in find_unmanaged(text) if finding.severity == severity]


def test_guards_and_asserts_are_listed_with_their_lines() -> None:
    assert lines_of(GUARDED) == [2, 5, 8]


def test_generated_blocks_are_not_listed() -> None:
    text = expand(
        "def take(count: int):\n    # VAL: VAL_POSITIVE\n    # AST: AST_PRECONDITION(count < 9)\n    return count\n"
    )
    assert "raise" in text and "assert" in text
    assert find_unmanaged(text) == []


def test_a_reason_turns_the_error_into_a_note() -> None:
    text = GUARDED.replace("if count < 0:", "if count < 0:  # unmanaged: part of the wire format")
    text = text.replace("    assert", "    # unmanaged: for the reader\n    # of this file\n    assert")
    assert lines_of(text) == [5]
    notes = [finding.message for finding in find_unmanaged(text) if finding.severity == "note"]
    assert notes == ["hand-written check: if count < 0: raise; part of the wire format",
                     "hand-written check: assert count; for the reader"]  # fmt: skip


def test_a_check_that_raises_in_its_else_is_listed() -> None:
    text = "def f(x):\n    if x > 0:\n        pass\n    else:\n        raise ValueError(x)\n    return x\n"
    assert [f.message for f in find_unmanaged(text)] == ["hand-written check: if not (x > 0): raise"]


def test_an_exception_without_a_reason_stays_an_error() -> None:
    text = GUARDED.replace("if count < 0:", "if count < 0:  # unmanaged")
    assert next(f.message for f in find_unmanaged(text)) == "an exception without a reason: if count < 0: raise"


def test_control_flow_is_not_validation() -> None:
    text = dedent("""
        def read(path, kind):
            try:
                return open(path)
            except OSError as error:
                if error.errno != 2:
                    raise
                raise LookupError(path) from error
            if kind == "a":
                return 1
            else:
                raise TypeError(kind)
    """)
    assert find_unmanaged(text) == []


def test_a_file_is_named_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("assert True\n")
    assert [finding.path for finding in find_unmanaged(path)] == [str(path)]
    path.write_text("assert (\n")
    assert [finding.code for finding in find_unmanaged(path)] == ["syntax"]
