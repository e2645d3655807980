"""The trainer on real Megatron-core, one process."""

import gc
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.distributed import HashStore

from roll_ts.trainers.algorithms.advantages import advantages as advantages_of
from roll_ts.trainers.protocol import LogprobMismatch, TrainerConfig
from roll_ts.trainers.sample import Sample
from roll_ts.trainers.scratch import ScratchModel, make_model
from tests.roll_ts.trainers.helpers import TINY, make_samples, with_logprobs

pytestmark = pytest.mark.engines


class Lab:
    """Opens trainers one after the other: Megatron allows one per process."""

    def __init__(self) -> None:
        self.trainer = None

    def open(self, model: Path, **settings: object):  # type: ignore[no-untyped-def]
        from roll_ts.trainers.megatron import MegatronTrainer

        self.close()
        config = TrainerConfig(model=str(model), **settings)  # type: ignore[arg-type]
        self.trainer = MegatronTrainer(config, 0, 1, HashStore())
        return self.trainer

    def close(self) -> None:
        if self.trainer is not None:
            self.trainer.close()
        self.trainer = None


@pytest.fixture
def lab() -> Iterator[Lab]:
    lab = Lab()
    yield lab
    lab.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("scratch") / "tiny", 0, TINY)


def on_policy(trainer, samples: list[Sample]) -> list[Sample]:  # type: ignore[no-untyped-def]
    return with_logprobs(samples, trainer.logprobs(samples), trainer.version)


@pytest.mark.parametrize("shape", [TINY, replace(TINY, tied=True)], ids=["untied", "tied"])
def test_logprobs_greedy_tokens_and_export_agree_with_transformers(
    lab: Lab, tmp_path: Path, shape: ScratchModel
) -> None:
    from transformers import AutoModelForCausalLM

    folder = make_model(tmp_path / "m", 3, shape)
    trainer, samples = lab.open(folder), make_samples(1)
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for sample, ours in zip(samples, trainer.logprobs(samples), strict=True):
        tokens = torch.tensor(sample.tokens[None]).long()
        with torch.no_grad():
            scores = theirs(tokens).logits[0, :-1].log_softmax(-1)
        expected = scores.gather(1, tokens[0, 1:, None])[:, 0].numpy()
        assert ours[0] == 0
        np.testing.assert_allclose(ours[1:], expected, atol=2e-5)
    prompt = torch.tensor(samples[0].tokens[None, :5]).long()
    with torch.no_grad():
        said = theirs.generate(prompt, max_new_tokens=4, do_sample=False, eos_token_id=None)
        scores = theirs(said).logits[0, 4:-1].log_softmax(-1)
    tokens, logprobs = trainer.greedy(prompt[0].tolist(), 4)
    assert tokens == said[0, 5:].tolist()
    np.testing.assert_allclose(logprobs, scores.max(-1).values.numpy(), atol=2e-5)
    exported, source = trainer.export(), load_file(folder / "model.safetensors")
    assert set(exported) == set(source)
    assert all(torch.equal(exported[name], source[name]) for name in source)


def test_one_update_is_the_update_plain_torch_makes(lab: Lab, model: Path) -> None:
    """The loss, the clipped gradient and the Adam step against an independent model under torch's own optimizer."""
    from transformers import AutoModelForCausalLM

    trainer = lab.open(model, learning_rate=1e-3, grad_clip=0.5, micro_batch_tokens=200)
    samples = on_policy(trainer, make_samples(2))
    report = trainer.train(samples)
    theirs = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    optimizer = torch.optim.AdamW(theirs.parameters(), lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0)
    advantages = advantages_of("grpo", [s.reward for s in samples], [s.group for s in samples])
    trained, loss = sum(s.generated for s in samples), torch.zeros(())
    for sample, advantage in zip(samples, advantages, strict=True):
        tokens = torch.tensor(sample.tokens[None]).long()
        scores = theirs(tokens).logits[0, :-1].log_softmax(-1).gather(1, tokens[0, 1:, None])[:, 0]
        ratio = (scores - scores.detach()).exp()
        loss = loss - (ratio * advantage)[torch.tensor(sample.loss_mask[1:])].sum() / trained
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5).item()
    optimizer.step()
    assert (report.version, trainer.version, report.trained_tokens) == (1, 1, trained)
    assert report.loss == pytest.approx(loss.item(), abs=1e-5)
    assert report.grad_norm == pytest.approx(norm, rel=1e-4)
    ours = trainer.export()
    for name, weight in theirs.state_dict().items():
        # Adam's first step is lr * sign(gradient): where a gradient is all but zero, rounding decides the sign
        far = (ours[name] - weight).abs() > 1e-5
        assert far.float().mean() < 1e-3, name


