"""The differences between a definition in a document and the same definition in code, each as one sentence."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.drift.signatures import Definition, Field, Parameter
from codegen.drift.typeforms import same_annotation, same_value

MISSING = "DRF001"
UNDOCUMENTED = "DRF002"
KIND = "DRF003"
PARAMETER = "DRF004"
ORDER = "DRF005"
DEFAULT = "DRF006"
TYPE = "DRF007"
RETURN = "DRF008"
ASYNC = "DRF009"
DECORATOR = "DRF010"
FIELD = "DRF011"
RAISE = "DRF012"
VALIDATION = "DRF013"
FENCE = "DRF014"
PENDING = "DRF015"
AMBIGUOUS = "DRF016"
BASES = "DRF017"
BODY = "DRF018"


@dataclass(frozen=True)
class Difference:
    """`line` counts in the text of the documented definition."""

    code: str
    message: str
    line: int


@dataclass(frozen=True)
class Strictness:
    """What silence in the document means. A design document states everything; a foreign plan may leave out
    annotations and members."""

    types: bool = True
    members: bool = True


def compare(documented: Definition, coded: Definition, strict: Strictness) -> Iterator[Difference]:
    """All differences of one definition, its members left out (each is compared on its own)."""
    name, line = documented.name, documented.line
    if documented.kind != coded.kind:
        yield Difference(KIND, f"{name} is a {documented.kind} in the document, a {coded.kind} in the code", line)
        return
    if documented.is_async != coded.is_async:
        words = ("async", "not async")
        here, there = words if documented.is_async else reversed(words)
        yield Difference(ASYNC, f"{name} is {here} in the document, {there} in the code", line)
    yield from _decorators(documented, coded)
    if documented.kind == "class":
        yield from _bases(documented, coded, strict)
        yield from _fields(documented, coded, strict)
        return
    yield from _parameters(documented, coded, strict)
    yield from _returns(documented, coded, strict)


def _decorators(documented: Definition, coded: Definition) -> Iterator[Difference]:
    for decorator in sorted(documented.decorators - coded.decorators):
        yield Difference(
            DECORATOR, f"{documented.name}: @{decorator} is in the document, not in the code", documented.line
        )
    for decorator in sorted(coded.decorators - documented.decorators):
        yield Difference(
            DECORATOR, f"{documented.name}: @{decorator} is in the code, not in the document", documented.line
        )


def _bases(documented: Definition, coded: Definition, strict: Strictness) -> Iterator[Difference]:
    if not documented.bases and not strict.types:
        return
    same = len(documented.bases) == len(coded.bases) and all(
        same_annotation(ours, theirs) for ours, theirs in zip(documented.bases, coded.bases, strict=True)
    )
    if not same:
        here, there = (", ".join(map(ast.unparse, each.bases)) or "nothing" for each in (documented, coded))
        message = f"{documented.name} inherits from {here} here, from {there} in the code"
        yield Difference(BASES, message, documented.line)


def _parameters(documented: Definition, coded: Definition, strict: Strictness) -> Iterator[Difference]:
    name, line = documented.name, documented.line
    ours, theirs = _callable_parameters(documented), _callable_parameters(coded)
    missing = [key for key in ours if key not in theirs]
    extra = [key for key in theirs if key not in ours]
    if len(missing) == len(extra) == 1 and list(ours).index(missing[0]) == list(theirs).index(extra[0]):
        yield Difference(PARAMETER, f"{name}: parameter `{missing[0]}` is called `{extra[0]}` in the code", line)
    else:
        for key in missing:
            yield Difference(PARAMETER, f"{name}: parameter `{key}` is not in the code", line)
        for key in extra:
            yield Difference(PARAMETER, f"{name}: parameter `{key}` of the code is not in the document", line)
    shared = [key for key in ours if key in theirs]
    placed = _positional(ours) & _positional(theirs)
    if [key for key in ours if key in placed] != [key for key in theirs if key in placed]:
        there = ", ".join(key for key in theirs if key in ours)
        yield Difference(ORDER, f"{name}: the parameters are in another order in the code ({there})", line)
    for key in shared:
        yield from _parameter(documented, ours[key], theirs[key], strict)


def _parameter(documented: Definition, ours: Parameter, theirs: Parameter, strict: Strictness) -> Iterator[Difference]:
    name, line = documented.name, documented.line
    if ours.kind != theirs.kind:
        yield Difference(
            PARAMETER, f"{name}: parameter `{ours.name}` is {ours.kind} here, {theirs.kind} in the code", line
        )
    if not same_value(ours.default, theirs.default):
        yield Difference(
            DEFAULT,
            f"{name}: parameter `{ours.name}` {_default(ours.default)} here, {_default(theirs.default)} in the code",
            line,
        )
    if ours.annotation is None and not strict.types:
        return
    if not same_annotation(ours.annotation, theirs.annotation):
        yield Difference(
            TYPE,
            f"{name}: parameter `{ours.name}` is {_type(ours.annotation)} here, {_type(theirs.annotation)} in the code",
            line,
        )


def _returns(documented: Definition, coded: Definition, strict: Strictness) -> Iterator[Difference]:
    ours, theirs = documented.returns, coded.returns
    if ours is None and not strict.types:
        return
    if documented.last_name == "__init__":
        ours, theirs = ours or _NONE, theirs or _NONE
    if not same_annotation(ours, theirs):
        yield Difference(
            RETURN, f"{documented.name} returns {_type(ours)} here, {_type(theirs)} in the code", documented.line
        )


def _fields(documented: Definition, coded: Definition, strict: Strictness) -> Iterator[Difference]:
    ours = {field.name: field for field in documented.fields}
    theirs = {field.name: field for field in coded.fields}
    for key in (key for key in ours if key not in theirs):
        yield Difference(FIELD, f"{documented.name}: field `{key}` is not in the code", ours[key].line)
    if strict.members and not documented.partial:
        for key in (key for key in theirs if key not in ours and not key.startswith("_")):
            message = f"{documented.name}: field `{key}` of the code is not in the document"
            yield Difference(FIELD, message, documented.line)
    shared = [key for key in ours if key in theirs]
    if shared != [key for key in theirs if key in ours]:
        there = ", ".join(key for key in theirs if key in ours)
        yield Difference(
            FIELD, f"{documented.name}: the fields are in another order in the code ({there})", documented.line
        )
    for key in shared:
        yield from _field(documented, ours[key], theirs[key])


def _field(documented: Definition, ours: Field, theirs: Field) -> Iterator[Difference]:
    where = f"{documented.name}: field `{ours.name}`"
    if not same_annotation(ours.annotation, theirs.annotation):
        message = f"{where} is {_type(ours.annotation)} here, {_type(theirs.annotation)} in the code"
        yield Difference(FIELD, message, ours.line)
    if not same_value(ours.default, theirs.default):
        message = f"{where} {_default(ours.default)} here, {_default(theirs.default)} in the code"
        yield Difference(FIELD, message, ours.line)


def _callable_parameters(definition: Definition) -> dict[str, Parameter]:
    """Parameters by name, without the `self` or `cls` that a caller does not pass."""
    parameters = list(definition.parameters)
    if parameters and parameters[0].name in ("self", "cls") and "staticmethod" not in definition.decorators:
        parameters = parameters[1:]
    return {parameter.name: parameter for parameter in parameters}


def _positional(parameters: dict[str, Parameter]) -> set[str]:
    return {key for key, parameter in parameters.items() if parameter.kind.startswith("positional")}


def _type(annotation: ast.expr | None) -> str:
    return "not annotated" if annotation is None else f"`{ast.unparse(annotation)}`"


def _default(default: ast.expr | None) -> str:
    return "has no default" if default is None else f"defaults to `{ast.unparse(default)}`"


_NONE = ast.Constant(None)
