"""The last line of every bench: one JSON object with name, figures, seeds and versions."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any


def closing_line(name: str, figures: Mapping[str, Any] | Sequence[Any], seeds: Sequence[int], *packages: str) -> str:
    """The line. `packages`: distributions that took part, beside Python and ours."""
    versions = {"python": platform.python_version()} | {p: version(p) for p in ("roll-ts", *packages)}
    return json.dumps({"name": name, "figures": figures, "seeds": list(seeds), "versions": versions}, default=float)
