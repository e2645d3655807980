"""A design document as HTML: raw HTML escaped, headings with anchors, links only where they lead somewhere safe."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from codegen.document.model import Document

_NUMBER = re.compile(r"(\d+(?:\.\d+)*)\.?\s")
_DECISION = re.compile(r"(D-\d+)\b")
_STEP = re.compile(r"Step (\d+)\b", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def document_html(document: Document) -> str:
    """The document below its front matter. A mermaid fence stays text: the page draws its own graphs."""
    body = "".join(document.lines[document.front.line_end :])
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(_COMMENT.sub("", body))
    _anchor(tokens)
    rendered: str = parser.renderer.render(tokens, parser.options, {})
    return rendered.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


def anchor(text: str) -> str:
    """The anchor of a heading, "" where it has none: `s-5.1.2`, `d-3`, `step-4`."""
    for pattern, prefix in ((_NUMBER, "s-"), (_DECISION, ""), (_STEP, "step-")):
        match = pattern.match(f"{text} ")
        if match:
            return prefix + match[1].lower()
    return ""


def _anchor(tokens: Sequence[Token]) -> None:
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            ident = anchor(tokens[at + 1].content)
            if ident:
                token.attrSet("id", ident)
