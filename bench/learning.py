"""Does the demo learn, on every seed? Real engines, one run per seed: success rate of training episodes, last fifth of
the steps minus first fifth, with a bootstrap 95 % interval over groups; greedy success before and after.

`python bench/learning.py [--seeds 0 1 2] [--config examples/frozen_lake.yaml] [--runs runs/learning]`. Exit 1 when a
seed gains less than 0.20 or its interval reaches 0.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from _closing import closing_line

LEAST_GAIN = 0.20


def run_seed(config: str, seed: int, folder: Path) -> dict:
    """One training run in a process of its own; returns the figures of its report."""
    shutil.rmtree(folder, ignore_errors=True)
    began = time.monotonic()
    command = [sys.executable, "-m", "roll_ts", "train", config, "--seed", str(seed), "--out", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    report = json.loads((folder / "report.json").read_text())
    gain = report["success_gain"]
    return {
        "seed": seed,
        "seconds": round(time.monotonic() - began, 1),
        "first_fifth": gain["first"],
        "last_fifth": gain["last"],
        "gain": gain["gain"],
        "low": gain["low"],
        "high": gain["high"],
        "greedy": [evaluation["success"] for evaluation in (report["evaluations"][0], report["evaluations"][-1])],
    }


def main() -> int:
    """Run every seed and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--config", default="examples/frozen_lake.yaml")
    parser.add_argument("--runs", type=Path, default=Path("runs/learning"))
    args = parser.parse_args()
    print("seed   first    last    gain     95 % interval  greedy before → after      s")
    rows = []
    for seed in args.seeds:
        row = run_seed(args.config, seed, args.runs / f"seed-{seed}")
        rows.append(row)
        before, after = row["greedy"]
        print(
            f"{seed:>4} {row['first_fifth']:>7.3f} {row['last_fifth']:>7.3f} {row['gain']:>7.3f} "
            f"[{row['low']:>6.3f}, {row['high']:>6.3f}] {before:>12.2f} → {after:.2f} {row['seconds']:>10.0f}",
            flush=True,
        )
    good = all(row["gain"] >= LEAST_GAIN and row["low"] > 0 for row in rows)
    print(closing_line("learning", rows, args.seeds, "torch", "ray", "megatron-core"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
