"""The suites of one file by line, so that looking one up costs the same in a small file and in a large one."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right

from codegen.expand.reading.parsing import first_line, last_line
from codegen.expand.reading.suites import Suite, all_suites


class SuiteIndex:
    """Finds suites and statements by line."""

    def __init__(self, root: Suite) -> None:
        self.root = root
        self._bodies: dict[int, Suite] = {}
        self._headers: dict[int, Suite] = {}
        self._clauses: dict[tuple[str, int], Suite] = {}
        self._ends: dict[int, list[tuple[Suite, int]]] = {}
        self._signatures: list[tuple[int, Suite]] = []
        self._decorated: list[ast.stmt] = []
        for suite in all_suites(root):
            self._add(suite)
        self._signatures.sort(key=_line)
        self._decorated.sort(key=first_line)
        futures = [
            n for n, s in enumerate(root.statements) if isinstance(s, ast.ImportFrom) and s.module == "__future__"
        ]
        self.futures_end = futures[-1] + 1 if futures else 0

    def _add(self, suite: Suite) -> None:
        if suite.clause is None:
            self._bodies.setdefault(id(suite.owner), suite)
        else:
            self._clauses.setdefault((suite.clause, suite.header_end), suite)
        if suite is not self.root and not suite.inline:
            self._headers.setdefault(suite.header_end, suite)
        if isinstance(suite.owner, ast.FunctionDef | ast.AsyncFunctionDef):
            self._signatures.append((suite.owner.lineno, suite))
        for index, statement in enumerate(suite.statements):
            if not getattr(statement, "body", None):
                self._ends.setdefault(last_line(statement), []).append((suite, index))
            if first_line(statement) < statement.lineno:
                self._decorated.append(statement)

    def body_of(self, owner: ast.AST) -> Suite:
        """The suite that is the body of a function, class or compound statement."""
        return self._bodies[id(owner)]

    def clause(self, word: str, header_end: int) -> Suite | None:
        """The clause with that first word whose header ends on that line."""
        return self._clauses.get((word, header_end))

    def below_header(self, line: int) -> Suite | None:
        """The outermost suite on lines of its own whose header ends on that line."""
        return self._headers.get(line)

    def ending_on(self, line: int) -> tuple[Suite, int] | None:
        """The first simple statement that ends on that line, of the innermost suite: (suite, index)."""
        found = self._ends.get(line)
        if not found:
            return None
        suite = found[-1][0]
        return next(pair for pair in found if pair[0] is suite)

    def signature(self, line: int) -> Suite | None:
        """The body of the function between whose `def` and colon the line lies."""
        at = bisect_right(self._signatures, line, key=_line)
        suite = self._signatures[at - 1][1] if at else None
        return suite if suite is not None and line <= suite.header_end else None

    def decorated(self, line: int) -> ast.stmt | None:
        """The function or class in whose decorators the line lies."""
        at = bisect_right(self._decorated, line, key=first_line)
        return self._decorated[at - 1] if at and line < self._decorated[at - 1].lineno else None

    def holding(self, line: int) -> list[tuple[Suite, int]]:
        """Each statement whose lines hold that line, the innermost first: (suite, index)."""
        found: list[tuple[Suite, int]] = []
        waiting = [self.root]
        while waiting:
            suite = waiting.pop()
            for index in range(bisect_left(suite.statements, line, key=last_line), len(suite.statements)):
                statement = suite.statements[index]
                if first_line(statement) > line:
                    break
                found.append((suite, index))
                waiting.extend(suite.under(statement))
        return found[::-1]


def _line(entry: tuple[int, Suite]) -> int:
    return entry[0]
