"""Loss and gradients of the real trainer against the formulas in float64, for each algorithm and what can upset it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributed import HashStore

from roll_ts.trainers.mapping import to_hf
from roll_ts.trainers.protocol import TrainerConfig
from roll_ts.trainers.sample import Sample
from roll_ts.trainers.scratch import make_model
from tests.roll_ts.trainers.algorithms.oracle import Asked, Episode, positions, update_loss
from tests.roll_ts.trainers.helpers import TINY, make_samples, with_logprobs

pytestmark = pytest.mark.engines

ALGORITHMS: dict[str, dict[str, Any]] = {
    "grpo": {"loss_norm": "sample"},
    "dr_grpo": {"advantage": "dr_grpo"},
    "rloo": {"advantage": "rloo"},
    "reinforce_pp": {"advantage": "reinforce_pp"},
    "reinforce_pp_baseline": {"advantage": "reinforce_pp_baseline"},
    "dapo": {"mask_truncated": True},
    "gspo": {"ratio": "sequence", "loss_norm": "sample"},
    "kl k2": {"kl_weight": 0.05, "kl_estimator": "k2"},
    "kl k3": {"kl_weight": 0.05},
    "entropy": {"entropy_weight": 0.01},
    "no bound": {"truncate_weight": None},
    "tight bound": {"truncate_weight": 1.0},
    "stale only": {"weight_source": "stale"},
    "engine only": {"weight_source": "engine"},
    "sequence weight": {"weight_level": "sequence"},
    "token rejection": {"reject_level": "token", "reject_low": 0.9, "reject_high": 1.1},
    "sequence rejection": {"reject_level": "sequence", "reject_low": 0.5, "reject_high": 2.0},
    "geometric rejection": {"reject_level": "geometric", "reject_low": 0.98, "reject_high": 1.02},
    "all together": {
        "advantage": "rloo",
        "kl_weight": 0.02,
        "entropy_weight": 0.01,
        "mask_truncated": True,
        "reject_level": "geometric",
        "reject_high": 1.02,
        "loss_norm": "sample",
    },
}
# Several steps on one batch: pi moves away from pi_old, so that clips act.
CLIPPED: dict[str, dict[str, Any]] = {
    "ppo": {"clip_low": 0.05, "clip_high": 0.05},
    "dapo": {"clip_low": 0.04, "clip_high": 0.06, "mask_truncated": True},
    "dual": {"clip_low": 0.05, "clip_high": 0.05, "dual_clip": 1.02},
    "gspo": {"ratio": "sequence", "loss_norm": "sample", "clip_low": 0.01, "clip_high": 0.01},
}


class Lab:
    """One trainer at a time, on float32, and the same model in float64."""

    def __init__(self, model: Path) -> None:
        self.model, self.trainer = model, None

    def open(self, **settings: Any) -> Any:
        from roll_ts.trainers.megatron import MegatronTrainer

        self.close()
        config = TrainerConfig(model=str(self.model), **settings)
        self.trainer = MegatronTrainer(config, 0, 1, HashStore())
        return self.trainer

    def close(self) -> None:
        if self.trainer is not None:
            self.trainer.close()
        self.trainer = None

    def theirs(self, weights: dict[str, torch.Tensor] | None = None) -> Any:
        from transformers import AutoModelForCausalLM

        found = AutoModelForCausalLM.from_pretrained(self.model, dtype=torch.float64, attn_implementation="eager")
        if weights is not None:
            found.load_state_dict({name: w.double() for name, w in weights.items()}, strict=False)
        return found


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(make_model(tmp_path_factory.mktemp("oracle") / "tiny", 0, TINY))
    yield lab
    lab.close()


def gradients(trainer: Any) -> dict[str, torch.Tensor]:
    """What the last `accumulate` left in Megatron's buffers, by Hugging Face name."""
    own = {name: p.main_grad.detach().clone() for name, p in trainer._model.named_parameters()}
    return to_hf([own], trainer._arch, trainer._layout)


