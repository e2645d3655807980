from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.document import Document, EditError, parse_document, set_method_status, set_step_commit, set_step_status
from codegen.document.codebase import Codebase
from codegen.document.edit import LineEdit, apply_edits
from codegen.document.lint import lint
from codegen.document.modern import modern
from codegen.plan.graph import CircularDependencies, dependencies
from codegen.plan.merge import merge
from codegen.plan.schedule import Schedule, differences, schedule
from tests.codegen.document.samples import CLEAN, handmade
from tests.codegen.document.views import changed_lines, formatted, view

HEAD = CLEAN[: CLEAN.index("## 5. APIs")]
UNPLANNED = CLEAN[: CLEAN.index("## 6. Plan")]


def _path(module: str) -> str:
    return module.replace(".", "/") + ".py"


def _plan(text: str, size: int = 5) -> tuple[Document, Schedule, str]:
    document = parse_document(text)
    planned = schedule(document, size, _path)
    return document, planned, merge(document, planned)


def _entries(edges: list[list[int]], modules: list[int], phases: dict[int, str] | None = None) -> str:
    """A document whose entry number n needs `edges[n]` and stands in module `modules[n]`."""
    place: dict[int, int] = {}
    ids: list[str] = []
    for module in modules:
        place[module] = place.get(module, 0) + 1
        ids.append(f"5.{module + 1}.{place[module]}")
    out = [HEAD, "## 5. APIs and implementation\n"]
    for module in sorted(set(modules)):
        out.append(f"### 5.{module + 1} `shop.m{module}`\n")
        for n in [n for n in range(len(modules)) if modules[n] == module]:
            out += [f"#### {ids[n]} `f{n}`\n", f"Number {n}.\n"]
            out += [f"- deps: {', '.join(ids[need] for need in edges[n]) or '-'}", "- decisions: D-1"]
            out += [f"- phase: {phases[n]}"] if phases and n in phases else []
            out += [f"\n```python\ndef f{n}() -> None: ...\n```\n"]
    return "\n".join(out)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    count = draw(st.integers(1, 40))
    edges = [draw(st.lists(st.integers(0, n - 1), max_size=3, unique=True)) if n else [] for n in range(count)]
    order = draw(st.permutations(range(count)))
    where = {old: new for new, old in enumerate(order)}
    moved: list[list[int]] = [[] for _ in range(count)]
    for n, needs in enumerate(edges):
        moved[where[n]] = [where[need] for need in needs]
    return moved, [draw(st.integers(0, 5)) for _ in range(count)]


@settings(deadline=None, derandomize=True, max_examples=40)
@given(graphs(), st.integers(1, 10))
def test_steps_hold_every_entry_once_after_what_it_needs(graph: tuple[list[list[int]], list[int]], size: int) -> None:
    document, planned, text = _plan(_entries(*graph), size)
    rows = [method.section for step in planned.new for method in step.methods]
    assert sorted(rows) == sorted(document.entry_by_number)
    assert all(1 <= len(step.methods) <= size for step in planned.new)
    at = {method.name: step.number for step in planned.new for method in step.methods}
    for ident, needs in planned.graph.edges.items():
        assert all(at[need] <= at[ident] for need in needs)
    findings = [finding for finding in lint(parse_document(text)) if finding.code.startswith("PLAN")]
    assert findings == []
    wave = {number: level for level, wave in enumerate(planned.waves) for number in wave}
    for step in planned.new:
        assert all(wave[need] < wave[step.number] for need in step.depends)


@settings(deadline=None, derandomize=True, max_examples=15)
@given(graphs())
def test_planning_again_changes_nothing(graph: tuple[list[list[int]], list[int]]) -> None:
    _, first, text = _plan(_entries(*graph))
    _, second, again = _plan(text)
    assert again == text
    assert second.new == ()
    assert second.waves == first.waves


@settings(deadline=None, derandomize=True, max_examples=20)
@given(graphs(), st.randoms(use_true_random=False))
def test_existing_steps_statuses_and_commits_survive(
    graph: tuple[list[list[int]], list[int]], rng: random.Random
) -> None:
    """Plan a part of the entries, work on it, then plan the rest: what was there is still there."""
    edges, modules = graph
    full = parse_document(_entries(edges, modules))
    part = {entry.number for entry in full.entries if rng.random() < 0.6}
    while more := {dep for ident in part for dep in full.entry_by_number[ident].deps} - part:
        part |= more
    cuts = [LineEdit(e.line, e.line_end, ()) for e in full.entries if e.number not in part]
    _, _, text = _plan(apply_edits(full, cuts))
    for step in parse_document(text).steps:
        status = rng.choice(["NOT_STARTED", "DONE", "IN_PROGRESS", "FAILED"])
        for method in step.methods:
            digest = full.entry_by_number[method.section].digest if status == "DONE" else ""
            text = set_method_status(parse_document(text), step.number, method.section, status, digest)
        text = set_step_status(parse_document(text), step.number, status)
        if status == "DONE":
            text = set_step_commit(parse_document(text), step.number, f"abc{step.number:04}")
    worked = parse_document(text)
    whole = full.text + text[text.index("## 6. Plan") :]
    document, planned, new = _plan(whole)
    after = parse_document(new)
    for step in worked.steps:
        seen = after.step_by_number[step.number]
        assert (seen.title, seen.status, seen.commit) == (step.title, step.status, step.commit)
        rows = [(m.name, m.status, m.digest) for m in seen.methods]
        assert rows[: len(step.methods)] == [(m.name, m.status, m.digest) for m in step.methods]
    planned_ids = [m.section for step in after.steps for m in step.methods]
    assert sorted(planned_ids) == sorted(document.entry_by_number)
    if not planned.circles:
        assert not [f for f in lint(after) if f.code in ("PLAN005", "PLAN006", "PLAN004", "PLAN001")]


