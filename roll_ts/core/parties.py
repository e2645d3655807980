"""How a party is named: "trainer" or "rank:<id>", in events, commands and messages alike."""

from __future__ import annotations

TRAINER = "trainer"
_RANK = "rank:"


def party(rank: int) -> str:
    """The name of a rollout rank as a party."""
    return f"{_RANK}{rank}"


def rank_of(name: str) -> int | None:
    """The rank that the name means; None for any other party and for what is no name."""
    number = name.removeprefix(_RANK)
    return int(number) if number != name and number.isdecimal() else None
