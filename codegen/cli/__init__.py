"""Command line: parses arguments and prints; decides nothing.

stdout carries the result, stderr the messages. Exit status: 0 good, 1 findings, 2 usage, 3 internal error.
Each module named in `COMMANDS` has `register(subparsers)`, which adds parsers that set
`run: Callable[[argparse.Namespace], int]`. Only the module of the named command is imported: a commit hook that
calls `codegen expand --check` pays for nothing else.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
import traceback

from codegen.cli.naming import name_documents, resolve_documents
from codegen.diagnostics import UsageError

COMMANDS = {
    "expand": ("expand", "expand VAL and AST annotations into code"),
    "patterns": ("patterns", "list, show, test and write validation patterns"),
    "refute": ("refute", "search for inputs that break the claims of AST annotations"),
    "init": ("scaffold", "make the folders of a project; overwrites nothing"),
    "new": ("scaffold", "begin a design document from a template"),
    "lint": ("document", "judge design documents"),
    "diff": ("versions", "what changed in a document, in decisions, methods and steps"),
    "impact": ("versions", "everything that depends on a decision, goal or method, top-down"),
    "bump": ("versions", "raise a document's version, with a row in its history"),
    "review": ("review", "approve a document decision by decision, until aligned"),
    "status": ("plan", "how far each document is, and what comes next"),
    "plan": ("plan", "cut Section 5 into steps and write them into Section 6"),
    "graph": ("plan", "the dependency graph as Mermaid or DOT"),
    "drift": ("drift", "compare Section 5 with the code"),
    "sync-from-code": ("drift", "bring Section 5 up to code that moved first"),
    "adopt": ("drift", "a whole design document of code that is there"),
    "step": ("step", "start, write, verify, review and commit one step"),
    "view": ("view", "write one self-contained page of a document"),
    "prompts": ("prompts", "install prompts for an AI command line"),
    "rename": ("names", "give a module, class, method, function or constant another name, everywhere"),
    "remove": ("names", "take entries or decisions out of the document and its record"),
    "fold": ("names", "fold entries of Section 5 that are done"),
    "unfold": ("names", "open folded names, to work on them"),
    "import": ("importing", "a design document from a folder of another tool"),
    "report": ("report", "attempts, findings, time, size and validation of each step"),
    "mcp": ("mcp", "serve this project to agents (MCP over stdio)"),
}


COLLECT_EVERY = 100_000
"""Allocations between two runs of Python's garbage collector. A command lives for seconds and keeps the syntax trees
that it reads; at the default of 700 a fifth of its time goes into walking them again and again."""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    gc.set_threshold(COLLECT_EVERY)
    given = sys.argv[1:] if argv is None else argv
    args = _parser(given[0] if given else "").parse_args(given)
    try:
        resolve_documents(args)
        return args.run(args)
    except UsageError as error:
        print(f"codegen: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (`| head`) has seen enough; Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.filename is None:
            traceback.print_exc()
            return 3
        print(f"codegen: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except Exception:  # noqa: BLE001 - the edge of the process: a fault of ours is shown whole and has its own status
        traceback.print_exc()
        return 3
    except KeyboardInterrupt:
        print("codegen: interrupted", file=sys.stderr)
        return 130


def _parser(command: str) -> argparse.ArgumentParser:
    """The parser with the named command; with the summaries of all commands when it names none."""
    parser = argparse.ArgumentParser(
        prog="codegen", description="Design documents, and validations expanded from annotations."
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    if command in COMMANDS:
        importlib.import_module(f"codegen.cli.{COMMANDS[command][0]}").register(subparsers)
        name_documents(parser)
    else:
        for name, (_, summary) in COMMANDS.items():
            subparsers.add_parser(name, help=summary)
    return parser
