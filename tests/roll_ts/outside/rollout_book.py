"""The oracle's account of trajectories, attempts, tokens and groups (R3, R6, R8, R11–R18), from events and commands."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from roll_ts.core import alphabet as a
from roll_ts.core.settings import Settings
from tests.roll_ts.outside.violation import Violation

TRAINABLE = ("scored", "policy-failed")


@dataclass
class Try:
    """One attempt: where it runs, what it has reported, when its rank had to be done, whether it was asked to stop."""

    id: a.AttemptId
    rank: int
    version: int
    due: float
    held: int
    total: int = 0
    stopping: bool = False


@dataclass
class Play:
    """One trajectory. `phase`: "environment", "queued", "generating", "settled"; `carried` tokens of this turn of tries
    that have ended; `trouble`: something happened that may void it; `over`: its environment said that it is done."""

    id: int
    kind: str
    group: int
    member: int
    seed: int
    born: float
    phase: str = "environment"
    turn: int = 0
    asked: int = -1
    context: int = 0
    carried: int = 0
    tokens: int = 0
    oldest: int = -1
    tries: int = 0
    trouble: str = ""
    over: a.EnvironmentReplied | None = None
    crowded: bool = False
    busy: float = 0.0
    since: float = 0.0
    outcome: str = ""
    attempt: Try | None = None


@dataclass
class Cohort:
    """One group: who plays its members now, how often each was replaced, and what became of it."""

    id: int
    seed: int
    players: dict[int, int] = field(default_factory=dict)
    replaced: dict[int, int] = field(default_factory=dict)
    state: str = "open"
    done: int = 0


def need(good: object, rule: str, seen: str) -> None:
    """Raise Violation unless `good`."""
    if not good:
        raise Violation(rule, seen)


class RolloutBook:
    """All trajectories, the tries that are open, and the groups that were neither trained nor dropped."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.plays: dict[int, Play] = {}
        self.open: dict[int, Play] = {}
        self.tries: dict[a.AttemptId, Try] = {}
        self.used: set[a.AttemptId] = set()
        self.on_rank: dict[int, set[a.AttemptId]] = {rank: set() for rank in range(len(settings.layout.ranks))}
        self.groups: dict[int, Cohort] = {}
        self.live: dict[int, Cohort] = {}
        self.complete: list[int] = []
        self.training: list[int] = []
        self.trained: set[int] = set()
        self.version = -1
        self.stopping = False
        self.leap = 0.0
        self.size = settings.group_size + settings.redundant_members
        self.ends: list[str] = []
        self.allowed = math.ceil(settings.async_ratio - 1e-9)
        self.capacity = math.floor((1 + settings.async_ratio) * settings.groups_per_batch + 1e-9)
        self._by_birth: list[Play] = []
        self._next_old = 0
        self._born_now: dict[int, list[Play]] = {}
        self._settled_now: list[Play] = []

    # events

    def progress(self, event: a.Progress | a.Finished | a.Aborted) -> Try | None:
        """Tokens of an open try: the greatest total counts."""
        found = self.tries.get(event.attempt)
        if found is not None:
            found.total = max(found.total, event.total)
        return found

    def ended(self, event: a.Finished | a.Aborted | a.Failed) -> None:
        """The one terminal event of a try; of a closed one it is nothing (R3, R6)."""
        found = self.progress(event) if not isinstance(event, a.Failed) else self.tries.get(event.attempt)
        if found is None:
            return
        play = self.end_try(found)
        if isinstance(event, a.Failed):
            play.trouble = play.trouble or "engine"
        if play.phase == "queued" and isinstance(event, a.Finished):
            play.since = self._now
            play.phase, play.carried, play.asked = "environment", 0, -1

    def end_try(self, found: Try) -> Play:
        """A try is over with what it has reported; its turn goes on from there (R8)."""
        del self.tries[found.id]
        self.on_rank[found.rank].discard(found.id)
        play = self.plays[found.id.trajectory]
        play.attempt = None
        if play.phase != "settled":
            self._queue(play)
            play.carried += found.total
            self._book(play, found)
        return play

    def rank_gone(self, rank: int) -> None:
        """Its process is dead: its tries end with what they had reported."""
        for attempt in list(self.on_rank[rank]):
            self.end_try(self.tries[attempt])

    def replied(self, event: a.EnvironmentReplied) -> None:
        """The environment answered what it was asked last."""
        play = self.open.get(event.trajectory)
        if play is None or play.asked != event.command or play.asked < 0:
            return
        play.asked, play.context = -1, event.context_tokens
        if event.done or event.turn >= self.settings.max_turns:
            play.over, play.phase = event, "over"
            return
        play.turn, play.tries, play.carried = play.turn + 1, 0, 0
        self._queue(play)
        if event.context_tokens >= self.settings.max_context_tokens:
            play.crowded = True

    def environment_failed(self, command: int | None) -> None:
        """What was asked of an environment failed or was not answered in time."""
        for play in self.open.values():
            if play.asked == command and command is not None:
                play.trouble, play.phase, play.asked = "environment", "broken", -1
                return

    def new_version(self, version: int) -> None:
        """The trainer has another version."""
        self.version = version

    # commands

    def step(self, c: a.StepEnvironment, now: float) -> None:
        """A trajectory is born (turn 0) or its turn goes to its environment."""
        play = self.plays.get(c.trajectory)
        if play is None:
            need(c.turn == 0, "R13", f"trajectory {c.trajectory} is born with turn {c.turn}")
            play = Play(c.trajectory, c.kind, c.group, c.member, c.seed, now, since=now)
            self.plays[play.id] = self.open[play.id] = play
            self._by_birth.append(play)
            if c.kind == "train":
                self._join(play)
        else:
            need(play.phase != "settled", "R13", f"trajectory {play.id} is settled and steps its environment")
            full = play.phase == "queued" and self.room(play) <= 0 and play.carried > 0
            need(
                (play.phase == "environment" or full) and play.asked < 0 and play.attempt is None,
                "R12",
                f"trajectory {play.id} steps its environment while {play.phase}, asked {play.asked}",
            )
            need(c.turn == play.turn > 0, "R13", f"trajectory {play.id} steps turn {c.turn}, generated was {play.turn}")
        same = (play.kind, play.group, play.member, play.seed) == (c.kind, c.group, c.member, c.seed)
        need(same, "R15", f"trajectory {play.id} is another than before: {c}")
        if play.phase == "queued":
            play.since = self._now
        play.phase, play.asked = "environment", c.id

    def dispatch(self, c: a.Dispatch, state: str, proven: int) -> None:
        """A try begins: legal place, fresh id, nothing lost, nothing doubled (R6, R7, R8, R17)."""
        s, play = self.settings, self.plays.get(c.attempt.trajectory)
        need(play is not None, "R13", f"{c.attempt} is sent for a trajectory that was never born")
        assert play is not None
        need(c.attempt not in self.used, "R6", f"attempt id {c.attempt} is used again")
        need(play.phase == "queued", "R6", f"{c.attempt} is sent while its trajectory is {play.phase}")
        need(c.attempt.turn == play.turn, "R6", f"{c.attempt} is sent, the turn is {play.turn}")
        need(state == "ACTIVE", "R7", f"{c.attempt} is sent to rank {c.rank}, which is {state}")
        need(c.version == proven, "R19", f"{c.attempt} is sent under version {c.version}, rank {c.rank} has {proven}")
        need(
            c.carried == play.carried,
            "R8",
            f"{c.attempt} carries {c.carried} tokens, {play.carried} of the turn were reported",
        )
        need(c.context_tokens == play.context, "R8", f"{c.attempt}: context {c.context_tokens} is not {play.context}")
        need(
            c.max_new_tokens == self.room(play) > 0,
            "R6",
            f"{c.attempt} may generate {c.max_new_tokens}, there is room for {self.room(play)}",
        )
        need(c.greedy == (play.kind == "eval"), "R13", f"{c.attempt} of a {play.kind} trajectory: greedy {c.greedy}")
        if play.oldest < 0 and play.kind == "train":
            need(c.version == self.version, "R17", f"{c.attempt} is born with version {c.version} of {self.version}")
        running = self.on_rank[c.rank]
        need(len(running) < s.max_running_per_rank, "R10", f"rank {c.rank} gets {c.attempt} beside {len(running)}")
        held = c.context_tokens + c.carried
        self.used.add(c.attempt)
        play.tries += 1
        need(play.tries <= 400, "R11", f"{c.attempt} is the {play.tries}th try of one turn")
        play.phase, play.since = "generating", self._now
        play.attempt = self.tries[c.attempt] = Try(c.attempt, c.rank, c.version, c.due or math.inf, held)
        running.add(c.attempt)

    def abort(self, c: a.Abort, now: float, may_move: bool) -> None:
        """A try is asked to stop: once, where it runs, and not without a reason (R6, R9)."""
        found = self.tries.get(c.attempt)
        need(found is not None, "R6", f"{c.attempt} is aborted and is not open")
        assert found is not None
        need(found.rank == c.rank, "R6", f"{c.attempt} is aborted on rank {c.rank}, it runs on {found.rank}")
        need(not found.stopping, "R6", f"{c.attempt} is aborted twice")
        play = self.plays[c.attempt.trajectory]
        settling = play.phase == "settled" or c.reason != "deadline"
        old = play.born + self.settings.deadlines.trajectory <= now
        need(settling or old or now >= found.due or may_move, "R9", f"{c.attempt} is aborted without need: {c.reason}")
        found.stopping = True

    def settled(self, c: a.Settled) -> None:
        """The one outcome of a trajectory, with the right sums (R13)."""
        play = self.plays.get(c.trajectory)
        need(play is not None and play.phase != "settled", "R13", f"a second outcome, or one of nobody: {c}")
        assert play is not None
        if play.attempt is not None:
            play.tokens += play.attempt.total
            if play.attempt.total:
                play.oldest = play.attempt.version if play.oldest < 0 else min(play.oldest, play.attempt.version)
        old = play.born + self.settings.deadlines.trajectory <= self._now
        good = {
            "scored": play.over is not None and play.over.done,
            "policy-failed": (play.over is not None and not play.over.done) or (play.crowded and play.tokens > 0),
            "infra-void": bool(play.trouble) or old or (play.crowded and not play.tokens),
            "cancelled": True,
        }
        need(
            good.get(c.outcome), "R13", f"{c.outcome} ({c.reason}) of trajectory {play.id} that is {play.phase}: {play}"
        )
        need(c.tokens == play.tokens, "R8", f"trajectory {play.id} ends with {c.tokens} tokens, reported {play.tokens}")
        need(
            c.oldest_version == play.oldest,
            "R16",
            f"{play.id} has oldest version {c.oldest_version}, not {play.oldest}",
        )
        age = self.version - play.oldest if play.oldest >= 0 else 0
        need(c.staleness == age, "R17", f"trajectory {play.id} has staleness {c.staleness}, not {age}")
        need((c.kind, c.group, c.member) == (play.kind, play.group, play.member), "R15", f"{c} is not {play}")
        need(c.turns == play.turn, "R13", f"trajectory {play.id} ends with {c.turns} turns, not {play.turn}")
        if play.over is not None and c.outcome in TRAINABLE:
            need(
                c.reward == play.over.reward, "R13", f"trajectory {play.id}: reward {c.reward}, not {play.over.reward}"
            )
            win = play.over.success and play.over.done
            need(c.success == win, "R13", f"trajectory {play.id}: success {c.success}, not {win}")
        play.phase, play.outcome, play.asked = "settled", c.outcome, -1
        del self.open[play.id]
        self._settled_now.append(play)
        if c.outcome != "cancelled":
            self.ends.append(c.outcome)
        if play.kind == "train" and c.outcome in TRAINABLE:
            self._member_done(play)

    def dropped(self, c: a.GroupDropped) -> None:
        """A group leaves whole (R15)."""
        group = self.live.pop(c.group, None)
        need(group is not None, "R15", f"a group that is not there is dropped: {c}")
        assert group is not None
        need(group.state != "training", "R15", f"group {c.group} is dropped while it is trained")
        need(
            tuple(c.trajectories) == tuple(group.players[m] for m in sorted(group.players)),
            "R15",
            f"{c}: its players are {group.players}",
        )
        if group.state == "complete":
            self.complete.remove(group.id)
        if c.reason == "stale":
            need(self._is_stale(group), "R17", f"group {c.group} is dropped as stale at version {self.version}")
        group.state = "dropped"

    def train(self, c: a.Train) -> None:
        """A batch: whole groups, complete, not too old, trained once (R13, R15, R17, R18)."""
        by_group: dict[int, list[a.Assignment]] = {}
        for item in c.batch:
            by_group.setdefault(item.group, []).append(item)
        need(by_group, "R14", "a batch of nothing")
        for number, items in by_group.items():
            group = self.live.get(number)
            need(
                group is not None and group.state == "complete", "R15", f"group {number} is trained and is not complete"
            )
            assert group is not None
            need(
                sorted((i.member, i.trajectory) for i in items) == self._trainable(group),
                "R15",
                f"group {number} is trained with {items}, its players are {group.players}",
            )
            for item in items:
                play = self.plays[item.trajectory]
                need(play.outcome in TRAINABLE, "R13", f"trajectory {play.id} is {play.outcome} and trained")
                need(play.kind == "train", "R13", f"trajectory {play.id} of an evaluation is trained")
                need(play.id not in self.trained, "R18", f"trajectory {play.id} is trained twice")
                old = play.oldest >= 0 and c.version - play.oldest > self.allowed
                need(not old, "R17", f"trajectory {play.id} of version {play.oldest} is trained at {c.version}")
        for number in by_group:
            self.live[number].state = "training"
            self.complete.remove(number)
        self.training = list(by_group)

    def step_done(self) -> None:
        """The batch is trained."""
        for number in self.training:
            group = self.live.pop(number)
            group.state = "trained"
            self.trained.update(group.players.values())
        self.training = []

    def step_undone(self) -> None:
        """The trainer died over the batch: its groups are complete again."""
        for number in self.training:
            self.live[number].state = "complete"
            self.complete.append(number)
        self.complete.sort()
        self.training = []

    def _check_ages(self, now: float) -> None:
        """No episode lasts for ever (R11). The time in which it waits for a rank does not count: it may be kept out."""
        most = 2 * self.settings.deadlines.trajectory
        while self._next_old < len(self._by_birth):
            play = self._by_birth[self._next_old]
            if play.phase != "settled":
                if play.born + most > now:
                    break
                busy = play.busy + (now - play.since if play.phase not in ("queued", "settled") else 0.0)
                need(busy <= most + self.leap, "R11", f"trajectory {play.id} is older than any may be: {play}")
                break
            self._next_old += 1

    # after every event

    def check(self, now: float) -> None:
        """What must be so once all commands of an event were said."""
        for play in self._settled_now:
            if play.attempt is not None:
                need(play.attempt.stopping, "R6", f"trajectory {play.id} is settled and its attempt goes on")
            if play.kind == "train" and play.outcome == "infra-void":
                group = self.groups[play.group]
                heir = group.players[play.member]
                spare = len(group.players) - sum(self.plays[p].outcome == "infra-void" for p in group.players.values())
                need(
                    heir != play.id or group.state == "dropped" or spare >= self.settings.group_size,
                    "R13",
                    f"trajectory {play.id} is void and nobody takes its place in group {group.id}",
                )
        self._settled_now.clear()
        for number, born in self._born_now.items():
            group = self.groups[number]
            need(
                len(group.players) == self.size,
                "R15",
                f"group {number} has {len(group.players)} members: {born}",
            )
        self._born_now.clear()
        if len(self.live) > self.capacity:
            raise Violation("R17", f"{len(self.live)} groups are started and neither trained nor dropped")
        self._check_ages(now)

    def check_stale(self) -> None:
        """After a new version: whatever is too old has ended where it ran (R17)."""
        for group in self.live.values():
            if group.state != "training":
                need(not self._is_stale(group), "R17", f"group {group.id} is too old for {self.version} and goes on")

    def begin(self, now: float) -> None:
        """The next event is at `now`."""
        self._now = now

    def room(self, play: Play) -> int:
        """Tokens that the turn may still have."""
        s = self.settings
        return min(s.max_reply_tokens, s.max_context_tokens - play.context) - play.carried

    def _trainable(self, group: Cohort) -> list[tuple[int, int]]:
        return sorted((m, player) for m, player in group.players.items() if self.plays[player].outcome in TRAINABLE)

    def _is_stale(self, group: Cohort) -> bool:
        ages = []
        for player in group.players.values():
            play = self.plays[player]
            if play.outcome in ("infra-void", "cancelled"):
                continue
            ages.append(play.oldest)
            if play.attempt is not None and play.attempt.total:
                ages.append(play.attempt.version)
        return any(0 <= age < self.version - self.allowed for age in ages)

    def _queue(self, play: Play) -> None:
        play.phase = "queued"
        play.busy += self._now - play.since
        play.since = self._now

    def _book(self, play: Play, found: Try) -> None:
        play.tokens += found.total
        if found.total:
            play.oldest = found.version if play.oldest < 0 else min(play.oldest, found.version)

    def _join(self, play: Play) -> None:
        group = self.groups.get(play.group)
        if group is None:
            need(not self.stopping, "R13", f"group {play.group} is started after the user's stop")
            group = self.groups[play.group] = self.live[play.group] = Cohort(play.group, play.seed)
            self._born_now[group.id] = []
        need(group.state == "open", "R15", f"group {group.id} is {group.state} and gets trajectory {play.id}")
        need(group.seed == play.seed, "R15", f"group {group.id} gets another prompt: {play.seed}")
        before = group.players.get(play.member)
        if before is not None:
            need(self.plays[before].outcome == "infra-void", "R13", f"{play.id} replaces {before}, which is not void")
            group.replaced[play.member] = group.replaced.get(play.member, 0) + 1
            limit = self.settings.max_replacements_per_member
            need(group.replaced[play.member] <= limit, "R13", f"member {play.member} of {group.id} is replaced again")
        else:
            need(group.id in self._born_now, "R15", f"group {group.id} gets a member later")
        group.players[play.member] = play.id
        self._born_now.setdefault(group.id, []).append(play)

    def _member_done(self, play: Play) -> None:
        group = self.live.get(play.group)
        need(group is not None and group.state == "open", "R15", f"trajectory {play.id} scores in a group that is gone")
        assert group is not None
        need(group.players[play.member] == play.id, "R15", f"trajectory {play.id} scores and does not play any more")
        group.done += 1
        if group.done == self.settings.group_size:
            group.state = "complete"
            self.complete.append(group.id)

    _now = 0.0
