"""Why something waited or moved, in words, from a journal read once: the story of a trajectory, a rank or a decision.

Each story is fed every entry in order, keeps what it needs of it, and gives the lines that it has to say. Times are
seconds on the run's clock. A reason is given only where the journal holds it; elsewhere the line gives the facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from roll_ts.core import alphabet as a
from roll_ts.observe.journal import Entry, Header

KINDS = ("trajectory", "rank", "decision")
SETTLED = ("ACTIVE", "LENT", "FAILED", "QUARANTINED")


class Story(Protocol):
    """One question put to a journal."""

    def read(self, entry: Entry) -> Iterable[str]:
        """Lines that this entry adds."""

    def end(self) -> Iterable[str]:
        """What is still to be said when the journal is over."""


class Fleet:
    """The ranks as the journal has them: state of each, how many requests it has, and why it left its last state."""

    def __init__(self, header: Header) -> None:
        self.limit = header.settings.max_running_per_rank
        self.states = ["FAILED" for _ in header.settings.layout.ranks]
        self.why = ["" for _ in header.settings.layout.ranks]
        self.running: list[set[a.AttemptId]] = [set() for _ in header.settings.layout.ranks]
        self.holder: dict[a.AttemptId, int] = {}

    def hear(self, event: a.Event) -> None:
        """An attempt that has ended, a rank that is gone."""
        if isinstance(event, a.Finished | a.Aborted | a.Failed):
            rank = self.holder.pop(event.attempt, None)
            if rank is not None:
                self.running[rank].discard(event.attempt)
        elif isinstance(event, a.RankDied):
            self.why[event.rank] = event.reason

    def see(self, command: a.Command) -> None:
        """A rank that moves, a request that is sent."""
        if isinstance(command, a.RankMoved):
            self.states[command.rank] = command.new
            if command.new in ("FAILED", "QUARANTINED"):
                for attempt in self.running[command.rank]:
                    self.holder.pop(attempt, None)
                self.running[command.rank].clear()
        elif isinstance(command, a.Dispatch):
            self.running[command.rank].add(command.attempt)
            self.holder[command.attempt] = command.rank
        elif isinstance(command, a.Fence):
            self.why[command.rank] = command.reason

    def room(self) -> str:
        """Why a turn that waits now may be waiting: what the ranks are doing."""
        serving = [rank for rank, state in enumerate(self.states) if state == "ACTIVE"]
        others: dict[str, int] = {}
        for state in self.states:
            if state != "ACTIVE":
                others[state] = others.get(state, 0) + 1
        rest = ", ".join(f"{count} {state}" for state, count in sorted(others.items()))
        if not serving:
            return f"no rank serves ({rest})"
        full = sum(len(self.running[rank]) >= self.limit for rank in serving)
        taken = sum(len(self.running[rank]) for rank in serving)
        beside = f"; {rest}" if rest else ""
        if full == len(serving):
            return f"every serving rank has its {self.limit} requests{beside}"
        return (
            f"{taken} of {len(serving) * self.limit} slots are taken on the {len(serving)} serving ranks: "
            f"the rest is kept for ranks that join, or their KV has no room{beside}"
        )


class TrajectoryStory:
    """What one trajectory did and what it waited for."""

    def __init__(self, header: Header, trajectory: int) -> None:
        self.id = trajectory
        self.fleet = Fleet(header)
        self.found = False
        self._queued: float | None = None
        self._why = ""
        self._asked = 0.0
        self._sent = 0.0
        self._rank: int | None = None
        self._tokens = 0
        self._stopped = ""

    def read(self, entry: Entry) -> Iterator[str]:
        """Lines that this entry adds."""
        fleet, event = self.fleet, entry.event
        if isinstance(event, a.RankDied) and self._rank == event.rank:
            self._stopped = f"rank {event.rank} died: {event.reason}"
        yield from self._hear(entry.t, event)
        fleet.hear(event)
        for command in entry.commands:
            fleet.see(command)
            yield from self._see(entry.t, command)
        if self._queued is not None and not self._why:
            self._why = fleet.room()

    def end(self) -> Iterator[str]:
        """What it still waits for."""
        if not self.found:
            yield f"the journal has no trajectory {self.id}"
        elif self._queued is not None:
            yield f"at the end of the journal it still waits for a rank, since {self._queued:.3f}: {self._why}"

    def _hear(self, t: float, event: a.Event) -> Iterator[str]:
        match event:
            case a.EnvironmentReplied() if event.trajectory == self.id and self._asked >= 0:
                done = f", done, reward {event.reward:g}" if event.done else f"; context {event.context_tokens} tokens"
                yield f"{t:.3f}  environment answers turn {event.turn} after {t - self._asked:.3f} s{done}"
                if not event.done:
                    self._queued, self._why = t, ""
            case a.EnvironmentFailed() if event.trajectory == self.id:
                yield f"{t:.3f}  environment fails after {t - self._asked:.3f} s: {event.error}"
            case a.Progress() if event.attempt.trajectory == self.id:
                self._tokens = max(self._tokens, event.total)
            case a.Finished() if event.attempt.trajectory == self.id and event.attempt in self.fleet.holder:
                yield f"{t:.3f}  rank {self._rank} has finished turn {event.attempt.turn} ({event.reason}): " + (
                    f"{event.total} tokens in {t - self._sent:.3f} s"
                )
                self._rank = None
            case a.Aborted() if event.attempt.trajectory == self.id and event.attempt in self.fleet.holder:
                yield (
                    f"{t:.3f}  attempt {event.attempt} stops on rank {self._rank} with {event.total} tokens, which are "
                    f"kept{': ' + self._stopped if self._stopped else ''}"
                )
                self._wait(t)
            case a.Failed() if event.attempt.trajectory == self.id and event.attempt in self.fleet.holder:
                yield f"{t:.3f}  attempt {event.attempt} fails on rank {self._rank}: {event.error}"
                self._wait(t)
            case a.RankDied() if event.rank == self._rank:
                yield f"{t:.3f}  {self._stopped}; {self._tokens} tokens that were reported are kept"
                self._wait(t)

    def _see(self, t: float, command: a.Command) -> Iterator[str]:
        match command:
            case a.StepEnvironment() if command.trajectory == self.id:
                if not self.found:
                    self.found = True
                    yield (
                        f"{t:.3f}  starts as member {command.member} of {command.kind} group {command.group}, "
                        f"seed {command.seed}"
                    )
                self._asked, self._queued = t, None
            case a.Dispatch() if command.attempt.trajectory == self.id:
                waited = 0.0 if self._queued is None else t - self._queued
                reason = f" after {waited:.3f} s in the queue: {self._why}" if waited > 0 and self._why else ""
                carried = f" with {command.carried} tokens carried" if command.carried else ""
                yield f"{t:.3f}  turn {command.attempt.turn} goes to rank {command.rank}{carried}{reason}"
                self._rank, self._sent, self._queued, self._tokens = command.rank, t, None, 0
                self._stopped = ""
            case a.Abort() if command.attempt.trajectory == self.id:
                self._stopped = f"asked at {t:.3f}, {command.reason}"
            case a.Drain() if command.rank == self._rank:
                self._stopped = f"rank {command.rank} drains since {t:.3f} for epoch {command.epoch}"
            case a.Settled() if command.trajectory == self.id:
                self._queued = None
                yield (
                    f"{t:.3f}  ends: {command.outcome} ({command.reason}) after {command.turns} turns, "
                    f"{command.tokens} tokens; oldest version {command.oldest_version}, staleness {command.staleness}"
                )
            case a.Train() if any(item.trajectory == self.id for item in command.batch):
                yield f"{t:.3f}  is trained on, from version {command.version}"
            case a.GroupDropped() if self.id in command.trajectories:
                yield f"{t:.3f}  its group {command.group} is dropped: {command.reason}"

    def _wait(self, t: float) -> None:
        self._queued, self._why, self._rank = t, "", None


class RankStory:
    """What one rank did, how long, and what made it move."""

    def __init__(self, header: Header, rank: int) -> None:
        self.id = rank
        self.ranks = len(header.settings.layout.ranks)
        self.fleet = Fleet(header)
        self._since: float | None = None
        self._state = "FAILED"
        self._sent = 0
        self._reason = ""
        self._group = ""

    def read(self, entry: Entry) -> Iterator[str]:
        """Lines that this entry adds."""
        event = entry.event
        self.fleet.hear(event)
        match event:
            case a.RankDied() if event.rank == self.id:
                self._reason = f"died: {event.reason}"
            case a.RankBooted() if event.rank == self.id:
                self._reason = f"booted with room for {event.kv_capacity} tokens"
            case a.WeightsLoaded() if event.rank == self.id:
                self._reason = f"has version {event.version}, its digest is {event.digest}"
            case a.MemoryReleased() if event.holder == f"rank:{self.id}":
                self._reason = f"gave back {event.bytes} bytes"
            case a.KVReady() if event.rank == self.id:
                self._reason = f"{self._reason}; canary gap {event.canary_gap:g}".lstrip("; ")
        for command in entry.commands:
            self.fleet.see(command)
            if isinstance(command, a.FormGroup) and self.id in command.members:
                self._group = f"joins the group of epoch {command.epoch} for version {command.version}"
            self._sent += isinstance(command, a.Dispatch) and command.rank == self.id
            if isinstance(command, a.RankMoved) and command.rank == self.id:
                yield self._moved(entry.t, command, self._because(command, entry.commands))

    def end(self) -> Iterator[str]:
        """What it is doing when the journal is over."""
        if not 0 <= self.id < self.ranks:
            yield f"the journal has no rank {self.id}: its layout has ranks 0 to {self.ranks - 1}"
        elif self._since is None:
            yield f"rank {self.id} was never started"
        else:
            yield f"at the end of the journal it is {self._state}, since {self._since:.3f}"

    def _because(self, move: a.RankMoved, commands: tuple[a.Command, ...]) -> str:
        """Why it makes this move: what is said in the same breath, else what was heard last."""
        mine = [command for command in commands if getattr(command, "rank", None) == self.id]
        match move.new:
            case "FENCED":
                return "".join(f"is killed: {c.reason}" for c in mine if isinstance(c, a.Fence))
            case "BOOTING":
                return "".join(f"process {c.incarnation} is started" for c in mine if isinstance(c, a.Restart))
            case "DRAINING":
                return "; ".join(
                    f"{c.policy} decides to {c.decision} ({_figures(c)})" for c in commands if isinstance(c, a.Decided)
                )
            case "LOADING" | "SYNCING":
                return self._group
        return self._reason

    def _moved(self, t: float, command: a.RankMoved, because: str) -> str:
        lasted = "" if self._since is None else f" after {t - self._since:.3f} s"
        served = f", {self._sent} requests sent" if command.old == "ACTIVE" else ""
        reason = f": {because}" if because else ""
        self._since, self._state, self._sent, self._reason = t, command.new, 0, ""
        return f"{t:.3f}  {command.old} → {command.new}{lasted}{served}{reason}"


class DecisionStory:
    """What one decision of the policy rested on and what followed, until the next one. Decisions count from 0."""

    def __init__(self, header: Header, decision: int) -> None:
        self.id = decision
        self.fleet = Fleet(header)
        self._count = 0
        self._at = 0.0
        self._waiting: set[int] = set()

    def read(self, entry: Entry) -> Iterator[str]:
        """Lines that this entry adds."""
        self.fleet.hear(entry.event)
        for command in entry.commands:
            if isinstance(command, a.Decided):
                self._count += 1
                if self._count == self.id + 1:
                    yield from self._decided(entry, command)
            self.fleet.see(command)
            if self._count == self.id + 1:
                yield from self._followed(entry, command)

    def end(self) -> Iterator[str]:
        """Whether there was such a decision."""
        if not 0 <= self.id < self._count:
            yield f"the journal has {self._count} decisions, counted from 0; there is no decision {self.id}"

    def _decided(self, entry: Entry, command: a.Decided) -> Iterator[str]:
        self._at = entry.t
        yield f"{entry.t:.3f}  {command.policy} decides: {command.decision}, upon {type(entry.event).__name__}"
        for name, value in command.figures.items():
            yield f"         {name} = {value:g}"
        yield f"         ranks: {', '.join(f'{rank} {state}' for rank, state in enumerate(self.fleet.states))}"

    def _followed(self, entry: Entry, command: a.Command) -> Iterator[str]:
        t, after = entry.t, entry.t - self._at
        match command:
            case a.Drain():
                running = len(self.fleet.running[command.rank])
                self._waiting.add(command.rank)
                yield f"{t:.3f}  rank {command.rank} drains, with {running} requests"
            case a.RankMoved() if command.rank in self._waiting and command.new in SETTLED:
                self._waiting.discard(command.rank)
                yield f"{t:.3f}  rank {command.rank} is {command.new}, {after:.3f} s after the decision"
            case a.Train():
                groups = len({item.group for item in command.batch})
                yield (
                    f"{t:.3f}  training starts from version {command.version} on {groups} groups, "
                    f"{after:.3f} s after the decision"
                )


def _figures(decided: a.Decided) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in decided.figures.items())


def story_of(header: Header, kind: str, number: int) -> Story:
    """The story of one trajectory, rank or decision. Raises ValueError for another kind."""
    # VAL: VAL_ONE_OF(kind, choices=KINDS)
    if kind not in KINDS:
        raise ValueError(f"story_of: kind must be one of {KINDS!r:.200}, got {kind!r:.200}")
    # END VAL a38d74
    if kind == "trajectory":
        return TrajectoryStory(header, number)
    return RankStory(header, number) if kind == "rank" else DecisionStory(header, number)


def explain(header: Header, entries: Iterable[Entry], kind: str, number: int) -> Iterator[str]:
    """The lines of the story of a `kind` ("trajectory", "rank", "decision") with this number, as they are found."""
    story = story_of(header, kind, number)
    for entry in entries:
        yield from story.read(entry)
    yield from story.end()
