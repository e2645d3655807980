"""One small function per command: calls the party, and turns its answer into the event that answers the command.

An exception that a party raised becomes `CommandFailed`; a rank whose process is gone becomes `RankDied`. Exceptions of
any other kind are faults of this code and pass through.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import RayActorError, RayTaskError

from roll_ts.core import alphabet as a
from roll_ts.core.parties import TRAINER, party
from roll_ts.runtime._parties import CANARY_PROMPT, EngineParty, TrainerParty, why
from roll_ts.trainers.sample import pack
from roll_ts.weights.rendezvous import SyncError

if TYPE_CHECKING:
    from roll_ts.runtime.controller import Controller

Handler = Callable[[Any, "Controller"], Awaitable[a.Event | None]]
PATIENCE = 0.8
"""The part of a group's deadline after which who has not joined is named."""
_HANDLERS: dict[type[a.Command], Handler] = {}
_AT_ONCE: dict[type[a.Command], Callable[[Any, Controller], None]] = {}


def obey(command: a.Command, run: Controller) -> None:
    """Carry out one command: at once, or beside everything else with an event as its answer."""
    at_once = _AT_ONCE.get(type(command))
    if at_once is not None:
        at_once(command, run)
    else:
        run.spawn(_answer(command, run))


async def _answer(command: a.Command, run: Controller) -> None:
    handler = _HANDLERS[type(command)]
    rank: int | None = getattr(command, "rank", None)
    # The process that is asked; by the time it answers, another one may have its place.
    asked = run.trainer if rank is None else run.engines.get(rank)
    try:
        event = await handler(command, run)
    except RayActorError as error:
        if asked is not None:
            asked.died(why(error))
            return
        event = a.CommandFailed(command=command.id, error=f"{command.awaits} has died: {why(error)}")
    except RayTaskError as error:
        culprits = _culprits(error, TRAINER if rank is None else party(rank))
        event = a.CommandFailed(command=command.id, error=why(error), culprits=culprits)
    if event is not None:
        run.post(event)


def _culprits(error: BaseException, asked: str) -> tuple[str, ...]:
    """Who is at fault: in a weight transfer those whom the error misses, if it can tell; else who was asked."""
    cause = getattr(error, "cause", error)
    if isinstance(cause, SyncError):
        return tuple(name.replace("rank ", "rank:") for name in cause.missing)
    return (asked,)


def _answers(kind: type[a.Command]) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        _HANDLERS[kind] = handler
        return handler

    return register


def _stats(command: Any, engine: EngineParty, stats: Any) -> a.RankStats:
    return a.RankStats(
        command=command.id,
        rank=command.rank,
        incarnation=engine.incarnation,
        running=stats.running,
        waiting=stats.waiting,
        kv_tokens=stats.kv_tokens,
    )


@_answers(a.Drain)
async def _drain(command: a.Drain, run: Controller) -> a.Event:
    limit, engine = run.config.deadlines.drain / 2, run.engines[command.rank]
    return _stats(command, engine, await engine.ask("drain", command.id, limit))


@_answers(a.Abort)
async def _abort(command: a.Abort, run: Controller) -> None:
    await run.engines[command.rank].ask("abort", str(command.attempt), lane="data")


@_answers(a.Release)
async def _release(command: a.Release, run: Controller) -> a.Event:
    freed = await run.engines[command.rank].ask("release")
    holder = f"rank:{command.rank}"
    return a.MemoryReleased(command=command.id, holder=holder, epoch=command.epoch, bytes=freed)


