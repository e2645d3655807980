"""A git repository with a design document of three steps, its code not written yet."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from codegen.document.model import Document
from codegen.document.parse import read_document
from codegen.document.store import update_document
from codegen.workflow.commit import commit_step
from codegen.workflow.git import Git
from codegen.workflow.ledger import finished, started
from codegen.workflow.review import review_digest
from codegen.workflow.scaffold import scaffold
from codegen.workflow.sealing import sealed_cells
from codegen.workflow.target import Target, find_target
from codegen.workflow.verify import Verification, verify

DOCUMENT = """\
---
id: pantry
title: Pantry
version: 0.2
status: approved
roots: [pantry]
---
# Pantry

## Iteration log

| Round | Date | Asked | Changed | Decisions |
|---|---|---|---|---|
| 1 | 2026-01-01 | first draft | all | D-1 |

## 3. Decisions

### D-1: Weights are whole grams

- status: accepted
- outcome: an int everywhere
- affects: 5.1, 5.2

## 5. APIs and implementation

### 5.1 `pantry.jar`

#### 5.1.1 `Jar`

A jar with something in it.

- deps: -
- decisions: D-1
- tests: tests/test_jar.py

```python
@dataclass
class Jar:
    name: str
    grams: int = 0
```

#### 5.1.2 `fill`

Put more into a jar and return its weight.

- deps: `Jar`
- tests: tests/test_jar.py

```python
def fill(jar: Jar, grams: int) -> int:
    # VAL: VAL_INT_RANGE(grams, min=1, max=5000)
    jar.grams += grams
    # AST: AST_POSTCONDITION(jar.grams > 0)
    return jar.grams
```

### 5.2 `pantry.shelf`

#### 5.2.1 `Shelf`

Jars side by side.

- deps: `pantry.jar.Jar`
- tests: tests/test_shelf.py

```python
class Shelf:
    def __init__(self, jars: Sequence[Jar] = ()) -> None:
        self.jars = list(jars)
```

#### 5.2.2 `Shelf.weight`

What all jars weigh.

- deps: `Shelf`
- tests: tests/test_shelf.py

```python
def weight(self) -> int:
    ...
```

### 5.3 `pantry.report`

#### 5.3.1 `report`

One line about a shelf.

- deps: `Shelf.weight`

```python
def report(shelf: Shelf) -> str:
    return f"{len(shelf.jars)} jars, {shelf.weight()} g"
```

## 6. Plan

### 6.2 Steps

| Step | Title | Depends | Status | Commit |
|---|---|---|---|---|
| 1 | Jars | - | NOT_STARTED | - |
| 2 | The shelf | 1 | NOT_STARTED | - |
| 3 | The report | 2 | NOT_STARTED | - |

### Step 1: Jars

- purpose: what everything else holds
- files: pantry/__init__.py, pantry/jar.py, tests/test_jar.py
- checkpoints: a jar can be filled
- tests: `python tests/test_jar.py`
- waivers: `python tests/test_jar.py`: plain asserts keep these tests fast
- rollback: revert the commit

| Method | Section | Status | Digest |
|---|---|---|---|
| `pantry.jar.Jar` | 5.1.1 | NOT_STARTED | - |
| `pantry.jar.fill` | 5.1.2 | NOT_STARTED | - |

### Step 2: The shelf

- purpose: jars in a row
- files: pantry/shelf.py, tests/test_shelf.py
- tests: `python tests/test_shelf.py`
- waivers: `python tests/test_shelf.py`: plain asserts keep these tests fast

| Method | Section | Status | Digest |
|---|---|---|---|
| `pantry.shelf.Shelf` | 5.2.1 | NOT_STARTED | - |
| `pantry.shelf.Shelf.weight` | 5.2.2 | NOT_STARTED | - |

### Step 3: The report

- purpose: say it
- files: pantry/report.py, tests/test_report.py
- tests: `python tests/test_report.py`
- waivers: `python tests/test_report.py`: plain asserts keep these tests fast