def mixed(trainer: Any, seed: int, version: int) -> list[Sample]:
    """Samples of several versions: some tokens stale with log-probs of their own, some ended by a limit, one group of
    equal rewards, one sample alone in its group."""
    rng = np.random.default_rng(seed)
    samples = with_logprobs(make_samples(seed, count=13), trainer.logprobs(make_samples(seed, count=13)), version)
    found = []
    for i, s in enumerate(samples):
        stale = s.loss_mask & (rng.random(len(s)) < 0.4)
        noise = np.where(stale, rng.normal(0, 0.15, len(s)), 0)
        shifted = np.where(s.loss_mask, np.minimum(s.logprobs + noise, 0), 0)
        versions = np.where(stale, version - 1, s.versions)
        reward = 0.25 if s.group == "g1" else s.reward
        found.append(replace(s, logprobs=shifted, versions=versions, reward=reward, truncated=i % 5 == 3))
    return found


def episodes(samples: Sequence[Sample]) -> list[Episode]:
    return [
        Episode(
            s.tokens.tolist(),
            s.loss_mask.tolist(),
            [float(p) for p in s.logprobs],
            s.versions.tolist(),
            s.group,
            s.reward,
            s.truncated,
        )
        for s in samples
    ]


def agree(ours: dict[str, torch.Tensor], theirs: Any) -> None:
    largest = max(float(p.grad.abs().max()) for p in theirs.parameters())
    for name, parameter in theirs.named_parameters():
        if name in ours:
            assert (ours[name].double() - parameter.grad).abs().max() <= 3e-5 * largest, name


@pytest.mark.parametrize("name", ALGORITHMS)
def test_loss_and_gradients_of_one_step_agree(lab: Lab, name: str) -> None:
    settings = ALGORITHMS[name]
    trainer = lab.open(**settings, micro_batch_tokens=160, learning_rate=3e-3, grad_clip=1e9)
    # The first update moves pi away from pi_ref and makes the next version, so that version 0 is stale.
    first = make_samples(40)
    trainer.train(with_logprobs(first, trainer.logprobs(first), 0))
    samples = mixed(trainer, 41, 1)
    theirs = lab.theirs(trainer.export())
    report = trainer.train(samples)
    loss = update_loss(Asked(**settings), theirs, episodes(samples), 1, reference=lab.theirs())
    loss.backward()
    assert report.loss == pytest.approx(loss.item(), abs=2e-5)
    agree(gradients(trainer), theirs)


@pytest.mark.parametrize("name", CLIPPED)
def test_every_step_of_several_minibatches_agrees_where_clips_act(lab: Lab, name: str) -> None:
    settings = CLIPPED[name]
    trainer = lab.open(**settings, epochs=3, learning_rate=2e-3, grad_clip=1e9)
    samples = with_logprobs(make_samples(42), trainer.logprobs(make_samples(42)), 0)
    old = [{t: lp.item() for t, (lp, _) in positions(lab.theirs(), e).items()} for e in episodes(samples)]
    seen: list[tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], float]] = []
    step = trainer._updater.step

    def watched(update: Any) -> None:
        seen.append((trainer.export(), gradients(trainer), update.loss))
        step(update)

    trainer._updater.step = watched
    report = trainer.train(samples)
    assert len(seen) == 3
    assert report.clipped_share > 0
    for weights, ours, value in seen:
        theirs = lab.theirs(weights)
        loss = update_loss(Asked(**settings), theirs, episodes(samples), 0, old=old)
        loss.backward()
        assert value == pytest.approx(loss.item(), abs=2e-5)
        agree(ours, theirs)


@pytest.mark.parametrize(
    "fault",
    ["mask off by one", "wrong divisor", "stale version", "no correction", "another baseline"],
)
def test_a_planted_fault_makes_the_comparison_red(lab: Lab, fault: str) -> None:
    trainer = lab.open(micro_batch_tokens=160, learning_rate=3e-3, grad_clip=1e9)
    first = make_samples(40)
    trainer.train(with_logprobs(first, trainer.logprobs(first), 0))
    samples = mixed(trainer, 41, 1)
    theirs = lab.theirs(lab.theirs().state_dict() if fault == "stale version" else trainer.export())
    told, asked = episodes(samples), Asked()
    if fault == "mask off by one":
        told = [replace(e, made=[*e.made[1:], False]) for e in told]
    elif fault == "wrong divisor":
        asked = Asked(loss_norm="sample")
    elif fault == "no correction":
        asked = Asked(weight_source="engine")
    elif fault == "another baseline":
        asked = Asked(advantage="rloo")
    trainer.train(samples)
    update_loss(asked, theirs, told, 1).backward()
    with pytest.raises(AssertionError):
        agree(gradients(trainer), theirs)


