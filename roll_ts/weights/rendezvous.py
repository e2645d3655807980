"""How the members of one weight sync find each other: a TCP store in the trainer, and one roll call per epoch.

Membership is the live set the controller has counted for the epoch. Every wait has a deadline, and the error says
which members were not heard from, so that the controller can fence them and form the next group without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch.distributed import Store, TCPStore


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """One sync group. `members[0]` sends, the others receive; `timeout_s` bounds each single wait."""

    epoch: int
    address: str
    port: int
    members: tuple[str, ...]
    device: Literal["cpu", "cuda"] = "cpu"
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        """Raises ValueError for a group without a receiver, a member named twice, or no time to wait."""
        # VAL: VAL_LENGTH(self.members, min=2) - a sync group has a sender and receivers
        if not len(self.members) >= 2:
            raise ValueError(
                "GroupSpec.__post_init__: self.members must have at least 2 elements, got "
                f"{len(self.members)!r}: {self.members!r:.200} - a sync group has a sender and receivers"
            )
        # END VAL 8107e9
        # VAL: VAL_NO_DUPLICATES(self.members)
        if len(set(self.members)) != len(self.members):
            raise ValueError(
                f"GroupSpec.__post_init__: self.members must not contain duplicates, got {self.members!r:.200}"
            )
        # END VAL 4e4d3d
        # VAL: VAL_POSITIVE(self.timeout_s)
        if not self.timeout_s > 0:
            raise ValueError(f"GroupSpec.__post_init__: self.timeout_s must be positive, got {self.timeout_s!r}")
        # END VAL fa2895

    def rank(self, member: str) -> int:
        """Rank of a member; `ValueError` for a stranger."""
        # VAL: VAL_ONE_OF(member, self.members, about=self.epoch)
        if member not in self.members:
            raise ValueError(
                f"GroupSpec.rank: member must be one of {self.members!r:.200}, got {member!r:.200} "
                f"(self.epoch={self.epoch!r:.200})"
            )
        # END VAL d5ce43
        return self.members.index(member)


class SyncError(RuntimeError):
    """A weight sync failed. `missing` names the members not heard from, as far as they are known."""

    def __init__(self, message: str, epoch: int, rank: int, missing: tuple[str, ...] = ()) -> None:
        super().__init__(message, epoch, rank, missing)
        self.epoch = epoch
        self.rank = rank
        self.missing = missing

    def __str__(self) -> str:
        return str(self.args[0])


def open_store(address: str, port: int = 0) -> TCPStore:
    """The store that the sender hosts, for as long as it is referenced; port 0 takes a free one (see `.port`)."""
    from torch.distributed import TCPStore

    return TCPStore(address, port, is_master=True, wait_for_workers=False)


def join_store(address: str, port: int, timeout_s: float) -> TCPStore:
    """The store that another process hosts. Raises torch's DistError when nobody answers within `timeout_s`."""
    from torch.distributed import TCPStore

    return TCPStore(address, port, is_master=False, timeout=timedelta(seconds=timeout_s), use_libuv=True)


def call_roll(spec: GroupSpec, member: str, store: Store | None = None) -> Store:
    """Register as `member` and wait until all of `spec.members` have; returns the store of this epoch.

    The sender passes the store it hosts, the others connect. Raises `SyncError` naming whoever is missing.
    """
    from torch.distributed import PrefixStore

    rank = spec.rank(member)
    ours = PrefixStore(f"epoch/{spec.epoch}", store if store is not None else _connect(spec, rank))
    keys = [f"here/{r}" for r in range(len(spec.members))]
    try:
        # unmanaged: a SyncError says who it is about, which takes more than a message
        if ours.check(["failed"]):
            raise _error(spec, rank, f"this epoch has failed before: {ours.get('failed').decode()}", ())
        ours.set(keys[rank], "1")
        try:
            ours.wait(keys, timedelta(seconds=spec.timeout_s))
        except _store_errors():
            missing = absent(spec, ours, "here")
            if not missing:
                raise
            error = _error(spec, rank, f"no sign of {', '.join(missing)} within {spec.timeout_s:g} s", missing)
            ours.set("failed", str(error))
            raise error from None
    except _store_errors() as error:
        raise lost_sender(spec, rank, error) from error
    return ours


def absent(spec: GroupSpec, store: Store, what: str) -> tuple[str, ...]:
    """Members that have not set their key `what/<rank>`."""
    return tuple(name for r, name in enumerate(spec.members) if not store.check([f"{what}/{r}"]))


def lost_sender(spec: GroupSpec, rank: int, cause: BaseException) -> SyncError:
    """The error of a member whose store, and with it the sender, does not answer."""
    where = f"{spec.members[0]} does not answer at {spec.address}:{spec.port}"
    return _error(spec, rank, f"{where} ({str(cause).splitlines()[0]})", (spec.members[0],))


def _connect(spec: GroupSpec, rank: int) -> Store:
    try:
        return join_store(spec.address, spec.port, spec.timeout_s)
    except _store_errors() as error:
        raise lost_sender(spec, rank, error) from error


def _error(spec: GroupSpec, rank: int, what: str, missing: tuple[str, ...]) -> SyncError:
    whole = f"weight sync of epoch {spec.epoch}, rank {rank} ({spec.members[rank]}): {what}"
    return SyncError(whole, spec.epoch, rank, missing)


def _store_errors() -> tuple[type[Exception], ...]:
    from torch.distributed import DistError

    return (DistError,)
