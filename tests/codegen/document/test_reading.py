from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from codegen.diagnostics import UsageError
from codegen.document import parse_document, read_document
from codegen.document.blocks import _tokens, plain, read_blocks, split_lines
from codegen.document.model import clean_name, qualify, split_names
from tests.codegen.document.samples import CLEAN, generated, handmade
from tests.codegen.document.views import formatted, view

HANDMADE = handmade()
PROSE = r"""_em_ and __bold__ and ***both*** a_b_c 2 * 3 * 4 <b>x</b> &amp; a\*b [l](http://x.y "t") ![i](p)
hard break\
third ``a`b`` end. 1) x

1) one
2) two
   - a

     para in item

***

#### 4.1.1 Deep ##

    indented code
    # no heading

| a | b |
|:-:|--:|
| x\|y | `c\|d` |
| short |

- [ ] box

* b loose

  ```python
  # ## 6. Plan
  ```

"""


def test_front_matter_is_read_as_text() -> None:
    front = parse_document(CLEAN.replace("version: 0.2", "version: 0.10")).front
    assert (front.id, front.version, front.status) == ("till", "0.10", "approved")
    assert front.roots == ("shop",)
    assert front.supersedes == ()


@pytest.mark.parametrize(
    ("head", "line", "words"),
    [
        ("# no head\n", 1, "does not begin"),
        ("---\nid: x\n", 1, "never closed"),
        ("---\nid: x\nid: y\n---\n", 3, "twice"),
        ("---\n- a\n---\n", 2, "not a mapping"),
        ("---\nid: [\n---\n", 2, "not YAML"),
        ("---\nid: {a: b}\n---\n", 2, "neither a text nor a list"),
        ("---\ntitle: [a]\n---\n", 2, "one text"),
        ("---\nid: x\nroots: [../other]\n---\n", 3, "inside the project"),
        ("---\nid: x\nroots: /etc\n---\n", 3, "inside the project"),
        ("---\nid: x\nroots: ['']\n---\n", 3, "inside the project"),
        ("---\nid: " + "[" * 5_000 + "\n---\n", 1, "nested too deeply"),
    ],
)
def test_a_bad_front_matter_is_named_with_its_line(head: str, line: int, words: str) -> None:
    problems = [p for p in parse_document(head).problems if words in p.message]
    assert problems
    assert problems[0].code == "DOC001"
    assert abs(problems[0].line - line) <= 1


def test_lines_of_the_model_are_lines_of_the_source() -> None:
    document = parse_document(HANDMADE["crlf"])

    def at(line: int) -> str:
        return document.lines[line - 1].rstrip("\r\n")

    entry = document.entry_by_number["5.1.2"]
    assert at(entry.line) == "#### 5.1.2 `parse`"
    assert at(entry.code_line).startswith("def parse")
    assert at(entry.fields["deps"].line) == "- deps: 5.1.1"
    step = document.step_by_number[2]
    assert at(step.line) == "### Step 2: Till"
    assert at(step.row_line).startswith("| 2 | Till")
    assert at(step.methods[1].line).startswith("| `shop.till.Till.total`")
    assert at(document.decision_by_id["D-2"].line).startswith("### D-2")
    assert at(document.history[1].line).startswith("| 0.2")
    assert at(document.todos[0].line).startswith("- T-1")
    assert at(document.goals[1].line).startswith("- G-2")
    assert at(document.front.lines["status"]).startswith("status:")


def test_entry_fields_are_read() -> None:
    document = parse_document(CLEAN)
    total = document.entry_by_number["5.2.2"]
    assert total.full_name == "shop.till.Till.total"
    assert total.deps == ("5.2.1", "shop.money.Money")
    assert total.decisions == ("D-2",)
    assert total.errors == ()
    assert total.purpose == "The sum, rounded once."
    assert not total.full_specification
    assert document.entry_by_number["5.2.3"].full_specification
    assert document.entry_by_number["5.2.3"].name == "_check_lines"


@pytest.mark.parametrize("heading", ["_check_lines - Full Specification", "_check_lines: full specification (rules)"])
def test_a_full_specification_has_its_name_with_or_without_backticks(heading: str) -> None:
    changed = CLEAN.replace("`_check_lines` - Full Specification", heading)
    entry = parse_document(changed).entry_by_number["5.2.3"]
    assert (entry.name, entry.full_specification) == ("_check_lines", True)
    assert (
        parse_document(changed).entry_by_number["5.2.3"].digest == parse_document(CLEAN).entry_by_number["5.2.3"].digest
    )


