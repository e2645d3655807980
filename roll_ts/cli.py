"""Command line of `roll-ts`: parses arguments and prints; decides nothing.

stdout carries the result, stderr the messages. Exit status: 0 good, 1 findings (a run that failed, a difference),
2 wrong usage or configuration, 3 internal error. Nothing heavy is imported before a command needs it, so `--help`,
configuration errors and `simulate` take neither torch nor Ray.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from roll_ts.core.settings import Problem

if TYPE_CHECKING:
    from roll_ts.config import RunConfig
    from roll_ts.runtime.replay import Replayed


class _Refused(Exception):
    """The command cannot be done as asked; the message says why and what to do. Exit 2."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        return int(args.run(args))
    except _Refused as refused:
        print(f"roll-ts: {refused}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (`| head`) has seen enough; Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print("roll-ts: interrupted", file=sys.stderr)
        return 130
    except Exception:  # noqa: BLE001 - the outermost frame: a fault of this program is shown whole, with its own status
        traceback.print_exc()
        return 3


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="roll-ts", description="Time-sharing scheduler for agentic RL.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    train = commands.add_parser("train", help="run a configuration on real engines")
    train.add_argument("config", metavar="CONFIG", help="YAML file, such as examples/frozen_lake.yaml")
    train.add_argument(
        "--policy",
        help="a policy's name or package.module:Class, instead of the file's",
    )
    train.add_argument("--seed", type=int, help="instead of the file's")
    train.add_argument("--steps", type=int, help="optimizer steps, instead of the file's")
    train.add_argument("--out", help="run folder; must not exist")
    train.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change any key, dotted")
    train.add_argument("--check", action="store_true", help="only check the configuration; write nothing")
    train.add_argument("--json", action="store_true", help="print the report as JSON")
    train.set_defaults(run=_train)

    simulate = commands.add_parser("simulate", help="run the same scheduler on a virtual clock")
    simulate.add_argument("config", metavar="CONFIG", help="YAML file, such as examples/four_gpus.yaml")
    simulate.add_argument("--out", help="folder for journals, timelines and the picture")
    simulate.add_argument("--json", action="store_true", help="print the reports as JSON")
    simulate.set_defaults(run=_simulate)

    take_over = commands.add_parser("import-roll", help="make a configuration out of one of ROLL's, and check theirs")
    take_over.add_argument("file", type=Path, metavar="FILE", help="YAML file of ROLL's agentic pipeline")
    take_over.add_argument("-o", "--out", type=Path, help="write the configuration there; by default it is printed")
    take_over.add_argument("--json", action="store_true", help="print configuration and findings as JSON")
    take_over.set_defaults(run=_import_roll)

    for name, text, run in (
        ("report", "print the report of a run again", _report),
        ("replay", "feed a run's events to a fresh scheduler and compare its commands", _replay),
        ("verify", "replay a turn that moved; compare log-probs of engine and trainer", _verify),
        ("view", "write the picture of a run", _view),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("folder", type=Path, metavar="RUN", help="run folder")
        command.add_argument("--json", action="store_true", help="machine-readable result")
        command.set_defaults(run=run)
        if name == "replay":
            _add_replay_options(command)
    return parser


def _add_replay_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--policy", help="another policy: where does it first do something else?")
    command.add_argument("--until", type=float, default=float("inf"), metavar="T", help="stop at T seconds of the run")
    command.add_argument(
        "--explain",
        nargs=2,
        action=_Explained,
        metavar=("KIND", "ID"),
        help="why a trajectory, rank or decision (numbers from 0) waited or moved, in words",
    )


class _Explained(argparse.Action):
    """KIND ID: one of the kinds that can be explained, and a number."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: Any = None
    ) -> None:
        from roll_ts.observe.explaining import KINDS

        kind, number = values
        if kind not in KINDS:
            parser.error(f"--explain {kind}: choose one of {', '.join(KINDS)}")
        if not number.isdecimal():
            parser.error(f"--explain {kind} {number}: the number of a {kind} is a whole number from 0")
        namespace.explain = (kind, int(number))


def _train(args: argparse.Namespace) -> int:
    given = {"policy": args.policy, "seed": args.seed, "steps": args.steps, "out": args.out}
    overrides = [*args.set, *(f"{key}={json.dumps(value)}" for key, value in given.items() if value is not None)]
    config = _load(args.config, overrides)
    if args.check:
        print(f"{args.config}: no problems", file=sys.stderr)
        return 0
    from rich.console import Console

    from roll_ts.observe.table import report_text
    from roll_ts.runtime._live_view import LiveView
    from roll_ts.runtime.launch import RunFolderExists, launch
    from roll_ts.runtime.results import write_results

    console = Console(stderr=True)
    console.print(f"{config.name} under {config.policy}, {config.steps} steps, in {config.folder}", highlight=False)
    views: dict[int, LiveView] = {}
    try:
        ended = launch(
            config,
            watchers=lambda run: [views.setdefault(id(run), LiveView(run, console)).watch],
            show=lambda run: views[id(run)].shown(),
        )
    except RunFolderExists as error:
        raise _Refused(str(error)) from None
    report = write_results(ended.folder)
    print(json.dumps(report.to_json()) if args.json else report_text(report, width=_width()))
    saved = ", ".join(path.name for path in ended.checkpoints) or "no checkpoint"
    why = "killed before the scheduler could end it" if ended.finish is None else ended.finish.reason
    left = ended.leftovers
    if left.processes or left.segments:
        console.print(f"removed by force: {left.processes or ''} {left.segments or ''}", highlight=False)
    console.print(
        f"{why}; saved in {ended.folder}: {saved}, journal, samples, report, timeline, picture", highlight=False
    )
    return 0 if ended.ok else 1


def _simulate(args: argparse.Namespace) -> int:
    from roll_ts.sim.comparison import BadConfiguration, simulate_file
    from roll_ts.sim.errors import Stalled

    try:
        comparison = simulate_file(args.config, tell=lambda text: print(text, file=sys.stderr))
    except BadConfiguration as error:
        raise _Refused(str(error)) from None
    except Stalled as error:
        return _finding(f"the simulation does not end: {error}")
    folder = Path(args.out or f"runs/{comparison.config.name}-simulated")
    try:
        files = comparison.write(folder)
    except OSError as error:
        raise _Refused(f"{folder} cannot be written: {error}; choose another folder with --out") from None
    print(json.dumps(comparison.to_json()) if args.json else comparison.text(_width()))
    print(f"written: {', '.join(map(str, files))}", file=sys.stderr)
    return 0 if comparison.ok else 1


def _import_roll(args: argparse.Namespace) -> int:
    from roll_ts.interop.from_roll import import_roll
    from roll_ts.interop.roll_yaml import BadFile

    try:
        imported = import_roll(args.file)
    except BadFile as error:
        raise _Refused(str(error)) from None
    if args.out is not None:
        if args.out.exists():  # unmanaged: says which option helps
            raise _Refused(f"{args.out} exists: choose another file with --out, or remove it")
        args.out.write_text(imported.text(args.file.name), encoding="utf-8")
    if args.json:
        findings = [dataclasses.asdict(finding) for finding in imported.findings]
        print(json.dumps({"ok": imported.ok, "config": imported.config, "findings": findings}))
    elif args.out is None:
        print(imported.text(args.file.name), end="")
    for finding in imported.findings:
        print(finding, file=sys.stderr)
    return 0 if imported.ok else 1


def _report(args: argparse.Namespace) -> int:
    from roll_ts.observe.report import make_report
    from roll_ts.observe.table import report_text
    from roll_ts.observe.tokens import AccountError

    try:
        report = make_report(_journal(args.folder))
    except AccountError as error:
        return _finding(f"{args.folder} contradicts itself: {error}")
    print(json.dumps(report.to_json()) if args.json else report_text(report, width=_width()))
    return 0


def _replay(args: argparse.Namespace) -> int:
    from itertools import takewhile

    from roll_ts.observe.explaining import explain
    from roll_ts.observe.journal import JournalError, JournalReader
    from roll_ts.runtime.replay import replay_entries
    from roll_ts.runtime.results import journal_of

    try:
        journal = JournalReader(journal_of(args.folder))
        if args.explain:
            kind, number = args.explain
            lines = explain(journal.header, takewhile(lambda entry: entry.t <= args.until, journal), kind, number)
            if args.json:
                print(json.dumps({kind: number, "story": list(lines)}))
            else:
                for line in lines:
                    print(line)
            return 0
    except (OSError, JournalError) as error:
        raise _Refused(f"{args.folder} is no run: {error}") from None
    try:
        done = replay_entries(journal.header, journal, args.policy, args.until)
    except JournalError as error:
        return _finding(f"{args.folder}: {error}")
    except ValueError as error:
        raise _Refused(f"--policy {args.policy}: {error}") from None
    if args.json:
        figures = {"entries": done.entries, "commands": done.commands}
        print(json.dumps(figures | {"difference": done.difference and str(done.difference)}))
    else:
        print(_replayed_text(done, journal.header.policy, args.policy, args.until))
    return 0 if done.difference is None else 1


def _replayed_text(done: Replayed, own: str, policy: str | None, until: float) -> str:
    if done.difference is None:
        lines = [f"{done.entries} events give the same {done.commands} commands"]
    elif policy is None or policy == own:
        lines = [str(done.difference)]
    else:
        lines = [f"{done.entries} events give the same commands under {policy}; then it does something else:"]
        lines.append(str(done.difference))
        for name, decision in ((own, done.recorded_decision), (policy, done.replayed_decision)):
            if decision is not None:
                figures = ", ".join(f"{key} {value:g}" for key, value in decision.figures.items())
                lines.append(f"  last decision of {name}: {decision.decision} ({figures})")
    if until < float("inf"):
        last = done.last
        ranks = ", ".join(f"{row.rank} {row.state} ({row.running})" for row in last.ranks)
        lines.append(
            f"at {until:g} s: {last.stage}, version {last.version}, {last.open_trajectories} open trajectories, "
            f"{last.running} running, {last.queued} queued, {last.complete_groups} complete groups; ranks: {ranks}"
        )
    return "\n".join(lines)


def _verify(args: argparse.Namespace) -> int:
    from roll_ts.observe.journal import JournalError
    from roll_ts.runtime.verify import LOGPROB_SHARE, logprob_figures, replay_turns

    steps = logprob_figures(_journal(args.folder))
    config = _load(args.folder / "config.yaml", [])
    try:
        replayed = replay_turns(args.folder, config)
    except (OSError, JournalError) as error:
        raise _Refused(f"{args.folder} cannot be verified: {error}") from None
    good = bool(replayed) and all(turn.same for turn in replayed) and bool(steps) and all(step.ok for step in steps)
    if args.json:
        turns = [{"turn": str(turn), "same": turn.same} for turn in replayed]
        rows = [dataclasses.asdict(step) | {"ok": step.ok} for step in steps]
        print(json.dumps({"ok": good, "turns": turns, "steps": rows}))
        return 0 if good else 1
    print("greedy turns that moved between ranks, generated again without the move:")
    for turn in replayed:
        print(f"  {turn}")
    if not replayed:
        print("  none moved with a token before and after; ask for more episodes in replay_check")
    print(
        "|rollout log-prob - trainer log-prob| within what the number formats allow, "
        f"over at least {LOGPROB_SHARE:.0%} of the trained tokens:"
    )
    for step in steps:
        largest = f"max {step.max:.1e} of {step.allowed.largest:.0e}"
        figures = f"n {step.n:6d} ({step.share:4.0%})  {largest}  p99 {step.p99:.1e} of {step.allowed.p99:.0e}"
        print(f"  step {step.version:3d}  {figures}  {'ok' if step.ok else 'NOT OK'}")
    return 0 if good else 1


def _view(args: argparse.Namespace) -> int:
    from roll_ts.observe.picture import write_picture
    from roll_ts.observe.tokens import AccountError

    journal = _journal(args.folder)
    path = (args.folder if args.folder.is_dir() else args.folder.parent) / "picture.html"
    try:
        write_picture([journal], path, title=f"{journal.header.policy}: who did what, when")
    except AccountError as error:
        return _finding(f"{args.folder} contradicts itself: {error}")
    except OSError as error:
        raise _Refused(f"the picture cannot be written: {error}") from None
    print(json.dumps({"picture": str(path)}) if args.json else path)
    return 0


def _load(path: str | Path, overrides: Sequence[str]) -> RunConfig:
    try:
        from roll_ts.config_file import load_config

        config = load_config(path, overrides)
    except ModuleNotFoundError as missing:
        install = "pip install 'roll-ts[cpu]' (or [gpu])"
        raise _Refused(f"{missing.name} is not installed: live runs need the engines, {install}") from None
    return _refuse(_problems_text(str(path), config)) if isinstance(config, list) else config


def _finding(what: str) -> int:
    print(f"roll-ts: {what}", file=sys.stderr)
    return 1


def _refuse(why: str) -> NoReturn:
    raise _Refused(why)


def _problems_text(path: str, problems: Sequence[Problem]) -> str:
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = [f"{path} has {count}:"]
    for problem in problems:
        value = f" = {problem.value}" if problem.value else ""
        lines.append(f"  {problem.key}{value}: {problem.wrong}; {problem.fix}")
    return "\n".join(lines)


def _journal(folder: Path):  # type: ignore[no-untyped-def]
    from roll_ts.observe.journal import JournalError
    from roll_ts.runtime.results import read_run

    try:
        return read_run(folder)
    except (OSError, JournalError) as error:
        raise _Refused(f"{folder} is no run: {error}") from None


def _width() -> int:
    import shutil

    return max(80, min(160, shutil.get_terminal_size((118, 24)).columns))
