"""What each verb of `codegen step` does: calls the workflow and prints."""

from __future__ import annotations

import argparse
import getpass
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from codegen.diagnostics import Finding, UsageError, exit_status, render, summary
from codegen.document.edit import find_step
from codegen.document.locate import find_document, find_documents, project_root
from codegen.document.model import Document, Step
from codegen.document.parse import parse_document, read_document
from codegen.document.store import document_lock, replace_file, update_document, write_document
from codegen.patterns import load_library
from codegen.plan.progress import progress
from codegen.workflow.audit import audit
from codegen.workflow.brief import brief, stale_briefs
from codegen.workflow.claims import claim_message, steps_of, unclaimed
from codegen.workflow.commit import Committed, commit_fix, commit_part, commit_step, steps_of_changes
from codegen.workflow.config import load_config
from codegen.workflow.failure import diagnose, opened, recorded_failure
from codegen.workflow.gaps import open_gap, withdrawn
from codegen.workflow.git import Git, GitError
from codegen.workflow.ledger import NotReady, adopted, finished, started, with_commits, with_field
from codegen.workflow.records import set_record_field
from codegen.workflow.review import FIELD, method_reviews, record_text, recorded, review_digest
from codegen.workflow.rollback import roll_back, rollback_plan
from codegen.workflow.scaffold import scaffold
from codegen.workflow.sealing import seal_findings, sealed_cells
from codegen.workflow.strays import accepted, strays
from codegen.workflow.target import Target, find_target
from codegen.workflow.trail import StepCommit, standing_commits, step_commits
from codegen.workflow.verify import check, verify


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _root() -> Path:
    return project_root(Path.cwd()).resolve()


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def next_step(args: argparse.Namespace) -> int:
    root = _root()
    found = progress(read_document(find_document(args.doc, root)))
    step = next((step for step in found.steps if step.number == found.next), None)
    if args.json:
        _print_json({"document": found.id, "next": step and asdict(step), "ready": list(found.ready)})
    elif step is None:
        waiting = [each for each in found.steps if each.status != "DONE"]
        print("all steps are DONE" if not waiting else f"nothing is ready: {len(waiting)} steps wait or are blocked")
    else:
        print(f"Step {step.number}: {step.title} ({step.status}, {step.done}/{len(step.methods)} methods DONE)")
        for method in step.methods:
            print(f"  {method.status:<11} {method.section:<8} {method.name}")
    return 0


def start_step(args: argparse.Namespace) -> int:
    target = find_target(args.number, args.doc)
    update_document(
        target.document.path,
        lambda document: started(document, args.number, args.unreviewed),
        f"step start {args.number}",
    )
    return _write_brief(target.again())


def _write_brief(target: Target) -> int:
    made = brief(target, load_library(target.root))
    path = target.root / target.brief_path
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, made.text.encode("utf-8"))
    note = "" if made.shortened == "whole" else f", shortened: {made.shortened}"
    print(f"{target.brief_path}: about {made.tokens} of {made.budget} tokens{note}")
    if not made.fits:
        _say(f"codegen: the brief does not fit; cut Step {target.step.number} in two, or raise brief-tokens")
        return 1
    return 0


def brief_step(args: argparse.Namespace) -> int:
    root = _root()
    if args.check:
        names = [args.doc] if args.doc else []
        config, library = load_config(root), load_library(root)
        findings: list[Finding] = []
        for document in find_documents(names, root):
            targets = [Target(root, document, step, config) for step in document.steps]
            findings += stale_briefs(targets, root, library)
        if args.number is not None:
            wanted = f"step_{args.number:02d}.md"
            findings = [finding for finding in findings if finding.path.endswith(wanted)]
        print(render(findings, args.format), end="")
        _say(summary(findings))
        return exit_status(findings)
    if args.all:
        document = read_document(find_document(args.doc, root))
        targets = [Target(root, document, step, load_config(root)) for step in document.steps]
        return max([0, *(_write_brief(each) for each in targets if _has_brief(each.step))])
    if args.number is None:
        raise UsageError("which step? give its number, or --all, or --check")
    target = find_target(args.number, args.doc)
    if args.stdout:
        print(brief(target, load_library(root)).text, end="")
        return 0
    if target.step.folded:
        raise UsageError(f"Step {args.number} is finished: {target.brief_path} is its record; --stdout shows the brief")
    return _write_brief(target)


