"""The library of validation patterns: load it, bind arguments, render code, run the examples."""

from __future__ import annotations

from codegen.patterns.arguments import bind, parse_use, signature
from codegen.patterns.examples import run_examples
from codegen.patterns.library import Library, load_library
from codegen.patterns.model import (
    BadArgument,
    Bound,
    Example,
    ExampleResult,
    Parameter,
    Pattern,
    PatternFileError,
    RenderError,
    Site,
    UnknownPattern,
)
from codegen.patterns.render import render

__all__ = [
    "BadArgument",
    "Bound",
    "Example",
    "ExampleResult",
    "Library",
    "Parameter",
    "Pattern",
    "PatternFileError",
    "RenderError",
    "Site",
    "UnknownPattern",
    "bind",
    "load_library",
    "parse_use",
    "render",
    "run_examples",
    "signature",
]
