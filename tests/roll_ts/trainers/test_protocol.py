import json
import subprocess
import sys

import pytest

from roll_ts.trainers.protocol import LogprobCheck, TrainerConfig, TrainReport
from roll_ts.trainers.tolerance import Tolerance


def test_the_defaults_are_sound() -> None:
    assert TrainerConfig(model="x").problems() == []


def test_every_bad_value_is_found_in_one_go() -> None:
    config = TrainerConfig(model="x", learning_rate=0, truncate_weight=0.5, clip_low=0.2, tensor_parallel=0)
    assert {key for key, _, _ in config.problems()} == {
        "learning_rate",
        "truncate_weight",
        "clip_low",
        "clip_high",
        "tensor_parallel",
    }
    with pytest.raises(ValueError, match=r"'learning_rate': 0, .*'tensor_parallel': 0.*: 'a positive number'"):
        config.require_sound()


def test_a_report_can_be_written_to_a_journal() -> None:
    check = LogprobCheck(n=3, share=1.0, max=1e-6, p99=1e-6, tolerance=Tolerance(1e-4, 1e-4))
    report = TrainReport(
        version=1,
        samples=2,
        tokens=3,
        trained_tokens=3,
        loss=0.1,
        grad_norm=0.2,
        mean_reward=0.3,
        success_rate=0.4,
        mean_weight=1.0,
        truncated_share=0.0,
        rejected_share=0.0,
        clipped_share=0.0,
        mean_nll=2.0,
        reference_kl=0.0,
        entropy=0.0,
        stepped=True,
        learning_rate=1e-3,
        staleness={0: 3},
        logprob_check=check,
        seconds={"total": 0.5},
    )
    plain = json.loads(json.dumps(report.as_dict()))
    assert plain["logprob_check"]["n"] == 3
    assert "VIOLATED" not in str(check)


def test_protocol_and_samples_are_usable_without_torch() -> None:
    code = "import sys, roll_ts.trainers.protocol, roll_ts.trainers.sample; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"clip_low": 0.2, "clip_high": 0.2}, "clip_low"),
        ({"dual_clip": 3.0}, "clip_low"),
        ({"dual_clip": 0.5, "epochs": 2}, "dual_clip"),
        ({"reject_level": "token"}, "reject_level"),
        ({"reject_high": 2.0}, "reject_level"),
        ({"reject_level": "token", "reject_high": 0.5}, "reject_high"),
        ({"kl_weight": 0.1, "kl_estimator": "k1"}, "kl_estimator"),
        ({"decay": "cosine"}, "decay_steps"),
        ({"decay": "cosine", "decay_steps": 5, "warmup_steps": 5}, "decay_steps"),
        ({"decay_steps": 5}, "decay_steps"),
        ({"min_learning_rate": 1.0}, "min_learning_rate"),
        ({"advantage": "gae"}, "advantage"),
        ({"loss_norm": "mean"}, "loss_norm"),
        ({"ratio": "turn"}, "ratio"),
    ],
)
def test_a_setting_without_effect_or_sense_is_a_problem(settings: dict[str, object], key: str) -> None:
    assert key in {found for found, _, _ in TrainerConfig(model="x", **settings).problems()}  # type: ignore[arg-type]


def test_a_clip_acts_with_a_second_epoch_or_minibatch() -> None:
    assert TrainerConfig(model="x", clip_low=0.2, clip_high=0.28, dual_clip=3.0, minibatches=2).problems() == []
