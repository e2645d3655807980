"""Between the environment's text and the model's tokens. The tokenizer is the one in the model's folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from roll_ts.envs.tokenizer import CharTokenizer


class Tokenizer(Protocol):
    """What the sample store needs of a tokenizer. `eos_id` ends a reply and is part of it."""

    eos_id: int

    def encode(self, text: str) -> list[int]:
        """Tokens of an observation. Raises ValueError for text that it cannot express."""

    def decode(self, ids: Sequence[int]) -> str:
        """Text of a reply, without the end mark."""


class _HuggingFaceTokenizer:
    """A tokenizer of the `transformers` library; observations get no special tokens."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoTokenizer

        self._inner: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        self.eos_id: int = self._inner.eos_token_id

    def encode(self, text: str) -> list[int]:
        return list(self._inner.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._inner.decode(list(ids), skip_special_tokens=True))


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """The tokenizer of a model folder. Raises ValueError when the folder's tokenizer has no end mark."""
    path = Path(folder) / "tokenizer.json"
    model = json.loads(path.read_text(encoding="utf-8")).get("model", {}) if path.is_file() else {}
    if model.get("type") == "WordLevel":
        return CharTokenizer.load(folder)
    tokenizer = _HuggingFaceTokenizer(Path(folder))
    end = tokenizer.eos_id
    # VAL: VAL_NOT_NONE(end) - without an end mark a reply could never stop by itself
    if end is None:
        raise ValueError(
            f"load_tokenizer: end must not be None, got {end} - without an end mark a reply could never stop by itself"
        )
    # END VAL 8563c9
    return tokenizer
