"""Who follows a `fix:` ends clean: its text is read from the output, run on its smallest case, and looked at again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from codegen.cli import main
from codegen.diagnostics import Finding
from tests.codegen.workflow.conftest import Pantry, complete, done, implement
from tests.codegen.workflow.test_fix_texts import FOUND

DOC = "design/pantry.md"
Output = pytest.CaptureFixture[str]
_COMMAND = re.compile(r"`codegen ([^`]+)`")
_FINDING = re.compile(r"\S+:\d+:\d+: (?:error|warning|note) (\w+) .*(?:\n    fix: .*)?")
CHECKS = (["lint"], ["step", "log", "--check"])


@dataclass(frozen=True)
class Way:
    """A case: what is broken, the command that says so and with which words, and the answers to its blanks. `take` are
    the commands of the text that are followed (all, where it names one), `then` is done by hand afterwards, as the text
    or the case asks; `gone` says that the question has another answer then."""

    broken: Callable[[Pantry], None]
    asked: str
    says: str
    answers: dict[str, str] = field(default_factory=dict)
    take: tuple[int, ...] = ()
    then: Callable[[Pantry], None] = lambda pantry: None
    gone: bool = True


def said(capsys: Output, command: list[str]) -> tuple[int, str]:
    status = main(command)
    captured = capsys.readouterr()
    return status, captured.out + captured.err


def texts(output: str, says: str) -> list[str]:
    """The findings with these words, fix included, or the lines."""
    found = [match[0] for match in _FINDING.finditer(output) if says in match[0]]
    return found or [line for line in output.splitlines() if says in line]


def errors(capsys: Output) -> set[str]:
    """What the checks call errors, without its place."""
    return {
        f"{match[1]} {match[2]}"
        for check in CHECKS
        for match in re.finditer(r"^\S+: error (\w+) (.*)", said(capsys, check)[1], re.MULTILINE)
    }


def commands(text: str, answers: dict[str, str]) -> list[list[str]]:
    """The commands in a text, with its blanks filled in."""
    return [[answers.get(word, word) for word in shlex.split(each)] for each in _COMMAND.findall(text)]


def record_cell(pantry: Pantry, name: str, column: str, value: str) -> None:
    text = (pantry.root / DOC).read_text()
    row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
    heads = next(line for line in text.splitlines() if line.startswith("| Item |"))
    cells = row.split(" | ")
    cells[heads.split(" | ").index(column)] = value
    pantry.change(DOC, row, " | ".join(cells))


def misspelt(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.change(DOC, "| `pantry.jar.fill` |", "| `pantry.jar.fil` |")


def left_over(pantry: Pantry) -> None:
    complete(pantry, 1)
    row = next(line for line in pantry.document.lines if line.startswith("| `pantry.jar.fill` |"))
    pantry.change(DOC, row, row + row.replace("jar.fill", "jar.empty").replace(" DONE | 1 |", " - | - |"))


def without_digest(pantry: Pantry) -> None:
    implement(pantry, 1)
    done(pantry, 1)
    record_cell(pantry, "pantry.jar.fill", "Digest", "-")


def old_version(pantry: Pantry) -> None:
    history = "## Version history\n\n| Version | Date | Changes |\n|---|---|---|\n| 0.1 | 2026-01-01 | first |\n\n"
    pantry.change(DOC, "## 3. Decisions", f"{history}## 3. Decisions")


def wrong_section(pantry: Pantry) -> None:
    pantry.change(DOC, "| `pantry.jar.fill` | 5.1.2 |", "| `pantry.jar.fill` | 5.2.2 |")


def unplanned(pantry: Pantry) -> None:
    entry = '#### 5.3.2 `shout`\n\nLouder.\n\n- deps: -\n\n```python\ndef shout() -> str:\n    return "!"\n```\n\n'
    pantry.change(DOC, "## 6. Plan", f"{entry}## 6. Plan")
    pantry.commit_all("An entry")


def changed_after(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.change(DOC, "grams: int) -> int", "grams: int = 1) -> int")
    pantry.change("pantry/jar.py", "grams: int) -> int", "grams: int = 1) -> int")


def plain_commit_of_a_step(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.git.run("commit", "--quiet", "--amend", "-m", "All of it")


def done_and_not_committed(pantry: Pantry) -> None:
    implement(pantry, 1)
    done(pantry, 1)


def wrong_commit_cell(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.change(DOC, "| 1 | Jars | - | DONE | - |", "| 1 | Jars | - | DONE | 1234567 |")


def stray(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.write("pyproject.toml", '[tool.codegen.step]\nsince = "first step"\n')
    pantry.commit_all("Settings")
    pantry.write("pantry/jar.py", (pantry.root / "pantry/jar.py").read_text() + "\n# corrected\n")
    pantry.commit_all("Quick fix")


def weakened(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.write("tests/test_jar.py", "from pantry.jar import Jar, fill\n\nassert 5 in [fill(Jar('rice'), 5)]\n")
    pantry.change("tests/test_jar.py", "assert 5 in [fill(Jar('rice'), 5)]", "assert fill(Jar('r'), 1) <= 1 and True")
    record_cell(pantry, "pantry.jar.fill", "Tests", "tests/test_jar.py 0/9/99 1a2b3c4d")


def without_brief(pantry: Pantry) -> None:
    implement(pantry, 1)


def stale_brief(pantry: Pantry) -> None:
    implement(pantry, 1)
    assert main(["step", "brief", "1"]) == 0
    pantry.change(DOC, "Put more into a jar", "Put something into a jar")


def not_done(pantry: Pantry) -> None:
    implement(pantry, 1)


def not_reviewed(pantry: Pantry) -> None:
    implement(pantry, 1)
    assert main(["step", "done", "1"]) == 0


def changed_since_proof(pantry: Pantry) -> None:
    not_reviewed(pantry)
    pantry.write("pantry/jar.py", (pantry.root / "pantry/jar.py").read_text() + "\n# more\n")


def corrected(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.write("pantry/jar.py", (pantry.root / "pantry/jar.py").read_text() + "\n# corrected\n")
    assert main(["step", "review", "1", "--approve", "Ann"]) == 0


def commits(*number: str) -> Callable[[Pantry], None]:
    def run(pantry: Pantry) -> None:
        assert main(["step", "commit", *number, "--no-review"]) == 0

    return run


def commit_all(pantry: Pantry) -> None:
    pantry.commit_all("The document")


JAR = {"OLD": "pantry.jar.fil", "NEW": "pantry.jar.fill", "NAME": "Ann", "TEXT": "as asked"}
WAYS = {
    "a misspelt name in the record is renamed": Way(misspelt, "lint", "REV004", JAR, (0,)),
    "a name that is left over in the record is removed": Way(
        left_over, "lint", "REV004", {"NAME": "pantry.jar.empty"}, (1,)
    ),
    "a missing digest is taken": Way(without_digest, "lint", "PLAN011", then=commits("1")),
    "a version without a row gets one": Way(old_version, "lint", "DOC007"),
    "a wrong section is counted again": Way(wrong_section, "lint", "PLAN002"),
    "an entry without a step gets one": Way(unplanned, "lint", "PLAN003"),
    "a name that changed after it was done is done again": Way(changed_after, "lint", "PLAN009"),
    "a step that a plain commit finished is claimed": Way(plain_commit_of_a_step, "step log --check", "STEP024"),
    "a step that is done is committed": Way(done_and_not_committed, "step log --check", "STEP024"),
    "a Commit cell is filled from git": Way(wrong_commit_cell, "step log --check", "STEP025", then=commit_all),
    "a plain commit of a step's code is claimed": Way(stray, "step log --check", "STEP026"),
    "weaker tests are proven again": Way(weakened, "step log --check", "STEP030"),
    "a missing brief is written": Way(without_brief, "step brief --check", "STEP001"),
    "a stale brief is written again": Way(stale_brief, "step brief --check", "STEP002"),
    "a correction of a finished step is committed as one": Way(
        corrected, "step commit 1", "--fix TEXT", JAR, gone=False
    ),
    "a step that is not done is done first": Way(not_done, "step commit 1", "is not done", then=commits("1")),
    "a step that is not reviewed is reviewed first": Way(
        not_reviewed, "step commit 1", "is not reviewed", JAR, then=commits("1")
    ),
    "a step that changed after its proof is proven again": Way(
        changed_since_proof, "step commit 1", "changed after it was proven", then=commits("1")
    ),
}


# Texts of the linter and the workflow with a command, and why no way is taken for it here.
ELSEWHERE = {
    "codegen drift 1": "shows the findings that are counted",
    "codegen expand": "an annotation that waits for its body, tests/codegen/workflow/test_scaffold.py",
    "codegen lint": "shows where the fence is no Python",
    "codegen plan": "asks for a step of files that none has: names of Section 5 decide, test_fixes",
    "codegen remove NAME": "a name that is left over, above",
    "codegen rename OLD NEW": "a misspelt name, above",
    "codegen review next": "shows what waits for a person",
    "codegen review show 1": "shows what changed; the verdict is a person's",
    "codegen step brief 1": "is the line that a brief says of itself",
    "codegen step commit": "history is not rewritten",
    "codegen step fail 1 --withdraw TEXT": "tests/codegen/workflow/test_guards.py",
    "codegen step start 1": "the error path, tests/codegen/workflow/test_failure.py",
    "codegen unfold": "an error path that opens entries, tests/codegen/workflow/test_failure.py",
    "codegen step verify 1": "shows the findings",
}
FOLLOWED = {
    "codegen bump -m TEXT",
    "codegen lint --fix",
    "codegen plan",
    "codegen review approve 1",
    "codegen step brief 1 --doc 1",
    "codegen step claim --commit 1 --doc 1",
    "codegen step claim --doc 1",
    "codegen step commit 1",
    "codegen step commit 1 --fix TEXT",
    "codegen step done",
    "codegen step done 1",
    "codegen step log --write",
    "codegen step review 1",
    "codegen step review 1 --approve",
    "codegen step review 1 --approve NAME",
}


def test_every_text_with_a_command_has_its_way_or_a_reason() -> None:
    own = {command for place, command in FOUND if place.startswith(("document/lint/", "workflow/"))}
    assert own == FOLLOWED | ELSEWHERE.keys()


def follow(pantry: Pantry, capsys: Output, way: Way) -> None:
    before = errors(capsys)
    way.broken(pantry)
    capsys.readouterr()
    _, output = said(capsys, way.asked.split())
    found = texts(output, way.says)
    assert found, output
    followed = commands(found[0], way.answers)
    followed = [followed[at] for at in way.take or range(len(followed))]
    assert followed, found[0]
    for command in followed:
        status, output = said(capsys, command)
        assert status == 0 or (command[0] == "lint" and status == 1), (command, output)
    way.then(pantry)
    capsys.readouterr()
    assert not way.gone or texts(said(capsys, way.asked.split())[1], way.says) == []
    assert errors(capsys) <= before, followed


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_who_follows_a_fix_ends_clean(
    pantry: Pantry, monkeypatch: pytest.MonkeyPatch, capsys: Output, way: Way
) -> None:
    monkeypatch.chdir(pantry.root)
    follow(pantry, capsys, way)


@pytest.mark.parametrize(
    ("module", "name", "right", "wrong"),
    [
        ("codegen.document.lint.codes", "a missing digest is taken", "step done", "step verify"),
        ("codegen.document.lint.codes", "a wrong section is counted again", "--fix", "--diff"),
        ("codegen.workflow.audit", "a Commit cell is filled from git", " --write", ""),
        (
            "codegen.workflow.strays",
            "a plain commit of a step's code is claimed",
            "claim --commit",
            "review 1 --approve",
        ),
        ("codegen.workflow.brief", "a missing brief is written", "brief 1", "brief 1 --stdout"),
    ],
)
def test_a_wrong_text_of_a_command_that_exists_is_seen(
    pantry: Pantry,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
    module: str,
    name: str,
    right: str,
    wrong: str,
) -> None:
    def planted(*args: Any, **more: Any) -> Finding:
        found = Finding(*args, **more)
        return replace(found, fix=found.fix and found.fix.replace(right, wrong))

    monkeypatch.chdir(pantry.root)
    monkeypatch.setattr(f"{module}.Finding", planted)
    with pytest.raises(AssertionError):
        follow(pantry, capsys, WAYS[name])
