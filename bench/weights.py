"""Seconds to bring a set of weights from one process to two others: broadcast over gloo, and Ray's object store.

    python bench/weights.py [--megabytes 4 92 256] [--rounds 5]

Broadcast: `WeightGroup.send`, which hashes what it sends, until both receivers have acknowledged. Object store: pack,
put, and both receivers have walked over every tensor. The floor is one plain copy of the same bytes in memory, made in
the same run; a ratio of 3 means three times that. The fastest of the rounds counts. The last line is JSON.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

HOST = "127.0.0.1"
SETTINGS = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled"}
os.environ.update(SETTINGS)

import ray  # noqa: E402
import torch  # noqa: E402
from _closing import closing_line  # noqa: E402

from roll_ts.weights.broadcast import WeightGroup  # noqa: E402
from roll_ts.weights.digest import digest  # noqa: E402
from roll_ts.weights.object_store import PackedTensor, pack, unpack  # noqa: E402
from roll_ts.weights.rendezvous import GroupSpec, open_store  # noqa: E402


@ray.remote(num_cpus=0)
class Receiver:
    """One engine's side, without the engine."""

    def join(self, spec: GroupSpec, member: str) -> None:
        self.group = WeightGroup(spec, member)

    def receive(self) -> int:
        """Bytes that came by broadcast."""
        return walk(self.group.receive())

    def take(self, packed: dict[str, PackedTensor]) -> int:
        """Bytes that came through the object store."""
        return walk(unpack(packed))


def walk(named: Iterable[tuple[str, torch.Tensor]]) -> int:
    return sum(tensor.nbytes for _, tensor in named)


def model_like(megabytes: int) -> dict[str, torch.Tensor]:
    """Float32 tensors of the shapes of a small transformer: one embedding-like, the rest in 1 MB matrices."""
    torch.manual_seed(0)
    left = megabytes * (1 << 20) // 4
    named = {"embedding": torch.randn(left // 4 // 512, 512)}
    left -= named["embedding"].numel()
    for i in range(left // (512 * 512)):
        named[f"layer.{i}"] = torch.randn(512, 512)
    return named


def fastest(rounds: int, run: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def measure(named: dict[str, torch.Tensor], receivers: list[Any], group: WeightGroup, rounds: int) -> dict[str, float]:
    size = walk(named.items())
    source = torch.cat([tensor.reshape(-1) for tensor in named.values()])
    target = torch.empty_like(source)

    def broadcast() -> None:
        arriving = [receiver.receive.remote() for receiver in receivers]
        group.send(named.items())
        check(size, ray.get(arriving))

    def object_store() -> None:
        reference = ray.put(pack(named.items()))
        check(size, ray.get([receiver.take.remote(reference) for receiver in receivers]))

    floor = fastest(rounds, lambda: target.copy_(source))
    found = {
        "megabytes": size / (1 << 20),
        "memcpy_s": floor,
        "digest_s": fastest(rounds, lambda: digest(named.items())),
        "broadcast_s": fastest(rounds, broadcast),
        "object_store_s": fastest(rounds, object_store),
    }
    return found | {f"{way}_ratio": found[f"{way}_s"] / floor for way in ("broadcast", "object_store")}


def check(size: int, arrived: list[int]) -> None:
    if arrived != [size] * len(arrived):
        raise RuntimeError(f"sent {size} bytes, receivers got {arrived}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[4, 92, 256])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    ray.init(
        num_cpus=2,
        object_store_memory=2 << 30,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": SETTINGS},
    )
    members = ("sender", "receiver-0", "receiver-1")
    receivers = [Receiver.remote() for _ in members[1:]]
    store = open_store(HOST)
    columns = ("megabytes", "memcpy_s", "digest_s", "broadcast_s", "object_store_s", "broadcast_ratio")
    print(" ".join(f"{column:>19}" for column in (*columns, "object_store_ratio")))
    rows = []
    for epoch, megabytes in enumerate(options.megabytes):
        spec = GroupSpec(epoch, HOST, store.port, members)
        joining = [receiver.join.remote(spec, member) for receiver, member in zip(receivers, members[1:], strict=True)]
        group = WeightGroup(spec, members[0], store)
        ray.get(joining)
        rows.append(measure(model_like(megabytes), receivers, group, options.rounds))
        print(" ".join(f"{rows[-1][column]:>19.4g}" for column in (*columns, "object_store_ratio")))
    ray.shutdown()
    figures = {"receivers": len(receivers), "rounds": options.rounds, "sizes": rows}
    print(closing_line("weights", figures, [0], "torch", "ray"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
