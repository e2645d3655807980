"""A journal as intervals: what each rank, attempt, environment and control command did, from when to when.

Built once by `read_history`; report, timeline and picture only look at it. Invariants: the state intervals of a
rank tile the run without gap or overlap; an attempt's interval ends with its one terminal event, with the death
of its rank, or (still open) with the journal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from roll_ts.core import alphabet as a
from roll_ts.observe.journal import Header, Journal

CONTROL = (
    a.Drain, a.Release, a.LoadWeights, a.WakeKV, a.ResetCache, a.Fence, a.Restart, a.Train, a.ReleaseTrainer,
    a.FormGroup, a.Sync, a.Checkpoint, a.StartTrainer, a.FenceTrainer,
)  # fmt: skip
"""Commands whose time from the asking to the answer is an interval of the control side."""


@dataclass(frozen=True)
class Span:
    """Something that lasted from `start` to `end` seconds."""

    start: float
    end: float
    label: str

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start


@dataclass
class AttemptSpan:
    """One attempt. `tokens` beyond `carried` as reported; `ended` is "finished", "aborted", "failed", "died" or
    "open"."""

    id: a.AttemptId
    rank: int
    version: int
    context: int
    carried: int
    start: float
    end: float
    tokens: int = 0
    ended: str = "open"
    reason: str = ""


@dataclass
class EnvironmentSpan:
    """One reset (turn 0) or step of an environment. `ended` is "replied", "failed" or "open"."""

    trajectory: int
    turn: int
    start: float
    end: float
    ended: str = "open"


@dataclass
class ControlSpan:
    """One control command and its answer. Without an answer it ends at its deadline, or with the journal; a
    command to a rank that dies ends with the rank."""

    command: a.Command
    start: float
    end: float
    answer: a.Event | None = None


@dataclass(frozen=True)
class Member:
    """Who a trajectory is."""

    kind: str
    group: int
    member: int
    start: float


@dataclass
class History:
    """Everything of one run, in the order of time. `loads[rank]` are (time, requests in flight from then
    on)."""

    header: Header
    start: float
    end: float
    states: dict[int, list[Span]] = field(default_factory=dict)
    loads: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    attempts: list[AttemptSpan] = field(default_factory=list)
    environments: list[EnvironmentSpan] = field(default_factory=list)
    control: list[ControlSpan] = field(default_factory=list)
    members: dict[int, Member] = field(default_factory=dict)
    outcomes: list[tuple[float, a.Settled]] = field(default_factory=list)
    drops: list[tuple[float, a.GroupDropped]] = field(default_factory=list)
    decisions: list[tuple[float, a.Decided]] = field(default_factory=list)
    versions: list[tuple[float, int]] = field(default_factory=list)
    deaths: list[tuple[float, a.RankDied]] = field(default_factory=list)
    finish: a.Finish | None = None
    late_tokens: int = 0

    def controls(self, *kinds: type[a.Command]) -> list[ControlSpan]:
        """Control intervals of these commands, in order."""
        return [span for span in self.control if isinstance(span.command, kinds)]

    def turns(self) -> dict[tuple[int, int], list[AttemptSpan]]:
        """Attempts by (trajectory, turn), each list in order."""
        found: dict[tuple[int, int], list[AttemptSpan]] = {}
        for attempt in self.attempts:
            found.setdefault((attempt.id.trajectory, attempt.id.turn), []).append(attempt)
        return found

    @property
    def serving_since(self) -> float:
        """When the first rank became ACTIVE: rates and shares count from here. The start, if none ever did."""
        return min(
            (span.start for spans in self.states.values() for span in spans if span.label == "ACTIVE"),
            default=self.start,
        )


class _Reader:
    """Takes the journal line by line; `history` is complete after `close`."""

    def __init__(self, journal: Journal) -> None:
        self.history = History(journal.header, journal.start, journal.end)
        ranks = range(len(journal.header.settings.layout.ranks))
        self._state: dict[int, tuple[float, str] | None] = dict.fromkeys(ranks)
        self._flying: dict[int, int] = dict.fromkeys(ranks, 0)
        self._attempts: dict[a.AttemptId, AttemptSpan] = {}
        self._had: dict[a.AttemptId, int] = {}
        self._environments: dict[int, EnvironmentSpan] = {}
        self._control: dict[int, ControlSpan] = {}
        self.history.states = {rank: [] for rank in ranks}
        self.history.loads = {rank: [(journal.start, 0)] for rank in ranks}

    def event(self, t: float, event: a.Event) -> None:
        if event.command is not None and event.command in self._control:
            self._answer(t, self._control.pop(event.command), event)
        match event:
            case a.Progress():
                self._tokens(event.attempt, event.total)
            case a.Finished() | a.Aborted():
                self._tokens(event.attempt, event.total)
                self._end(t, event.attempt, type(event).__name__.lower(), getattr(event, "reason", ""))
            case a.Failed():
                self._end(t, event.attempt, "failed", event.error)
            case a.RankDied():
                self.history.deaths.append((t, event))
                owed = [c for c, span in self._control.items() if getattr(span.command, "rank", None) == event.rank]
                for command in owed:
                    self._answer(t, self._control.pop(command), event)
                for attempt in [span for span in self._attempts.values() if span.rank == event.rank]:
                    self._end(t, attempt.id, "died", event.reason)
            case a.EnvironmentReplied() | a.EnvironmentFailed():
                self._end_environment(t, event)
            case a.TrainerReady() | a.TrainingFinished():
                self.history.versions.append((t, event.version))

    def command(self, t: float, command: a.Command) -> None:
        history = self.history
        if isinstance(command, CONTROL):
            span = ControlSpan(command, t, history.end)
            history.control.append(span)
            self._control[command.id] = span
        match command:
            case a.RankMoved():
                self._move(t, command)
            case a.Dispatch():
                attempt = AttemptSpan(
                    command.attempt,
                    command.rank,
                    command.version,
                    command.context_tokens,
                    command.carried,
                    t,
                    history.end,
                )
                history.attempts.append(attempt)
                self._attempts[command.attempt] = attempt
                self._fly(t, command.rank, 1)
            case a.StepEnvironment():
                if command.turn == 0:
                    who = Member(command.kind, command.group, command.member, t)
                    history.members[command.trajectory] = who
                step = EnvironmentSpan(command.trajectory, command.turn, t, history.end)
                history.environments.append(step)
                self._environments[command.id] = step
            case a.Settled():
                history.outcomes.append((t, command))
            case a.GroupDropped():
                history.drops.append((t, command))
            case a.Decided():
                history.decisions.append((t, command))
            case a.Finish():
                history.finish = command

    def close(self) -> History:
        for span in self._control.values():
            span.end = min(self.history.end, span.command.due or self.history.end)
        for rank, now in self._state.items():
            since, state = now or (self.history.start, "FAILED")
            if now is None or self.history.end > since:
                self.history.states[rank].append(Span(since, self.history.end, state))
        return self.history

    def _answer(self, t: float, span: ControlSpan, event: a.Event) -> None:
        span.end, span.answer = min(t, span.command.due or t), event

    def _move(self, t: float, move: a.RankMoved) -> None:
        since, _ = self._state[move.rank] or (self.history.start, move.old)
        if t > since:
            self.history.states[move.rank].append(Span(since, t, move.old))
        self._state[move.rank] = (t, move.new)

    def _fly(self, t: float, rank: int, change: int) -> None:
        self._flying[rank] += change
        self.history.loads[rank].append((t, self._flying[rank]))

    def _tokens(self, attempt: a.AttemptId, total: int) -> None:
        """The attempt has `total` tokens. What a closed one reports beyond what it had is late."""
        span = self._attempts.get(attempt)
        if span is not None:
            span.tokens = max(span.tokens, total)
            self._had[attempt] = span.tokens
            return
        late = total - self._had.get(attempt, 0)
        if late > 0:
            self.history.late_tokens += late
            self._had[attempt] = total

    def _end(self, t: float, attempt: a.AttemptId, how: str, reason: str) -> None:
        span = self._attempts.pop(attempt, None)
        if span is not None:
            span.end, span.ended, span.reason = t, how, reason
            self._fly(t, span.rank, -1)

    def _end_environment(self, t: float, event: a.EnvironmentReplied | a.EnvironmentFailed) -> None:
        span = self._environments.pop(event.command, None) if event.command is not None else None
        if span is not None:
            span.end = t
            span.ended = "replied" if isinstance(event, a.EnvironmentReplied) else "failed"


def read_history(journal: Journal) -> History:
    """All intervals of a journal, finished or not."""
    reader = _Reader(journal)
    for entry in journal.entries:
        reader.event(entry.t, entry.event)
        for command in entry.commands:
            reader.command(entry.t, command)
    return reader.close()
