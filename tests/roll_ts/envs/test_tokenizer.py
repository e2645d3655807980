from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.envs.frozen_lake import ALPHABET
from roll_ts.envs.tokenizer import DEFAULT_ALPHABET, MAX_ENTRIES, CharTokenizer


@settings(deadline=None, derandomize=True)
@given(st.text(alphabet=DEFAULT_ALPHABET))
def test_decoding_undoes_encoding(text: str) -> None:
    tokenizer = CharTokenizer()
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_default_has_64_entries_and_covers_the_shipped_environment() -> None:
    assert len(CharTokenizer()) == MAX_ENTRIES == 64
    assert set(ALPHABET) | set("LDRU") <= set(DEFAULT_ALPHABET)


def test_a_character_outside_the_alphabet_is_named_with_its_place() -> None:
    with pytest.raises(ValueError, match="character 'ü' at position 1"):
        CharTokenizer().encode("aüb")


def test_an_id_outside_the_vocabulary_is_an_error_and_the_end_mark_is_silent() -> None:
    tokenizer = CharTokenizer("ab")
    assert tokenizer.decode([1, 0, 2]) == "ab"
    with pytest.raises(IndexError, match=r"token must lie in \[0, 2\], got 3"):
        tokenizer.decode([3])


@pytest.mark.parametrize("alphabet", ["", "aa", "".join(chr(200 + i) for i in range(64))])
def test_an_alphabet_that_repeats_or_does_not_fit_is_refused(alphabet: str) -> None:
    with pytest.raises(ValueError, match="alphabet"):
        CharTokenizer(alphabet)


def test_a_saved_tokenizer_loads_back(tmp_path: Path) -> None:
    CharTokenizer("xyz \n").save(tmp_path)
    assert CharTokenizer.load(tmp_path).alphabet == "xyz \n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["tokenizer.json", "tokenizer_config.json"]


def test_loading_another_kind_of_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE", "vocab": {"a": 0}}}')
    with pytest.raises(ValueError, match="the file is no character tokenizer"):
        CharTokenizer.load(tmp_path)


@pytest.mark.slow
def test_transformers_reads_the_folder_the_same_way(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    own = CharTokenizer()
    own.save(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    text = "\nSFF/H G 01>abc LDRU"
    assert theirs(text)["input_ids"] == own.encode(text)
    assert theirs.decode(own.encode(text)) == text
    assert (theirs.eos_token_id, theirs.pad_token_id, len(theirs)) == (own.eos_id, None, len(own))
