"""Loading: layers, inheritance, digests, and errors that name file, line and fix."""

from __future__ import annotations

import random
import textwrap
from pathlib import Path

import pytest

from codegen.diagnostics import UsageError
from codegen.patterns import Pattern, PatternFileError, UnknownPattern, load_library, parse_use, run_examples
from codegen.patterns.library import SHIPPED_TAGS, digest

GOOD = """\
id: VAL_EVEN
version: 1
since: "0.1"
tag: VAL
summary: The number is even, as it should be.
target: required
elementwise: true
error: ValueError
message: "{{ where }}{{ label }} must be even, got {{ small(each) }}"
template: |
  if {{ each }} % 2 != 0:
      raise {{ error }}({{ message }})
examples:
  - use: VAL_EVEN(n)
    passes: [n = 2]
    raises:
      n = 3: "check: n must be even, got 3"
"""


def write(folder: Path, id: str, text: str, group: str = "own") -> Path:
    path = folder / "validation_patterns" / group / f"{id}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def child(id: str, parent: str, rest: str = "") -> str:
    head = f'id: {id}\nversion: 1\nsince: "0.1"\nsummary: A pattern for this test.\nextends: {parent}\n'
    return head + rest + f"examples:\n  - use: {id}(n)\n    passes: [n = 4]\n"


def problems(folder: Path, id: str) -> list[tuple[int, str, str | None]]:
    with pytest.raises(PatternFileError) as caught:
        load_library(folder).get(id)
    assert all(f.path.endswith(".yaml") for f in caught.value.findings)
    return [(f.line, f.message, f.fix) for f in caught.value.findings]


def test_a_projects_pattern_stands_beside_the_shipped_ones(tmp_path: Path) -> None:
    write(tmp_path, "VAL_EVEN", GOOD)
    library = load_library(tmp_path)
    assert {"VAL_EVEN", "VAL_RANK"} <= set(library.ids())
    assert library.get("VAL_EVEN").group == "own"
    assert [r.status for r in run_examples(library.get("VAL_EVEN"))] == ["passed", "passed"]


def test_without_a_project_there_are_the_shipped_ones(tmp_path: Path) -> None:
    assert load_library(None).ids() == load_library(tmp_path).ids()


def test_a_projects_pattern_hides_the_shipped_one_and_may_extend_it(tmp_path: Path) -> None:
    write(tmp_path, "VAL_POSITIVE", child("VAL_POSITIVE", "VAL_POSITIVE", "error: OverflowError\n"))
    write(tmp_path, "VAL_MORE", child("VAL_MORE", "VAL_POSITIVE"))
    library = load_library(tmp_path)
    assert library.get("VAL_POSITIVE").error == "OverflowError"
    assert library.get("VAL_POSITIVE").template == load_library().get("VAL_POSITIVE").template
    assert library.get("VAL_MORE").error == "OverflowError"
    assert library.get("VAL_NON_NEGATIVE").error == "OverflowError"


def test_parameters_merge_by_name(tmp_path: Path) -> None:
    rest = 'parameters:\n  - {name: max, default: "9"}\n  - {name: more, type: int, default: "1"}\n'
    write(tmp_path, "VAL_DIGIT", child("VAL_DIGIT", "VAL_INT_RANGE", rest))
    pattern = load_library(tmp_path).get("VAL_DIGIT")
    assert [(p.name, p.type, p.default) for p in pattern.parameters] == [
        ("min", "number", "None"), ("max", "number", "9"), ("more", "int", "1"),
    ]  # fmt: skip
    assert pattern.parameters[1].help == "Greatest allowed value."


def test_a_parents_change_changes_the_childs_digest(tmp_path: Path) -> None:
    write(tmp_path, "VAL_EVEN", GOOD)
    write(tmp_path, "VAL_PAIR", child("VAL_PAIR", "VAL_EVEN"))
    digests, fingerprints = set(), set()
    for text in (GOOD, GOOD.replace("% 2", "% 4")):
        write(tmp_path, "VAL_EVEN", text)
        digests.add(load_library(tmp_path).get("VAL_PAIR").digest)
        fingerprints.add(load_library(tmp_path).fingerprint())
    assert len(digests) == len(fingerprints) == 2


def test_words_and_examples_do_not_change_the_digest(tmp_path: Path) -> None:
    write(tmp_path, "VAL_EVEN", GOOD)
    before = load_library(tmp_path).get("VAL_EVEN")
    write(tmp_path, "VAL_EVEN", GOOD.replace("as it should be", "as it must be").replace("n = 2", "n = 4"))
    after = load_library(tmp_path).get("VAL_EVEN")
    assert before.digest == after.digest == digest(after)


def test_only_the_asked_pattern_is_read(tmp_path: Path) -> None:
    write(tmp_path, "VAL_BROKEN", "not: [a pattern")
    write(tmp_path, "VAL_EVEN", GOOD)
    assert load_library(tmp_path).get("VAL_EVEN").id == "VAL_EVEN"


def test_an_unknown_id_comes_with_the_nearest() -> None:
    with pytest.raises(UnknownPattern, match="did you mean VAL_INT_RANGE") as caught:
        load_library().get("VAL_INTRANGE")
    assert caught.value.nearest[0] == "VAL_INT_RANGE"


