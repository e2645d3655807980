"""The two ends of a weight transfer, for either way: a broadcast group, or Ray's object store.

The trainer opens a transfer and gets a `Route`; every engine joins it by that route; then the trainer sends and the
engines receive at the same time. Each transfer has an id of its own that is never used again, so a second try after a
failure cannot meet the remains of the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from roll_ts.weights.rendezvous import GroupSpec

if TYPE_CHECKING:
    import torch
    from torch.distributed import TCPStore

    from roll_ts.weights.broadcast import WeightGroup

TRAINER = "trainer"


@dataclass(frozen=True)
class TransferPlan:
    """What the controller asks for: the transfer's id, its receivers, and how each single wait is bounded (seconds).
    `device` is where the tensors travel: "cuda" only when no GPU is on both ends."""

    id: int
    transport: Literal["broadcast", "object_store"]
    receivers: tuple[str, ...]
    device: Literal["cpu", "cuda"]
    timeout_s: float


@dataclass(frozen=True)
class Route:
    """How a receiver reaches the sender: the group to join, or the object to read (in a list, so that Ray passes the
    reference on instead of the object)."""

    group: GroupSpec | None = None
    objects: tuple[Any, ...] = ()


class Sender(Protocol):
    """The trainer's end."""

    route: Route

    def connect(self) -> None:
        """Wait until every receiver has joined. Raises SyncError naming who has not."""

    def send(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Send all tensors. Raises SyncError when a receiver is lost."""

    def close(self) -> None:
        """End the transfer; receivers that still wait fail."""


class Receiver(Protocol):
    """An engine's end; making it joins the transfer."""

    def receive(self) -> dict[str, torch.Tensor]:
        """All tensors, whole. Raises SyncError when the sender or another receiver is lost."""

    def close(self) -> None:
        """Leave the transfer."""


class _BroadcastSender:
    def __init__(self, plan: TransferPlan, weights: Mapping[str, torch.Tensor]) -> None:
        from roll_ts.weights.rendezvous import open_store

        self._store: TCPStore = open_store("127.0.0.1")
        members = (TRAINER, *plan.receivers)
        self._spec = GroupSpec(plan.id, "127.0.0.1", self._store.port, members, plan.device, plan.timeout_s)
        self._group: WeightGroup | None = None
        self.route = Route(self._spec)

    def connect(self) -> None:
        from roll_ts.weights.broadcast import WeightGroup

        self._group = WeightGroup(self._spec, TRAINER, self._store)

    def send(self, weights: Mapping[str, torch.Tensor]) -> None:
        # AST: AST_PRECONDITION(self._group is not None) - the receivers are connected
        assert self._group is not None, (
            f"Pre-condition: self._group is not None, got self._group={self._group!r:.200} - the receivers "
            "are connected"
        )
        # END AST e402a2
        self._group.send(weights.items())

    def close(self) -> None:
        if self._group is not None:
            self._group.close()
        self._group = None


class _BroadcastReceiver:
    def __init__(self, route: Route, name: str) -> None:
        from roll_ts.weights.broadcast import WeightGroup

        # AST: AST_PRECONDITION(route.group is not None) - the route leads to a group
        assert route.group is not None, (
            f"Pre-condition: route.group is not None, got route.group={route.group!r:.200} - the route leads to a group"
        )
        # END AST 1d55eb
        self._group = WeightGroup(route.group, name)

    def receive(self) -> dict[str, torch.Tensor]:
        return dict(self._group.receive())

    def close(self) -> None:
        self._group.close()


class _ObjectStoreSender:
    def __init__(self, plan: TransferPlan, weights: Mapping[str, torch.Tensor]) -> None:
        import ray

        from roll_ts.weights.object_store import pack

        self.route = Route(objects=(ray.put(pack(weights.items())),))

    def connect(self) -> None:
        """The object is there for whoever asks."""

    def send(self, weights: Mapping[str, torch.Tensor]) -> None:
        """The object was put when the transfer was opened, with the same weights."""

    def close(self) -> None:
        self.route = Route()


class _ObjectStoreReceiver:
    def __init__(self, route: Route, name: str) -> None:
        self._object = route.objects[0]

    def receive(self) -> dict[str, torch.Tensor]:
        import ray

        from roll_ts.weights.object_store import unpack

        return dict(unpack(ray.get(self._object)))

    def close(self) -> None:
        self._object = None


_SENDERS: dict[str, type[Sender]] = {"broadcast": _BroadcastSender, "object_store": _ObjectStoreSender}


def open_transfer(plan: TransferPlan, weights: Mapping[str, torch.Tensor]) -> Sender:
    """The trainer's end of a new transfer of `weights`."""
    # VAL: VAL_KEY_IN(plan.transport, mapping=_SENDERS)
    if plan.transport not in _SENDERS:
        raise ValueError(f"open_transfer: plan.transport must be a key of _SENDERS, got {plan.transport!r:.200}")
    # END VAL bfc39a
    return _SENDERS[plan.transport](plan, weights)  # type: ignore[call-arg]


def join_transfer(route: Route, name: str) -> Receiver:
    """An engine's end: joins the transfer as `name`. Raises SyncError when others do not come in time."""
    return _BroadcastReceiver(route, name) if route.group is not None else _ObjectStoreReceiver(route, name)