@pytest.mark.parametrize("name", HANDMADE)
def test_every_layout_says_the_same(name: str) -> None:
    document, clean = parse_document(HANDMADE[name]), parse_document(CLEAN)
    assert [e.id for e in document.entries] == [e.id for e in clean.entries]
    assert [e.deps for e in document.entries] == [e.deps for e in clean.entries]
    assert [s.status for s in document.steps] == ["DONE", "NOT_STARTED"]
    assert [(m.name, m.status) for s in document.steps for m in s.methods] == [
        (m.name, m.status) for s in clean.steps for m in s.methods
    ]
    assert [d.id for d in document.decisions] == ["D-1", "D-2"]
    assert [d.status for d in document.decisions] == ["accepted", "accepted"]
    assert not document.problems
    if name != "foreign":
        assert [e.digest for e in document.entries] == [e.digest for e in clean.entries]


@pytest.mark.parametrize("seed", range(50))
def test_a_generated_document_is_read_as_it_was_written(seed: int) -> None:
    made = generated(seed)
    document = parse_document(made.text)
    assert {d.id: d.title for d in document.decisions} == made.decisions
    assert {e.number: (e.name, e.deps) for e in document.entries} == made.entries
    assert {s.number: (s.title, s.status) for s in document.steps} == made.steps
    assert [(s.number, m.name, m.section, m.status) for s in document.steps for m in s.methods] == made.methods
    assert not document.problems


@pytest.mark.parametrize("name", HANDMADE)
def test_a_formatter_changes_nothing_that_the_tools_see(name: str) -> None:
    text = HANDMADE[name].replace("A sale is open", PROSE + "A sale is open")
    if name == "padded":
        text = text.replace("commit\n|", "commit\n\n|")
    assert view(parse_document(formatted(text))) == view(parse_document(text))


@pytest.mark.parametrize("seed", range(50))
def test_a_formatter_changes_nothing_in_a_generated_document(seed: int) -> None:
    text = generated(seed).text
    assert view(parse_document(formatted(text))) == view(parse_document(text))


def test_structure_in_fences_quotes_and_comments_is_not_read() -> None:
    for name in ("boxes", "tildes"):
        document = parse_document(HANDMADE[name])
        assert "T-9" not in [todo.id for todo in document.todos]
        assert 9 not in document.step_by_number
        assert "5.9.1" not in document.entry_by_number
        assert "D-9" not in document.decision_by_id


@pytest.mark.parametrize("number", ["9" * 5_000, "\u00b2", "x"])
def test_a_step_number_that_is_none_is_a_problem_of_its_row(number: str) -> None:
    changed = re.sub(r"(?m)^\|\s*1\s*\|(?=.*DONE)", f"| {number} |", CLEAN)
    assert changed != CLEAN
    document = parse_document(changed)
    assert "DOC003" in {problem.code for problem in document.problems}


def test_an_unclosed_fence_is_a_problem_at_its_opening() -> None:
    text = CLEAN.replace(
        "        return Money(self.cents + other.cents)\n```", "        return Money(self.cents + other.cents)"
    )
    document = parse_document(text)
    [problem] = document.problems
    assert problem.code == "DOC002"
    assert document.lines[problem.line].startswith("@dataclass")
    [last] = parse_document(CLEAN + "\n```\nopen\n").problems
    assert "never closed" in last.message


def test_a_table_right_after_a_list_is_read() -> None:
    text = CLEAN.replace("- rollback: revert the commit\n\n|", "- rollback: revert the commit\n|")
    document = parse_document(text)
    assert [len(step.methods) for step in document.steps] == [2, 3]
    assert document.steps[0].rollback == "revert the commit"
    assert document.lines[document.steps[1].methods[0].line - 1].startswith("| `shop.till.Till`")


def test_digests_are_the_same_everywhere() -> None:
    digests = {entry.number: entry.digest for entry in parse_document(CLEAN).entries}
    assert digests["5.1.1"] == "32dbb969"
    assert digests["5.1.2"] == "67846cd2"


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("An amount in cents.", "An amount.", False),
        (
            "- decisions: D-1\n- errors: ValueError when the amount",
            "- decisions: D-2\n- errors: ValueError when the amount",
            False,
        ),
        ("    cents: int\n\n    def", "    cents: int   \n    def", False),
        ("    cents: int\n", "    cents: float\n", True),
        ("# VAL: VAL_TYPE_CHECK(Money)", "# VAL: VAL_NON_EMPTY", True),
        ("ValueError when the amount is negative", "TypeError when the amount is negative", True),
        ("in cents.\n\n- deps: -", "in cents.\n\n- deps: 5.1.2", True),
    ],
)
def test_a_digest_covers_code_errors_and_dependencies(old: str, new: str, changes: bool) -> None:
    assert old in CLEAN
    before, after = parse_document(CLEAN), parse_document(CLEAN.replace(old, new))
    assert (before.entry_by_number["5.1.1"].digest != after.entry_by_number["5.1.1"].digest) is changes


