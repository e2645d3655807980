"""Where an annotation is, and so where a statement can be put for it.

A comment has no place in Python's grammar, so its place is what a reader would bind it to; the tree is asked only where
the eye would look. Four questions, in this order, and the first that is answered decides:

1. Is it inside brackets? Then it is about a parameter of a signature, or at the end of a statement that a formatter
   wrapped in parentheses; elsewhere in brackets no statement can stand.
2. Is it between decorators and their `def`? Then it is about the function.
3. Is it behind code? Then it is about the statement, or the header, that ends on its line.
4. It has a line of its own. Then its column names the block, as indentation does for a statement: the innermost block
   that is open on that line and not further right. The code below decides only where the column leaves two answers: a
   comment in the column of `else:` belongs to the clause below it, one that touches a `def` to that function.

Two things are never done: a comment is not moved to a place where its meaning would be another one, and it is not
guessed what a wrong column meant (it is taken by its column, and reported). A place where no statement can stand is a
PlaceError with the fix.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from codegen.expand.reading.comments import Layout, LogicalLine
from codegen.expand.reading.index import SuiteIndex
from codegen.expand.reading.marks import Opener
from codegen.expand.reading.parsing import Function, first_line, is_docstring, last_line
from codegen.expand.reading.source import column_of
from codegen.expand.reading.suites import Suite, characters, last_before, open_suites

CLAUSES = frozenset({"else", "elif", "except", "finally", "case"})
LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class PlaceError(Exception):
    """No statement can stand where the annotation is; `fix` says where it can."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix


@dataclass(frozen=True)
class Place:
    """A position in a suite: before `suite.statements[index]`, below line `after`.

    `speaks_of` is set for an annotation about a whole function (above its `def`, in its signature); `parameter` when
    it stands on one parameter. `clause` is the header word when the block has to go below a clause's header.
    `head`: nothing but a docstring stands before it in its function. `dead`: the statement above leaves the suite.
    """

    suite: Suite
    index: int
    after: int
    head: bool = False
    dead: bool = False
    clause: str | None = None
    speaks_of: Suite | None = None
    parameter: str | None = None
    warnings: tuple[str, ...] = field(default=())

    @property
    def function(self) -> Function | None:
        """The function the annotation speaks in or of."""
        return (self.speaks_of or self.suite).function

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions around the place, the innermost last."""
        return (self.speaks_of or self.suite).functions

    @property
    def above(self) -> ast.stmt | None:
        """The statement just above in the same suite; the header's statement at the head of a suite."""
        if self.index:
            return self.suite.statements[self.index - 1]
        owner = self.suite.owner
        return owner if isinstance(owner, ast.stmt) and self.suite.kind == "block" else None

    @property
    def below(self) -> ast.stmt | None:
        """The statement just below in the same suite."""
        statements = self.suite.statements
        return statements[self.index] if self.index < len(statements) else None


