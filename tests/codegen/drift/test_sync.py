"""Code that moved first is brought into the document: what differed is rewritten, the rest of the text stays."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import pytest

from codegen.document.parse import parse_document
from codegen.drift.code import Code
from codegen.drift.sync import propose

if TYPE_CHECKING:
    from tests.codegen.drift.conftest import Project


def proposed(project: Project) -> tuple[list[str], list[str]]:
    """Changed lines of the document, and the messages of the drift that is left."""
    project.write()
    document = parse_document(project.section, project.root / "design" / "shelf.md")
    proposal = propose(document, Code(project.root))
    diff = difflib.unified_diff(project.section.split("\n"), proposal.text.split("\n"), n=0, lineterm="")
    changed = [line for line in diff if not line.startswith(("---", "+++", "@@"))]
    return changed, [finding.message for finding in proposal.left.findings]


def test_nothing_is_proposed_where_code_and_document_agree(project: Project) -> None:
    assert proposed(project) == ([], [])


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        (
            "retries: int = 3)",
            "retries: int = 5, *, hurry: bool = False)",
            [
                '-async def send(self, place: int, retries: int = 3) -> "Parcel": ...',
                "+async def send(self, place: int, retries: int = 5, *, hurry: bool = False) -> Parcel: ...",
            ],
        ),
        (
            "put(self, parcel: Parcel, *, label: str | None = None)",
            "put(self, packet: Parcel)",
            [
                "-def put(self, parcel: Parcel, *, label: Optional[str] = None) -> int:",
                "-    self.parcels.append(parcel)",
                "+def put(self, packet: Parcel) -> int:",
                "+    self.parcels.append(packet)",
            ],
        ),
        (
            "weight: float = 1.0",
            "weight: float = 2.0\n    colour: str = ''",
            ["-    weight: float = 1.0", "+    weight: float = 2.0", "+    colour: str = ''"],
        ),
        ("    @property\n", "", ["-    @property"]),
        (
            "VAL_INT_RANGE(room, min=1)",
            "VAL_INT_RANGE(room, min=2) - one is no shelf",
            [
                "-        # VAL: VAL_INT_RANGE(room, min=1)",
                "-        ...",
                "+        # VAL: VAL_INT_RANGE(room, min=2) - one is no shelf",
                "+        self.room = room",
                "+        self.parcels: list[Parcel] = []",
            ],
        ),
        (
            "class Full(Exception):",
            "class Full(ValueError):",
            ["-class Full(Exception): ...", "+class Full(ValueError):", "+    ..."],
        ),
    ],
)
def test_a_definition_that_moved_is_rewritten_and_no_other_line(
    project: Project, old: str, new: str, changed: list[str]
) -> None:
    assert proposed(project.change_code(old, new)) == (changed, [])


def test_an_undocumented_callable_gets_an_entry_at_the_end_of_its_module(project: Project) -> None:
    project.change_code("def weigh(", 'def heavy(it: Parcel) -> bool:\n    """Whether it is."""\n\n\ndef weigh(')
    changed, left = proposed(project)
    assert left == []
    assert changed == ["+", "+```python", "+def heavy(it: Parcel) -> bool: ...", "+```"]


def test_a_new_module_gets_a_heading_at_the_end_of_section_5(project: Project) -> None:
    project.write()
    (project.root / "store" / "till.py").write_text("def pay(amount: int) -> None: ...\n")
    changed, left = proposed(project)
    assert left == []
    assert changed == ["+### 5.2 `store.till`", "+", "+```python", "+def pay(amount: int) -> None: ...", "+```", "+"]


def test_a_new_member_is_shown_in_its_class(project: Project) -> None:
    heavy = "    weight: float = 1.0\n\n    @property\n    def heavy(self) -> bool:\n        return self.weight > 9\n"
    changed, left = proposed(project.change_code("    weight: float = 1.0\n", heavy))
    assert changed == ["+", "+    @property", "+    def heavy(self) -> bool: ..."]
    assert left == []


def test_a_new_member_opens_a_class_that_was_shown_in_one_line(project: Project) -> None:
    full = "    def room(self) -> int:\n        return 1\n\n\n@dataclass(frozen=True)"
    changed, left = proposed(project.change_code("\n\n@dataclass(frozen=True)", full))
    assert changed == ["-class Full(Exception): ...", "+class Full(Exception):", "+    def room(self) -> int: ..."]
    assert left == []


def test_an_undocumented_exception_is_added_to_the_errors(project: Project) -> None:
    project.change_code("        self.parcels.append(parcel)\n", "        raise KeyError('x')\n")
    changed, left = proposed(project)
    assert changed == ["-- errors: Full when no place is free", "+- errors: Full when no place is free; KeyError"]
    assert left == []


def test_an_exception_of_an_entry_without_errors_gets_the_line(project: Project) -> None:
    project.change_code("    return sum(parcel", "    if not parcels:\n        raise Full('x')\n    return sum(parcel")
    changed, left = proposed(project)
    assert changed == ["+- errors: Full", "+"]
    assert left == []


def test_a_hidden_constructor_is_shown(project: Project) -> None:
    shown = "    def __init__(self, room: int) -> None:\n        # VAL: VAL_INT_RANGE(room, min=1)\n        ...\n\n"
    changed, left = proposed(project.change_section(shown, ""))
    assert "+    def __init__(self, room: int) -> None:" in changed
    assert left == []


def test_what_only_the_document_has_is_left_to_the_author(project: Project) -> None:
    changed, left = proposed(project.change_code("def weigh(", "def _weigh("))
    assert changed == []
    assert left == ["store.shelf.weigh is in the document, not in the code (nearest: _weigh, store/shelf.py:57)"]


def test_the_digest_of_a_done_method_is_taken_again_with_its_text(project: Project) -> None:
    document = parse_document(project.section)
    old = {entry.number: entry.digest for entry in document.entries}
    project.change_section("| 5.1.5 | DONE | - |", f"| 5.1.5 | DONE | {old['5.1.5']} |")
    project.change_code("parcels: list[Parcel]) -> float", "parcels: list[Parcel]) -> int")
    project.write()
    new = parse_document(propose(parse_document(project.section), Code(project.root)).text)
    row = new.steps[0].methods[1]
    assert row.digest == new.entry_by_number["5.1.5"].digest != old["5.1.5"]


def test_a_method_that_was_stale_before_stays_stale(project: Project) -> None:
    project.change_section("| 5.1.5 | DONE | - |", "| 5.1.5 | DONE | 00000000 |")
    project.change_code("parcels: list[Parcel]) -> float", "parcels: list[Parcel]) -> int")
    project.write()
    new = parse_document(propose(parse_document(project.section), Code(project.root)).text)
    assert new.steps[0].methods[1].digest == "00000000"


def test_compact_leaves_signature_annotations_and_raises_of_what_is_done(project: Project) -> None:
    before = parse_document(project.section).entry_by_number["5.1.3"].digest
    row = "| `weigh` | 5.1.5 | DONE | - |\n"
    project.change_section(row, f"{row}| `Shelf.put` | 5.1.3 | DONE | {before} |\n")
    project.write()
    document = parse_document(project.section, project.root / "design" / "shelf.md")
    once = propose(document, Code(project.root), compact=True)
    [put] = [entry for entry in parse_document(once.text).entries if entry.name == "Shelf.put"]
    assert put.code == (
        "def put(self, parcel: Parcel, *, label: str | None = None) -> int:\n"
        "    if self.free == 0:\n"
        "        raise Full(parcel.name)\n"
        "    ...\n"
        "    # AST: AST_POSTCONDITION(len(self.parcels) > 0)\n"
        "    ...\n"
    )
    assert once.left.is_clean
    new = parse_document(once.text, document.path)
    assert new.steps[0].methods[2].digest == put.digest != before
    assert propose(new, Code(project.root), compact=True).text == once.text


def test_compact_leaves_what_is_stale_or_not_done_as_its_author_wrote_it(project: Project) -> None:
    row = "| `weigh` | 5.1.5 | DONE | - |\n"
    for status in ("IN_PROGRESS", "STALE"):
        section = project.section
        project.section = section.replace(row, f"{row}| `Shelf.put` | 5.1.3 | {status} | - |\n")
        project.write()
        document = parse_document(project.section, project.root / "design" / "shelf.md")
        compact = propose(document, Code(project.root), compact=True).text
        assert parse_document(compact).entry_by_number["5.1.3"].code == document.entry_by_number["5.1.3"].code
        project.section = section


BODY = "    self.parcels.append(parcel)\n"


def put(project: Project, signature: str, body: str = BODY) -> Project:
    """The method with another signature in the code, and another body in the document."""
    project.change_code("put(self, parcel: Parcel, *, label: str | None = None) -> int", f"put({signature}) -> int")
    return project.change_section(BODY, body)


@pytest.mark.parametrize(
    ("signature", "body", "expected"),
    [
        ("self, packet: Parcel, *, label: str | None = None", BODY, "    self.parcels.append(packet)\n"),
        (
            "self, packet: Parcel, *, tag: str | None = None",
            "    self.parcels.append((parcel, label, parcel))  # parcel\n",
            "    self.parcels.append((packet, tag, packet))  # parcel\n",
        ),
        (
            "self, packet: Parcel, *, label: str | None = None",
            "    größe = 'ü' + parcel\n    parcel.parcel = keep(parcel=parcel)\n",
            "    größe = 'ü' + packet\n    packet.parcel = keep(parcel=packet)\n",
        ),
        # the body reads it under a name of its own
        ("self, packet: Parcel", "    parcel = 3\n    return parcel\n", "    parcel = 3\n    return parcel\n"),
    ],
)
def test_a_renamed_parameter_is_renamed_where_the_body_reads_it(
    project: Project, signature: str, body: str, expected: str
) -> None:
    put(project, signature, body).write()
    document = parse_document(project.section, project.root / "design" / "shelf.md")
    text = propose(document, Code(project.root)).text
    assert f"def put({signature}) -> int:\n{expected}" in text


@pytest.mark.parametrize(
    ("signature", "body"),
    [
        ("self, *, label: str | None = None", BODY),  # it is gone
        ("self, label: str | None = None", BODY),  # another one has its place
        ("self, packet: Parcel", "    packet = wrap(parcel)\n"),  # the new name is taken
        ("self, packet: Parcel", "    keep(parcel, packet)\n"),
    ],
)
def test_a_body_is_not_left_below_a_signature_that_lost_a_name_of_it(
    project: Project, signature: str, body: str
) -> None:
    changed, left = proposed(put(project, signature, body))
    assert changed == []
    assert any(message.startswith("Shelf.put: parameter `parcel` ") for message in left)


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (BODY, [1]),
        ("    x = 1\n    if parcel:\n        keep(parcel, parcel)\n    return parcel\n", [2, 3, 3, 4]),
        ("    ...\n", []),
        ("    for parcel in self.parcels:\n        print(parcel)\n", []),
        ("    with open(self.name) as parcel:\n        parcel.read()\n", []),
        ("    try:\n        pass\n    except Full as parcel:\n        print(parcel)\n", []),
        ("    return [parcel for parcel in self.parcels]\n", []),
        ("    import parcel\n    return parcel.x\n", []),
        ("    match self.x:\n        case [parcel, *rest]:\n            return parcel, rest\n", []),
        ("    return place, weigh, Parcel, len, field, __name__\n", []),  # what the code's function and module bind
        ("    return lambda parcel: parcel\n", []),
    ],
)
def test_drift_names_the_lines_of_a_body_that_reads_what_nothing_binds(
    project: Project, body: str, lines: list[int]
) -> None:
    # signature and code agree again: only the body was left behind
    put(project, "self, packet: Parcel", body)
    project.change_section("put(self, parcel: Parcel, *, label: Optional[str] = None)", "put(self, packet: Parcel)")
    project.change_code("raise Full(parcel.name)", "raise Full(packet.name)")
    project.change_code("self.parcels.append(parcel)", "self.parcels.append(packet)")
    found = [each for each in project.report().findings if each.code == "DRF018"]
    head = project.section.split("\n").index("def put(self, packet: Parcel) -> int:") + 1
    assert {each.line - head for each in found} == set(lines)
    parcels = [each for each in found if "Shelf.put: the body uses `parcel`, which nothing binds" in each.message]
    assert {each.line - head for each in parcels} == set(lines) and {each.severity for each in found} <= {"warning"}
