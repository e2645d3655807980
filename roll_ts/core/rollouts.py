"""The data side: starts groups, sends turns to ranks and environments, and gives every trajectory its outcome.

Invariants: only ACTIVE ranks are sent anything (R7); a turn that was stopped goes on from what it generated (R8);
between turns a trajectory holds no request (R12).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from roll_ts.core.admission import Priority, Sessions
from roll_ts.core.alphabet import (
    Aborted,
    Cancel,
    Dispatch,
    EnvironmentFailed,
    EnvironmentReplied,
    Failed,
    Finished,
    GroupDropped,
    Progress,
    Settled,
    StepEnvironment,
)
from roll_ts.core.batching import Group, GroupTable
from roll_ts.core.dispatching import FAILURES_IN_A_ROW, Dispatcher
from roll_ts.core.estimates import Lengths, Paces
from roll_ts.core.outbox import Outbox
from roll_ts.core.policies.base import Decision
from roll_ts.core.ranks import Rank, RankTable
from roll_ts.core.settings import Settings
from roll_ts.core.staleness import StalenessLedger
from roll_ts.core.trajectories import Outcome, Phase, Trajectory, TrajectoryTable

MAX_ATTEMPT_FAILURES = 2
MOVE_COSTS = 8.0
"""Running requests by which a kept rank may be fuller before a long episode is put on a rank that will be lent."""
LEAST_ENDS = 32
"""Ended episodes below which a share of void ones says nothing."""


@dataclass
class EvaluationRound:
    """Greedy episodes still to be scored, and how often each was played again."""

    waiting: set[int]
    replaced: dict[int, int] = field(default_factory=dict)


class VoidWindow:
    """Why the last `size` episodes ended: void, and for what, or well."""

    def __init__(self, size: int) -> None:
        self.size = max(size, LEAST_ENDS)
        self._ends: deque[str | None] = deque()
        self._voids: Counter[str] = Counter()
        self._void = 0

    def ended(self, reason: str | None) -> None:
        """One more end; `reason` when it is void."""
        self._ends.append(reason)
        self._count(reason, 1)
        if len(self._ends) > self.size:
            self._count(self._ends.popleft(), -1)

    def verdict(self, most: float) -> str | None:
        """What to tell when more than the share `most` of a full window is void: how many, and the commonest reason."""
        if len(self._ends) < self.size or self._void <= most * self.size:
            return None
        reason, count = min(self._voids.items(), key=lambda item: (-item[1], item[0]))
        return f"{self._void} of the last {self.size} episodes are void, {count} of them for: {reason}"

    def _count(self, reason: str | None, one: int) -> None:
        if reason is None:
            return
        self._void += one
        self._voids[reason] += one
        if not self._voids[reason]:
            del self._voids[reason]


class Rollouts:
    """All trajectories from start to outcome. `version` is the trainer's; `admitting`: new groups may start;
    `doom`: why the run cannot go on, too large a share of the episodes being void."""

    def __init__(self, settings: Settings, ranks: RankTable, out: Outbox) -> None:
        self.settings = settings
        self.ranks = ranks
        self.out = out
        self.on_sick: Callable[[int, str], None] | None = None
        self.trajectories = TrajectoryTable(len(settings.layout.ranks), self._became_older)
        self.turns = Dispatcher(settings, ranks, self.trajectories, out)
        self.sessions = Sessions(settings.session_admission, self._priority)
        self.groups = GroupTable(settings.group_size, settings.redundant_members)
        self.lengths = Lengths()
        self.voids = VoidWindow(2 * settings.groups_per_batch * settings.group_size)
        self.live_limit: int | None = None
        self.doom: str | None = None
        self.ledger = StalenessLedger(settings.async_ratio, settings.groups_per_batch)
        self.rounds: list[EvaluationRound] = []
        self.version = 0
        self.admitting = False
        self.turns_ended = 0
        self._outlast: float | None = None
        self.group_seconds: float | None = None
        self._last_complete: float | None = None
        self._next_group = 0
        self._filtered = 0

    @property
    def unsettled(self) -> int:
        """Training trajectories without an outcome. An evaluation holds up no step (R14)."""
        return self.trajectories.open_of["train"]

    @property
    def queued(self) -> int:
        """Turns that want a rank, those of sessions that are kept out included."""
        return self.turns.queued + self.sessions.parked

    @property
    def evaluating(self) -> bool:
        """Whether a greedy episode is still open."""
        return self.trajectories.open_of["eval"] > 0

    def rank_moved(self, row: Rank) -> None:
        """The table of ranks changed: placement and session admission follow (R1)."""
        self.turns.rank_moved(row)
        self.sessions.rank_moved(row)

    @property
    def paces(self) -> Paces:
        """How fast turns and episodes go."""
        return self.turns.paces

    def follow(self, decision: Decision) -> None:
        """What the policy decided about episodes and placement holds from now on."""
        self.live_limit = decision.live
        self._outlast = decision.outlast
        self.turns.stays = None if decision.outlast is None else self._stays

    def seconds_left(self, trajectory: Trajectory) -> float:
        """Seconds that the episode will probably still take; 0 while nothing is known."""
        return self.lengths.mean_left(trajectory.turn) * (self.paces.turn_seconds or 0.0)

    def _stays(self, trajectory: Trajectory) -> float:
        """What it costs, in requests, to put the turn on a rank that can be lent: nothing if the episode is over before
        the ranks are lent (D-24)."""
        # AST: AST_INVARIANT(self._outlast is not None)
        assert self._outlast is not None, (
            f"Invariant: self._outlast is not None, got self._outlast={self._outlast!r:.200}"
        )
        # END AST e35485
        return MOVE_COSTS if self.seconds_left(trajectory) > self._outlast else 0.0

    def begin_evaluation(self, episodes: int, first_seed: int) -> None:
        """Start a round of greedy episodes; episode i plays seed `first_seed` + i."""
        # VAL: VAL_POSITIVE(episodes)
        if not episodes > 0:
            raise ValueError(f"Rollouts.begin_evaluation: episodes must be positive, got {episodes!r}")
        # END VAL d0e846
        self.rounds.append(EvaluationRound(set(range(episodes))))
        for episode in range(episodes):
            self._start("eval", len(self.rounds) - 1, episode, first_seed + episode)

    def admit(self) -> None:
        """Start as many groups as the staleness bound leaves room for (R17) and as have KV for their sessions."""
        size = self.groups.group_size + self.groups.extra
        while self.admitting and self.ledger.room() > 0 and self._may_start(size):
            self.ledger.start()
            group, seed = self._next_group, self.settings.seed * 1_000_003 + self._next_group
            self._next_group += 1
            players = [self._start("train", group, member, seed) for member in range(size)]
            row = self.groups.start(group, seed, players)
            row.alarm = self.out.set_alarm(self.out.now + self.settings.deadlines.group, "group", group)

    def _may_start(self, size: int) -> bool:
        live = self.unsettled
        if self.live_limit is not None and live + size > max(self.live_limit, size):
            return False
        return self.sessions.may_start(live, size)

    def dispatch(self) -> bool:
        """Send queued turns to ranks; a turn that may not grow any more is ended (R7, R10). Returns whether one was:
        its episode may be over, which the control side must hear of."""
        if self.sessions.parked:
            for trajectory in self.sessions.admitted(self.out.now, self.turns.need):
                self.turns.enqueue(trajectory)
        full = self.turns.dispatch(self.version)
        for trajectory in full:
            if trajectory.outcome is None:  # one before it may have completed the group and made it redundant
                self._end_turn_without_room(trajectory)
        return bool(full)

    def progress(self, event: Progress) -> None:
        """More tokens of an open attempt (R3, R8)."""
        self.turns.progress(event.attempt, event.total)

    def finished(self, event: Finished) -> None:
        """The turn is complete: hand it to the environment."""
        attempt = self.trajectories.attempts.get(event.attempt)
        trajectory = self.turns.close(event.attempt, event.total)
        if trajectory is not None and attempt is not None:
            if event.cached is not None and attempt.expected:
                self.sessions.heard(attempt.expected, event.cached)
            self.turns.finished(trajectory, attempt)
            self.turns_ended += 1
            trajectory.carried = 0
            self._step_environment(trajectory)

    def aborted(self, event: Aborted) -> None:
        """The turn was stopped: it goes back to the queue with what it has (R8)."""
        trajectory = self.turns.close(event.attempt, event.total)
        if trajectory is not None:
            self._want_turn(trajectory)

    def failed(self, event: Failed) -> None:
        """The engine broke this attempt: try again a bounded number of times, then the episode is void (R13)."""
        attempt = self.trajectories.attempts.get(event.attempt)
        trajectory = self.turns.close(event.attempt, 0)
        if trajectory is None or attempt is None:
            return
        if self.turns.failed(trajectory, attempt.rank) and self.on_sick is not None:
            self.on_sick(attempt.rank, f"failed {FAILURES_IN_A_ROW} different turns one after another: {event.error}")
        trajectory.failures += 1
        if trajectory.failures > MAX_ATTEMPT_FAILURES:
            self._void(trajectory, f"engine: {event.error}")
        else:
            self._want_turn(trajectory)

    def environment_replied(self, event: EnvironmentReplied) -> None:
        """The environment answered: score the episode, end it at a limit, or ask for the next turn."""
        trajectory = self.trajectories.get(event.trajectory)
        if trajectory is None:
            return
        trajectory.environment_command = None
        trajectory.context_tokens = event.context_tokens
        trajectory.reward = event.reward
        if event.done:
            trajectory.success = event.success
            self._end(trajectory, Outcome.SCORED, "done")
        elif event.turn >= self.settings.max_turns:
            self._end(trajectory, Outcome.POLICY_FAILED, "turns")
        else:
            trajectory.turn += 1
            trajectory.tries = 0
            self._want_turn(trajectory)

    def environment_failed(self, event: EnvironmentFailed) -> None:
        """The environment broke: the episode is void and its member is played again (R13)."""
        trajectory = self.trajectories.get(event.trajectory)
        if trajectory is not None:
            trajectory.environment_command = None
            self._void(trajectory, f"environment: {event.error}")

    def rank_lost(self, rank: int) -> None:
        """The rank's process is gone: its attempts end with what they had reported (R6, R8)."""
        for attempt in list(self.trajectories.by_rank[rank].values()):
            trajectory = self.turns.close(attempt.id, 0)
            if trajectory is not None:
                self._want_turn(trajectory)

    def drop_stale(self, version: int) -> None:
        """The trainer has a new version: groups with a member that can no longer be trained end at once (R17, D-8)."""
        # VAL: VAL_INT_RANGE(version, min=self.version)
        if not version >= self.version:
            raise ValueError(f"Rollouts.drop_stale: version must be at least {self.version!r:.200}, got {version!r}")
        # END VAL c4bbc7
        self.version = version
        for group in self.groups.older_than(version - self.ledger.allowed):
            oldest = self._oldest_of(group)
            if self.ledger.too_old(oldest, version):
                self._drop_group(group.id, "stale")
            else:
                self.groups.refile(group, oldest)

    def roll_back(self, version: int) -> None:
        """The trainer has come back with an older version: what newer ones have generated is of a branch that no
        longer exists, and the same numbers will mean other weights. Groups with such a token end (R16, R27)."""
        # VAL: VAL_INT_RANGE(version, min=0, max=self.version)
        if not 0 <= version <= self.version:
            raise ValueError(f"Rollouts.roll_back: version must lie in [0, {self.version!r:.200}], got {version!r}")
        # END VAL 980cbc
        self.version = version
        for group in [*self.groups.open.values(), *self.groups.complete.values()]:
            playing = (self.trajectories.open.get(player) for player in group.players)
            newest = [self.trajectories.newest_of(trajectory) for trajectory in playing if trajectory is not None]
            if max([group.newest, *newest]) > version:
                self._drop_group(group.id, "rolled back")

    def shed(self, next_version: int, spare: tuple[int, ...]) -> None:
        """Cancel groups, those of `spare` excepted, that will be too old to train at `next_version` whatever they do
        until then (R17)."""
        for group in self.groups.older_than(next_version - self.ledger.allowed):
            if group.id not in spare and self.ledger.too_old(self._oldest_of(group), next_version):
                self._drop_group(group.id, "stale")

    def _oldest_of(self, group: Group) -> int:
        """Version of the oldest token of the group's members of now; −1 when there is none."""
        ages = [group.oldest]
        ages += [self.trajectories.open[player].oldest for player in group.players if player in self.trajectories.open]
        return min((age for age in ages if age >= 0), default=-1)

    def close_training(self, reason: str) -> None:
        """No more training groups: what is open is cancelled."""
        # VAL: VAL_NON_EMPTY(reason)
        if len(reason) == 0:
            raise ValueError(f"Rollouts.close_training: reason must not be empty, got {reason!r:.200}")
        # END VAL e5149b
        self.admitting = False
        for group in [*self.groups.open, *self.groups.complete]:
            self._drop_group(group, reason)

    def close_evaluation(self) -> None:
        """Cancel the greedy episodes that are still open."""
        for trajectory in [item for item in self.trajectories.open.values() if item.kind == "eval"]:
            self._settle(trajectory, Outcome.CANCELLED, "shutdown")

    def overdue(self, command: Dispatch | StepEnvironment, why: str) -> None:
        """A turn or an environment missed its deadline (R26)."""
        if isinstance(command, StepEnvironment):
            trajectory = self.trajectories.get(command.trajectory)
            if trajectory is not None and trajectory.environment_command == command.id:
                self._void(trajectory, f"environment: {why}")
            return
        attempt = self.trajectories.attempts.get(command.attempt)
        if attempt is not None:
            self.turns.abort(attempt, "deadline")

    def trajectory_overdue(self, trajectory_id: int) -> None:
        """An episode lasted longer than any may (R11, R14), the time that it was kept out not counted."""
        trajectory = self.trajectories.get(trajectory_id)
        if trajectory is None:
            return
        now = self.out.now
        waited = trajectory.waited + (now - trajectory.parked if trajectory.parked is not None else 0.0)
        left = trajectory.started + self.settings.deadlines.trajectory + waited - now
        if left > 0:
            trajectory.alarm = self.out.set_alarm(now + left, "trajectory", trajectory_id)
        elif trajectory.parked is not None:
            again = now + self.settings.deadlines.trajectory
            trajectory.alarm = self.out.set_alarm(again, "trajectory", trajectory_id)
        else:
            self._void(trajectory, "deadline")

    def group_overdue(self, group_id: int) -> None:
        """A group did not become complete in its time: it is void, and a fresh one may start (R14)."""
        group = self.groups.open.get(group_id)
        if group is None:
            return
        playing = [self.trajectories.open[player] for player in group.players if player in self.trajectories.open]
        if any(trajectory.parked is not None for trajectory in playing):
            group.alarm = self.out.set_alarm(self.out.now + self.settings.deadlines.group, "group", group_id)
        else:
            self._drop_group(group_id, "deadline")

    def _start(self, kind: str, group: int, member: int, seed: int) -> int:
        trajectory = self.trajectories.start(kind, group, member, seed, self.out.now)
        at = self.out.now + self.settings.deadlines.trajectory
        trajectory.alarm = self.out.set_alarm(at, "trajectory", trajectory.id)
        self._step_environment(trajectory)
        return trajectory.id

    def _priority(self, trajectory: Trajectory) -> Priority:
        """Which session comes first: groups nearest to completion, then the older group (D-22)."""
        if trajectory.kind == "eval":
            return (-1 if self.settings.evaluation_first else self.settings.group_size + 1, trajectory.id, 0)
        return (self.groups.missing(trajectory.group), trajectory.group, trajectory.id)

    def _became_older(self, trajectory: Trajectory) -> None:
        if trajectory.kind == "train":
            self.groups.file(trajectory.group, trajectory.oldest)

    def _want_turn(self, trajectory: Trajectory) -> None:
        """The next turn, or the rest of one, wants a rank: to the queue, if the session is let in."""
        trajectory.phase = Phase.QUEUED
        need = self.turns.need(trajectory)
        if self.sessions.let_in(trajectory, need, self.out.now):
            self.turns.enqueue(trajectory, need)

    def _step_environment(self, trajectory: Trajectory) -> None:
        trajectory.phase = Phase.ENVIRONMENT
        command = self.out.say(
            StepEnvironment,
            within=self.settings.deadlines.environment,
            awaits=f"environment of trajectory {trajectory.id}",
            lane="data",
            trajectory=trajectory.id,
            turn=trajectory.turn,
            seed=trajectory.seed,
            kind=trajectory.kind,
            group=trajectory.group,
            member=trajectory.member,
        )
        trajectory.environment_command = command.id

    def _end_turn_without_room(self, trajectory: Trajectory) -> None:
        if trajectory.carried:
            trajectory.carried = 0
            self._step_environment(trajectory)
        elif not trajectory.tokens:
            limit = self.settings.max_context_tokens
            self._void(trajectory, f"prompt: {trajectory.context_tokens} tokens, no room in {limit}")
        else:
            self._end(trajectory, Outcome.POLICY_FAILED, "context")

    def _settle(self, trajectory: Trajectory, outcome: Outcome, reason: str) -> None:
        """Give the outcome and stop whatever still works for the trajectory."""
        attempt = self.trajectories.attempt_of(trajectory)
        oldest = trajectory.oldest
        tokens = trajectory.tokens + (attempt.tokens - attempt.span_start if attempt is not None else 0)
        if attempt is not None:
            self.turns.abort(attempt, reason)
        if trajectory.environment_command is not None:
            self.out.call_off(trajectory.environment_command)
        if trajectory.alarm is not None:
            self.out.drop_alarm(trajectory.alarm)
        self.turns.forget(trajectory)
        self.sessions.leave(trajectory)
        self.trajectories.settle(trajectory, outcome)
        self.out.stir()
        if reason != "done":
            self.out.say(Cancel, trajectory=trajectory.id)
        self.out.say(
            Settled,
            trajectory=trajectory.id,
            kind=trajectory.kind,
            group=trajectory.group,
            member=trajectory.member,
            outcome=str(outcome),
            reason=reason,
            reward=trajectory.reward,
            success=trajectory.success,
            turns=trajectory.turn,
            tokens=tokens,
            oldest_version=oldest,
            staleness=self.version - oldest if oldest >= 0 else 0,
        )

    def _end(self, trajectory: Trajectory, outcome: Outcome, reason: str) -> None:
        """A trainable end (or, for an evaluation, a score)."""
        self._settle(trajectory, outcome, reason)
        if trajectory.turn:
            self.lengths.see(trajectory.turn)
            self.paces.see_episode(trajectory.turn, self.out.now - trajectory.started - trajectory.waited)
        self.voids.ended(None)
        if trajectory.kind == "eval":
            self.rounds[trajectory.group].waiting.discard(trajectory.member)
            return
        group = trajectory.group
        newest = self.trajectories.newest_of(trajectory)
        if self.groups.finish_member(group, trajectory.member, trajectory.oldest, trajectory.reward, newest):
            self._completed(self.groups.complete[group])
        else:
            for player in self.groups.open[group].players:
                if player in self.trajectories.open:
                    self.sessions.reconsider(self.trajectories.open[player])

    def _completed(self, group: Group) -> None:
        """The group has all members it needs: who is still playing is redundant; then it must be worth training."""
        now = self.out.now
        if self._last_complete is not None:
            gap, before = now - self._last_complete, self.group_seconds
            self.group_seconds = gap if before is None else before + 0.1 * (gap - before)
        self._last_complete = now
        if group.alarm is not None:
            self.out.drop_alarm(group.alarm)
        for player in group.players:
            if player in self.trajectories.open:
                self._settle(self.trajectories.open[player], Outcome.CANCELLED, "redundant")
        if self.ledger.too_old(group.oldest, self.version):
            self._drop_group(group.id, "stale")
        elif self.settings.filter_equal_rewards and self.groups.rewards_are_equal(group.id):
            # a policy that can no longer be told apart must not spin for ever: then such groups are trained, too
            limit = self.settings.max_filtered_batches * self.settings.groups_per_batch
            if self._filtered < limit:
                self._filtered += 1
                self._drop_group(group.id, "filtered")

    def _void(self, trajectory: Trajectory, reason: str) -> None:
        """An infrastructure failure: play the member again, or give the group up when it happens too often (D-10)."""
        self._settle(trajectory, Outcome.INFRA_VOID, reason)
        self.voids.ended(reason)
        self.doom = self.doom or self.voids.verdict(self.settings.max_void_share)
        group, member = trajectory.group, trajectory.member
        limit = self.settings.max_replacements_per_member
        if trajectory.kind == "eval":
            evaluation = self.rounds[group]
            evaluation.replaced[member] = evaluation.replaced.get(member, 0) + 1
            if evaluation.replaced[member] > limit:
                evaluation.waiting.discard(member)
            else:
                self._start("eval", group, member, trajectory.seed)
        elif self.groups.open[group].replaced[member] >= limit:
            if not self.groups.give_up(group, member):
                self._drop_group(group, "void")
        else:
            self.groups.replace(group, member, self._start("train", group, member, trajectory.seed))

    def _drop_group(self, group: int, reason: str) -> None:
        dropped = self.groups.drop(group)
        if dropped.alarm is not None:
            self.out.drop_alarm(dropped.alarm)
        self.ledger.dropped += 1
        for player in dropped.players:
            trajectory = self.trajectories.open.get(player)
            if trajectory is not None:
                self._settle(trajectory, Outcome.CANCELLED, reason)
        self.out.say(GroupDropped, group=group, reason=reason, trajectories=tuple(dropped.players))