def test_renumbering_changes_no_digest() -> None:
    text = (
        CLEAN.replace("5.2.", "5.7.")
        .replace("### 5.2 ", "### 5.7 ")
        .replace("5.1.", "5.4.")
        .replace("### 5.1 ", "### 5.4 ")
    )
    assert [e.digest for e in parse_document(text).entries] == [e.digest for e in parse_document(CLEAN).entries]


def test_a_full_specification_digest_covers_its_rules() -> None:
    changed = parse_document(CLEAN.replace("every line is above zero", "every line is zero"))
    assert changed.entry_by_number["5.2.3"].digest != parse_document(CLEAN).entry_by_number["5.2.3"].digest


def test_reading_in_pieces_is_the_same_as_reading_at_once() -> None:
    for text in [*HANDMADE.values(), *(generated(seed).text for seed in range(10))]:
        body = text.split("---", 2)[2]
        whole = body.replace("\n#", "\n #")
        pieces, once = read_blocks(body), read_blocks(whole)
        kinds = [(type(b).__name__, b.line, b.line_end) for b in pieces]
        assert kinds == [(type(b).__name__, b.line, b.line_end) for b in once]


PARTS = [
    "- ",
    "> ",
    "1. ",
    "2) ",
    "    ",
    "  ",
    "\t",
    "a",
    "| a | b |",
    "|---|---|",
    "---",
    "***",
    "_ _ _",
    "===",
    "=",
    "# x",
    "+",
]
PARTS += ["<div>", "<!-- x", "-->", "[a]: b", "[", "```", "~~~py", "`", "\\", ":-:", "|"]


@settings(deadline=None, derandomize=True, max_examples=600)
@given(
    st.lists(st.lists(st.sampled_from(PARTS), max_size=4).map("".join), max_size=9),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_rules_left_out_would_have_found_nothing(lines: list[str], newline: str) -> None:
    text = newline.join(lines) + newline
    plainly = MarkdownIt("commonmark").enable("table").parse(text.replace("\r\n", "\n").replace("\r", "\n"))
    seen = [(token.type, token.map, token.content, token.info) for token in _tokens(text)]
    assert seen == [(token.type, token.map, token.content, token.info) for token in plainly]


def test_lines_are_cut_where_markdown_cuts_them() -> None:
    assert split_lines("a\r\nb\rc\nd\u2028e\x0bf") == ["a\r\n", "b\r", "c\n", "d\u2028e\x0bf"]


def test_plain_text_undoes_escapes_outside_code_only() -> None:
    assert plain("a \\* b\n  `c \\* d`  \\| e") == "a * b `c \\* d` | e"


def test_lists_of_names_keep_commas_in_brackets_and_code() -> None:
    assert split_names("5.1.1, `dict[str, int]`, f(a, b); `g()`.") == ("5.1.1", "dict[str, int]", "f(a, b)", "g")
    assert split_names("-") == split_names("none") == split_names(" – ") == ()
    assert clean_name("`Table.release()`") == "Table.release"


def test_a_qualified_name_is_not_qualified_twice() -> None:
    assert qualify("a.b", "C.d") == "a.b.C.d"
    assert qualify("a.b", "a.b.C") == "a.b.C"
    assert qualify("a.b", "a.b") == "a.b"


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_bytes(b"---\nid: \xff\n")
    with pytest.raises(UsageError, match="byte 8 is not UTF-8"):
        read_document(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_document(tmp_path / "none.md")


def test_a_fence_that_swallows_the_opening_of_the_next_one_is_named_where_it_was_opened() -> None:
    text = CLEAN + "\n```text\nwords\n\nmore words\n\n```python\nx = 1\n```\n"
    found = [(problem.code, problem.line) for problem in parse_document(text).problems]
    assert found == [("DOC002", text[: text.index("```text")].count("\n") + 1)]
    whole = CLEAN + "\n````text\n```\nwords\n```\n````\n"
    assert not parse_document(whole).problems
