"""The pantry and its agents, reported on."""

from __future__ import annotations

from tests.codegen.agents.conftest import supervised
from tests.codegen.workflow.conftest import pantry

__all__ = ["pantry", "supervised"]
