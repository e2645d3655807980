"""Tokens per second of `VLLMEngine` against a bare loop over the same vLLM engine in the same process.

    python bench/engine_loop.py [MODEL_FOLDER] [--device cpu|cuda] [--core N]

Both loops take turns, `--rounds` times per batch size, and the fastest round of each counts: CPU seconds of the whole
process (wall seconds on cuda), so that other load on the machine weighs little. Without a folder, the model of the demo
is made. The last line is JSON.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _closing import closing_line

from roll_ts.engines.config import EngineConfig, prepare_process
from roll_ts.engines.protocol import TERMINAL, Request, Sampling
from roll_ts.engines.vllm import VLLMCore, VLLMEngine, sampling_params


def through_engine(engine: VLLMEngine, requests: list[Request]) -> int:
    """Submit, read all events; returns the number of tokens."""
    engine.submit(requests)
    open_requests, tokens = len(requests), 0
    while open_requests:
        for event in engine.next_events(10.0):
            tokens += len(event.tokens)
            open_requests -= isinstance(event, TERMINAL)
    return tokens


def bare_loop(core: VLLMCore, requests: list[Request]) -> int:
    """The least that has to be done: add the requests and step vLLM until all are done."""
    vllm, tokens = core.vllm, 0
    for request in requests:
        vllm.add_request(request.id, {"prompt_token_ids": request.prompt}, sampling_params(request))
    while vllm.has_unfinished_requests():
        for output in vllm.step():
            tokens += len(output.outputs[0].token_ids)
    return tokens


def made_by_another_process(folder: Path) -> Path:
    """The demo's model. Making it imports torch, which must not be here before `prepare_process`."""
    make = (
        "import sys; from roll_ts.trainers.scratch import ScratchModel, make_model; "
        "make_model(sys.argv[1], 0, ScratchModel(hidden=64, layers=2, ffn=192, heads=2))"
    )
    subprocess.run([sys.executable, "-c", make, str(folder)], check=True)
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32, 64])
    options = parser.parse_args()
    made_here = tempfile.TemporaryDirectory()
    model = options.model or made_by_another_process(Path(made_here.name) / "model")
    cores = (options.core,) if options.device == "cpu" else ()
    config = EngineConfig(str(model), options.device, cores, kv_bytes=256 << 20)
    prepare_process(config)
    engine = VLLMEngine(config)
    made = 0

    def requests(count: int) -> list[Request]:
        nonlocal made
        made += count
        return [Request(f"{made}.{i}", [1, 5 + i % 50, 9], Sampling(options.tokens)) for i in range(count)]

    def seconds(run: Callable[[list[Request]], int], batch: int) -> tuple[float, float]:
        todo = requests(batch)
        cpu, wall = time.process_time(), time.perf_counter()
        tokens = run(todo)
        spent = time.process_time() - cpu, time.perf_counter() - wall
        if tokens != batch * options.tokens:
            raise RuntimeError(f"expected {batch * options.tokens} tokens, got {tokens}")
        return spent

    print(f"{'batch':>5} {'engine tok/s':>13} {'bare tok/s':>11} {'ratio':>6}")
    figures = {}
    clock = 0 if options.device == "cpu" else 1
    for batch in options.batches:
        pairs = [
            (
                seconds(lambda r: through_engine(engine, r), batch),
                seconds(lambda r: bare_loop(engine.core, r), batch),
            )
            for _ in range(options.rounds + 1)
        ][1:]
        ours, bare = (min(pair[i][clock] for pair in pairs) for i in (0, 1))
        work = batch * options.tokens
        figures[batch] = {"engine_tokens_per_s": work / ours, "bare_tokens_per_s": work / bare, "ratio": bare / ours}
        print(f"{batch:>5} {work / ours:>13.0f} {work / bare:>11.0f} {bare / ours:>6.3f}")
    engine.close()
    print(closing_line("engine_loop", {"clock": ["cpu", "wall"][clock], "batches": figures}, [0], "torch"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