def test_the_same_id_twice_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "VAL_EVEN", GOOD, "one")
    write(tmp_path, "VAL_EVEN", GOOD, "two")
    with pytest.raises(UsageError, match="also defined in"):
        load_library(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("id: VAL_EVEN", "id: VAL_ODD", 1, "the id VAL_ODD is not the file's name"),
        ("version: 1", "version: one", 2, "version must be an integer, not a string"),
        ('since: "0.1"', "since: 0.1", 3, "since must be a string"),
        ("tag: VAL", "tag: NO", 4, "NO means different things"),
        ("tag: VAL\n", "", 1, "VAL_EVEN has no 'tag'"),
        ("error: ValueError", "eror: ValueError", 8, "unknown key 'eror'"),
        ("error: ValueError", "error: ValueError\nerror: TypeError", 9, "duplicate key 'error', first on line 8"),
        ("small(each)", "big(each)", 9, "message: unknown name big"),
        ("% 2 != 0", "% {{ two }} != 0", 11, "template: unknown name two"),
        ("{{ error }}(", "{{ error.x }}(", 12, "template: attribute access"),
        ("{{ error }}(", "{{ error|upper }}(", 12, "template: unknown filter upper"),
        ("if {{ each }}", "if {{ each", 11, "template: expected token"),
        ("use: VAL_EVEN(n)", "use: VAL_EVEN(n, 3)", 14, "no further argument 3"),
        ("use: VAL_EVEN(n)", "use: VAL_EVEN", 14, "names no target"),
        ("    passes: [n = 2]\n    raises:\n      n = 3: \"check: n must be even, got 3\"\n", "", 14, "no case"),
        ("elementwise: true", "elementwise: true\nimports: [import os; import re]", 8, "not one import statement"),
        ("elementwise: true", "elementwise: true\nbuiltins: [length]", 8, "no built-in is called 'length'"),
        ("elementwise: true", "parameters:\n  - {name: each, type: int}", 8, "'each' is reserved"),
        ("elementwise: true", "parameters:\n  - {name: k}", 8, "parameter 'k' has no type"),
        ("elementwise: true", 'parameters:\n  - {name: k, type: int, default: "x y"}', 8, "default of 'k'"),
        (
            "elementwise: true",
            'parameters:\n  - {name: k, type: int, default: "1", positional: true}',
            8,
            "a lone argument could be the target or the parameter",
        ),
        ("tag: VAL", "tag: VAL\nextends: VAL_NOWHERE", 5, "extends unknown pattern VAL_NOWHERE"),
        ("tag: VAL", "tag: VAL\nextends: VAL_EVEN", 5, "extends unknown pattern VAL_EVEN"),
    ],
)  # fmt: skip
def test_an_error_in_a_file_names_its_line(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    assert old in GOOD
    write(tmp_path, "VAL_EVEN", GOOD.replace(old, new))
    found = problems(tmp_path, "VAL_EVEN")
    assert any(at == line and message in said for at, said, _ in found), found


def test_a_cycle_of_extends_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "VAL_ONE", child("VAL_ONE", "VAL_TWO"))
    write(tmp_path, "VAL_TWO", child("VAL_TWO", "VAL_ONE"))
    assert problems(tmp_path, "VAL_ONE") == [(5, "VAL_TWO extends itself through VAL_ONE", None)]


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "VAL_EVEN", GOOD).write_bytes(GOOD.encode().replace(b"even", b"\xff"))
    assert problems(tmp_path, "VAL_EVEN")[0][1].startswith("not UTF-8")


def test_all_broken_files_are_reported_at_once(tmp_path: Path) -> None:
    write(tmp_path, "VAL_ONE", "id: VAL_ONE\n")
    write(tmp_path, "VAL_TWO", "a: NO\n")
    with pytest.raises(PatternFileError) as caught:
        iter(load_library(tmp_path))
    assert {Path(f.path).stem for f in caught.value.findings} == {"VAL_ONE", "VAL_TWO"}


def test_shipped_patterns_use_two_tags_and_a_project_may_add_one(tmp_path: Path) -> None:
    assert {pattern.tag for pattern in load_library()} == SHIPPED_TAGS
    write(tmp_path, "VAL_EVEN", GOOD.replace("tag: VAL", "tag: P0"))
    assert load_library(tmp_path).tags() == {"VAL", "AST", "P0"}


def test_shipped_patterns_have_what_a_reader_needs() -> None:
    for pattern in load_library():
        assert pattern.summary.endswith("."), pattern.id
        assert all(parameter.help for parameter in pattern.parameters), pattern.id
        raising = [example for example in pattern.examples if example.message is not None]
        assert raising, pattern.id
        named = _names_and_values(pattern)
        assert not named, f"{pattern.id}: the message of {named} does not show the target"


def _names_and_values(pattern: Pattern) -> list[str]:
    """Uses whose message lacks the target's name, where the pattern has a target."""
    if pattern.target != "required":
        return []
    cases = [(e.use, parse_use(pattern, e.use).target, e.message) for e in pattern.examples if e.message]
    return [use for use, target, message in cases if target and target not in message]


def test_no_damage_to_a_pattern_file_crashes_the_loader(tmp_path: Path) -> None:
    rng = random.Random(3)
    files = [path.read_text(encoding="utf-8") for path in sorted(load_library().layers[0].values())]
    marks = [*list(" \n:{}[]-|>'\"%#&*!?,\\0~x\t"), "{{", "}}", "{%", "%}", "NO", "- ", "\u2028", "\x00", "é"]
    outcomes = set()
    for number in range(250):
        text = rng.choice(files)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text))
            drop = rng.choice((0, 0, 1, 5, 40))
            text = text[:at] + rng.choice(marks) + text[at + drop :]
        id = f"VAL_DAMAGED{number}"
        write(tmp_path / str(number), id, "x").write_bytes(text.encode())
        try:
            load_library(tmp_path / str(number)).get(id)
        except PatternFileError as error:
            outcomes.add(error.findings[0].code)
    assert outcomes >= {"pattern-syntax", "pattern-schema", "pattern-content"}
