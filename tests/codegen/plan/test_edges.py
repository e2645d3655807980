"""Exact limits of the planner: room in a step, small steps that join, files of one wave, what a cell may become."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from codegen.document import EditError, parse_document
from codegen.document.edit import set_step_status
from codegen.document.lint import lint
from codegen.document.modern import modern
from codegen.plan.graph import dependencies
from codegen.plan.impact import impact
from codegen.plan.merge import _verify
from codegen.plan.progress import progress
from codegen.plan.schedule import _depends, _overlaps, _waves, schedule
from tests.codegen.document.samples import CLEAN
from tests.codegen.plan.test_planning import UNPLANNED, _entries, _path, _plan


def planned_then_grown(count: int, size: int, status: str = "NOT_STARTED") -> list[tuple[int, str]]:
    """Plan one entry, set its step's status, add `count` entries of its module, plan again: who joins which step."""
    first = _plan(_entries([[]], [0]), size)[2]
    text = set_step_status(parse_document(first), 1, status)
    grown = _entries([[]] * (count + 1), [0] * (count + 1))
    more = grown[grown.index("#### 5.1.2 ") :] if count else ""
    text = text.replace("## 6. Plan", f"{more}\n## 6. Plan", 1)
    planned = schedule(parse_document(text), size, _path)
    return [(number, row.name) for number, row in planned.hosted]


@pytest.mark.parametrize(
    ("size", "count", "joining"), [(3, 1, 1), (3, 2, 2), (3, 3, 2), (3, 9, 2), (1, 2, 0), (2, 2, 1)]
)
def test_a_step_takes_in_new_entries_up_to_its_size_and_no_more(size: int, count: int, joining: int) -> None:
    found = planned_then_grown(count, size)
    assert [number for number, _ in found] == [1] * joining
    assert [name for _, name in found] == [f"shop.m0.f{n}" for n in range(1, joining + 1)]


@pytest.mark.parametrize("status", ["IN_PROGRESS", "DONE", "FAILED", "BLOCKED", "STALE"])
def test_a_new_entry_never_joins_a_step_that_was_begun(status: str) -> None:
    assert planned_then_grown(2, 5, status) == []


@pytest.mark.parametrize(
    ("first", "second", "size", "steps"),
    [
        (3, 2, 5, [5]),
        (3, 2, 4, [3, 2]),
        (3, 1, 4, [4]),
        (2, 2, 5, [4]),
        (3, 3, 10, [3, 3]),
        (1, 1, 5, [2]),
        (4, 1, 5, [5]),
    ],
)
def test_a_small_step_joins_another_of_its_package_where_it_fits_exactly(
    first: int, second: int, size: int, steps: list[int]
) -> None:
    _, planned, _ = _plan(_entries([[]] * (first + second), [0] * first + [1] * second), size)
    assert sorted(len(step.methods) for step in planned.new) == sorted(steps)


def test_steps_that_need_each_other_in_turn_are_not_joined_across_what_is_between() -> None:
    # f0 (m0) <- f1..f3 (m1) <- f4 (m0): joining f4 to f0's step would put it before what it needs
    edges = [[], [0], [0], [0], [1, 2, 3]]
    _, planned, _ = _plan(_entries(edges, [0, 1, 1, 1, 0]), 4)
    at = {method.name: step.number for step in planned.new for method in step.methods}
    assert at["shop.m0.f0"] <= at["shop.m1.f1"] <= at["shop.m0.f4"]


def reachable(depends: dict[int, tuple[int, ...]], start: int) -> set[int]:
    """The oracle: everything that a step comes after, by walking."""
    found: set[int] = set()
    todo = list(depends[start])
    while todo:
        each = todo.pop()
        if each not in found:
            found.add(each)
            todo += depends[each]
    return found