def _has_brief(step: Step) -> bool:
    return step.status != "NOT_STARTED" and not step.folded


def scaffold_step(args: argparse.Namespace) -> int:
    target = find_target(args.number, args.doc)
    result = scaffold(target)
    for path, names in result.written.items():
        for name in names:
            print(f"{path}: {name}")
    if not result.written and not result.findings:
        _say("nothing is missing")
    print(render([*result.findings, *result.notes]), end="")
    return exit_status(result.findings)


def verify_step(args: argparse.Namespace) -> int:
    result = verify(find_target(args.number, args.doc), _say)
    print(render(result.findings, args.format), end="")
    runs = f"{sum(run.good for run in result.runs)}/{len(result.runs)} test commands passed"
    _say(f"{runs}, {summary(result.findings)}")
    return exit_status(result.findings)


def done_step(args: argparse.Namespace) -> int:
    target = find_target(args.number, args.doc)
    with document_lock(target.document.path, f"step done {args.number}"):
        target = target.again()
        if gap := open_gap(target.document, target.step):
            raise UsageError(f"Step {args.number}: {gap}")
        result = verify(target, _say)
        print(render(result.findings), end="")
        if not result.passed:
            _say(f"Step {args.number} does not verify and stays {target.step.status}")
            return 1
        cells = sealed_cells(target, result.proof) if result.proof else None
        seal = review_digest(target)
        update_document(target.document.path, lambda document: finished(document, args.number, cells, seal))
    print(f"Step {args.number}: DONE ({len(target.step.methods)} methods)")
    return 0


def adopt_steps(args: argparse.Namespace) -> int:
    root = _root()
    path = find_document(args.doc, root)
    refused: list[str] = []
    with document_lock(path, "step adopt"):
        document = old = read_document(path)
        numbers = args.number or [step.number for step in document.steps if step.status == "NOT_STARTED"]
        for number in numbers:
            step = find_step(document, number)
            findings = check(Target(root, document, step, load_config(root)))
            print(render(findings), end="")
            if exit_status(findings):
                refused.append(f"Step {number}: the code is not what Section 5 says; it stays {step.status}")
                continue
            try:
                document = parse_document(adopted(document, number), path)
            except NotReady as error:
                refused.append(str(error))
                continue
            print(f"Step {number}: DONE, adopted ({len(step.methods)} methods)")
        if document.text != old.text:
            write_document(path, document.text, old.text)
    for reason in refused:
        _say(reason)
    return int(bool(refused))


def review_step(args: argparse.Namespace) -> int:
    target = find_target(args.number, args.doc)
    git = Git(target.root)
    if args.approve is not None:
        name = args.approve or _own_name(git)
        value = record_text(target, name)
        if target.step.folded:
            set_record_field(target.root / target.brief_path, FIELD, value)
        else:
            update_document(
                target.document.path,
                lambda document: with_field(document, args.number, FIELD, value),
                f"step review {args.number}",
            )
        print(f"Step {args.number}: reviewed by {name}")
        return 0
    reviews = method_reviews(target, git)
    if args.json:
        _print_json([asdict(review) for review in reviews])
        return 0
    for review in reviews:
        print(f"=== {review.section} {review.name}  {review.place}\n--- Section 5\n{review.documented}")
        print(f"--- code\n{review.diff}\n")
    record = recorded(target)
    state = "not reviewed" if record is None else f"reviewed by {record.reviewer} on {record.date}"
    _say(f"{state}{'' if record is None or record.valid else ', but changed since'}")
    return 0


def _own_name(git: Git) -> str:
    """The name git signs commits with, else the login name."""
    name = git.run("var", "GIT_COMMITTER_IDENT").partition(" <")[0].strip()
    return name or getpass.getuser()


