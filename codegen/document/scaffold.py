"""New documents and new projects from templates. Nothing that exists is overwritten.

A template is Jinja2, rendered in a sandbox where an unknown name is an error. `templates/<name>.md.j2` of the project
goes before the one shipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from codegen.diagnostics import UsageError
from codegen.document.edit import yaml_scalar
from codegen.document.locate import FOLDER
from codegen.document.store import replace_file

SHIPPED = Path(__file__).parent / "templates"
TEMPLATES = "templates"
IDENT = re.compile(r"[^\W\d][\w-]*$")
IGNORED = ".codegen_cache/"


@dataclass(frozen=True)
class Made:
    """A file or folder: `made`, or there already and left alone."""

    path: Path
    made: bool


def _utf8(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8; save it as UTF-8") from error


def template_text(root: Path, name: str) -> str:
    """The source of a template: a path, the project's own of that name, or the shipped one."""
    for path in (root / TEMPLATES / f"{name}.md.j2", SHIPPED / f"{name}.md.j2", Path(name)):
        if path.is_file():
            return _utf8(path)
    shipped = ", ".join(sorted(path.name.removesuffix(".md.j2") for path in SHIPPED.glob("*.md.j2")))
    raise UsageError(f"there is no template {name!r}: no such file, none in {root / TEMPLATES}; shipped: {shipped}")


def document_text(
    source: str,
    ident: str,
    title: str,
    roots: tuple[str, ...],
    supersedes: tuple[str, ...],
    date: str,
) -> str:
    """Render a document. Raises UsageError for an id that is no name, or a template that does not render."""
    if not IDENT.match(ident):
        raise UsageError(f"{ident!r} is no id for a document; use letters, digits, `_` and `-`, a letter first")
    environment = SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    root = roots[0] if roots else ident
    values = {
        "id": ident,
        "title": title,
        "title_yaml": yaml_scalar(title),
        "roots": roots or (ident,),
        "supersedes": supersedes,
        "module": root.removeprefix("src/").strip("/").removesuffix(".py").replace("/", "."),
        "date": date,
    }
    try:
        return environment.from_string(source).render(values)
    except TemplateError as error:
        raise UsageError(f"the template does not render: {error}; known names: {', '.join(values)}") from error


def new_document(root: Path, text: str, ident: str) -> Path:
    """Write design/<id>.md. Raises UsageError when it exists."""
    path = root / FOLDER / f"{ident}.md"
    if path.exists():
        raise UsageError(f"{path}: exists already; nothing was written")
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text.encode("utf-8"))
    return path


def init_project(root: Path) -> list[Made]:
    """Make the folders of a project and have git ignore the cache, in a new file also Python's. What exists stays."""
    made: list[Made] = []
    for name in (FOLDER, "validation_patterns", "steps"):
        folder = root / name
        made.append(Made(folder, not folder.exists()))
        folder.mkdir(parents=True, exist_ok=True)
    ignore = root / ".gitignore"
    lines = _utf8(ignore).splitlines() if ignore.exists() else []
    wanted = IGNORED not in [line.strip() for line in lines]
    if wanted:
        more = [] if ignore.exists() else ["__pycache__/"]
        replace_file(ignore, "".join(f"{line}\n" for line in [*lines, IGNORED, *more]).encode("utf-8"))
    made.append(Made(ignore, wanted))
    return made
