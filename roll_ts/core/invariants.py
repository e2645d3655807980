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
        # AST: AST_INVARIANT(
        #     len(holders) == 1, error=InvariantBroken, about=(row.id, row.devices)
        # ) - R5: a rank's devices have one holder
        if len(holders) != 1:
            raise InvariantBroken(
                f"Invariant: len(holders) == 1, got holders={holders!r:.200} (row.id={row.id!r:.200}, "
                f"row.devices={row.devices!r:.200}) - R5: a rank's devices have one holder"
            )
        # END AST 841f94
        # AST: AST_INVARIANT(
        #     not full or holders == {own}, error=InvariantBroken, about=(row.id, row.state)
        # ) - R2: a rank with memory on its devices holds them
        if full and holders != {own}:
            raise InvariantBroken(
                f"Invariant: not full or holders == {{own}}, got full={full!r:.200}, "
                f"holders={holders!r:.200}, own={own!r:.200} (row.id={row.id!r:.200}, "
                f"row.state={row.state!r:.200}) - R2: a rank with memory on its devices holds them"
            )
        # END AST b3d17b
        # AST: AST_INVARIANT(
        #     not gone or own not in holders, error=InvariantBroken, about=(row.id, row.state)
        # ) - R2: a rank that is lent or has failed holds nothing
        if gone and own in holders:
            raise InvariantBroken(
                f"Invariant: not gone or own not in holders, got gone={gone!r:.200}, own={own!r:.200}, "
                f"holders={holders!r:.200} (row.id={row.id!r:.200}, row.state={row.state!r:.200}) - R2: a "
                "rank that is lent or has failed holds nothing"
            )
        # END AST e826cc
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
        # AST: AST_INVARIANT(
        #     may_run or not attempts, error=InvariantBroken, about=(row.id, row.state)
        # ) - R7: only ranks that may run have attempts
        if not may_run and attempts:
            raise InvariantBroken(
                f"Invariant: may_run or not attempts, got may_run={may_run!r:.200}, "
                f"attempts={attempts!r:.200} (row.id={row.id!r:.200}, row.state={row.state!r:.200}) - R7: "
                "only ranks that may run have attempts"
            )
        # END AST c2784c
        # AST: AST_INVARIANT(
        #     not active or version >= 0, error=InvariantBroken, about=row.id
        # ) - R19: an active rank has proven weights
        if active and not version >= 0:
            raise InvariantBroken(
                f"Invariant: not active or version >= 0, got active={active!r:.200}, "
                f"version={version!r:.200} (row.id={row.id!r:.200}) - R19: an active rank has proven "
                "weights"
            )
        # END AST ead1ec
        # AST: AST_INVARIANT(
        #     not bare or version == -1, error=InvariantBroken, about=(row.id, row.state)
        # ) - R19: a rank without weights has no version
        if bare and version != -1:
            raise InvariantBroken(
                f"Invariant: not bare or version == -1, got bare={bare!r:.200}, version={version!r:.200} "
                f"(row.id={row.id!r:.200}, row.state={row.state!r:.200}) - R19: a rank without weights has "
                "no version"
            )
        # END AST 9038b7
        waking, behind = row.id in joining.waking, row.id in joining.behind
        proven = row.version == scheduler.control.version
        # AST: AST_INVARIANT(
        #     row.state not in (S.LOADING, S.SYNCING) or waking or behind or proven,
        #     error=InvariantBroken, about=(row.id, row.state)
        # ) - R23: who loads or syncs is on its way to the version
        if not (row.state not in (S.LOADING, S.SYNCING) or waking or behind or proven):
            raise InvariantBroken(
                "Invariant: row.state not in (S.LOADING, S.SYNCING) or waking or behind or proven, got "
                f"row.state={row.state!r:.200}, S.LOADING={S.LOADING!r:.200}, "
                f"S.SYNCING={S.SYNCING!r:.200}, waking={waking!r:.200}, behind={behind!r:.200} "
                f"(row.id={row.id!r:.200}, row.state={row.state!r:.200}) - R23: who loads or syncs is on "
                "its way to the version"
            )
        # END AST 63107e
        # AST: AST_INVARIANT(
        #     behind or proven or row.state not in (S.EMPTY, S.LENT, S.ACTIVE) or scheduler.control.version < 0,
        #     error=InvariantBroken, about=(row.id, row.state, version)
        # ) - R37: the index of those behind is true
        if not (behind or proven or row.state not in (S.EMPTY, S.LENT, S.ACTIVE) or scheduler.control.version < 0):
            raise InvariantBroken(
                "Invariant: behind or proven or row.state not in (S.EMPTY, S.LENT, S.ACTIVE) or "
                f"scheduler.control.version < 0, got behind={behind!r:.200}, proven={proven!r:.200}, "
                f"row={row!r:.200}, S={S!r:.200}, scheduler={scheduler!r:.200} (row.id={row.id!r:.200}, "
                f"row.state={row.state!r:.200}, version={version!r:.200}) - R37: the index of those behind "
                "is true"
            )
        # END AST 2f0c61