def fail_step(args: argparse.Namespace) -> int:
    target = find_target(args.number, args.doc)
    if args.withdraw is not None:
        update_document(
            target.document.path,
            lambda document: withdrawn(document, args.number, args.withdraw),
            f"step fail {args.number}",
        )
        print(f"Step {args.number}: the design gap is withdrawn")
        return 0
    if args.kind is None or not (args.reason or "").strip():
        raise UsageError("step fail: give --kind and --reason, or --withdraw TEXT for a gap that is none")
    failure = diagnose(target, args.kind, args.method)
    git = Git(target.root)
    update_document(
        target.document.path,
        lambda document: recorded_failure(
            opened(target, git, document), args.number, args.method, failure, args.reason
        ),
        f"step fail {args.number}",
    )
    if args.json:
        _print_json(asdict(failure))
        return 0
    print(f"Step {args.number}: FAILED ({args.kind})")
    if failure.revise:
        print(f"  revise: {', '.join(failure.revise)}")
    if failure.dependents:
        print(f"  builds on it: {', '.join(failure.dependents)}")
    if failure.stale_steps:
        print(f"  becomes stale: {', '.join(f'Step {number}' for number in failure.stale_steps)}")
    print(f"  then: {failure.then}")
    return 0


def commit_step_(args: argparse.Namespace) -> int:
    if args.fix is not None:
        return _commit_fix(args)
    if not args.number:
        raise UsageError("which step? give its number; several are committed one after the other")
    if args.part is not None:
        return _commit_part(args)
    for number in dict.fromkeys(args.number):
        target = find_target(number, args.doc)
        done = commit_step(target, Git(target.root), not args.no_review, args.allow_dirty)
        _committed(done, target.config.commit_title([number], target.step.title))
    return 0


def _commit_part(args: argparse.Namespace) -> int:
    text = " ".join(args.part.split())
    if not text or len(args.number) != 1:
        raise UsageError("--part: give one step, and say in a few words what was done so far")
    target = find_target(args.number[0], args.doc)
    return _committed(
        commit_part(target, Git(target.root), text, args.allow_dirty), target.config.commit_title(args.number, text)
    )


def _commit_fix(args: argparse.Namespace) -> int:
    text = " ".join(args.fix.split())
    if not text:
        raise UsageError("--fix: say in a few words what was corrected")
    root = _root()
    document = read_document(find_document(args.doc, root))
    git = Git(root)
    numbers = args.number or [step.number for step in steps_of_changes(document, root, git)]
    with document_lock(document.path, "step commit"):
        targets = [find_target(number, args.doc) for number in dict.fromkeys(numbers)]
        for target in targets if not args.no_review else ():
            record = recorded(target)
            if record is None or not record.valid:
                number = target.step.number
                how = f"run `codegen step review {number}` and `codegen step review {number} --approve NAME`"
                raise UsageError(f"Step {number} is not reviewed as it is now; {how}, or give --no-review")
        sealed = targets[0].document
        for target in targets:
            result = verify(target, _say, together=targets)
            print(render(result.findings), end="")
            if not result.passed:
                _say(f"Step {target.step.number} does not verify; nothing is committed")
                return 1
            cells = sealed_cells(target, result.proof) if result.proof else None
            sealed = parse_document(finished(sealed, target.step.number, cells, review_digest(target)), document.path)
        old = targets[0].document.text
        write_document(document.path, sealed.text, old)
        try:
            done = commit_fix(targets, git, text, not args.no_review, args.allow_dirty)
        except UsageError:
            write_document(document.path, old, sealed.text)
            raise
    return _committed(done, targets[0].config.commit_title([target.step.number for target in targets], text))


