"""The pantry, served."""

from __future__ import annotations

from tests.codegen.workflow.conftest import pantry

__all__ = ["pantry"]
