"""The page shows the document, its graphs, steps, drift and coverage, and loads nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from codegen.document.parse import parse_document
from codegen.drift.code import Code
from codegen.view.markdown import anchor, document_html
from codegen.view.page import page

DOCUMENT = """\
---
id: tea
title: Tea & <b>biscuits</b>
version: 0.3
status: implementing
roots: [tea]
---
# Tea

## 3. Decisions

### D-1: Water first

- status: accepted
- affects: 5.1

## 5. APIs and implementation

### 5.1 `tea.pot`

#### 5.1.1 `boil`

Heat it. <img src=x onerror=alert(1)> [go](javascript:alert(1))

```python
def boil(litres: float) -> None: ...
```

#### 5.1.2 `pour`

Fill a cup.

- deps: `boil`

```python
def pour(cups: int) -> None: ...
```

## 6. Plan

### 6.2 Steps

| Step | Title | Depends | Status | Commit |
|---|---|---|---|---|
| 1 | Heat | - | DONE | abc1234 |
| 2 | Cups | 1 | NOT_STARTED | - |

### Step 1: Heat

- files: tea/pot.py

| Method | Section | Status | Digest |
|---|---|---|---|
| `tea.pot.boil` | 5.1.1 | DONE | - |

### Step 2: Cups

- files: tea/pot.py

| Method | Section | Status | Digest |
|---|---|---|---|
| `tea.pot.pour` | 5.1.2 | NOT_STARTED | - |
"""


class Elements(HTMLParser):
    """Collects tags with their attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.tags if (value := attributes.get(attribute))]


@pytest.fixture
def html(tmp_path: Path) -> str:
    (tmp_path / "tea").mkdir()
    code = "def boil(litres: int) -> None: ...\n\n\ndef sweeten() -> None: ...\n"
    (tmp_path / "tea" / "pot.py").write_text(code)
    return page(parse_document(DOCUMENT, tmp_path / "design" / "tea.md"), Code(tmp_path))


def test_the_page_loads_nothing(html: str) -> None:
    elements = Elements(html)
    assert not {tag for tag, _ in elements.tags} & {"script", "link", "img", "iframe", "object", "embed", "base"}
    assert elements.values("src") == []
    assert "url(" not in html and "@import" not in html
    assert all(href.startswith("#") for href in elements.values("href"))
    assert "default-src 'none'" in html


def test_every_link_on_the_page_leads_to_something_on_it(html: str) -> None:
    elements = Elements(html)
    ids = elements.values("id")
    assert len(ids) == len(set(ids))
    assert {href.removeprefix("#") for href in elements.values("href")} <= set(ids)


def test_text_of_the_document_is_never_markup(html: str) -> None:
    assert "<b>biscuits</b>" not in html and "Tea &amp; &lt;b&gt;biscuits&lt;/b&gt;" in html
    assert "<img" not in html and "javascript:" not in "".join(Elements(html).values("href"))


def test_steps_drift_and_coverage_are_shown(html: str) -> None:
    text = " ".join(Elements(html).text.split())
    assert "1/2 methods done" in text.replace("1/2methods", "1/2 methods")
    assert "commit abc1234" in text
    assert "boil: parameter `litres` is `float` here, `int` in the code" in text
    assert "tea.pot.sweeten is public and Section 5 does not define it" in text
    assert "1 of 2 entries are not started" in text
    assert "1/2" in text and "tea.pot" in text


def test_the_graphs_hold_steps_decisions_and_modules(html: str) -> None:
    assert html.count('<g class="node') == 4
    for label in ("1. Heat", "2. Cups", "D-1 Water first", "tea.pot"):
        assert f">{label}</text>" in html


@pytest.mark.parametrize(
    ("heading", "expected"),
    [("5.1.2 `pour`", "s-5.1.2"), ("5. APIs", "s-5"), ("D-12: x", "d-12"), ("Step 4: y", "step-4"), ("Open", "")],
)
def test_headings_have_stable_anchors(heading: str, expected: str) -> None:
    assert anchor(heading) == expected


def test_comments_of_the_document_are_not_shown() -> None:
    assert "secret" not in document_html(parse_document("# x\n\n<!-- secret -->\n\ntext\n"))


def test_a_document_without_steps_and_decisions_has_a_page(tmp_path: Path) -> None:
    text = page(parse_document("---\nid: x\n---\n# X\n", tmp_path / "x.md"), Code(tmp_path))
    assert "Nothing is planned yet." in text and "No decision is recorded." in text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_headless_chromium_shows_the_page(html: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(html)
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    # no name resolves: whatever the page would fetch fails
    options += ["--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--dump-dom"]
    command = ["chromium", *options, (tmp_path / "page.html").as_uri()]
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    shown = Elements(done.stdout)
    assert [tag for tag, _ in shown.tags].count("svg") == 2
    assert "Tea & <b>biscuits</b>" in shown.text
    assert "Content Security Policy" not in done.stderr
