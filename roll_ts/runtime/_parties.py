"""The controller's side of the actors: who they are, how they are called, and what becomes of their answers."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError

from roll_ts.config import RunConfig
from roll_ts.core import alphabet as a
from roll_ts.engines import protocol
from roll_ts.engines.protocol import Canary, Request, Sampling
from roll_ts.runtime._devices import engine_config, engine_environment
from roll_ts.runtime._transfer import Route, TransferPlan
from roll_ts.runtime.engine_actor import Booted, start_engine
from roll_ts.runtime.sample_store import SampleStore
from roll_ts.runtime.trainer_actor import Published, start_trainers
from roll_ts.trainers.protocol import TrainerConfig

Post = Callable[[a.Event], None]
POLL_S = 1.0
CANARY_PROMPT = tuple(range(1, 9))


def why(error: BaseException) -> str:
    """One line for a party's error: its own kind and words, without Ray's frame around it."""
    cause = getattr(error, "cause", None)
    inner = cause if isinstance(cause, BaseException) else error
    return f"{type(inner).__name__}: {inner}" if str(inner) else type(inner).__name__


@dataclass
class EngineParty:
    """One process of one rollout rank, its `incarnation`-th. `alive` until it is known to be gone; a dead party says
    nothing more. `open`: the tokens that each request in flight has reported so far."""

    rank: int
    incarnation: int
    store: SampleStore
    post: Post
    actor: Any = None
    pid: int | None = None
    alive: bool = True
    open: dict[a.AttemptId, int] = field(default_factory=dict)

    async def boot(self, config: RunConfig, model: Path) -> Booted:
        """Start the process and its engine."""
        settings = engine_config(config, self.rank, str(model))
        devices, lend = config.layout.ranks[self.rank], set(config.layout.train_devices)
        environment = engine_environment(settings, devices)
        self.actor = start_engine(settings, bool(lend & set(devices)), environment)
        booted: Booted = await self.ask("boot")
        self.pid = booted.pid
        return booted

    async def ask(self, method: str, *args: Any, lane: str = "control") -> Any:
        """Call the engine's actor on a lane (R25)."""
        return await getattr(self.actor, method).options(concurrency_group=lane).remote(*args)

    async def submit(self, turns: Sequence[tuple[a.Dispatch, list[int]]]) -> None:
        """Send turns to the engine. What it does not take is answered here, so every attempt has its end (R6)."""
        requests = []
        for command, prompt in turns:
            stop = (self.store.eos_id,)
            temperature = 0.0 if command.greedy else 1.0
            sampling = Sampling(command.max_new_tokens, temperature, stop_token_ids=stop)
            requests.append((command.id, Request(str(command.attempt), prompt, sampling)))
            self.open[command.attempt] = 0
        try:
            overtaken = set(await self.ask("submit", requests, lane="data"))
        except RayActorError as error:
            self.died(why(error))
            return
        except RayTaskError as error:
            for command, _ in turns:
                self.open.pop(command.attempt, None)
                self.store.lose([command.attempt])
                self.post(a.Failed(attempt=command.attempt, error=why(error)))
            return
        for command, _ in turns:
            if str(command.attempt) in overtaken:
                self.open.pop(command.attempt, None)
                self.store.lose([command.attempt])
                self.post(a.Aborted(attempt=command.attempt, total=0))
            else:
                self.post(a.SubmitAcked(command=command.id, attempt=command.attempt))

    async def listen(self) -> None:
        """Hear the engine's news until it is gone: tokens into the store, then their count to the scheduler."""
        while self.alive:
            try:
                news = await self.ask("next_events", POLL_S, lane="poll")
            except (RayActorError, RayTaskError) as error:
                self.died(why(error))
                return
            for item in news if self.alive else ():
                self._hear(item)

    def died(self, reason: str) -> None:
        """The process is gone or of no use; told once."""
        if self.alive:
            self.kill()
            self.post(a.RankDied(rank=self.rank, incarnation=self.incarnation, reason=reason))

    def kill(self) -> None:
        """End the process at once; what it had not reported is lost."""
        self.alive = False
        self.store.lose(sorted(self.open))
        self.open.clear()
        if self.actor is not None:
            ray.kill(self.actor)

    async def gone(self) -> None:
        """Return when the killed process has left the machine. A process elsewhere is known by Ray alone."""
        with contextlib.suppress(RayActorError):
            await self.ask("close")
        if self.pid is not None:
            await _leave(self.pid)

    def _hear(self, item: protocol.Event) -> None:
        attempt = a.AttemptId(*map(int, item.id.split(".")))
        last = isinstance(item, protocol.TERMINAL)
        self.store.extend(attempt, item.tokens, item.logprobs, last)
        total = self.open.get(attempt, 0) + len(item.tokens)
        if last:
            self.open.pop(attempt, None)
        else:
            self.open[attempt] = total
        match item:
            case protocol.Progress():
                self.post(a.Progress(attempt=attempt, total=total))
            case protocol.Finished():
                self.post(a.Finished(attempt=attempt, total=total, reason=item.reason))
            case protocol.Aborted():
                self.post(a.Aborted(attempt=attempt, total=total))
            case protocol.Failed():
                if item.tokens:
                    self.post(a.Progress(attempt=attempt, total=total))
                self.post(a.Failed(attempt=attempt, error=item.error))


