"""Markdown as a flat row of blocks, each with its 1-based source lines.

Only block structure is parsed (markdown-it-py, CommonMark with tables); text inside blocks is decoded by `plain`,
which undoes what a formatter may do to it: wrapping and backslash escapes. What stands in a fence, a quote or a raw
HTML block is never structure.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from codegen.document.model import Fence, Table, TableRow

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
BLANKS = re.compile(r"[ \t\r\n]+")
ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z]\w{1,31});")
HEADING_MARK = re.compile(r"#{1,6}(?=[ \t\r\n]|$)")
CODE_SPAN = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
DELIMITER = re.compile(r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")


@dataclass(frozen=True)
class HeadingBlock:
    level: int
    text: str
    line: int
    line_end: int


@dataclass(frozen=True)
class Paragraph:
    text: str
    line: int
    line_end: int


@dataclass
class Item:
    """A list item of the outermost list: its own text and the texts of everything nested in it.

    `line_end` is its last line that is not blank.
    """

    line: int
    line_end: int
    text: str = ""
    nested: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Html:
    text: str
    line: int
    line_end: int


Block = HeadingBlock | Paragraph | Item | Html | Fence | Table


def split_lines(text: str) -> list[str]:
    """Lines with their ends, cut where Markdown cuts: LF, CRLF or CR, and no Unicode separator."""
    return LINE.findall(text)


def plain(text: str) -> str:
    """Inline text as it is meant: blanks folded; outside code spans, backslash escapes and entities undone."""
    folded = BLANKS.sub(" ", text).strip()
    if "\\" not in folded and "&" not in folded and "``" not in folded:
        return folded
    parts: list[str] = []
    end = 0
    for span in CODE_SPAN.finditer(folded):
        ticks, code = span.groups()
        if code[0] == code[-1] == " " and code.strip():
            code = code[1:-1]
        parts += [_unescaped(folded[end : span.start()]), ticks + code + ticks]
        end = span.end()
    parts.append(_unescaped(folded[end:]))
    return "".join(parts)


def _unescaped(text: str) -> str:
    return ESCAPE.sub(lambda found: found.group(1) or html.unescape(found.group()), text)


def read_blocks(text: str, first_line: int = 1) -> list[Block]:
    """The blocks of `text` in order. Lines before `first_line` are left out (the front matter).

    A heading mark at the start of a line ends every block but a fence and raw HTML, so the text is read in pieces
    from heading to heading, and a piece that was read before is not read again.
    """
    lines = split_lines(text)
    starts = [at for at in range(first_line, len(lines)) if HEADING_MARK.match(lines[at])]
    bounds = [first_line - 1, *starts, len(lines)]
    blocks: list[Block] = []
    at = 0
    while at < len(bounds) - 1:
        take = 1
        piece = _piece("".join(lines[bounds[at] : bounds[at + 1]]))
        while piece.open and at + take < len(bounds) - 1:
            take = min(2 * take, len(bounds) - 1 - at)
            piece = _piece("".join(lines[bounds[at] : bounds[at + take]]))
        blocks += [moved(block, bounds[at]) for block in piece.blocks]
        at += take
    return blocks


@dataclass(frozen=True)
class _Piece:
    """Blocks counted from line 1; `open` when the last of them may go on after the piece."""

    blocks: tuple[Block, ...]
    open: bool


@lru_cache(maxsize=50_000)
def _piece(text: str) -> _Piece:
    lines = split_lines(text)
    blocks = tuple(_blocks(_tokens(text), lines))
    ends = max((b.line_end for b in blocks if isinstance(b, Html)), default=0) >= len(lines)
    return _Piece(blocks, ends or any(isinstance(b, Fence) and not b.closed for b in blocks))


START = r"^[ \t>*+\-\d.)]*"
"""What may stand before a block in its first line: the marks of the lists and quotes around it."""
RULED = re.compile(r"^[ \t]*[-=*_+>\d.)][-=*_+>\d.) \t\r]*$", re.MULTILINE)
NEEDED = {
    "table": re.compile(r"\|"),
    "blockquote": re.compile(rf"{START}>", re.MULTILINE),
    "html_block": re.compile(rf"{START}<", re.MULTILINE),
    "reference": re.compile(rf"{START}\[", re.MULTILINE),
    "hr": RULED,
    "lheading": RULED,
}


@cache
def _parser(unneeded: tuple[str, ...]) -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table").disable(list(unneeded))


def _tokens(body: str) -> list[Token]:
    """The block tokens of a text. Rules whose mark the text does not have are not tried: that halves the time."""
    text = body.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    parser = _parser(tuple(rule for rule, mark in NEEDED.items() if not mark.search(text)))
    state = StateCore(text, parser, {})
    parser.block.parse(text, parser, state.env, state.tokens)
    return state.tokens


def _blocks(tokens: list[Token], lines: list[str]) -> Iterator[Block]:
    quote = list_depth = 0
    item: Item | None = None
    at = 0
    while at < len(tokens):
        token = tokens[at]
        kind = token.type
        first, last = (token.map[0] + 1, token.map[1]) if token.map else (0, 0)
        if kind in ("blockquote_open", "blockquote_close"):
            quote += token.nesting
        elif kind in ("bullet_list_open", "ordered_list_open", "bullet_list_close", "ordered_list_close"):
            list_depth += token.nesting
        elif kind == "list_item_open" and list_depth == 1 and not quote:
            while last > first and not lines[last - 1].strip():
                last -= 1
            item = Item(first, last)
        elif kind == "list_item_close" and list_depth == 1 and not quote and item:
            yield from _with_glued_table(item, lines)
            item = None
        elif kind == "inline" and item is not None:
            _add_text(item, plain(token.content), own=list_depth == 1)
        elif quote:
            pass
        elif kind == "heading_open" and item is None:
            yield HeadingBlock(int(token.tag[1]), plain(tokens[at + 1].content), first, last)
            at += 1
        elif kind == "paragraph_open" and item is None:
            yield Paragraph(plain(tokens[at + 1].content), first, last)
            at += 1
        elif kind == "fence":
            language = token.info.strip().split(" ")[0].lower()
            yield Fence(language, token.content, first, last, _closed(token, lines, last))
        elif kind == "code_block":
            yield Fence("", token.content, first, last)
        elif kind == "html_block" and item is None:
            yield Html(token.content.strip(), first, last)
        elif kind == "table_open" and item is None:
            end = next(i for i in range(at, len(tokens)) if tokens[i].type == "table_close")
            yield _table(tokens[at:end], first, last)
            at = end
        at += 1


def _add_text(item: Item, text: str, own: bool) -> None:
    if own and not item.nested and not item.text:
        item.text = text
    else:
        item.nested.append(text)


def _with_glued_table(item: Item, lines: list[str]) -> Iterator[Block]:
    """The item, and the table that follows it without a blank line.

    CommonMark reads such a table as more text of the item; we read what the author meant, and lint says so.
    """
    rows = range(item.line + 1, item.line_end)
    start = next((n for n in rows if lines[n - 1].startswith("|") and DELIMITER.match(lines[n])), 0)
    if not start:
        yield item
        return
    head, tail = "".join(lines[item.line - 1 : start - 1]), "".join(lines[start - 1 : item.line_end])
    for part, offset in ((head, item.line - 1), (tail, start - 1)):
        for block in _blocks(_tokens(part), split_lines(part)):
            if not isinstance(block, Fence):
                yield moved(block, offset)


def moved(block: Block, by: int) -> Block:
    """The block `by` lines further down."""
    line, end = block.line + by, block.line_end + by
    if isinstance(block, HeadingBlock):
        return HeadingBlock(block.level, block.text, line, end)
    if isinstance(block, Fence):
        return Fence(block.language, block.code, line, end, block.closed)
    if isinstance(block, Table):
        return Table(block.columns, line, end, tuple(TableRow(row.cells, row.line + by) for row in block.rows))
    if isinstance(block, Item):
        return Item(line, end, block.text, block.nested)
    return type(block)(block.text, line, end)


def _closed(fence: Token, lines: list[str], last: int) -> bool:
    tail = lines[last - 1].strip().lstrip("> \t") if 0 < last <= len(lines) else ""
    assert fence.map is not None
    return last - fence.map[0] > 1 and tail.startswith(fence.markup) and not tail.strip(fence.markup[0])


def _table(tokens: list[Token], first: int, last: int) -> Table:
    rows: list[tuple[int, list[str]]] = []
    for token in tokens:
        if token.type == "tr_open":
            assert token.map is not None
            rows.append((token.map[0] + 1, []))
        elif token.type == "inline":
            rows[-1][1].append(plain(token.content))
    columns = tuple(cell.lower() for cell in rows[0][1]) if rows else ()
    body = tuple(TableRow(tuple(cells), line) for line, cells in rows[1:])
    return Table(columns, first, last, body)
