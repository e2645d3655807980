"""Every pattern is used in this project's own code, or tried here on a public function that somebody else wrote.

A trial puts the annotation where its author would have put it, expands the whole module and runs it: a call that the
rule allows gives what it gave, one that it forbids raises the stated error with the stated message.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from codegen.expand.reading.comments import read_layout
from codegen.expand.reading.marks import Opener
from codegen.expand.reading.source import indent_of, split_lines
from tests.codegen.expand.helpers import LIBRARY, MARKS, expand, strip
from tests.codegen.expand.test_behaviour import CASES, executed

ROOT = Path(__file__).parents[3]
HERE = str(Path(__file__).parent)
FILE = str(Path(__file__))


@dataclass(frozen=True)
class Trial:
    """A public function, its annotation, a call that passes and one that raises.

    The annotation stands above the `def`, or above the first line of the function that begins with `above`.
    """

    function: str
    annotation: str
    valid: Callable[[Any], Any]
    invalid: Callable[[Any], Any]
    error: type[Exception]
    message: str
    above: str = ""

    @property
    def pattern(self) -> str:
        found = re.match(r"(?:VAL|AST): (\w+)", self.annotation)
        assert found
        return found[1]


def inside(call: Callable[[], Any]) -> Any:
    """Call on a running event loop."""

    async def main() -> Any:
        return call()

    return asyncio.run(main())


def in_thread(call: Callable[[], Any]) -> None:
    """Call in another thread; raises what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="other")
    thread.start()
    thread.join(10)
    raise raised[0]


async def locked_twice(m: Any) -> None:
    lock = m.Lock()
    async with lock, lock:
        pass


async def locked_once(m: Any) -> bool:
    lock = m.Lock()
    async with lock:
        return lock.locked()


async def notified(m: Any, held: bool) -> bool:
    condition = m.Condition()
    if held:
        async with condition:
            condition.notify()
    else:
        condition.notify()
    return held


async def fed(m: Any) -> bytes:
    reader = m.StreamReader()
    reader.feed_data(b"x")
    reader.feed_eof()
    return await reader.read()


async def reader_of(m: Any) -> Any:
    return m.StreamReader()


def released(m: Any, elsewhere: bool) -> str:
    lock = m._PyRLock()
    lock.acquire()
    if elsewhere:
        in_thread(lock.release)
    lock.release()
    return "released"


def member(name: str) -> Any:
    import tarfile

    return tarfile.TarInfo(name)


def parameters(*values: float, device: str = "cpu", double: bool = False) -> tuple[Any, list[Any]]:
    import torch

    vector = torch.tensor(values, dtype=torch.float64 if double else torch.float32, device=device)
    return vector, [torch.nn.Parameter(torch.zeros(len(values)))]


def filled(m: Any, *values: float, **options: Any) -> list[float]:
    vector, targets = parameters(*values, **options)
    m.vector_to_parameters(vector, targets)
    return [float(x) for x in targets[0]]


def sampled(m: Any, rank: int) -> list[int]:
    return list(m.DistributedSampler([10, 20, 30, 40], num_replicas=2, rank=rank, shuffle=False))


