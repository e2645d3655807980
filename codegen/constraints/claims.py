"""Everything that documents claim of quantities: lines of decisions and goals, bounds, defaults, types."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codegen.constraints.bounds import bounds_of
from codegen.constraints.language import NotInLanguage, quantities, read_constraint
from codegen.constraints.quantities import Ambiguous, Quantities
from codegen.document.blocks import HeadingBlock, Item, read_blocks
from codegen.document.model import Document
from codegen.drift.section import documented_definitions
from codegen.patterns import Library

DEAD = frozenset({"rejected", "superseded"})
_LINE = re.compile(r"[*_]{0,2}constraint[*_]{0,2}\s*:\s*(.*)", re.DOTALL | re.IGNORECASE)
_OWNER = re.compile(r"(?:\*\*|__)?([DG]-\d+)\b")


@dataclass(frozen=True)
class Written:
    """One `- constraint:` line: the decision or goal that carries it, its text and its line."""

    owner: str
    text: str
    line: int


@dataclass(frozen=True)
class Claim:
    """Something that must hold, over full names. `who` says it for a reader: "D-2", "default of `x`"."""

    who: str
    text: str
    tree: ast.expr
    names: tuple[str, ...]
    document: Document
    line: int
    is_written: bool = False


@dataclass(frozen=True)
class Unread:
    """A constraint line that says nothing, and why."""

    document: Document
    line: int
    message: str
    is_ambiguous: bool


def written(document: Document) -> list[Written]:
    """The constraint lines of a document's decisions and goals; not of decisions that are rejected or superseded."""
    if "constraint" not in document.text.lower():
        return []
    chapters = [section for section in document.sections if section.id in ("1", "3")]
    return [each for chapter in chapters for each in _written_in(document, chapter.line, chapter.line_end)]


def _written_in(document: Document, first: int, last: int) -> Iterator[Written]:
    owner = ""
    for block in read_blocks("".join(document.lines[:last]), first):
        if isinstance(block, HeadingBlock):
            match = _OWNER.match(block.text)
            owner = match[1] if match else "" if block.level <= 3 else owner
        elif isinstance(block, Item):
            match = _OWNER.match(block.text)
            of = match[1] if match and match[1].startswith("G-") else owner
            if of and not _is_dead(document, of):
                for part in _constraints(block):
                    yield Written(of, part, _line_of(document, part, block))


def _is_dead(document: Document, owner: str) -> bool:
    decision = document.decision_by_id.get(owner)
    return decision is not None and decision.status in DEAD


def _constraints(block: Item) -> Iterator[str]:
    """The constraints of a list item: its own field, with a list below it, or fields below an item about something."""
    own = _LINE.match(block.text)
    nested = [(text, _LINE.match(text)) for text in block.nested]
    if own and (own[1].strip() or not nested):
        yield from _parts(own[1])
    for text, found in nested:
        if found or own:
            yield from _parts(found[1] if found else text)


def _parts(text: str) -> list[str]:
    """Several constraints in one line are parted by semicolons; an empty line is one that says nothing."""
    return [part.strip() for part in text.split(";") if part.strip()] or [""]


def _line_of(document: Document, part: str, block: Item) -> int:
    for line in range(block.line, block.line_end + 1):
        if part and part.split("\n")[0] in document.lines[line - 1]:
            return line
    return block.line


def written_claims(documents: Sequence[Document], known: Quantities) -> tuple[list[Claim], list[Unread]]:
    """The constraint lines of documents over full names, and the lines that say nothing."""
    claims: list[Claim] = []
    unread: list[Unread] = []
    for document in documents:
        for line in written(document):
            try:
                constraint = read_constraint(line.text)
                tree = _resolved(constraint.tree, known)
            except NotInLanguage as error:
                unread.append(Unread(document, line.line, f"{line.owner}: {error}", False))
            except Ambiguous as error:
                unread.append(Unread(document, line.line, f"{line.owner}: {error}", True))
            else:
                names = tuple(dict.fromkeys(quantities(tree)))
                claims.append(Claim(line.owner, constraint.text, tree, names, document, line.line, True))
    return claims, unread


class Claims:
    """The claims of some documents together; `unread` are the lines that could not be read."""

    def __init__(self, documents: Sequence[Document], library: Library) -> None:
        self.quantities = Quantities(documents)
        self.claims, self.unread = written_claims(documents, self.quantities)
        for document in documents:
            for documented in documented_definitions(document)[0]:
                for bound in bounds_of(documented, self.quantities, library):
                    who = f"`{documented.full_name}`"
                    tree, names = bound.constraint.tree, bound.constraint.names
                    self.claims.append(Claim(who, bound.text, tree, names, document, bound.line))
        self.claims += self._of_types()

    def _of_types(self) -> Iterator[Claim]:
        for each in self.quantities.by_name.values():
            name = ast.parse(each.name, mode="eval").body
            if each.domain:
                words = ast.Set([ast.Constant(word) for word in each.domain])
                tree: ast.expr = ast.Compare(name, [ast.In()], [words])
                text = f"{each.name} in {{{', '.join(each.domain)}}}"
                yield Claim(f"type of `{each.name}`", text, tree, (each.name,), each.document, each.line)
            if each.default is not None:
                default = ast.parse(repr(each.default), mode="eval").body
                tree = ast.Compare(name, [ast.Eq()], [default])
                text = f"{each.name} == {each.default!r}"
                yield Claim(f"default of `{each.name}`", text, tree, (each.name,), each.document, each.line)


def _resolved(tree: ast.expr, known: Quantities) -> ast.expr:
    return _Resolved(known).visit(ast.parse(ast.unparse(tree), mode="eval").body)


class _Resolved(ast.NodeTransformer):
    def __init__(self, known: Quantities) -> None:
        self.known = known

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(each) for each in node.args]
        return node

    def visit_Set(self, node: ast.Set) -> ast.expr:
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._full(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self._full(node)

    def _full(self, node: ast.expr) -> ast.expr:
        return ast.parse(self.known.resolve(ast.unparse(node)), mode="eval").body
