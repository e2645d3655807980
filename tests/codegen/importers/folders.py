"""Folders in the shapes that Spec Kit and OpenSpec write: numbers, ticks, fences, comments, as real ones have them."""

from __future__ import annotations

from pathlib import Path

SPEC = """\
# Feature Specification: Lending desk

**Feature Branch**: `003-lending-desk`

**Created**: 2026-02-01

**Status**: Draft

**Input**: User description: "readers borrow books \\"at the desk\\" — 借书"

## User Scenarios & Testing *(mandatory)*

<!--
  ACTION REQUIRED: this comment is no text.
  ### User Story 9 - of the comment (Priority: P9)
-->

### User Story 1 - Borrow a book (Priority: P1)

A reader takes a book home.

**Why this priority**: nothing else matters without it.

**Independent Test**: run `lend` and see the shelf shrink.

**Acceptance Scenarios**:

1. **Given** a free book, **When** it is lent, **Then** it is gone for <reader>.

---

### User Story 2 - Return it (Priority: P2)

#### A heading deeper down

```text
## Not a heading
- [ ] T999 not a task
```

### Edge Cases

- What if the book is lost?

## Requirements *(mandatory)*

### Functional Requirements

- **FR-001**: The desk MUST refuse a second loan
  of the same copy.
- **FR-002**: The desk MUST keep loans for [NEEDS CLARIFICATION: how long?]

### Key Entities *(include if feature involves data)*

- **Loan**: a copy, a reader, a day

## Success Criteria *(mandatory)*

### Measurable Outcomes

- **SC-001**: a loan takes under 10 seconds

## Assumptions

- One desk only
"""
PLAN = """\
# Implementation Plan: Lending desk

## Summary

A ledger of loans.

## Technical Context

**Language/Version**: Python 3.11
**Storage**: SQLite
"""
RESEARCH = """\
# Research

## Decision 1: Where loans live

- **Decision**: one SQLite file
- **Rationale**: one desk,
  one writer
- **Alternatives considered**: a server; rejected, nobody runs it

## Clock

**Decision**: days, no times

**Rationale**:
- readers think in days
- tests are simpler

---

## References

- a book
"""
TASKS = """\
---
description: "Task list"
---

# Tasks: Lending desk

## Format: `[ID] [P?] [Story] Description`

- **[P]**: can run in parallel

## Phase 1: Setup (Shared Infrastructure)

**Purpose**: make the package

- [x] T001 Create `pyproject.toml`
- [X] T002 [P] Create src/desk/__init__.py

**Checkpoint**: it imports

---

## Phase 2: Foundational (Blocking Prerequisites)

- [x] T003 Write src/desk/ledger.py
- [ ] T004 Write tests/desk/test_ledger.py

## Phase 3: User Story 1 - Borrow a book (Priority: P1) 🎯 MVP

**Goal**: a reader | borrows

**Independent Test**: run `lend` and see the shelf shrink

### Tests for User Story 1

- [ ] T005 [P] [US1] Test `lend` in tests/desk/test_lend.py

### Implementation for User Story 1

- [ ] T006 [US1] Write src/desk/lend.py (depends on T003, T005)

## Phase 4: User Story 2 - Return it (Priority: P2)

- [ ] T007 [US2] Write src/desk/give_back.py (depends on T006), see https://example.org/a/b.py

## Phase 5: Polish

- [ ] T008 Run everything

## Dependencies & Execution Order

- Polish comes last

## Parallel Example

```bash
- [ ] T900 an example
```
"""
PROPOSAL = """\
## Why

Loans are forgotten.

## What Changes

### 1. Remember them

- **BREAKING**: loans have a day

## Impact

- `src/desk/ledger.py`
"""
DESIGN = """\
## Context

One desk.

## Goals / Non-Goals

**Goals:**
- No loan is lost

**Non-Goals:**
- Fines

## Decisions

### 1. Append only
A loan is never edited.

- status: this is no field of ours

### Decision: Days
**Choice**: whole days
**Rationale**: simple

## Risks / Trade-offs

- It grows

## Open Questions

- Who pays?
"""
DELTA = """\
## ADDED Requirements

### Requirement: Loans have a day
The desk SHALL write the day
of each loan.

#### Scenario: A loan
- **WHEN** a book is lent
- **THEN** the day is kept

## MODIFIED Requirements

### Requirement: Listing
The list SHALL show days.
"""
CHANGE_TASKS = """\
## 1. Ledger

- [x] 1.1 Add the day to `src/desk/ledger.py`
  - [x] 1.1.1 and its test in `tests/desk/test_ledger.py`
- [x] 1.2 Migrate

## 2. List

- [ ] 2.1 Show it
- [ ] **2.2** Document it

```
- [ ] 9.9 an example
```
"""


def feature(folder: Path) -> Path:
    """A project with one feature of Spec Kit; the feature's folder."""
    path = folder / "specs" / "003-lending-desk"
    path.mkdir(parents=True)
    for name, text in (("spec", SPEC), ("plan", PLAN), ("research", RESEARCH), ("tasks", TASKS)):
        (path / f"{name}.md").write_text(text, encoding="utf-8")
    return path


def change(folder: Path) -> Path:
    """A project with one open change of OpenSpec and an archived one; the open one's folder."""
    path = folder / "openspec" / "changes" / "add-loan-days"
    (path / "specs" / "lending").mkdir(parents=True)
    for name, text in (("proposal", PROPOSAL), ("design", DESIGN), ("tasks", CHANGE_TASKS)):
        (path / f"{name}.md").write_text(text, encoding="utf-8")
    (path / "specs" / "lending" / "spec.md").write_text(DELTA, encoding="utf-8")
    archived = path.parent / "archive" / "2026-01-01-old"
    archived.mkdir(parents=True)
    (archived / "tasks.md").write_text("- [x] 1.1 done\n")
    return path
