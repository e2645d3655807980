"""Put the page together. It loads nothing: no script, no font, no picture, and its policy forbids them."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from codegen.document.fold import long_form
from codegen.document.model import Document
from codegen.document.review import subjects
from codegen.drift.code import Code
from codegen.drift.compare import PENDING
from codegen.drift.report import drift
from codegen.plan.progress import progress
from codegen.view.board import decision_graph, shares, step_columns, step_graph
from codegen.view.markdown import document_html

_TEMPLATE = Path(__file__).parent / "templates" / "page.html.j2"


def page(document: Document, code: Code, long: bool = False) -> str:
    """The whole page of one document and the code it describes; with `long`, folded modules in the long form."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    state = progress(document)
    report = drift(document, code)
    shown = [finding for finding in report.findings if finding.code != PENDING]
    reviewed = subjects(document)
    return template.render(
        document=document,
        state=state,
        report=report,
        findings=sorted(shown, key=lambda finding: finding.severity),
        pending=len(report.findings) - len(shown),
        columns=step_columns(state),
        shares=shares(report),
        approved=sum(subject.verdict == "APPROVED" for subject in reviewed.values()),
        subjects=len(reviewed),
        methods=sum(len(step.methods) for step in state.steps),
        step_graph=Markup(step_graph(document, state)),
        decision_graph=Markup(decision_graph(document)),
        body=Markup(document_html(long_form(document) if long else document)),
    )