@dataclass
class TrainerParty:
    """The trainer group's `incarnation`-th processes; every call goes to all ranks, rank 0 answers. `published` is what
    can be sent now; `canaries` what a correct engine says, by version, because a late rank may still be given the
    version before. `alive` until it is known to be gone; a dead party says nothing more."""

    config: RunConfig
    model: Path
    incarnation: int
    post: Post
    actors: list[Any] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)
    alive: bool = True
    published: Published = field(default_factory=lambda: Published(-1, "", Canary([], []), 0.0))
    canaries: dict[int, Canary] = field(default_factory=dict)

    async def start(self, resume: str | None) -> None:
        """Start the group, from the checkpoint `resume` if given, and publish its first version."""
        fields = {f.name: getattr(self.config.trainer, f.name) for f in dataclasses.fields(TrainerConfig)}
        own = {"model": str(self.model), "rollout_dtype": self.config.engine.dtype}
        trainer = TrainerConfig(**fields | own)
        self.actors = start_trainers(self.config, trainer)
        self.pids = list(await asyncio.gather(*(actor.pid.remote() for actor in self.actors)))
        port = await self.actors[0].host_group.remote()
        await self.ask("boot", port, resume if resume is not None else self.config.trainer.resume)
        await self.publish()

    async def watch(self) -> None:
        """Hear of a process that ends while nothing is asked of it."""
        try:
            while self.alive:
                calls = [actor.stay.options(concurrency_group="watch").remote(POLL_S) for actor in self.actors]
                await asyncio.gather(*calls)
        except RayActorError as error:
            self.died(why(error))

    def died(self, reason: str) -> None:
        """A process is gone or of no use, and with it the group; told once."""
        if self.alive:
            self.kill()
            self.post(a.TrainerDied(incarnation=self.incarnation, reason=reason))

    async def gone(self) -> None:
        """Return when the killed processes have left the machine."""
        for pid in self.pids:
            await _leave(pid)

    async def ask(self, method: str, *args: Any) -> Any:
        """Call all ranks together; returns rank 0's answer."""
        calls = [getattr(actor, method).remote(*args) for actor in self.actors]
        return (await asyncio.gather(*calls))[0]

    async def ask_first(self, method: str, *args: Any) -> Any:
        """Call rank 0 on the control lane, beside whatever the group is doing."""
        return await getattr(self.actors[0], method).options(concurrency_group="control").remote(*args)

    def kill(self) -> None:
        """End the group at once."""
        self.alive = False
        for actor in self.actors:
            ray.kill(actor)

    async def publish(self) -> None:
        """Make the present version sendable."""
        self.published = await self.ask("publish", CANARY_PROMPT, self.config.weights.canary_tokens)
        self.canaries[self.published.version] = self.published.canary

    async def save_weights(self, folder: Path) -> None:
        """Keep the published weights as a model folder. A trainer that dies meanwhile is told as ever."""
        try:
            await self.ask_first("save_weights", str(folder))
        except RayActorError as error:
            self.died(why(error))

    async def open_transfer(self, id: int, receivers: tuple[str, ...]) -> Route:
        """Begin a weight transfer to these receivers."""
        layout, limits = self.config.layout, self.config.deadlines
        shares = set(layout.train_devices) & {device for rank in layout.ranks for device in rank}
        plan = TransferPlan(
            id=id,
            transport=self.config.weights.transport,
            receivers=receivers,
            device="cuda" if layout.device == "cuda" and not shares else "cpu",
            timeout_s=min(limits.form_group, limits.load_weights) / 2,
        )
        route: Route = await self.ask_first("open_transfer", plan)
        return route

    def canary_gap(self, said: Canary, version: int) -> float:
        """Largest log-prob difference to the canary of `version`, nats, up to and including the first token that
        differs: there both sides name their most likely token, so a tie gives no gap and other weights do."""
        expected, gap = self.canaries[version], 0.0
        if len(said.tokens) != len(expected.tokens):
            return math.inf
        pairs = zip(said.tokens, said.logprobs, expected.tokens, expected.logprobs, strict=True)
        for token, logprob, wanted, wanted_logprob in pairs:
            gap = max(gap, abs(logprob - wanted_logprob))
            if token != wanted:
                break
        return gap


async def _leave(pid: int) -> None:
    """Return when the process has ended; until then it is killed. Who waits for this has a deadline."""
    while _runs(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(0.02)


def _runs(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
