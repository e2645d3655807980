"""`codegen init` and `codegen new`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from codegen.cli.common import shown, today
from codegen.diagnostics import UsageError
from codegen.document.locate import project_root
from codegen.document.scaffold import document_text, init_project, new_document, template_text


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add these commands."""
    parser = subparsers.add_parser("init", help="make the folders of a project; overwrites nothing")
    parser.add_argument("path", nargs="?", type=Path, default=Path(), help="the project's folder (default: here)")
    help = "also write the settings for ruff that annotations and generated code need"
    parser.add_argument("--linter-settings", action="store_true", help=help)
    parser.set_defaults(run=run_init)
    parser = subparsers.add_parser("new", help="begin a design document from a template")
    parser.add_argument("id", nargs="?", help="its id, also the name of the file; asked for when not given")
    parser.add_argument("--title", help="default: made from the id")
    parser.add_argument("--roots", default="", metavar="PATH,…", help="the code that Section 5 describes")
    parser.add_argument("--supersedes", default="", metavar="ID,…", help="documents that this one replaces")
    parser.add_argument("--template", default="design", help="a template's name or path (default: design)")
    parser.add_argument("--date", default=None, help="default: today")
    parser.set_defaults(run=run_new)


def run_init(args: argparse.Namespace) -> int:
    """Make a project."""
    if args.path.exists() and not args.path.is_dir():
        raise UsageError(f"{args.path}: is a file; name a folder")
    for item in init_project(args.path):
        print(f"{'made' if item.made else 'kept'} {item.path}")
    _guard_history(args.path)
    status = _linter_settings(args.path, args.linter_settings)
    print("Next: codegen new ID --title TITLE --roots PACKAGE", file=sys.stderr)
    return status


def _guard_history(folder: Path) -> None:
    """Set what `codegen step log --check` goes by, unless the project has set it or has the table in another form."""
    from codegen.document.store import replace_file
    from codegen.workflow.config import load_config
    from codegen.workflow.strays import FIRST

    path = folder / "pyproject.toml"
    if load_config(folder).since:
        print(f"kept {path}: since", file=sys.stderr)
        return
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    line = f'since = "{FIRST}"'
    if "codegen.step" in text:
        print(f"{path}: add to [tool.codegen.step], or `codegen step log --check` guards nothing:\n\n{line}\n")
        return
    gap = "\n" if text.strip() else ""
    replace_file(path, f"{text}{gap}[tool.codegen.step]\n{line}\n".encode())
    print(f"made {path}: [tool.codegen.step] {line}")


def _linter_settings(folder: Path, write: bool) -> int:
    """Show, or write where that is safe, what the project's settings for ruff lack; 1 when it was to and is not."""
    from codegen.expand.driver.linters import RULES, offer_settings
    from codegen.expand.writing.replace import NotWritten, replace_file
    from codegen.patterns import load_library

    offer = offer_settings(folder, load_library(folder).tags())
    if not offer.missing:
        return 0
    if write and offer.new is not None:
        try:
            if offer.path.exists():
                replace_file(str(offer.path), offer.old, offer.new)
            else:
                offer.path.write_bytes(offer.new)
        except NotWritten as error:
            raise UsageError(f"{offer.path}: {error}; {error.fix}") from error
        print(f"made {offer.path}: {', '.join(offer.missing)}")
        return 0
    why = "has some of these keys, or the table in another form; add by hand" if write else "for ruff, add"
    print(f"{offer.path}: {why}:\n\n{offer.toml}", file=sys.stderr)
    for reason in dict.fromkeys(RULES[rule] for rule in offer.missing.get("ignore", ())):
        rules = ", ".join(rule for rule in offer.missing["ignore"] if RULES[rule] == reason)
        print(f"  {rules}: {reason}", file=sys.stderr)
    return int(write)


def run_new(args: argparse.Namespace) -> int:
    """Begin a document."""
    ident = args.id
    if ident is None:
        if not sys.stdin.isatty():
            raise UsageError("which id? run `codegen new ID`")
        print("id of the document: ", end="", file=sys.stderr, flush=True)
        ident = sys.stdin.readline().strip()
    root = project_root(Path.cwd())
    title = args.title or ident.replace("_", " ").replace("-", " ").capitalize()
    text = document_text(
        template_text(root, args.template),
        ident,
        title,
        _names(args.roots),
        _names(args.supersedes),
        args.date or today(),
    )
    path = new_document(root, text, ident)
    print(shown(path))
    print("Next: fill it in, then `codegen lint` and `codegen plan`", file=sys.stderr)
    return 0


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
