"""Read one pattern file: strict YAML, the JSON Schema, then what a schema cannot say.

The result is a draft: what the file itself gives, before `extends` is resolved. Each finding has its line.
"""

from __future__ import annotations

import builtins
import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import codegen
from codegen.diagnostics import Finding, UsageError
from codegen.patterns.arguments import RESERVED, BadArgument, check_value, parse_use
from codegen.patterns.json_schema import violations
from codegen.patterns.model import Example, Pattern, PatternFileError
from codegen.patterns.source import parses_as
from codegen.patterns.template import MESSAGE_NAMES, STATEMENT_NAMES, template_problems
from codegen.patterns.yaml_source import Located, YamlError, read_yaml

FOLDER = "validation_patterns"
SYNTAX, SCHEMA, CONTENT = "pattern-syntax", "pattern-schema", "pattern-content"


@dataclass(frozen=True)
class Draft:
    """What a pattern file gives. `fields` are Pattern's fields except parameters and digest."""

    id: str
    extends: str | None
    fields: dict[str, Any]
    parameters: list[dict[str, Any]]
    tree: Located
    path: Path

    def finding(self, where: str | tuple[str | int, ...], message: str, fix: str | None = None) -> Finding:
        """A finding at the value under that key."""
        at = self.tree.find((where,) if isinstance(where, str) else where)
        return Finding(str(self.path), at.line, at.column, CONTENT, message, fix=fix)

    def problems(self, pattern: Pattern) -> list[Finding]:
        """What is wrong with the completed pattern beyond the schema."""
        return [
            *self._argument_problems(pattern),
            *self._code_problems(pattern),
            *self._example_problems(pattern),
        ]

    def _argument_problems(self, pattern: Pattern) -> list[Finding]:
        found = []
        for index, parameter in enumerate(pattern.parameters):
            where = ("parameters", index)
            if parameter.name in RESERVED or parameter.name in STATEMENT_NAMES | MESSAGE_NAMES | {"loop"}:
                found.append(self.finding(where, f"parameter name {parameter.name!r} is reserved", "Rename it."))
            if parameter.positional and parameter.default is not None and pattern.target != "none":
                found.append(
                    self.finding(
                        where,
                        f"positional parameter {parameter.name!r} has a default, so a lone argument could be "
                        "the target or the parameter",
                        "Make it required, or not positional.",
                    )
                )
            if parameter.default is not None:
                try:
                    check_value(parameter, parameter.default)
                except BadArgument as error:
                    found.append(self.finding(where, f"default of {parameter.name!r}: {error.message}", error.fix))
        return found

    def _code_problems(self, pattern: Pattern) -> list[Finding]:
        found = []
        for name in ("message", "template"):
            for message, line in template_problems(pattern, name):
                at = self.tree.find((name,))
                # Only a literal block keeps the template's own lines; its text starts below the key.
                down = line if str(at.value).endswith("\n") else 0
                found.append(Finding(str(self.path), at.line + down, at.column, CONTENT, f"{name}: {message}"))
        for index, statement in enumerate(pattern.imports):
            if not parses_as(statement, "import"):
                found.append(self.finding(("imports", index), f"not one import statement: {statement!r}"))
        for index, name in enumerate(pattern.builtins):
            if not hasattr(builtins, name):
                found.append(self.finding(("builtins", index), f"no built-in is called {name!r}"))
        return found

    def _example_problems(self, pattern: Pattern) -> list[Finding]:
        found = []
        for index, group in enumerate(self.tree.value["examples"].value):
            where = ("examples", index, "use")
            if "passes" not in group.value and "raises" not in group.value:
                found.append(self.finding(where, "no case", "Add `passes:` or `raises:`."))
            try:
                used = parse_use(pattern, group.value["use"].value)
            except BadArgument as error:
                found.append(self.finding(where, error.message, error.fix))
                continue
            if used.target is None and pattern.target != "none":
                found.append(self.finding(where, "the example names no target", "Give the target first."))
        return found


def shipped_folder() -> Path:
    """Where the shipped patterns are: inside the installed package, or beside it in the repository."""
    package = Path(codegen.__file__).resolve().parent
    for folder in (package / FOLDER, package.parent / FOLDER):
        if (folder / "schema.json").is_file():
            return folder
    raise UsageError(f"no pattern library beside {package}; reinstall the package")


@functools.cache
def _schema(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "schema.json").read_text(encoding="utf-8"))


def read_draft(path: Path) -> Draft:
    """Read and check one file. Raises PatternFileError with all findings of its first failing stage."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise PatternFileError([Finding(str(path), 1, 1, SYNTAX, f"not UTF-8: {error.reason}")]) from error
    try:
        tree = read_yaml(text)
    except YamlError as error:
        finding = Finding(str(path), error.line, error.column, SYNTAX, error.message, fix=error.fix)
        raise PatternFileError([finding]) from error
    found = [
        Finding(str(path), v.line, v.column, SCHEMA, v.message, fix=v.fix)
        for v in violations(tree, _schema(shipped_folder()))
    ]
    if found:
        raise PatternFileError(found)
    plain = tree.plain()
    parameters = plain.pop("parameters", [])
    plain["examples"] = _examples(tree.value["examples"])
    plain["path"] = path
    plain["group"] = path.parent.name
    for name in ("imports", "builtins"):
        if name in plain:
            plain[name] = tuple(plain[name])
    draft = Draft(plain["id"], plain.get("extends"), plain, parameters, tree, path)
    if draft.id != path.stem:
        fix = f"Rename the file to {draft.id}.yaml."
        raise PatternFileError([draft.finding("id", f"the id {draft.id} is not the file's name", fix)])
    return draft


def _examples(groups: Located) -> tuple[Example, ...]:
    """One Example for each case of each group."""
    found = []
    for group in groups.value:
        item = group.plain()
        common = {
            "use": item["use"], "each": item.get("each", "none"), "is_async": item.get("async", False),
            "needs": tuple(item.get("needs", ())), "body": item.get("body", ""), "note": item.get("note"),
        }  # fmt: skip
        shared = item.get("given", "")
        cases: list[tuple[str, str | None, int]] = []
        if "passes" in group.value:
            cases += [(case.value, None, case.line) for case in group.value["passes"].value]
        if "raises" in group.value:
            raises = group.value["raises"]
            cases += [(code, text.value, raises.keys[code][0]) for code, text in raises.value.items()]
        for code, message, line in cases:
            given = "\n".join(part.rstrip("\n") for part in (shared, code) if part)
            found.append(Example(given=given, message=message, line=line, **common))
    return tuple(found)
