"""The data side: starts groups, sends turns to ranks and environments, and gives every trajectory its outcome.

Invariants: only ACTIVE ranks are sent anything (R7); a turn that was stopped goes on from what it generated (R8);
between turns a trajectory holds no request (R12).
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
from roll_ts.core.batching import GroupTable
from roll_ts.core.dispatching import Dispatcher
from roll_ts.core.outbox import Outbox
from roll_ts.core.ranks import RankTable
from roll_ts.core.settings import Settings
from roll_ts.core.staleness import StalenessLedger
from roll_ts.core.trajectories import Outcome, Phase, Trajectory, TrajectoryTable

MAX_ATTEMPT_FAILURES = 2


@dataclass
class EvaluationRound:
    """Greedy episodes still to be scored, and how often each was played anew."""

    waiting: set[int]
    replaced: dict[int, int] = field(default_factory=dict)


class Rollouts:
    """All trajectories from start to outcome. `version` is the trainer's; `admitting`: new groups may start."""

    def __init__(self, settings: Settings, ranks: RankTable, out: Outbox) -> None:
        self.settings = settings
        self.ranks = ranks
        self.out = out
        self.trajectories = TrajectoryTable(len(settings.layout.ranks))
        self.turns = Dispatcher(settings, ranks, self.trajectories, out)
        self.groups = GroupTable(settings.group_size)
        self.ledger = StalenessLedger(settings.async_ratio, settings.groups_per_batch)
        self.rounds: list[EvaluationRound] = []
        self.version = 0
        self.admitting = False
        self._next_group = 0

    @property
    def evaluating(self) -> bool:
        """Whether a greedy episode is still open."""
        return any(evaluation.waiting for evaluation in self.rounds)

    def begin_evaluation(self, episodes: int, first_seed: int) -> None:
        """Start a round of greedy episodes; episode i plays seed `first_seed` + i."""
        # VAL: VAL_POSITIVE(episodes)
        if not episodes > 0:
            raise ValueError(f"begin_evaluation: episodes must be positive, got {episodes!r}")
        # END VAL eb9ce5
        self.rounds.append(EvaluationRound(set(range(episodes))))
        for episode in range(episodes):
            self._start("eval", len(self.rounds) - 1, episode, first_seed + episode)

    def admit(self) -> None:
        """Start as many groups as the staleness bound leaves room for (R17)."""
        while self.admitting and self.ledger.room() > 0:
            self.ledger.start()
            group, seed = self._next_group, self.settings.seed * 1_000_003 + self._next_group
            self._next_group += 1
            players = [self._start("train", group, member, seed) for member in range(self.settings.group_size)]
            self.groups.start(group, seed, players)

    def dispatch(self) -> bool:
        """Send queued turns to ranks; a turn that may not grow any more is ended (R7, R10). Returns whether one was:
        its episode may be over, which the control side must hear of."""
        full = self.turns.dispatch(self.version)
        for trajectory in full:
            self._end_turn_without_room(trajectory)
        return bool(full)

    def progress(self, event: Progress) -> None:
        """More tokens of an open attempt (R3, R8)."""
        self.trajectories.add_tokens(event.attempt, event.tokens)

    def finished(self, event: Finished) -> None:
        """The turn is complete: hand it to the environment."""
        trajectory = self.turns.close(event.attempt, event.tokens)
        if trajectory is not None:
            trajectory.carried = 0
            self._step_environment(trajectory)

    def aborted(self, event: Aborted) -> None:
        """The turn was stopped: it goes back to the queue with what it has (R8)."""
        trajectory = self.turns.close(event.attempt, event.tokens)
        if trajectory is not None:
            self.turns.enqueue(trajectory)

    def failed(self, event: Failed) -> None:
        """The engine broke this attempt: try again a bounded number of times, then the episode is void (R13)."""
        trajectory = self.turns.close(event.attempt, 0)
        if trajectory is None:
            return
        trajectory.failures += 1
        if trajectory.failures > MAX_ATTEMPT_FAILURES:
            self._void(trajectory, f"engine: {event.error}")
        else:
            self.turns.enqueue(trajectory)

    def environment_replied(self, event: EnvironmentReplied) -> None:
        """The environment answered: score the episode, end it at a limit, or ask for the next turn."""
        trajectory = self._await_environment(event.command, event.trajectory, event.turn)
        if trajectory is None:
            return
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
            self.turns.enqueue(trajectory)

    def environment_failed(self, event: EnvironmentFailed) -> None:
        """The environment broke: the episode is void and its member is played anew (R13)."""
        trajectory = self._await_environment(event.command, event.trajectory, event.turn)
        if trajectory is not None:
            self._void(trajectory, f"environment: {event.error}")

    def rank_lost(self, rank: int) -> None:
        """The rank's process is gone: its attempts end with what they had reported (R6, R8)."""
        for attempt in list(self.trajectories.by_rank[rank].values()):
            trajectory = self.turns.close(attempt.id, 0)
            if trajectory is not None:
                self.turns.enqueue(trajectory)

    def new_weight_version(self, rank: int, version: int) -> None:
        """The rank's weights changed under running requests (`keep_kv`): later tokens are of another version (R16)."""
        for attempt in self.trajectories.by_rank[rank].values():
            trajectory = self.trajectories.open.get(attempt.id.trajectory)
            if trajectory is not None:
                self.trajectories.cut_segment(attempt, trajectory)
            attempt.version = version

    def drop_stale(self, version: int) -> None:
        """The trainer has a new version: groups with a member that can no longer be trained end at once (R17, D-8)."""
        # VAL: VAL_INT_RANGE(version, min=self.version)
        if not version >= self.version:
            raise ValueError(f"drop_stale: version must be at least {self.version!r:.200}, got {version!r}")
        # END VAL cf2117
        self.version = version
        for group in [*self.groups.open.values(), *self.groups.complete.values()]:
            members = [self.trajectories.open.get(player) for player in group.players]
            ages = [group.oldest, *(self.trajectories.oldest_of(member) for member in members if member is not None)]
            if any(self.ledger.too_old(age, version) for age in ages):
                self._drop_group(group.id, "stale")

    def close_training(self, reason: str) -> None:
        """No more training groups: what is open is cancelled."""
        # VAL: VAL_NON_EMPTY(reason)
        if len(reason) == 0:
            raise ValueError(f"close_training: reason must not be empty, got {reason!r:.200}")
        # END VAL be38f2
        self.admitting = False
        for group in [*self.groups.open, *self.groups.complete]:
            self._drop_group(group, reason)

    def close_evaluation(self) -> None:
        """Cancel the greedy episodes that are still open."""
        for trajectory in [item for item in self.trajectories.open.values() if item.kind == "eval"]:
            self._settle(trajectory, Outcome.CANCELLED, "shutdown")
        for evaluation in self.rounds:
            evaluation.waiting.clear()

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
        """An episode lasted longer than any may (R11, R14)."""
        trajectory = self.trajectories.get(trajectory_id)
        if trajectory is not None:
            self._void(trajectory, "deadline")

    def _start(self, kind: str, group: int, member: int, seed: int) -> int:
        trajectory = self.trajectories.start(kind, group, member, seed, self.out.now)
        self.out.set_alarm(self.out.now + self.settings.deadlines.trajectory, "trajectory", trajectory.id)
        self._step_environment(trajectory)
        return trajectory.id

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

    def _await_environment(self, command: int | None, trajectory_id: int, turn: int) -> Trajectory | None:
        trajectory = self.trajectories.get(trajectory_id)
        if self.out.answered(command) is None or trajectory is None:
            return None
        # AST: AST_INVARIANT(trajectory.turn == turn)
        assert trajectory.turn == turn, (
            f"Invariant: trajectory.turn == turn, got trajectory.turn={trajectory.turn!r:.200}, turn={turn!r:.200}"
        )
        # END AST 0a313d
        trajectory.environment_command = None
        return trajectory

    def _end_turn_without_room(self, trajectory: Trajectory) -> None:
        if trajectory.carried:
            trajectory.carried = 0
            self._step_environment(trajectory)
        else:
            self._end(trajectory, Outcome.POLICY_FAILED, "context")

    def _settle(self, trajectory: Trajectory, outcome: Outcome, reason: str) -> None:
        """Give the outcome and stop whatever still works for the trajectory."""
        attempt = self.turns.attempt_of(trajectory)
        oldest = self.trajectories.oldest_of(trajectory)
        tokens = trajectory.tokens + (attempt.tokens - attempt.segment_start if attempt is not None else 0)
        if attempt is not None:
            self.turns.abort(attempt, reason)
        if trajectory.environment_command is not None:
            self.out.call_off(trajectory.environment_command)
        self.turns.forget(trajectory)
        self.trajectories.settle(trajectory, outcome)
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
        oldest = self.trajectories.oldest_of(trajectory)
        self._settle(trajectory, outcome, reason)
        if trajectory.kind == "eval":
            self.rounds[trajectory.group].waiting.discard(trajectory.member)
        elif self.groups.finish_member(trajectory.group, trajectory.member, oldest):
            self._drop_if_stale(trajectory.group)

    def _drop_if_stale(self, group: int) -> None:
        if self.ledger.too_old(self.groups.complete[group].oldest, self.version):
            self._drop_group(group, "stale")

    def _void(self, trajectory: Trajectory, reason: str) -> None:
        """An infrastructure failure: play the member anew, or give the group up when it happens too often (D-10)."""
        self._settle(trajectory, Outcome.INFRA_VOID, reason)
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
            self._drop_group(group, "void")
        else:
            self.groups.replace(group, member, self._start("train", group, member, trajectory.seed))

    def _drop_group(self, group: int, reason: str) -> None:
        dropped = self.groups.drop(group)
        self.ledger.dropped += 1
        for player in dropped.players:
            trajectory = self.trajectories.open.get(player)
            if trajectory is not None:
                self._settle(trajectory, Outcome.CANCELLED, reason)
        self.out.say(GroupDropped, group=group, reason=reason, trajectories=tuple(dropped.players))
