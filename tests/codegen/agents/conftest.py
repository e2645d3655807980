"""The pantry with an agent to implement it."""

from __future__ import annotations

import pytest

from tests.codegen.agents.scripted import Supervised
from tests.codegen.workflow.conftest import Pantry, pantry

__all__ = ["pantry"]


@pytest.fixture
def supervised(pantry: Pantry, tmp_path_factory: pytest.TempPathFactory) -> Supervised:
    return Supervised(pantry, tmp_path_factory.mktemp("scripts"))
