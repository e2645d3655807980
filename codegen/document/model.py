"""What a design document says, as frozen values.

Every value carries the 1-based source line it was read from, so that a tool can report it and edit that line alone.
`line` is the first line of a thing, `line_end` its last one (inclusive). A document is read leniently: what is
missing is empty, what is malformed is in `Document.problems`; judging it is the linter's work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from codegen.diagnostics import Finding

STEP_STATUSES = ("NOT_STARTED", "IN_PROGRESS", "DONE", "STALE", "BLOCKED", "FAILED")
METHOD_STATUSES = (*STEP_STATUSES, "ADOPTED")
DOCUMENT_STATUSES = ("draft", "in_review", "approved", "implementing", "done", "superseded")
DECISION_STATUSES = ("proposed", "accepted", "rejected", "superseded")
VERDICTS = ("APPROVED", "REJECTED", "NEEDS_REVIEW")
NOTHING = frozenset({"", "-", "–", "—", "none"})


@dataclass(frozen=True)
class Front:
    """The YAML head. Scalars are kept as text: version 0.10 is not 0.1."""

    id: str = ""
    title: str = ""
    version: str = ""
    status: str = ""
    roots: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    line: int = 0
    line_end: int = 0


@dataclass(frozen=True)
class HistoryRow:
    """A row of the version history."""

    version: str
    date: str
    change: str
    line: int


@dataclass(frozen=True)
class LogRow:
    """A row of the iteration log: one review round."""

    round: str
    date: str
    asked: str
    changed: str
    decisions: str
    line: int


@dataclass(frozen=True)
class Todo:
    """An open to-do, `- T-1: text`; `done` when its box is ticked."""

    id: str
    text: str
    done: bool
    line: int


@dataclass(frozen=True)
class Goal:
    """A goal of Section 1, `- G-1: text`."""

    id: str
    text: str
    line: int


@dataclass(frozen=True)
class Heading:
    """A heading outside fences, quotes and lists. `line_end` is the last line before the next one of its level."""

    level: int
    text: str
    line: int
    line_end: int


@dataclass(frozen=True)
class Section:
    """A numbered heading: "2", "1.3", "5.1.2". `seal` covers its text without any heading's number; `digest`, with
    them, is what review records of the old form hold."""

    id: str
    title: str
    level: int
    line: int
    line_end: int
    digest: str
    seal: str


@dataclass(frozen=True)
class Field:
    """A `- name: value` item. `items` are the texts of a list nested below it."""

    name: str
    value: str
    line: int
    line_end: int
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fence:
    """A block of code. `line` is the opening mark of a fence, and the code begins on the next line.

    An indented block counts as a fence without a language; its `line` is its first line.
    """

    language: str
    code: str
    line: int
    line_end: int
    closed: bool = True


@dataclass(frozen=True)
class Decision:
    """A decision of Section 3."""

    id: str
    title: str
    fields: dict[str, Field]
    line: int
    line_end: int
    digest: str

    def text(self, name: str) -> str:
        """The value of a field, "" where it is absent."""
        found = self.fields.get(name)
        return found.value if found else ""

    @property
    def status(self) -> str:
        return self.text("status").split(" ")[0].strip(".,;:")

    @property
    def affects(self) -> tuple[str, ...]:
        return split_names(self.text("affects"))


@dataclass(frozen=True)
class Module:
    """A heading of Section 5 that says which module the entries below it belong to.

    With `fences` the module is folded: they hold the stubs of its names, `fields` what is said of all of them and
    `notes` what is said of one name only, by its name inside the module. `line_end` is the last line before the next
    heading.
    """

    id: str
    name: str
    line: int
    line_end: int = 0
    purpose: str = ""
    fields: dict[str, Field] = field(default_factory=dict)
    notes: dict[str, Note] = field(default_factory=dict)
    fences: tuple[Fence, ...] = ()

    @property
    def folded(self) -> bool:
        return bool(self.fences)


@dataclass(frozen=True)
class Note:
    """What a folded module says of one name: "- `Till.total`: decisions: D-2; tests: tests/x.py"."""

    name: str
    fields: dict[str, Field]
    line: int
    line_end: int


@dataclass(frozen=True)
class Entry:
    """An API of Section 5: a method, a function, a class, or a family of them in one fence.

    `id` is its identity: the full dotted name, or the title where the heading has no name. `number` is what a reader
    sees and is never a key; of a folded entry it is that of its module. `name` is as written in the heading (without
    backticks and call brackets). `code` is the text of all Python fences, one after another; `code_line` the source
    line of its first line (0 without a fence).

    `contracts` holds, by full name, the digest of what each name it defines promises to a caller. `digest` is, of an
    open entry, over what its text says (name, dependencies, errors and code, of a Full Specification its rules too), of
    a folded one its contract; `seal`, of an open one, is over all that it says, for a review. None of them changes when
    a Markdown formatter passes over the document.
    """

    id: str
    number: str
    module: str
    name: str
    names: tuple[str, ...]
    title: str
    purpose: str
    deps: tuple[str, ...]
    decisions: tuple[str, ...]
    errors: tuple[str, ...]
    tests: str
    code: str
    code_line: int
    fences: tuple[Fence, ...]
    fields: dict[str, Field]
    full_specification: bool
    line: int
    line_end: int
    digest: str
    folded: bool = False
    contracts: dict[str, str] = field(default_factory=dict)
    seal: str = ""

    @property
    def full_name(self) -> str:
        """Dotted name from the top package down; the module's own name for an entry about the whole module."""
        return qualify(self.module, self.name)

    @property
    def full_names(self) -> tuple[str, ...]:
        """The full name of every API the heading names."""
        return tuple(qualify(self.module, name) for name in self.names)

    @property
    def label(self) -> str:
        """How messages call it: "5.2.1 `Till`"."""
        return f"{self.number} `{self.name}`" if self.name else f"{self.number} {self.title}".strip()

    def cell(self, name: str) -> str:
        """What the record holds of one of its names when it is done: `contract.text`, or `contract` once folded."""
        contract = self.contracts.get(name) or self.digest
        return contract if self.folded else f"{contract}.{self.digest}"


