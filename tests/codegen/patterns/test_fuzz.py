"""Long runs against the loader and the binder: no input crashes them, hangs them or gives code that does not parse."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codegen.patterns import (
    BadArgument,
    PatternFileError,
    RenderError,
    Site,
    bind,
    load_library,
    parse_use,
    render,
)
from codegen.patterns.yaml_source import YamlError, read_yaml

LIBRARY = load_library()
FILES = [path.read_text(encoding="utf-8").replace(id, "VAL_DAMAGED") for id, path in sorted(LIBRARY.layers[0].items())]
MARKS = [
    *" \n:{}[]-|>'\"%#&*!?,\\0~x\t()=",
    "{{",
    "}}",
    "{%",
    "%}",
    "NO",
    "- ",
    "\u2028",
    "\x00",
    "é",
    "for",
    "[*",
    "**",
]
ARGUMENTS = [
    *"abx01()[]{}.,+-*=<>'\"\\\n# ",
    "f'",
    "not ",
    " or ",
    " if ",
    " else ",
    "lambda:",
    "min=",
    " for ",
    "each=",
]


def damaged(text: str, rng: random.Random) -> str:
    """The text with up to six places overwritten."""
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(MARKS) + text[at + rng.choice((0, 0, 1, 5, 60)) :]
    return text


def load_damaged(folder: Path, rounds: int, seed: int) -> dict[str, int]:
    """Load damaged pattern files and render what still loads; counts by outcome."""
    rng = random.Random(seed)
    counts: dict[str, int] = {}
    own = folder / "validation_patterns"
    own.mkdir()
    path = own / "VAL_DAMAGED.yaml"
    for _ in range(rounds):
        path.write_bytes(damaged(rng.choice(FILES), rng).encode())
        outcome = _try(folder)
        counts[outcome] = counts.get(outcome, 0) + 1
    return counts


def _try(folder: Path) -> str:
    try:
        pattern = load_library(folder).get("VAL_DAMAGED")
    except PatternFileError as error:
        return error.findings[0].code
    stand_ins = {"type": "int", "display": "(p, q)", "bool": "False"}
    arguments = {p.name: stand_ins.get(p.type, "arg") for p in pattern.parameters}
    target = "aim" if pattern.target == "required" else None
    try:
        code = render(pattern, bind(pattern, [], arguments), Site(target, "aim", "f", expression="a", body="await b"))
    except (BadArgument, RenderError) as error:
        return type(error).__name__
    ast.parse(code)
    return "rendered"


@pytest.mark.nightly
@pytest.mark.timeout(1500)
def test_no_damaged_file_crashes_the_loader_or_renders_to_broken_code(tmp_path: Path) -> None:
    counts = load_damaged(tmp_path, 6_000, seed=20)
    print(counts)
    assert {"pattern-syntax", "pattern-schema", "pattern-content", "rendered"} <= set(counts)


@pytest.mark.nightly
@pytest.mark.timeout(1500)
@given(st.text(max_size=400))
@settings(deadline=None, max_examples=20_000, suppress_health_check=list(HealthCheck))
def test_any_text_is_read_as_yaml_or_refused_with_a_place(text: str) -> None:
    try:
        read_yaml(text)
    except YamlError as error:
        assert error.line >= 1 and error.column >= 1


@pytest.mark.nightly
@pytest.mark.timeout(1500)
@given(st.sampled_from(LIBRARY.ids()), st.lists(st.sampled_from(ARGUMENTS), max_size=14).map("".join))
@settings(deadline=None, max_examples=15_000, suppress_health_check=list(HealthCheck))
def test_any_arguments_are_refused_or_render_to_code_that_parses(id: str, text: str) -> None:
    pattern = LIBRARY.get(id)
    try:
        bound = parse_use(pattern, f"{id}({text})")
    except BadArgument as error:
        assert error.message and error.fix
        return
    expression = bound.target if pattern.target == "expression" else None
    if pattern.target == "expression" and expression is None:
        return
    target = (bound.target or "aim") if pattern.target == "required" else None
    site = Site(target, target or "", "f", bound.each or "none", expression=expression, body="await b")
    ast.parse(render(pattern, bound, site))
