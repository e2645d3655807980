"""The rules that hold after every event, checked against the whole state. For tests, simulations and post-mortems."""

from __future__ import annotations

from roll_ts.core.errors import InvariantBroken
from roll_ts.core.leases import TRAINING, rollout
from roll_ts.core.ranks import RankState
from roll_ts.core.scheduler import Scheduler
from roll_ts.core.trajectories import AttemptId, Phase

S = RankState
HOLDS_MEMORY = (S.BOOTING, S.EMPTY, S.ACTIVE, S.DRAINING, S.RELEASING, S.SYNCING, S.QUARANTINED)
MAY_RUN = (S.ACTIVE, S.DRAINING, S.SYNCING, S.FENCED)
HAS_NO_WEIGHTS = (S.LENT, S.EMPTY, S.BOOTING, S.FAILED)


def check_invariants(scheduler: Scheduler) -> None:
    """Raise InvariantBroken, naming the rule and the ids, if the state contradicts one."""
    _check_leases(scheduler)
    _check_ranks(scheduler)
    _check_trajectories(scheduler)
    _check_groups(scheduler)


def _check_leases(scheduler: Scheduler) -> None:
    leases, settings = scheduler.leases, scheduler.settings
    for row in scheduler.ranks.rows:
        own, holders = rollout(row.id), {leases.held_by(device) for device in row.devices}
        full, gone = row.state in HOLDS_MEMORY, row.state in (S.LENT, S.FAILED)
        # AST: AST_RULES([
        #     ("R5: a rank's devices have one holder", len(holders) == 1),
        #     ("R2: a rank with memory on its devices holds them", not full or holders == {own}),
        #     ("R2: a rank that is lent or has failed holds nothing", not gone or own not in holders),
        # ], error=InvariantBroken, about=(row.id, row.devices, row.state))
        for _rule, _holds in (
            ("R5: a rank's devices have one holder", len(holders) == 1),
            ("R2: a rank with memory on its devices holds them", not full or holders == {own}),
            ("R2: a rank that is lent or has failed holds nothing", not gone or own not in holders),
        ):
            if not _holds:
                raise InvariantBroken(
                    f"Invariant: {_rule} (row.id={row.id!r:.200}, row.devices={row.devices!r:.200}, "
                    f"row.state={row.state!r:.200})"
                )
        # END AST ff8d66
    if scheduler.control.stage == "TRAINING":
        trainers = {leases.held_by(device) for device in settings.layout.train_devices}
        # AST: AST_INVARIANT(trainers == {TRAINING}, error=InvariantBroken) - R2: training holds its devices
        if trainers != {TRAINING}:
            raise InvariantBroken(
                f"Invariant: trainers == {{TRAINING}}, got trainers={trainers!r:.200}, "
                f"TRAINING={TRAINING!r:.200} - R2: training holds its devices"
            )
        # END AST 0ce5e3
    taken = sum(leases.held_by(device) not in (None, TRAINING) for device in settings.layout.train_devices)
    # AST: AST_INVARIANT(leases.taken == taken, error=InvariantBroken) - R37: the index of the leases is true
    if leases.taken != taken:
        raise InvariantBroken(
            f"Invariant: leases.taken == taken, got leases.taken={leases.taken!r:.200}, "
            f"taken={taken!r:.200} - R37: the index of the leases is true"
        )
    # END AST 09e1d7


def _check_ranks(scheduler: Scheduler) -> None:
    joining = scheduler.control.joining
    for row in scheduler.ranks.rows:
        attempts = list(scheduler.rollouts.trajectories.by_rank[row.id])
        version = row.version
        may_run, active, bare = row.state in MAY_RUN, row.state is S.ACTIVE, row.state in HAS_NO_WEIGHTS
        # AST: AST_RULES([
        #     ("R7: only ranks that may run have attempts", may_run or not attempts),
        #     ("R19: an active rank has proven weights", not active or version >= 0),
        #     ("R19: a rank without weights has no version", not bare or version == -1),
        # ], error=InvariantBroken, about=(row.id, row.state))
        for _rule, _holds in (
            ("R7: only ranks that may run have attempts", may_run or not attempts),
            ("R19: an active rank has proven weights", not active or version >= 0),
            ("R19: a rank without weights has no version", not bare or version == -1),
        ):
            if not _holds:
                raise InvariantBroken(f"Invariant: {_rule} (row.id={row.id!r:.200}, row.state={row.state!r:.200})")
        # END AST 5e35a3
        waking, behind = row.id in joining.waking, row.id in joining.behind
        proven = row.version == scheduler.control.version
        # AST: AST_RULES([
        #     ("R23: who loads or syncs is on its way to the version",
        #      row.state not in (S.LOADING, S.SYNCING) or waking or behind or proven),
        #     ("R37: the index of those behind is true",
        #      behind or proven or row.state not in (S.EMPTY, S.LENT, S.ACTIVE) or scheduler.control.version < 0),
        # ], error=InvariantBroken, about=(row.id, row.state, version))
        for _rule, _holds in (
            (
                "R23: who loads or syncs is on its way to the version",
                row.state not in (S.LOADING, S.SYNCING) or waking or behind or proven,
            ),
            (
                "R37: the index of those behind is true",
                behind or proven or row.state not in (S.EMPTY, S.LENT, S.ACTIVE) or (scheduler.control.version < 0),
            ),
        ):
            if not _holds:
                raise InvariantBroken(
                    f"Invariant: {_rule} (row.id={row.id!r:.200}, row.state={row.state!r:.200}, "
                    f"version={version!r:.200})"
                )
        # END AST c0c875


