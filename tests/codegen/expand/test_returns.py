"""Claims about a function's result, and about what was there when it was entered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.codegen.expand.helpers import dedent, expand, problem, report, strip


def run(text: str, **names: Any) -> dict[str, Any]:
    """Expand, check that it can be undone, and execute."""
    done = expand(text)
    assert strip(done) == text and expand(done) == done
    namespace: dict[str, Any] = dict(names)
    exec(done, namespace)
    return namespace


def warnings(text: str) -> list[str]:
    return [finding.code for finding in report(text).findings if finding.severity == "warning"]


def test_16_a_claim_about_a_local_stands_below_its_binding_and_warns_of_returns_above() -> None:
    text = dedent("""
        def take(x):
            if not x:
                return None
            y = x
            # AST: AST_POSTCONDITION(len(y) > 0)
            return y
    """)
    assert warnings(text) == ["bypassed"]
    (finding,) = report(text).findings
    assert "line 3" in finding.message and "result" in (finding.fix or "")


def test_17_each_own_return_is_checked_once() -> None:
    text = dedent("""
        # AST: AST_POSTCONDITION(result > 0)
        def take(x):
            def inner():
                return -1
            pick = lambda: -2
            if x == 1:
                return calls(1)  # one
            if x == 2:
                y = -3
                return y
            for _ in range(2):
                return max(
                    calls(x),
                    inner(),
                )
    """)
    counted: list[int] = []
    take = run(text, calls=lambda value: counted.append(value) or value)["take"]
    assert take(1) == 1 and take(5) == 5 and counted == [1, 5]
    for wrong in (2, -1):
        with pytest.raises(AssertionError, match="Post-condition: result > 0"):
            take(wrong)
    assert expand(text).count("# AST on return") == 4


def test_17_a_returned_name_is_checked_as_it_is_unless_the_claim_captures_it() -> None:
    text = "def take(xs):\n    # AST: AST_ENSURES(all(x in result for x in xs))\n    x = xs\n    return x\n"
    done = expand(text)
    assert "    assert all((x in _result for x in xs))" in done.replace("all(x in", "all((x in").replace(
        "xs),", "xs)),"
    )
    run(text)
    plain = "def take(xs):\n    # AST: AST_ENSURES(len(result) > 0)\n    x = xs\n    return x\n"
    assert "assert len(x) > 0" in expand(plain) and "    return x\n    # END" not in expand(plain)


def test_17_a_bare_return_and_the_end_of_the_body_give_none() -> None:
    text = "# AST: AST_ENSURES(result is None or x)\ndef take(x):\n    if x:\n        return\n    print(x)\n"
    assert run(text, print=lambda x: None)["take"](0) is None
    never = text.replace("result is None or x", "result is not None")
    namespace = run(never, print=lambda x: None)
    for x in (0, 1):
        with pytest.raises(AssertionError):
            namespace["take"](x)


def test_17_the_end_of_a_body_is_not_checked_when_control_cannot_get_there() -> None:
    for body in (
        "while True:\n        if x:\n            return 1",
        "if x:\n        return 1\n    else:\n        raise KeyError",
        "with x:\n        return 1",
        "try:\n        return 1\n    finally:\n        x()",
        "match x:\n        case 1:\n            return 1\n        case _:\n            return 2",
    ):
        done = expand(f"# AST: AST_ENSURES(result)\ndef take(x):\n    {body}\n")
        assert "_result = None" not in done, body
    for body in (
        "while True:\n        if x:\n            break",
        "with suppress(KeyError):\n        return 1",
        "x = 1",
    ):
        assert "_result = None" in expand(f"# AST: AST_ENSURES(result)\ndef take(x):\n    {body}\n"), body


def test_17_a_function_that_never_returns_is_reported() -> None:
    assert warnings("# AST: AST_ENSURES(result)\ndef take(x) -> NoReturn:\n    raise KeyError(x)\n") == [
        "never-returns"
    ]


def test_18_returns_inside_try_and_with_stay_inside() -> None:
    text = dedent("""
        # AST: AST_ENSURES(result > 0)
        def take(x, log):
            with open_it(log):
                try:
                    return x + 0
                except ValueError:
                    return 1
                finally:
                    log.append("finally")
    """)
    import contextlib

    namespace = run(
        text, open_it=lambda log: contextlib.closing(type("C", (), {"close": lambda s: log.append("closed")})())
    )
    log: list[str] = []
    assert namespace["take"](3, log) == 3
    with pytest.raises(AssertionError):
        namespace["take"](-3, log)
    assert log == ["finally", "closed"] * 2


def test_18_a_return_inside_finally_is_refused() -> None:
    text = "# AST: AST_ENSURES(result)\ndef take(x):\n    try:\n        x()\n    finally:\n        return 1\n"
    assert problem(text)[:2] == (6, "return-in-finally")


def test_19_in_a_generator_result_is_what_return_gives() -> None:
    text = "# AST: AST_ENSURES(result == 3)\ndef take(x):\n    yield x\n    return x + 1\n"
    assert warnings(text) == ["generator"]
    take = run(text)["take"]
    assert list(take(2)) == [2]
    with pytest.raises(AssertionError):
        list(take(5))


@pytest.mark.parametrize("body", ["yield x", "yield x\n    return", "return (yield x) and None", "yield from x"])
def test_19_a_claim_about_the_result_of_a_generator_that_only_yields_is_refused(body: str) -> None:
    text = f"# AST: AST_ENSURES(result == 3)\ndef take(x):\n    {body}\n"
    if "and None" in body:
        assert warnings(text) == ["generator"]
        return
    assert problem(text)[:2] == (1, "generator") and "`result` is always None" in problem(text)[2]
    assert warnings(text.replace("result == 3", "x is not None")) in ([], ["generator"])
    state = text.replace("ENSURES(result == 3)", "POSTCONDITION(x is not None)")
    assert warnings(state) == ["generator"] and expand(state)


def test_19_values_are_checked_where_they_are_yielded() -> None:
    text = "def take(xs):\n    for x in xs:\n        # VAL: VAL_POSITIVE(x)\n        yield x\n"
    take = run(text)["take"]
    assert list(take([1, 2])) == [1, 2]
    with pytest.raises(ValueError, match="x must be positive"):
        list(take([1, 0]))


def test_20_async_functions_and_async_generators() -> None:
    text = dedent("""
        # AST: AST_ENSURES(result > old(self.n))
        async def take(self):
            self.n += 1
            return await self.get()


        async def each(xs):
            # VAL: VAL_NON_EMPTY(xs)
            for x in xs:
                yield x
    """)
    namespace = run(text)

    class Box:
        n = 1

        async def get(self) -> int:
            return self.n

    assert asyncio.run(namespace["take"](Box())) == 2

    async def drain(xs: list[int]) -> list[int]:
        return [x async for x in namespace["each"](xs)]

    assert asyncio.run(drain([1])) == [1]
    with pytest.raises(ValueError, match="must not be empty"):
        asyncio.run(drain([]))


def test_old_takes_its_value_at_entry_once_for_all_claims() -> None:
    text = dedent("""
        class Counter:
            n: int

            # AST: AST_ENSURES(self.n == old(self.n) + by)
            # AST: AST_ENSURES(result == old(self.n))
            def add(self, by):
                \"\"\"Doc.\"\"\"
                before = self.n
                self.n += by
                return before
    """)
    assert expand(text).count("_old_n = self.n") == 1
    counter = run(text)["Counter"]()
    counter.n = 1
    assert counter.add(2) == 1
    with pytest.raises(AssertionError, match=r"self.n == old\(self.n\) \+ by"):
        type(counter).n = property(lambda self: 5, lambda self, value: None)
        counter.add(1)


def test_old_of_a_local_or_outside_a_function_is_refused() -> None:
    assert (
        problem("def take(x):\n    y = x\n    # AST: AST_POSTCONDITION(y == old(y))\n    return y\n")[1]
        == "bad-argument"
    )
    assert problem("x = 1\n# AST: AST_POSTCONDITION(x == old(x))\n")[1] == "bad-argument"
    assert "one expression" in problem("def take(x):\n    # AST: AST_POSTCONDITION(old(x, 1))\n    return 1\n")[2]


def test_result_is_an_ordinary_name_where_the_function_has_it() -> None:
    text = "def take(x):\n    result = x\n    # AST: AST_POSTCONDITION(len(result) > 0)\n    return result\n"
    assert "on return" not in expand(text)
    run(text)
    text = "def take(result):\n    # VAL: VAL_NON_EMPTY(result)\n    return 1\n"
    assert "on return" not in expand(text)


def test_val_patterns_check_the_result_too() -> None:
    text = "# VAL: VAL_INT_RANGE(result, min=0, max=len(x))\ndef take(x) -> int:\n    return x.pop()\n"
    take = run(text)["take"]
    assert take([1, 0]) == 0
    with pytest.raises(ValueError, match="take: result must lie in"):
        take([0, 0, -5])


def test_a_claim_without_result_sees_the_state_after_the_returned_expression() -> None:
    text = dedent("""
        # AST: AST_ENSURES(len(xs) > 0)
        def take(xs):
            return xs.pop()
    """)
    take = run(text)["take"]
    assert take([1, 2]) == 2
    with pytest.raises(AssertionError):
        take([1])


def test_strip_restores_returns_byte_for_byte() -> None:
    written = ["return(x + 1)", "return  x+1", "return (\n        x\n        + 1\n    )  # why", "return x, 1"]
    written += ["return *x, 1", "return \\\n        x + 1", "return not x", "return '''a\n  b'''", "return\t-x"]
    for returned in [*written, "return lambda: x"]:
        text = f"# AST: AST_ENSURES(result)\ndef take(x):\n    {returned}\n"
        done = expand(text)
        assert "_result" in done
        assert strip(done) == text and expand(done) == done


def test_the_author_may_change_a_bound_expression_inside_the_block() -> None:
    text = "# AST: AST_ENSURES(result > 0)\ndef take(x):\n    return x + 1\n"
    changed = expand(text).replace("_result = x + 1", "_result = x * 7  # new")
    assert expand(changed) == changed
    assert strip(changed) == text.replace("return x + 1", "return x * 7  # new")


def test_two_annotations_share_one_binding_at_each_return() -> None:
    text = "# AST: AST_ENSURES(result > 0)\n# VAL: VAL_INT_RANGE(result, max=9)\ndef take(x):\n    return x + 1\n"
    done = expand(text)
    assert done.count("_result = ") == 1 and done.count("# END") == 1
    assert "    # AST on return: AST_ENSURES(result > 0)\n    # VAL on return: VAL_INT_RANGE(result, max=9)\n" in done
    take = run(text)["take"]
    assert take(8) == 9
    with pytest.raises(ValueError, match="result"):
        take(9)
