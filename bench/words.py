"""A sample of public docstring sentences, by seed, and those with words that CONTRIBUTING.md advises against.

`python bench/words.py [--seed N] [--size N] [--all]`: each with its place, then one line of JSON. --all lists
the whole sample, for a reader who judges the rest.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AVOID = re.compile(
    r"(?<!-)\b(?:stands?|stood|"
    r"mend(?:s|ed|ing)?|anew|told(?! apart)|circles?|the talk|(?<!out )of use|names nothing)\b(?!-)"
    r"|\bh[eo]lds? (?:\w+ ){1,4}against\b",
    re.IGNORECASE,
)


def sentences(root: Path) -> Iterator[tuple[str, str]]:
    """(place, sentence) of every docstring of a public module, class or function, in the order of files and lines."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for path in sorted(p for top in ("codegen", "roll_ts") for p in (root / top).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, kinds) or getattr(node, "name", "").startswith("_"):
                continue
            place = f"{path.relative_to(root)}:{getattr(node, 'lineno', 1)}"
            for part in re.split(r"(?<=[.!?:;])\s+", " ".join((ast.get_docstring(node) or "").split())):
                if part:
                    yield place, part


def main(arguments: list[str]) -> None:
    """Print the findings of a sample, and the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args(arguments)
    everything = list(sentences(ROOT))
    sample = random.Random(options.seed).sample(everything, min(options.size, len(everything)))
    found = [(place, text) for place, text in sample if AVOID.search(text)]
    for place, text in sample if options.all else found:
        print(f"{place}: {text}")
    whole = sum(1 for _, text in everything if AVOID.search(text))
    print(
        json.dumps(
            {"bench": "words", "sentences": len(everything), "with_words": whole}
            | {"seed": options.seed, "sample": len(sample), "found": len(found)}
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:])
