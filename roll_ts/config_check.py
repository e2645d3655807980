"""What can be wrong with a configuration whose every value has the right type: values against each other, against the
policy, the model, the environment and this machine. Imports nothing heavy, so that a mistake costs no time.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Mapping
from pathlib import Path

from roll_ts.config import RecoveryOptions, RolloutOptions, RunConfig
from roll_ts.core.policies import policy_problems
from roll_ts.core.settings import Layout, Problem, check_settings
from roll_ts.trainers.architecture import read_architecture
from roll_ts.trainers.model_files import model_problems


def check_config(config: RunConfig) -> list[Problem]:
    """All problems that the values have with each other and with this machine."""
    settings = config.settings()
    found = check_settings(settings) + policy_problems(config.policy, settings)
    found = [problem._replace(key=_CORE_KEYS.get(problem.key, problem.key)) for problem in found]
    found += [
        Problem(f"trainer.{key}", repr(value), f"must be {must}", f"set it to a value that is {must}")
        for key, value, must in config.trainer.problems()
    ]
    found += _check_name(config) + _low_numbers(config) + _check_devices(config, settings.layout) + _check_model(config)
    found += _check_gpus(config, settings.layout)
    found += _check_environment(config)
    return found


_CORE_KEYS = (
    {f.name: f"rollout.{f.name}" for f in dataclasses.fields(RolloutOptions)}
    | {f.name: f"recovery.{f.name}" for f in dataclasses.fields(RecoveryOptions)}
    | {"evaluation_episodes": "evaluation.episodes", "canary_tolerance": "weights.canary_tolerance"}
)


# Where NVIDIA's kernel driver lists the GPUs of a machine.
_GPUS = Path("/proc/driver/nvidia/gpus")


def _check_name(config: RunConfig) -> list[Problem]:
    if config.name and Path(config.name).name == config.name:
        return []
    wrong = "is part of the run folder's name, so it may not be empty or hold a path"
    return [Problem("name", repr(config.name), wrong, "give a plain name; `out` may be any path")]


def _low_numbers(config: RunConfig) -> list[Problem]:
    lowest: list[tuple[str, float, float]] = [
        ("seed", config.seed, 0),
        ("steps", config.steps, 1),
        ("environment.workers", config.environment.workers, 1),
        ("environment.processes", config.environment.processes, 1),
        ("environment.episodes_per_process", config.environment.episodes_per_process, 0),
        ("environment.threads", config.environment.threads, 1),
        *((f"environment.limits.{name}", value, 0) for name, value in vars(config.environment.limits).items()),
        ("engine.kv_mib", config.engine.kv_mib, 1),
        ("engine.block_size", config.engine.block_size, 1),
        ("weights.canary_tokens", config.weights.canary_tokens, 1),
        ("replay_check.episodes", config.replay_check.episodes, 1),
        ("ray.object_store_mib", config.ray.object_store_mib, 80),
        *(("environment.observation_tokens", n, 1) for n in [config.environment.observation_tokens] if n is not None),
        *((f"replay_check.versions[{i}]", v, 0) for i, v in enumerate(config.replay_check.versions)),
    ]
    found = [
        Problem(key, repr(value), f"must be at least {low:g}", f"set {key} to {low:g} or more")
        for key, value, low in lowest
        if value < low
    ]
    for key, seconds in (("engine.tick_s", config.engine.tick_s),):
        if seconds <= 0:
            found.append(Problem(key, repr(seconds), "must be positive", "give a time in seconds, such as 0.03"))
    return found


def _check_devices(config: RunConfig, layout: Layout) -> list[Problem]:
    found: list[Problem] = []
    cores = os.cpu_count() or 1
    parallel = config.trainer.tensor_parallel
    if parallel > 0 and len(layout.train_devices) % parallel:
        found.append(
            Problem(
                "trainer.tensor_parallel",
                str(parallel),
                f"does not divide the {len(layout.train_devices)} train devices",
                "use a divisor, or train on other devices",
            )
        )
    if config.layout.device == "cpu":
        for device in sorted({d for rank in layout.ranks for d in rank} | set(layout.train_devices)):
            if not 0 <= device < cores:
                found.append(
                    Problem("layout", str(device), f"is no core of this machine (0..{cores - 1})", "use its cores")
                )
    return found


def _check_gpus(config: RunConfig, layout: Layout) -> list[Problem]:
    """A GPU that this machine lacks. Only its driver is asked, so that nothing heavy is imported."""
    if config.layout.device != "cuda":
        return []
    here = len(list(_GPUS.iterdir())) if _GPUS.is_dir() else 0
    asked = sorted({d for rank in layout.ranks for d in rank} | set(layout.train_devices))
    lacking = [device for device in asked if not 0 <= device < here]
    if not lacking:
        return []
    wrong = f"needs GPUs {lacking}, and this machine has {here or 'none'}"
    return [Problem("layout.device", "cuda", wrong, "run it on a machine with GPUs, or set layout.device: cpu")]


def _check_kv(config: RunConfig, layers: int, kv_heads: int, head_dim: int) -> list[Problem]:
    """A KV cache that one full context does not fit into: its turn could never be placed."""
    size = 4 if config.engine.dtype == "float32" else 2
    ways = min((len(rank) for rank in config.layout.ranks), default=1)
    a_token = 2 * layers * max(1, kv_heads // ways) * head_dim * size
    blocks = -(-config.rollout.max_context_tokens // config.engine.block_size)
    needed = -(-blocks * config.engine.block_size * a_token // (1 << 20))
    if needed <= config.engine.kv_mib:
        return []
    wrong = f"holds less than one context of {config.rollout.max_context_tokens} tokens, which takes {needed} MiB"
    fix = f"set engine.kv_mib to {needed} or more, better a multiple, or lower rollout.max_context_tokens"
    return [Problem("engine.kv_mib", str(config.engine.kv_mib), wrong, fix)]


def _check_model(config: RunConfig) -> list[Problem]:
    path, scratch, resume = config.model.path, config.model.scratch, config.trainer.resume
    found: list[Problem] = []
    if resume is not None and not Path(resume).is_dir():
        found.append(Problem("trainer.resume", resume, "is not a folder", "name a checkpoint folder of an earlier run"))
    if (path is None) == (scratch is None):
        said = "neither path nor scratch" if path is None else "both path and scratch"
        wrong = "exactly one must say where the first weights come from"
        return [*found, Problem("model", said, wrong, "keep one of them")]
    if path is not None:
        return found + _check_architecture(config, path)
    # AST: AST_INVARIANT(scratch is not None)
    assert scratch is not None, f"Invariant: scratch is not None, got scratch={scratch!r:.200}"
    # END AST 4b83cd
    low = [name for name, value in vars(scratch).items() if value <= 0]
    if low:
        return found + [Problem(f"model.scratch.{name}", repr(getattr(scratch, name)), *_POSITIVE) for name in low]
    if scratch.hidden % (32 * scratch.heads) or scratch.heads % scratch.kv_heads:
        wrong = f"must be a multiple of 32 * heads, and heads={scratch.heads} of kv_heads={scratch.kv_heads}"
        fix = "choose sizes that divide; the engines' kernels want heads of 32, 64, …"
        found.append(Problem("model.scratch.hidden", str(scratch.hidden), wrong, fix))
    found += _check_context("model.scratch.positions", scratch.positions, config)
    sizes = {"heads": scratch.heads, "kv_heads": scratch.kv_heads, "ffn": scratch.ffn}
    found += _check_kv(config, scratch.layers, scratch.kv_heads, scratch.hidden // scratch.heads)
    return found + _check_tensor_parallel(sizes, config)


_POSITIVE = ("must be positive", "give a number above 0")


def _check_architecture(config: RunConfig, path: str) -> list[Problem]:
    try:
        shape = read_architecture(path)
    except (FileNotFoundError, ValueError) as error:
        return [Problem("model.path", path, str(error), "name a folder in Hugging Face format of a supported model")]
    sizes = {name: getattr(shape, name) for name in ("heads", "kv_heads", "ffn", "vocab")}
    fix = "give the whole folder of a model in Hugging Face format"
    files = [Problem("model.path", f"{path}: {what}", wrong, fix) for what, wrong in model_problems(Path(path), shape)]
    files += _check_kv(config, shape.layers, shape.kv_heads, shape.head_dim)
    return files + _check_context("model.path", shape.positions, config) + _check_tensor_parallel(sizes, config)


def _check_context(key: str, positions: int, config: RunConfig) -> list[Problem]:
    wanted = config.rollout.max_context_tokens
    if positions >= wanted:
        return []
    wrong = f"has fewer positions than rollout.max_context_tokens={wanted}"
    return [Problem(key, str(positions), wrong, "give the model more positions, or lower the context")]


def _check_tensor_parallel(sizes: Mapping[str, int], config: RunConfig) -> list[Problem]:
    ways = config.trainer.tensor_parallel
    uneven = [f"{name}={size}" for name, size in sizes.items() if ways > 0 and size % ways]
    if not uneven:
        return []
    wrong = f"does not divide the model's {', '.join(uneven)}"
    return [Problem("trainer.tensor_parallel", str(ways), wrong, "use a divisor of all of them")]


def _check_environment(config: RunConfig) -> list[Problem]:
    from roll_ts.envs.registry import env_spec, make_env
    from roll_ts.envs.tokenizer import DEFAULT_ALPHABET

    options = config.environment
    try:
        spec = env_spec(options.name)
    except ValueError as error:
        return [Problem("environment.name", repr(options.name), str(error), "name one of ours, or the path of yours")]
    known = inspect.signature(spec.factory).parameters
    strange = sorted(set(spec.alphabet) - set(DEFAULT_ALPHABET)) if config.model.scratch is not None else []
    found = [
        Problem(
            "environment.name", options.name, f"uses characters that a scratch model lacks: {strange}", "use model.path"
        )
        for _ in strange[:1]
    ]
    found += [
        Problem(f"environment.arguments.{name}", repr(value), "is not an argument", f"known: {', '.join(known)}")
        for name, value in options.arguments.items()
        if name not in known
    ]
    if not found:
        try:
            make_env(options.name, **options.arguments).close()
        except (ValueError, TypeError) as error:
            found.append(
                Problem("environment.arguments", str(dict(options.arguments)), str(error), "correct the value")
            )
    return found