def test_the_order_is_infrastructure_validation_methods_integration() -> None:
    phases = {0: "integration", 1: "normal", 2: "validation", 3: "infrastructure"}
    _, planned, _ = _plan(_entries([[]] * 4, [0, 1, 2, 3], phases), size=1)
    assert [step.methods[0].name for step in planned.new] == ["shop.m3.f3", "shop.m2.f2", "shop.m1.f1", "shop.m0.f0"]


def test_full_specifications_and_configuration_come_early_by_themselves() -> None:
    text = UNPLANNED.replace("`shop.money`", "`shop.settings`").replace("shop.money.Money", "shop.settings.Money")
    _, planned, _ = _plan(text, size=1)
    names = [step.methods[0].name for step in planned.new]
    assert names[:2] == ["shop.settings.Money", "shop.settings.parse"]
    assert names.index("shop.till._check_lines") < names.index("shop.till.Till.total")


def test_a_module_is_cut_into_equal_parts() -> None:
    _, planned, _ = _plan(_entries([[]] * 12, [0] * 12))
    assert [len(step.methods) for step in planned.new] == [4, 4, 4]


def test_a_plan_is_written_where_section_six_is_missing() -> None:
    document, planned, text = _plan(UNPLANNED)
    new = parse_document(text)
    assert text.startswith(document.text.rstrip("\n"))
    assert [section.id for section in new.sections if section.level == 2] == ["1", "2", "3", "4", "5", "6"]
    assert len(new.steps) == len(planned.new) > 0
    assert not [finding for finding in lint(new) if finding.severity == "error"]


@pytest.mark.parametrize("name", handmade())
def test_a_new_entry_is_planned_in_every_layout(name: str) -> None:
    entry = "#### 5.2.4 `Till.close`\n\nClose it.\n\n- deps: 5.2.1\n- decisions: D-2\n\n"
    entry += "```python\ndef close(self) -> None: ...\n```\n\n"
    text = handmade()[name]
    newline = "\r\n" if "\r\n" in text else "\n"
    mark = "6\\. Plan" if name == "setext" else "## 6. Plan"
    text = text.replace(mark, entry.replace("\n", newline) + mark, 1)
    document, planned, new = _plan(modern(parse_document(text)).text, size=10)
    assert [(number, row.section) for number, row in planned.hosted] == [(2, "5.2.4")]
    removed, added = changed_lines(document.text, new)
    # The list of names is one line; the drawing has other titles there, a digest is of another code.
    assert len(removed) == {"pipes": 2, "foreign": 4}.get(name, 1)
    assert len(added) == len(removed)
    assert [m.section for m in parse_document(new).step_by_number[2].methods][-1] == "5.2.4"


def test_a_new_entry_gets_a_step_of_its_own_where_no_step_has_room() -> None:
    text = CLEAN.replace("## 6. Plan", _entries([[]], [6]).split("## 5. APIs and implementation\n")[1] + "\n## 6. Plan")
    _, planned, new = _plan(text)
    assert [step.number for step in planned.new] == [3]
    document = parse_document(new)
    assert [row.number for row in document.step_rows] == [1, 2, 3]
    assert document.step_by_number[3].files == ("shop/m6.py", "tests/shop/test_m6.py")
    assert not [finding for finding in lint(document) if finding.severity != "note"]


def test_a_step_not_begun_learns_what_it_depends_on() -> None:
    text = CLEAN.replace("| 2 | Till | 1 |", "| 2 | Till | - |").replace("- depends: 1", "- depends: -")
    _, planned, new = _plan(text)
    assert dict(planned.depends) == {2: (1,)}
    after = parse_document(new)
    assert after.step_by_number[2].depends == (1,)
    assert after.step_by_number[2].fields["depends"].value == "1"
    assert not [finding for finding in lint(after) if finding.code in ("PLAN012", "PLAN013")]
    assert "    s1 --> s2" in new


