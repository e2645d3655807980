"""Drives the scheduler core on live parties: events in from one queue, commands out through one table.

It runs in the driver process, not in an actor: Ctrl-C reaches this process first, Ray ends every actor when it goes,
and an event needs no hop to reach the scheduler. One asyncio loop owns the scheduler, the journal and the sample store,
so nothing here needs a lock.

Invariants: every event passes `_take`, which journals it with the commands it caused; tokens are in the sample store
before the scheduler counts them; what a party answers or raises becomes an event, what this code does wrong ends the
run.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from roll_ts.config import RunConfig
from roll_ts.core import alphabet as a
from roll_ts.core.scheduler import Scheduler
from roll_ts.observe.journal import JournalWriter
from roll_ts.runtime._handlers import obey
from roll_ts.runtime._parties import EngineParty, TrainerParty
from roll_ts.runtime.environment_worker import Reply
from roll_ts.runtime.environments import EnvironmentParty
from roll_ts.runtime.sample_store import SampleStore

Watcher = Callable[[float, a.Event, Sequence[a.Command]], None]


class Controller:
    """One run. `watchers` are told of every event and its commands, after they are in the journal."""

    def __init__(
        self,
        config: RunConfig,
        model: Path,
        scheduler: Scheduler,
        store: SampleStore,
        journal: JournalWriter,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        self.config, self.model, self.scheduler = config, model, scheduler
        self.store, self.journal, self.watchers = store, journal, list(watchers)
        self._events: asyncio.Queue[a.Event] = asyncio.Queue()
        self.trainer = TrainerParty(config, model, 0, self.post)
        self.environments = EnvironmentParty(config, model)
        self.engines: dict[int, EngineParty] = {}
        self.finish: a.Finish | None = None
        self._began = time.monotonic()
        self._tasks: asyncio.TaskGroup
        self._running: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._replay_due: int | None = None
        self._replayed: set[int] = set()

    def now(self) -> float:
        """Seconds since this controller was made."""
        return time.monotonic() - self._began

    def post(self, event: a.Event) -> None:
        """Queue an event for the scheduler. For the loop's own thread."""
        self._events.put_nowait(event)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside everything else until the run ends; what it raises ends the run."""
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def set_timer(self, at: float) -> None:
        """Post TimerFired at time `at`; replaces the timer set before."""
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(0.0, at - self.now()), self.post, a.TimerFired())

    async def run(self) -> a.Finish:
        """Start all parties, train to `config.steps`, and return what the scheduler said at the end.

        Raises ExceptionGroup for faults of this code.
        """
        async with asyncio.TaskGroup() as self._tasks:
            self.spawn(self.environments.listen(self._heard))
            self.post(a.TrajectoriesWanted(until=self.config.steps))
            while self.finish is None:
                self._take(await self._events.get())
            await self.environments.write_notes(self.config.folder / "environments.json")
            for task in list(self._running):
                task.cancel()
            if self._timer is not None:
                self._timer.cancel()
        return self.finish

    def _take(self, event: a.Event) -> None:
        now = self.now()
        commands = self.scheduler.handle(event, now)
        self.journal.write(now, event, commands)
        for watcher in self.watchers:
            watcher(now, event, commands)
        self._obey(commands)
        self._check_replay(event, commands)

    def _obey(self, commands: Sequence[a.Command]) -> None:
        """Carry out; turns for one rank and steps for one worker travel together."""
        turns: dict[int, list[a.Dispatch]] = defaultdict(list)
        steps: list[a.StepEnvironment] = []
        for command in commands:
            if isinstance(command, a.Dispatch):
                turns[command.rank].append(command)
            elif isinstance(command, a.StepEnvironment):
                steps.append(command)
            else:
                obey(command, self)
        for rank, dispatches in turns.items():
            requests = [(command, self.store.begin(command)) for command in dispatches]
            self.spawn(self.engines[rank].submit(requests))
        if steps:
            replies = [(step, self.store.reply(step.trajectory) if step.turn else []) for step in steps]
            self.spawn(self.environments.submit(replies))

    def _heard(self, reply: Reply) -> None:
        """One reply of an environment: into the store, then to the scheduler."""
        place = {"command": reply.command, "trajectory": reply.trajectory, "turn": reply.turn}
        if reply.error is not None:
            self.post(a.EnvironmentFailed(**place, error=reply.error))
            return
        length = 0 if reply.done else self.store.observe(reply.trajectory, reply.turn, reply.tokens)
        self.post(
            a.EnvironmentReplied(
                **place, context_tokens=length, done=reply.done, reward=reply.reward, success=reply.success
            )
        )

    def kill(self) -> None:
        """End every party's process at once."""
        for engine in self.engines.values():
            engine.kill()
        self.trainer.kill()
        self.environments.kill()

    def _check_replay(self, event: a.Event, commands: Sequence[a.Command]) -> None:
        """Play greedy episodes at the versions that the replay check names, once each, and keep their weights."""
        check = self.config.replay_check
        reached = event.version if isinstance(event, a.TrainerReady | a.TrainingFinished) else None
        if reached in check.versions and reached not in self._replayed:
            self._replay_due = reached
        serving = any(isinstance(command, a.RankMoved) and command.new == "ACTIVE" for command in commands)
        if self._replay_due is None or not serving:
            return
        version, self._replay_due = self._replay_due, None
        self._replayed.add(version)
        folder = self.config.folder / "replay" / f"version-{version:06d}"
        self.spawn(self.trainer.save_weights(folder))
        self.post(a.EvaluationWanted(episodes=check.episodes, first_seed=check.first_seed + version * check.episodes))
