"""A review sets Section 5 beside the change, and its record is about exactly what was reviewed."""

from __future__ import annotations

from codegen.document.store import update_document
from codegen.workflow.ledger import with_field
from codegen.workflow.review import FIELD, method_reviews, record_text, recorded
from tests.codegen.workflow.conftest import Pantry, complete, implement


def test_a_new_function_is_shown_whole_beside_its_entry(pantry: Pantry) -> None:
    implement(pantry, 1)
    jar, fill = method_reviews(pantry.target(1), pantry.git)
    assert (jar.name, jar.section, jar.place) == ("pantry.jar.Jar", "5.1.1", "pantry/jar.py:9")
    assert jar.documented.startswith("@dataclass\nclass Jar:")
    assert fill.documented.startswith("def fill(jar: Jar, grams: int) -> int:\n    # VAL:")
    assert fill.diff.startswith("+def fill(jar: Jar, grams: int) -> int:")
    assert "+@dataclass" not in fill.diff


def test_a_changed_function_is_shown_by_its_changed_lines(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.change("pantry/jar.py", "    jar.grams += grams\n", "    jar.grams = jar.grams + grams\n")
    jar, fill = method_reviews(pantry.target(1), pantry.git)
    assert jar.diff == "unchanged since HEAD"
    assert fill.diff == "-    jar.grams += grams\n+    jar.grams = jar.grams + grams"


def test_a_definition_that_the_code_lacks_says_so(pantry: Pantry) -> None:
    assert [each.diff for each in method_reviews(pantry.target(1), pantry.git)] == ["not in the code"] * 2


def test_a_record_holds_until_code_or_entry_changes(pantry: Pantry) -> None:
    implement(pantry, 1)
    target = pantry.target(1)
    assert recorded(target) is None
    update_document(
        target.document.path, lambda document: with_field(document, 1, FIELD, record_text(target, "Grace H."))
    )
    record = recorded(pantry.target(1))
    assert record and (record.reviewer, record.valid) == ("Grace H.", True)
    pantry.change("design/pantry.md", "| 1 | Jars | - | IN_PROGRESS |", "| 1 | Jars | - | DONE |")
    assert recorded(pantry.target(1)).valid  # type: ignore[union-attr]
    pantry.change("design/pantry.md", "return jar.grams\n", "return jar.grams + 0\n")
    assert not recorded(pantry.target(1)).valid  # type: ignore[union-attr]
    pantry.change("design/pantry.md", "return jar.grams + 0\n", "return jar.grams\n")
    pantry.change("tests/test_jar.py", "== 5", "==  5")
    assert not recorded(pantry.target(1)).valid  # type: ignore[union-attr]
