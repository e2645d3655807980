"""A run written by hand: two ranks, the trainer shares device 0; every figure of it can be checked with a pencil.

0 s   both ranks become ACTIVE
1 s   trajectories 0 and 1 (group 0) are dispatched to rank 0, trajectory 2 (group 1) to rank 1
3 s   trajectory 1 finishes its turn with 40 tokens and is scored
4 s   rank 0 is drained: trajectory 0 has 10 tokens reported, 5 more come with the abort
5 s   rank 0 is lent; trajectory 0 goes on on rank 1 with 15 carried, finishes with 25 more at 7 s
6-9 s training of version 0 (group 9, from before)
9-10 s sync; both ranks are ACTIVE at 10 s
12 s  the run finishes
"""

from __future__ import annotations

from typing import Any

from roll_ts.core import alphabet as a
from roll_ts.core.settings import Layout, Settings
from roll_ts.observe.journal import Entry, Header, Journal

SETTINGS = Settings(
    layout=Layout(((0,), (1,)), (0,)),
    groups_per_batch=1,
    group_size=2,
    async_ratio=1.0,
    max_turns=4,
    max_reply_tokens=64,
    max_context_tokens=256,
    max_running_per_rank=8,
)


class Script:
    """Collects entries; ids of commands count up by themselves."""

    def __init__(self, settings: Settings = SETTINGS, policy: str = "time_sharing") -> None:
        self.header = Header(settings, policy, seed=7, driver="sim", versions={"roll-ts": "0"})
        self.entries: list[Entry] = []
        self._next = 0

    def say(self, cls: type[a.Command], /, **fields: Any) -> Any:
        """A command with the next id."""
        command = cls(id=self._next, **fields)
        self._next += 1
        return command

    def at(self, t: float, event: a.Event, *commands: a.Command) -> None:
        """One handled event."""
        self.entries.append(Entry(t, event, commands))

    def journal(self, torn: str = "") -> Journal:
        """What was written."""
        return Journal(self.header, tuple(self.entries), torn)

    def move(self, rank: int, old: str, new: str) -> a.Command:
        """A change of a rank's state."""
        return self.say(a.RankMoved, rank=rank, old=old, new=new, epoch=1)

    def dispatch(self, trajectory: int, attempt: int, rank: int, carried: int = 0, turn: int = 1) -> a.Command:
        """A request with a context of 20 tokens."""
        return self.say(
            a.Dispatch, attempt=a.AttemptId(trajectory, turn, attempt), rank=rank, context_tokens=20, carried=carried,
            max_new_tokens=64, greedy=False, version=0,
        )  # fmt: skip

    def start(self, trajectory: int, group: int, member: int, kind: str = "train") -> a.Command:
        """The reset of a trajectory's environment."""
        return self.say(a.StepEnvironment, trajectory=trajectory, turn=0, seed=1, kind=kind, group=group, member=member)

    def settle(
        self, trajectory: int, group: int, member: int, tokens: int, reward: float = 1.0, outcome: str = "scored",
        kind: str = "train", oldest: int = 0,
    ) -> a.Command:  # fmt: skip
        """A trajectory's outcome."""
        return self.say(
            a.Settled, trajectory=trajectory, kind=kind, group=group, member=member, outcome=outcome, reason="done",
            reward=reward, success=reward > 0, turns=1, tokens=tokens, oldest_version=oldest, staleness=0,
        )  # fmt: skip


def tick() -> a.Event:
    """An event that means nothing."""
    return a.TimerFired()


def moved_turn() -> Script:
    """The run of the module's docstring, without its end at 12 s."""
    s = Script()
    s.at(
        0.0,
        tick(),
        s.move(0, "LOADING", "ACTIVE"),
        s.move(1, "LOADING", "ACTIVE"),
        *[s.start(t, group, member) for t, (group, member) in enumerate([(0, 0), (0, 1), (1, 0), (9, 0), (9, 1)])],
        s.settle(3, 9, 0, tokens=30, reward=1.0),
        s.settle(4, 9, 1, tokens=50, reward=0.0),
    )
    s.at(1.0, tick(), s.dispatch(0, 1, rank=0), s.dispatch(1, 1, rank=0), s.dispatch(2, 1, rank=1))
    s.at(2.0, a.Progress(attempt=a.AttemptId(0, 1, 1), total=10))
    s.at(3.0, a.Finished(attempt=a.AttemptId(1, 1, 1), total=40, reason="stop"), s.settle(1, 0, 1, tokens=40))
    drain = s.say(a.Drain, rank=0, epoch=1, due=34.0, awaits="rank 0")
    s.at(4.0, tick(), s.move(0, "ACTIVE", "DRAINING"), drain)
    s.at(4.5, a.Aborted(attempt=a.AttemptId(0, 1, 1), total=15))
    release = s.say(a.Release, rank=0, epoch=1, recover_from="trainer", due=34.0, awaits="rank 0")
    stats = a.RankStats(command=drain.id, rank=0, incarnation=1, running=0, waiting=0, kv_tokens=0)
    s.at(4.5, stats, s.move(0, "DRAINING", "RELEASING"), release)
    released = a.MemoryReleased(command=release.id, holder="rank:0", epoch=1, bytes=1)
    s.at(5.0, released, s.move(0, "RELEASING", "LENT"), s.dispatch(0, 2, rank=1, carried=15))
    batch = (a.Assignment(9, 0, 3), a.Assignment(9, 1, 4))
    train = s.say(a.Train, epoch=1, version=0, batch=batch, due=600.0, awaits="trainer")
    s.at(6.0, tick(), train)
    s.at(7.0, a.Finished(attempt=a.AttemptId(0, 1, 2), total=25, reason="stop"), s.settle(0, 0, 0, tokens=40))
    form = s.say(a.FormGroup, epoch=2, version=1, members=(0, 1), due=60.0, awaits="all")
    trained = a.TrainingFinished(command=train.id, epoch=1, version=1, digest="d", seconds=3.0)
    s.at(9.0, trained, s.move(0, "LENT", "LOADING"), form)
    wake = s.say(a.WakeKV, rank=0, epoch=2, version=1, due=60.0, awaits="rank 0")
    s.at(9.5, a.GroupFormed(command=form.id, epoch=2), wake)
    s.at(10.0, a.KVReady(command=wake.id, rank=0, epoch=2, canary_gap=0.0), s.move(0, "LOADING", "ACTIVE"))
    s.at(11.0, a.Finished(attempt=a.AttemptId(2, 1, 1), total=60, reason="stop"), s.settle(2, 1, 0, tokens=60))
    return s


def finished_run() -> Journal:
    """The run of the module's docstring."""
    s = moved_turn()
    s.at(12.0, tick(), s.say(a.Finish, ok=True, reason="reached version 1"))
    return s.journal()
