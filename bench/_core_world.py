"""A fast stand-in for engines, environments and trainer: answers the core's commands with the events of a healthy run.

It knows the alphabet and nothing of the core. What it sends is recorded, so that the core alone can be timed on it.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from roll_ts.core import alphabet as a

PROGRESS_SECONDS = 2.0


@dataclass
class Request:
    """One request on a rank: its attempt and the tokens not reported yet."""

    attempt: a.AttemptId
    rank: int
    left: int
    done: int = 0


@dataclass
class StandIn:
    """`turns`: of an episode at most, drawn around half of it, or of each with `all_long`; episodes of the first
    `short_groups` groups have four, and environments then answer at once. Times in virtual seconds."""

    handle: Callable[[a.Event, float], list[a.Command]]
    turns: int = 12
    seed: int = 0
    kv_capacity: int = 2_000_000
    rate: float = 50.0
    all_long: bool = False
    short_groups: int = 0
    now: float = 0.0
    record: list[tuple[a.Event, float]] = field(default_factory=list)
    finished: a.Finish | None = None

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._heap: list[tuple[float, int, a.Event | Request]] = []
        self._count = 0
        self._requests: dict[a.AttemptId, Request] = {}
        self._on: dict[int, dict[a.AttemptId, Request]] = {}
        self._episodes: dict[int, int] = {}
        self._contexts: dict[int, int] = {}
        self._lives: dict[int, int] = {}
        self._timer: float | None = None

    def post(self, delay: float, what: a.Event | Request) -> None:
        """Send an event, or go on with a request, in `delay` seconds."""
        self._count += 1
        heapq.heappush(self._heap, (self.now + delay, self._count, what))

    def run(
        self, events: int, until: Callable[[a.Event, list[a.Command]], bool] = lambda event, commands: False
    ) -> None:
        """Deliver `events` more events, or stop when `until` is true of one and the commands it led to."""
        last = len(self.record) + events
        while self._heap and self.finished is None and len(self.record) < last:
            self.now, _, what = heapq.heappop(self._heap)
            event = self._serve(what) if isinstance(what, Request) else what
            if event is None or (isinstance(event, a.TimerFired) and self._timer != self.now):
                continue
            self.record.append((event, self.now))
            commands = self.handle(event, self.now)
            for command in commands:
                answer = getattr(self, f"_do_{type(command).__name__}", None)
                if answer is not None:
                    answer(command)
            if until(event, commands):
                return

    def _serve(self, request: Request) -> a.Event | None:
        if self._requests.get(request.attempt) is not request:
            return None
        step = min(request.left, int(self.rate * PROGRESS_SECONDS))
        request.left -= step
        request.done += step
        if request.left:
            self.post(PROGRESS_SECONDS, request)
            return a.Progress(attempt=request.attempt, total=request.done)
        self._end(request)
        self._contexts[request.attempt.trajectory] += step
        return a.Finished(attempt=request.attempt, total=request.done, reason="stop")

    def _end(self, request: Request) -> None:
        del self._requests[request.attempt]
        del self._on[request.rank][request.attempt]

    def _do_Finish(self, c: a.Finish) -> None:
        self.finished = c

    def _do_SetTimer(self, c: a.SetTimer) -> None:
        self._timer = max(c.at, self.now)
        self.post(self._timer - self.now, a.TimerFired())

    def _do_Restart(self, c: a.Restart) -> None:
        self._on[c.rank] = {}
        self._lives[c.rank] = c.incarnation
        booted = a.RankBooted(command=c.id, rank=c.rank, incarnation=c.incarnation, kv_capacity=self.kv_capacity)
        self.post(1.0, booted)

    def _do_StartTrainer(self, c: a.StartTrainer) -> None:
        self.post(0.5, a.TrainerReady(command=c.id, incarnation=c.incarnation, version=0, digest="v0"))

    def _do_StepEnvironment(self, c: a.StepEnvironment) -> None:
        draw = self._random
        if c.turn == 0:
            drawn = max(1, min(self.turns, int(draw.expovariate(2.0 / self.turns))))
            self._episodes[c.trajectory] = 4 if c.group < self.short_groups else self.turns if self.all_long else drawn
            self._contexts[c.trajectory] = 1_500
        else:
            self._contexts[c.trajectory] += 200
        done = c.turn > 0 and c.turn >= self._episodes[c.trajectory]
        event = a.EnvironmentReplied(
            command=c.id,
            trajectory=c.trajectory,
            turn=c.turn,
            context_tokens=self._contexts[c.trajectory],
            done=done,
            reward=draw.random() if done else 0.0,
            success=done,
        )
        self.post(draw.expovariate(20.0 if self.short_groups else 0.5), event)

    def _do_Dispatch(self, c: a.Dispatch) -> None:
        wanted = min(c.max_new_tokens, max(1, int(self._random.expovariate(1 / 280))))
        request = Request(c.attempt, c.rank, wanted)
        self._requests[c.attempt] = self._on[c.rank][c.attempt] = request
        self.post(0.005, a.SubmitAcked(command=c.id, attempt=c.attempt))
        self.post(0.01 + min(PROGRESS_SECONDS, wanted / self.rate), request)

    def _stop(self, request: Request) -> None:
        self._end(request)
        self.post(0.01, a.Aborted(attempt=request.attempt, total=request.done))

    def _do_Abort(self, c: a.Abort) -> None:
        if c.attempt in self._requests:
            self._stop(self._requests[c.attempt])

    def _do_Drain(self, c: a.Drain) -> None:
        for request in list(self._on[c.rank].values()):
            self._stop(request)
        self.post(0.02, self._stats(c))

    def _stats(self, c: a.Drain) -> a.RankStats:
        life = self._lives[c.rank]
        return a.RankStats(command=c.id, rank=c.rank, incarnation=life, running=0, waiting=0, kv_tokens=0)

    def _do_Release(self, c: a.Release) -> None:
        event = a.MemoryReleased(command=c.id, holder=f"rank:{c.rank}", epoch=c.epoch, bytes=66_000_000_000)
        self.post(0.3, event)

    def _do_FormGroup(self, c: a.FormGroup) -> None:
        self.post(0.3, a.GroupFormed(command=c.id, epoch=c.epoch))

    def _do_Sync(self, c: a.Sync) -> None:
        self.post(1.0, a.WeightsSent(command=c.id, epoch=c.epoch, version=c.version))

    def _do_LoadWeights(self, c: a.LoadWeights) -> None:
        event = a.WeightsLoaded(
            command=c.id, rank=c.rank, epoch=c.epoch, version=c.version, digest=f"v{c.version}", seconds=1.0
        )
        self.post(1.0, event)

    def _do_WakeKV(self, c: a.WakeKV | a.ResetCache) -> None:
        self.post(0.5, a.KVReady(command=c.id, rank=c.rank, epoch=c.epoch, canary_gap=0.0))

    _do_ResetCache = _do_WakeKV

    def _do_Train(self, c: a.Train) -> None:
        event = a.TrainingFinished(
            command=c.id, epoch=c.epoch, version=c.version + 1, digest=f"v{c.version + 1}", seconds=30.0
        )
        self.post(30.0, event)

    def _do_ReleaseTrainer(self, c: a.ReleaseTrainer) -> None:
        self.post(1.0, a.MemoryReleased(command=c.id, holder="trainer", epoch=c.epoch, bytes=70_000_000_000))

    def _do_Checkpoint(self, c: a.Checkpoint) -> None:
        self.post(5.0, a.CheckpointSaved(command=c.id, version=c.version, path=f"v{c.version}"))