def test_training_raises_the_probability_of_what_was_rewarded(lab: Lab, model: Path) -> None:
    trainer = lab.open(model, learning_rate=3e-3)
    samples = [replace(s, reward=float(i % 2)) for i, s in enumerate(make_samples(3))]

    def gap() -> float:
        totals = [lp[s.loss_mask].mean() for s, lp in zip(samples, trainer.logprobs(samples), strict=True)]
        return float(np.mean(totals[1::2]) - np.mean(totals[::2]))

    before = gap()
    for _ in range(3):
        report = trainer.train(on_policy(trainer, samples))
        assert report.logprob_check.share == 1.0
    assert gap() > before + 0.1
    assert trainer.version == 3


def test_stale_tokens_get_weights_and_are_left_out_of_the_check(lab: Lab, model: Path) -> None:
    trainer = lab.open(model, truncate_weight=1.5)
    samples = on_policy(trainer, make_samples(4))
    trainer.train(samples)
    half = [replace(s, versions=np.where(s.loss_mask, 0, -1)) for s in samples[:8]]
    fresh = on_policy(trainer, samples[8:])
    planted = replace(half[0], logprobs=np.where(half[0].loss_mask, half[0].logprobs - 1, 0))
    report = trainer.train([planted, *half[1:], *fresh])
    old, new = sum(s.generated for s in half), sum(s.generated for s in fresh)
    assert report.staleness == {0: new, 1: old}
    assert (report.logprob_check.n, report.logprob_check.share) == (new, pytest.approx(new / (old + new)))
    # the planted sample's tokens look e times likelier now than when sampled: truncated at 1.5
    assert report.truncated_share == pytest.approx(planted.generated / (old + new), abs=0.02)
    assert report.mean_weight != pytest.approx(1.0, abs=1e-3)


def test_an_off_by_one_in_the_logprobs_is_caught_before_any_weight_changes(lab: Lab, model: Path) -> None:
    trainer = lab.open(model)
    samples, before = on_policy(trainer, make_samples(5)), trainer.export()
    shifted = [
        replace(s, logprobs=np.where(s.loss_mask, np.minimum(np.roll(lp, -1), 0), 0))
        for s, lp in zip(samples, trainer.logprobs(samples), strict=True)
    ]
    with pytest.raises(LogprobMismatch, match=r"check\.worst='t"):
        trainer.train(shifted)
    assert trainer.version == 0
    assert all(torch.equal(w, before[n]) for n, w in trainer.export().items())
    assert trainer.train(samples).logprob_check.ok


def test_a_stale_weight_under_a_fresh_version_is_caught(lab: Lab, model: Path) -> None:
    trainer = lab.open(model)
    samples = on_policy(trainer, make_samples(6))
    trainer.train(samples)
    lying = [replace(s, versions=np.where(s.loss_mask, 1, -1)) for s in samples]
    with pytest.raises(LogprobMismatch):
        trainer.train(lying)
    trainer = lab.open(model, strict_logprobs=False)
    trainer.train(samples)
    assert not trainer.train(lying).logprob_check.ok


def test_several_minibatches_and_epochs_clip_and_count_each_token_once_per_epoch(lab: Lab, model: Path) -> None:
    trainer = lab.open(model, learning_rate=1e-2, epochs=2, minibatches=3, clip_low=0.1, clip_high=0.1)
    samples = on_policy(trainer, make_samples(7))
    report = trainer.train(samples)
    assert trainer.version == 1
    assert report.mean_weight == pytest.approx(1.0, abs=1e-5)
    assert 0 < report.clipped_share < 1
    assert report.logprob_check.n == report.trained_tokens


