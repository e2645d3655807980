"""Typical edits of code below an adopted document: each is reported as what it is, and sync leaves nothing broken."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from codegen.document.parse import parse_document
from codegen.drift import compare as codes
from codegen.drift.adopt import adopted_document
from codegen.drift.code import Code
from codegen.drift.report import drift
from codegen.drift.sync import propose
from tests.codegen.drift.test_adopt import BANK, written

BOOK = "bank/_book.py"
TAKE = 'amount: int, why: str = "a, (b"'
# file, old, new, code of the finding, part of its message, part of the new document
EDITS = [
    (
        "rename a parameter",
        BOOK,
        TAKE,
        'sum_: int, why: str = "a, (b"',
        codes.PARAMETER,
        "`amount` is called `sum_`",
        "sum_: int",
    ),
    ("a default", BOOK, 'why: str = "a, (b"', 'why: str = "no"', codes.DEFAULT, "`why` defaults to", "why: str = 'no'"),
    (
        "drop a default",
        BOOK,
        "reason: str | None = None",
        "reason: str | None",
        codes.DEFAULT,
        "has no default",
        "reason: str | None)",
    ),
    (
        "a type",
        BOOK,
        "reason: str | None = None",
        "reason: bytes | None = None",
        codes.TYPE,
        "`bytes | None` in the",
        "bytes | None",
    ),
    ("a new parameter", BOOK, TAKE, f"{TAKE}, at: int = 0", codes.PARAMETER, "`at` of the code is not", "at: int = 0"),
    (
        "drop a parameter",
        BOOK,
        ', why: str = "a, (b"',
        "",
        codes.PARAMETER,
        "`why` is not in the code",
        "take(self, amount: int, *",
    ),
    (
        "keyword-only",
        BOOK,
        "*, at: float = 0.0",
        "at: float = 0.0",
        codes.PARAMETER,
        "keyword-only here",
        "close(self, at: float = 0.0)",
    ),
    (
        "no longer async",
        BOOK,
        "async def take",
        "def take",
        codes.ASYNC,
        "take is async in the document",
        "    def take",
    ),
    ("a return type", BOOK, "= None) -> int:", "= None) -> float:", codes.RETURN, "returns `int` here", "-> float:"),
    (
        "a new raise",
        BOOK,
        "raise Overdrawn(amount)",
        "raise OverflowError(amount)",
        codes.RAISE,
        "OverflowError is raised",
        "raise OverflowError  # when amount > self.free",
    ),
    (
        "a base class",
        BOOK,
        "class Account(_Base):",
        "class Account(_Base, list):",
        codes.BASES,
        "inherits from _Base here",
        "class Account(_Base, list):",
    ),
    (
        "a new field",
        BOOK,
        "    owner: str\n",
        "    owner: str\n    age: int = 3\n",
        codes.FIELD,
        "field `age` of the code",
        "owner: str\n    age: int = 3\n",
    ),
    (
        "a field's default",
        BOOK,
        "notes: list[str] = field(default_factory=list)",
        "notes: list[str] = ()",
        codes.FIELD,
        "field `notes` defaults",
        "notes: list[str] = ()",
    ),
    (
        "a new member of an enumeration",
        BOOK,
        'OPEN = "open"',
        'OPEN = "open"\n    HELD = "held"',
        codes.FIELD,
        "field `HELD`",
        "OPEN = 'open'\n    HELD = 'held'",
    ),
    (
        "a decorator",
        BOOK,
        "@dataclass(frozen=True)",
        "@dataclass",
        codes.DECORATOR,
        "@dataclass(frozen=True) is in the document",
        "@dataclass\n",
    ),
    (
        "no property any more",
        BOOK,
        "    @property\n",
        "",
        codes.DECORATOR,
        "@property is in the document",
        "default_factory=list)\n    def free(self) -> int: ...",
    ),
    (
        "an annotation's bound",
        BOOK,
        "VAL_INT_RANGE(amount, min=1)",
        "VAL_INT_RANGE(amount, min=2)",
        codes.VALIDATION,
        "the code carries `VAL: VAL_INT_RANGE(amount, min=2)`",
        "min=2",
    ),
    (
        "a new method",
        BOOK,
        "    def _checked(",
        "    def give(self) -> None: ...\n\n    def _checked(",
        codes.UNDOCUMENTED,
        "bank.Account.give (defined as bank._book.Account.give)",
        "    def give(self) -> None: ...",
    ),
    (
        "a new name in `__all__`",
        "bank/__init__.py",
        '"Kind", "Overdrawn"]',
        '"Kind", "Overdrawn", "note"]\nfrom bank.audit import note',
        codes.UNDOCUMENTED,
        "bank.note (defined as bank.audit.note)",
        "### 5.3 `bank.audit`",
    ),
    (
        "a constructor's parameter",
        "bank/errors.py",
        "limit: int | None = None",
        "limit: int",
        codes.DEFAULT,
        "__init__: parameter `limit`",
        "limit: int)",
    ),
]
# what only the author can settle: the document is left as it is
LEFT = [
    (
        "a removed method",
        BOOK,
        "async def take",
        "async def _take",
        codes.MISSING,
        "bank._book.Account.take is in the document, not in the code (nearest: Account._take",
    ),
    ("a removed re-export", "bank/__init__.py", "from bank.errors import Overdrawn", "", None, ""),
    (
        "a class that became a function",
        "bank/errors.py",
        "class Overdrawn(Exception):",
        "def Overdrawn():",
        codes.KIND,
        "Overdrawn is a class in the document, a function in the code",
    ),
]


def bank(root: Path) -> tuple[Path, str]:
    """The project, and the text of its adopted document."""
    return root, adopted_document(Code(written(root, BANK)), ["bank"], "bank", "2026-12-01").text


def change(root: Path, file: str, old: str, new: str) -> None:
    text = (root / file).read_text()
    assert text.count(old) >= 1, old
    (root / file).write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("file", "old", "new", "code", "message", "after"), [each[1:] for each in EDITS], ids=[each[0] for each in EDITS]
)
def test_an_edit_is_reported_as_what_it_is_and_sync_takes_it_over(
    tmp_path: Path, file: str, old: str, new: str, code: str, message: str, after: str
) -> None:
    root, text = bank(tmp_path)
    path = root / "design" / "bank.md"
    document = parse_document(text, path)
    assert drift(document, Code(root)).findings == ()
    change(root, file, old, new)
    found = [(each.code, each.message) for each in drift(document, Code(root)).findings]
    assert any(each == code and message in said for each, said in found), found
    proposal = propose(document, Code(root))
    assert [each.message for each in proposal.left.findings if "never raised" not in each.message] == []
    assert after in proposal.text and after not in text
    assert parse_document(proposal.text, path).problems == ()
    # nothing else moved, and a second time there is nothing to do
    assert len(set(text.split("\n")) - set(proposal.text.split("\n"))) <= 3
    assert propose(parse_document(proposal.text, path), Code(root)).text == proposal.text
    for fence in parse_document(proposal.text, path).fences:
        ast.parse(fence.code if fence.language == "python" else "")


@pytest.mark.parametrize(
    ("file", "old", "new", "code", "message"), [each[1:] for each in LEFT], ids=[each[0] for each in LEFT]
)
def test_what_only_the_author_can_settle_is_reported_and_left(
    tmp_path: Path, file: str, old: str, new: str, code: str | None, message: str
) -> None:
    root, text = bank(tmp_path)
    document = parse_document(text, root / "design" / "bank.md")
    change(root, file, old, new)
    found = [(each.code, each.message) for each in drift(document, Code(root)).findings]
    assert any(each == code and message in said for each, said in found) if code else found == []
    assert propose(document, Code(root)).text == text


def test_a_class_that_moved_is_found_where_it_is_now(tmp_path: Path) -> None:
    root, text = bank(tmp_path)
    source = (root / "bank/errors.py").read_text()
    (root / "bank/errors.py").write_text("")
    (root / "bank/faults.py").write_text(source)
    change(root, "bank/__init__.py", "from bank.errors", "from bank.faults")
    change(root, BOOK, "from bank.errors", "from bank.faults")
    found = [each.message for each in drift(parse_document(text, root / "design" / "bank.md"), Code(root)).findings]
    assert "bank.errors.Overdrawn is in the document, not in the code (there is one in bank/faults.py)" in found


def test_what_only_the_document_says_of_a_stub_is_kept_when_the_stub_is_written_again(tmp_path: Path) -> None:
    root, text = bank(tmp_path)
    kept = "    raise KeyError  # from self.notes.index when it is not there\n"
    before = text.replace("        raise LookupError\n", f"    {kept}")
    bound = "        # VAL: VAL_INT_RANGE(amount"
    before = before.replace(bound, f"        # VAL: VAL_NON_EMPTY(why)\n{bound}")
    assert before.count("VAL_NON_EMPTY(why)") == 1
    change(root, BOOK, TAKE, f"{TAKE}, at: int = 0")
    document = parse_document(before, root / "design" / "bank.md")
    proposal = propose(document, Code(root))
    assert "# VAL: VAL_NON_EMPTY(why)" in proposal.text and "at: int = 0" in proposal.text
    assert any("`VAL: VAL_NON_EMPTY(why)` is promised here" in each.message for each in proposal.left.findings)
    assert kept.strip() in before and kept.strip() in proposal.text and "raise LookupError" in proposal.text
