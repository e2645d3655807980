"""Joins an engine's events per id and checks the promises every engine makes about them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from roll_ts.engines.protocol import TERMINAL, Event


@dataclass
class Story:
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    end: Event | None = None


@dataclass
class Transcript:
    """Events seen so far, by id. An event after the terminal one, or a token without log-prob, fails at once."""

    stories: dict[str, Story] = field(default_factory=dict)

    def add(self, events: list[Event]) -> None:
        for event in events:
            story = self.stories.setdefault(event.id, Story())
            assert story.end is None, f"{event} comes after {story.end}"
            assert len(event.tokens) == len(event.logprobs), event
            story.tokens += event.tokens
            story.logprobs += event.logprobs
            if isinstance(event, TERMINAL):
                story.end = event

    def read_until_ended(self, engine: Any, ids: list[str], timeout_s: float = 60.0) -> None:
        """Read events until each id has its terminal one."""
        deadline = time.monotonic() + timeout_s
        while open_ids := [i for i in ids if i not in self.stories or self.stories[i].end is None]:
            assert time.monotonic() < deadline, f"no terminal event within {timeout_s} s for {open_ids}"
            self.add(engine.next_events(0.5))

    def read_until_tokens(self, engine: Any, request_id: str, count: int, timeout_s: float = 60.0) -> None:
        """Read events until an id has `count` tokens, or ended."""
        deadline = time.monotonic() + timeout_s
        while True:
            story = self.stories.get(request_id, Story())
            if len(story.tokens) >= count or story.end is not None:
                return
            assert time.monotonic() < deadline, f"{request_id} has {len(story.tokens)} of {count} tokens"
            self.add(engine.next_events(0.5))
