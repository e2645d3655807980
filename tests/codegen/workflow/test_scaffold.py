"""Section 5 becomes code: only what is missing, in order, expanded, and loud where it is not written yet."""

from __future__ import annotations

import pytest

from codegen.cli import main
from codegen.diagnostics import UsageError
from codegen.workflow.scaffold import scaffold
from tests.codegen.workflow.conftest import Pantry

JAR = '''\
"""A jar with something in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Jar:
    """A jar with something in it."""

    name: str
    grams: int = 0


def fill(jar: Jar, grams: int) -> int:
    """Put more into a jar and return its weight."""
    # VAL: VAL_INT_RANGE(grams, min=1, max=5000)
    if not 1 <= grams <= 5000:
'''


def test_a_new_module_holds_the_entries_expanded_with_their_imports(pantry: Pantry) -> None:
    result = scaffold(pantry.target(1))
    assert result.written == {"pantry/jar.py": ("pantry.jar.Jar", "pantry.jar.fill")}
    text = (pantry.root / "pantry/jar.py").read_text()
    assert text.startswith(JAR)
    assert "# END VAL " in text and "# END AST " in text


def test_a_second_scaffold_changes_no_byte(pantry: Pantry) -> None:
    scaffold(pantry.target(1))
    before = (pantry.root / "pantry/jar.py").read_bytes()
    assert scaffold(pantry.target(1)).written == {}
    assert (pantry.root / "pantry/jar.py").read_bytes() == before


def test_what_exists_is_never_touched(pantry: Pantry) -> None:
    pantry.write("pantry/jar.py", "class Jar:\n    mine = 1  # keep\n\n\nprint('end')\n")
    scaffold(pantry.target(1))
    text = (pantry.root / "pantry/jar.py").read_text()
    assert text.startswith("class Jar:\n    mine = 1  # keep\n\n\ndef fill(")
    assert text.endswith("\n\n\nprint('end')\n")


def test_a_method_goes_into_its_class_and_a_name_of_the_document_is_imported(pantry: Pantry) -> None:
    scaffold(pantry.target(2))
    assert (
        (pantry.root / "pantry/shelf.py").read_text()
        == '''\
"""Jars side by side."""

from __future__ import annotations

from collections.abc import Sequence

from pantry.jar import Jar


class Shelf:
    """Jars side by side."""

    def __init__(self, jars: Sequence[Jar] = ()) -> None:
        self.jars = list(jars)

    def weight(self) -> int:
        """What all jars weigh."""
        raise NotImplementedError("5.2.2 Shelf.weight")
'''
    )


def test_a_method_whose_class_is_missing_names_the_step_to_do_first(pantry: Pantry) -> None:
    pantry.change("design/pantry.md", "| `pantry.shelf.Shelf` | 5.2.1 | NOT_STARTED | - |\n", "")
    with pytest.raises(UsageError, match=r"class Shelf does not exist in pantry\.shelf"):
        scaffold(pantry.target(2))


def test_an_annotation_that_cannot_be_expanded_leaves_the_file_as_it_was(pantry: Pantry) -> None:
    pantry.change("design/pantry.md", "VAL_INT_RANGE(grams, min=1, max=5000)", "VAL_INT_RANJE(grams)")
    result = scaffold(pantry.target(1))
    assert result.written == {}
    assert "VAL_INT_RANJE" in result.findings[0].message
    assert not (pantry.root / "pantry/jar.py").exists()


def test_an_annotation_of_a_name_that_the_open_body_has_still_to_bind_waits_as_a_comment(
    pantry: Pantry, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "def weight(self) -> int:\n    "
    pantry.change("design/pantry.md", f"{body}...", f"{body}# VAL: VAL_POSITIVE(total)\n    ...")
    result = scaffold(pantry.target(2))
    assert result.findings == ()
    [note] = result.notes
    assert (note.severity, note.code) == ("note", "unresolved-name")
    path = pantry.root / "pantry/shelf.py"
    text = path.read_text()
    assert "    # VAL: VAL_POSITIVE(total)\n" in text
    assert "if not total" not in text
    assert note.fix is not None
    assert "`codegen expand`" in note.fix
    head, waiting, rest = text.partition("    # VAL: VAL_POSITIVE(total)\n")
    path.write_text(f"{head}    total = 1\n{waiting}{rest}".replace("raise NotImplementedError", "return total  #"))
    monkeypatch.chdir(pantry.root)
    assert main(["expand", "pantry/shelf.py"]) == 0
    assert "if not total > 0" in path.read_text()


def test_a_one_line_body_and_a_long_purpose_are_written_well(pantry: Pantry) -> None:
    pantry.change("design/pantry.md", "def weight(self) -> int:\n    ...", "def weight(self) -> int: ...  # grams")
    pantry.change(
        "design/pantry.md", "What all jars weigh.", "What all jars weigh, " + "and so on " * 12 + "to the end."
    )
    scaffold(pantry.target(2))
    text = (pantry.root / "pantry/shelf.py").read_text()
    assert '    def weight(self) -> int:\n        """What all jars weigh, and so on' in text
    assert 'to the end.\n        """\n        raise NotImplementedError("5.2.2 Shelf.weight")\n' in text


def test_a_file_keeps_its_line_ends(pantry: Pantry) -> None:
    (pantry.root / "pantry").mkdir()
    (pantry.root / "pantry/jar.py").write_bytes(b"class Jar:\r\n    pass\r\n")
    scaffold(pantry.target(1))
    data = (pantry.root / "pantry/jar.py").read_bytes()
    assert data.startswith(b"class Jar:\r\n    pass\r\n\r\n\r\ndef fill(")
    assert data.count(b"\n") == data.count(b"\r\n")


def test_a_file_that_is_not_python_is_named(pantry: Pantry) -> None:
    pantry.write("pantry/jar.py", "class Jar(:\n")
    with pytest.raises(UsageError, match=r"pantry[/.]jar"):
        scaffold(pantry.target(1))
    assert (pantry.root / "pantry/jar.py").read_text() == "class Jar(:\n"
