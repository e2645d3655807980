"""A configuration of ours out of one of ROLL's, and all that is wrong with theirs, found before any model loads.

Each finding says when ROLL would tell it: at its own configuration, after it has loaded models on a cluster, or never.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from roll_ts.interop.roll_keys import MANAGER, MANAGERS, TOP, WORKER, WORKERS
from roll_ts.interop.roll_yaml import BadFile, devices_of, read_roll_yaml

When = Literal["at its configuration", "after the models are loaded", "never"]
_ADVANTAGES = {"grpo": "grpo", "reinforce": "reinforce_pp", "step_reinforce": "reinforce_pp", "rloo": "rloo"}
_PLACE = "your_package.your_module:SPEC"


@dataclass(frozen=True)
class Finding:
    """Something wrong with ROLL's file, or that our configuration cannot say. `roll_says`: when ROLL would tell it."""

    key: str
    value: str
    wrong: str
    fix: str
    roll_says: When = "never"
    error: bool = True

    def __str__(self) -> str:
        kind = "error" if self.error else "note"
        value = f" = {self.value}" if self.value else ""
        when = "ROLL never says so" if self.roll_says == "never" else f"ROLL says so {self.roll_says}"
        return f"{kind}: {self.key}{value}: {self.wrong}; {self.fix} ({when})"


@dataclass
class Imported:
    """Our configuration as plain data, and the findings. `config` is what can be said; it may still need values."""

    config: dict[str, Any]
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong with ROLL's file."""
        return not any(finding.error for finding in self.findings)

    def text(self, source: str) -> str:
        """The configuration as YAML, with what has to be filled in said at its head."""
        notes = "".join(f"# {finding.key}: {finding.wrong}; {finding.fix}\n" for finding in self.findings)
        return f"# Imported from {source}.\n{notes}{yaml.safe_dump(self.config, sort_keys=False)}"


@dataclass(frozen=True)
class _Devices:
    train: tuple[int, ...]
    infer: tuple[int, ...]
    reference: tuple[int, ...]
    reward: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """Rollout devices that are not lent to training, those of reward models aside."""
        return tuple(device for device in self.infer if device not in self.train)


def import_roll(path: Path) -> Imported:
    """Read ROLL's file. Raises BadFile when it cannot be read at all."""
    file = read_roll_yaml(path)
    data = file.data
    # What a defaults file adds is meant for several pipelines, and what is referred to has its use.
    findings = list(_unknown_keys(data, file.own - file.referred - {"hydra", "defaults"}))
    for name in file.absent:
        wrong = "is named and not there, so its keys are unknown here"
        findings.append(Finding("defaults", name, wrong, "bring it along", "at its configuration", error=False))
    try:
        devices = _Devices(
            *(
                devices_of(_at(data, name, "device_mapping"), f"{name}.device_mapping")
                for name in ("actor_train", "actor_infer", "reference", "reward")
            )
        )
    except BadFile as error:
        key, _, wrong = str(error).partition(": ")
        findings.append(Finding(key.split(" = ")[0], "", wrong, "write list(range(0, 8)) or a list", "never"))
        return Imported({}, findings)
    findings += _about_devices(data, devices)
    findings += _about_groups(data)
    config = _config(data, devices, path.stem)
    findings += _about_ours(data, config)
    return Imported(config, findings)


def _unknown_keys(data: Mapping[str, Any], own: Set[str]) -> Iterator[Finding]:
    places = [("", data, TOP), *((name, data.get(name), WORKER) for name in WORKERS)]
    places += [(name, data.get(name), MANAGER) for name in MANAGERS]
    for prefix, section, known in places:
        if not isinstance(section, Mapping):
            continue
        for key in section:
            if key in known or (not prefix and key not in own):
                continue
            near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.8)
            fix = f"did you mean {near[0]}?" if near else "remove it"
            name = f"{prefix}.{key}" if prefix else str(key)
            yield Finding(name, repr(section[key])[:60], "ROLL does not know this key and drops it", fix, error=False)


