"""The supervised run of one step: brief, agent, checks, findings back, at most K rounds; then review or commit.

The project is not written to before the step verifies. Every way out, an exception included, removes the tree and
leaves a record in the run's folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from codegen.agents.around import moved, surroundings
from codegen.agents.deliver import as_commit, for_review
from codegen.agents.environment import in_tree
from codegen.agents.guard import hold, printable
from codegen.agents.judge import diff_size, judge, own_changes, patch
from codegen.agents.message import message
from codegen.agents.process import Ended, Limits, run_agent
from codegen.agents.ready import require_tests, require_untouched
from codegen.agents.record import Round, Run, close_abandoned, new_folder, now, step_folder, write_run
from codegen.agents.tree import Tree, agent_tree
from codegen.diagnostics import Finding, UsageError
from codegen.document.store import document_lock, replace_file, update_document
from codegen.patterns import load_library
from codegen.proof.judge import Proof
from codegen.workflow.brief import brief
from codegen.workflow.evidence import test_commands
from codegen.workflow.git import Git
from codegen.workflow.ledger import finished, started
from codegen.workflow.review import review_digest
from codegen.workflow.scaffold import scaffold
from codegen.workflow.sealing import sealed_cells
from codegen.workflow.target import Target, find_target
from codegen.workflow.verify import code_environment

Say = Callable[[str], None]
_TAIL = 300


@dataclass(frozen=True)
class Order:
    """What the caller wants. `allow` are codes of findings that shall not stop the step; they stay in the record."""

    agent: tuple[str, ...]
    rounds: int = 3
    limits: Limits = field(default_factory=Limits)
    allow: frozenset[str] = frozenset()
    commit: bool = False
    unreviewed: bool = False
    scaffold: bool = True


def run_step(target: Target, order: Order, say: Say) -> tuple[Run, Path]:
    """Let an agent implement a step. The record, and the folder it is in.

    UsageError: the step cannot be started (NotReady), the project has changes in its way, the agent cannot be started,
    or the project moved on while it worked (NotDelivered).
    """
    if not 1 <= order.rounds <= 20:
        raise UsageError(f"--rounds {order.rounds}: give 1 to 20")
    git = Git(target.root)
    base = require_untouched(target, git)
    require_tests(target)
    started(target.document, target.step.number, order.unreviewed)  # refuses before anything is made
    parent = step_folder(target.root, target.document.id, target.step.number)
    parent.parent.mkdir(parents=True, exist_ok=True)
    with document_lock(parent, f"step run {target.step.number}"):
        close_abandoned(target.root, target.document.id, target.step.number)
        folder = new_folder(target.root, target.document.id, target.step.number)
        run = Run(target.document.id, target.step.number, target.step.title, list(order.agent), base, now())
        write_run(folder, run)
        try:
            with agent_tree(git, base) as tree:
                _Work(target, git, tree, order, run, folder, say, surroundings(git)).do()
        except BaseException:  # Ctrl-C too: the record must not say that the run goes on
            run.outcome = "stopped"
            raise
        finally:
            run.ended = now()
            write_run(folder, run)
    return run, folder


@dataclass
class _Work:
    """One run in its tree."""

    target: Target
    git: Git
    tree: Tree
    order: Order
    run: Run
    folder: Path
    say: Say
    before: dict[str, str]
    proof: Proof | None = None

    def do(self) -> None:
        """All rounds, and the delivery when one of them verifies."""
        inner = find_target(self.target.step.number, str(self.tree.root / self.target.document_path), self.tree.root)
        number = inner.step.number
        update_document(inner.document.path, lambda document: started(document, number, self.order.unreviewed))
        inner = inner.again()
        text = brief(inner, load_library(inner.root)).text
        self._write(inner.brief_path, text)
        scaffolded = self._scaffold(inner)
        kept = {path: (inner.root / path).read_bytes() for path in (inner.document_path, inner.brief_path)}
        findings: list[Finding] = []
        output = ""
        for at in range(1, self.order.rounds + 1):
            prompt = message(
                at,
                self.order.rounds,
                text,
                inner.step.files,
                test_commands(inner),
                findings,
                output,
                scaffolded,
            )
            done, output = self._round(at, prompt, inner, kept)
            self.run.rounds.append(done)
            self.run.changed = diff_size(self.tree, inner)
            replace_file(self.folder / "work.patch", patch(self.tree, inner).encode("utf-8", "surrogateescape"))
            write_run(self.folder, self.run)
            findings = done.findings
            if done.stopped:
                break
            if not done.errors:
                self._deliver(inner, number)
                return
        self.run.warnings += moved(self.before, surroundings(self.git))
        self.run.outcome = "failed"

    def _round(self, at: int, prompt: str, inner: Target, kept: dict[str, bytes]) -> tuple[Round, str]:
        """Call the agent, hold it to its files, judge. The round, and what the tests printed."""
        replace_file(self.folder / f"round_{at}.prompt.md", prompt.encode("utf-8", "backslashreplace"))
        self.say(f"round {at} of {self.order.rounds}: {self.order.agent[0]}")
        transcript = self.folder / f"round_{at}.txt"
        environment = in_tree(code_environment(inner.root), self.target.root, inner.root)
        ended = run_agent(
            self.order.agent, prompt, inner.root, transcript, self.order.limits, environment, self.tree.mark
        )
        findings, reverted = hold(self.tree, inner, kept)
        done = Round(at, round(ended.seconds, 3), ended.status, ended.output_bytes, ended.stopped, reverted=reverted)
        begun = time.monotonic()
        lines: list[str] = []
        failure = _failure(ended, self.order.limits, inner, transcript)
        if failure is not None:
            findings.append(failure)
        else:
            judged, self.proof = judge(self.tree, inner, self.target.root, self.order.allow, lines.append)
            findings += judged
            runs = self.proof.runs if self.proof else ()
            done.tests = [{"command": run.command, "status": run.status} for run in runs]
            hold(self.tree, inner, kept)  # what the tests left behind
        done.findings = [_inside(finding, inner.root) for finding in findings]
        done.check_seconds = round(time.monotonic() - begun, 3)
        output = "\n".join(lines)
        if lines:
            replace_file(self.folder / f"round_{at}.tests.txt", f"{output}\n".encode("utf-8", "backslashreplace"))
        errors = done.errors
        first = f": {errors[0].code} {errors[0].message}" if errors else ""
        count = f"{len(errors)} error{'s' * (len(errors) != 1)}"
        self.say(f"round {at}: {ended.seconds:.0f} s, {len(reverted)} undone, {count}{first}")
        return done, output

    def _scaffold(self, inner: Target) -> bool:
        """Write what the step lacks, expanded. UsageError: Section 5 holds an annotation that cannot be expanded."""
        if not self.order.scaffold:
            return False
        result = scaffold(inner)
        if result.findings:
            first = _inside(result.findings[0], inner.root)
            raise UsageError(
                f"Step {inner.step.number} cannot be scaffolded: {first.path}:{first.line}: {first.message}; correct "
                "Section 5, or give --no-scaffold"
            )
        return bool(result.written)

    def _deliver(self, inner: Target, number: int) -> None:
        changed = moved(self.before, surroundings(self.git))
        self.run.warnings += changed
        if changed and self.order.commit:
            # A commit runs the project's hooks and rests on its settings: nobody has looked at the new ones yet.
            self.run.outcome = "held"
            return
        cells = sealed_cells(inner, self.proof) if self.proof else None
        seal = review_digest(inner)
        update_document(inner.document.path, lambda document: finished(document, number, cells, seal))
        inner = inner.again()
        paths = [*own_changes(self.tree, inner), inner.document_path, inner.brief_path]
        if self.order.commit:
            self.run.commit = as_commit(inner, self.git, self.tree, paths)
            self.run.outcome = "committed"
            return
        for_review(self.target, self.git, self.tree, paths, self.folder / "work.patch")
        self.run.outcome = "review"

    def _write(self, path: str, text: str) -> None:
        file = self.tree.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, text.encode("utf-8"))


def _failure(ended: Ended, limits: Limits, target: Target, transcript: Path) -> Finding | None:
    """Why the agent's round cannot be judged."""
    path = target.document_path
    if ended.stopped == "time":
        message = f"the agent did not end within {limits.seconds:g} s and was ended"
        return Finding(path, 0, 0, "RUN002", message, fix="Give it more time with --timeout, or a smaller step.")
    if ended.stopped == "output":
        message = f"the agent printed more than {limits.output} bytes and was ended"
        return Finding(path, 0, 0, "RUN006", message, fix="See its transcript; --output raises the limit.")
    if ended.status:
        how = f"was killed by signal {-ended.status}" if ended.status < 0 else f"ended with status {ended.status}"
        last = transcript.read_bytes()[-_TAIL:].decode("utf-8", "replace").strip().rpartition("\n")[2].strip()
        said = f"; its last words: {printable(last)}" if last else "; it said nothing"
        fix = "Go on from what is there, and end with status 0."
        return Finding(path, 0, 0, "RUN001", f"the agent {how}{said}", fix=fix)
    return None


def _inside(finding: Finding, root: Path) -> Finding:
    """The finding with its path relative to the project: the tree it was found in is thrown away."""
    path = Path(finding.path)
    shown = path.relative_to(root).as_posix() if path.is_absolute() and path.is_relative_to(root) else finding.path
    return replace(finding, path=shown, message=finding.message.replace(f"{root}/", ""))
