"""The rules that hold after every event, checked against the whole state. For tests, simulations and post-mortems."""

from __future__ import annotations

from roll_ts.core.errors import InvariantBroken
from roll_ts.core.leases import TRAINING, rollout
from roll_ts.core.ranks import RankState
from roll_ts.core.scheduler import Scheduler
from roll_ts.core.trajectories import AttemptId, Phase

S = RankState
HOLDS_MEMORY = (S.BOOTING, S.EMPTY, S.ACTIVE, S.DRAINING, S.RELEASING, S.SYNCING)
MAY_RUN = (S.ACTIVE, S.DRAINING, S.SYNCING, S.FENCED)


def check_invariants(scheduler: Scheduler) -> None:
    """Raise InvariantBroken, naming the rule and the ids, if the state contradicts one."""
    _check_leases(scheduler)
    _check_ranks(scheduler)
    _check_trajectories(scheduler)
    _check_groups(scheduler)


def _must(rule: str, good: bool, what: str) -> None:
    if not good:
        raise InvariantBroken(f"{rule}: {what}")


def _check_leases(scheduler: Scheduler) -> None:
    leases, settings = scheduler.leases, scheduler.settings
    for row in scheduler.ranks.rows:
        holders = {leases.held_by(device) for device in row.devices}
        _must("R5", len(holders) == 1, f"devices {row.devices} of rank {row.id} have different holders {holders}")
        if row.state in HOLDS_MEMORY:
            _must("R2", holders == {rollout(row.id)}, f"rank {row.id} is {row.state} but {holders} hold its devices")
        if row.state in (S.LENT, S.FAILED):
            _must("R2", rollout(row.id) not in holders, f"rank {row.id} is {row.state} and still holds its devices")
    if scheduler.cycle.stage == "TRAINING":
        training = {leases.held_by(device) for device in settings.layout.train_devices}
        _must("R2", training == {TRAINING}, f"training runs while {training} hold its devices")
    if leases.window >= 0:
        _must(
            "R22", leases.window <= scheduler.ranks.epoch, f"the sync window is of epoch {leases.window}, yet to come"
        )


def _check_ranks(scheduler: Scheduler) -> None:
    sync = scheduler.cycle.sync
    for row in scheduler.ranks.rows:
        attempts = scheduler.rollouts.trajectories.by_rank[row.id]
        _must("R7", not attempts or row.state in MAY_RUN, f"rank {row.id} is {row.state} and runs {list(attempts)}")
        if row.state is S.ACTIVE:
            _must("R19", row.version >= 0, f"rank {row.id} is ACTIVE with no proven weights")
        if row.state in (S.LENT, S.EMPTY, S.BOOTING, S.FAILED):
            _must("R19", row.version == -1, f"rank {row.id} is {row.state} and claims version {row.version}")
        if row.state in (S.LOADING, S.SYNCING) and not scheduler.finished and not scheduler.cycle.stopping:
            member = sync is not None and row.id in (*sync.joiners, *sync.kept)
            _must("R23", member, f"rank {row.id} is {row.state} and in no sync")


def _check_trajectories(scheduler: Scheduler) -> None:
    table = scheduler.rollouts.trajectories
    queued = 0
    for trajectory in table.open.values():
        current = AttemptId(trajectory.id, trajectory.turn, trajectory.tries)
        generating = trajectory.phase is Phase.GENERATING
        _must("R6", generating == (current in table.attempts), f"trajectory {trajectory.id} is {trajectory.phase}")
        _must("R13", trajectory.outcome is None, f"trajectory {trajectory.id} is open and {trajectory.outcome}")
        waits = trajectory.environment_command is not None
        _must("R12", waits == (trajectory.phase is Phase.ENVIRONMENT), f"trajectory {trajectory.id} waits for nobody")
        generated = sum(segment.tokens for segment in trajectory.segments)
        _must("R8", generated == trajectory.tokens, f"trajectory {trajectory.id} lost or doubled tokens")
        queued += trajectory.phase is Phase.QUEUED
    _must(
        "R6",
        queued == scheduler.rollouts.turns.queued,
        f"{queued} turns are queued, {scheduler.rollouts.turns.queued} counted",
    )
    _must("R13", table.started == len(table.open) + sum(table.settled.values()), "a trajectory was lost or doubled")


def _check_groups(scheduler: Scheduler) -> None:
    rollouts = scheduler.rollouts
    for group in rollouts.groups.open.values():
        _must("R15", len(set(group.players)) == rollouts.groups.group_size, f"group {group.id} has a member twice")
        for member, player in enumerate(group.players):
            playing = player in rollouts.trajectories.open
            _must("R13", playing != (member in group.done), f"member {member} of group {group.id} is played by nobody")
    ledger = rollouts.ledger
    known = len(rollouts.groups.open) + len(rollouts.groups.complete) + len(rollouts.groups.training)
    _must("R17", ledger.started - ledger.trained - ledger.dropped == known, "the staleness ledger lost a group")
    _must("R17", known <= ledger.capacity, f"{known} groups are open, more than {ledger.capacity}")
