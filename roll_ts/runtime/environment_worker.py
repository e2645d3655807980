"""Plays many episodes at once in processes that it can end, and turns text into tokens, so that the driver need not.

Invariants: an episode's steps run in the order they were sent; whatever an environment does becomes a reply that says
so, never a dead worker; a cancelled episode is closed and never replies again.
"""

from __future__ import annotations

import queue
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from roll_ts.envs.answers import Answer
from roll_ts.envs.hosting.hosts import Hosts
from roll_ts.envs.hosting.wire import Limits, Play, Said, Start
from roll_ts.runtime._text import Tokenizer, load_tokenizer
from roll_ts.runtime.session import start_actor

LANES = {"data": 1, "poll": 1}
# Replies that come within this time (seconds) of the first travel together.
_GATHER_S = 0.003
# No tokenizer here spends less than one token on so many characters of ordinary text; longer texts are cut before they
# leave the environment's process, and by tokens afterwards.
_CHARACTERS_PER_TOKEN = 64

Keep = Literal["head", "tail", "both", "end_episode"]


@dataclass(frozen=True)
class WorkerOptions:
    """What a worker plays and how. `arguments` go to the environment's factory; `processes` of at most `episodes`
    episodes each (0: no bound) and `threads` steps at a time; `tokenizer` is a model folder; an observation of more
    than `observation_tokens` is cut by `keep`."""

    name: str
    arguments: Mapping[str, Any]
    tokenizer: str
    processes: int
    threads: int
    episodes: int
    observation_tokens: int
    keep: Keep
    limits: Limits


@dataclass(frozen=True)
class Step:
    """One command to an environment: turn 0 resets with `seed`, later turns act with the reply's tokens."""

    command: int
    trajectory: int
    turn: int
    seed: int = 0
    action: Sequence[int] = ()


@dataclass(frozen=True)
class Reply:
    """What came of a step. `tokens` of the observation; `reward` is the episode's total so far; `error` is set when the
    environment broke."""

    command: int
    trajectory: int
    turn: int
    tokens: tuple[int, ...] = ()
    done: bool = False
    reward: float = 0.0
    success: bool = False
    error: str | None = None


@dataclass
class Notes:
    """What a worker had to put right, each kind with its count and the first example; and what became of processes."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, example: str) -> None:
        """One more of a kind."""
        self.counts[kind] += 1
        self.first.setdefault(kind, example)


class EnvironmentWorker:
    """Plays episodes as the options say."""

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._tokenizer: Tokenizer = load_tokenizer(options.tokenizer)
        self._rewards: dict[int, float] = {}
        self._replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        self._notes = Notes()
        characters = options.observation_tokens * _CHARACTERS_PER_TOKEN
        start = Start(options.name, dict(options.arguments), options.threads, options.limits, characters)
        self._hosts = Hosts(start, options.processes, options.episodes, self._hear)

    def submit(self, steps: Sequence[Step]) -> None:
        """Begin these steps; their replies come by `next_replies`."""
        plays = []
        for step in steps:
            if step.turn == 0:
                self._rewards[step.trajectory] = 0.0
            action = self._tokenizer.decode(step.action) if step.turn else ""
            plays.append(Play(step.command, step.trajectory, step.turn, step.seed, action))
        self._hosts.submit(plays)

    def next_replies(self, wait_s: float) -> list[Reply]:
        """All replies since the last call; waits up to `wait_s` seconds for a first one."""
        try:
            replies = [self._replies.get(timeout=wait_s)]
        except queue.Empty:
            return []
        time.sleep(_GATHER_S)
        while not self._replies.empty():
            replies.append(self._replies.get())
        return replies

    def cancel(self, trajectories: Sequence[int]) -> None:
        """Close these episodes; one that does not return from its step is ended with its process."""
        for trajectory in trajectories:
            self._rewards.pop(trajectory, None)
        self._hosts.cancel(trajectories)

    def notes(self) -> dict[str, tuple[int, str]]:
        """What was converted, cut or void so far, by kind: how often, and the first example."""
        counts = self._hosts.counts
        found = {kind: (count, self._notes.first[kind]) for kind, count in sorted(self._notes.counts.items())}
        for kind in ("started", "died", "hung"):
            found[f"processes {kind}"] = (getattr(counts, kind), "")
        return found

    def close(self) -> None:
        """End all processes."""
        self._hosts.close()

    def _hear(self, said: Said) -> None:
        blank = Reply(said.command, said.trajectory, said.turn)
        answer = said.answer
        reply = replace(blank, error=said.error) if answer is None else self._reply(blank, answer)
        if reply.error is not None:
            self._notes.add("void", reply.error)
        if reply.error is not None or reply.done:
            self._rewards.pop(said.trajectory, None)
        self._replies.put(reply)

    def _reply(self, blank: Reply, answer: Answer) -> Reply:
        for note in answer.converted:
            kind, _, example = note.partition(": ")
            self._notes.add(f"converted {kind}", example)
        reward = self._rewards.get(blank.trajectory, 0.0) + answer.reward
        self._rewards[blank.trajectory] = reward
        done = answer.terminated or answer.truncated
        # The text after the last turn is nobody's prompt.
        text = "" if done else answer.text
        try:
            tokens = self._tokenizer.encode(text)
        except ValueError as error:
            return replace(blank, error=f"its text cannot be expressed in tokens: {error}")
        limit = self._options.observation_tokens
        if len(tokens) > limit:
            self._notes.add("observation cut", f"{len(tokens)} tokens, {limit} are allowed")
            if self._options.keep == "end_episode" and blank.turn > 0:
                return replace(blank, done=True, reward=reward, success=answer.success)
            tokens = cut_tokens(tokens, limit, self._options.keep)
        return replace(blank, tokens=tuple(tokens), done=done, reward=reward, success=answer.success)


def cut_tokens(tokens: list[int], limit: int, keep: Keep) -> list[int]:
    """At most `limit` of the tokens: the first, the last, or ("both") half of each; a prompt that would end its episode
    before it began is cut like "both"."""
    # VAL: VAL_POSITIVE(limit)
    if not limit > 0:
        raise ValueError(f"cut_tokens: limit must be positive, got {limit!r}")
    # END VAL 910ec4
    if len(tokens) <= limit:
        return tokens
    if keep == "head":
        return tokens[:limit]
    if keep == "tail":
        return tokens[-limit:]
    tail = limit // 2
    return tokens[: limit - tail] + (tokens[-tail:] if tail else [])


def start_workers(options: WorkerOptions, workers: int) -> list[Any]:
    """Start the actors that run environments; returns their handles."""
    # VAL: VAL_POSITIVE(workers)
    if not workers > 0:
        raise ValueError(f"start_workers: workers must be positive, got {workers!r}")
    # END VAL eff5c7
    variables = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    return [start_actor(EnvironmentWorker, LANES, variables, options) for _ in range(workers)]
