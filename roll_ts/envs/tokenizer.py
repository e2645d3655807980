"""A character tokenizer of at most 64 entries, for policies small enough to learn on a CPU.

Entry 0 is the end-of-reply token; the others are single characters. There is no padding and no unknown
token: text outside the alphabet is an error. A padding token is left out on purpose: Hugging Face models
zero the embedding row of `pad_token_id`, and a sampled token with a zero embedding makes the RMSNorm
gradient explode.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

EOS = "<eos>"
MAX_ENTRIES = 64
# 63 characters and the end mark: 64 entries, a size that tensor parallelism divides evenly.
DEFAULT_ALPHABET = "LDRUSFHGA/\n #0123456789abcdefghijklmnopqrstuvwxyz.,:;-+=?!()>BC"


class CharTokenizer:
    """Ids follow the order of the alphabet, starting at 1; id 0 is the end of a reply."""

    eos_id = 0

    def __init__(self, alphabet: str = DEFAULT_ALPHABET) -> None:
        if len(set(alphabet)) != len(alphabet):
            twice = sorted({c for c in alphabet if alphabet.count(c) > 1})
            raise ValueError(f"alphabet repeats {twice!r}: each character may stand once")
        if not 1 <= len(alphabet) < MAX_ENTRIES:
            raise ValueError(f"alphabet has {len(alphabet)} characters, must be 1..{MAX_ENTRIES - 1}")
        self.alphabet = alphabet
        self._ids = {c: i for i, c in enumerate(alphabet, start=1)}

    def __len__(self) -> int:
        """Number of entries, the end mark included."""
        return len(self.alphabet) + 1

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, one per character. Raises ValueError naming the first character outside the
        alphabet."""
        try:
            return [self._ids[c] for c in text]
        except KeyError as unknown:
            at = text.index(unknown.args[0])
            raise ValueError(
                f"character {unknown.args[0]!r} at position {at} is not in the alphabet {self.alphabet!r}"
            ) from None

    def decode(self, ids: Iterable[int]) -> str:
        """Text of `ids`; end marks are dropped. Raises IndexError for an id outside the vocabulary."""
        text = []
        for i in ids:
            if not 0 <= i < len(self):
                raise IndexError(f"token id {i} is outside 0..{len(self) - 1}")
            if i != self.eos_id:
                text.append(self.alphabet[i - 1])
        return "".join(text)

    def save(self, folder: str | Path) -> None:
        """Write a Hugging Face tokenizer folder (tokenizer.json, tokenizer_config.json) that AutoTokenizer
        and vLLM load.

        Needs the `tokenizers` package. The two files are all that is written; a model may live in the same
        folder.
        """
        from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        vocab = {EOS: self.eos_id, **self._ids}
        tok = Tokenizer(models.WordLevel(vocab))
        tok.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
        tok.decoder = decoders.Fuse()
        tok.add_special_tokens([AddedToken(EOS, special=True, normalized=False)])
        _write(target / "tokenizer.json", tok.to_str(pretty=False))
        _write(
            target / "tokenizer_config.json",
            json.dumps(
                {
                    "tokenizer_class": "PreTrainedTokenizerFast",
                    "eos_token": EOS,
                    "clean_up_tokenization_spaces": False,
                    "model_max_length": 1_000_000,
                },
                indent=2,
            ),
        )

    @classmethod
    def load(cls, folder: str | Path) -> CharTokenizer:
        """Inverse of `save`. Raises ValueError if the folder holds another kind of tokenizer."""
        path = Path(folder) / "tokenizer.json"
        model = json.loads(path.read_text(encoding="utf-8"))["model"]
        vocab = sorted(model.get("vocab", {}).items(), key=lambda kv: kv[1])
        chars = [c for c, _ in vocab[1:]]
        if model.get("type") != "WordLevel" or not vocab or vocab[0] != (EOS, 0) or any(len(c) != 1 for c in chars):
            raise ValueError(f"{path} is not a character tokenizer: expected a WordLevel model with {EOS!r} as id 0")
        return cls("".join(chars))


def _write(path: Path, text: str) -> None:
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