def _check_trajectories(scheduler: Scheduler) -> None:
    table = scheduler.rollouts.trajectories
    queued = 0
    for trajectory in table.open.values():
        running = AttemptId(trajectory.id, trajectory.turn, trajectory.tries) in table.attempts
        generating, waiting = trajectory.phase is Phase.GENERATING, trajectory.phase is Phase.ENVIRONMENT
        asked = trajectory.environment_command is not None
        generated = sum(span.tokens for span in trajectory.spans)
        # AST: AST_RULES([
        #     ("R6: who generates has an attempt, and only they", generating == running),
        #     ("R13: an open trajectory has no outcome", trajectory.outcome is None),
        #     ("R12: who waits for the environment has asked it, and only they", waiting == asked),
        # ], error=InvariantBroken, about=(trajectory.id, trajectory.phase))
        for _rule, _holds in (
            ("R6: who generates has an attempt, and only they", generating == running),
            ("R13: an open trajectory has no outcome", trajectory.outcome is None),
            ("R12: who waits for the environment has asked it, and only they", waiting == asked),
        ):
            if not _holds:
                raise InvariantBroken(
                    f"Invariant: {_rule} (trajectory.id={trajectory.id!r:.200}, "
                    f"trajectory.phase={trajectory.phase!r:.200})"
                )
        # END AST ed8574
        # AST: AST_INVARIANT(
        #     generated == trajectory.tokens, error=InvariantBroken, about=trajectory.id
        # ) - R8: no token is lost or doubled
        if generated != trajectory.tokens:
            raise InvariantBroken(
                f"Invariant: generated == trajectory.tokens, got generated={generated!r:.200}, "
                f"trajectory.tokens={trajectory.tokens!r:.200} (trajectory.id={trajectory.id!r:.200}) - "
                "R8: no token is lost or doubled"
            )
        # END AST 680d34
        queued += trajectory.phase is Phase.QUEUED
    counted, accounted = scheduler.rollouts.queued, len(table.open) + sum(table.settled.values())
    # AST: AST_RULES([
    #     ("R6: each queued turn is counted once", queued == counted),
    #     ("R13: no trajectory is lost or doubled", table.started == accounted),
    # ], error=InvariantBroken)
    for _rule, _holds in (
        ("R6: each queued turn is counted once", queued == counted),
        ("R13: no trajectory is lost or doubled", table.started == accounted),
    ):
        if not _holds:
            raise InvariantBroken(f"Invariant: {_rule}")
    # END AST 8a91c1


def _check_groups(scheduler: Scheduler) -> None:
    rollouts = scheduler.rollouts
    for group in rollouts.groups.open.values():
        players, started = len(set(group.players)), rollouts.groups.group_size + rollouts.groups.extra
        # AST: AST_INVARIANT(
        #     players == started, error=InvariantBroken, about=(group.id, group.players)
        # ) - R15: each member of a group has its own player
        if players != started:
            raise InvariantBroken(
                f"Invariant: players == started, got players={players!r:.200}, started={started!r:.200} "
                f"(group.id={group.id!r:.200}, group.players={group.players!r:.200}) - R15: each member of "
                "a group has its own player"
            )
        # END AST 377c2d
        for member, player in enumerate(group.players):
            playing = player in rollouts.trajectories.open
            done = member in group.done or member in group.given_up
            # AST: AST_INVARIANT(
            #     playing != done, error=InvariantBroken, about=(group.id, member, player)
            # ) - R13: a member is played or done
            if playing == done:
                raise InvariantBroken(
                    f"Invariant: playing != done, got playing={playing!r:.200}, done={done!r:.200} "
                    f"(group.id={group.id!r:.200}, member={member!r:.200}, player={player!r:.200}) - R13: a "
                    "member is played or done"
                )
            # END AST fd1fcb
    ledger = rollouts.ledger
    known = len(rollouts.groups.open) + len(rollouts.groups.complete) + len(rollouts.groups.training)
    # AST: AST_RULES([
    #     ("R17: the staleness ledger counts the groups that are there",
    #      ledger.started - ledger.trained - ledger.dropped == known),
    #     ("R17: no more groups than the bound allows", known <= ledger.capacity),
    # ], error=InvariantBroken)
    for _rule, _holds in (
        (
            "R17: the staleness ledger counts the groups that are there",
            ledger.started - ledger.trained - ledger.dropped == known,
        ),
        ("R17: no more groups than the bound allows", known <= ledger.capacity),
    ):
        if not _holds:
            raise InvariantBroken(f"Invariant: {_rule}")
    # END AST 81d5a6