TRIALS = [
    Trial("calendar.leapdays", "AST: AST_MONOTONIC(y2, since=y1) - the years are given in order",
          lambda m: m.leapdays(1900, 2000), lambda m: m.leapdays(2000, 1900), AssertionError,
          "Monotonic: y2 must not fall from 2000, got 1900 - the years are given in order"),
    Trial("string.capwords", "AST: AST_UNCHANGED(result, since=s)",
          lambda m: m.capwords("Ab Cd"), lambda m: m.capwords("ab"), AssertionError,
          "Unchanged: result must stay 'ab', got 'Ab'"),
    Trial("statistics.quantiles", "AST: AST_UNREACHABLE(method)",
          lambda m: m.quantiles([1, 2, 3]), lambda m: m.quantiles([1, 2, 3], method="none"), AssertionError,
          "quantiles: Unreachable, got method='none'", above="raise ValueError(f'Unknown method"),
    Trial("json.dumps", 'VAL: VAL_ALLOWED_KEYS(kw, ("strict",))',
          lambda m: m.dumps([1]), lambda m: m.dumps([1], colour=1), ValueError,
          'dumps: kw may have only the keys ("strict",), but has [\'colour\']'),
    Trial("shutil.make_archive", "VAL: VAL_ALL_OR_NONE((owner, group))",
          lambda m: m.make_archive("x", "zip", HERE, dry_run=True),
          lambda m: m.make_archive("x", "zip", HERE, dry_run=True, owner="me"), TypeError,
          "make_archive: owner, group must be given together or not at all, got owner='me', group=None"),
    Trial("shutil.make_archive", "VAL: VAL_REQUIRES(group, owner)",
          lambda m: m.make_archive("x", "zip", HERE, dry_run=True),
          lambda m: m.make_archive("x", "zip", HERE, dry_run=True, group="us"), TypeError,
          "make_archive: group needs owner, got group='us', owner=None"),
    Trial("shutil.chown", "VAL: VAL_AT_LEAST_ONE((user, group))",
          lambda m: m.chown(FILE, os.getuid()), lambda m: m.chown(FILE), TypeError,
          "chown: at least one of user, group must be given, got user=None, group=None"),
    Trial("random.Random.choices", "VAL: VAL_AT_MOST_ONE((weights, cum_weights))",
          lambda m: m.Random(1).choices("abc", [1, 2, 3], k=4),
          lambda m: m.Random(1).choices("ab", [1, 2], cum_weights=[1, 3]), TypeError,
          "Random.choices: at most one of weights, cum_weights may be given, got weights=[1, 2], cum_weights=[1, 3]"),
    Trial("uuid.UUID.__init__", "VAL: VAL_EXACTLY_ONE((hex, bytes, fields))",
          lambda m: m.UUID(hex="0123456789abcdef" * 2), lambda m: m.UUID(int=3), TypeError,
          "UUID.__init__: exactly one of hex, bytes, fields must be given, got hex=None, bytes=None, fields=None"),
    Trial("contextlib.contextmanager", "VAL: VAL_CALLABLE(func)",
          lambda m: m.contextmanager(inside).__name__, lambda m: m.contextmanager(3), TypeError,
          "contextmanager: func must be callable, got int 3"),
    Trial("asyncio.locks._ContextManagerMixin.__aenter__", 'VAL: VAL_DEADLINE(0.05, waiting_for="the lock")',
          lambda m: asyncio.run(locked_once(m)), lambda m: asyncio.run(locked_twice(m)), TimeoutError,
          "_ContextManagerMixin.__aenter__: the lock did not answer within 0.05 s", above="await self.acquire()"),
    Trial("asyncio.locks.Condition.notify", "VAL: VAL_LOCK_HELD(self._lock)",
          lambda m: asyncio.run(notified(m, True)), lambda m: asyncio.run(notified(m, False)), RuntimeError,
          "Condition.notify: self._lock must be held, got <asyncio.locks.Lock object at ADDRESS [unlocked]>"),
    Trial("asyncio.streams.StreamReader.feed_data", "VAL: VAL_LOOP_THREAD(self._loop)",
          lambda m: asyncio.run(fed(m)), lambda m: asyncio.run(reader_of(m)).feed_data(b"x"), RuntimeError,
          "StreamReader.feed_data: must run on self._loop, got None instead of "
          "<_UnixSelectorEventLoop running=False closed=True debug=False>"),
    Trial("subprocess.getoutput", "VAL: VAL_OFF_LOOP",
          lambda m: m.getoutput("echo x"), lambda m: inside(lambda: m.getoutput("echo x")), RuntimeError,
          "getoutput: would block the event loop <_UnixSelectorEventLoop running=True closed=False debug=False>; "
          "it must run in a thread"),
    Trial("threading._RLock.release", "VAL: VAL_OWNER_THREAD(self._owner)",
          lambda m: released(m, False), lambda m: released(m, True), RuntimeError,
          "_RLock.release: must run in the thread self._owner=ADDRESS, got 'other'"),
    Trial("glob.glob1", "VAL: VAL_DIRECTORY_EXISTS(dirname)",
          lambda m: sorted(m.glob1(HERE, "*.py")), lambda m: m.glob1("/no/such", "*"), NotADirectoryError,
          "glob1: dirname must be an existing directory, got '/no/such'"),
    Trial("graphlib.TopologicalSorter.add", "VAL: VAL_DISJOINT(predecessors, (node,))",
          lambda m: list(m.TopologicalSorter({2: [1]}).static_order()),
          lambda m: m.TopologicalSorter({1: [2, 1]}), ValueError,
          "TopologicalSorter.add: predecessors must share nothing with (node,), but both have [1]"),
    Trial("graphlib.TopologicalSorter.add", "VAL: VAL_NOT_IN(node, predecessors)",
          lambda m: list(m.TopologicalSorter({2: [1]}).static_order()),
          lambda m: m.TopologicalSorter({1: [2, 1]}), ValueError,
          "TopologicalSorter.add: node must not be in predecessors, got 1"),
    Trial("shutil.copyfileobj", 'VAL: VAL_HAS_ATTRIBUTES(fsrc, ("read",))',
          lambda m: m.copyfileobj(SimpleNamespace(read=lambda n: b""), SimpleNamespace(write=print)),
          lambda m: m.copyfileobj([1], None), TypeError,
          'copyfileobj: fsrc must have the attributes ("read",), but list lacks [\'read\']'),
    Trial("collections.namedtuple", "VAL: VAL_IDENTIFIER(typename)",
          lambda m: m.namedtuple("Pair", "a b")(1, 2), lambda m: m.namedtuple("a-b", "a"), ValueError,
          "namedtuple: typename must be an identifier, got 'a-b'"),
    Trial("base64.b16decode", 'VAL: VAL_MATCHES(s, "([0-9A-F]{2})*")',
          lambda m: m.b16decode("0A1F"), lambda m: m.b16decode("0a"), ValueError,
          "b16decode: s must match \"([0-9A-F]{2})*\", got '0a'"),
    Trial("tarfile.data_filter", "VAL: VAL_PATH_INSIDE(member.name, root=dest_path)",
          lambda m: m.data_filter(member("a/b"), "/tmp").name, lambda m: m.data_filter(member("../b"), "/tmp"),
          ValueError, "data_filter: member.name must stay inside '/tmp', got '../b'"),
    Trial("statistics.median_low", "VAL: VAL_SORTED(data)",
          lambda m: m.median_low([1, 2, 3]), lambda m: m.median_low([2, 1]), ValueError,
          "median_low: data must be ascending, got [2, 1]"),
    Trial("linecache.getlines", 'VAL: VAL_SUFFIX(filename, ".py")',
          lambda m: m.getlines(FILE)[:3], lambda m: m.getlines("a.txt"), ValueError,
          "getlines: filename must end with \".py\", got 'a.txt'"),
    Trial("ipaddress.IPv4Address.__init__", "VAL: VAL_INT_RANGE(address, min=0) - an address is no debt",
          lambda m: str(m.IPv4Address("10.0.0.1")), lambda m: m.IPv4Address(-1), ValueError,
          "IPv4Address.__init__: address must be at least 0, got -1 - an address is no debt",
          above="self._check_int_address"),
    Trial("sympy.discrete.transforms.fwht", "VAL: VAL_POWER_OF_TWO(len(seq))",
          lambda m: m.fwht([4, 2, 2, 0]), lambda m: m.fwht([1, 2, 3]), ValueError,
          "fwht: len(seq) must be a power of two, got 3"),
    Trial("torch.nn.utils.convert_parameters.vector_to_parameters", "VAL: VAL_DTYPE(vec, torch.float32)",
          lambda m: filled(m, 1, 2), lambda m: filled(m, 1, double=True), TypeError,
          "vector_to_parameters: vec must have dtype torch.float32, got torch.float64"),
    Trial("torch.nn.utils.convert_parameters.vector_to_parameters", 'VAL: VAL_DEVICE(vec, "cpu")',
          lambda m: filled(m, 1, 2), lambda m: filled(m, 1, device="meta"), ValueError,
          "vector_to_parameters: vec must be on \"cpu\", got 'meta'"),
    Trial("torch.nn.utils.convert_parameters.vector_to_parameters", "VAL: VAL_TENSOR_FINITE(vec)",
          lambda m: filled(m, 1, 2), lambda m: filled(m, 1, float("nan"), float("inf")), ValueError,
          "vector_to_parameters: vec must be finite, but 2 of 3 elements are not"),
    Trial("torch.utils.data.distributed.DistributedSampler.__init__", "VAL: VAL_RANK(rank, num_replicas)",
          lambda m: sampled(m, 1), lambda m: sampled(m, 2), ValueError,
          "DistributedSampler.__init__: rank must be a rank in [0, 2), got 2"),
    Trial("megatron.core.parallel_state.generate_masked_orthogonal_rank_groups",
          "VAL: VAL_PARTITION(result, of=range(world_size))",
          lambda m: m.generate_masked_orthogonal_rank_groups(4, [2, 2], [True, False]),
          lambda m: m.generate_masked_orthogonal_rank_groups(5, [2, 2], [True, False]), ValueError,
          "generate_masked_orthogonal_rank_groups: result must hold each of range(0, 5) exactly once, "
          "got [[0, 1], [2, 3]]"),
    Trial("megatron.core.parallel_state.generate_masked_orthogonal_rank_groups",
          "VAL: VAL_WORLD_SIZE(world_size, (parallel_size[0], parallel_size[1]))",
          lambda m: m.generate_masked_orthogonal_rank_groups(4, [2, 2], [True, False]),
          lambda m: m.generate_masked_orthogonal_rank_groups(5, [2, 2], [True, False]), ValueError,
          "generate_masked_orthogonal_rank_groups: world_size must be the product of "
          "(parallel_size[0], parallel_size[1]), got 5 for (2, 2)"),
]  # fmt: skip
HEAVY = ("torch", "megatron", "sympy")