@_answers(a.FormGroup)
async def _form_group(command: a.FormGroup, run: Controller) -> a.Event | None:
    """Everybody joins at the same time. Who has not done so within most of the deadline is named."""
    trainer, names = run.trainer, {rank: f"rank {rank}" for rank in command.members}
    # The command's id is never used again; an epoch may form its group twice.
    route = await trainer.open_transfer(command.id, tuple(names.values()))
    joins = {party(rank): run.engines[rank].ask("join", route, name) for rank, name in names.items()}
    tasks = {who: asyncio.ensure_future(work) for who, work in joins.items()}
    tasks[TRAINER] = asyncio.ensure_future(trainer.ask_first("connect"))
    await asyncio.wait(tasks.values(), timeout=run.config.deadlines.form_group * PATIENCE)
    hung = tuple(who for who, task in tasks.items() if not task.done())
    if hung:
        for who in hung:
            tasks[who].cancel()
        return a.CommandFailed(command=command.id, error=f"{', '.join(hung)} did not join", culprits=hung)
    errors = {who: error for who, task in tasks.items() if (error := task.exception()) is not None}
    if not errors:
        return a.GroupFormed(command=command.id, epoch=command.epoch)
    return _group_failed(command, errors, run)


def _group_failed(command: a.FormGroup, errors: dict[str, BaseException], run: Controller) -> a.Event | None:
    """Name the dead, whose death says enough, and whom the others miss. Faults of this code pass through."""
    died = False
    for who, error in errors.items():
        if isinstance(error, RayActorError):
            asked = run.trainer if who == TRAINER else run.engines[int(who.removeprefix("rank:"))]
            asked.died(why(error))
            died = True
        elif not isinstance(error, RayTaskError):  # unmanaged: a fault of this code passes through
            raise error
    if died:
        return None
    first = errors[TRAINER] if TRAINER in errors else next(iter(errors.values()))
    own = [who for who, error in errors.items() if not isinstance(getattr(error, "cause", error), SyncError)]
    missed = [who for who in _culprits(errors[TRAINER], TRAINER)] if TRAINER in errors else []
    return a.CommandFailed(command=command.id, error=why(first), culprits=tuple(own or missed))


@_answers(a.Sync)
async def _sync(command: a.Sync, run: Controller) -> a.Event:
    await run.trainer.ask_first("send")
    return a.WeightsSent(command=command.id, epoch=command.epoch, version=command.version)


@_answers(a.LoadWeights)
async def _load_weights(command: a.LoadWeights, run: Controller) -> a.Event:
    loaded = await run.engines[command.rank].ask("load")
    return a.WeightsLoaded(
        command=command.id,
        rank=command.rank,
        epoch=command.epoch,
        version=command.version,
        digest=loaded.digest,
        seconds=loaded.seconds,
    )


@_answers(a.WakeKV)
async def _wake_kv(command: a.WakeKV, run: Controller) -> a.Event:
    return await _kv_ready(command, "wake", run)


@_answers(a.ResetCache)
async def _reset_cache(command: a.ResetCache, run: Controller) -> a.Event:
    return await _kv_ready(command, "reset_cache", run)


async def _kv_ready(command: a.WakeKV | a.ResetCache, method: str, run: Controller) -> a.Event:
    tokens = run.config.weights.canary_tokens
    said = await run.engines[command.rank].ask(method, CANARY_PROMPT, tokens)
    gap = run.trainer.canary_gap(said, command.version)
    return a.KVReady(command=command.id, rank=command.rank, epoch=command.epoch, canary_gap=gap)


@_answers(a.Fence)
async def _fence(command: a.Fence, run: Controller) -> a.Event:
    engine = run.engines[command.rank]
    engine.kill()
    await engine.gone()
    died = a.RankDied(command=command.id, rank=command.rank, incarnation=command.incarnation, reason=command.reason)
    return died


@_answers(a.Restart)
async def _restart(command: a.Restart, run: Controller) -> a.Event | None:
    before = run.engines.get(command.rank)
    if before is not None:
        before.kill()
    engine = run.engines[command.rank] = EngineParty(command.rank, command.incarnation, run.store, run.post)
    try:
        booted = await engine.boot(run.config, run.model)
    except (RayActorError, RayTaskError) as error:
        engine.died(f"did not start: {why(error)}")
        return None
    run.spawn(engine.listen())
    return a.RankBooted(
        command=command.id, rank=command.rank, incarnation=command.incarnation, kv_capacity=booted.kv_capacity
    )


