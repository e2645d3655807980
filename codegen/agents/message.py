"""What the agent is told in each round: the rules, the findings of the last round, the brief."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from jinja2 import StrictUndefined
from jinja2.sandbox import SandboxedEnvironment

from codegen.diagnostics import Finding

MOST_FINDINGS = 40
OUTPUT_LINES = 80
OUTPUT_CHARACTERS = 8000
_CONTROL = re.compile("\x1b\\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")  # colours, and what no argument may hold


def message(
    number: int,
    rounds: int,
    brief: str,
    files: Sequence[str],
    tests: Sequence[str],
    findings: Sequence[Finding],
    output: str,
    scaffolded: bool,
) -> str:
    """The prompt of a round. Errors come first; notes are left out, as is all but the end of a long output."""
    ordered = sorted((f for f in findings if f.severity != "note"), key=lambda f: f.severity != "error")
    shown = ordered[:MOST_FINDINGS]
    tail = "\n".join(_CONTROL.sub("", output).rstrip().split("\n")[-OUTPUT_LINES:])[-OUTPUT_CHARACTERS:]
    longest = max((len(run) for run in re.findall("`+", tail)), default=0)
    environment = SandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    source = (Path(__file__).parent / "templates" / "round.md.j2").read_text(encoding="utf-8")
    text = environment.from_string(source).render(
        number=number,
        rounds=rounds,
        brief=brief.rstrip(),
        files=files,
        tests=tests,
        findings=shown,
        output=tail,
        fence="`" * max(3, longest + 1),
        scaffolded=scaffolded,
    )
    return text.strip() + "\n"
