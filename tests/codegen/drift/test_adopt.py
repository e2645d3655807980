"""Section 5 written from code describes that code: it reads back, covers everything and has no drift."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from codegen.diagnostics import UsageError
from codegen.document.parse import parse_document
from codegen.drift.adopt import Adoption
from codegen.drift.code import Code
from codegen.drift.report import DriftReport, drift

REPOSITORY = Path(__file__).parents[3]
HEAD = "---\nid: x\ntitle: X\nversion: 0.1\nstatus: draft\nroots: [{roots}]\n---\n# X\n\n"


def adopted(root: Path, package: str, whole_classes: bool = False) -> tuple[str, DriftReport]:
    text = HEAD.format(roots=package) + Adoption(Code(root), [package], whole_classes).section()
    return text, drift(parse_document(text, root / "design" / "x.md"), Code(root))


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "__init__.py").write_text("")
    (tmp_path / "bank" / "errors.py").write_text('class Overdrawn(Exception):\n    """Too little money."""\n')
    (tmp_path / "bank" / "account.py").write_text(
        '''\
"""Accounts."""

from bank.errors import Overdrawn
from bank import errors


class Account:
    """An account of one person. Amounts are in cents."""

    def __init__(self, owner: str, *, limit: int = 0) -> None:
        self.owner = owner
        self.limit = limit
        self.amount = 0

    def take(self, amount: int) -> int:
        """Take money out.

        Returns what is left.
        """
        # VAL: VAL_INT_RANGE(amount, min=1, max=self.limit - 1) - no free money
        if not 1 <= amount <= self.limit - 1:
            raise ValueError(f"take: amount must lie in [1, {self.limit - 1}], got {amount!r}")
        # END VAL 123456
        total = self._checked(amount)
        for step in range(3):
            if step == 1:
                total += step * 2 + amount * 3 - step
                total -= step * 2 + amount * 3 - step
            elif step == 2:
                total += 17
                # AST: AST_PRECONDITION(total != 18)
                total -= 17
            else:
                with open("log") as log:
                    log.write("a line that is much too long to be repeated in a document" + str(total) + "and more")
        self.amount = total
        first = total + 1
        second = first + 1
        third = second + 1
        # AST: AST_POSTCONDITION(self.amount >= 0)
        return self.amount

    def _checked(self, amount: int) -> int:
        if amount > self.amount:
            raise errors.Overdrawn(amount)
        return log_amount(self.amount - amount)


def log_amount(amount: int) -> int:
    return amount
'''
    )
    return tmp_path


def test_section_5_of_adopted_code_covers_it_without_drift(bank: Path) -> None:
    _, report = adopted(bank, "bank")
    assert report.findings == ()
    assert report.coverage.covered_count == report.coverage.total == 4


def test_an_adopted_entry_has_purpose_dependencies_errors_and_annotations(bank: Path) -> None:
    text, _ = adopted(bank, "bank")
    entry = text[text.index("#### 5.1.2") : text.index("#### 5.1.3")]
    assert entry == (
        """\
#### 5.1.2 `Account.take`

Take money out.

- deps: `bank.errors.Overdrawn`, `log_amount`
- decisions: -
- errors: errors.Overdrawn

```python
def take(self, amount: int) -> int:
    # VAL: VAL_INT_RANGE(amount, min=1, max=self.limit - 1) - no free money
    ...
    for step in range(3):
        if step == 1:
            ...
        elif step == 2:
            total += 17
            # AST: AST_PRECONDITION(total != 18)
            ...
        else:
            ...
    ...
    third = second + 1
    # AST: AST_POSTCONDITION(self.amount >= 0)
    return self.amount
```

"""
    )


def test_a_class_may_be_shown_whole(bank: Path) -> None:
    text, report = adopted(bank, "bank", whole_classes=True)
    assert "#### 5.1.1 `Account`" in text and "`Account.take`" not in text
    assert report.findings == ()


@pytest.mark.parametrize("package", ["codegen/drift", "codegen/document"])
def test_our_own_code_can_be_adopted(package: str) -> None:
    text, report = adopted(REPOSITORY, package)
    assert report.findings == ()
    document = parse_document(text)
    for entry in document.entries:
        ast.parse(entry.code)
        assert len(entry.code.split("\n")) < 150, entry.title


def test_every_sketched_function_body_has_at_most_fifteen_lines() -> None:
    text, _ = adopted(REPOSITORY, "codegen/drift")
    for entry in parse_document(text).entries:
        for node in ast.walk(ast.parse(entry.code)):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.body[0].lineno < 15, node.name


def test_a_circle_of_dependencies_is_named(tmp_path: Path) -> None:
    (tmp_path / "ring.py").write_text("def a():\n    b()\n\n\ndef b():\n    c()\n\n\ndef c():\n    a()\n")
    assert Adoption(Code(tmp_path), ["ring.py"]).cycles() == [["ring.a", "ring.b", "ring.c", "ring.a"]]


def test_a_package_that_does_not_exist_is_a_usage_error(bank: Path) -> None:
    with pytest.raises(UsageError, match="nowhere: no such package"):
        Adoption(Code(bank), ["nowhere"])


BRANCHES = """\
def act(command):
    match command:
        case "go":
            # VAL: VAL_NON_EMPTY(command)
            first = 1
            return first
        case [a, *rest] if rest: return a
        case _: pass
    try:
        a = 1
        # AST: AST_PRECONDITION(a == 1)
        b = 2
    except (ValueError,
            KeyError) as error:
        raise RuntimeError("x") from error
    else:
        c = 3
    finally:
        d = 4
    if a:
        pass
    elif b: c = 5
    else:
        # VAL: VAL_NON_EMPTY(c)
        d = 5
    return a
"""


def test_every_kind_of_block_stays_python_at_every_depth_and_keeps_its_annotations(tmp_path: Path) -> None:
    for extra in range(0, 30, 3):
        lines = [f"    x{number} = {number}" for number in range(extra)]
        source = BRANCHES.replace("    try:\n", "\n".join([*lines, "    try:\n"]))
        (tmp_path / "act.py").write_text(source)
        text, report = adopted(tmp_path, "act.py")
        assert report.findings == (), extra
        for annotation in ("VAL_NON_EMPTY(command)", "AST_PRECONDITION(a == 1)", "VAL_NON_EMPTY(c)"):
            assert annotation in text


def test_a_local_name_is_no_dependency(tmp_path: Path) -> None:
    total = "def total() -> int:\n    return 1\n"
    report = "def report(rows: list[int]) -> int:\n    total = sum(rows)\n    return total\n"
    (tmp_path / "sums.py").write_text(f"{total}\n\n{report}")
    text, _ = adopted(tmp_path, "sums.py")
    assert text.count("- deps: -") == 2
