"""All that `codegen patterns test` asks of one pattern: its examples, the trials, and on request its wrong variants."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.diagnostics import Finding
from codegen.patterns.examples import run_examples
from codegen.patterns.model import Example, ExampleResult, Pattern, RenderError
from codegen.patterns.mutation import survivors
from codegen.patterns.trials import troubles
from codegen.patterns.yaml_source import Located, read_yaml


@dataclass(frozen=True)
class Verdict:
    """What came of one pattern: each example's result, and the findings at their lines of the pattern's file."""

    results: tuple[ExampleResult, ...]
    findings: tuple[Finding, ...]


def verdict(pattern: Pattern, mutate: bool = False) -> Verdict:
    """Test one pattern. Wrong variants are tried only where all examples hold: else nothing follows from them."""
    path, tree = str(pattern.path), read_yaml(pattern.path.read_text(encoding="utf-8"))
    try:
        results = run_examples(pattern)
        findings = [_failure(result, path) for result in results if result.status == "failed"]
        for trouble in troubles(pattern):
            line, column = _place(tree, trouble.key)
            findings.append(Finding(path, line, column, "pattern-trial", trouble.message, fix=trouble.fix))
        if mutate and not findings:
            findings += [
                Finding(
                    path,
                    survivor.line,
                    1,
                    "pattern-mutant",
                    f"no example of {survivor.use} notices the change {survivor.change}",
                    fix="Add a case that this change gets wrong.",
                )
                for survivor in survivors(pattern)
            ]
    except RenderError as error:
        line, column = _place(tree, "template")
        message = " ".join(str(error).split())
        finding = Finding(path, line, column, "pattern-render", message, fix="Correct the template.")
        return Verdict((), (finding,))
    return Verdict(tuple(results), tuple(findings))


def _place(tree: Located, key: str) -> tuple[int, int]:
    """Where the key is; for what the file inherits, where it says from what."""
    for name in (key, "extends", "id"):
        if name in tree.keys:
            return tree.keys[name]
    return 1, 1


def _failure(result: ExampleResult, path: str) -> Finding:
    message = f"{result.example.use} with {last_line(result.example)}: {result.detail}"
    fix = "Correct the pattern, or the example if it expects the wrong thing."
    return Finding(path, result.example.line, 1, "pattern-example", message, fix=fix)


def last_line(example: Example) -> str:
    """The line of an example's code that tells its case from the others."""
    return example.given.rpartition("\n")[2] or "nothing"
