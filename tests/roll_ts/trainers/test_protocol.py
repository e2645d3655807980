import json
import subprocess
import sys

import pytest

from roll_ts.trainers.protocol import LogprobCheck, TrainerConfig, TrainReport


def test_the_defaults_are_sound() -> None:
    assert TrainerConfig(model="x").problems() == []


def test_every_bad_value_is_found_in_one_go() -> None:
    config = TrainerConfig(model="x", learning_rate=0, truncate_weight=0.5, clip_low=0.2, tensor_parallel=0)
    assert {key for key, _, _ in config.problems()} == {
        "learning_rate",
        "truncate_weight",
        "clip_high",
        "tensor_parallel",
    }
    with pytest.raises(ValueError, match=r"'learning_rate': 0, .*'tensor_parallel': 0.*: 'a positive number'"):
        config.require_sound()


def test_a_report_can_be_written_to_a_journal() -> None:
    check = LogprobCheck(n=3, share=1.0, max=1e-6, p99=1e-6, tolerance=1e-4)
    report = TrainReport(1, 2, 3, 3, 0.1, 0.2, 0.3, 0.4, 1.0, 0.0, 0.0, 2.0, {0: 3}, check, {"total": 0.5})
    plain = json.loads(json.dumps(report.as_dict()))
    assert plain["logprob_check"]["n"] == 3
    assert "VIOLATED" not in str(check)


def test_protocol_and_samples_are_usable_without_torch() -> None:
    code = "import sys, roll_ts.trainers.protocol, roll_ts.trainers.sample; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
