"""Texts that users read keep to the words of CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "docs",
    "design",
    "validation_patterns",
    "codegen/prompts",
    "examples",
)
NEVER = re.compile(
    r"(?<![\w-])(mend|mends|mended|mending|anew|the talk|names nothing|stands for|stand for)(?![\w-])", re.I
)
ALLOWED: dict[str, str] = {}  # a line as it is, without blanks around it: why it may stay


def _pages() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(
        ["git", "ls-files", *PAGES], cwd=ROOT, check=True, capture_output=True, text=True, timeout=60
    )
    for name in listed.stdout.splitlines():
        if name.endswith((".md", ".yaml", ".j2")):
            for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
                yield f"{name}:{number}", line.strip()


def _strings() -> Iterator[tuple[str, str]]:
    for path in sorted(p for top in ("codegen", "roll_ts") for p in (ROOT / top).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for line in node.value.splitlines():
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", line.strip()


@pytest.mark.parametrize("texts", [_pages, _strings])
def test_no_text_that_a_user_reads_has_a_word_of_the_list(texts) -> None:
    found = list(texts())
    assert len(found) > 1000, "the texts were not found"
    bad = [f"{place}: {line}" for place, line in found if NEVER.search(line) and line not in ALLOWED]
    assert not bad, "see Words in CONTRIBUTING.md:\n" + "\n".join(bad)


@pytest.mark.parametrize(
    "line", ["Mend it.", "drawn anew", "stderr the talk", "An id stands for it", "what names nothing"]
)
def test_a_word_of_the_list_is_seen(line: str) -> None:
    assert NEVER.search(line)


@pytest.mark.parametrize("line", ["amended", "a stand-in curve", "renewed", "the talking points", "recommend"])
def test_a_word_that_only_looks_like_one_is_not(line: str) -> None:
    assert not NEVER.search(line)
