"""What the server offers, as plain functions of a project: facts in small replies, and one action, a step's status.

A status is set as the command line sets it: a step that does not verify is not DONE, and one that waits does not start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from codegen.diagnostics import Finding, UsageError, summary
from codegen.document.codebase import Codebase
from codegen.document.lint import lint
from codegen.document.locate import find_document, find_documents
from codegen.document.model import Document
from codegen.document.parse import read_document
from codegen.document.store import document_lock, replace_file, update_document
from codegen.drift.code import Code
from codegen.drift.report import drift
from codegen.expand.driver.request import Request, execute
from codegen.mcp.pages import page_of, short, text_page
from codegen.patterns import load_library
from codegen.plan.progress import progress
from codegen.workflow import FAILURE_KINDS
from codegen.workflow.brief import brief
from codegen.workflow.failure import diagnose, recorded_failure
from codegen.workflow.ledger import finished, started
from codegen.workflow.target import find_target
from codegen.workflow.verify import verify

Check = Callable[[Document], Iterable[Finding]]
Reply = dict[str, Any]
Status = Literal["IN_PROGRESS", "DONE", "FAILED"]
_TAIL = 2000


@dataclass(frozen=True)
class Tools:
    """The tools of one project. `annotations` judges the annotations of a document."""

    root: Path
    annotations: Check

    def lint(self, document: str | None = None, page: int = 1) -> Reply:
        """Findings of the design documents (or of one, by its id): structure, references, APIs, plan."""
        found = [
            finding
            for each in self._documents(document)
            for finding in lint(each, Codebase(self.root), self.annotations)
        ]
        return _findings(found, page)

    def status(self, document: str | None = None, page: int = 1) -> Reply:
        """How far each step is: status, methods done, what it waits for."""
        rows = [
            {
                "document": found.id,
                "step": step.number,
                "title": short(step.title),
                "status": step.status,
                "methods": len(step.methods),
                "done": step.done,
                "waits_for": list(step.waits_for),
            }
            for found in map(progress, self._documents(document))
            for step in found.steps
        ]
        return page_of(rows, page)

    def next_step(self, document: str | None = None) -> Reply:
        """The step to do next, and the others that are ready."""
        found = progress(read_document(find_document(document, self.root)))
        step = next((step for step in found.steps if step.number == found.next), None)
        if step is None:
            return {"document": found.id, "next": None, "ready": []}
        methods = [{"name": m.name, "section": m.section, "status": m.status} for m in step.methods]
        shown = {"number": step.number, "title": short(step.title), "status": step.status, "methods": methods}
        return {"document": found.id, "next": shown, "ready": list(found.ready)}

    def brief(self, step: int, document: str | None = None, page: int = 1) -> Reply:
        """All that is needed to implement a step: purpose, files, tests, signatures it builds on, what to write."""
        target = find_target(step, document, self.root)
        return text_page(brief(target, load_library(self.root)).text, page)

    def set_status(
        self,
        step: int,
        status: Status,
        document: str | None = None,
        kind: str | None = None,
        reason: str | None = None,
    ) -> Reply:
        """Set a step IN_PROGRESS (writes its brief), DONE (only when it verifies) or FAILED (with kind and reason).

        Kinds of failure are code-bug, design-gap and doc-error.
        """
        target = find_target(step, document, self.root)
        path = target.document.path
        if status == "IN_PROGRESS":
            update_document(path, lambda found: started(found, step), f"mcp: step {step}")
            target = target.again()
            file = self.root / target.brief_path
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, brief(target, load_library(self.root)).text.encode("utf-8"))
            return {"step": step, "status": status, "brief": target.brief_path}
        if status == "FAILED":
            if kind not in FAILURE_KINDS or not reason:
                raise UsageError(f"FAILED needs a reason and a kind, one of {', '.join(FAILURE_KINDS)}")
            failure = diagnose(target, kind, [])
            update_document(path, lambda found: recorded_failure(found, step, [], failure, reason), f"mcp: step {step}")
            return {"step": step, "status": status, **asdict(failure)}
        if status != "DONE":
            raise UsageError(f"{status!r} cannot be set; give IN_PROGRESS, DONE or FAILED")
        said: list[str] = []
        with document_lock(path, f"mcp: step {step}"):
            target = target.again()
            result = verify(target, said.append)
            if result.passed:
                update_document(path, lambda found: finished(found, step))
        now = "DONE" if result.passed else target.step.status
        reply = {"step": step, "status": now, **_findings(result.findings, 1)}
        return reply if result.passed else {**reply, "output": "\n".join(said)[-_TAIL:]}

    def expand_check(self, paths: list[str] | None = None, page: int = 1) -> Reply:
        """Annotations whose generated code is missing, stale or edited, in files or folders (default: all roots)."""
        chosen = paths or [root for each in self._documents(None) for root in each.front.roots]
        for each in chosen:
            if not (self.root / each).resolve().is_relative_to(self.root.resolve()):
                raise UsageError(f"{each!r} lies outside of the project; give paths below it")
        request = Request(paths=tuple(dict.fromkeys(str(self.root / each) for each in chosen)), check=True)
        return _findings([f for outcome in execute(request) for f in request.findings_of(outcome.report)], page)

    def drift(self, document: str | None = None, page: int = 1) -> Reply:
        """Where Section 5 and the code differ, and how much of the code Section 5 covers."""
        reports = [drift(each, Code(self.root)) for each in self._documents(document)]
        coverage = {each.document: f"{each.coverage.covered_count}/{each.coverage.total}" for each in reports}
        return {"coverage": coverage, **_findings([f for each in reports for f in each.findings], page)}

    def _documents(self, name: str | None) -> list[Document]:
        return find_documents([name] if name else [], self.root)


def _findings(findings: Iterable[Finding], page: int) -> Reply:
    found = list(findings)
    rows = [
        {
            key: short(value) if isinstance(value, str) else value
            for key, value in asdict(f).items()
            if value is not None
        }
        for f in found
    ]
    return {"summary": summary(found), **page_of(rows, page)}
