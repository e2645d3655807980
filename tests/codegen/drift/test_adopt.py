"""A document written from code is whole, describes that code without drift, and every command takes it at once."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from codegen.cli import main
from codegen.diagnostics import UsageError
from codegen.document.model import Document
from codegen.document.parse import parse_document
from codegen.drift.adopt import adopted_document
from codegen.drift.code import Code
from codegen.drift.report import DriftReport, drift

REPOSITORY = Path(__file__).parents[3]
BANK = {
    "bank/__init__.py": '''\
        """Money that is kept for others. It keeps it well."""

        from bank._book import Account, Kind
        from bank.errors import Overdrawn

        __all__ = ["Account", "Kind", "Overdrawn"]
        ''',
    "bank/errors.py": '''\
        class Overdrawn(Exception):
            """Too little money."""

            def __init__(self, amount: int, limit: int | None = None) -> None:
                if amount < 0:
                    raise ValueError(amount)
        ''',
    "bank/_book.py": '''\
        """Accounts | and <their> kinds."""

        import threading
        from dataclasses import dataclass, field
        from enum import Enum

        import requests

        from bank import audit
        from bank.errors import Overdrawn


        class Kind(Enum):
            OPEN = "open"
            CLOSED = "closed"


        class _Base:
            def close(self, *, at: float = 0.0) -> None:
                self.kind = Kind.CLOSED
                audit.note(self)


        @dataclass(frozen=True)
        class Account(_Base):
            """An account of one person."""

            owner: str
            notes: list[str] = field(default_factory=list)
            _secret: int = 3

            @property
            def free(self) -> int:
                return 1

            @free.setter
            def free(self, value: int) -> None: ...

            async def take(self, amount: int, why: str = "a, (b", *, reason: str | None = None) -> int:
                """Take money out."""
                # VAL: VAL_INT_RANGE(amount, min=1) - no free money
                if not 1 <= amount:
                    raise ValueError(f"take: amount must be at least 1, got {amount!r}")
                # END VAL 123456
                if amount > self.free:
                    raise Overdrawn(amount)
                return self._checked(amount)

            def _checked(self, amount: int) -> int:
                raise LookupError(amount)

            @classmethod
            def of(
                cls, first: "dict[str, tuple[int, int]]", second: "dict[str, int]",
                third: "tuple[int, int, int]", /, *rest: int,
            ) -> "Account":
                return cls("x")
        ''',
    "bank/audit.py": '''\
        from bank import _book


        def note(account: "_book.Account") -> None: ...
        def inner() -> None: ...
        ''',
    "bank/tests/__init__.py": "",
    "bank/tests/test_book.py": "def test_it() -> None: ...\nclass Helper: ...\n",
    "tests/test_book.py": "def test_it() -> None: ...\n",
}  # fmt: skip


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return root


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    return written(tmp_path, BANK)


def adopted(root: Path, *packages: str, wanted: str | None = None) -> tuple[Document, DriftReport]:
    text = adopted_document(Code(root), packages, "bank", "2026-12-01", wanted).text
    document = parse_document(text, root / "design" / "bank.md")
    return document, drift(document, Code(root))


def test_an_adopted_document_covers_every_name_that_users_reach_without_drift(bank: Path) -> None:
    document, report = adopted(bank, "bank")
    assert report.findings == () and document.problems == ()
    names = {each.name for each in report.coverage.reached}
    assert names == {
        "bank.Kind",
        "bank.Overdrawn",
        "bank.Account",
        "bank.Account.free",
        "bank.Account.take",
        "bank.Account.of",
        "bank.Account.close",
    }
    assert report.coverage.covered_count == report.coverage.total == len(names)


def test_section_5_is_one_fence_of_stubs_a_module_with_annotations_and_raises(bank: Path) -> None:
    document, _ = adopted(bank, "bank")
    assert [
        (module.number if hasattr(module, "number") else module.id, module.name) for module in document.modules
    ] == [
        ("5.1", "bank._book"),
        ("5.2", "bank.errors"),
    ]
    book = document.modules[0]
    assert book.purpose == "Accounts | and <their> kinds. Users find it in `bank`."
    assert book.fields["decisions"].value == "D-1" and book.fields["tests"].value == "tests/test_book.py"
    assert book.fences[0].code == textwrap.dedent(
        """\
        class Kind(Enum):
            OPEN = 'open'
            CLOSED = 'closed'

        class _Base:
            def close(self, *, at: float = 0.0) -> None: ...

        @dataclass(frozen=True)
        class Account(_Base):
            owner: str
            notes: list[str] = field(default_factory=list)
            @property
            def free(self) -> int: ...
            @free.setter
            def free(self, value: int) -> None: ...
            async def take(self, amount: int, why: str = 'a, (b', *, reason: str | None = None) -> int:
                # VAL: VAL_INT_RANGE(amount, min=1) - no free money
                raise Overdrawn  # when amount > self.free
                raise LookupError
                ...
            @classmethod
            def of(
                cls, first: 'dict[str, tuple[int, int]]', second: 'dict[str, int]', third: 'tuple[int, int, int]', /,
                *rest: int
            ) -> 'Account': ...
        """
    )
    errors = document.modules[1].fences[0].code
    assert "def __init__(self, amount: int, limit: int | None = None) -> None:\n        raise ValueError" in errors


def test_adopted_names_have_status_adopted_and_no_plan(bank: Path) -> None:
    from codegen.document.staleness import statuses

    document, _ = adopted(bank, "bank")
    assert set(statuses(document).values()) == {"ADOPTED"} and document.steps == ()
    assert "tests/" not in document.text.replace("tests/test_book.py", "")


def test_sections_1_to_4_ask_and_show_what_the_code_shows(bank: Path) -> None:
    text = adopted(bank, "bank")[0].text
    for shown in (
        "Its docstring: Money that is kept for others.",
        "Users reach `bank.Kind`, `bank.Account`, `bank.Overdrawn`.",
        "It needs requests.",
        "| `bank._book` | Accounts \\| and &lt;their> kinds. |",
        "| `bank.audit`, `bank.errors` | 2 |",
        "- <may these 2 modules go on importing each other?> `bank._book`, `bank.audit`",
        "| `bank._book.Kind` | OPEN, CLOSED | `bank._book._Base.close` |",
        "| `bank.errors.Overdrawn` | Exception | `bank._book.Account.take` |",
        "- `threading` in `bank._book`",
    ):
        assert shown in text, shown
    assert "bank.tests" not in text


COMMANDS = [
    ["drift"],
    ["status"],
    ["graph"],
    ["graph", "--level", "module"],
    ["view", "-o", "page.html"],
    ["step", "next"],
    ["plan"],
    ["plan", "--check"],
    ["impact", "D-1"],
    ["impact", "bank._book.Account"],
    ["review", "next"],
    ["sync-from-code"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_takes_an_adopted_document_at_once(
    bank: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    monkeypatch.chdir(bank)
    assert main(["adopt", "bank", "-o", "design/bank.md"]) == 0
    before = (bank / "design" / "bank.md").read_text()
    capsys.readouterr()
    status = main(command)
    said = capsys.readouterr()
    assert status == 0, said
    if command[0] == "sync-from-code":
        assert said.out == ""
    if command[0] == "plan":
        assert parse_document((bank / "design" / "bank.md").read_text()).steps == ()
    else:
        assert (bank / "design" / "bank.md").read_text() == before


def test_lint_finds_nothing_but_the_questions(
    bank: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(bank)
    assert main(["adopt", "bank", "-o", "design/bank.md"]) == 0
    capsys.readouterr()
    assert main(["lint"]) == 0
    found = [line for line in capsys.readouterr().out.splitlines() if line.startswith("design/")]
    assert found and all(" DOC012 " in line or " DOC016 " in line for line in found), found


@pytest.mark.parametrize("wanted", ["all", None])
@pytest.mark.parametrize("package", ["codegen/drift", "codegen/document", "roll_ts/core"])
def test_our_own_code_can_be_adopted(package: str, wanted: str | None) -> None:
    document, report = adopted(REPOSITORY, package, wanted=wanted)
    assert report.findings == ()
    lines = sum(len(module.lines) for module in Code(REPOSITORY).modules_under(package))
    # a module of data classes alone is hardly longer than its stubs
    assert len(document.lines) <= (0.25 if wanted is None else 0.4) * lines


def test_everything_public_is_shown_where_most_of_it_crosses_no_border(tmp_path: Path) -> None:
    shown = "def a(): ...\ndef b(): ...\ndef c(): ...\n"
    files = {
        "lib/__init__.py": "from lib.one import a\n",
        "lib/one.py": shown,
        "lib/two.py": "from lib.one import b, c\n",
    }
    written(tmp_path, files)
    found = adopted_document(Code(tmp_path), ["lib"], "lib", "2026-12-01")
    assert found.wanted == "all" and "\nsurface: all\n" in found.text
    assert found.why == "2 of 3 public names cross no border, and no command runs the package"
    assert adopted_document(Code(tmp_path), ["lib"], "lib", "2026-12-01", "border").text.count("def ") == 1


def test_a_package_that_does_not_exist_is_a_usage_error(bank: Path) -> None:
    with pytest.raises(UsageError, match="nowhere: no such package"):
        adopted_document(Code(bank), ["nowhere"], "x", "2026-12-01")


def test_a_package_that_nobody_reaches_into_is_a_usage_error(tmp_path: Path) -> None:
    written(tmp_path, {"lib/__init__.py": "", "lib/_one.py": "def a(): ...\n"})
    with pytest.raises(UsageError, match="lib: nobody reaches a function or class in it"):
        adopted_document(Code(tmp_path), ["lib"], "lib", "2026-12-01")


def test_what_is_excluded_is_left_out_now_and_later(bank: Path) -> None:
    text = adopted_document(Code(bank), ["bank"], "bank", "2026-12-01", excluded=["bank/errors.py"]).text
    assert "\nexclude: [bank/errors.py]\n" in text and "class Overdrawn" not in text
    document = parse_document(text, bank / "design" / "bank.md")
    assert drift(document, Code(bank)).findings == ()
