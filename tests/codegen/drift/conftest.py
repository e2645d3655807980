"""A small project whose Section 5 and code agree, for tests to change one thing in."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.document.parse import parse_document
from codegen.drift.code import Code
from codegen.drift.report import DriftReport, drift

CODE = '''\
"""A shelf of parcels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional


class Full(Exception):
    """No room is left."""


@dataclass(frozen=True)
class Parcel:
    """Something to keep."""

    name: str
    weight: float = 1.0


class Shelf:
    """Keeps parcels in order."""

    def __init__(self, room: int) -> None:
        # VAL: VAL_INT_RANGE(room, min=1)
        if not 1 <= room:
            raise ValueError(f"room must be at least 1, got {room!r}")
        # END VAL 000000
        self.room = room
        self.parcels: list[Parcel] = []

    @property
    def free(self) -> int:
        """Places left."""
        return self.room - len(self.parcels)

    def put(self, parcel: Parcel, *, label: str | None = None) -> int:
        """Keep a parcel and return its place."""
        if self.free == 0:
            raise Full(parcel.name)
        self.parcels.append(parcel)
        # AST: AST_POSTCONDITION(len(self.parcels) > 0)
        place = len(self.parcels) - 1
        return place

    async def send(self, place: int, retries: int = 3) -> Parcel:
        """Take a parcel out."""
        return _take(self, place)


def _take(shelf: Shelf, place: int) -> Parcel:
    if place >= len(shelf.parcels):
        raise IndexError(place)
    return shelf.parcels.pop(place)


def weigh(parcels: list[Parcel]) -> float:
    """Their weight in kilograms."""
    return sum(parcel.weight for parcel in parcels)
'''

SECTION = """\
---
id: shelf
title: Shelf
version: 0.1
status: approved
roots: [store]
surface: all
---
# Shelf

## 5. APIs and implementation

### 5.1 `store.shelf`

#### 5.1.1 `Full`, `Parcel`

What is kept, and the error when it cannot be.

```python
class Full(Exception): ...

@dataclass(frozen=True)
class Parcel:
    name: str
    weight: float = 1.0
```

#### 5.1.2 `Shelf`

Keeps parcels in order.

```python
class Shelf:
    def __init__(self, room: int) -> None:
        # VAL: VAL_INT_RANGE(room, min=1)
        ...

    @property
    def free(self) -> int: ...
```

#### 5.1.3 `Shelf.put`

Keep a parcel.

- deps: 5.1.1
- errors: Full when no place is free

```python
def put(self, parcel: Parcel, *, label: Optional[str] = None) -> int:
    self.parcels.append(parcel)
    # AST: AST_POSTCONDITION(len(self.parcels)>0)
    return place
```

#### 5.1.4 `Shelf.send`

Take a parcel out.

- errors: IndexError when there is none at the place

```python
async def send(self, place: int, retries: int = 3) -> "Parcel": ...
```

#### 5.1.5 `weigh`

Their weight.

```python
def weigh(parcels: List[Parcel]) -> float: ...
```

## 6. Plan

### 6.2 Steps

| Step | Title | Depends | Status | Commit |
|---|---|---|---|---|
| 1 | All of it | - | DONE | - |

### Step 1: All of it

- files: store/shelf.py

| Method | Section | Status | Digest |
|---|---|---|---|
| `Shelf` | 5.1.2 | DONE | - |
| `weigh` | 5.1.5 | DONE | - |
"""


class Project:
    """The code and the document, each changed by replacing one piece of text that must be there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.code = CODE
        self.section = SECTION

    def change_code(self, old: str, new: str) -> Project:
        assert self.code.count(old) >= 1, old
        self.code = self.code.replace(old, new, 1)
        return self

    def change_section(self, old: str, new: str) -> Project:
        assert self.section.count(old) >= 1, old
        self.section = self.section.replace(old, new, 1)
        return self

    def write(self) -> None:
        (self.root / "store").mkdir(exist_ok=True)
        (self.root / "design").mkdir(exist_ok=True)
        (self.root / "store" / "__init__.py").write_text("from .shelf import Shelf\n")
        (self.root / "store" / "shelf.py").write_text(self.code)
        (self.root / "design" / "shelf.md").write_text(self.section)

    def report(self) -> DriftReport:
        self.write()
        document = parse_document(self.section, self.root / "design" / "shelf.md")
        return drift(document, Code(self.root))

    def found(self) -> list[tuple[str, str]]:
        """Code and message of every finding."""
        return [(finding.code, finding.message) for finding in self.report().findings]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)
