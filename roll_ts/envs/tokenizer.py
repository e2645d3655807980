"""A character tokenizer of at most 64 entries, for policies small enough to learn on a CPU.

Entry 0 is the end-of-reply token; the others are single characters. There is no padding and no unknown
token: text outside the alphabet is an error. A padding token is left out on purpose: Hugging Face models
zero the embedding row of `pad_token_id`, and a sampled token with a zero embedding makes the RMSNorm
gradient explode.
"""

from __future__ import annotations

import json
from collections import Counter
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
        repeated = sorted(c for c, count in Counter(alphabet).items() if count > 1)
        # VAL: VAL_EMPTY(repeated) - each character of the alphabet stands once
        if len(repeated) != 0:
            raise ValueError(
                f"CharTokenizer.__init__: repeated must be empty, got {repeated!r:.200} - each character "
                "of the alphabet stands once"
            )
        # END VAL 3811a1
        # VAL: VAL_LENGTH(alphabet, min=1, max=MAX_ENTRIES - 1)
        if not 1 <= len(alphabet) <= MAX_ENTRIES - 1:
            raise ValueError(
                f"CharTokenizer.__init__: alphabet must have 1 to {MAX_ENTRIES - 1!r:.200} elements, got "
                f"{len(alphabet)!r}: {alphabet!r:.200}"
            )
        # END VAL b26428
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
        for token in ids:
            # VAL: VAL_INT_RANGE(token, min=0, max=len(self) - 1, error=IndexError)
            if not 0 <= token <= len(self) - 1:
                raise IndexError(f"CharTokenizer.decode: token must lie in [0, {len(self) - 1!r:.200}], got {token!r}")
            # END VAL 0d3181
            if token != self.eos_id:
                text.append(self.alphabet[token - 1])
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
        kind = model.get("type")
        # VAL: VAL_EQUAL(kind, "WordLevel", about=path) - the file is no character tokenizer
        if kind != "WordLevel":
            raise ValueError(
                f'CharTokenizer.load: kind must equal "WordLevel", got {kind!r:.200} '
                f"(path={path!r:.200}) - the file is no character tokenizer"
            )
        # END VAL d2fd19
        vocab = sorted(model.get("vocab", {}).items(), key=lambda kv: kv[1])
        first, chars = vocab[:1], [text for text, _ in vocab[1:]]
        longer = [text for text in chars if len(text) != 1]
        # VAL: VAL_EQUAL(
        #     first, [(EOS, 0)], about=path
        # ), VAL_EMPTY(longer, about=path) - the file is no character tokenizer
        if first != [(EOS, 0)]:
            raise ValueError(
                f"CharTokenizer.load: first must equal [(EOS, 0)] ({([(EOS, 0)])!r:.200}), got "
                f"{first!r:.200} (path={path!r:.200}) - the file is no character tokenizer"
            )
        if len(longer) != 0:
            raise ValueError(
                f"CharTokenizer.load: longer must be empty, got {longer!r:.200} (path={path!r:.200}) - the "
                "file is no character tokenizer"
            )
        # END VAL bb94f0
        return cls("".join(chars))


def _write(path: Path, text: str) -> None:
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
