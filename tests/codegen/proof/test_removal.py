"""A function is proven when a test fails without it, whatever kind of function it is."""

from __future__ import annotations

import pytest

from tests.codegen.proof.conftest import Bench

TEST_TOTAL = """
    from shop import total

    def test_total():
        assert total([2, 3]) == 5
"""


def test_a_function_whose_result_is_asserted_is_missed(bench: Bench) -> None:
    bench.write("test_shop.py", TEST_TOTAL)
    proof = bench.judge("total")
    assert proof.passed
    [removal] = proof.removals
    assert (removal.verdict, removal.by) == ("missed", "test_shop.py::test_total")
    assert list(proof.runs[0].passed) == ["test_shop.py::test_total"]


def test_a_function_that_is_called_and_not_looked_at_survives(bench: Bench) -> None:
    bench.write("test_shop.py", "from shop import total\n\ndef test_total():\n    total([2, 3])\n")
    assert bench.verdicts("total") == {"total": "survived"}


def test_a_function_whose_errors_are_swallowed_survives(bench: Bench) -> None:
    bench.write(
        "test_shop.py",
        """
        from shop import total

        def test_total():
            try:
                result = total([2, 3])
            except Exception:
                result = 5
            assert result is None or result == 5
        """,
    )
    [removal] = bench.judge("total").removals
    assert (removal.verdict, removal.by) == ("survived", "raise")


@pytest.mark.parametrize(
    "test",
    [
        "def test_nothing():\n    pass\n",
        "def test_true():\n    assert True\n",
        "import shop\n\ndef test_another():\n    shop.log('x')\n    assert shop.log('x') is None\n",
        "import shop\n\ndef test_patched(monkeypatch):\n"
        "    monkeypatch.setattr(shop, 'total', lambda prices: 5)\n    assert shop.total([2, 3]) == 5\n",
    ],
    ids=["empty", "assert True", "of another function", "of a stand-in"],
)
def test_a_function_that_no_test_reaches_is_unreached(bench: Bench, test: str) -> None:
    bench.write("test_shop.py", test)
    assert bench.verdicts("total") == {"total": "unreached"}


def test_a_runner_that_never_calls_the_tests_proves_nothing(bench: Bench) -> None:
    bench.write("test_shop.py", TEST_TOTAL)
    bench.write("conftest.py", "def pytest_pyfunc_call(pyfuncitem):\n    return True\n")
    assert bench.verdicts("total") == {"total": "unreached"}


def test_a_removed_function_with_no_body_has_nothing_to_remove(bench: Bench) -> None:
    bench.write(
        "shop.py",
        '''
        from abc import ABC, abstractmethod
        from typing import Protocol, overload

        class Till(ABC):
            @abstractmethod
            def total(self):
                """What is owed."""

        class Priced(Protocol):
            def price(self) -> int: ...

        def later():
            raise NotImplementedError("later")

        @overload
        def half(x: int) -> int: ...
        @overload
        def half(x: str) -> str: ...
        def half(x):
            return x[: len(x) // 2] if isinstance(x, str) else x // 2

        def idle():
            return None
        ''',
    )
    bench.write("test_shop.py", "from shop import half\n\ndef test_half():\n    assert half(4) == 2\n")
    nothing = "nothing to remove"
    assert bench.verdicts("Till.total", "Priced.price", "later", "half", "idle", "Till") == {
        "Till.total": nothing,
        "Priced.price": nothing,
        "later": nothing,
        "half": "missed",
        "idle": nothing,
        "Till": nothing,
    }


def test_every_kind_of_function_can_be_removed(bench: Bench) -> None:
    bench.write(
        "shop.py",
        '''
        import asyncio
        import contextlib
        from dataclasses import dataclass
        from functools import cached_property, lru_cache

        async def fetch():
            await asyncio.sleep(0)
            return 7

        async def stream():
            for each in range(3):
                yield each

        def numbers():
            """One line, and then the loop."""
            for each in range(3):
                yield each

        @contextlib.contextmanager
        def opened(log):
            log.append("in")
            yield log
            log.append("out")

        @lru_cache
        def cached(x):
            return x + 1

        @dataclass
        class Till:
            lines: int = 0

            def __post_init__(self):
                self.lines += 1

            @property
            def total(self):
                return self.lines * 2

            @total.setter
            def total(self, value):
                self.lines = value // 2

            @cached_property
            def once(self):
                return object()

            @classmethod
            def of(cls, lines):
                return cls(lines)

            @staticmethod
            def name():
                return "till"

            def __len__(self): return self.lines

            class Inner:
                def deep(self):
                    return "deep"

        if True:
            def conditional():
                return "yes"
        ''',
    )
    bench.write(
        "test_shop.py",
        """
        import asyncio
        import shop
        from shop import Till

        def test_async():
            async def all():
                return await shop.fetch(), [each async for each in shop.stream()]
            assert asyncio.run(all()) == (7, [0, 1, 2])

        def test_generators():
            assert list(shop.numbers()) == [0, 1, 2]
            log = []
            with shop.opened(log):
                assert log == ["in"]
            assert log == ["in", "out"]

        def test_functions():
            assert shop.cached(1) == 2 and shop.conditional() == "yes"

        def test_class():
            till = Till.of(1)
            assert len(till) == 2 and till.total == 4 and till.name() == "till" and Till.Inner().deep() == "deep"
            till.total = 10
            assert till.lines == 5
            assert till.once is till.once and till.once is not None
        """,
    )
    names = [
        *("fetch", "stream", "numbers", "opened", "cached", "conditional", "Till.__post_init__", "Till.total"),
        *("Till.once", "Till.of", "Till.name", "Till.__len__", "Till.Inner.deep"),
    ]
    assert bench.verdicts(*names) == dict.fromkeys(names, "missed")