@_answers(a.StartTrainer)
async def _start_trainer(command: a.StartTrainer, run: Controller) -> a.Event | None:
    trainer = run.trainer = TrainerParty(run.config, run.model, command.incarnation, run.post)
    try:
        await trainer.start(command.resume_from)
    except (RayActorError, RayTaskError) as error:
        trainer.died(f"did not start: {why(error)}")
        return None
    run.spawn(trainer.watch())
    published = trainer.published
    return a.TrainerReady(
        command=command.id,
        incarnation=command.incarnation,
        version=published.version,
        digest=published.digest,
    )


@_answers(a.FenceTrainer)
async def _fence_trainer(command: a.FenceTrainer, run: Controller) -> a.Event:
    run.trainer.kill()
    await run.trainer.gone()
    return a.TrainerDied(command=command.id, incarnation=command.incarnation, reason=command.reason)


@_answers(a.Train)
async def _train(command: a.Train, run: Controller) -> a.Event:
    began = time.monotonic()
    samples, trainer = run.store.samples(command.batch), run.trainer
    report = await trainer.ask("train", ray.put(pack(samples)))
    await trainer.publish()
    run.store.drop([assignment.trajectory for assignment in command.batch])
    published = trainer.published
    return a.TrainingFinished(
        command=command.id,
        epoch=command.epoch,
        version=published.version,
        digest=published.digest,
        seconds=time.monotonic() - began,
        figures=_figures(report) | {"seconds_publish": published.seconds},
    )


def _figures(report: dict[str, Any]) -> dict[str, float]:
    """The trainer's report as flat numbers for the journal."""
    check, seconds, staleness = report["logprob_check"], report["seconds"], report["staleness"]
    flat = {name: float(value) for name, value in report.items() if isinstance(value, int | float)}
    flat |= {f"logprob_{name}": float(check[name]) for name in ("n", "share", "max", "p99")}
    flat |= {f"logprob_allowed_{name}": float(bound) for name, bound in check["tolerance"].items()}
    flat |= {f"seconds_{name}": float(value) for name, value in seconds.items()}
    return flat | {f"staleness_{lag}": float(tokens) for lag, tokens in staleness.items()}


@_answers(a.ReleaseTrainer)
async def _release_trainer(command: a.ReleaseTrainer, run: Controller) -> a.Event:
    freed = await run.trainer.ask("release", command.parts)
    return a.MemoryReleased(command=command.id, holder="trainer", epoch=command.epoch, bytes=freed)


@_answers(a.Checkpoint)
async def _checkpoint(command: a.Checkpoint, run: Controller) -> a.Event:
    folder = (run.config.folder / "checkpoint" / f"version-{command.version:06d}").resolve()
    if not folder.exists():
        await run.trainer.ask("save", str(folder))
    return a.CheckpointSaved(command=command.id, version=command.version, path=str(folder))


def _set_timer(command: a.SetTimer, run: Controller) -> None:
    run.set_timer(command.at)


def _cancel(command: a.Cancel, run: Controller) -> None:
    run.spawn(run.environments.cancel(command.trajectory))


def _finish(command: a.Finish, run: Controller) -> None:
    run.finish = command


def _settled(command: a.Settled, run: Controller) -> None:
    run.store.settle(command)


def _group_dropped(command: a.GroupDropped, run: Controller) -> None:
    run.store.drop(command.trajectories)


def _nothing(command: a.Command, run: Controller) -> None:
    """A notice: it is in the journal, and nothing is to be done."""


_AT_ONCE |= {
    a.SetTimer: _set_timer,
    a.Cancel: _cancel,
    a.Finish: _finish,
    a.Settled: _settled,
    a.RankMoved: _nothing,
    a.Decided: _nothing,
    a.GroupDropped: _group_dropped,
}