@pytest.mark.parametrize("distributed", [False, True], ids=["plain", "distributed"])
def test_released_memory_comes_back_bit_for_bit(lab: Lab, model: Path, distributed: bool) -> None:
    def run(release: bool) -> dict[str, torch.Tensor]:
        trainer = lab.open(model, distributed_optimizer=distributed)
        samples = make_samples(8)
        for _ in range(2):
            trainer.train(on_policy(trainer, samples))
            if release:
                size = sum(p.numel() * 4 for p in trainer.export().values())
                freed = trainer.release()
                assert freed >= 3 * size  # two moments and the gradients
                assert trainer.export().keys()
                freed += trainer.release(["parameters"])
                assert freed >= 4 * size
                with pytest.raises(RuntimeError, match=r"got \['parameters'\] \(what='export'\) - call restore first"):
                    trainer.export()
                with pytest.raises(RuntimeError, match=r"released must be empty.*what='train'"):
                    trainer.train(samples)
                assert trainer.release() == 0
                assert trainer.restore() >= 4 * size
        weights: dict[str, torch.Tensor] = trainer.export()
        return weights

    plain, released = run(False), run(True)
    assert all(torch.equal(plain[name], released[name]) for name in plain)


def test_r22_parameters_are_not_released_before_the_rest(lab: Lab, model: Path) -> None:
    trainer = lab.open(model)
    with pytest.raises(RuntimeError, match=r"got \['activations', 'gradients', 'optimizer'\] - release these before"):
        trainer.release(["parameters"])
    with pytest.raises(ValueError, match=r"has \['weights'\] outside"):
        trainer.release(["weights"])


def test_released_memory_really_leaves_the_process(lab: Lab, tmp_path: Path) -> None:
    def resident() -> int:
        gc.collect()
        return int(psutil.Process().memory_info().rss)

    folder = make_model(tmp_path / "m", 0, ScratchModel(hidden=256, layers=6, ffn=1024))
    trainer = lab.open(folder)
    samples = make_samples(9, count=4)
    trainer.train(on_policy(trainer, samples))
    before = resident()
    freed = trainer.release() + trainer.release(["parameters"])
    after = resident()
    assert freed > 80e6
    assert before - after > 0.8 * freed
    assert trainer.restore() > 80e6
    trainer.train(on_policy(trainer, samples))


@pytest.mark.parametrize("distributed", [False, True], ids=["plain", "distributed"])
def test_training_resumes_from_a_checkpoint_as_if_it_had_never_stopped(
    lab: Lab, model: Path, tmp_path: Path, distributed: bool
) -> None:
    samples = make_samples(10)
    trainer = lab.open(model, distributed_optimizer=distributed, warmup_steps=4)
    trainer.train(on_policy(trainer, samples))
    trainer.save(tmp_path / "one")
    saved = trainer.export()
    trainer.train(on_policy(trainer, samples))
    straight = trainer.export()
    on_disk = load_file(tmp_path / "one" / "model.safetensors")
    assert all(torch.equal(on_disk[n], saved[n]) for n in saved)
    assert {"config.json", "tokenizer.json"} <= set(os.listdir(tmp_path / "one"))

    trainer = lab.open(model, distributed_optimizer=distributed, warmup_steps=4)
    trainer.load(tmp_path / "one")
    assert trainer.version == 1
    trainer.release()
    trainer.restore()
    trainer.train(on_policy(trainer, samples))
    resumed = trainer.export()
    assert all(torch.equal(resumed[n], straight[n]) for n in straight)
    with pytest.raises(FileExistsError):
        trainer.save(tmp_path / "one")


def test_a_gradient_that_is_not_finite_leaves_the_weights_alone(lab: Lab, model: Path) -> None:
    trainer = lab.open(model)
    samples = on_policy(trainer, make_samples(11))
    trainer.train(samples)
    before = trainer.export()
    accumulate = trainer._updater.accumulate

    def poisoned(*arguments: object) -> object:
        found = accumulate(*arguments)
        trainer._updater.ddp.buffers[0].grad_data[7] = float("nan")
        return found

    trainer._updater.accumulate = poisoned
    with pytest.raises(FloatingPointError, match="weights are left unchanged"):
        trainer.train(on_policy(trainer, samples))
    assert trainer.version == 1
    assert all(torch.equal(w, before[n]) for n, w in trainer.export().items())


