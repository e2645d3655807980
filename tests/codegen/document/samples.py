"""Documents to read and edit: a clean one, ten laid out by hand in unusual ways, and any number of random ones."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

CLEAN = """\
---
id: till
title: The till
version: 0.2
status: approved         # draft | in_review | approved
roots: [shop]
supersedes: []
---
# The till

## Version history

| Version | Date | Change |
|---|---|---|
| 0.1 | 2026-01-02 | first draft |
| 0.2 | 2026-01-09 | D-2 decided |

## Iteration log

| Round | Date | Asked | Changed | Decisions |
|---|---|---|---|---|
| 1 | 2026-01-05 | Who rounds? | 3 | D-2 |

## Open to-dos

- T-1: currencies without cents
- [x] T-2: name the owner

## 1. Goals and scope

### 1.1 Problem

Sums drift when every caller rounds.

### 1.2 Goals

- G-1: one place rounds
- G-2: a sum never loses a cent

## 2. Architecture and integration

The package `shop/` holds `shop/money.py`; callers use `shop.money.Money`.

## 3. Decisions

### D-1: Integers of cents

- status: accepted
- drivers: floats drift
- options: float; Decimal; integer cents
- outcome: integer cents
- consequences: callers convert at the edge
- affects: 5.1
- confirmation: property test

### D-2: The till rounds

- status: accepted
- drivers: callers disagree
- options: caller; till
- outcome: the till
- consequences: one test is enough
- affects: 5.2.2
- confirmation: `test_rounding`

## 4. Flows, states and failures

```mermaid
flowchart LR
    a --> b
```

A sale is open, then paid.

## 5. APIs and implementation

### 5.1 `shop.money`

#### 5.1.1 `Money`

An amount in cents.

- deps: -
- decisions: D-1
- errors: ValueError when the amount is negative
- tests: tests/shop/test_money.py

```python
@dataclass(frozen=True)
class Money:
    cents: int

    def plus(self, other: Money) -> Money:
        # VAL: VAL_TYPE_CHECK(Money)
        return Money(self.cents + other.cents)
```

#### 5.1.2 `parse`

Read an amount as people write it.

- deps: 5.1.1
- decisions: D-1, G-1
- errors: ValueError when the text is no amount
- tests: tests/shop/test_money.py

```python
def parse(text: str) -> Money:
    # VAL: VAL_NON_EMPTY
    return Money(int(float(text) * 100))
```

### 5.2 `shop.till`

#### 5.2.1 `Till`

The open sale.

- deps: `Money`
- decisions: G-2
- errors: -
- tests: tests/shop/test_till.py

```python
class Till:
    lines: list[Money]
```

#### 5.2.2 `Till.total`

The sum, rounded once.

- deps: 5.2.1, `shop.money.Money`
- decisions: D-2
- errors: -
- tests: tests/shop/test_till.py

```python
def total(self) -> Money:
    return sum(self.lines, Money(0))
```

#### 5.2.3 `_check_lines` - Full Specification

What must hold for the lines of a sale.

- deps: 5.1.1
- decisions: G-2
- errors: ValueError when a rule is broken
- tests: tests/shop/test_till.py

1. there is at least one line
2. every line is above zero

## 6. Plan

### 6.1 Dependency graph

<!-- codegen:graph -->

```mermaid
flowchart LR
    s1["1. Money"]
    s2["2. Till"]
    s1 --> s2
```

<!-- codegen:end -->

### 6.2 Steps

| Step | Title | Depends | Status | Commit |
|---|---|---|---|---|
| 1 | Money | - | DONE | a1b2c3d |
| 2 | Till | 1 | NOT_STARTED | - |

### Step 1: Money

- purpose: amounts
- depends: -
- files: shop/money.py, tests/shop/test_money.py
- checkpoints: amounts add up
- tests: `pytest tests/shop/test_money.py`
- rollback: revert the commit

| Method | Section | Status | Digest |
|---|---|---|---|
| `shop.money.Money` | 5.1.1 | DONE | MONEY |
| `shop.money.parse` | 5.1.2 | DONE | PARSE |

### Step 2: Till

- purpose: sums
- depends: 1
- files: shop/till.py, tests/shop/test_till.py
- checkpoints: totals are right
- tests: `pytest tests/shop/test_till.py`
- rollback: revert the commit