def _about_devices(data: Mapping[str, Any], devices: _Devices) -> Iterator[Finding]:
    late: When = "after the models are loaded"
    ratio = float(data.get("async_generation_ratio") or 0)
    partial = bool(set(devices.train) & set(devices.infer)) and set(devices.train) != set(devices.infer)
    for name, found in (("actor_train", devices.train), ("actor_infer", devices.infer)):
        if not found:
            yield Finding(f"{name}.device_mapping", "", "names no device", "write list(range(0, 8))", late)
    outside = sorted(set(devices.train) - set(devices.infer))
    if partial and outside:
        wrong = f"trains on {outside}, where nothing rolls out, and shares others"
        yield Finding("actor_train.device_mapping", str(list(devices.train)), wrong, "share all of them or none", late)
    if partial and ratio == 0:
        wrong = "without asynchrony nothing rolls out while training, so sharing part of the devices gains nothing"
        yield Finding("async_generation_ratio", "0", wrong, "set it above 0, or let both use the same devices", late)
    if devices.reference and set(devices.reference) != set(devices.train):
        wrong = f"differs from the train devices {list(devices.train)}"
        yield Finding("reference.device_mapping", str(list(devices.reference)), wrong, "use the train devices", late)
    size = _rank_size(data)
    if devices.infer and len(devices.infer) % size:
        wrong = f"{len(devices.infer)} devices make no whole engines of {size}"
        yield Finding("actor_infer.device_mapping", str(list(devices.infer)), wrong, "give a multiple", late)
    ways = _train_ways(data)
    if devices.train and len(devices.train) % ways:
        wrong = f"{len(devices.train)} devices are no multiple of TP × PP × CP = {ways}"
        yield Finding("actor_train.device_mapping", str(list(devices.train)), wrong, "give a multiple", late)
    ranks = _ranks(devices.infer, size)
    cut = [rank for rank in ranks if 0 < len(set(rank) & set(devices.train)) < len(rank)]
    if partial and cut:
        wrong = f"training takes a part of the engines on {[list(rank) for rank in cut[:3]]}"
        yield Finding("actor_train.device_mapping", str(list(devices.train)), wrong, "take whole engines", late)


def _about_groups(data: Mapping[str, Any]) -> Iterator[Finding]:
    early: When = "at its configuration"
    for name in MANAGERS:
        manager = data.get(name)
        if not isinstance(manager, Mapping):
            continue
        groups, tags = manager.get("num_env_groups"), manager.get("tags") or []
        partition = manager.get("num_groups_partition")
        if isinstance(partition, list) and sum(partition) != groups:
            wrong = f"adds up to {sum(partition)}, and num_env_groups is {groups}"
            yield Finding(f"{name}.num_groups_partition", str(partition), wrong, "make them agree", early)
        unknown = [tag for tag in tags if tag not in (data.get("custom_envs") or {})]
        if unknown:
            wrong = f"names environments that custom_envs lacks: {unknown}"
            yield Finding(f"{name}.tags", str(tags), wrong, "add them to custom_envs", early)
    train = data.get("train_env_manager")
    if not isinstance(train, Mapping):
        return
    size, groups = int(train.get("group_size") or 1), int(train.get("num_env_groups") or 0)
    batch, ratio = int(data.get("rollout_batch_size") or 0), float(data.get("async_generation_ratio") or 0)
    if data.get("adv_estimator") == "grpo" and size == 1:
        wrong = "a group of one has no advantage: nothing is learned"
        yield Finding("train_env_manager.group_size", "1", wrong, "use groups of 4 or more, or another adv_estimator")
    if batch % size:
        wrong = f"is no multiple of the group size {size}"
        yield Finding("rollout_batch_size", str(batch), wrong, "give a multiple: groups are trained whole")
    places = groups * size
    if places and batch * (1 + ratio) > places and ratio > 0:
        asked = batch * (1 + ratio)
        wrong = f"and the async ratio {ratio:g} ask for {asked:g} trajectories at a time of {places} environments"
        fix = "raise num_env_groups; otherwise rollout cannot run ahead as far as it may"
        yield Finding("rollout_batch_size", str(batch), wrong, fix, error=False)
    elif places and places < batch and train.get("max_traj_per_env") == 1:
        wrong = f"asks for more trajectories than the {places} environments may play, one each"
        yield Finding("rollout_batch_size", str(batch), wrong, "raise num_env_groups or max_traj_per_env")


