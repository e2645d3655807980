"""The codes of the document linter. A code never changes its meaning; one that is retired is not used again."""

from __future__ import annotations

from codegen.diagnostics import Finding, Severity
from codegen.document.model import Document

CODES: dict[str, tuple[Severity, str]] = {
    "DOC001": ("error", "The front matter is missing, unreadable or lacks a key"),
    "DOC002": ("error", "A code fence is never closed"),
    "DOC003": ("error", "A row of the table of steps has no number"),
    "DOC004": ("error", "A step number is used twice"),
    "DOC005": ("error", "A section from 1 to 6 is missing, doubled or out of order"),
    "DOC006": ("error", "A status word is not one of the known ones"),
    "DOC007": ("error", "Version and version history do not agree"),
    "DOC008": ("warning", "The title of the document and of the front matter differ"),
    "DOC009": ("warning", "A table follows a list without a blank line, so forges show it as text"),
    "DOC010": ("error", "An id (section, decision, goal, to-do) is used twice"),
    "DOC011": ("error", "A numbered heading is under a heading of another number"),
    "DOC012": ("warning", "A placeholder of the template was not filled in"),
    "DOC013": ("note", "A section has no text"),
    "DOC014": ("warning", "A line ends in blanks"),
    "DOC015": ("error", "A conflict mark of a merge"),
    "DOC016": ("note", "An open to-do in a document that is done"),
    "DOC017": ("warning", "A field is written twice, and only the first one counts"),
    "REF001": ("error", "A dependency that is not in the document"),
    "REF002": ("error", "Dependencies go in a cycle"),
    "REF003": ("error", "An entry depends on itself"),
    "REF004": ("error", "An entry names a decision or goal that does not exist"),
    "REF005": ("warning", "An accepted decision that no section implements"),
    "REF006": ("warning", "An entry that no decision or goal explains"),
    "REF007": ("error", "A decision affects a section that does not exist"),
    "REF008": ("note", "The code uses an entry that `deps:` does not name"),
    "REF009": ("error", "A dependency that may be several things"),
    "REF010": ("warning", "A decision lacks a field"),
    "REF011": ("warning", "An entry follows a decision that is rejected or superseded"),
    "API001": ("error", "A fence of Section 5 is not Python"),
    "API002": ("warning", "A fence does not define what its heading names"),
    "API003": ("warning", "An entry does not say what it is for"),
    "API004": ("warning", "An entry has no signature"),
    "API005": ("error", "An annotation names a pattern that is not in the library"),
    "API006": ("error", "An annotation's arguments do not fit its pattern"),
    "API007": ("warning", "An annotation that names no pattern and expands to nothing"),
    "API008": ("error", "An entry belongs to no module or names no API"),
    "API009": ("error", "An API is defined by two entries"),
    "PLAN001": ("error", "A step has more than ten methods"),
    "PLAN002": ("error", "A step names a method that Section 5 does not have"),
    "PLAN003": ("warning", "An entry is in no step"),
    "PLAN004": ("error", "A method is in two steps"),
    "PLAN005": ("error", "A step depends on a step that does not exist, on itself or in a cycle"),
    "PLAN006": ("warning", "A method comes in an earlier step than what it depends on"),
    "PLAN007": ("error", "The status of a step and of its methods do not agree"),
    "PLAN008": ("warning", "A step lacks a field"),
    "PLAN009": ("warning", "A method changed after it was done"),
    "PLAN010": ("error", "A step has a row and no heading, or a heading and no row"),
    "PLAN011": ("note", "A done method has no digest, so that a later change would not be seen"),
    "PLAN012": ("warning", "The row and the heading of a step do not agree"),
    "PLAN013": ("note", "A step uses a step that it does not depend on"),
    "PLAN014": ("error", "A finished step lost a name, or got one that it did not have"),
    "REV001": ("warning", "An approval is older than the text it approved"),
    "REV002": ("warning", "The review record names something that does not exist"),
    "REV003": ("error", "An item is twice in the record"),
    "REV004": ("error", "The record names something that is not in the document"),
    "SYM001": ("warning", "A path named in Section 2 does not exist"),
    "SYM002": ("warning", "An API named in Section 2 does not exist in the code"),
    "SYM003": ("warning", "A code root of the front matter does not exist"),
}


def finding(document: Document, line: int, code: str, message: str, fix: str | None = None) -> Finding:
    """A finding with the severity of its code."""
    return Finding(str(document.path), max(1, line), 1, code, message, CODES[code][0], fix)