@pytest.mark.parametrize("seed", range(40))
def test_a_step_depends_on_all_it_needs_and_on_nothing_that_is_implied(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randint(1, 9)
    needs = {n: {m for m in range(1, n) if chance.random() < 0.4} for n in range(1, count + 1)}
    listed = {n: tuple(sorted(chance.sample(range(1, n), chance.randint(0, n - 1)))) for n in range(1, count + 1)}
    built = {n for n in needs if chance.random() < 0.3}
    fresh = {n for n in needs if n not in built and chance.random() < 0.5}
    given = {n: () if n in fresh else listed[n] for n in needs}
    found = _depends({n: listed[n] for n in needs if n not in fresh}, fresh, needs, built)
    for number in needs:
        if number in built:
            assert found[number] == listed[number]
            continue
        assert needs[number] <= reachable(found, number)
        assert set(given[number]) <= set(found[number])
        for added in set(found[number]) - set(given[number]):
            others = set(found[number]) - {added}
            assert added in needs[number]
            assert not any(added in reachable(found, other) for other in others), (number, added)
    waves = _waves(found)
    at = {number: level for level, wave in enumerate(waves) for number in wave}
    assert sorted(at) == sorted(needs)
    for number in needs:
        below = [at[need] for need in found[number]]
        assert at[number] == (max(below) + 1 if below else 0)


def test_two_steps_of_one_wave_that_touch_one_file_are_named_and_one_alone_is_not() -> None:
    text = _plan(_entries([[]] * 10, [0] * 10))[2]
    steps = parse_document(text).steps
    assert [len(step.methods) for step in steps] == [5, 5]
    assert dict(_overlaps(steps, [(1, 2)])) == {"shop/m0.py": (1, 2), "tests/shop/test_m0.py": (1, 2)}
    assert _overlaps(steps, [(1,), (2,)]) == []
    done = parse_document(set_step_status(parse_document(text), 1, "DONE")).steps
    assert _overlaps(done, [(1, 2)]) == []


def test_a_plan_at_the_end_of_a_document_ends_with_one_line_end() -> None:
    for ending in ("\n", "", "\n\n"):
        text = _plan(UNPLANNED.rstrip("\n") + ending)[2]
        assert text.endswith("\n") and not text.endswith("\n\n"), repr(ending)


def test_a_stale_method_is_written_down_once() -> None:
    changed = CLEAN.replace("    cents: int\n", "    cents: float\n")
    first = _plan(changed)[2]
    assert first.count("STALE") > changed.count("STALE")
    assert _plan(first)[2] == first


def test_progress_and_impact_name_the_row_of_a_step_and_its_heading_where_it_has_none() -> None:
    document = parse_document(CLEAN)
    row = next(row for row in document.step_rows if row.number == 2)
    assert next(step for step in progress(document).steps if step.number == 2).line == row.line
    found = [item for item in impact(document, "D-1") if item.kind == "step"]
    assert {item.line for item in found} <= {each.line for each in document.step_rows}
    line = document.lines[row.line - 1]
    bare = parse_document(CLEAN.replace(line, ""))
    heading = next(step for step in bare.steps if step.number == 2)
    assert heading.row_line == 0
    assert next(step for step in progress(bare).steps if step.number == 2).line == heading.line
    assert [item.line for item in impact(bare, "shop.till.Till") if item.id == "Step 2"] == [heading.line]


def test_a_deep_graph_is_planned_in_waves_one_after_another() -> None:
    edges = [[n - 1] if n else [] for n in range(12)]
    _, planned, _ = _plan(_entries(edges, [n // 3 for n in range(12)]), 3)
    assert list(itertools.chain(*planned.waves)) == [step.number for step in planned.new]
    assert all(len(wave) == 1 for wave in planned.waves)


def test_a_planned_document_has_no_finding_of_the_plan(tmp_path: Path) -> None:
    text = _plan(_entries([[]] * 7, [0, 1, 2, 3, 4, 5, 6]), 2)[2]
    assert [each.code for each in lint(parse_document(text)) if each.code.startswith("PLAN")] == []


def test_steps_that_need_each_other_are_planned_and_named_as_a_cycle() -> None:
    assert _depends({1: (), 2: ()}, set(), {1: {2}, 2: {1}}, set()) in ({1: (2,), 2: ()}, {1: (), 2: (1,)})
    assert _depends({1: (3,), 2: (1,), 3: (2,)}, set(), {1: {2}, 3: {1}}, set()) == {1: (3,), 2: (1,), 3: (2,)}


def test_a_plan_that_lost_a_status_a_commit_or_a_title_of_a_step_is_refused() -> None:
    old = parse_document(CLEAN)
    planned = schedule(old, 5, _path)
    _verify(old, planned, old)
    row = "| 2 | Till | 1 | NOT_STARTED"
    for other in (row.replace("NOT_STARTED", "IN_PROGRESS"), row.replace("Till", "Tall")):
        assert CLEAN.count(row) == 1
        with pytest.raises(EditError, match="planning would lose Step 2"):
            _verify(old, planned, parse_document(CLEAN.replace(row, other)))
    with pytest.raises(EditError, match="planning would lose Step 1"):
        _verify(old, planned, parse_document(CLEAN.replace("a1b2c3d", "0000000")))
    with pytest.raises(EditError, match="planning would lose Step 1"):
        _verify(
            old, planned, parse_document(CLEAN.replace("| `shop.money.Money` | 5.1.1 | DONE", "| `x` | 5.1.1 | DONE"))
        )


def test_a_plan_writes_in_the_record_that_a_name_is_stale_and_keeps_its_digest() -> None:
    document = parse_document(modern(parse_document(CLEAN)).text.replace("    cents: int\n", "    cents: float\n"))
    before = {row.item: (row.status, row.digest) for row in document.record_rows}
    text = _plan(document.text)[2]
    after = {row.item: (row.status, row.digest) for row in parse_document(text).record_rows}
    assert after == before | {"shop.money.Money": ("STALE", before["shop.money.Money"][1])}
    assert parse_document(text).step_by_number[1].status == "STALE"


def test_a_method_whose_class_is_no_entry_needs_nothing_of_it() -> None:
    text = _entries([[]], [0]).replace("`f0`", "`Box.f0`").replace("def f0()", "def f0(self)")
    document = parse_document(text)
    assert dict(dependencies(document).edges) == {"shop.m0.Box.f0": ()}


def test_a_folded_name_is_called_by_its_name_where_a_step_holds_it() -> None:
    document = modern(parse_document(CLEAN))
    found = [item.why for item in impact(document, "shop.money.Money") if item.kind == "step"]
    assert found and all(why.startswith("holds ") for why in found)