def _about_ours(data: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[Finding]:
    """What our configuration cannot say, or needs to be filled in."""
    if config["environment"]["name"] == _PLACE:
        tags = (data.get("train_env_manager") or {}).get("tags")
        wrong = f"ROLL's environments {tags} are its own code"
        yield Finding("environment.name", _PLACE, wrong, "name an EnvSpec of yours (docs/environments.md)", error=False)
    if not Path(config["model"]["path"]).is_dir():
        wrong = "is a name on a hub"
        fix = "give the folder of the downloaded model"
        yield Finding("model.path", config["model"]["path"], wrong, fix, error=False)
    kind = data.get("adv_estimator")
    if kind not in _ADVANTAGES and kind is not None:
        wrong = f"is not offered here; {config['trainer']['advantage']} was taken"
        yield Finding("adv_estimator", str(kind), wrong, "choose one of docs/algorithms.md", error=False)
    for name in ("critic", "reward"):
        if _at(data, name, "device_mapping") is not None:
            wrong = "models of rewards and values have no place here"
            yield Finding(name, "", wrong, "compute rewards in the environment", error=False)


def _config(data: Mapping[str, Any], devices: _Devices, stem: str) -> dict[str, Any]:
    ratio = float(data.get("async_generation_ratio") or 0)
    same = set(devices.train) == set(devices.infer)
    apart = not set(devices.train) & set(devices.infer)
    policy = "colocated" if same else "disaggregated" if apart else "time_sharing"
    train = data.get("train_env_manager") or {}
    size = int(train.get("group_size") or 1)
    tags = train.get("tags") or []
    limits = [_at(data, "custom_envs", tag, "max_steps") for tag in tags]
    turns = [limit for limit in limits if isinstance(limit, int)]
    context = int(data.get("sequence_length") or 8192)
    reply = _at(data, "actor_infer", "generating_args", "max_new_tokens") or data.get("response_length") or context
    running = data.get("max_running_requests")
    batch = int(data.get("rollout_batch_size") or size)
    redundant = int(train.get("group_size_redundancy") or 0)
    return {
        "name": str(data.get("exp_name") or stem).replace("/", "-"),
        "policy": policy,
        "steps": int(data.get("max_steps") or 1),
        "seed": int(data.get("seed") or 0),
        "layout": {
            "ranks": [list(rank) for rank in _ranks(devices.infer, _rank_size(data))],
            "train_devices": list(devices.train),
            "device": "cuda",
        },
        "rollout": {
            "groups_per_batch": max(1, batch // size),
            "group_size": size,
            "async_ratio": 0.0 if policy == "colocated" else ratio,
            "max_turns": max(turns, default=int(data.get("max_actions_per_traj") or 10)),
            "max_reply_tokens": min(int(reply), context),
            "max_context_tokens": context,
            **({"max_running_per_rank": int(running)} if running else {}),
            **({"redundant_members": redundant} if redundant else {}),
        },
        "environment": {"name": _PLACE, "arguments": {}},
        "model": {"path": str(data.get("pretrain") or "")},
        "engine": {"dtype": _dtype(data, "actor_infer")},
        "trainer": _trainer(data),
        "evaluation": {"episodes": int(data.get("val_batch_size") or 0)},
        "recovery": {"checkpoint_every": int(data.get("save_steps") or 0)},
    }


def _trainer(data: Mapping[str, Any]) -> dict[str, Any]:
    given = _at(data, "actor_train", "training_args") or {}
    found: dict[str, Any] = {
        "learning_rate": float(given.get("learning_rate") or 1e-6),
        "weight_decay": float(given.get("weight_decay") or 0.0),
        "warmup_steps": int(given.get("warmup_steps") or 0),
        "grad_clip": float(data.get("max_grad_norm") or 1.0),
        "epochs": int(data.get("ppo_epochs") or 1),
        "advantage": _ADVANTAGES.get(str(data.get("adv_estimator")), "grpo"),
        "loss_norm": "token" if data.get("loss_agg_mode") == "token-mean" else "sample",
        "tensor_parallel": _strategy(data, "actor_train", "tensor_model_parallel_size"),
        "dtype": _dtype(data, "actor_train"),
    }
    kl = float((data.get("kl_loss_coef") if data.get("use_kl_loss") else data.get("init_kl_coef")) or 0.0)
    found |= {"kl_weight": kl} if kl else {}
    entropy = float(data.get("entropy_loss_coef") or 0.0)
    found |= {"entropy_weight": entropy} if entropy else {}
    if found["epochs"] > 1:  # with one pass over the batch no clip acts, and `--check` refuses it
        ranged = data.get("use_pg_clip_range")
        clip = float(data.get("pg_clip") or 0.2)
        found["clip_low"] = float(data.get("pg_clip_low") or clip) if ranged else clip
        found["clip_high"] = float(data.get("pg_clip_high") or clip) if ranged else clip
    return found


def _at(data: Mapping[str, Any], *path: str) -> Any:
    found: Any = data
    for name in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found


def _strategy(data: Mapping[str, Any], worker: str, key: str, default: int = 1) -> int:
    return int(_at(data, worker, "strategy_args", "strategy_config", key) or default)


def _rank_size(data: Mapping[str, Any]) -> int:
    """Devices of one engine: vLLM says tensor_parallel_size, sglang num_gpus_per_worker."""
    pipeline = _strategy(data, "actor_infer", "pipeline_parallel_size")
    tensor = _strategy(data, "actor_infer", "tensor_parallel_size")
    return max(tensor * pipeline, int(_at(data, "actor_infer", "num_gpus_per_worker") or 1))


def _train_ways(data: Mapping[str, Any]) -> int:
    kinds = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
    ways = 1
    for kind in kinds:
        ways *= _strategy(data, "actor_train", kind)
    return ways


def _ranks(devices: Sequence[int], size: int) -> list[tuple[int, ...]]:
    return [tuple(devices[at : at + size]) for at in range(0, len(devices), size)]


def _dtype(data: Mapping[str, Any], worker: str) -> str:
    said = str(_at(data, worker, "model_args", "dtype") or "bf16")
    return {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}.get(said, said)
