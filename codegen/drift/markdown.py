"""Fenced Python signatures of any Markdown file against a package: for plans and designs of other tools.

A foreign document promises less than a design document: what it leaves out (annotations, members, errors) is not
compared. A definition is looked for in the module that the text around it names (a path or dotted name in the heading,
in a nearby paragraph or in the fence's first comment), else by its name anywhere in the package. Of several fences
that define one name the last counts. Tests (`test_…`, `Test…`) are no API and are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from codegen.diagnostics import Finding
from codegen.document.blocks import HeadingBlock, Item, Paragraph, read_blocks
from codegen.document.model import Fence
from codegen.document.parse import read_text
from codegen.drift import compare as codes
from codegen.drift.code import Code, Module, Place
from codegen.drift.compare import Strictness, compare
from codegen.drift.promises import Annotated, read_promises
from codegen.drift.signatures import Definition, read_definitions

_PYTHON = ("python", "py", "python3", "pycon")
_HINT = re.compile(r"(?<![\w./])((?:[\w-]+/)*\w+\.py|\w+(?:\.\w+)+)(?![\w/])")
_OWNER = re.compile(r"`?(?P<owner>[A-Z]\w*)\.(?P<name>\w+)")
_LOOSE = Strictness(types=False, members=False)


@dataclass(frozen=True)
class Signature:
    """One definition of a fence. `hints` are module names the text around it mentions, nearest first."""

    definition: Definition
    line: int
    hints: tuple[str, ...]
    promises: tuple[str, ...]


@dataclass(frozen=True)
class AnyReport:
    """`compared` counts definitions found on both sides, `fences` the Python fences read."""

    findings: tuple[Finding, ...]
    compared: int
    fences: int


def drift_any(path: Path, code: Code, package: str) -> AnyReport:
    """Compare every definition fenced in a Markdown file with a package given by its path below the project."""
    modules = code.modules_under(package)
    findings: list[Finding] = []
    signatures: dict[tuple[str, tuple[str, ...]], Signature] = {}
    fences = 0
    for found in _read(read_text(path), code, {module.name for module in modules}):
        fences += found.fences
        findings += [replace(note, path=str(path)) for note in found.notes]
        for signature in found.signatures:
            signatures[signature.definition.name, signature.hints[:1]] = signature
    compared = 0
    for signature in signatures.values():
        places = _places(signature, code, modules)
        if len(places) == 1:
            compared += 1
            findings += _differences(path, signature, places[0])
        else:
            findings.append(_unfound(path, signature, places, package))
    return AnyReport(tuple(sorted(findings, key=lambda each: each.line)), compared, fences)


@dataclass(frozen=True)
class _Read:
    """What one fence gave: its definitions, or a note that it is no Python."""

    signatures: tuple[Signature, ...] = ()
    notes: tuple[Finding, ...] = ()
    fences: int = 1


def _read(text: str, code: Code, known: set[str]) -> Iterator[_Read]:
    """Every Python fence of a text with the module names that the text around it mentions."""
    heading, around = "", ""
    for block in read_blocks(text):
        if isinstance(block, HeadingBlock):
            heading, around = block.text, ""
        elif isinstance(block, (Paragraph, Item)):
            nested = block.nested if isinstance(block, Item) else []
            around = " ".join([around, block.text, *nested])
        elif isinstance(block, Fence) and block.language in _PYTHON:
            first = block.code.split("\n")[0]
            texts = [first if first.startswith("#") else "", _last(around), heading]
            hints = [hint for each in texts for hint in _hints(each, code, known)]
            yield _read_fence(block, hints, f"{heading} {around}")


def _read_fence(fence: Fence, hints: list[str], around: str) -> _Read:
    try:
        definitions = read_definitions(ast.parse(fence.code))
    except SyntaxError as error:
        message = f"a fence that is not Python was passed over: {error.msg}"
        note = Finding("", fence.line + (error.lineno or 1), 1, codes.FENCE, message, "note")
        return _Read(notes=(note,), fences=0)
    annotated = read_promises(fence.code, definitions.values())
    return _Read(
        tuple(
            _signature(definition, fence, hints, annotated, around)
            for definition in definitions.values()
            if not definition.name.lower().startswith("test")
        )
    )


def _signature(definition: Definition, fence: Fence, hints: list[str], annotated: Annotated, around: str) -> Signature:
    promises = tuple(each.text for each in annotated.promises.get(definition.name, ()))
    first = definition.parameters[0].name if definition.parameters else ""
    if first in ("self", "cls") and not definition.owner:
        for match in _OWNER.finditer(around):
            if match["name"] == definition.name:
                hints = [*hints, f"{match['owner']}."]
    return Signature(definition, fence.line + definition.line, tuple(dict.fromkeys(hints)), promises)


def _last(text: str) -> str:
    """The end of the text before a fence: far away, a path says little about it."""
    return text[-400:]


def _hints(text: str, code: Code, known: set[str]) -> Iterator[str]:
    """Module names that a text mentions, the last first."""
    for match in reversed(list(_HINT.finditer(text))):
        hint = match[1]
        name = code.name_of(code.root / hint) if hint.endswith(".py") else hint
        if name in known:
            yield name


def _places(signature: Signature, code: Code, modules: list[Module]) -> list[Place]:
    """Where the definition may be: the first hint that has it settles it."""
    name = signature.definition.name
    owners = [hint for hint in signature.hints if hint.endswith(".")]
    for module in (hint for hint in signature.hints if not hint.endswith(".")):
        for candidate in (name, *(owner + name for owner in owners)):
            place = code.find(module, candidate)
            if place:
                return [place]
    names = [owner + name for owner in owners] or [name]
    found = [
        Place(module, module.definitions[each]) for module in modules for each in names if each in module.definitions
    ]
    if found or not _is_method(signature.definition):
        return found
    # a method shown without its class: every class that has one of this name
    return [
        Place(module, each)
        for module in modules
        for each in module.definitions.values()
        if each.owner and each.last_name == name
    ]


def _is_method(definition: Definition) -> bool:
    first = definition.parameters[0].name if definition.parameters else ""
    return first in ("self", "cls") and not definition.owner


def _differences(path: Path, signature: Signature, place: Place) -> Iterator[Finding]:
    for difference in compare(signature.definition, place.definition, _LOOSE):
        line = signature.line - signature.definition.line + difference.line
        message = f"{difference.message} ({place.where})"
        yield Finding(str(path), line, 1, difference.code, message)
    if signature.promises:
        held = [each.text for each in place.module.annotated.promises.get(place.definition.name, ())]
        for text in signature.promises:
            if text not in held:
                message = f"{signature.definition.name}: `{text}` is promised here and not annotated in the code"
                yield Finding(str(path), signature.line, 1, codes.VALIDATION, f"{message} ({place.where})")


def _unfound(path: Path, signature: Signature, places: list[Place], package: str) -> Finding:
    name = signature.definition.name
    if not places:
        message = f"{name} is in the document, not in {package}"
        return Finding(str(path), signature.line, 1, codes.MISSING, message)
    where = ", ".join(f"{place.full_name} ({place.where})" for place in places)
    message = f"{name} may be any of {where}; it was not compared"
    fix = "Name its file in the paragraph or heading above the fence."
    return Finding(str(path), signature.line, 1, codes.AMBIGUOUS, message, "note", fix)
