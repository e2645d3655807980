"""Read, judge and edit design documents."""

from codegen.document.edit import (
    add_history_row,
    add_log_row,
    set_approvals,
    set_front_field,
    set_method_status,
    set_method_statuses,
    set_step_commit,
    set_step_status,
)
from codegen.document.model import Decision, Document, Entry, Step, StepMethod
from codegen.document.parse import parse_document, read_document
from codegen.document.rows import EditError
from codegen.document.store import (
    DocumentBusy,
    DocumentChanged,
    document_lock,
    update_document,
    write_document,
)

__all__ = [
    "Decision",
    "Document",
    "DocumentBusy",
    "DocumentChanged",
    "EditError",
    "Entry",
    "Step",
    "StepMethod",
    "add_history_row",
    "add_log_row",
    "document_lock",
    "parse_document",
    "read_document",
    "set_approvals",
    "set_front_field",
    "set_method_status",
    "set_method_statuses",
    "set_step_commit",
    "set_step_status",
    "update_document",
    "write_document",
]