| Method | Section | Status | Digest |
|---|---|---|---|
| `shop.till.Till` | 5.2.1 | NOT_STARTED | - |
| `shop.till.Till.total` | 5.2.2 | NOT_STARTED | - |
| `shop.till._check_lines` | 5.2.3 | NOT_STARTED | - |
"""
CLEAN = CLEAN.replace("MONEY", "32dbb969").replace("PARSE", "67846cd2")


def _setext(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("# "):
            lines += [line[2:], "=" * 8]
        elif line.startswith("## ") and line[3].isdigit():
            lines += [line[3:].replace(".", "\\.", 1), "-" * 8]
        elif line.startswith("## "):
            lines += [line[3:], "-" * 8]
        else:
            lines.append(line)
    return "\n".join(lines)


BOXES = """\
```markdown
## 5. APIs and implementation
### 5.9 `nowhere`
#### 5.9.1 `nothing`
- [ ] T-9: a box in a fence
### Step 9: never
| Step | Title | Depends | Status | Commit |
|---|---|---|---|---|
| 9 | never | - | DONE | - |
<!-- codegen:graph -->
```

"""

QUOTES = """\
> ## 5. APIs and implementation
> #### 5.9.1 `nothing`
> ```python
> x = 1
> ```

<!--
### D-9: In a comment
- status: accepted
-->

