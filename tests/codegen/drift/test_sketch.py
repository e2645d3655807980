"""Code shortened to what an open entry shows stays Python, keeps its annotations, and is short."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from codegen.drift.code import Code
from codegen.drift.sketch import MAX_BODY, Sketcher

REPOSITORY = Path(__file__).parents[3]
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
TAKE = '''\
class Account:
    def take(self, amount: int) -> int:
        """Take money out."""
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
'''


def sketch(root: Path, source: str, name: str) -> str:
    (root / "act.py").write_text(source)
    module = Code(root).module("act")
    assert module is not None
    return "\n".join(Sketcher(module, module.annotated).function(module.definitions[name]))


def test_a_body_keeps_its_annotations_and_the_shape_around_them(tmp_path: Path) -> None:
    assert sketch(tmp_path, TAKE, "Account.take") == (
        """\
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
    return self.amount"""
    )


@pytest.mark.parametrize("extra", range(0, 30, 3))
def test_every_kind_of_block_stays_python_at_every_depth_and_keeps_its_annotations(tmp_path: Path, extra: int) -> None:
    lines = [f"    x{number} = {number}" for number in range(extra)]
    text = sketch(tmp_path, BRANCHES.replace("    try:\n", "\n".join([*lines, "    try:\n"])), "act")
    ast.parse(text)
    for annotation in ("VAL_NON_EMPTY(command)", "AST_PRECONDITION(a == 1)", "VAL_NON_EMPTY(c)"):
        assert text.count(annotation) == 1


def test_every_sketched_body_of_our_own_code_is_python_and_short() -> None:
    for module in Code(REPOSITORY).modules_under("codegen/drift"):
        for definition in module.definitions.values():
            if definition.kind == "function":
                lines = Sketcher(module, module.annotated).function(definition)
                node = ast.parse("\n".join(lines)).body[0]
                assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
                assert len(lines) - node.body[0].lineno < MAX_BODY, definition.name
