"""Bytes outside generated blocks never change; what cannot be kept is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codegen.expand.driver.expansion import expand_bytes, strip_bytes
from codegen.expand.model import Options
from codegen.expand.reading.source import read_source
from codegen.expand.writing.replace import NotWritten, replace_file
from tests.codegen.expand.helpers import LIBRARY, MARKS, dedent, expand, report, strip

TEXT = "def take(x: int) -> int:\n    # VAL: VAL_POSITIVE\n    # AST: AST_ENSURES(result > 0)\n    return x + 1\n"


def both_ways(data: bytes) -> bytes:
    """Expand bytes; check that a second pass is idle and that stripping gives the bytes back."""
    done = expand_bytes("a.py", data, LIBRARY, MARKS, Options())
    assert done.text is not None, done.findings
    expanded = read_source(data).encode(done.text)
    again = expand_bytes("a.py", expanded, LIBRARY, MARKS, Options())
    assert again.clean and not again.changed
    stripped = strip_bytes("a.py", expanded, MARKS, Options())
    assert stripped.text is not None
    assert read_source(expanded).encode(stripped.text) == data
    return expanded


def refused(data: bytes) -> str:
    done = expand_bytes("a.py", data, LIBRARY, MARKS, Options())
    assert done.text is None and done.refused
    return done.findings[0].message


def test_01_a_val_check_survives_python_o_and_an_assert_does_not() -> None:
    code = expand(TEXT) + "try:\n    take(0)\nexcept ValueError as error:\n    print(error)\nprint(__debug__)\n"
    code += "# AST: AST_PRECONDITION(1 > 2)\n"
    out = subprocess.run([sys.executable, "-O", "-c", expand(code)], capture_output=True, text=True, check=True)
    assert out.stdout == "take: x must be positive, got 0\nFalse\n"


def test_01_claims_can_be_rendered_as_raise() -> None:
    assert "assert" not in expand(TEXT, ast_mode="raise") and "raise AssertionError(" in expand(TEXT, ast_mode="raise")


def test_02_odd_blanks_that_a_concrete_tree_would_drop_are_kept() -> None:
    both_ways(
        b"try:\n    x = 1\nexcept ValueError :\n    # VAL: VAL_POSITIVE(x)\n    pass\nexcept  KeyError  :\n    z ( )\n"
    )


def test_03_windows_newlines() -> None:
    expanded = both_ways(TEXT.replace("\n", "\r\n").encode())
    assert expanded.count(b"\r\n") == expanded.count(b"\n")


def test_03_mixed_newlines_follow_the_line_above() -> None:
    data = b"def take(x: int):\r\n    # VAL: VAL_POSITIVE\r\n    y = x\n    # VAL: VAL_POSITIVE(y)\n    return y\r\n"
    expanded = both_ways(data)
    assert b"    if not x > 0:\r\n" in expanded and b"    if not y > 0:\n" in expanded


def test_03_a_lone_carriage_return_is_refused() -> None:
    assert "carriage return" in refused(TEXT.replace("\n", "\r").encode())


def test_04_byte_order_mark_and_encodings() -> None:
    both_ways(b"\xef\xbb\xbf" + TEXT.encode())
    both_ways("# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1") + TEXT.encode())
    both_ways("# coding: gbk\nname = '中文'\n".encode("gbk") + TEXT.encode())
    both_ways(b"# coding: utf-8-sig\n" + TEXT.encode())


def test_04_bytes_that_are_not_the_declared_encoding_are_refused() -> None:
    assert "0xff is not utf-8" in refused(b"# \xff\n" + TEXT.encode())
    assert "unknown encoding" in refused(b"# coding: no-such\n" + TEXT.encode())


def test_04_a_character_that_the_encoding_lacks_is_refused() -> None:
    text = "# coding: latin-1\ndef take(x):\n    # VAL: VAL_MATCHES(x, '\\u4e2d')\n    return x\n"
    assert "cannot be written in this file's encoding" in refused(text.encode("latin-1"))


def test_05_tabs_and_each_blocks_own_unit() -> None:
    text = "def take(x: list[int]):\n\t# VAL: VAL_POSITIVE\n\treturn x\n\n\n"
    text += "def two(x: list[int]):\n  # VAL: VAL_POSITIVE\n  return x\n"
    expanded = both_ways(text.encode()).decode()
    assert "\n\tfor _x in x:\n\t\tif not" in expanded.replace("_item", "_x")
    assert "\n  for _x in x:\n    if not" in expanded.replace("_item", "_x")


def test_26_stubs_overloads_and_empty_bodies_are_skipped_with_a_warning() -> None:
    done = report(TEXT, path="a.pyi")
    assert done.text == TEXT and [finding.code for finding in done.findings] == ["stub", "stub"]
    text = dedent("""
        # VAL: VAL_POSITIVE
        @overload
        def take(x: int) -> int:
            return x


        class Taker(Protocol):
            # VAL: VAL_POSITIVE
            def take(self, x: int) -> int: ...

            # VAL: VAL_POSITIVE
            @abstractmethod
            def give(self, x: int) -> int:
                ...
    """)
    done = report(text)
    assert {finding.code for finding in done.findings} <= {"stub", "no-place"}
    assert not [site for site in done.sites if site.state.value == "UNEXPANDED"]


@pytest.mark.parametrize(
    "text",
    [
        "match x:\n    case [a, *b]:\n        # VAL: VAL_POSITIVE(a)\n        pass\n    case 2:\n        1\n",
        "try:\n    x()\nexcept* ValueError as group:\n    # VAL: VAL_NON_EMPTY(group.exceptions)\n    pass\n",
        "with (open(x) as f, open(y) as g):\n    # VAL: VAL_LOCK_HELD(f)\n    pass\n",
        "def take(a, /, *, b: int = 3):  # VAL: VAL_POSITIVE(b)\n    return a\n",
        "# VAL: VAL_POSITIVE\nasync def take(x):\n    async for y in x:\n        yield y\n",
    ],
)
def test_27_newer_syntax(text: str) -> None:
    both_ways(text.encode())


def test_27_syntax_newer_than_this_python_is_reported_not_guessed() -> None:
    if sys.version_info >= (3, 12):
        pytest.skip("this Python reads it")
    done = report("type X = int\n\n\ndef take(x):\n    # VAL: VAL_POSITIVE\n    return x\n")
    assert [finding.code for finding in done.findings] == ["syntax"] and done.text is None


def test_28_deep_expressions_do_not_stop_the_expander() -> None:
    both_ways(f"total = {' + '.join(['1'] * 900)}\n{TEXT}".encode())


def test_28_what_is_too_deep_for_python_is_reported() -> None:
    assert "not Python" in refused(f"total = {'(' * 500}1{')' * 500}\n{TEXT}".encode())


def test_32_form_feeds_empty_files_and_missing_newlines() -> None:
    both_ways(b"x = 1\n\x0c\n" + TEXT.encode())
    both_ways(b"\x0cdef take(x):\n    # VAL: VAL_POSITIVE\n    return x")
    assert expand("") == ""
    both_ways(TEXT.rstrip("\n").encode())


def test_32_separators_that_are_not_line_ends_for_python() -> None:
    both_ways("x = '\u2028 \x85 \x1c'\n".encode() + TEXT.encode())


def test_32_nul_python_2_and_notebooks_are_refused() -> None:
    assert "NUL" in refused(b"x = '\0'\n" + TEXT.encode())
    assert "not Python" in refused(b"print 'x'\n" + TEXT.encode())
    assert "not Python" in refused(b"%matplotlib inline\n" + TEXT.encode())
    conflict = "<<<<<<< ours\nx = 1\n=======\nx = 2\n>>>>>>> theirs\n"
    assert "not Python" in refused(conflict.encode() + TEXT.encode())


def test_32_identifiers_are_compared_as_python_compares_them() -> None:
    text = "def take(ﬁeld, other):\n    # VAL: VAL_POSITIVE(field)\n    return ﬁeld\n"
    both_ways(text.encode())


def test_32_links_stay_links_and_modes_stay(tmp_path: Path) -> None:
    target, link = tmp_path / "real.py", tmp_path / "link.py"
    target.write_bytes(b"old")
    target.chmod(0o751)
    link.symlink_to(target)
    replace_file(str(link), b"old", b"new")
    assert link.is_symlink() and target.read_bytes() == b"new" and target.stat().st_mode & 0o777 == 0o751
    assert sorted(os.listdir(tmp_path)) == ["link.py", "real.py"]


def test_32_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"theirs")
    with pytest.raises(NotWritten, match="changed while"):
        replace_file(str(path), b"old", b"new")
    assert path.read_bytes() == b"theirs" and os.listdir(tmp_path) == ["a.py"]


def test_32_a_file_with_two_names_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    os.link(path, tmp_path / "b.py")
    with pytest.raises(NotWritten, match="2 names"):
        replace_file(str(path), b"old", b"new")
    assert path.read_bytes() == b"old" and sorted(os.listdir(tmp_path)) == ["a.py", "b.py"]


def test_32_a_file_stays_its_owners_or_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    if os.geteuid() == 0:
        os.chown(path, 12_345, 54_321)
        replace_file(str(path), b"old", b"new")
        assert (path.stat().st_uid, path.stat().st_gid, path.read_bytes()) == (12_345, 54_321, b"new")

    def forbidden(*args: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    theirs = os.stat_result((*path.stat()[:4], 7, 7, *path.stat()[6:]))
    monkeypatch.setattr(os, "chown", forbidden)
    monkeypatch.setattr(Path, "stat", lambda self, **options: theirs)
    before = path.read_bytes()
    with pytest.raises(NotWritten, match="change hands"):
        replace_file(str(path), before, b"newer")
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.py"]


def test_32_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(NotWritten, match="read-only"):
        replace_file(str(path), b"old", b"new")


def test_text_without_marks_is_handed_back_as_it_is() -> None:
    for text in ("x = 1\n", "# just a comment\n", "VAL = AST = 1\n"):
        assert expand(text) == text and strip(text) == text


def test_syntax_that_libcst_rejects_in_the_original_too_is_no_obstacle() -> None:
    from tests.codegen.expand.fuzz import JOB

    outcome = JOB.process("a.py", b"(pars): bool = True\n\n\ndef take(x):\n    # VAL: VAL_POSITIVE\n    return x\n")
    assert outcome.new is not None, outcome.report.findings
