"""The document is named one way in all commands: `--doc DOC`, a path or an id.

Commands whose object is the document take it as an argument too; commands whose object is something else (a step, an
id, a name) by `--doc` alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from codegen.diagnostics import UsageError

METAVAR = "DOC"


def name_documents(parser: argparse.ArgumentParser) -> None:
    """Give `--doc` to every parser below that takes a document as an argument."""
    for each, positional in _parsers(parser):
        if positional is not None or "--doc" in each._option_string_actions:
            each.add_argument("--document", action=_Renamed, help=argparse.SUPPRESS)
        if positional is not None:
            many = positional.nargs == "*"
            each.add_argument(
                "--doc",
                dest="named_document",
                metavar=METAVAR,
                action="append",
                help=f"the same as {METAVAR}{' (may be given several times)' if many else ''}",
            )


class _Renamed(argparse.Action):
    """An option that has another name now: a usage error that says which."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        parser.error(f"--document is --doc in all commands; write --doc {METAVAR}")


def resolve_documents(args: argparse.Namespace) -> None:
    """Put what `--doc` says where the command looks for it. UsageError: the document is given twice."""
    named = getattr(args, "named_document", None)
    if not named:
        return
    if hasattr(args, "documents"):
        args.documents = [*args.documents, *named]
        return
    if args.document is not None or len(named) > 1:
        raise UsageError(f"one document, please: {', '.join(filter(None, [args.document, *named]))}")
    [args.document] = named


def _parsers(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, argparse.Action | None]]:
    """The parser and all of its commands, each with its argument for documents, where it has one."""
    own = [action for action in parser._actions if action.metavar == METAVAR and not action.option_strings]
    yield parser, own[0] if own else None
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _parsers(each)