def annotated(text: str, trial: Trial, name: str) -> str:
    """The module's text with the trial's annotation."""
    lines = list(split_lines(text))
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        node = next(n for n in ast.iter_child_nodes(node) if getattr(n, "name", None) == part)
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    at = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    if trial.above:
        at = next(n for n in range(node.lineno, len(lines)) if lines[n - 1].lstrip().startswith(trial.above))
    lines.insert(at - 1, f"{indent_of(lines[at - 1])}# {trial.annotation}\n")
    return "".join(lines)


def module_of(path: str) -> tuple[ModuleType, str]:
    """The module of a dotted path, and the name inside it."""
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            return importlib.import_module(".".join(parts[:length])), ".".join(parts[length:])
        except ModuleNotFoundError:
            continue
    raise AssertionError(f"no module in {path}")


def try_out(trial: Trial) -> None:
    module, name = module_of(trial.function)
    text = annotated(Path(str(module.__file__)).read_text(encoding="utf-8"), trial, name)
    expanded = expand(text)
    assert strip(expanded) == text
    ours = executed(module, expanded)
    assert repr(trial.valid(ours)) == repr(trial.valid(module))
    with pytest.raises(trial.error) as raised:
        trial.invalid(ours)
    assert re.sub(r"0x[0-9a-f]+|(?<==)\d{9,}", "ADDRESS", str(raised.value)) == trial.message


