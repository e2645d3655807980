from __future__ import annotations

import pytest

from codegen.diagnostics import UsageError
from codegen.document import parse_document, set_method_status, set_step_status
from codegen.plan.draw import decision_drawing, dot, mermaid, method_drawing, module_drawing, step_drawing
from codegen.plan.graph import dependencies
from codegen.plan.impact import impact
from codegen.plan.progress import progress
from tests.codegen.document.samples import CLEAN


def test_progress_counts_sections_steps_and_methods() -> None:
    state = progress(parse_document(CLEAN))
    assert state.counts == {"DONE": 2, "NOT_STARTED": 3}
    assert [(s.id, s.done, s.entries) for s in state.sections] == [("5.1", 2, 2), ("5.2", 0, 3)]
    assert [(s.number, s.status, s.done) for s in state.steps] == [(1, "DONE", 2), (2, "NOT_STARTED", 0)]
    assert (state.ready, state.next, state.done) == ((2,), 2, False)
    assert state.todos == ("T-1: currencies without cents",)
    assert state.unplanned == ()


def test_a_step_waits_until_what_it_depends_on_is_done() -> None:
    text = set_step_status(parse_document(CLEAN), 1, "FAILED")
    state = progress(parse_document(text))
    assert state.steps[1].waits_for == (1,)
    assert state.ready == (1,)


def test_a_step_in_progress_is_next() -> None:
    text = set_step_status(parse_document(CLEAN), 2, "IN_PROGRESS")
    assert progress(parse_document(text)).next == 2


def test_a_changed_method_shows_as_stale_whatever_the_table_says() -> None:
    state = progress(parse_document(CLEAN.replace("    cents: int\n", "    cents: float\n")))
    assert [(m.status, m.recorded) for m in state.steps[0].methods] == [("STALE", "DONE"), ("DONE", "DONE")]
    assert state.steps[0].status == "STALE"
    assert state.steps[1].waits_for == (1,)


def test_a_document_is_done_when_all_steps_are_and_nothing_is_unplanned() -> None:
    document = parse_document(CLEAN)
    text = document.text
    for entry in ("5.2.1", "5.2.2", "5.2.3"):
        text = set_method_status(parse_document(text), 2, entry, "DONE", document.entry_by_number[entry].digest)
    text = set_step_status(parse_document(text), 2, "DONE")
    assert progress(parse_document(text)).done
    more = "#### 5.2.4 `Till.close`\n\n```python\ndef close(self): ...\n```\n\n## 6. Plan"
    assert not progress(parse_document(text.replace("## 6. Plan", more))).done


def test_impact_of_a_decision_goes_down_to_its_steps() -> None:
    document = parse_document(CLEAN)
    found = [(item.kind, item.id, item.distance) for item in impact(document, "D-1")]
    assert found == [
        ("method", "5.1.1", 1),
        ("method", "5.1.2", 1),
        ("method", "5.2.1", 2),
        ("method", "5.2.2", 2),
        ("method", "5.2.3", 2),
        ("step", "Step 1", 2),
        ("step", "Step 2", 3),
    ]


def test_impact_follows_decisions_that_speak_of_decisions_and_sections() -> None:
    text = CLEAN.replace("- drivers: callers disagree", "- drivers: D-1 leaves fractions")
    text = text.replace("- affects: 5.1\n", "- affects: 5.1, 1.1\n")
    found = [(item.kind, item.id, item.why) for item in impact(parse_document(text), "D-1")]
    assert ("decision", "D-2", "speaks of D-1") in found
    assert ("section", "1.1", "D-1") in found


def test_impact_of_a_method_is_everything_that_uses_it() -> None:
    document = parse_document(CLEAN)
    for name in ("5.2.1", "Till", "shop.till.Till"):
        found = [item.id for item in impact(document, name)]
        assert found == ["5.2.2", "Step 2"]
    assert "5.2.2" in [item.id for item in impact(document, "shop.money")]
    assert [item.id for item in impact(document, "G-1")] == ["5.1.2", "Step 1"]


def test_impact_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="no decision, goal, method or module 'D-9'"):
        impact(parse_document(CLEAN), "D-9")


def test_drawings_in_mermaid_and_dot() -> None:
    document = parse_document(CLEAN)
    drawing = step_drawing((s.number, s.title, s.depends) for s in document.steps)
    assert mermaid(drawing) == 'flowchart LR\n    s1["1. Money"]\n    s2["2. Till"]\n    s1 --> s2\n'
    assert dot(drawing, "till") == (
        'digraph "till" {\n    rankdir=LR;\n    node [shape=box];\n'
        '    s1 [label="1. Money"];\n    s2 [label="2. Till"];\n    s1 -> s2;\n}\n'
    )


def test_labels_cannot_break_a_drawing() -> None:
    drawing = step_drawing([(1, 'a "b" <c> & `d` \\', ())])
    assert '["1. a &quot;b&quot; &lt;c&gt; &amp; d \\"]' in mermaid(drawing)
    assert 'label="1. a \\"b\\" <c> & `d` \\\\"' in dot(drawing)


def test_drawings_of_methods_modules_and_decisions() -> None:
    document = parse_document(CLEAN)
    graph = dependencies(document)
    assert "nshop_money_Money --> nshop_till_Till" in mermaid(method_drawing(graph))
    assert mermaid(module_drawing(graph)).endswith("    m1 --> m2\n")
    assert "nD_2 --> n5_2_2" in mermaid(decision_drawing(document))
