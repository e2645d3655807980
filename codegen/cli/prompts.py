"""`codegen prompts`: prompts for recurring situations, in the form of the agent at hand."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from codegen.diagnostics import FORMATS, UsageError, exit_status, render, summary

if TYPE_CHECKING:
    from codegen.prompts.install import Place, Plan
    from codegen.prompts.library import Prompt


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this module's commands."""
    parser = subparsers.add_parser("prompts", help="install prompts for an AI command line", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    install = verbs.add_parser("install", help="write or upgrade an agent's files; edited ones are kept")
    uninstall = verbs.add_parser("uninstall", help="remove an agent's files; edited ones are kept")
    for verb, run in ((install, run_install), (uninstall, run_uninstall)):
        verb.add_argument("--agent", action="append", required=True, metavar="AGENT", help="may be given again")
        verb.add_argument("--diff", action="store_true", help="show what would change; write nothing")
        verb.set_defaults(run=run)
    listing = verbs.add_parser("list", help="the prompts, or with --agents the agents")
    listing.add_argument("--agents", action="store_true", help="the agents, their files and what is installed")
    listing.add_argument("--json", action="store_true")
    listing.set_defaults(run=run_list)
    check = verbs.add_parser("check", help="exit 1 when installed files are missing or out of date")
    check.add_argument("--agent", action="append", default=[], metavar="AGENT", help="default: all that are installed")
    check.add_argument("--format", choices=FORMATS, default="text")
    check.set_defaults(run=run_check)
    show = verbs.add_parser("show", help="print one prompt")
    show.add_argument("name", metavar="NAME")
    show.add_argument("words", nargs="*", metavar="WORD", help="the user's words (default: the agent's placeholder)")
    show.add_argument("--agent", metavar="AGENT", help="print the file that this agent would get")
    show.set_defaults(run=run_show)
    for verb in (install, uninstall, listing, check):
        help = "the project's files or your own, in the home folder"
        verb.add_argument("--scope", choices=("project", "user"), default="project", help=help)


def _place(args: argparse.Namespace) -> Place:
    from codegen.document.locate import project_root
    from codegen.prompts.install import Place

    user = args.scope == "user"
    return Place(Path.home() if user else project_root(Path.cwd()), user)


def _prompts(args: argparse.Namespace) -> dict[str, Prompt]:
    from codegen.document.locate import project_root
    from codegen.prompts.library import load_prompts

    user = getattr(args, "scope", "project") == "user"
    return load_prompts(None if user else project_root(Path.cwd()))


def run_install(args: argparse.Namespace) -> int:
    """Write or upgrade."""
    from codegen.prompts.agents import find_agent
    from codegen.prompts.install import plan_install

    agents = [find_agent(key) for key in dict.fromkeys(args.agent)]
    plan = plan_install(_place(args), agents, list(_prompts(args).values()))
    status = _carry_out(plan, args.diff)
    if not args.diff:
        for agent in agents:
            print(
                f"{agent.title}: e.g. {agent.call.format(name='implement-step')}; restart it to load them",
                file=sys.stderr,
            )
    return status


def run_uninstall(args: argparse.Namespace) -> int:
    """Remove."""
    from codegen.prompts.agents import find_agent
    from codegen.prompts.install import plan_uninstall

    return _carry_out(plan_uninstall(_place(args), [find_agent(key) for key in dict.fromkeys(args.agent)]), args.diff)


def _carry_out(plan: Plan, diff: bool) -> int:
    if diff:
        sys.stdout.writelines(change.diff() for change in plan.changes if change.writes)
    else:
        plan.carry_out()
    for change in plan.changes:
        if change.action == "keep":
            print(f"kept {change.path}: {change.why}", file=sys.stderr)
        elif change.writes and not diff:
            size = f" ({change.counted()})" if change.action == "upgrade" else ""
            print(f"{_PAST[change.action]} {change.path}{size}")
    same = sum(change.action == "same" for change in plan.changes)
    if same:
        print(f"{same} files as they were", file=sys.stderr)
    return int(diff and any(change.writes for change in plan.changes))


_PAST = {"write": "written", "restore": "written again", "upgrade": "upgraded", "remove": "removed"}


def run_list(args: argparse.Namespace) -> int:
    """Say what there is."""
    from codegen.prompts.agents import AGENTS
    from codegen.prompts.manifest import read_manifest

    prompts = _prompts(args)
    if args.agents:
        manifest = read_manifest(_place(args).base)
        rows = [
            {
                "agent": agent.key,
                "title": agent.title,
                "folder": agent.user_folder if args.scope == "user" else agent.folder,
                "call": agent.call.format(name="NAME"),
                "installed": len(manifest.files.get(agent.key, {})),
            }
            for agent in AGENTS.values()
        ]
    else:
        rows = [{"prompt": p.name, "description": p.description, "argument": p.argument} for p in prompts.values()]
    if args.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    widths = [max(len(str(row[key])) for row in rows) for key in rows[0]]
    for row in rows:
        cells = [str(value).ljust(width) for value, width in zip(row.values(), widths, strict=True)]
        print("  ".join(cells[: 5 if args.agents else 2]).rstrip())
    return 0


def run_check(args: argparse.Namespace) -> int:
    """Compare what is installed with what would be written."""
    from codegen.prompts.agents import AGENTS, find_agent
    from codegen.prompts.install import check

    agents = [find_agent(key) for key in args.agent] or list(AGENTS.values())
    findings = check(_place(args), agents, list(_prompts(args).values()))
    print(render(findings, args.format), end="")
    print(summary(findings), file=sys.stderr)
    return exit_status(findings)


def run_show(args: argparse.Namespace) -> int:
    """Print a prompt."""
    from codegen.prompts.agents import find_agent

    prompts = _prompts(args)
    if args.name not in prompts:
        raise UsageError(f"there is no prompt {args.name!r}; there are: {', '.join(prompts)}")
    prompt = prompts[args.name]
    if args.agent:
        if args.words:
            raise UsageError("give words or --agent, not both: the agent's file has a placeholder for them")
        print(find_agent(args.agent).content(prompt), end="")
        return 0
    print(prompt.render(" ".join(args.words) or "(nothing given)"), end="")
    return 0