LIGHT_TRIALS = [trial for trial in TRIALS if not trial.function.startswith(HEAVY)]
HEAVY_TRIALS = [trial for trial in TRIALS if trial.function.startswith(HEAVY)]


@pytest.mark.parametrize("trial", LIGHT_TRIALS, ids=[trial.pattern for trial in LIGHT_TRIALS])
def test_a_function_of_the_standard_library_does_what_it_did_and_refuses_what_it_says(trial: Trial) -> None:
    try_out(trial)


@pytest.mark.slow
@pytest.mark.parametrize("trial", HEAVY_TRIALS, ids=[trial.pattern for trial in HEAVY_TRIALS])
def test_a_function_of_an_installed_package_does_what_it_did_and_refuses_what_it_says(trial: Trial) -> None:
    pytest.importorskip(trial.function.partition(".")[0])
    try_out(trial)


def used_in_our_code() -> set[str]:
    """Ids of the annotations in this project's own packages."""
    found: set[str] = set()
    for package in ("codegen", "roll_ts"):
        for path in (ROOT / package).rglob("*.py"):
            data = path.read_bytes()
            if MARKS.prefilter.search(data):
                for mark in MARKS.find(read_layout(split_lines(data.decode())).comments):
                    if isinstance(mark, Opener) and mark.notation:
                        found.update(item.id for item in mark.notation.items)
    return found


def test_every_pattern_is_used_in_our_code_or_tried_on_real_code() -> None:
    tried = {trial.pattern for trial in TRIALS}
    tried |= {id for case in CASES for text in case.annotations for id in re.findall(r"(?:VAL|AST)_[A-Z_]+", text)}
    ours = used_in_our_code()
    assert len(ours) >= 25
    assert set(LIBRARY.ids()) - ours - tried == set()
