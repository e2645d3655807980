"""The controller's handle on the environment workers: who plays what, and what is owed when a worker dies."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError

from roll_ts.config import RunConfig
from roll_ts.core import alphabet as a
from roll_ts.runtime._parties import POLL_S, why
from roll_ts.runtime.environment_worker import Reply, Step, WorkerOptions, start_workers

# A worker that dies is replaced, ever more slowly while its successors die within this time (seconds), so that one that
# cannot live never keeps the machine busy with starting it; episodes wait for it until their own deadline.
_QUICK_DEATH_S = 30.0
_PAUSES_S = (0.0, 1.0, 5.0, 20.0)


class EnvironmentParty:
    """The environment workers; a trajectory stays with one of them. `owed`: steps without a reply, by worker."""

    def __init__(self, config: RunConfig, model: Path) -> None:
        self._options = worker_options(config, model)
        self._workers = start_workers(self._options, config.environment.workers)
        self._owed: list[dict[int, a.StepEnvironment]] = [{} for _ in self._workers]

    async def submit(self, steps: Sequence[tuple[a.StepEnvironment, list[int]]]) -> None:
        """Send steps, each with the tokens of the reply it acts on."""
        for index, worker in enumerate(self._workers):
            own = [(step, reply) for step, reply in steps if step.trajectory % len(self._workers) == index]
            if not own:
                continue
            self._owed[index] |= {step.id: step for step, _ in own}
            calls = [Step(step.id, step.trajectory, step.turn, step.seed, reply) for step, reply in own]
            try:
                await worker.submit.options(concurrency_group="data").remote(calls)
            except RayActorError:
                continue  # whoever listens to this worker hears of it, and answers for all that it owes

    async def cancel(self, trajectory: int) -> None:
        """Close the trajectory's environment; a worker that is gone has closed it."""
        worker = self._workers[trajectory % len(self._workers)]
        with contextlib.suppress(RayActorError):
            await worker.cancel.options(concurrency_group="data").remote([trajectory])

    async def listen(self, heard: Callable[[Reply], None]) -> None:
        """Hear all workers until the run ends."""
        await asyncio.gather(*(self._listen(index, heard) for index in range(len(self._workers))))

    async def write_notes(self, path: Path) -> None:
        """Write what the living workers had to put right: how often each kind came, and the first example."""
        total: dict[str, dict[str, Any]] = {}
        for worker in self._workers:
            with contextlib.suppress(RayActorError):
                for kind, (count, first) in (await worker.notes.options(concurrency_group="data").remote()).items():
                    row = total.setdefault(kind, {"count": 0, "first": first})
                    row["count"] += count
        path.write_text(json.dumps(total, indent=2) + "\n", encoding="utf-8")

    def kill(self) -> None:
        """End all workers at once; the kernel ends the processes that they keep."""
        for worker in self._workers:
            ray.kill(worker)

    async def _listen(self, index: int, heard: Callable[[Reply], None]) -> None:
        clock = asyncio.get_running_loop().time
        quick_deaths, born = 0, clock()
        while True:
            try:
                poll = self._workers[index].next_replies.options(concurrency_group="poll")
                replies = await poll.remote(POLL_S)
            except RayActorError as error:
                quick_deaths = quick_deaths + 1 if clock() - born < _QUICK_DEATH_S else 0
                owed, self._owed[index] = self._owed[index], {}
                for step in owed.values():
                    heard(Reply(step.id, step.trajectory, step.turn, error=f"worker died: {why(error)}"))
                await asyncio.sleep(_PAUSES_S[min(quick_deaths, len(_PAUSES_S) - 1)])
                [self._workers[index]] = start_workers(self._options, 1)
                born = clock()
                continue
            for reply in replies:
                self._owed[index].pop(reply.command, None)
                heard(reply)


def worker_options(config: RunConfig, model: Path) -> WorkerOptions:
    """What the configuration says to a worker; `model` is the folder with the tokenizer."""
    said = config.environment
    return WorkerOptions(
        name=said.name,
        arguments=dict(said.arguments),
        tokenizer=str(model),
        processes=said.processes,
        threads=said.threads,
        episodes=said.episodes_per_process,
        observation_tokens=said.observation_tokens or config.rollout.max_context_tokens,
        keep=said.long_observation,
        limits=said.limits,
    )
