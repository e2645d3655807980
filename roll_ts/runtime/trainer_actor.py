"""One rank of the trainer group in a process of its own.

Every call goes to all ranks, because training is collective; rank 0 alone talks to the engines and keeps the published
weights: a host copy of the present version that outlives the trainer's own parameters, so that a rank that comes late
can still be served (R21).
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roll_ts.config import RunConfig
from roll_ts.engines.protocol import Canary
from roll_ts.runtime._devices import pin_process, trainer_environment
from roll_ts.runtime._transfer import Route, Sender, TransferPlan, open_transfer
from roll_ts.runtime.session import start_actor
from roll_ts.trainers.protocol import ALL_PARTS, EARLY_PARTS, Part, TrainerConfig
from roll_ts.trainers.sample import unpack

if TYPE_CHECKING:
    import torch
    from torch.distributed import TCPStore

LANES = {"control": 4, "watch": 1}
# What `ReleaseTrainer` calls "state" and "all".
PARTS: dict[str, tuple[Part, ...]] = {"state": EARLY_PARTS, "all": ALL_PARTS}


@dataclass(frozen=True)
class Published:
    """The version that the trainer can send: its digest, and what a correct engine says to the canary prompt."""

    version: int
    digest: str
    canary: Canary
    seconds: float


class TrainerActor:
    """The methods that the controller calls on every rank."""

    def __init__(self, config: TrainerConfig, rank: int, world_size: int, cores: Collection[int]) -> None:
        pin_process(cores)
        self._config, self._rank, self._world_size = config, rank, world_size
        self._sender: Sender
        self._store: TCPStore
        self._trainer: Any = None
        self._released: tuple[Part, ...] = ()
        self._weights: dict[str, torch.Tensor] = {}
        self._sending: dict[str, torch.Tensor] = {}

    def pid(self) -> int:
        """The process."""
        return os.getpid()

    def stay(self, seconds: float) -> None:
        """Return after `seconds`; the call fails when the process ends."""
        time.sleep(seconds)

    def host_group(self) -> int:
        """Host the store where the ranks meet; returns its port. It listens at once, so nobody else can take the
        port between this call and `boot`."""
        from roll_ts.weights.rendezvous import open_store

        self._store = open_store("127.0.0.1")
        return int(self._store.port)

    def boot(self, port: int, resume: str | None) -> int:
        """Build the model and join the group whose store rank 0 hosts at `port`; goes on from the checkpoint `resume`
        if given. Returns the version. Raises torch's DistStoreError when the store or a rank does not answer."""
        from roll_ts.trainers.megatron import MegatronTrainer
        from roll_ts.weights.rendezvous import join_store

        if self._rank:
            self._store = join_store("127.0.0.1", port, self._config.timeout_s)
        self._trainer = MegatronTrainer(self._config, self._rank, self._world_size, self._store)
        if resume is not None:
            self._trainer.load(resume)
        return int(self._trainer.version)

    def train(self, packed: Mapping[str, Any]) -> dict[str, Any]:
        """One optimizer step on the packed samples, on memory taken back if it was released. Returns the report."""
        self._trainer.restore()
        self._released = ()
        report: dict[str, Any] = self._trainer.train(unpack(packed)).as_dict()
        return report

    def publish(self, prompt: Sequence[int], tokens: int) -> Published:
        """Copy the present weights to the host and say what a correct engine answers to the canary prompt."""
        from roll_ts.weights.digest import digest

        began = time.monotonic()
        weights = self._trainer.export()
        canary = Canary(*self._trainer.greedy(prompt, tokens))
        if self._rank == 0:
            self._weights = weights
        identity = digest(self._weights.items()) if self._rank == 0 else ""
        seconds = time.monotonic() - began
        return Published(int(self._trainer.version), identity, canary, seconds)

    def release(self, parts: str) -> int:
        """Give memory back: "state" or "all". Returns the bytes that went back on this rank."""
        self._released = PARTS[parts]
        return int(self._trainer.release(self._released))

    def save(self, folder: str) -> None:
        """Write a checkpoint in Hugging Face format; memory that was released is taken for the time of it."""
        self._trainer.restore()
        self._trainer.save(folder)
        if self._released:
            self._trainer.release(self._released)

    def save_weights(self, folder: str) -> None:
        """Write a model folder with the published weights (rank 0): what an engine needs to serve this version."""
        from safetensors.torch import save_file

        target, source = Path(folder), Path(self._config.model)
        part = target.with_name(f".{target.name}.part")
        part.mkdir(parents=True)
        for name in ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"):
            if (source / name).is_file():
                shutil.copyfile(source / name, part / name)
        save_file(self._weights, part / "model.safetensors", metadata={"format": "pt"})
        part.rename(target)

    def open_transfer(self, plan: TransferPlan) -> Route:
        """Begin a transfer of the published weights (rank 0); says how receivers reach it. It sends these even when
        another version is published before it ends."""
        self._sending = self._weights
        self._sender = open_transfer(plan, self._sending)
        return self._sender.route

    def connect(self) -> None:
        """Wait for the receivers of the transfer opened last (rank 0). Raises SyncError naming who is missing."""
        self._sender.connect()

    def send(self) -> float:
        """Send the weights of the transfer opened last and end it (rank 0). Returns the seconds it took."""
        began = time.monotonic()
        try:
            self._sender.send(self._sending)
        finally:
            self._sender.close()
        return time.monotonic() - began

    def close(self) -> None:
        """Leave the group."""
        if self._trainer is not None:
            self._trainer.close()


def start_trainers(config: RunConfig, trainer: TrainerConfig) -> list[Any]:
    """Start one process per training device; returns the actors' handles by rank, to be booted together."""
    devices, kind = config.layout.train_devices, config.layout.device
    actors = []
    for rank, device in enumerate(devices):
        cores = (device,) if kind == "cpu" else ()
        environment = trainer_environment(kind, device)
        actors.append(start_actor(TrainerActor, LANES, environment, trainer, rank, len(devices), cores))
    # AST: AST_POSTCONDITION(len(actors) > 0)
    assert len(actors) > 0, f"Post-condition: actors not empty, got {actors}"
    # END AST 5672dc
    return actors