@dataclass(frozen=True)
class StepMethod:
    """A name of a step: `section` is the printed number of its entry, `line` that of its row in the record, of its step
    where it has none, or of its row in a method table of the old form (then it is not `recorded`)."""

    name: str
    section: str
    status: str
    digest: str
    line: int
    tests: str = ""
    proof: str = ""
    recorded: bool = False


@dataclass(frozen=True)
class RecordRow:
    """A row of the record: what is known of one name, decision or section. Cells are "" where nothing is known.

    `step` is the number of the step the name was finished in; `tests` and `proof` are what the workflow writes;
    `approved` is the digest of the text that was judged.
    """

    item: str
    status: str = ""
    step: str = ""
    digest: str = ""
    tests: str = ""
    proof: str = ""
    verdict: str = ""
    reviewer: str = ""
    date: str = ""
    approved: str = ""
    line: int = 0


@dataclass(frozen=True)
class StepRow:
    """A row of the table of steps."""

    number: int
    title: str
    depends: tuple[int, ...]
    status: str
    commit: str
    line: int
    names: int | None = None


@dataclass(frozen=True)
class Step:
    """A step of Section 6: its row in the table and its own heading. `row_line` or `line` is 0 where one lacks.

    A finished step has no heading: its methods are the names that the record gives to it, as many as `names` says.
    """

    number: int
    title: str
    depends: tuple[int, ...]
    status: str
    commit: str
    purpose: str
    files: tuple[str, ...]
    checkpoints: str
    tests: str
    rollback: str
    methods: tuple[StepMethod, ...]
    fields: dict[str, Field]
    row_line: int
    line: int
    line_end: int
    names: int | None = None

    @property
    def folded(self) -> bool:
        """Whether only its row is left: it was finished and committed."""
        return bool(self.row_line) and not self.line


@dataclass(frozen=True)
class Approval:
    """Who judged what, and the digest of the text that was judged; `item` is an identity, never a number."""

    item: str
    verdict: str
    reviewer: str
    date: str
    digest: str
    line: int


@dataclass(frozen=True)
class Table:
    """A pipe table: its heading row, the lines of its body rows and the columns by lower-case title."""

    columns: tuple[str, ...]
    line: int
    line_end: int
    rows: tuple[TableRow, ...]


