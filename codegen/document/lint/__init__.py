"""Judge a design document: stable codes, source lines, fix hints. Pure: the text is not changed here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from codegen.diagnostics import Finding
from codegen.document.codebase import Codebase
from codegen.document.lint.apis import check_apis
from codegen.document.lint.codes import CODES
from codegen.document.lint.links import check_links
from codegen.document.lint.steps import check_steps
from codegen.document.lint.structure import check_structure
from codegen.document.lint.symbols import check_symbols
from codegen.document.model import Document
from codegen.document.references import References

__all__ = ["CODES", "lint"]


def lint(
    document: Document,
    code: Codebase | None = None,
    annotations: Callable[[Document], Iterable[Finding]] | None = None,
    references: References | None = None,
) -> list[Finding]:
    """All findings in the order of their lines.

    With `code`, symbols named in the document are looked up in it; with `annotations`, that judges the annotations
    in the fences of Section 5 (codes API005 to API007). `references` are those of the document, where the caller has
    them already.
    """
    references = references or References(document)
    found = [
        *check_structure(document),
        *check_apis(document, references),
        *check_links(document, references),
        *check_steps(document, references),
    ]
    if code is not None:
        found += check_symbols(document, references, code)
    if annotations is not None:
        found += annotations(document)
    return sorted(set(found), key=lambda finding: (finding.line, finding.code, finding.message))
