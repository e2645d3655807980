"""A small random world: answers every command by its contract, late, in any order, or with a fault."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from roll_ts.core import alphabet as a
from roll_ts.core.policies import make_policy
from roll_ts.core.scheduler import Scheduler
from tests.roll_ts.core.layouts import settings_for


@dataclass
class Request:
    """What the world knows of one open attempt."""

    rank: int
    total: int
    limit: int
    done: int = 0
    rate: float = 20.0


@dataclass
class World:
    """`faults(command, random) -> "drop" | "fail" | "die" | None` is asked about every command but `Finish`."""

    policy: str = "time_sharing"
    seed: int = 0
    until: int = 4
    first_version: int = 0
    changes: dict = field(default_factory=dict)
    faults: Callable[[a.Command, random.Random], str | None] = lambda command, rng: None
    after: Callable[[World], None] = lambda world: None

    def __post_init__(self) -> None:
        self.settings = settings_for(self.policy, **self.changes)
        self.scheduler = Scheduler(self.settings, make_policy(self.policy))
        self.random = random.Random(self.seed)
        self.now = 0.0
        self.heap: list = []
        self.count = 0
        self.journal: list[tuple[float, a.Event, list[a.Command]]] = []
        self.requests: dict[a.AttemptId, Request] = {}
        self.reported: dict[a.AttemptId, int] = {}
        self.alive: dict[int, int] = {}
        self.trainer: int | None = None
        self.version = self.first_version
        self.timer: float | None = None
        self.finish: a.Finish | None = None

    def post(self, delay: float, event: a.Event, boot: int | None = None) -> None:
        heapq.heappush(self.heap, (self.now + delay, self.count, event, boot))
        self.count += 1

    def run(self, limit: int = 60_000) -> World:
        self.post(0.0, a.TrajectoriesWanted(until=self.until))
        while self.heap and self.finish is None:
            self.now, _, event, boot = heapq.heappop(self.heap)
            if isinstance(boot, tuple):
                if boot != (self.trainer,):
                    continue
            elif boot is not None and self.alive.get(event.rank) != boot:
                continue
            if isinstance(event, a.TimerFired) and self.timer != self.now:
                continue
            if isinstance(event, a.Progress | a.Finished | a.Aborted | a.Failed) and not self.still_true(event):
                continue
            if isinstance(event, a.Aborted):
                event = a.Aborted(attempt=event.attempt, total=self.reported.get(event.attempt, 0))
            commands = self.scheduler.handle(event, self.now)
            self.journal.append((self.now, event, commands))
            for command in commands:
                self.obey(command)
            self.after(self)
            assert len(self.journal) < limit, "the run does not end"
        assert self.finish is not None, "the world is silent and the run has not ended"
        return self

    def still_true(self, event: a.Event) -> bool:
        request = self.requests.get(event.attempt)
        if request is None:
            return False
        if isinstance(event, a.Progress):
            self.reported[event.attempt] = event.total
        else:
            del self.requests[event.attempt]
        return True

    def die(self, rank: int, incarnation: int, delay: float = 0.05) -> None:
        self.alive.pop(rank, None)
        lost = [key for key, request in self.requests.items() if request.rank == rank]
        for key in lost:
            del self.requests[key]
        self.post(delay, a.RankDied(rank=rank, incarnation=incarnation, reason="killed", lost_tokens=len(lost)))

    def obey(self, command: a.Command) -> None:
        fault = None if isinstance(command, a.Finish | a.Fence | a.FenceTrainer) else self.faults(command, self.random)
        if fault == "drop":
            return
        if fault == "fail":
            if isinstance(command, a.Dispatch):
                self.post(0.01, a.Failed(attempt=command.attempt, error="injected"))
                self.requests[command.attempt] = Request(command.rank, 1, 1)
            else:
                self.post(0.01, a.CommandFailed(command=command.id, error="injected"))
            return
        if fault == "die" and hasattr(command, "rank"):
            if command.rank in self.alive or isinstance(command, a.Restart):
                self.die(command.rank, self.alive.get(command.rank, getattr(command, "incarnation", 0)))
            return
        delay = self.random.random() * self.random.choice((0.01, 0.2, 1.0))
        answer = getattr(self, f"do_{type(command).__name__}", None)
        if answer is not None:
            answer(command, delay)

    def do_Finish(self, c: a.Finish, delay: float) -> None:
        self.finish = c

    def do_SetTimer(self, c: a.SetTimer, delay: float) -> None:
        self.timer = max(c.at, self.now)
        heapq.heappush(self.heap, (self.timer, self.count, a.TimerFired(), None))
        self.count += 1

    def do_Restart(self, c: a.Restart, delay: float) -> None:
        self.alive[c.rank] = c.incarnation
        booted = a.RankBooted(rank=c.rank, incarnation=c.incarnation, kv_capacity=2000, command=c.id)
        self.post(delay, booted, c.incarnation)

    def do_Fence(self, c: a.Fence, delay: float) -> None:
        self.die(c.rank, c.incarnation, delay)

    def do_StartTrainer(self, c: a.StartTrainer, delay: float) -> None:
        self.trainer = c.incarnation
        if c.resume_from is not None:
            self.version = int(c.resume_from.removeprefix("v"))
        elif c.incarnation > 1:
            self.version = self.first_version
        ready = a.TrainerReady(incarnation=c.incarnation, version=self.version, digest=f"v{self.version}", command=c.id)
        self.answer(delay, ready)

    def do_FenceTrainer(self, c: a.FenceTrainer, delay: float) -> None:
        self.trainer = None
        self.post(delay, a.TrainerDied(incarnation=c.incarnation, reason=c.reason, command=c.id))

    def answer(self, delay: float, event: a.Event) -> None:
        """Post an answer of the trainer's present process; it dies with the process."""
        incarnation = self.trainer
        if incarnation is not None:
            heapq.heappush(self.heap, (self.now + delay, self.count, event, (incarnation,)))
            self.count += 1

    def do_StepEnvironment(self, c: a.StepEnvironment, delay: float) -> None:
        rng = random.Random(f"{c.kind}{c.group}{c.member}")
        turns = rng.choice((1, 1, 2, 3, 9))
        done = 0 < c.turn >= turns
        self.post(
            delay,
            a.EnvironmentReplied(
                trajectory=c.trajectory,
                turn=c.turn,
                context_tokens=20 + 30 * c.turn,
                done=done,
                reward=float(done),
                success=done,
                command=c.id,
            ),
        )

    def do_Dispatch(self, c: a.Dispatch, delay: float) -> None:
        if c.rank not in self.alive:
            return
        wanted = random.Random(f"{c.attempt.trajectory}.{c.attempt.turn}").randint(1, 30) - c.carried
        request = Request(c.rank, max(1, min(wanted, c.max_new_tokens)), c.max_new_tokens)
        self.requests[c.attempt] = request
        self.post(0.001, a.SubmitAcked(attempt=c.attempt))
        half = request.total // 2
        if half:
            self.post(delay / 2 + 0.01, a.Progress(attempt=c.attempt, total=half))
        reason = "length" if request.total == c.max_new_tokens else "stop"
        self.post(delay + 0.02, a.Finished(attempt=c.attempt, total=request.total, reason=reason))

    def do_Abort(self, c: a.Abort, delay: float) -> None:
        self.stop(c.attempt, min(delay, 0.05))

    def stop(self, attempt: a.AttemptId, delay: float) -> None:
        """The attempt stops with what it has reported by then."""
        self.post(delay, a.Aborted(attempt=attempt, total=0))

    def do_Drain(self, c: a.Drain, delay: float) -> None:
        for key, request in list(self.requests.items()):
            if request.rank == c.rank:
                self.stop(key, self.random.random() * 0.05)
        incarnation = self.alive.get(c.rank, -1)
        stats = a.RankStats(rank=c.rank, incarnation=incarnation, running=0, waiting=0, kv_tokens=0, command=c.id)
        self.post(self.random.random() * 0.05, stats, incarnation)

    def do_Release(self, c: a.Release, delay: float) -> None:
        held = [key for key, request in self.requests.items() if request.rank == c.rank]
        assert not held, "released while requests run"
        self.post(
            delay,
            a.MemoryReleased(holder=f"rank:{c.rank}", epoch=c.epoch, bytes=1, command=c.id),
        )

    def do_FormGroup(self, c: a.FormGroup, delay: float) -> None:
        self.answer(delay, a.GroupFormed(epoch=c.epoch, command=c.id))

    def do_Sync(self, c: a.Sync, delay: float) -> None:
        self.answer(delay, a.WeightsSent(epoch=c.epoch, version=c.version, command=c.id))

    def do_LoadWeights(self, c: a.LoadWeights, delay: float) -> None:
        event = a.WeightsLoaded(
            rank=c.rank, epoch=c.epoch, version=c.version, digest=f"v{c.version}", seconds=delay, command=c.id
        )
        self.post(delay, event, self.alive.get(c.rank, -1))

    def do_WakeKV(self, c: a.WakeKV | a.ResetCache, delay: float) -> None:
        self.post(
            delay, a.KVReady(rank=c.rank, epoch=c.epoch, canary_gap=0.0, command=c.id), self.alive.get(c.rank, -1)
        )

    do_ResetCache = do_WakeKV

    def do_Train(self, c: a.Train, delay: float) -> None:
        self.version = c.version + 1
        done = a.TrainingFinished(
            epoch=c.epoch, version=self.version, digest=f"v{self.version}", seconds=delay, command=c.id
        )
        self.answer(delay + 1.0, done)

    def do_ReleaseTrainer(self, c: a.ReleaseTrainer, delay: float) -> None:
        self.answer(delay, a.MemoryReleased(holder="trainer", epoch=c.epoch, bytes=1, command=c.id))

    def do_Checkpoint(self, c: a.Checkpoint, delay: float) -> None:
        self.answer(delay, a.CheckpointSaved(version=c.version, path=f"v{c.version}", command=c.id))

    def said(self, kind: type) -> list:
        """All commands of a type, in order."""
        return [command for _, _, commands in self.journal for command in commands if isinstance(command, kind)]
