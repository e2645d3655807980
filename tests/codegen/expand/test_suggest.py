"""Foreign annotations: each ends right, or is refused with a proposal that expands; nothing is written unasked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codegen.cli import main
from codegen.expand.driver.suggest import Suggestion, accept, suggest
from codegen.expand.model import Options
from tests.codegen.expand.helpers import LIBRARY, MARKS, expand, report

HEAD = """\
class Router:
    def place(self, device_mapping: list[int], workers: list[int], tp_size: int, timeout: float, mode: str) -> int:
        self.active_ranks = set(device_mapping)
        kept = len(device_mapping) - len(workers)
        print(kept)
"""
FOREIGN = {
    # Free text, as it stands in front of hand-written checks of others.
    "VAL: device mapping not empty": "VAL: VAL_NON_EMPTY(device_mapping) - device mapping not empty",
    "VAL: workers must not be empty": "VAL: VAL_NON_EMPTY(workers) - workers must not be empty",
    "VAL: device_mapping has no duplicates":
        "VAL: VAL_NO_DUPLICATES(device_mapping) - device_mapping has no duplicates",
    "VAL: device mapping non-empty and unique":
        "VAL: VAL_NO_DUPLICATES(device_mapping), VAL_NON_EMPTY(device_mapping) - device mapping non-empty and unique",
    "VAL: tp_size must be a power of two": "VAL: VAL_POWER_OF_TWO(tp_size) - tp_size must be a power of two",
    "VAL: tp size in range 1 to 8": "VAL: VAL_INT_RANGE(tp_size, min=1, max=8) - tp size in range 1 to 8",
    "VAL: timeout is finite": "VAL: VAL_FINITE(timeout) - timeout is finite",
    "VAL: workers is a subset of device_mapping":
        "VAL: VAL_SUBSET(workers, device_mapping) - workers is a subset of device_mapping",
    # `+`, `and` between patterns.
    "VAL: VAL_NON_EMPTY(workers) + VAL_NO_DUPLICATES(workers)":
        "VAL: VAL_NON_EMPTY(workers), VAL_NO_DUPLICATES(workers)",
    "VAL: VAL_NON_EMPTY(workers) and VAL_NO_DUPLICATES(workers)":
        "VAL: VAL_NON_EMPTY(workers), VAL_NO_DUPLICATES(workers)",
    "VAL: VAL_SUBSET(workers, device_mapping) + VAL_NON_EMPTY(workers)":
        "VAL: VAL_SUBSET(workers, device_mapping), VAL_NON_EMPTY(workers)",
    # Prose behind the id.
    "VAL: VAL_NON_EMPTY(workers) checked before use": "VAL: VAL_NON_EMPTY(workers) - checked before use",
    "VAL: VAL_NON_EMPTY(workers): the pool": "VAL: VAL_NON_EMPTY(workers) - the pool",
    "AST: AST_INVARIANT(kept >= 0) some ranks stay": "AST: AST_INVARIANT(kept >= 0) - some ranks stay",
    # Bare flags.
    "VAL: VAL_TYPE_CHECK(tp_size, int, allow_bool)": "VAL: VAL_TYPE_CHECK(tp_size, int, allow_bool=True)",
    "VAL: VAL_INT_RANGE(tp_size, min=1, max=8, strict)": "VAL: VAL_INT_RANGE(tp_size, min=1, max=8)",
    "VAL: VAL_SORTED(workers, strictly=True)": "VAL: VAL_SORTED(workers, strict=True)",
    # Ids that nobody defined.
    "VAL: VAL_POSITVE(tp_size)": "VAL: VAL_POSITIVE(tp_size)",
    "VAL: VAL_NOT_EMPTY(workers)": "VAL: VAL_NON_EMPTY(workers)",
    "VAL: VAL_UNIQUE(workers)": "VAL: VAL_NO_DUPLICATES(workers)",
    "VAL: VAL_DISJOINTS(workers, device_mapping)": "VAL: VAL_DISJOINT(workers, device_mapping)",
    "VAL: VAL_EXCLUSIVE(workers) + VAL_NON_EMPTY":
        "VAL: VAL_NON_EMPTY(workers) - VAL_EXCLUSIVE(workers) + VAL_NON_EMPTY",
    "AST: AST_POSTCOND(kept >= 0)": "AST: AST_POSTCONDITION(kept >= 0)",
    "AST: AST_CHECK(kept < len(device_mapping)) - some go": "AST: AST_INVARIANT(kept < len(device_mapping)) - some go",
    # Claims in prose.
    "AST: invariant: kept >= 0": "AST: AST_INVARIANT(kept >= 0) - invariant: kept >= 0",
    "AST: after the loop kept >= 0 holds": "AST: AST_POSTCONDITION(kept >= 0) - after the loop kept >= 0 holds",
    # What is denied is not proposed.
    "VAL: tp_size must not be positive": None,
    "VAL: workers may overlap with device_mapping": None,
    "VAL: duplicates in workers are allowed": None,
    "VAL: workers is not a subset of device_mapping": None,
    "VAL: workers shall never be empty": "VAL: VAL_NON_EMPTY(workers) - workers shall never be empty",
    # What no pattern says.
    "AST: State consistency": None,
    "AST: the router must not be asleep": None,
    "VAL: TODO": None,
    "VAL: VAL_STR_CHOICE(mode)": None,
    "VAL:": None,
}  # fmt: skip


def proposals(text: str) -> list[Suggestion]:
    return suggest("m.py", text.encode(), LIBRARY, MARKS, Options())


def placed(annotation: str) -> str:
    return f"{HEAD}        # {annotation}\n        return kept\n"


@pytest.mark.parametrize("annotation", FOREIGN)
def test_X24_a_foreign_annotation_gets_the_proposal_that_it_probably_means(annotation: str) -> None:
    (found,) = proposals(placed(annotation))
    wanted = FOREIGN[annotation]
    said = annotation.partition(":")[2].strip()
    assert found.new == (f"# {wanted}" if wanted else f"# note: {said or 'empty'}")
    assert found.expands == (wanted is not None)
    assert found.why and found.first == 6


@pytest.mark.parametrize("annotation", FOREIGN)
def test_X24_an_accepted_proposal_expands_without_a_finding(annotation: str) -> None:
    text = placed(annotation)
    new = accept(text.encode(), proposals(text)).decode()
    done = report(new)
    assert done.text is not None and not done.findings
    assert ("# END " in done.text) == (FOREIGN[annotation] is not None)
    assert not proposals(new)


def test_X24_a_tree_of_them_is_accepted_at_once_and_nothing_else_in_it_changes() -> None:
    lines = "".join(f"        # {annotation}\n\n" for annotation in FOREIGN)
    text = f"{HEAD}{lines}        return kept\n"
    found = proposals(text)
    assert len(found) == len(FOREIGN) >= 21
    new = accept(text.encode(), found).decode()
    assert not [f for f in report(new).findings if f.severity == "error"]
    old_rows, new_rows = text.splitlines(), new.splitlines()
    assert len(old_rows) == len(new_rows)
    assert {n for n, (a, b) in enumerate(zip(old_rows, new_rows, strict=True), 1) if a != b} == {s.first for s in found}


def test_good_annotations_get_no_proposal() -> None:
    assert not proposals(placed("VAL: VAL_POSITIVE(kept)"))
    assert not proposals(expand(placed("VAL: VAL_POSITIVE(kept)")))


@pytest.mark.parametrize(
    "tail", ["# noqa", "# noqa: E501, F401", "# type: ignore[arg-type]", "# pragma: no cover", "# fmt: skip", "#noqa"]
)
def test_X25_a_comment_for_another_tool_behind_an_annotation_is_left_to_it(tail: str) -> None:
    text = placed(f"VAL: VAL_POSITIVE(kept)  {tail}")
    done = expand(text)
    assert f"# VAL: VAL_POSITIVE(kept)  {tail}\n" in done and "# END VAL" in done
    assert expand(done) == done


def test_X25_behind_a_note_and_in_a_string_the_same_words_are_read_as_they_should_be() -> None:
    done = expand(placed("VAL: VAL_POSITIVE(kept) - some stay  # noqa: E501"))
    assert 'got {kept!r} - some stay")' in done
    done = expand(placed("VAL: VAL_MATCHES(mode, '# noqa')"))
    assert "'# noqa'" in done


def test_X25_another_comment_behind_an_annotation_is_refused_with_a_proposal() -> None:
    (found,) = proposals(placed("VAL: VAL_POSITIVE(kept)  # since yesterday"))
    assert found.new == "# VAL: VAL_POSITIVE(kept) - since yesterday"


@pytest.mark.parametrize(
    ("annotation", "meant"),
    [
        ("VAL: VAL_POSITIVE(kpet)", "VAL: VAL_POSITIVE(kept)"),
        ("VAL: VAL_NON_EMPTY(wrokers) - one at least", "VAL: VAL_NON_EMPTY(workers) - one at least"),
        ("AST: kept is positive", "VAL: VAL_POSITIVE(kept) - kept is positive"),
        ("VAL: VAL_INT_RANGE(kept, 0..7)", "VAL: VAL_INT_RANGE(kept, min=0, max=7) - kept, 0..7"),
        ("VAL: VAL_INT_RANGE(kept, 1 to 8)", "VAL: VAL_INT_RANGE(kept, min=1, max=8) - kept, 1 to 8"),
    ],
)
def test_a_proposal_checks_what_was_written(annotation: str, meant: str) -> None:
    assert [found.new for found in proposals(placed(annotation))] == [f"# {meant}"]


@pytest.mark.parametrize("annotation", ["VAL: VAL_POSITIVE(zzz)", "VAL: VAL_NON_EMPTY(time.time())"])
def test_a_check_of_a_known_pattern_is_never_made_a_comment(annotation: str) -> None:
    assert [f.severity for f in report(placed(annotation)).findings] == ["error"]
    assert all(found.expands for found in proposals(placed(annotation)))


def test_an_annotation_over_several_lines_is_replaced_as_a_whole() -> None:
    text = placed("VAL: VAL_NON_EMPTYY(\n        #     workers\n        # )")
    (found,) = proposals(text)
    assert (found.first, found.last) == (6, 8)
    assert accept(text.encode(), [found]).decode() == placed("VAL: VAL_NON_EMPTY(workers)")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "m.py"
    two = "        # VAL: workers not empty\n\n        # VAL: VAL_POSITVE(kept)\n        return kept\n"
    path.write_text(HEAD + two, encoding="utf-8")
    return path


def test_suggest_prints_and_writes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = project.read_text(encoding="utf-8")
    assert main(["expand", "--suggest", "m.py"]) == 1
    out = capsys.readouterr().out
    assert "m.py:6:9: error suggestion # VAL: workers not empty: " in out
    assert "fix: Write: `# VAL: VAL_POSITIVE(kept)`" in out
    assert project.read_text(encoding="utf-8") == before
    assert main(["expand", "--suggest", "m.py", "--json"]) == 1
    assert [f["line"] for f in json.loads(capsys.readouterr().out)] == [6, 8]


def test_accept_writes_the_chosen_proposals_or_all(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["expand", "--suggest", "--accept", "8", "m.py"]) == 1
    text = project.read_text(encoding="utf-8")
    assert "# VAL: VAL_POSITIVE(kept)\n" in text and "# VAL: workers not empty\n" in text and "END" not in text
    assert main(["expand", "--suggest", "--accept", "all", "m.py"]) == 0
    assert "# VAL: VAL_NON_EMPTY(workers) - workers not empty\n" in project.read_text(encoding="utf-8")
    assert main(["expand", "--suggest", "m.py"]) == 0
    assert main(["expand", "m.py"]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--accept", "all", "m.py"], "--accept goes with --suggest"),
        (["--suggest", "--accept", "some", "m.py"], "--accept some: give all, or the line numbers"),
        (["--suggest", "--accept", "7", "m.py"], "no proposal on line 7"),
        (["--suggest", "--accept", "6", "m.py", "."], "the line numbers of one file"),
        (["--suggest", "--strip", "m.py"], "--suggest goes with files and folders"),
        (["--suggest", "-"], "--suggest goes with files and folders"),
    ],
)
def test_wrong_use_of_suggest_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    before = project.read_text(encoding="utf-8")
    assert main(["expand", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert project.read_text(encoding="utf-8") == before


def test_strict_makes_warnings_fail(project: Path) -> None:
    project.write_text("def f(x: int) -> int:\n    # AST: the syntax tree\n    return x\n", encoding="utf-8")
    assert main(["expand", "--check", "m.py"]) == 0
    assert main(["expand", "--check", "--strict", "m.py"]) == 1
