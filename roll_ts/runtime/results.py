"""The files of a run folder that are made from its journal: report, timeline, picture."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from roll_ts.observe.journal import Journal, read_journal
from roll_ts.observe.picture import write_picture
from roll_ts.observe.report import Report, make_report
from roll_ts.observe.timeline import write_timeline

JOURNAL = "journal.jsonl"


def read_run(folder: Path) -> Journal:
    """The journal of a run folder, or of the file itself. Raises OSError or JournalError."""
    return read_journal(journal_of(folder))


def journal_of(folder: Path) -> Path:
    """The journal's file of a run folder, or the file itself."""
    return folder / JOURNAL if folder.is_dir() else folder


def write_results(folder: Path) -> Report:
    """Write report.json, timeline.json and picture.html of a run folder; returns the report."""
    journal = read_run(folder)
    report = make_report(journal)
    _write_json(folder / "report.json", report.to_json())
    write_timeline(journal, folder / "timeline.json")
    write_picture([journal], folder / "picture.html", title=f"{journal.header.policy}: who did what, when")
    return report


def _write_json(path: Path, data: Any) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    os.replace(part, path)