"""


def handmade() -> dict[str, str]:
    """Ten documents that say the same as CLEAN, or a little more, and look different."""
    nested = CLEAN.replace(
        "- options: float; Decimal; integer cents",
        "- options:\n  - float: fast, and wrong\n  - Decimal:\n    - slow\n  - integer cents",
    ).replace("- deps: 5.2.1, `shop.money.Money`", "- deps: 5.2.1,\n  `shop.money.Money`")
    pipes = CLEAN.replace("| Money | - | DONE", r"| Money \| cents `a\|b` | - | DONE").replace(
        "Who rounds?", r"a \| b, or `x \| y`?"
    )
    foreign = CLEAN.replace("# The till", "# Die Kasse: 收银台").replace(
        "title: The till", "title: 'Die Kasse: 收银台'"
    )
    foreign = foreign.replace("one place rounds", "一处取整，且只在一处").replace(
        "first draft", "第一稿 — первый черновик"
    )
    foreign = foreign.replace("### Step 1: Money", "### Step 1: Деньги").replace("| 1 | Money |", "| 1 | Деньги |")
    foreign = foreign.replace("def parse(text: str)", "def parse(текст: str)").replace("float(text)", "float(текст)")
    columns = CLEAN.replace(
        "| Step | Title | Depends | Status | Commit |\n|---|---|---|---|---|\n"
        "| 1 | Money | - | DONE | a1b2c3d |\n| 2 | Till | 1 | NOT_STARTED | - |",
        "Status | Owner | Step | Commit | Title | Depends\n:---|---|--:|---|---|---\n"
        "DONE | Ann | 1 | a1b2c3d | Money | -\nNOT_STARTED | Bob | 2 | - | Till | 1",
    )
    tildes = CLEAN.replace("```python", "~~~~ python").replace("```\n\n#", "~~~~\n\n#")
    loose = CLEAN.replace("\n- ", "\n* ").replace("* deps:", "* **deps**:").replace("* status:", "* **status:**")
    padded = CLEAN.replace(
        "| `shop.till.Till` | 5.2.1 | NOT_STARTED | - |", "| `shop.till.Till`         | 5.2.1 | NOT_STARTED | - |"
    )
    return {
        "plain": CLEAN,
        "crlf": CLEAN.replace("\n", "\r\n"),
        "setext": _setext(CLEAN),
        "boxes": CLEAN.replace("A sale is open", BOXES + "A sale is open"),
        "pipes": pipes,
        "nested": nested,
        "foreign": foreign,
        "columns": columns,
        "tildes": tildes.replace("A sale is open", QUOTES + "A sale is open"),
        "loose": "\ufeff" + loose.rstrip("\n"),
        "padded": padded.replace("\n\n- ", "\n- ").replace("commit\n\n|", "commit\n\n\n|"),
    }


@dataclass
class Random:
    """A random document and what it says."""

    text: str
    decisions: dict[str, str] = field(default_factory=dict)
    entries: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    steps: dict[int, tuple[str, str]] = field(default_factory=dict)
    methods: list[tuple[int, str, str, str]] = field(default_factory=list)


WORDS = ["sum", "till", "税", "cent", "naïve", "|", "pipe", "`a|b`", "*star*", "under_score", "[x]", "<tag>"]
WORDS += ["1.", "#", "\\", "back", "ünï", "ж", "&", "a_b"]
STATUSES = ("NOT_STARTED", "IN_PROGRESS", "DONE", "STALE", "BLOCKED", "FAILED")


def generated(seed: int) -> Random:
    """A random document: sizes, words, bullets, newlines, blank lines, padding and fences vary with the seed."""
    rng = random.Random(seed)
    bullet = rng.choice(["-", "-", "*", "+"])
    fence = rng.choice(["```", "```", "~~~", "````"])
    blank = rng.random() < 0.8
    made = Random("")
    out: list[str] = ["---", f"id: doc{seed}", f"title: Document {seed}", f"version: 0.{seed}"]
    out += ["status: draft" + rng.choice(["", "   # as yet"]), "roots: [pkg]", "---", f"# Document {seed}", ""]
    out += ["## Version history", "", "| Version | Date | Change |", "|---|---|---|"]
    out += [f"| 0.{n} | 2026-01-{n + 1:02} | {_cell(rng)} |" for n in range(seed % 4 + 1)] + [""]
    out += ["## Iteration log", "", "| Round | Date | Asked | Changed | Decisions |", "|---|---|---|---|---|", ""]
    out += [
        "## 1. Goals and scope",
        "",
        f"{bullet} G-1: {_words(rng)}",
        "",
        "## 2. Architecture and integration",
        "",
        "x",
        "",
    ]
    out += ["## 3. Decisions", ""]
    for number in range(1, rng.randint(2, 6)):
        title = _words(rng, 2)
        made.decisions[f"D-{number}"] = title
        out += [f"### D-{number}: {_escaped(title)}", *[""] * blank, f"{bullet} status: accepted"]
        out += [f"{bullet} {name}: {_escaped(_words(rng))}" for name in ("drivers", "options", "outcome")]
        out += [f"{bullet} affects: 5.1", ""]
    out += ["## 4. Flows, states and failures", "", fence, "### Step 1: not a step", "| Step | Status |", fence, ""]
    out += ["## 5. APIs and implementation", ""]
    ids: list[str] = []
    for module in range(1, rng.randint(2, 5)):
        out += [f"### 5.{module} `pkg.m{module}`", ""]
        for place in range(1, rng.randint(2, 6)):
            ident, name = f"5.{module}.{place}", rng.choice(["f", "Class.method", "größe"]) + f"_{module}_{place}"
            deps = tuple(rng.sample(ids, min(len(ids), rng.randint(0, 3))))
            made.entries[ident] = (name, deps)
            out += [f"#### {ident} `{name}`", "", _escaped(_words(rng)), *[""] * blank]
            out += [f"{bullet} deps: {', '.join(deps) or '-'}", f"{bullet} decisions: D-1"]
            function = name.rpartition(".")[2]
            out += [*[""] * blank, f"{fence}python", f"def {function}(x: int) -> int:", "    # ## 6. Plan", ""]
            out += ["    return x", fence, ""]
            ids.append(ident)
    out += [
        "## 6. Plan",
        "",
        "### 6.2 Steps",
        "",
        "| Step | Title | Depends | Status | Commit |",
        "|---|---|---|---|---|",
    ]
    for number in range(1, rng.randint(2, 5)):
        title, status = _words(rng, 2), rng.choice(STATUSES)
        made.steps[number] = (title, status)
        wide = " " * rng.choice([0, 0, 3])
        out.append(f"| {number} | {_cell_of(title)} | {number - 1 or '-'} | {status}{wide} | - |")
    for number in made.steps:
        out += [
            "",
            f"### Step {number}: x",
            "",
            f"{bullet} purpose: {_escaped(_words(rng))}",
            f"{bullet} depends: {number - 1 or '-'}",
            "",
        ]
        out += ["| Method | Section | Status | Digest |", "|:---|---|:-:|---|"]
        for ident in ids[number - 1 :: len(made.steps)]:
            status = rng.choice(STATUSES)
            name = f"pkg.m{ident.split('.')[1]}.{made.entries[ident][0]}"
            made.methods.append((number, name, ident, status))
            out.append(f"| `{name}` | {ident} | {status} | - |")
    text = "\n".join(out) + ("\n" if rng.random() < 0.8 else "")
    made.text = text.replace("\n", "\r\n") if rng.random() < 0.3 else text
    return made


def _words(rng: random.Random, count: int = 6) -> str:
    return "word " + " ".join(rng.choice(WORDS) for _ in range(count))


def _escaped(text: str) -> str:
    """Prose in which the marks of Markdown stand for themselves; code spans stay."""
    parts = text.split("`")
    for at in range(0, len(parts), 2):
        for mark in "\\*_[]<>#":
            parts[at] = parts[at].replace(mark, "\\" + mark)
    return "`".join(parts)


def _cell_of(text: str) -> str:
    return _escaped(text).replace("|", "\\|")


def _cell(rng: random.Random) -> str:
    return _cell_of(_words(rng, 3))