def _check_trajectories(scheduler: Scheduler) -> None:
    table = scheduler.rollouts.trajectories
    queued = 0
    for trajectory in table.open.values():
        running = AttemptId(trajectory.id, trajectory.turn, trajectory.tries) in table.attempts
        generating, waiting = trajectory.phase is Phase.GENERATING, trajectory.phase is Phase.ENVIRONMENT
        asked = trajectory.environment_command is not None
        generated = sum(span.tokens for span in trajectory.spans)
        # AST: AST_INVARIANT(
        #     generating == running, error=InvariantBroken, about=(trajectory.id, trajectory.phase)
        # ) - R6: who generates has an attempt, and only they
        if generating != running:
            raise InvariantBroken(
                f"Invariant: generating == running, got generating={generating!r:.200}, "
                f"running={running!r:.200} (trajectory.id={trajectory.id!r:.200}, "
                f"trajectory.phase={trajectory.phase!r:.200}) - R6: who generates has an attempt, and only "
                "they"
            )
        # END AST cbf5e6
        # AST: AST_INVARIANT(
        #     trajectory.outcome is None, error=InvariantBroken, about=trajectory.id
        # ) - R13: an open trajectory has no outcome
        if trajectory.outcome is not None:
            raise InvariantBroken(
                "Invariant: trajectory.outcome is None, got "
                f"trajectory.outcome={trajectory.outcome!r:.200} (trajectory.id={trajectory.id!r:.200}) - "
                "R13: an open trajectory has no outcome"
            )
        # END AST 4d3119
        # AST: AST_INVARIANT(
        #     waiting == asked, error=InvariantBroken, about=(trajectory.id, trajectory.phase)
        # ) - R12: who waits for the environment has asked it, and only they
        if waiting != asked:
            raise InvariantBroken(
                f"Invariant: waiting == asked, got waiting={waiting!r:.200}, asked={asked!r:.200} "
                f"(trajectory.id={trajectory.id!r:.200}, trajectory.phase={trajectory.phase!r:.200}) - "
                "R12: who waits for the environment has asked it, and only they"
            )
        # END AST 815d53
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
    # AST: AST_INVARIANT(queued == counted, error=InvariantBroken) - R6: each queued turn is counted once
    if queued != counted:
        raise InvariantBroken(
            f"Invariant: queued == counted, got queued={queued!r:.200}, counted={counted!r:.200} - R6: "
            "each queued turn is counted once"
        )
    # END AST bc81d5
    # AST: AST_INVARIANT(
    #     table.started == accounted, error=InvariantBroken
    # ) - R13: no trajectory is lost or doubled
    if table.started != accounted:
        raise InvariantBroken(
            f"Invariant: table.started == accounted, got table.started={table.started!r:.200}, "
            f"accounted={accounted!r:.200} - R13: no trajectory is lost or doubled"
        )
    # END AST af5435


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
    # AST: AST_INVARIANT(
    #     ledger.started - ledger.trained - ledger.dropped == known, error=InvariantBroken
    # ) - R17: the staleness ledger counts the groups that are there
    if ledger.started - ledger.trained - ledger.dropped != known:
        raise InvariantBroken(
            "Invariant: ledger.started - ledger.trained - ledger.dropped == known, got "
            f"ledger.started={ledger.started!r:.200}, ledger.trained={ledger.trained!r:.200}, "
            f"ledger.dropped={ledger.dropped!r:.200}, known={known!r:.200} - R17: the staleness ledger "
            "counts the groups that are there"
        )
    # END AST 93fed9
    # AST: AST_INVARIANT(known <= ledger.capacity, error=InvariantBroken) - R17: no more groups than the bound allows
    if not known <= ledger.capacity:
        raise InvariantBroken(
            f"Invariant: known <= ledger.capacity, got known={known!r:.200}, "
            f"ledger.capacity={ledger.capacity!r:.200} - R17: no more groups than the bound allows"
        )
    # END AST 19d3e6