| Method | Section | Status | Digest |
|---|---|---|---|
| `pantry.report.report` | 5.3.1 | NOT_STARTED | - |
"""
JAR_TEST = "from pantry.jar import Jar, fill\n\nassert fill(Jar('rice'), 5) == 5\n"
REPORT_TEST = (
    "from pantry.jar import Jar\nfrom pantry.report import report\nfrom pantry.shelf import Shelf\n\n"
    "assert report(Shelf([Jar('rice', 3)])) == '1 jars, 3 g'\n"
)
_store = tempfile.TemporaryDirectory(prefix="pantry-")
_made: dict[tuple[str | None, str, tuple[int, ...]], tuple[Path, list[str]]] = {}
SHELF_TEST = (
    "from pantry.jar import Jar\nfrom pantry.shelf import Shelf\n\nassert Shelf([Jar('rice', 3)]).weight() == 3\n"
)


class Pantry:
    """The project; every path is relative to `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git = Git(root)

    def target(self, number: int) -> Target:
        return find_target(number, "pantry", self.root)

    @property
    def document(self) -> Document:
        return read_document(self.root / "design" / "pantry.md")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def change(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text()
        assert old in text, old
        self.write(path, text.replace(old, new, 1))

    def commit_all(self, message: str) -> None:
        self.git.run("add", "--all")
        self.git.run("commit", "--quiet", "-m", message)

    def statuses(self) -> dict[int, str]:
        return {step.number: step.status for step in self.document.steps}

    def staged(self) -> list[str]:
        """Paths whose index entry is not HEAD's, those of `git add --intent-to-add` too."""
        return self.git.run("diff", "--cached", "--name-only", "--ita-visible-in-index").splitlines()

    def committed(self) -> list[str]:
        """Paths of the last commit."""
        return self.git.touched("HEAD")


@pytest.fixture
def pantry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pantry:
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "Ada")
        monkeypatch.setenv(f"{name}_EMAIL", "ada@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2026-01-01T12:00:00Z")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-01T12:00:00Z")
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(tmp_path)], check=True)
    project = Pantry(tmp_path)
    project.write("pyproject.toml", "[project]\nname = 'pantry'\n")
    project.write("design/pantry.md", DOCUMENT)
    project.write(".gitignore", "__pycache__/\n.codegen_cache/\n")
    project.commit_all("Design of the pantry")
    return project


def implement(project: Pantry, number: int) -> None:
    """Start a step, scaffold it, and write what the scaffold leaves open."""
    target = project.target(number)
    update_document(target.document.path, lambda document: started(document, number, unreviewed=True))
    if number == 1:
        project.write("pantry/__init__.py", "")
        project.write("tests/test_jar.py", JAR_TEST)
    if number == 2:
        project.write("tests/test_shelf.py", SHELF_TEST)
    if number == 3:
        project.write("tests/test_report.py", REPORT_TEST)
    assert scaffold(project.target(number)).findings == ()
    if number == 2:
        project.change(
            "pantry/shelf.py",
            'raise NotImplementedError("5.2.2 Shelf.weight")',
            "return sum(jar.grams for jar in self.jars)",
        )


def finish(project: Pantry, number: int) -> str:
    """Verify, set done and commit an implemented step without review; its commit."""
    result = verify(project.target(number), lambda text: None)
    assert result.passed, result
    done(project, number, result)
    return commit_step(project.target(number), project.git, review=False).id


def done(project: Pantry, number: int, result: Verification | None = None) -> None:
    """What `step done` writes after a verification that passed."""
    target = project.target(number)
    cells = sealed_cells(target, result.proof) if result and result.proof else None
    seal = review_digest(target)
    update_document(project.root / "design" / "pantry.md", lambda document: finished(document, number, cells, seal))


def complete(project: Pantry, *numbers: int) -> list[str]:
    """Implement and finish steps; their commits. What was done once from one commit is copied afterwards."""
    key = (project.git.head(), project.git.prefix(), numbers)
    if key in _made and project.git.changes() == []:
        copy, commits = _made[key]
        for child in project.root.iterdir():
            shutil.rmtree(child) if child.is_dir() else child.unlink()
        shutil.copytree(copy, project.root, dirs_exist_ok=True)
        return commits
    commits = []
    for number in numbers:
        implement(project, number)
        commits.append(finish(project, number))
    if not project.git.prefix():
        copy = Path(tempfile.mkdtemp(dir=_store.name)) / "pantry"
        shutil.copytree(project.root, copy)
        _made[key] = (copy, commits)
    return commits