def test_a_changed_method_becomes_stale_with_its_step() -> None:
    document, planned, new = _plan(CLEAN.replace("    cents: int\n", "    cents: float\n"))
    assert [(step.number, method.name) for step, method in planned.stale] == [(1, "shop.money.Money")]
    after = parse_document(new)
    assert [m.status for m in after.step_by_number[1].methods] == ["STALE", "DONE"]
    assert after.step_by_number[1].status == "STALE"
    assert after.step_by_number[1].commit == "a1b2c3d"
    assert len(changed_lines(document.text, new)[0]) == 2


def test_a_formatter_between_two_plans_changes_nothing() -> None:
    _, _, first = _plan(UNPLANNED)
    laid_out = formatted(first)
    _, planned, second = _plan(laid_out)
    assert planned.new == ()
    assert view(parse_document(second)) == view(parse_document(first))
    assert second == laid_out


def test_dependencies_in_a_circle_are_named() -> None:
    text = CLEAN.replace("amount in cents.\n\n- deps: -", "amount in cents.\n\n- deps: 5.1.2")
    with pytest.raises(CircularDependencies, match=r"5\.1\.1 `Money` → 5\.1\.2 `parse` → 5\.1\.1 `Money`"):
        dependencies(parse_document(text))


def test_what_the_code_uses_is_inferred_and_reported() -> None:
    text = CLEAN.replace("- deps: 5.2.1, `shop.money.Money`", "- deps: -")
    graph = dependencies(parse_document(text))
    assert graph.explicit["shop.till.Till.total"] == ()
    # `Money` is written in the code; `Till` is the class around it and goes without saying.
    assert graph.inferred["shop.till.Till.total"] == ("shop.money.Money",)
    assert set(graph.edges["shop.till.Till.total"]) == {"shop.till.Till", "shop.money.Money"}
    assert [(entry.id, [o.id for o in others]) for entry, others in differences(graph)] == [
        ("shop.till.Till.total", ["shop.money.Money"])
    ]


def test_mutual_recursion_in_code_is_no_circle() -> None:
    text = CLEAN.replace("    return sum(self.lines, Money(0))", "    return self.other()")
    entry = "#### 5.2.4 `Till.other`\n\nx\n\n- decisions: D-2\n\n"
    entry += "```python\ndef other(self) -> Money:\n    return self.total()\n```\n\n"
    graph = dependencies(parse_document(text.replace("## 6. Plan", entry + "## 6. Plan")))
    assert "shop.till.Till.other" in graph.inferred["shop.till.Till.total"]
    assert "shop.till.Till.total" in graph.inferred["shop.till.Till.other"]
    assert "shop.till.Till.other" not in graph.edges["shop.till.Till.total"]
    assert "shop.till.Till.total" not in graph.edges["shop.till.Till.other"]


def test_two_open_steps_of_one_wave_that_touch_one_file_are_flagged() -> None:
    _, planned, _ = _plan(_entries([[]] * 12, [0] * 12))
    assert ("shop/m0.py", (1, 2, 3)) in planned.overlaps


def test_a_graph_mark_without_its_pair_is_refused() -> None:
    with pytest.raises(EditError, match="do not pair"):
        _plan(CLEAN.replace("<!-- codegen:end -->\n", ""))


def test_the_review_record_stays_last() -> None:
    record = "\n## Review record\n\n| Item | Verdict | Reviewer | Date | Digest |\n|---|---|---|---|---|\n"
    _, _, text = _plan(UNPLANNED + record)
    headings = [heading.text for heading in parse_document(text).headings if heading.level == 2]
    assert headings[-2:] == ["6. Plan", "Review record"]
    _, _, more = _plan(CLEAN + record)
    assert more == CLEAN + record


def test_a_module_that_is_a_package_is_planned_as_its_init_file(tmp_path: Path) -> None:
    (tmp_path / "src" / "shop" / "till").mkdir(parents=True)
    code = Codebase(tmp_path)
    assert code.module_path("shop.till") == "src/shop/till/__init__.py"
    assert code.module_path("shop.money") == "src/shop/money.py"
    assert code.module_path("other.money") == "other/money.py"


@pytest.mark.parametrize(
    "body",
    [
        "    Till = 1\n    return Till\n",
        "    return [Till for Till in ()]\n",
        "    try: ...\n    except ValueError as Till: return Till\n",
        "    def Till(): ...\n    return Till\n",
        "    return (lambda Till: Till)(1)\n",
    ],
)
def test_a_name_that_the_function_binds_itself_is_no_dependency(body: str) -> None:
    text = CLEAN.replace("    return Money(int(float(text) * 100))\n", body)
    assert "shop.till.Till" not in dependencies(parse_document(text)).inferred["shop.money.parse"]
    used = CLEAN.replace("    return Money(int(float(text) * 100))\n", "    return Till\n")
    assert "shop.till.Till" in dependencies(parse_document(used)).inferred["shop.money.parse"]