class Places:
    """Finds places in one file."""

    def __init__(self, root: Suite, layout: Layout, lines: Sequence[str]) -> None:
        self.root = root
        self.layout = layout
        self.lines = lines
        self.index = SuiteIndex(root)

    def find(self, opener: Opener) -> Place:
        """The annotation's place. Raises PlaceError."""
        # Brackets come first: what a tokenizer calls a line, inside them, is no line that a statement could have.
        if opener.comment.depth:
            return self._in_brackets(opener)
        if decorated := self.index.decorated(opener.line):
            return self._about(decorated, ())
        return self._own_line(opener) if opener.comment.own_line else self._trailing(opener)

    def body_of(self, function: ast.AST) -> Suite:
        """The suite that is a function's body."""
        return self.index.body_of(function)

    def about(self, function: Function) -> Place:
        """The place of checks at a function's entry. Raises PlaceError."""
        return self._about(function, ())

    def _about(self, statement: ast.AST, warnings: tuple[str, ...]) -> Place:
        """The place of an annotation about a function as a whole."""
        if isinstance(statement, ast.ClassDef):
            raise PlaceError(
                f"an annotation on class {statement.name}", "Put it in the method whose entry or return it checks."
            )
        body = self.body_of(statement)
        index = int(is_docstring(body.statements[0]))
        if body.inline:
            raise PlaceError(
                f"the body of {body.function.name if body.function else 'the function'} is on its header's line",
                "Give the body lines of its own.",
            )
        after = self.layout.logical_end(last_line(body.statements[0])) if index else body.header_end
        self._no_semicolon(body, 0) if index else None
        return Place(body, index, after, True, speaks_of=body, warnings=warnings)

    def _own_line(self, opener: Opener) -> Place:
        line = opener.line
        column = column_of(self.lines[line - 1])
        chain = open_suites(self.root, line)
        below_line = self.layout.next_code(opener.last_line)
        if below_line and (clause := self._clause(below_line)):
            header = column_of(self.lines[below_line.first - 1])
            # Above `else:` a comment further right may still end the block before it; in the column of one of the open
            # blocks it does. Any other column is a slip, and the header below is what the author looked at.
            if column <= header or not any(suite.column == column for suite in chain):
                warnings = () if column == header else (f"indented {column}, the {clause.clause} below it {header}",)
                return self._below_header(clause, warnings, clause.clause)
            below = self.root
        else:
            # The code below says how deep the author is; a comment further right than it ends a block that closes here.
            below = self._suite_of_next(chain, below_line.first if below_line else 0)
        if column <= below.column or below is chain[-1]:
            suite = below
        else:
            suite = max((s for s in chain if s.column <= column), key=lambda s: s.column)
        warnings = ()
        if column != suite.column:
            warnings = (f"indented {column}, but the statements it belongs to {suite.column}",)
        return self._in_suite(opener, suite, warnings)

    def _suite_of_next(self, chain: Sequence[Suite], line: int) -> Suite:
        for suite in reversed(chain):
            at = bisect_left(suite.statements, line, key=first_line)
            if at < len(suite.statements) and first_line(suite.statements[at]) == line:
                return suite
        return self.root

    def _clause(self, below: LogicalLine) -> Suite | None:
        """The clause whose header is that line."""
        return self.index.clause(below.word, below.last) if below.word in CLAUSES else None

    def _in_suite(self, opener: Opener, suite: Suite, warnings: tuple[str, ...]) -> Place:
        index = bisect_left(suite.statements, opener.line, key=first_line)
        below = suite.statements[index] if index < len(suite.statements) else None
        above = last_before(suite, opener.line)
        # Without a blank line a comment above a `def` is read as the function's. With one it is a statement's place, or
        # nobody could check a module's names above its functions.
        if isinstance(below, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and self._touches(opener, below):
            return self._about(below, warnings)
        if suite.kind == "class":
            raise PlaceError("a class body is not a place for a check", "Move it to __init__ or __post_init__.")
        # A statement above the docstring would make it an expression that documents nothing.
        if index == 0 and below is not None and is_docstring(below) and suite.kind == "function":
            return self._about(suite.owner, warnings)
        if suite.kind == "module":
            self._after_futures(suite, index)
        # The head of a function is where only its parameters have values: below the docstring, before any statement.
        head = suite.kind == "function" and all(is_docstring(s) for s in suite.statements[:index][:1]) and index <= 1
        return Place(suite, index, opener.last_line, head, isinstance(above, LEAVING), warnings=warnings)

    def _touches(self, opener: Opener, below: ast.stmt) -> bool:
        """Whether only comments stand between the annotation and the statement."""
        between = self.lines[opener.last_line : first_line(below) - 1]
        return all(line.lstrip(" \t\f").startswith("#") for line in between)

    def _after_futures(self, suite: Suite, index: int) -> None:
        docstring = index == 0 and suite.statements and is_docstring(suite.statements[0])
        if docstring or index < self.index.futures_end:
            raise PlaceError(
                "no statement can be put above the module's docstring and __future__ imports", "Move it below them."
            )

    def _below_header(self, suite: Suite, warnings: tuple[str, ...], clause: str | None) -> Place:
        if suite.inline:
            raise PlaceError("the suite is on its header's line", "Give it lines of its own.")
        if suite.kind == "class":
            raise PlaceError("an annotation on a class", "Put it in the method whose entry or return it checks.")
        return Place(suite, 0, suite.header_end, clause=clause, warnings=warnings)

    def _trailing(self, opener: Opener) -> Place:
        line = opener.line
        if suite := self.index.below_header(line):
            if suite.kind == "function":
                return self._about(suite.owner, ())
            return self._below_header(suite, (), None)
        if found := self.index.ending_on(line):
            return self._after_statement(opener, *found)
        raise PlaceError("no statement ends on this line", "Put the annotation on a line of its own.")

    def _after_statement(self, opener: Opener, suite: Suite, index: int) -> Place:
        statement = suite.statements[index]
        if suite.inline:
            raise PlaceError("the suite is on its header's line", "Give it lines of its own.")
        self._no_semicolon(suite, index)
        if suite.kind == "class":
            raise PlaceError("a class body is not a place for a check", "Move it to __init__ or __post_init__.")
        if suite.kind == "module":
            self._after_futures(suite, index + 1)
        if is_docstring(statement) and index == 0 and suite.kind == "function":
            return self._about(suite.owner, ())
        # Behind a `return` the check would never run, and in front of it, it would see what the author did not mean.
        dead = isinstance(statement, LEAVING)
        return Place(suite, index + 1, last_line(statement), False, dead)

    def _no_semicolon(self, suite: Suite, index: int) -> None:
        # A block is whole lines. Put below `a = 1; b = a` it would come after both, and strip could not part them.
        statement = suite.statements[index]
        neighbours = suite.statements[max(0, index - 1) : index] + suite.statements[index + 1 : index + 2]
        lines = {first_line(statement), last_line(statement)}
        if any(first_line(other) in lines or last_line(other) in lines for other in neighbours):
            raise PlaceError("several statements share this line", "Give each statement a line of its own.")

    def _in_brackets(self, opener: Opener) -> Place:
        body = self.index.signature(opener.line)
        if body is not None and body.function is not None and opener.comment.depth == 1:
            parameter = self._parameter(body.function, opener)
            place = self._about(body.function, ())
            return Place(place.suite, place.index, place.after, True, speaks_of=body, parameter=parameter)
        # Deeper than one bracket there is no telling what the comment is about: a default, a type, an element.
        for suite, index in self.index.holding(opener.line):
            if self._ends(suite.statements[index], opener):
                return self._after_statement(opener, suite, index)
        raise PlaceError(
            "no statement can be put inside brackets", "Put the annotation on its own line above the statement."
        )

    def _ends(self, statement: ast.stmt, opener: Opener) -> bool:
        """Whether only the parenthesis around a statement's value stands below the comment: formatters move a trailing
        comment inside when they wrap the value of an assignment."""
        value = getattr(statement, "value", None)
        if not isinstance(value, ast.expr) or opener.comment.own_line or opener.comment.depth != 1:
            return False
        end = characters(self.lines[opener.line - 1], 0, value.end_col_offset)
        return value.end_lineno == opener.line and len(end) <= opener.comment.column

    @staticmethod
    def _parameter(function: Function, opener: Opener) -> str:
        """The parameter that a comment in the signature stands on: the one that ends its line, or begins the next."""
        spans = parameter_spans(function)
        if opener.comment.own_line:
            below = [span for span in spans if span.first > opener.line]
            if below and (len(below) == 1 or below[1].first > below[0].first):
                return below[0].name
            candidates = [span.name for span in below if span.first == below[0].first]
        else:
            here = [span.name for span in spans if span.first <= opener.line <= span.last]
            ends = [span.name for span in spans if span.last == opener.line]
            if len(ends) == 1 and len(here) == 1:
                return ends[0]
            candidates = here
        named = f"; candidates: {', '.join(candidates)}" if candidates else ""
        raise PlaceError(
            f"no single parameter is on this line{named}",
            "Give the parameter a line of its own, or name the target.",
        )


@dataclass(frozen=True)
class Span:
    """A parameter and the lines from its name to the end of its annotation and default."""

    name: str
    first: int
    last: int


def parameter_spans(function: Function) -> list[Span]:
    """Parameters in the order in which they are written."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: dict[str, ast.expr] = {}
    for argument, value in zip(reversed(plain), reversed(arguments.defaults), strict=False):
        defaults[argument.arg] = value
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            defaults[argument.arg] = default
    every = [*plain, *([arguments.vararg] if arguments.vararg else []), *arguments.kwonlyargs]
    every += [arguments.kwarg] if arguments.kwarg else []
    spans = []
    for argument in every:
        end = defaults.get(argument.arg, argument)
        spans.append(Span(argument.arg, argument.lineno, end.end_lineno or argument.lineno))
    return spans