def test_a_batch_without_differences_leaves_every_weight_as_it_was(lab: Lab) -> None:
    """Adam's momentum and weight decay would move them."""
    trainer = lab.open(learning_rate=1e-2, weight_decay=0.1)
    samples = with_logprobs(make_samples(43), trainer.logprobs(make_samples(43)), 0)
    assert trainer.train(samples).stepped
    before = trainer.export()
    equal = [replace(s, reward=0.5) for s in with_logprobs(samples, trainer.logprobs(samples), 1)]
    report = trainer.train(equal)
    assert (report.stepped, report.version, trainer.version) == (False, 2, 2)
    assert all(torch.equal(w, before[name]) for name, w in trainer.export().items())


def test_weight_decay_spares_norms_and_shrinks_matrices(lab: Lab) -> None:
    def moved(decay: float) -> dict[str, torch.Tensor]:
        trainer = lab.open(learning_rate=1e-2, weight_decay=decay)
        before = trainer.export()
        samples = with_logprobs(make_samples(44), trainer.logprobs(make_samples(44)), 0)
        trainer.train(samples)
        return {name: w - before[name] for name, w in trainer.export().items()}

    plain, decayed = moved(0.0), moved(0.5)
    norms = [name for name in plain if "norm" in name]
    assert norms
    assert all(torch.equal(plain[name], decayed[name]) for name in norms)
    matrices = [name for name in plain if name.endswith("proj.weight")]
    assert all(not torch.equal(plain[name], decayed[name]) for name in matrices)


@pytest.mark.parametrize(
    ("decay", "expected"),
    # warm-up over 2 steps to 1e-3, then down to 1e-4 at step 6; at step 4 half of the way
    [("constant", [0.5e-3, 1e-3, 1e-3, 1e-3]), ("linear", [0.5e-3, 1e-3, 7.75e-4, 5.5e-4]),
     ("cosine", [0.5e-3, 1e-3, 8.6819805e-4, 5.5e-4])],
)  # fmt: skip
def test_the_learning_rate_follows_its_schedule(lab: Lab, decay: str, expected: list[float]) -> None:
    steps = {} if decay == "constant" else {"decay_steps": 6, "min_learning_rate": 1e-4}
    trainer = lab.open(learning_rate=1e-3, warmup_steps=2, decay=decay, **steps)
    rates = []
    for version in range(4):
        samples = make_samples(45)
        report = trainer.train(with_logprobs(samples, trainer.logprobs(samples), version))
        rates.append(report.learning_rate)
    assert rates == pytest.approx(expected)


def test_a_resumed_run_uses_the_rates_and_betas_it_is_told_now(lab: Lab, tmp_path: Path) -> None:
    trainer = lab.open(learning_rate=1e-3, weight_decay=0.1, adam_beta2=0.95, adam_eps=1e-8)
    samples = with_logprobs(make_samples(46), trainer.logprobs(make_samples(46)), 0)
    trainer.train(samples)
    trainer.save(tmp_path / "one")
    trainer = lab.open(learning_rate=2e-3, weight_decay=0.3, adam_beta2=0.9, adam_eps=1e-6)
    trainer.load(tmp_path / "one")
    samples = with_logprobs(samples, trainer.logprobs(samples), 1)
    assert trainer.train(samples).learning_rate == 2e-3
    groups = trainer._updater.optimizer.param_groups
    assert {group["betas"][1] for group in groups} == {0.9}
    assert {group["eps"] for group in groups} == {1e-6}
    assert {round(group["weight_decay"], 6) for group in groups} == {0.0, 0.3}
