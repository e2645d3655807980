"""The tensors inside a Megatron optimizer: to give their memory back, to save them, to load them.

Works on the torch (or Transformer Engine) optimizers that Megatron wraps, so that every wrapper is handled alike. State
belongs to one rank of one group shape: it is saved and loaded by rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch


def inner_optimizers(optimizer: Any) -> list[torch.optim.Optimizer]:
    """The plain optimizers inside Megatron's (chained) one."""
    return [o.optimizer for o in getattr(optimizer, "chained_optimizers", [optimizer])]


def state_tensors(optimizer: Any, parameters: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    """State, and master weights where they are not `parameters` themselves (or views of them)."""
    storages = {p.untyped_storage().data_ptr() for p in parameters}
    for inner in inner_optimizers(optimizer):
        for state in inner.state.values():
            yield from (v for v in state.values() if torch.is_tensor(v) and v.numel() > 1)
        for group in inner.param_groups:
            yield from (p for p in group["params"] if p.untyped_storage().data_ptr() not in storages)


def save_state(optimizer: Any, masters: bool) -> dict[str, Any]:
    """This rank's state, by reference. masters: also the full-precision weights, which a model file of rounded ones
    does not hold."""
    inner = inner_optimizers(optimizer)
    state: dict[str, Any] = {"inner": [o.state_dict() for o in inner]}
    if masters:
        state["masters"] = [[p.detach() for g in o.param_groups for p in g["params"]] for o in inner]
    return state


@torch.no_grad()
def load_state(optimizer: Any, state: dict[str, Any]) -> None:
    """Inverse of `save_state`, into an optimizer of the same shape."""
    inner = inner_optimizers(optimizer)
    for own, saved in zip(inner, state["inner"], strict=True):
        # cloned: torch's optimizers adopt what they are given, and storage read from a file cannot be given back
        cells = {key: {k: _clone(v) for k, v in cell.items()} for key, cell in saved["state"].items()}
        # What was learned is the state; rates, decay and betas are the configuration's, also when it has changed since.
        groups = [
            {**old, **{key: value for key, value in new.items() if key not in ("params", "step")}}
            for old, new in zip(saved["param_groups"], own.state_dict()["param_groups"], strict=True)
        ]
        own.load_state_dict({"state": cells, "param_groups": groups})
    if "masters" in state:
        for own, masters in zip(inner, state["masters"], strict=True):
            parameters = (p for group in own.param_groups for p in group["params"])
            for parameter, master in zip(parameters, masters, strict=True):
                parameter.copy_(master)


def _clone(value: Any) -> Any:
    return value.clone() if torch.is_tensor(value) else value
