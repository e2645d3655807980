"""Rollout engines as the world has them: processes with memory, weights and requests, honest unless a fault says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roll_ts.core import alphabet as a
from tests.roll_ts.outside.dice import Dice

if TYPE_CHECKING:
    from tests.roll_ts.outside.world import World


@dataclass
class Request:
    """One attempt in an engine: `total` tokens between `begun` and `ends` seconds."""

    begun: float
    ends: float
    total: int
    full: bool

    def so_far(self, now: float) -> int:
        """Tokens generated until `now`."""
        if now >= self.ends:
            return self.total
        return int(self.total * max(0.0, now - self.begun) / (self.ends - self.begun))


@dataclass
class Process:
    """One process of a rank. `holds`: "all" (weights and KV), "weights" (in the sync window) or "nothing"."""

    rank: int
    incarnation: int
    alive: bool = True
    hung: bool = False
    holds: str = "all"
    requests: dict[a.AttemptId, Request] = field(default_factory=dict)


class Engines:
    """All processes that live, dead ones gone; at most one per rank unless the scheduler errs."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.by_rank: dict[int, Process] = {}

    def answers(self, rank: int) -> Process | None:
        """The process if it is there and not hung."""
        process = self.by_rank.get(rank)
        return process if process is not None and not process.hung else None

    def die(self, rank: int, command: int | None = None, delay: float = 0.05) -> None:
        """The process ends; somebody notices after `delay` seconds."""
        process = self.by_rank.pop(rank, None)
        if process is None:
            return
        process.alive = False
        lost = len(process.requests)
        self.world.post(
            delay,
            a.RankDied(rank=rank, incarnation=process.incarnation, reason="killed", lost_tokens=lost, command=command),
        )

    def restart(self, c: a.Restart, delay: float, fault: str | None) -> None:
        """A new process comes up on the rank's devices."""
        world = self.world
        old = self.by_rank.get(c.rank)
        world.truth(old is None, "R34", f"rank {c.rank} is started while incarnation {old and old.incarnation} lives")
        for rank, other in self.by_rank.items():
            shares = set(world.layout.ranks[rank]) & set(world.layout.ranks[c.rank])
            world.truth(not shares or other.holds == "nothing", "R2", f"rank {c.rank} is started on devices of {rank}")
        if world.shared(c.rank):
            world.truth(world.trainer.holds != "all", "R2", f"rank {c.rank} is started while the trainer trains there")
        process = self.by_rank[c.rank] = Process(c.rank, c.incarnation)
        if world.sick(c.rank) == "boots" or fault == "hang":
            process.hung = True
            return
        kv = 0 if fault == "lie" else world.scenario.kv_capacity
        event = a.RankBooted(rank=c.rank, incarnation=c.incarnation, kv_capacity=kv, command=c.id)
        self.say(process, delay, event, fault)

    def say(self, process: Process, delay: float, event: a.Event, fault: str | None) -> None:
        """An answer that comes unless the process ends or hangs before; one in four gets out just before it ends."""
        leaks = Dice(self.world.scenario.seed, "leak", self.world.posted).chance(0.25)

        def made() -> a.Event | None:
            return event if (process.alive and not process.hung) or (leaks and not process.hung) else None

        self.world.answer(delay, made, fault)

    def obey(self, c: a.Command, delay: float, fault: str | None) -> None:
        """Carry out any other command to a rank that lives."""
        process = self.answers(c.rank)  # type: ignore[attr-defined]
        if process is None:
            return
        if fault == "hang":
            process.hung = True
            return
        match c:
            case a.Dispatch():
                self._generate(process, c, delay, fault)
            case a.Abort():
                self._abort(process, c, delay, fault)
            case a.Drain():
                self._drain(process, c, delay, fault)
            case a.Release():
                self._release(process, c, delay, fault)
            case a.LoadWeights():
                self._load(process, c, delay, fault)
            case a.WakeKV() | a.ResetCache():
                self._wake(process, c, delay, fault)
            case _:
                raise AssertionError(f"the world does not know {type(c).__name__}")

    def _generate(self, process: Process, c: a.Dispatch, delay: float, fault: str | None) -> None:
        world, now = self.world, self.world.now
        if world.sick(c.rank) == "fails":
            world.answer(0.01, lambda: a.Failed(attempt=c.attempt, error="sick"), None)
            return
        world.truth(process.holds == "all", "R7", f"attempt {c.attempt} is sent to rank {c.rank} without memory")
        dice = Dice(world.scenario.seed, "turn", c.attempt.trajectory, c.attempt.turn)
        wanted = 1 + dice.below(30) - c.carried
        total = max(1, min(wanted, c.max_new_tokens))
        request = Request(now, now + delay + 0.02, total, wanted > c.max_new_tokens)
        process.requests[c.attempt] = request
        self.say(process, 0.001, a.SubmitAcked(attempt=c.attempt), None)
        if total > 2:
            for share in (0.4, 0.7):
                at = share * (request.ends - now)
                self._report(process, c.attempt, at)

        def done() -> a.Event | None:
            if process.hung or process.requests.pop(c.attempt, None) is None:
                return None
            world.ended[c.attempt] = total
            return a.Finished(attempt=c.attempt, total=total, reason="length" if request.full else "stop")

        world.answer(request.ends - now, done, fault)

    def _report(self, process: Process, attempt: a.AttemptId, at: float) -> None:
        def progress() -> a.Event | None:
            request = process.requests.get(attempt)
            if request is None or process.hung or not process.alive:
                return None
            return a.Progress(attempt=attempt, total=request.so_far(self.world.now))

        self.world.answer(at, progress, None)

    def _abort(self, process: Process, c: a.Abort, delay: float, fault: str | None) -> None:
        request = process.requests.pop(c.attempt, None)
        total = self.world.ended.get(c.attempt, 0) if request is None else request.so_far(self.world.now)
        self.say(process, min(delay, 0.05), a.Aborted(attempt=c.attempt, total=total, command=c.id), fault)

    def _drain(self, process: Process, c: a.Drain, delay: float, fault: str | None) -> None:
        now, dice = self.world.now, Dice(self.world.scenario.seed, "drain", c.id)
        for attempt, request in process.requests.items():
            self.world.ended[attempt] = request.so_far(now)
            self.say(process, dice.real() * 0.1, a.Aborted(attempt=attempt, total=request.so_far(now)), None)
        left = 3 if fault == "lie" else 0
        process.requests.clear()
        stats = a.RankStats(
            rank=c.rank, incarnation=process.incarnation, running=left, waiting=0, kv_tokens=0, command=c.id
        )
        self.say(process, dice.real() * 0.1 + (delay if fault == "late" else 0.0), stats, fault)

    def _release(self, process: Process, c: a.Release, delay: float, fault: str | None) -> None:
        self.world.truth(not process.requests, "R7", f"rank {c.rank} is released with {len(process.requests)} requests")
        process.holds = "nothing"
        holder, epoch, size = f"rank:{c.rank}", c.epoch, 1000
        if fault == "lie":
            holder, epoch, size = Dice(self.world.scenario.seed, "lie", c.id).choose(
                ((holder, epoch, 0), (f"rank:{c.rank + 1}", epoch, 1000), (holder, epoch + 1, 1000))
            )
        self.say(process, delay, a.MemoryReleased(holder=holder, epoch=epoch, bytes=size, command=c.id), fault)

    def _load(self, process: Process, c: a.LoadWeights, delay: float, fault: str | None) -> None:
        world = self.world
        if world.shared(c.rank):
            world.truth(world.trainer.holds != "all", "R22", f"rank {c.rank} loads while the trainer trains there")
        world.truth(not process.requests, "R20", f"rank {c.rank} loads under {len(process.requests)} requests")
        if process.holds == "nothing":
            process.holds = "weights"

        def loaded() -> a.Event | None:
            if process.hung or not process.alive:
                return None
            trouble = world.trainer.trouble(c.epoch, c.rank)
            if trouble == "silent":
                return None
            if trouble is not None:
                return a.CommandFailed(error="the broadcast broke", culprits=world.trainer.named(c.epoch), command=c.id)
            world.trainer.broadcasts[c.epoch].served.add(c.rank)
            digest = "rotten" if fault == "lie" else world.trainer.digest_of(c.version)
            return a.WeightsLoaded(
                rank=c.rank, epoch=c.epoch, version=c.version, digest=digest, seconds=delay, command=c.id
            )

        world.answer(delay, loaded, fault)

    def _wake(self, process: Process, c: a.WakeKV | a.ResetCache, delay: float, fault: str | None) -> None:
        if isinstance(c, a.WakeKV) and self.world.shared(c.rank):
            holds = self.world.trainer.holds
            self.world.truth(holds == "nothing", "R22", f"rank {c.rank} takes its KV while the trainer has {holds}")
        process.holds = "all"
        gap = float("nan") if fault == "lie" else 0.0
        self.say(process, delay, a.KVReady(rank=c.rank, epoch=c.epoch, canary_gap=gap, command=c.id), fault)

    def fence(self, c: a.Fence, delay: float, fault: str | None) -> None:
        """The process is killed; its end is confirmed unless it is one that nobody can confirm."""
        process = self.by_rank.get(c.rank)
        gone = a.RankDied(rank=c.rank, incarnation=c.incarnation, reason="fenced", command=c.id)
        if process is None or process.incarnation != c.incarnation:
            self.world.answer(delay, lambda: gone, fault)
            return
        if fault in ("die", "hang") or self.world.sick(c.rank) == "immortal":
            process.hung = True
            return

        def killed() -> a.Event:
            process.alive = False
            if self.by_rank.get(c.rank) is process:
                del self.by_rank[c.rank]
            return gone

        self.world.answer(delay, killed, fault)
