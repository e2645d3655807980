"""`codegen step`: one step of a plan, from its brief to its commit and back."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable

from codegen.diagnostics import FORMATS
from codegen.workflow import FAILURE_KINDS

Run = Callable[[argparse.Namespace], int]


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this module's commands."""
    parser = subparsers.add_parser("step", help="start, write, verify, review and commit one step", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, action: str, help: str, number: str | None = None) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=help, description=help)
        if action not in ("next_step", "step_log"):
            added.add_argument("number", type=int, metavar="N", help="number of the step", nargs=number)
        added.add_argument("--doc", metavar="DOC", help="path or id; may be left out where there is one document")
        added.set_defaults(run=_later(action))
        return added

    verb("next", "next_step", "the step to do next").add_argument("--json", action="store_true")
    start = verb("start", "start_step", "set a step IN_PROGRESS and write its brief")
    start.add_argument("--unreviewed", action="store_true", help="start what is not approved; recorded in the log")
    brief = verb("brief", "brief_step", "write the brief of a step, or check all of them", number="?")
    brief.add_argument("--all", action="store_true", help="write the briefs of all steps that have begun")
    brief.add_argument("--check", action="store_true", help="write nothing; exit 1 when a brief is stale or missing")
    brief.add_argument("--stdout", action="store_true", help="print it, write no file")
    brief.add_argument("--format", choices=FORMATS, default="text")
    verb("scaffold", "scaffold_step", "write the step's missing functions from Section 5, expanded")
    verify = verb("verify", "verify_step", "drift, expansions and tests of a step")
    verify.add_argument("--format", choices=FORMATS, default="text")
    review = verb("review", "review_step", "Section 5 beside the diff, method by method")
    help = "record the review (default: your name in git)"
    review.add_argument("--approve", nargs="?", const="", metavar="NAME", help=help)
    review.add_argument("--json", action="store_true")
    verb("done", "done_step", "set a step DONE; refuses when it does not verify")
    verb("adopt", "adopt_steps", "set steps DONE whose code was there before the plan (default: all)", number="*")
    fail = verb("fail", "fail_step", "open the error path of a step")
    fail.add_argument("--kind", choices=FAILURE_KINDS)
    fail.add_argument("--reason", metavar="TEXT", help="one sentence for the iteration log")
    fail.add_argument("--withdraw", metavar="TEXT", help="take a design gap back; TEXT says why it is none")
    help = "name or section; all open ones by default"
    fail.add_argument("--method", action="append", default=[], metavar="NAME", help=help)
    fail.add_argument("--json", action="store_true")
    commit = verb("commit", "commit_step_", "one commit: the step's files, the document, the brief", number="*")
    help = "a correction of steps that stay done (default: those of what is changed); TEXT says what was corrected"
    commit.add_argument("--fix", metavar="TEXT", help=help)
    help = "commit work on a step that goes on; TEXT says what was done so far"
    commit.add_argument("--part", metavar="TEXT", help=help)
    commit.add_argument("--no-review", action="store_true", help="commit without a review; recorded in a trailer")
    commit.add_argument("--allow-dirty", action="store_true", help="leave other changed files; recorded in a trailer")
    claim = verb("claim", "claim_steps", "say which steps a squash merge or a plain commit finished or corrected", "*")
    help = "the commit that is claimed (default: those that finished steps which have no commit)"
    claim.add_argument("--commit", metavar="REV", help=help)
    _register_run(verb("run", "run_agent_on_step", "let an AI agent implement a step, supervised"))
    rollback = verb("rollback", "rollback_step", "take a step's commit back")
    rollback.add_argument("--cascade", action="store_true", help="take back the done steps that depend on it first")
    rollback.add_argument("--dry-run", action="store_true", help="only list what would be taken back")
    log = verb("log", "step_log", "the commits of the steps, from git's trailers")
    log.add_argument("--check", action="store_true", help="exit 1 unless each commit flips its own statuses only")
    help = "with --check: later commits that touch a document's code must belong to a step (default: pyproject.toml's)"
    log.add_argument("--strict", action="store_true", help="with --check: warnings fail, too")
    log.add_argument("--since", metavar="REV", help=help)
    log.add_argument("--write", action="store_true", help="fill the Commit column of the document")
    log.add_argument("--json", action="store_true")
    log.add_argument("--format", choices=FORMATS, default="text")


def _register_run(parser: argparse.ArgumentParser) -> None:
    help = "a command that reads the prompt, or one of claude, codex, gemini, iflow, opencode, qoder, qwen"
    parser.add_argument("--agent", required=True, metavar="CMD", help=help)
    parser.add_argument("--rounds", type=int, default=3, metavar="K", help="findings go back at most K-1 times (3)")
    parser.add_argument("--timeout", type=float, default=1800.0, metavar="SECONDS", help="for each round (1800)")
    parser.add_argument("--output", type=int, default=10_000_000, metavar="BYTES", help="for each round (10 MB)")
    parser.add_argument("--yes", action="store_true", help="commit what verifies; by default it waits for your review")
    parser.add_argument(
        "--allow", action="append", default=[], metavar="CODE", help="let these findings pass; recorded"
    )
    parser.add_argument("--unreviewed", action="store_true", help="start what is not approved; recorded in the log")
    parser.add_argument("--no-scaffold", action="store_true", help="let the agent write the signatures as well")
    parser.add_argument("--json", action="store_true", help="the record of the run on stdout")
    parser.set_defaults(run=_later("run_agent_on_step", "agent_actions"))


def _later(action: str, module: str = "step_actions") -> Run:
    """The action, its module imported only when it runs: other commands start without it."""

    def run(args: argparse.Namespace) -> int:
        found: Run = getattr(importlib.import_module(f"codegen.cli.{module}"), action)
        return found(args)

    return run
