"""All simulated rollout ranks and the weight groups between them and the trainer.

A dead rank hears nothing and says nothing. Commands to one rank keep their order.
"""

from __future__ import annotations

from collections.abc import Callable

from roll_ts.core import alphabet as a
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

    def kill(self, rank: int, reason: str, command: int | None = None) -> None:
        """The rank's process ends now. An unasked death (no `command`) of a dead rank is nothing."""
        engine = self.engines[rank]
        if not engine.alive and command is None:
            return
        lost = engine.die() if engine.alive else 0
        self._lives[rank] += 1
        self.transfers.lose(rank)
        self.deliver(a.RankDied(command=command, rank=rank, reason=reason, lost_tokens=lost))

    def check_room_for_trainer(self, command: a.Command) -> None:
        """Raises ContractBroken when training would start while a rank still holds memory on its devices
        (R2)."""
        shared = self.settings.layout.shared_ranks
        full = [rank for rank in shared if self.engines[rank].holds_memory]
        if isinstance(command, a.Train) and full:
            raise ContractBroken(f"training would start while ranks {full} hold memory on its devices")

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
            case a.Pause() | a.Resume():
                self._to_rank(command, command.rank, cost.pause_seconds + late, lambda: self._pause(command))
            case a.Release():
                self._to_rank(command, command.rank, cost.release_seconds + late, lambda: self._release(command))
            case a.WakeKV() | a.ResetCache():
                waking = cost.wake_seconds if isinstance(command, a.WakeKV) else cost.reset_cache_seconds
                self._check_wake(command)
                seconds = waking + cost.canary_seconds + late
                self._to_rank(command, command.rank, seconds, lambda: self._kv_ready(command, spoilt))
            case a.Fence():
                rank, reason, ident = command.rank, command.reason, command.id
                self.clock.after(cost.fence_seconds + late, lambda: self.kill(rank, f"fenced: {reason}", ident))
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
            self.episodes.store(event.attempt.trajectory, event.tokens)
        self.deliver(event)

    def _submit(self, command: a.Dispatch) -> None:
        engine = self.engines[command.rank]
        if not engine.servable or engine.weights != command.version:
            raise ContractBroken(
                f"dispatch {command.attempt} of version {command.version} to rank {command.rank}, which has weights "
                f"{engine.weights}, KV {'awake' if engine.kv_awake else 'asleep'} (R7, R19)"
            )
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
            running=engine.running,
            waiting=engine.waiting,
            kv_tokens=engine.kv_tokens,
        )

    def _drain(self, command: a.Drain) -> a.Event | None:
        life = self._lives[command.rank]
        self.engines[command.rank].abort_all()
        return self._stats(command, command.rank) if self._lives[command.rank] == life else None

    def _pause(self, command: a.Pause | a.Resume) -> a.Event:
        engine = self.engines[command.rank]
        if isinstance(command, a.Pause):
            engine.pause()
        else:
            engine.resume()
        return self._stats(command, command.rank)

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
        dead = [rank for rank in command.members if not self.engines[rank].alive]
        if dead:
            self.deliver(a.CommandFailed(command=command.id, error=f"ranks {dead} do not answer"))
            return
        self.transfers.form(command.epoch, command.members)
        self.deliver(a.GroupFormed(command=command.id, epoch=command.epoch))

    def _send(self, command: a.Sync) -> None:
        if command.version != self.trainer.version or self.trainer.busy:
            raise ContractBroken(f"sync of version {command.version}; the trainer has {self.trainer.version}")

        def sent(seconds: float | None) -> None:
            if seconds is None:
                self.deliver(a.CommandFailed(command=command.id, error="the weight group broke"))
            else:
                self.deliver(a.WeightsSent(command=command.id, epoch=command.epoch, version=command.version))

        self.transfers.join(command.epoch, TRAINER, sent)

    def _load(self, command: a.LoadWeights, spoilt: bool) -> None:
        rank, life = command.rank, self._lives[command.rank]
        if not self.settings.keep_kv:
            self._check_idle(command, rank)
        if rank in self.settings.layout.shared_ranks and self.trainer.held == "all":
            raise ContractBroken(f"weights for rank {rank} while the trainer's state fills its devices (R22)")

        def received(seconds: float | None) -> None:
            if self._lives[rank] != life:
                return
            if seconds is None:
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
        if self.engines[rank].alive:
            raise ContractBroken(f"restart of rank {rank}, whose process is alive")
        self._lives[rank] += 1
        life = self._lives[rank]

        def up() -> None:
            if self._lives[rank] == life:
                self.engines[rank].alive = True
                self.deliver(a.RankBooted(command=command.id, rank=rank, kv_capacity=self.cost.kv_capacity))

        self.clock.after(self.cost.boot_seconds + late, up)

    def _check_idle(self, command: a.Command, rank: int) -> None:
        engine = self.engines[rank]
        if engine.running or engine.waiting:
            raise ContractBroken(
                f"{type(command).__name__} on rank {rank} with {engine.running} running and {engine.waiting} waiting"
            )

    def _check_wake(self, command: a.WakeKV | a.ResetCache) -> None:
        engine, shared = self.engines[command.rank], self.settings.layout.shared_ranks
        if engine.alive and engine.weights != command.version:
            raise ContractBroken(f"KV of rank {command.rank} for version {command.version}; it has {engine.weights}")
        if isinstance(command, a.WakeKV) and command.rank in shared and self.trainer.held != "nothing":
            raise ContractBroken(f"KV of rank {command.rank} while the trainer holds {self.trainer.held} (R22)")
