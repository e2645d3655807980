"""What `codegen step run` does: runs an agent on a step and prints how it ended."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from codegen.agents.process import Limits, command_of
from codegen.agents.record import Run
from codegen.agents.run import Order, run_step
from codegen.cli.step_actions import review_step
from codegen.diagnostics import UsageError, render, summary
from codegen.workflow.target import find_target

_TAIL, _LINES = 4000, 15


def run_agent_on_step(args: argparse.Namespace) -> int:
    """Run, then show what to review or what was found."""
    if args.timeout <= 0 or args.output <= 0:
        raise UsageError("--timeout and --output must be above 0")
    order = Order(
        agent=command_of(args.agent),
        rounds=args.rounds,
        limits=Limits(args.timeout, args.output),
        allow=frozenset(args.allow),
        commit=args.yes,
        unreviewed=args.unreviewed,
        scaffold=not args.no_scaffold,
    )
    target = find_target(args.number, args.doc)
    with _ended_kindly():
        run, folder = run_step(target, order, lambda text: print(text, file=sys.stderr, flush=True))
    shown = folder.relative_to(target.root)
    found = [*(run.rounds[-1].findings if run.rounds else []), *run.warnings]
    if args.json:
        print(json.dumps({"folder": shown.as_posix(), **run.as_json()}, indent=2, ensure_ascii=False))
    else:
        print(render(found), end="")
    _say(run, target.root, shown.as_posix(), args)
    return int(run.outcome not in ("review", "committed"))


def _say(run: Run, root: Path, folder: str, args: argparse.Namespace) -> None:
    rounds = f"{len(run.rounds)} round{'s' * (len(run.rounds) != 1)}"
    number = run.step
    if run.outcome == "committed":
        print(f"Step {number}: committed as {run.commit[:10]} after {rounds}", file=sys.stderr)
    elif run.outcome == "review":
        if not args.json:
            review_step(argparse.Namespace(number=number, doc=args.doc, approve=None, json=False))
        print(
            f"Step {number}: verified after {rounds}, not committed. Review it, then "
            f"`codegen step review {number} --approve` and `codegen step commit {number}`",
            file=sys.stderr,
        )
    elif run.outcome == "held":
        print(
            f"Step {number}: verified after {rounds}, not committed: the project changed meanwhile (RUN008). Look at "
            f"what changed; then `git apply {folder}/work.patch`, or run again",
            file=sys.stderr,
        )
    else:
        last = summary(run.rounds[-1].findings) if run.rounds else "no round"
        touched = any(finding.code == "RUN008" for finding in run.warnings)
        left = "the project changed meanwhile (RUN008)" if touched else "the project is as it was"
        print(f"Step {number}: not done after {rounds} ({last}); {left}", file=sys.stderr)
        for kind in ("tests.txt", "txt"):
            if run.rounds and (said := root / folder / f"round_{len(run.rounds)}.{kind}").is_file():
                print(f"the end of {folder}/{said.name}:", file=sys.stderr)
                print("\n".join(f"  {line}" for line in _end(said)), file=sys.stderr)
                break
    print(f"record: {folder}", file=sys.stderr)


def _end(file: Path) -> list[str]:
    """The last lines of a text of any length, without what would act on a terminal."""
    text = file.read_bytes()[-_TAIL:].decode("utf-8", "replace").rstrip()
    return [line if line.isprintable() else ascii(line)[1:-1] for line in text.split("\n")[-_LINES:]]


@contextlib.contextmanager
def _ended_kindly() -> Iterator[None]:
    """Let SIGTERM, and the end of the terminal, end the run as Ctrl-C does: agent and tree go."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
