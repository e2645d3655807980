"""Command line: parses arguments and prints; decides nothing.

stdout carries the result, stderr the talk. Exit status: 0 good, 1 findings, 2 usage, 3 internal error.
Each module of this package named in `COMMANDS` has `register(subparsers)`, which adds parsers that set
`run: Callable[[argparse.Namespace], int]`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback

from codegen.diagnostics import UsageError

COMMANDS = (
    "expand",
    "patterns",
    "document",
    "plan",
    "drift",
    "step",
    "view",
    "prompts",
    "importing",
    "report",
    "mcp",
)


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = argparse.ArgumentParser(prog="codegen", description=__doc__.splitlines()[0])
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        importlib.import_module(f"codegen.cli.{name}").register(subparsers)
    args = parser.parse_args(argv)
    try:
        return args.run(args)
    except UsageError as error:
        print(f"codegen: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (`| head`) has seen enough; Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception:  # noqa: BLE001 - the edge of the process: a fault of ours is shown whole and has its own status
        traceback.print_exc()
        return 3
    except KeyboardInterrupt:
        print("codegen: interrupted", file=sys.stderr)
        return 130
