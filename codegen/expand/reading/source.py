"""A Python source file as lines of text that go back to the same bytes.

Invariant: `Source.encode(lines)` of unchanged lines gives the original bytes: byte order mark, encoding cookie,
line endings, form feeds and a missing final newline are kept. What cannot be kept faithfully (undecodable bytes,
NUL, a lone carriage return) is refused with `Unreadable`, never repaired.
"""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from dataclasses import dataclass

_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_LONE_RETURN = re.compile(r"\r(?!\n)")


class Unreadable(Exception):
    """The file cannot be edited faithfully; the message says why, `fix` what to do."""

    def __init__(self, reason: str, fix: str, line: int = 1) -> None:
        super().__init__(reason)
        self.fix = fix
        self.line = line


@dataclass(frozen=True)
class Source:
    """Text of one file. `lines` keep their endings; `newline` is what an inserted line gets by default."""

    lines: tuple[str, ...]
    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"

    @property
    def text(self) -> str:
        """The whole text with its own line endings."""
        return "".join(self.lines)

    def encode(self, text: str) -> bytes:
        """Bytes of `text` in this file's encoding. Raises Unreadable where a character has none."""
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            line = text.count("\n", 0, error.start) + 1
            raise Unreadable(
                f"{text[error.start]!r} cannot be written in this file's encoding, {self.encoding}",
                "Write the annotation with characters of that encoding.",
                line,
            ) from error


def split_lines(text: str) -> tuple[str, ...]:
    """Lines with their endings; only a line feed ends a line (form feeds and others are text, as for Python)."""
    return tuple(_LINE.findall(text))


def read_source(data: bytes) -> Source:
    """Decode a file as Python does. Raises Unreadable."""
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        if "missing encoding" not in str(error):
            raise Unreadable(str(error), "Correct the coding line.") from error
        encoding = "utf-8"
    if bom:
        encoding = "utf-8"
    try:
        text = data[len(bom) :].decode(encoding)
    except UnicodeDecodeError as error:
        raise Unreadable(
            f"byte {data[len(bom) + error.start]:#04x} is not {encoding}",
            "Correct the byte or declare the file's encoding.",
            data.count(b"\n", 0, error.start) + 1,
        ) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise Unreadable("NUL character", "Remove it: Python refuses such a file.", line)
    if lone := _LONE_RETURN.search(text):
        line = text.count("\n", 0, lone.start()) + 1
        raise Unreadable("a carriage return without line feed", "Convert the file to \\n or \\r\\n.", line)
    lines = split_lines(text)
    newline = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    source = Source(lines, encoding, bom, newline)
    if source.encode(text) != data:
        raise Unreadable(f"{encoding} does not give the same bytes back", "Convert the file to UTF-8.")
    return source


def ending(line: str) -> str:
    """The line's own ending: "", a line feed, or carriage return and line feed."""
    if line.endswith("\r\n"):
        return "\r\n"
    return "\n" if line.endswith("\n") else ""


def indent_of(line: str) -> str:
    """Leading blanks of a line."""
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def column_of(line: str) -> int:
    """Column of the first character as the tokenizer counts it: tabs to multiples of 8, form feeds reset."""
    column = 0
    for character in indent_of(line):
        if character == "\t":
            column = (column // 8 + 1) * 8
        elif character == "\f":
            column = 0
        else:
            column += 1
    return column