def test_log_probs_of_an_impossible_token_overflow_nothing(lab: Lab, model: Path) -> None:
    trainer = lab.open(model, truncate_weight=None)
    samples = make_samples(11)
    trainer.train(on_policy(trainer, samples))
    impossible = [
        replace(s, logprobs=np.where(s.loss_mask, -1e30, 0), versions=np.where(s.loss_mask, 0, -1)) for s in samples
    ]
    assert np.isfinite(trainer.train(impossible).grad_norm)


def test_samples_the_model_cannot_take_are_named(lab: Lab, model: Path) -> None:
    trainer = lab.open(model)
    good = make_samples(12)
    long = Sample(np.zeros(300), np.zeros(300), np.zeros(300), np.full(300, -1), group="g", trajectory="L", reward=0.0)
    strange = replace(good[0], tokens=good[0].tokens + 64, trajectory="S")
    future = replace(good[0], versions=np.where(good[0].loss_mask, 5, -1), trajectory="F")
    for bad, message in (
        ([], r"got 0 \(len\(samples\)=0\) - without a generated token"),
        ([*good, long], r"at most 256, got 300 \(s.trajectory='L'\)"),
        ([*good, strange], r"at most 63, got \d+ \(s.trajectory='S'\)"),
        ([*good, future], r"at most 0, got 5 \(s.trajectory='F'\)"),
    ):
        with pytest.raises(ValueError, match=message):
            trainer.train(bad)


def test_a_second_trainer_in_the_process_and_a_bad_shape_are_refused(lab: Lab, model: Path) -> None:
    from roll_ts.trainers.megatron import MegatronTrainer

    lab.open(model)
    with pytest.raises(RuntimeError, match="one trainer per process"):
        MegatronTrainer(TrainerConfig(model=str(model)), 0, 1, HashStore())
    with pytest.raises(ValueError, match="world_size must be divisible by 2, got 1"):
        MegatronTrainer(TrainerConfig(model=str(model), tensor_parallel=2), 0, 1, HashStore())


def test_a_failed_start_leaves_nothing_in_the_way_of_the_next(lab: Lab, model: Path, tmp_path: Path) -> None:
    broken = make_model(tmp_path / "broken", 0, TINY)
    weights = load_file(broken / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, broken / "model.safetensors")
    before = torch.cuda.current_device
    with pytest.raises(KeyError, match="up_proj"):
        lab.open(broken)
    assert torch.cuda.current_device is before
    assert lab.open(model).version == 0


@pytest.mark.parametrize(("trainer_format", "engine_format"), [("bfloat16", "float32"), ("float32", "bfloat16")])
def test_what_bfloat16_rounds_is_allowed_and_a_stale_weight_is_not(
    lab: Lab, model: Path, trainer_format: str, engine_format: str
) -> None:
    """Another trainer in the engine's format takes the engine's place: it computes with its own sums."""

    def engine_logprobs(versions: int) -> list[list[Sample]]:
        engine = lab.open(model, dtype=engine_format, learning_rate=1e-3, strict_logprobs=False)
        found = []
        for _ in range(versions + 1):
            samples = on_policy(engine, make_samples(30))
            found.append(samples)
            engine.train(samples)
        return found

    first, second = engine_logprobs(1)
    settings = {"dtype": trainer_format, "rollout_dtype": engine_format, "learning_rate": 1e-3}
    trainer = lab.open(model, **settings)
    check = trainer.train(first).logprob_check
    assert check.ok and check.p99 > 1e-4, "float32's bound would refuse it"
    assert trainer.train(second).logprob_check.ok
    trainer = lab.open(model, **settings)
    trainer.train(first)
    stale = [replace(s, versions=np.where(s.loss_mask, 1, -1)) for s in first]
    with pytest.raises(LogprobMismatch, match="not the version it claims"):
        trainer.train(stale)
