"""All simulated rollout ranks and the weight groups between them and the trainer.

A dead rank hears nothing and says nothing. Commands to one rank keep their order.
"""

from __future__ import annotations

from collections.abc import Callable

from roll_ts.core import alphabet as a
from roll_ts.core.parties import party
from roll_ts.core.settings import Settings
from roll_ts.sim.clock import Clock
from roll_ts.sim.cost import CostModel
from roll_ts.sim.engine import Engine
from roll_ts.sim.episodes import Episodes
from roll_ts.sim.errors import ContractBroken, SimulationError
from roll_ts.sim.trainer import Trainer, digest_of
from roll_ts.sim.transfers import TRAINER, Transfers


class Fleet:
    """Engines by rank. `deliver` takes events to the scheduler."""

    def __init__(
        self,
        settings: Settings,
        cost: CostModel,
        clock: Clock,
        episodes: Episodes,
        trainer: Trainer,
        deliver: Callable[[a.Event], None],
    ) -> None:
        self.settings, self.cost, self.clock = settings, cost, clock
        self.episodes, self.trainer, self.deliver = episodes, trainer, deliver
        ranks = range(len(settings.layout.ranks))
        self.engines = [Engine(rank, cost, clock, self._from_engine) for rank in ranks]
        self.transfers = Transfers(clock, cost)
        self._lives = [0 for _ in ranks]
        self._booting = [False for _ in ranks]
        self._epochs = [-1 for _ in ranks]

    def kill(self, rank: int, reason: str, incarnation: int | None = None, command: int | None = None) -> None:
        """The rank's process ends now, if it is the one named. An unasked death (no `command`) of a dead rank is
        nothing."""
        engine, life = self.engines[rank], self._lives[rank]
        present = incarnation in (None, life)
        if command is None and not (engine.alive or self._booting[rank]):
            return
        lost = 0
        if present:
            lost = engine.die() if engine.alive else 0
            self._booting[rank] = False
            self.transfers.lose(rank)
        died = a.RankDied(command=command, rank=rank, incarnation=incarnation or life, reason=reason, lost_tokens=lost)
        self.deliver(died)

    def check_room_for_trainer(self, command: a.Command) -> None:
        """Raises ContractBroken when the trainer would use its devices while a rank holds memory there (R2). It may
        start beside weights, not beside KV (R22)."""
        engines = [self.engines[rank] for rank in self.settings.layout.shared_ranks]
        holders: list[int] = []
        if isinstance(command, a.StartTrainer):
            holders = [engine.rank for engine in engines if engine.kv_awake]
        elif isinstance(command, a.Train) or self.trainer.held == "nothing":
            holders = [engine.rank for engine in engines if engine.holds_memory]
        # VAL: VAL_EMPTY(holders, error=ContractBroken) - the trainer has its devices for itself (R2)
        if len(holders) != 0:
            raise ContractBroken(
                f"Fleet.check_room_for_trainer: holders must be empty, got {holders!r:.200} - the trainer "
                "has its devices for itself (R2)"
            )
        # END VAL 8360a5

    def carry_out(self, command: a.Command, late: float, spoilt: bool) -> None:
        """Carry out a command to a rank or a weight group; `spoilt` answers are wrong on purpose."""
        cost = self.cost
        match command:
            case a.FormGroup():
                self.clock.after(cost.form_group_seconds + late, lambda: self._form(command))
            case a.Sync():
                self.clock.after(late, lambda: self._send(command))
            case a.LoadWeights():
                self._to_rank(command, command.rank, late, lambda: self._load(command, spoilt))
            case a.Dispatch():
                self._to_rank(command, command.rank, cost.submit_seconds + late, lambda: self._submit(command))
            case a.Abort():
                seconds = max(cost.abort_seconds, cost.submit_seconds) + late
                self._to_rank(command, command.rank, seconds, lambda: self._abort(command))
            case a.Drain():
                seconds = max(cost.drain_seconds, cost.submit_seconds) + late
                self._to_rank(command, command.rank, seconds, lambda: self._drain(command))
            case a.Release():
                self._to_rank(command, command.rank, cost.release_seconds + late, lambda: self._release(command))
            case a.WakeKV() | a.ResetCache():
                waking = cost.wake_seconds if isinstance(command, a.WakeKV) else cost.reset_cache_seconds
                self._check_wake(command)
                seconds = waking + cost.canary_seconds + late
                self._to_rank(command, command.rank, seconds, lambda: self._kv_ready(command, spoilt))
            case a.Fence():
                rank, reason, life = command.rank, f"fenced: {command.reason}", command.incarnation
                self.clock.after(cost.fence_seconds + late, lambda: self.kill(rank, reason, life, command.id))
            case a.Restart():
                self._restart(command, late)
            case _:
                raise SimulationError(f"the driver does not know {type(command).__name__}")

    def _to_rank(self, command: a.Command, rank: int, seconds: float, do: Callable[[], a.Event | None]) -> None:
        """Do it in `seconds` and deliver the answer, unless the process that was asked is gone by then."""
        life = self._lives[rank]

        def arrive() -> None:
            if self._lives[rank] == life and self.engines[rank].alive:
                answer = do()
                if answer is not None:
                    self.deliver(answer)

        self.clock.after(seconds, arrive)

    def _from_engine(self, event: a.Event) -> None:
        if isinstance(event, a.Progress | a.Finished | a.Aborted):
            self.episodes.store(event.attempt, event.total)
        self.deliver(event)

    def _submit(self, command: a.Dispatch) -> None:
        engine = self.engines[command.rank]
        # AST: AST_PRECONDITION(
        #     engine.servable, error=ContractBroken, about=(command.attempt, command.rank, engine.kv_awake)
        # ) - a dispatch goes to a rank with weights and KV (R7, R19)
        if not engine.servable:
            raise ContractBroken(
                f"Pre-condition: engine.servable, got {engine.servable!r:.200} "
                f"(command.attempt={command.attempt!r:.200}, command.rank={command.rank!r:.200}, "
                f"engine.kv_awake={engine.kv_awake!r:.200}) - a dispatch goes to a rank with weights and "
                "KV (R7, R19)"
            )
        # END AST 32bc31
        # VAL: VAL_EQUAL(
        #     engine.weights, command.version, error=ContractBroken, about=(command.attempt, command.rank)
        # ) - a dispatch goes to a rank with its weights (R7, R19)
        if engine.weights != command.version:
            raise ContractBroken(
                f"Fleet._submit: engine.weights must equal command.version ({command.version!r:.200}), got "
                f"{engine.weights!r:.200} (command.attempt={command.attempt!r:.200}, "
                f"command.rank={command.rank!r:.200}) - a dispatch goes to a rank with its weights (R7, "
                "R19)"
            )
        # END VAL 8f81d4
        prompt, target, reason = self.episodes.request(command)
        self.deliver(a.SubmitAcked(command=command.id, attempt=command.attempt))
        engine.submit(command.attempt, prompt, target, reason)

    def _abort(self, command: a.Abort) -> None:
        """The engine itself reports the end; an attempt that has ended already is left alone."""
        self.engines[command.rank].abort(command.attempt)

    def _stats(self, command: a.Command, rank: int) -> a.RankStats:
        engine = self.engines[rank]
        return a.RankStats(
            command=command.id,
            rank=rank,
            incarnation=self._lives[rank],
            running=engine.running,
            waiting=engine.waiting,
            kv_tokens=engine.kv_tokens,
        )

    def _drain(self, command: a.Drain) -> a.Event | None:
        life = self._lives[command.rank]
        self.engines[command.rank].abort_all()
        return self._stats(command, command.rank) if self._lives[command.rank] == life else None

    def _release(self, command: a.Release) -> a.Event:
        self._check_idle(command, command.rank)
        self.engines[command.rank].discard()
        return a.MemoryReleased(
            command=command.id,
            holder=f"rank:{command.rank}",
            epoch=command.epoch,
            bytes=self.cost.release_bytes,
        )

    def _form(self, command: a.FormGroup) -> None:
        if self.trainer.incarnation is None:
            return
        dead = [rank for rank in command.members if not self.engines[rank].alive]
        if dead:
            culprits = tuple(party(rank) for rank in dead)
            failed = a.CommandFailed(command=command.id, error=f"ranks {dead} do not answer", culprits=culprits)
            self.deliver(failed)
            return
        self.transfers.form(command.epoch, command.members)
        self.deliver(a.GroupFormed(command=command.id, epoch=command.epoch))

    def _send(self, command: a.Sync) -> None:
        if self.trainer.incarnation is None:
            return
        # VAL: VAL_EQUAL(
        #     command.version, self.trainer.version, error=ContractBroken
        # ) - a sync sends the version that is published
        if command.version != self.trainer.version:
            raise ContractBroken(
                "Fleet._send: command.version must equal self.trainer.version "
                f"({self.trainer.version!r:.200}), got {command.version!r:.200} - a sync sends the version "
                "that is published"
            )
        # END VAL 90b28a
        life = self.trainer.incarnation

        def sent(seconds: float | None) -> None:
            if self.trainer.incarnation != life:
                return
            if seconds is None:
                self.deliver(a.CommandFailed(command=command.id, error="the weight group broke"))
            else:
                self.deliver(a.WeightsSent(command=command.id, epoch=command.epoch, version=command.version))

        self.transfers.join(command.epoch, TRAINER, sent)

    def _load(self, command: a.LoadWeights, spoilt: bool) -> None:
        rank, life = command.rank, self._lives[command.rank]
        self._check_idle(command, rank)
        if rank in self.settings.layout.shared_ranks:
            held = self.trainer.held
            # VAL: VAL_STATE_NOT_IN(
            #     held, ("all",), error=ContractBroken, about=rank
            # ) - the trainer's state fills the devices (R22)
            if held in ("all",):
                raise ContractBroken(
                    f'Fleet._load: held must not be in one of the states ("all",), got {held!r:.200} '
                    f"(rank={rank!r:.200}) - the trainer's state fills the devices (R22)"
                )
            # END VAL 967771

        self._epochs[rank] = command.epoch

        def received(seconds: float | None) -> None:
            if self._lives[rank] != life or not self.engines[rank].alive:
                return
            if seconds is None:
                if self._epochs[rank] == command.epoch:
                    self.engines[rank].weights = None
                self.deliver(a.CommandFailed(command=command.id, error="the weight group broke"))
                return
            self.engines[rank].weights = command.version
            self.deliver(
                a.WeightsLoaded(
                    command=command.id,
                    rank=rank,
                    epoch=command.epoch,
                    version=command.version,
                    digest=digest_of(-1 if spoilt else command.version),
                    seconds=seconds,
                )
            )

        self.transfers.join(command.epoch, rank, received)

    def _kv_ready(self, command: a.WakeKV | a.ResetCache, spoilt: bool) -> a.Event:
        engine = self.engines[command.rank]
        engine.forget_prefixes()
        engine.kv_awake = True
        gap = 1.0 if spoilt else 0.0
        return a.KVReady(command=command.id, rank=command.rank, epoch=command.epoch, canary_gap=gap)

    def _restart(self, command: a.Restart, late: float) -> None:
        rank = command.rank
        # AST: AST_PRECONDITION(not self.engines[rank].alive, error=ContractBroken) - a restart needs a dead process
        if self.engines[rank].alive:
            raise ContractBroken(
                "Pre-condition: not self.engines[rank].alive, got "
                f"self.engines[rank].alive={self.engines[rank].alive!r:.200} - a restart needs a dead "
                "process"
            )
        # END AST 8aad1c
        life = self._lives[rank] = command.incarnation
        self._booting[rank] = True

        def up() -> None:
            if self._lives[rank] == life and self._booting[rank]:
                self._booting[rank], self.engines[rank].alive = False, True
                booted = a.RankBooted(
                    command=command.id, rank=rank, incarnation=life, kv_capacity=self.cost.kv_capacity
                )
                self.deliver(booted)

        self.clock.after(self.cost.boot_seconds + late, up)

    def _check_idle(self, command: a.Command, rank: int) -> None:
        engine = self.engines[rank]
        running, waiting = engine.running, engine.waiting
        # AST: AST_PRECONDITION(
        #     running == 0 and waiting == 0, error=ContractBroken, about=(rank, command)
        # ) - the rank is drained before
        if running != 0 or waiting != 0:
            raise ContractBroken(
                f"Pre-condition: running == 0 and waiting == 0, got running={running!r:.200}, "
                f"waiting={waiting!r:.200} (rank={rank!r:.200}, command={command!r:.200}) - the rank is "
                "drained before"
            )
        # END AST fc5438

    def _check_wake(self, command: a.WakeKV | a.ResetCache) -> None:
        engine, shared = self.engines[command.rank], self.settings.layout.shared_ranks
        if engine.alive:
            weights = engine.weights
            # VAL: VAL_EQUAL(
            #     weights, command.version, error=ContractBroken, about=command.rank
            # ) - KV belongs to the weights that are there
            if weights != command.version:
                raise ContractBroken(
                    f"Fleet._check_wake: weights must equal command.version ({command.version!r:.200}), got "
                    f"{weights!r:.200} (command.rank={command.rank!r:.200}) - KV belongs to the weights that "
                    "are there"
                )
            # END VAL b2b297
        if isinstance(command, a.WakeKV) and command.rank in shared:
            held = self.trainer.held
            # VAL: VAL_STATE_IN(
            #     held, ("nothing",), error=ContractBroken, about=command.rank
            # ) - KV has no room beside the trainer (R22)
            if held not in ("nothing",):
                raise ContractBroken(
                    f'Fleet._check_wake: held must be in one of the states ("nothing",), got {held!r:.200} '
                    f"(command.rank={command.rank!r:.200}) - KV has no room beside the trainer (R22)"
                )
            # END VAL e9d395
