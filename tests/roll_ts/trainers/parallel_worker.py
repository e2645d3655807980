"""One rank of the two-process test: trains under several layouts and writes what came of it. Run as a module."""

import json
import sys
from pathlib import Path

import torch
from torch.distributed import FileStore

from roll_ts.trainers.megatron import MegatronTrainer
from roll_ts.trainers.protocol import TrainerConfig
from tests.roll_ts.trainers.helpers import make_samples, with_logprobs

LAYOUTS: dict[str, dict[str, object]] = {
    "tp2": {"tensor_parallel": 2},
    "dp2": {},
    "dp2-distributed": {"distributed_optimizer": True},
}
SETTINGS: dict[str, object] = {"micro_batch_tokens": 256, "timeout_s": 60.0, "grad_clip": 0.5}


def run(trainer: MegatronTrainer, checkpoint: Path | None = None) -> dict[str, float]:
    """Two updates: a full batch, then one sample only, so that one data-parallel rank has nothing to do. With
    `checkpoint`, the second update is made twice, the second time after loading the state before it."""
    samples = make_samples(20)
    first = trainer.train(with_logprobs(samples, trainer.logprobs(samples), 0))
    again = with_logprobs(samples, trainer.logprobs(samples), 1)[:1]
    if checkpoint is not None:
        trainer.save(checkpoint)
        trainer.train(again)
        trainer.load(checkpoint)
    second = trainer.train(again)
    reports = {"1": first, "2": second}
    _, said = trainer.greedy([1, 2, 3], 4)
    return {f"greedy.{i}": logprob for i, logprob in enumerate(said)} | {
        f"{k}.{n}": getattr(r, n) for k, r in reports.items() for n in ("loss", "grad_norm", "mean_nll", "mean_weight")
    }


def main(rank: int, model: str, out: Path) -> None:
    """Every layout in turn, in one process: a closed trainer leaves nothing in the way of the next."""
    torch.set_num_threads(1)
    for name, layout in LAYOUTS.items():
        config = TrainerConfig(model=model, **SETTINGS, **layout)  # type: ignore[arg-type]
        trainer = MegatronTrainer(config, rank, 2, FileStore(str(out / f"store-{name}"), 2))
        report = run(trainer, out / f"checkpoint-{name}")
        weights = trainer.export()
        if rank == 0:
            (out / f"{name}.json").write_text(json.dumps(report))
            torch.save(weights, out / f"{name}.pt")
        else:
            assert weights == {}
        trainer.release()
        trainer.restore()
        trainer.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
