"""`codegen rename`, `codegen remove`, `codegen fold` and `codegen unfold`."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable
from pathlib import Path

from codegen.cli.common import chosen, difference
from codegen.diagnostics import UsageError
from codegen.document.fold import folded, unfolded
from codegen.document.locate import document_paths, project_root
from codegen.document.model import Document
from codegen.document.parse import parse_document, read_document
from codegen.document.recoding import recoded
from codegen.document.renaming import full_name, known_names, removed, renamed, users_of
from codegen.document.store import replace_file, update_document


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add these commands."""

    def add(name: str, help_text: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        parser = subparsers.add_parser(name, help=help_text)
        parser.add_argument("--doc", metavar="DOC", help="path or id (default: the only one that has the name)")
        parser.add_argument("--diff", action="store_true", help="show the change; write nothing")
        parser.set_defaults(run=run)
        return parser

    parser = add("rename", "give a module, class, method, function or constant another name, everywhere", run_rename)
    parser.add_argument("old", metavar="OLD", help="full name, or a tail of exactly one")
    parser.add_argument("new", metavar="NEW", help="full name, or another last part")
    parser.add_argument("--no-code", action="store_true", help="leave the code alone")
    parser = add("remove", "take entries or decisions out of the document and its record", run_remove)
    parser.add_argument("names", nargs="+", metavar="NAME", help="full name, tail of exactly one, or D-3")
    parser = add("fold", "fold entries of Section 5 that are done", run_fold)
    parser.add_argument("names", nargs="*", metavar="NAME", help="entries (default: all that are done)")
    parser = add("unfold", "open folded names, to work on them", run_unfold)
    parser.add_argument("names", nargs="+", metavar="NAME", help="full name, or a tail of exactly one")


def run_rename(args: argparse.Namespace) -> int:
    """Rename in all documents of the project."""
    root = project_root(Path.cwd())
    path = _owner(args, root, args.old)
    old = full_name(read_document(path), args.old)
    new = args.new if "." in args.new else f"{old.rpartition('.')[0]}.{args.new}"
    homes = [module.name for module in read_document(path).modules if f"{old}.".startswith(f"{module.name}.")]
    module = max(homes, key=len, default=None)
    for each in [path, *(other for other in chosen([], root) if other.resolve() != path.resolve())]:
        _apply(each, args.diff, lambda document: renamed(document, old, new, module))
    print(f"{old} → {new}")
    if module is not None and old != module and not args.no_code:
        _in_code(root, module, old.removeprefix(f"{module}."), new.rpartition(".")[2], args.diff)
    return 0


def _in_code(root: Path, module: str, old: str, new: str, dry: bool) -> None:
    """Rename in code what is certain, list the rest."""
    found = recoded(root, module, old, new)
    for path, text in found.texts.items():
        before = path.read_text(encoding="utf-8")
        name = path.relative_to(root).as_posix()
        if dry:
            lines = (before.splitlines(keepends=True), text.splitlines(keepends=True))
            sys.stdout.writelines(difflib.unified_diff(*lines, f"a/{name}", f"b/{name}"))
        elif text != before:
            replace_file(path, text.encode("utf-8"))
            print(f"{name}: written", file=sys.stderr)
    for line in found.left:
        print(f"look at {line}")


def run_remove(args: argparse.Namespace) -> int:
    """Remove, and say who still names what is gone."""
    path = _owner(args, project_root(Path.cwd()), args.names[0])
    left = users_of(read_document(path), args.names)
    _apply(path, args.diff, lambda document: removed(document, args.names))
    for line in left:
        print(line)
    return 0


def run_fold(args: argparse.Namespace) -> int:
    """Fold what is done."""
    paths = [_owner(args, project_root(Path.cwd()), args.names[0])] if args.names else _all(args)
    for path in paths:
        _apply(path, args.diff, lambda document: folded(document, args.names or None))
    return 0


def run_unfold(args: argparse.Namespace) -> int:
    """Open folded names."""
    path = _owner(args, project_root(Path.cwd()), args.names[0])
    _apply(path, args.diff, lambda document: unfolded(document, [full_name(document, name) for name in args.names]))
    return 0


def _all(args: argparse.Namespace) -> list[Path]:
    return chosen([args.doc] if args.doc else [], project_root(Path.cwd()))


def _owner(args: argparse.Namespace, root: Path, name: str) -> Path:
    """The document meant: the one given, or the only one of the project that has the name."""
    if args.doc or len(document_paths(root)) < 2:
        return chosen([args.doc] if args.doc else [], root, one=True)[0]
    found = [path for path in chosen([], root) if _has(read_document(path), name)]
    if len(found) != 1:
        names = ", ".join(path.stem for path in found) or "none"
        raise UsageError(f"which document has {name}? {names}; name it with --doc")
    return found[0]


def _has(document: Document, name: str) -> bool:
    names = known_names(document)
    return name in names or name in document.decision_by_id or any(each.endswith(f".{name}") for each in names)


def _apply(path: Path, dry: bool, change: Callable[[Document], str]) -> None:
    if dry:
        document = read_document(path)
        sys.stdout.writelines(difference(document, change(document)))
        return
    before = read_document(path).text
    after = update_document(path, change, doing="names").text
    if after != before:
        parse_document(after, path)
        print(f"{path}: written", file=sys.stderr)