def test_a_property_whose_setter_nobody_misses_survives(bench: Bench) -> None:
    bench.write(
        "shop.py",
        """
        class Till:
            @property
            def total(self):
                return 4

            @total.setter
            def total(self, value):
                self.lines = value
        """,
    )
    bench.write("test_shop.py", "from shop import Till\n\ndef test_it():\n    assert Till().total == 4\n")
    assert bench.verdicts("Till.total") == {"Till.total": "unreached"}


def test_what_runs_at_import_only_is_removed_from_the_start(bench: Bench) -> None:
    bench.write(
        "shop.py", "def table():\n    return {1: 'a'}\n\ndef idle():\n    print('x')\n\nTABLE = table()\nidle()\n"
    )
    bench.write("test_shop.py", "import shop\n\ndef test_table():\n    assert shop.TABLE[1] == 'a'\n")
    assert bench.verdicts("table", "idle") == {"table": "missed", "idle": "survived"}


def test_what_a_child_process_runs_is_removed_there(bench: Bench) -> None:
    bench.write(
        "shop.py",
        "def total(prices):\n    return sum(prices)\n\nif __name__ == '__main__':\n    print(total([2, 3]))\n",
    )
    bench.write(
        "test_shop.py",
        """
        import subprocess, sys

        def test_command():
            done = subprocess.run([sys.executable, "shop.py"], capture_output=True, text=True)
            assert done.stdout == "5\\n"

        def test_module():
            done = subprocess.run([sys.executable, "-m", "shop"], capture_output=True, text=True)
            assert done.stdout == "5\\n"
        """,
    )
    assert bench.verdicts("total", command="python -m pytest test_shop.py -k module") == {"total": "missed"}


def test_a_result_that_only_another_test_looks_at_counts(bench: Bench) -> None:
    bench.write(
        "test_shop.py",
        """
        import pytest
        from shop import total

        @pytest.fixture(scope="module")
        def made():
            return total([2, 3])

        def test_first(made):
            pass

        def test_second(made):
            assert made == 5
        """,
    )
    assert bench.verdicts("total") == {"total": "missed"}


def test_a_loop_that_never_ends_without_the_function_is_missed(bench: Bench) -> None:
    bench.write(
        "shop.py",
        "def step(n):\n    return n + 1\n\ndef upto(n):\n    i = 0\n    while i != n:\n        i = step(i) or 0\n    return i\n",  # noqa: E501
    )
    bench.write("test_shop.py", "from shop import upto\n\ndef test_upto():\n    assert upto(3) == 3\n")
    assert bench.verdicts("step") == {"step": "missed"}


def test_a_test_that_fails_alone_whatever_is_removed_is_no_witness(bench: Bench) -> None:
    bench.write(
        "test_shop.py",
        """
        import shop
        SEEN = []

        def test_first():
            SEEN.append(1)

        def test_needs_the_first():
            shop.total([1])
            assert SEEN
        """,
    )
    assert bench.verdicts("total") == {"total": "survived"}


def test_a_waiver_with_its_reason_excuses_a_function(bench: Bench) -> None:
    bench.write("test_shop.py", TEST_TOTAL)
    proof = bench.judge("total", "log", waivers={"shop.log": "prints only"})
    assert proof.passed
    assert [(each.verdict, each.by) for each in proof.removals][1] == ("waived", "prints only")


def test_a_script_is_judged_by_its_exit_status_and_by_removal(bench: Bench) -> None:
    bench.write("test_shop.py", "from shop import log, total\n\nassert total([2, 3]) == 5\nlog('x')\n")
    proof = bench.judge("total", "log", command="python test_shop.py")
    assert proof.runs[0].basis == "exit status"
    assert [each.verdict for each in proof.removals] == ["missed", "survived"]


def test_a_script_that_ends_early_proves_nothing(bench: Bench) -> None:
    bench.write(
        "test_shop.py", "import os\nfrom shop import total\n\ntotal([1])\nos._exit(0)\nassert total([2, 3]) == 5\n"
    )
    assert bench.verdicts("total", command="python test_shop.py") == {"total": "survived"}


def test_source_and_lines_are_as_written(bench: Bench) -> None:
    bench.write(
        "test_shop.py",
        """
        import inspect, traceback, pytest, shop

        def test_source():
            assert "sum(prices)" in inspect.getsource(shop.total)
            assert "proof" not in inspect.getsource(shop.total)
            assert shop.total.__doc__ == "Their sum."
            with pytest.raises(TypeError) as raised:
                shop.total(5)
            assert raised.traceback[-1].lineno + 1 == 5
        """,
    )
    assert bench.verdicts("total") == {"total": "missed"}


def test_the_cost_is_said_and_bounded(bench: Bench) -> None:
    tests = "".join(f"\ndef test_{n}():\n    time.sleep(0.05)\n    assert total([{n}]) == {n}\n" for n in range(20))
    bench.write("test_shop.py", f"import time\nfrom shop import total\n{tests}")
    proof = bench.judge("total")
    assert proof.passed
    assert 0 < proof.removal_seconds < 3 * proof.test_seconds
