"""The shipped library: each example holds, and the examples decide what the pattern checks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codegen.patterns import Pattern, load_library, run_examples
from codegen.patterns.examples import render_example, run_example
from codegen.patterns.mutation import branch_mutants, mutants, survivors
from codegen.patterns.trials import troubles

PATTERNS = list(load_library())


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.id)
def test_each_example_holds(pattern: Pattern) -> None:
    wrong = [f"line {r.example.line}: {r.detail}" for r in run_examples(pattern) if r.status == "failed"]
    assert not wrong


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.id)
def test_a_weakened_check_fails_an_example(pattern: Pattern) -> None:
    assert not survivors(pattern)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.id)
def test_no_trial_finds_trouble_with_a_shipped_pattern(pattern: Pattern) -> None:
    assert not troubles(pattern)


def test_the_shipped_patterns_are_tried_with_more_than_500_wrong_variants() -> None:
    uses = {(p.id, e.use, e.each, e.note): (p, e) for p in PATTERNS for e in p.examples}
    checks = sum(len(list(mutants(render_example(p, e)))) for p, e in uses.values())
    assert checks + sum(len(list(branch_mutants(p))) for p in PATTERNS) > 500


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.id)
def test_a_message_shows_name_rule_and_note_whole_however_long_they_are(pattern: Pattern) -> None:
    note = "because " * 100 + "so"
    for example in pattern.examples:
        others = pattern.placement == "wrap" and not str(example.message).startswith("check: ")
        if example.message is None or example.note is not None or others:
            continue
        use = f"{example.use[:-1]}, about=reason)" if example.use.endswith(")") else f"{example.use}(about=reason)"
        told = replace(
            example,
            use=use,
            note=note,
            given=f"{example.given}\nreason = 'r' * 900",
            message=f"{example.message} (reason='{'r' * 199}) - {note}",
        )
        result = run_example(pattern, told, render_example(pattern, told))
        assert result.status in ("passed", "skipped"), result.detail


def test_the_library_has_at_least_25_patterns_and_150_examples() -> None:
    assert len(PATTERNS) >= 25
    assert sum(len(pattern.examples) for pattern in PATTERNS) >= 150
