"""Edits of one definition shown in a fence, as line edits of the document."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.document.edit import LineEdit
from codegen.document.model import Document
from codegen.drift.bodies import loaded_names
from codegen.drift.section import Documented

_METHODS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class FenceEdits:
    """Edits of one definition in its fence, by lines of the document."""

    document: Document
    documented: Documented

    @property
    def _node_lines(self) -> tuple[int, int]:
        node = self.documented.definition.node
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        return first, node.end_lineno or node.lineno

    def whole(self, lines: list[str]) -> LineEdit:
        """Replace all of it, annotations below its last statement included."""
        first, last = self._node_lines
        return self._edit(first, max(last, *(line for line in self._promise_lines())), lines)

    def signature(self, decorators: list[str], lines: list[str], renamed: dict[str, str]) -> LineEdit:
        """Replace decorators and signature; the body stays, in the same line where it is there, but for parameters that
        are `renamed` (old name → new name)."""
        first, _ = self._node_lines
        body = self.documented.definition.node.body[0]
        end = self._header_end()
        if body.lineno <= end:
            source = self._renamed(body.lineno, renamed)
            lines = [*lines[:-1], f"{lines[-1]} {source.encode()[body.col_offset :].decode()}"]
        return self._edit(first, end, [*decorators, *lines])

    def rename_in_body(self, renamed: dict[str, str]) -> Iterator[LineEdit]:
        """Rename parameters where the body below the signature reads them."""
        at = self.documented.fence_line
        for line in sorted({node.lineno for node in self._reads(renamed)}):
            if line > self._header_end():
                indent = self.document.lines[at + line - 1].rstrip("\r\n").removesuffix(self._source(line))
                yield LineEdit(at + line, at + line, (indent + self._renamed(line, renamed),))

    def _renamed(self, line: int, renamed: dict[str, str]) -> str:
        # column offsets count bytes; from the right, so that those on the left stay true
        text = self._source(line).encode()
        for node in sorted(self._reads(renamed), key=lambda node: -node.col_offset):
            if node.lineno == line:
                text = text[: node.col_offset] + renamed[node.id].encode() + text[node.end_col_offset :]
        return text.decode()

    def _reads(self, names: dict[str, str]) -> list[ast.Name]:
        return [node for node in loaded_names(self.documented.definition) if node.id in names]

    def class_head(self, lines: list[str], constructor: list[str]) -> Iterator[LineEdit]:
        """Replace decorators, head and fields, unless methods stand between the fields: those are the author's."""
        definition = self.documented.definition
        first, last = self._node_lines
        end = max([self._header_end(), *(field.line for field in definition.fields)])
        methods = [
            each.lineno for each in definition.node.body if each.lineno <= end and hasattr(each, "decorator_list")
        ]
        if methods:
            return
        elided = definition.elided
        if not elided and lines[-1].strip() == "...":
            lines = lines[:-1]
        if constructor:
            lines = [line for line in lines if line.strip() != "..."]
            has_fields = not lines[-1].endswith(":")
            lines += [*([""] if has_fields else []), *(f"    {line}" if line else "" for line in constructor)]
            if not elided:
                lines.append("")
        yield self._edit(first, last if elided else end, lines)

    def _promise_lines(self) -> list[int]:
        found = self.documented.annotated.promises.get(self.documented.key, ())
        return [0, *(promise.last_line for promise in found)]

    def _header_end(self) -> int:
        """The line in the fence where the definition's head ends with a colon."""
        node = self.documented.definition.node
        line = node.lineno
        while line < node.body[0].lineno and not self._source(line).split("#")[0].rstrip().endswith(":"):
            line += 1
        return line

    def _source(self, line: int) -> str:
        return self.documented.fence_lines[line - 1]

    def _edit(self, first: int, last: int, lines: list[str]) -> LineEdit:
        indent = " " * self.documented.definition.node.col_offset
        at = self.documented.fence_line
        outer = self.document.lines[at - 1]
        outer = outer[: len(outer) - len(outer.lstrip())]
        return LineEdit(at + first, at + last, tuple(f"{outer}{indent}{line}" if line else "" for line in lines))