@dataclass(frozen=True)
class TableRow:
    """A body row; cells are decoded (escaped pipes and punctuation)."""

    cells: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Document:
    """A design document and the exact text it was read from."""

    path: Path
    text: str
    newline: str
    lines: tuple[str, ...]
    front: Front
    title: str
    history: tuple[HistoryRow, ...]
    log: tuple[LogRow, ...]
    todos: tuple[Todo, ...]
    goals: tuple[Goal, ...]
    headings: tuple[Heading, ...]
    sections: tuple[Section, ...]
    decisions: tuple[Decision, ...]
    modules: tuple[Module, ...]
    entries: tuple[Entry, ...]
    step_rows: tuple[StepRow, ...]
    steps: tuple[Step, ...]
    approvals: tuple[Approval, ...]
    record_rows: tuple[RecordRow, ...]
    old_approvals: tuple[Approval, ...]
    fences: tuple[Fence, ...]
    tables: tuple[Table, ...]
    problems: tuple[Finding, ...]

    @property
    def id(self) -> str:
        return self.front.id or self.path.stem

    @cached_property
    def entry_by_id(self) -> dict[str, Entry]:
        """Entries by identity; the first one where a name is used twice."""
        found: dict[str, Entry] = {}
        for entry in self.entries:
            found.setdefault(entry.id, entry)
        return found

    @cached_property
    def entry_by_number(self) -> dict[str, Entry]:
        """Open entries by printed number; the first one where a number is used twice."""
        found: dict[str, Entry] = {}
        for entry in self.entries:
            if not entry.folded:
                found.setdefault(entry.number, entry)
        return found

    @cached_property
    def entry_by_name(self) -> dict[str, Entry]:
        """The entry that defines each full name: by its heading, else by its fence."""
        found: dict[str, Entry] = {}
        for entry in self.entries:
            for name in entry.full_names:
                found.setdefault(name, entry)
        for entry in self.entries:
            for name in entry.contracts:
                found.setdefault(name, entry)
        return found

    @cached_property
    def record(self) -> dict[str, RecordRow]:
        """The rows of the record by item; the first one where an item has two."""
        found: dict[str, RecordRow] = {}
        for row in self.record_rows:
            found.setdefault(row.item, row)
        return found

    @cached_property
    def decision_by_id(self) -> dict[str, Decision]:
        found: dict[str, Decision] = {}
        for decision in self.decisions:
            found.setdefault(decision.id, decision)
        return found

    @cached_property
    def step_by_number(self) -> dict[int, Step]:
        found: dict[int, Step] = {}
        for step in self.steps:
            found.setdefault(step.number, step)
        return found

    @cached_property
    def _entry_by_local_name(self) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for entry in self.entries:
            for name in entry.names:
                found.setdefault(name, entry)
        return found

    def entry(self, ident: str) -> Entry | None:
        """The entry with this identity, printed number, full name or name as written in its heading."""
        for known in (self.entry_by_id, self.entry_by_number, self.entry_by_name, self._entry_by_local_name):
            if ident in known:
                return known[ident]
        return None

    def entry_of(self, method: StepMethod) -> Entry | None:
        """The entry that a method of a step means. Its name says so; the number counts in a row without a name only."""
        return self.entry(method.name) if method.name else self.entry_by_number.get(method.section)

    def section(self, ident: str) -> Section | None:
        return next((section for section in self.sections if section.id == ident), None)


def qualify(module: str, name: str) -> str:
    """`name` with `module` before it, unless it is there already."""
    if not module or not name or name == module or name.startswith(module + "."):
        return name or module
    return f"{module}.{name}"


def split_names(value: str, separators: str = ",;") -> tuple[str, ...]:
    """Cut a list written in prose at its separators, outside code spans and brackets; `-` and `none` are empty.

    Backticks around a whole item and call brackets after it are dropped: "`Table.release()`" is `Table.release`.
    """
    items: list[str] = []
    current, depth, in_code = "", 0, False
    for character in value:
        if character == "`":
            in_code = not in_code
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth = max(0, depth - 1)
        if character in separators and not in_code and depth == 0:
            items.append(current)
            current = ""
        else:
            current += character
    items.append(current)
    names = (clean_name(item) for item in items)
    return tuple(name for name in names if name.lower() not in NOTHING)


def clean_name(text: str) -> str:
    """A name without the marks of prose around it: backticks, full stop, empty call brackets."""
    name = text.strip().rstrip(".").strip()
    if len(name) > 1 and name[0] == name[-1] == "`" and "`" not in name[1:-1]:
        name = name[1:-1].strip()
    return name.removesuffix("()")