def claim_steps(args: argparse.Namespace) -> int:
    root = _root()
    git = Git(root)
    git.require()
    path = find_document(args.doc, root)
    shown = path.resolve().relative_to(root).as_posix()
    with document_lock(path, "step claim"):
        document = read_document(path)
        if args.commit:
            ident = git.run("rev-parse", "--verify", f"{args.commit}^{{commit}}").strip()
            claims = {ident: args.number or steps_of(git, shown, document, ident)}
        else:
            claims = unclaimed(git, shown, document)
        if not claims:
            _say("every step that is done has a commit; name another with --commit")
            return 0
        for ident, numbers in claims.items():
            fix = not any(number in each for each in unclaimed(git, shown, document).values() for number in numbers)
            document = read_document(path)
            for number in numbers:
                target = find_target(number, args.doc)
                result = verify(target, _say)
                print(render(result.findings), end="")
                if not result.passed:
                    _say(f"Step {number} does not verify; {git.short(ident)} is not claimed")
                    return 1
                cells = sealed_cells(target, result.proof) if result.proof else None
                sealed = finished(read_document(path), number, cells, review_digest(target))
                sealed = with_commits(parse_document(sealed, path), {number: git.short(ident)})
                write_document(path, sealed, read_document(path).text)
            targets = [find_target(number, args.doc) for number in numbers]
            done = git.commit_note([shown], claim_message(targets, git, ident, fix))
            print(f"{git.short(done)} claims {git.short(ident)} for Step {', '.join(map(str, numbers))}")
    return 0


def _committed(done: Committed, title: str) -> int:
    print(f"{done.short} {title}")
    for path in done.paths:
        print(f"  {path}")
    if done.dirty:
        _say(f"left alone and recorded: {', '.join(done.dirty)}")
    return 0


def rollback_step(args: argparse.Namespace) -> int:
    target = find_target(args.number, args.doc)
    git = Git(target.root)
    plan = rollback_plan(target, git, args.cascade)
    for item in plan:
        line = f"Step {item.step.number} ({item.step.title}), commit {item.commit.short}"
        if args.dry_run:
            print(line)
            continue
        done = roll_back(target, git, item)
        print(f"{line}: taken back by {done.short}")
    return 0


def step_log(args: argparse.Namespace) -> int:
    root = _root()
    git = Git(root)
    documents = {
        document.path.resolve().relative_to(root).as_posix(): document
        for document in find_documents([args.doc] if args.doc else [], root)
    }
    if args.check:
        return _check_log(args, root, git, documents)
    git.require()
    for path, document in documents.items():
        commits = step_commits(git, path)
        if args.write:
            _fill_commits(document, commits)
        if args.json:
            _print_json([asdict(commit) for commit in commits])
            continue
        for commit in commits:
            review = commit.trailers.get("Step-Review", "none")
            print(f"{commit.short}  {commit.date}  {commit.subject}  (review: {review})")
    return 0


def _check_log(args: argparse.Namespace, root: Path, git: Git, documents: dict[str, Document]) -> int:
    if not _is_versioned(git, documents):
        _say("there is no history here of the documents (an unpacked archive?): commits of steps cannot be checked")
        return 0
    since = args.since or load_config(root).since
    findings = audit(git, documents, accepted(git, since) if since else ())
    for path, document in documents.items():
        findings += seal_findings(document, root, path)
    if since:
        findings += strays(git, documents, since)
    elif any(document.steps for document in documents.values()):
        message = "`since` is not set, so that commits which belong to no step are not looked for: nothing is guarded"
        fix = f'Write `since = "{git.short("HEAD")}"` into [tool.codegen.step] of pyproject.toml.'
        findings.append(Finding("pyproject.toml", 1, 1, "STEP027", message, "warning", fix))
    print(render(findings, "json" if args.json else args.format), end="")
    if git.is_shallow():
        _say("a shallow clone: only its own commits are checked; `git fetch --unshallow` brings the others")
    _say(f"{len(step_commits(git))} commits of steps, {summary(findings)}")
    return exit_status(findings, args.strict)


def _is_versioned(git: Git, documents: dict[str, Document]) -> bool:
    """Whether the documents lie in a repository that knows them, not in an archive unpacked inside another one."""
    try:
        git.require()
    except GitError:
        return False
    return git.tracks(documents)


def _fill_commits(document: Document, commits: list[StepCommit]) -> None:
    known = {number: commit.short for number, commit in standing_commits(commits).items()}
    update_document(document.path, lambda current: with_commits(current, known), "step log")
