"""Weights from the trainer to all engines of an epoch by a broadcast: gloo between hosts' memories, NCCL between GPUs.

Tensors travel in flat buckets, each announced by a header with names, dtypes and shapes, so the sender may produce
them one by one and neither side needs a second copy of the model. A transfer that fails or takes longer than
`timeout_s` fails the whole group: the member that notices says so in the store, where the others look while they
wait, and the survivors call the roll once more to name in their errors whoever does not answer.

The group is separate from any other process group of its processes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from roll_ts.weights.buckets import parse_header, split, views
from roll_ts.weights.digest import Digester
from roll_ts.weights.rendezvous import GroupSpec, SyncError, absent, call_roll, lost_sender

if TYPE_CHECKING:
    import torch
    from torch.distributed import Store

BUCKET_BYTES = 64 << 20
LOOK_S = 0.25
"""How often a waiting member looks whether the group has failed."""
ROLL_CALL_S = 10.0
"""How long the survivors of a failed group wait for each other, at most."""


class WeightGroup:
    """The broadcast group of one epoch, for one transfer or several. The sender passes the store it hosts
    (`open_store`)."""

    def __init__(self, spec: GroupSpec, member: str, store: Store | None = None) -> None:
        import torch

        self.spec = spec
        self.rank = spec.rank(member)
        self._store = call_roll(spec, member, store)
        self._device = torch.device("cpu" if spec.device == "cpu" else f"cuda:{torch.cuda.current_device()}")
        self._bucket = 0
        self._transfers = 0
        self._complete = True
        self._group: Any = None
        with self._failures_named("while it formed"):
            self._group = _process_group(spec, self.rank, self._store)

    def send(self, named: Iterable[tuple[str, torch.Tensor]], bucket_bytes: int = BUCKET_BYTES) -> str:
        """Send all tensors; returns their digest once every receiver has acknowledged the last one."""
        self._begin()
        digester = Digester()
        for bucket in split(named, bucket_bytes):
            self._send_header(bucket.header())
            with self._failures_named(f"in bucket {self._bucket}"):
                transfer = self._start(bucket.flat(self._device))
                # Hashing overlaps with the transfer.
                for entry, tensor in zip(bucket.entries, bucket.tensors, strict=True):
                    digester.add(entry.name, tensor)
                self._finish(transfer)
            self._bucket += 1
        self._send_header(b"")
        with self._failures_named("after the last bucket"):
            self._store.set(f"{self._done}/{self.rank}", "1")
            done = [f"{self._done}/{r}" for r in range(len(self.spec.members))]
            self._store.wait(done, timedelta(seconds=self.spec.timeout_s))
        self._complete = True
        return digester.hexdigest()

    def receive(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors as they arrive. They are views into buckets that live as long as one of their tensors.

        Collect them first (`dict(group.receive())`) if a broken broadcast must leave the old weights in place.
        """
        import torch

        self._begin()
        while header := self._receive_header():
            entries, nbytes = parse_header(header)
            flat = torch.empty(nbytes, dtype=torch.uint8, device=self._device)
            with self._failures_named(f"in bucket {self._bucket}"):
                self._finish(self._start(flat))
            self._bucket += 1
            yield from views(entries, flat)
        with self._failures_named("after the last bucket"):
            self._store.set(f"{self._done}/{self.rank}", "1")
        self._complete = True

    def close(self) -> None:
        """Leave the group; if that is too early, the others fail."""
        if self._group is not None and not self._complete:
            self._leave("closed before the last bucket")
        self._group = None

    def _begin(self) -> None:
        self._bucket = 0
        self._transfers += 1
        self._complete = False

    @property
    def _done(self) -> str:
        return f"done with transfer {self._transfers}"

    def _leave(self, why: str) -> None:
        self._store.set("failed", f"rank {self.rank} ({self.spec.members[self.rank]}): {why}")
        self._group.abort()
        # Gloo knows no abort: its destructor waits for the transfer's own time-out, which nobody need wait for here.
        last_reference = [self._group]
        self._group = None
        threading.Thread(target=last_reference.clear, daemon=True, name="leave weight group").start()

    def _send_header(self, header: bytes) -> None:
        import torch

        with self._failures_named(f"in the header of bucket {self._bucket}"):
            self._finish(self._start(torch.tensor([len(header)], device=self._device)))
            if header:
                content = torch.frombuffer(bytearray(header), dtype=torch.uint8)
                self._finish(self._start(content.to(self._device)))

    def _receive_header(self) -> bytes:
        import torch

        with self._failures_named(f"in the header of bucket {self._bucket}"):
            size = torch.zeros(1, dtype=torch.int64, device=self._device)
            self._finish(self._start(size))
            content = torch.empty(int(size.item()), dtype=torch.uint8, device=self._device)
            if content.numel():
                self._finish(self._start(content))
            return content.cpu().numpy().tobytes()

    def _start(self, tensor: torch.Tensor) -> Any:
        from torch.distributed import BroadcastOptions

        options = BroadcastOptions()
        options.rootRank = 0
        options.rootTensor = 0
        options.timeout = timedelta(seconds=self.spec.timeout_s)
        return self._group.broadcast([tensor], options)

    def _finish(self, transfer: Any) -> None:
        began = time.monotonic()
        while not self._completed_within(transfer, LOOK_S):
            departure = self._store.get("failed").decode() if self._store.check(["failed"]) else ""
            # VAL: VAL_EMPTY(departure, error=RuntimeError) - all members stay to the end
            if len(departure) != 0:
                raise RuntimeError(
                    f"WeightGroup._finish: departure must be empty, got {departure!r:.200} - all members stay "
                    "to the end"
                )
            # END VAL 016e00
            waited_s = time.monotonic() - began
            # VAL: VAL_INT_RANGE(waited_s, max=self.spec.timeout_s, error=RuntimeError) - the transfer is not completed
            if not waited_s <= self.spec.timeout_s:
                raise RuntimeError(
                    f"WeightGroup._finish: waited_s must be at most {self.spec.timeout_s!r:.200}, got "
                    f"{waited_s!r} - the transfer is not completed"
                )
            # END VAL adc6e0

    def _completed_within(self, transfer: Any, seconds: float) -> bool:
        if self.spec.device == "cpu":
            try:
                transfer.wait(timedelta(seconds=seconds))
            except RuntimeError:
                if transfer.is_completed():
                    raise
                return False
            return True
        look = time.monotonic() + seconds
        while not transfer.is_completed():
            if time.monotonic() > look:
                return False
            time.sleep(0.0002)
        transfer.wait()
        return True

    @contextmanager
    def _failures_named(self, where: str) -> Iterator[None]:
        """Turn what the process group or the store raises into a `SyncError` that says whom it was about."""
        try:
            yield
        except RuntimeError as error:
            if isinstance(error, SyncError):
                raise
            raise self._explained(where, error) from error

    def _explained(self, where: str, error: RuntimeError) -> SyncError:
        why = str(error).splitlines()[0]
        try:
            if self._group is not None:
                self._leave(why)
            missing = self._missing()
        except RuntimeError as lost:
            return lost_sender(self.spec, self.rank, lost)
        who = f"; no sign of {', '.join(missing)}" if missing else ""
        message = (
            f"weight sync of epoch {self.spec.epoch}, rank {self.rank} ({self.spec.members[self.rank]}) failed "
            f"{where}{who} ({why})"
        )
        return SyncError(message, self.spec.epoch, self.rank, missing)

    def _missing(self) -> tuple[str, ...]:
        """Members that neither got to the end nor say that they survived the failure."""
        from torch.distributed import DistError

        keys = [f"survived/{r}" for r in range(len(self.spec.members))]
        self._store.set(keys[self.rank], "1")
        try:
            self._store.wait(keys, timedelta(seconds=min(ROLL_CALL_S, self.spec.timeout_s)))
        except DistError:
            done = set(self.spec.members) - set(absent(self.spec, self._store, self._done))
            return tuple(name for name in absent(self.spec, self._store, "survived") if name not in done)
        return ()


def _process_group(spec: GroupSpec, rank: int, store: Store) -> Any:
    import torch.distributed as dist

    ours, size, timeout = dist.PrefixStore("group", store), len(spec.members), timedelta(seconds=spec.timeout_s)
    if spec.device == "cpu":
        return dist.ProcessGroupGloo(ours, rank, size, timeout)
    options = dist.ProcessGroupNCCL.Options()
    options._timeout = timeout
    return dist.ProcessGroupNCCL(ours, rank, size, options)
