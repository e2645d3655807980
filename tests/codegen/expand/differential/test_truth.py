"""Every pattern, at every place, in every kind of function: the generated check says what its oracle says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codegen.expand.driver.expansion import expand_bytes
from codegen.expand.model import Options
from tests.codegen.expand.differential.functions import Case, call, cases_of, module_of
from tests.codegen.expand.differential.oracles import SPECS, Spec
from tests.codegen.expand.helpers import LIBRARY, MARKS

IN_CI, AT_NIGHT = 20_000, 2_000_000
PAIRS: dict[str, int] = {}


def compiled(spec: Spec, every: bool = False) -> tuple[dict[str, Any], dict[str, Any], list[Case]]:
    """The functions as their author wrote them, and with their checks."""
    cases = cases_of(spec, every)
    text = module_of(cases)
    report = expand_bytes("sample.py", text.encode(), LIBRARY, MARKS, Options())
    errors = [f for f in report.findings if f.severity == "error"]
    assert report.text is not None, "\n".join(f"{f.message}: {text.splitlines()[f.line - 1]}" for f in errors[:5])
    assert len([s for s in report.sites if "import" not in s.what]) >= len(cases)
    spaces: list[dict[str, Any]] = []
    for source in (text, report.text):
        space: dict[str, Any] = {"__name__": "sample"}
        exec(compile(source, "sample.py", "exec"), space)
        spaces.append(space)
    return spaces[0], spaces[1], cases


def verdict(spec: Spec, values: tuple[Any, ...]) -> bool:
    """What the oracle says; a value that it cannot judge fails the check."""
    try:
        return bool(spec.holds(*values))
    except (TypeError, AttributeError, ValueError, OverflowError):
        return False


def compare(plain: dict[str, Any], checked: dict[str, Any], case: Case, values: tuple[Any, ...]) -> None:
    """One pair: the call without the check, and with it."""
    before, after = call(plain, case, values), call(checked, case, values)
    assert before.raised is None, f"{case.said}\n{values}: {before.raised!r}"
    said = f"{case.said}\nwith {values!r}\ngave {after.value!r}, raised {after.raised!r}, trace {after.trace}"
    if verdict(case.spec, values):
        assert after.raised is None, said
        assert after.value is before.value or after.value == before.value, said
        assert after.trace == before.trace, said
    else:
        assert type(after.raised) is case.error, said
        assert after.trace == case.trace_at_failure(before.trace), said
    wanted = 1 if "once(" in case.form else 0
    assert after.counted == wanted, f"{said}, arguments evaluated {after.counted} times"


def hold(spec: Spec, examples: int, pairs: int, every: bool = False) -> None:
    """Compare all functions of a pattern on the values that Hypothesis finds."""
    plain, checked, cases = compiled(spec, every)
    done = 0

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=not every,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(spec.values, min_size=3, max_size=5))
    def run(found: list[tuple[Any, ...]]) -> None:
        nonlocal done
        for values in found:
            for case in cases:
                compare(plain, checked, case, values)
                done += 1

    while done < pairs or not done:
        run()
    PAIRS[spec.name + spec.forms[0]] = done


JUDGED = [spec for spec in SPECS if spec.kinds != ("wrap",)]


@pytest.mark.parametrize("spec", JUDGED, ids=lambda spec: spec.name)
def test_a_generated_check_agrees_with_its_oracle_and_changes_nothing(spec: Spec) -> None:
    hold(spec, 3, 0)


def test_the_pairs_compared_are_enough_and_every_pattern_is_among_them() -> None:
    if len(PAIRS) < len({spec.name + spec.forms[0] for spec in JUDGED}):
        pytest.skip("only with all comparisons in one run")
    assert {spec.id for spec in SPECS} == set(LIBRARY.ids())
    assert sum(PAIRS.values()) >= IN_CI, sum(PAIRS.values())


@pytest.mark.nightly
@pytest.mark.timeout(7_200)
def test_two_million_pairs_agree() -> None:
    for spec in JUDGED:
        hold(spec, 60, AT_NIGHT // len(JUDGED) + 1, every=True)


WAITS = """\
import asyncio


async def plain(x, trace):
    # VAL: VAL_DEADLINE(0.01 if x else 60, waiting_for="x")
    await asyncio.sleep(0.2 if x else 0)
    trace.append("end")
    return x


class C:
    async def method(self, x, trace):
        # VAL: VAL_DEADLINE(0.01 if x else 60, waiting_for="x")
        trace.append(await asyncio.sleep(0.2 if x else 0, "end"))
        return x


async def generator(x, trace):
    # VAL: VAL_DEADLINE(0.01 if x else 60, waiting_for="x")
    y = await asyncio.sleep(0.2 if x else 0, "end")
    trace.append(y)
    yield x
"""


@pytest.mark.parametrize("name", ["plain", "method", "generator"])
@pytest.mark.parametrize("late", [True, False])
def test_a_deadline_raises_exactly_when_the_statement_is_late(name: str, late: bool) -> None:
    report = expand_bytes("sample.py", WAITS.encode(), LIBRARY, MARKS, Options())
    assert report.text is not None, report.findings
    space: dict[str, Any] = {}
    exec(compile(report.text, "sample.py", "exec"), space)
    trace: list[str] = []

    async def main() -> object:
        if name == "generator":
            return [value async for value in space[name](late, trace)]
        return await (space["C"]().method if name == "method" else space[name])(late, trace)

    if late:
        with pytest.raises(TimeoutError, match="x did not answer within"):
            asyncio.run(main())
        assert trace == []
    else:
        assert asyncio.run(main()) in (False, [False]) and trace == ["end"]


def test_a_planted_mistake_in_a_generated_check_is_found() -> None:
    spec = next(spec for spec in SPECS if spec.id == "VAL_INT_RANGE")
    plain, checked, cases = compiled(spec)
    case = next(case for case in cases if case.kind == "plain" and case.place == "head")
    for wrong in (plain, {**checked, case.name: lambda *values: checked[case.name](values[0] + 1, *values[1:])}):
        with pytest.raises(AssertionError):
            for value in range(-3, 12):
                compare(plain, wrong, case, (value, 0, 7))
