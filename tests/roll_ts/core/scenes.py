"""Hand-written histories: a scheduler that is driven event by event, with answers for what is not the point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roll_ts.core import alphabet as a
from roll_ts.core.policies import make_policy
from roll_ts.core.policies.base import Policy
from roll_ts.core.scheduler import Scheduler
from roll_ts.core.settings import Layout, Settings

Answer = Callable[[Any], a.Event | None]


class Scene:
    """`answers[kind]` makes the answer to a command, None for silence; what it does not name is answered well.

    `asked` are the commands that nobody has answered. Every event goes through `tell`; `play` answers until there is
    nothing left to answer, `wait` lets the time of the next deadline come.
    """

    def __init__(
        self, layout: Layout, policy: str | Policy = "time_sharing", answers: dict[type, Answer] | None = None, **fields
    ):
        given: dict = dict(
            layout=layout,
            groups_per_batch=2,
            group_size=2,
            async_ratio=1.0,
            max_turns=3,
            max_reply_tokens=10,
            max_context_tokens=1000,
            max_running_per_rank=64,
        )
        self.settings = Settings(**{**given, **fields})
        made = make_policy(policy) if isinstance(policy, str) else policy
        self.scheduler = Scheduler(self.settings, made)
        self.answers: dict[type, Answer] = dict(answers or {})
        self.now = 0.0
        self.said: list[a.Command] = []
        self.asked: list[a.Command] = []
        self.finish: a.Finish | None = None
        self.lives: dict[int, int] = {}
        self.version = 0

    def tell(self, event: a.Event, after: float = 0.0) -> list[a.Command]:
        """Hand an event over, `after` seconds later; returns what was said."""
        self.now += after
        said = self.scheduler.handle(event, self.now)
        self.said += said
        self.asked += said
        for command in said:
            if isinstance(command, a.Finish):
                self.finish = command
            if isinstance(command, a.Restart):
                self.lives[command.rank] = command.incarnation
        return said

    def of(self, kind: type) -> list:
        """All commands of a kind, in order."""
        return [command for command in self.said if isinstance(command, kind)]

    def take(self, kind: type, **fields: object) -> Any:
        """The first unanswered command of a kind with these fields; it is for the test to answer."""
        for command in self.asked:
            if isinstance(command, kind) and all(getattr(command, key) == value for key, value in fields.items()):
                self.asked.remove(command)
                return command
        raise AssertionError(f"nobody was asked {kind.__name__} {fields}; asked: {self.asked}")

    def play(self, until: Callable[[Scene], bool] = lambda scene: False, limit: int = 20_000) -> Scene:
        """Answer what is asked, the oldest first, until nothing is left or `until` is true."""
        for _ in range(limit):
            if self.finish is not None or until(self) or not self.asked:
                return self
            event = self.answer(self.asked.pop(0))
            if event is not None:
                self.tell(event, 0.001)
        raise AssertionError("the scene does not end")

    def wait(self) -> list[a.Command]:
        """Let the time come for which the last timer was set."""
        timer = self.of(a.SetTimer)[-1]
        self.now = max(self.now, timer.at)
        return self.tell(a.TimerFired())

    def run(self, waits: int = 400) -> Scene:
        """Play, and whenever nothing is left to answer, let the next deadline come."""
        for _ in range(waits):
            self.play()
            if self.finish is not None:
                return self
            self.wait()
        raise AssertionError("the run does not end")

    def answer(self, command: a.Command) -> a.Event | None:
        """What the world says to the command."""
        own = self.answers.get(type(command))
        if own is not None:
            return own(command)
        return self.well(command)

    def well(self, command: Any) -> a.Event | None:
        """The good answer."""
        c, life = command, self.lives.get(getattr(command, "rank", -1), 0)
        match c:
            case a.StartTrainer():
                self.version = int(c.resume_from or 0)
                return a.TrainerReady(
                    command=c.id, incarnation=c.incarnation, version=self.version, digest=f"v{self.version}"
                )
            case a.FenceTrainer():
                return a.TrainerDied(command=c.id, incarnation=c.incarnation, reason=c.reason)
            case a.Restart():
                return a.RankBooted(command=c.id, rank=c.rank, incarnation=c.incarnation, kv_capacity=100_000)
            case a.Fence():
                return a.RankDied(command=c.id, rank=c.rank, incarnation=c.incarnation, reason=c.reason)
            case a.FormGroup():
                return a.GroupFormed(command=c.id, epoch=c.epoch)
            case a.Sync():
                return a.WeightsSent(command=c.id, epoch=c.epoch, version=c.version)
            case a.LoadWeights():
                return a.WeightsLoaded(
                    command=c.id, rank=c.rank, epoch=c.epoch, version=c.version, digest=f"v{c.version}", seconds=0.1
                )
            case a.WakeKV() | a.ResetCache():
                return a.KVReady(command=c.id, rank=c.rank, epoch=c.epoch, canary_gap=0.0)
            case a.Drain():
                for attempt in list(self.scheduler.rollouts.trajectories.by_rank[c.rank]):
                    self.tell(a.Aborted(attempt=attempt, total=0))
                return a.RankStats(command=c.id, rank=c.rank, incarnation=life, running=0, waiting=0, kv_tokens=0)
            case a.Release():
                return a.MemoryReleased(command=c.id, holder=f"rank:{c.rank}", epoch=c.epoch, bytes=1)
            case a.ReleaseTrainer():
                return a.MemoryReleased(command=c.id, holder="trainer", epoch=c.epoch, bytes=1)
            case a.Train():
                self.version = c.version + 1
                return a.TrainingFinished(
                    command=c.id, epoch=c.epoch, version=self.version, digest=f"v{self.version}", seconds=1.0
                )
            case a.Checkpoint():
                return a.CheckpointSaved(command=c.id, version=c.version, path=str(c.version))
            case a.StepEnvironment():
                return a.EnvironmentReplied(
                    command=c.id, trajectory=c.trajectory, turn=c.turn, context_tokens=20 + 20 * c.turn,
                    done=c.turn >= 1, reward=float(c.member), success=c.turn >= 1,
                )  # fmt: skip
            case a.Dispatch():
                return a.Finished(attempt=c.attempt, total=5, reason="stop")
            case a.Abort():
                return a.Aborted(attempt=c.attempt, total=0)
        return None

    def state(self, rank: int) -> str:
        """The rank's state in the table."""
        return str(self.scheduler.ranks.get(rank).state)

    def begin(self, until: int = 1) -> Scene:
        """Ask for the run."""
        self.tell(a.TrajectoriesWanted(until=until))
        return self


def shared(ranks: int, lent: int) -> Layout:
    """`ranks` ranks with a device each, the first `lent` of them on the trainer's devices."""
    return Layout(tuple((rank,) for rank in range(ranks)), tuple(range(lent)))


def apart(ranks: int) -> Layout:
    """`ranks` ranks with a device each, and a trainer with one of its own."""
    return Layout(tuple((rank + 1,) for rank in range(ranks)), (0,))
