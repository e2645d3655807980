"""The pantry with an agent to implement it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest

from tests.codegen.agents.scripted import Supervised
from tests.codegen.workflow.conftest import Pantry, pantry

__all__ = ["pantry"]


@pytest.fixture
def supervised(
    pantry: Pantry, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Supervised]:
    """However an agent ends, nothing of it is left but the record."""
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    supervised = Supervised(pantry, tmp_path_factory.mktemp("scripts"))
    yield supervised
    supervised.require_clean(temporary)
