"""The journal: one JSON line per handled event, with the commands it caused. Replay, timeline and report are
made from it.

Line 1 is the header (settings, policy, seed, versions of the software). Every other line is
`{"t": seconds, "event": {...}, "commands": [{...}, ...]}`. Invariants:

- Reading gives back equal objects: floats are written in their shortest exact form (NaN and infinities in
  Python's spelling), tuples and ids are restored.
- A line is written whole or, after a crash, is the torn last line; `read_journal` drops that one and says so. A
  bad line anywhere else is an error: the file is not a journal.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

from roll_ts.core.alphabet import Command, Event, decode, encode
from roll_ts.core.settings import Deadlines, Layout, Settings, check_settings
from roll_ts.observe._fields import misfit

FORMAT = 2


class JournalError(ValueError):
    """The file is not a journal this version can read; the message names file, line and reason."""


@dataclass(frozen=True)
class Header:
    """What was run. `driver` is "sim" or "ray"; `versions` maps package to version; `notes` is free text for
    readers."""

    settings: Settings
    policy: str
    seed: int = 0
    driver: str = "sim"
    versions: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """One handled event at `t` seconds on the driver's clock, and what the scheduler said."""

    t: float
    event: Event
    commands: tuple[Command, ...]


@dataclass(frozen=True)
class Journal:
    """A journal in memory. `torn` is the cut-off last line of a crashed run (empty: none)."""

    header: Header
    entries: tuple[Entry, ...]
    torn: str = ""

    @property
    def start(self) -> float:
        """Time of the first entry, seconds; 0 for an empty journal."""
        return self.entries[0].t if self.entries else 0.0

    @property
    def end(self) -> float:
        """Time of the last entry, seconds; 0 for an empty journal."""
        return self.entries[-1].t if self.entries else 0.0

    def commands(self) -> Iterator[tuple[float, Command]]:
        """All commands with the time they were given, in order."""
        for entry in self.entries:
            for command in entry.commands:
                yield entry.t, command


def encode_header(header: Header) -> dict[str, Any]:
    """JSON-ready header line."""
    return {"header": {"format": FORMAT} | dataclasses.asdict(header)}


def decode_header(record: dict[str, Any]) -> Header:
    """Inverse of `encode_header` after a pass through JSON. Raises JournalError for another format, a missing key,
    a value of another type, and settings that no run can have."""
    # VAL: VAL_REQUIRED_KEYS(record, ("header",), error=JournalError) - line 1 of a journal is its header
    _missing = [_key for _key in ("header",) if _key not in record]
    if _missing:
        raise JournalError(
            f'decode_header: record must have the keys ("header",), but lacks {_missing!r:.200} - '
            "line 1 of a journal is its header"
        )
    # END VAL 992d84
    try:
        fields = dict(record["header"])
    except (TypeError, ValueError) as error:
        raise JournalError(f"line 1 is no header of format {FORMAT}: {error}") from error
    journal_format = fields.pop("format", None)
    # VAL: VAL_EQUAL(journal_format, FORMAT, error=JournalError) - this version reads no other
    if journal_format != FORMAT:
        raise JournalError(
            f"decode_header: journal_format must equal FORMAT ({FORMAT!r:.200}), got "
            f"{journal_format!r:.200} - this version reads no other"
        )
    # END VAL 19dc17
    try:
        settings = dict(fields["settings"])
        layout = settings["layout"]
        settings["layout"] = Layout(
            tuple(tuple(devices) for devices in layout["ranks"]), tuple(layout["train_devices"])
        )
        settings["deadlines"] = Deadlines(**settings["deadlines"])
        fields["settings"] = Settings(**settings)
        header = Header(**fields)
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(f"line 1 is no header of format {FORMAT}: {error!r}") from error
    wrong = misfit(header.settings.deadlines) or misfit(header.settings) or misfit(header)
    problems = [wrong] if wrong else [f"{p.key} = {p.value} {p.wrong}" for p in check_settings(header.settings)]
    # VAL: VAL_NO_PROBLEMS(problems, error=JournalError) - line 1 holds the settings of a run
    if len(problems) != 0:
        raise JournalError(
            f"decode_header: problems must be empty, got {len(problems)!r}: "
            f"{'; '.join(map(str, problems))} - line 1 holds the settings of a run"
        )
    # END VAL 2fda06
    return header


def encode_entry(entry: Entry) -> dict[str, Any]:
    """JSON-ready line of one handled event."""
    return {"t": entry.t, "event": encode(entry.event), "commands": [encode(c) for c in entry.commands]}


def decode_entry(record: dict[str, Any]) -> Entry:
    """Inverse of `encode_entry` after a pass through JSON. Raises KeyError or TypeError for an unknown
    message or a field of another type."""
    t, said = record["t"], [decode(record["event"]), *map(decode, record["commands"])]
    wrong = [text for text in map(misfit, said) if text]
    # VAL: VAL_NO_PROBLEMS(wrong, error=TypeError)
    if len(wrong) != 0:
        raise TypeError(f"decode_entry: wrong must be empty, got {len(wrong)!r}: {'; '.join(map(str, wrong))}")
    # END VAL 38340e
    # VAL: VAL_TYPE_CHECK(t, (int, float), error=TypeError)
    if not isinstance(t, (int, float)) or isinstance(t, bool):
        raise TypeError(f"decode_entry: t must be (int, float), got {type(t).__name__} {t!r:.200}")
    # END VAL 015788
    return Entry(t, cast(Event, said[0]), tuple(cast(Command, command) for command in said[1:]))


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


class JournalWriter:
    """Writes a journal as the run goes. Use as a context manager, or call `close`.

    A line reaches the operating system at the latest when the journal's clock has moved `flush_after` seconds
    past the last flush (0: every line); `close` also waits for the disk. Not thread-safe: the scheduler's loop
    owns it.
    """

    def __init__(self, path: Path | str, header: Header, flush_after: float = 0.5, append: bool = False) -> None:
        """Start a new file, or with `append` go on with an existing one: its header must be equal
        (JournalError) and a torn last line is cut off. Raises FileExistsError when a new file would overwrite
        one."""
        self.path = Path(path)
        self.flush_after = flush_after
        self._flushed_at = float("-inf")
        self._file: BinaryIO
        if append and self.path.exists():
            old = read_journal(self.path)
            # VAL: VAL_EQUAL(
            #     header, old.header, error=JournalError, about=self.path
            # ) - the journal was started with another header; start a new file
            if header != old.header:
                raise JournalError(
                    f"JournalWriter.__init__: header must equal old.header ({old.header!r:.200}), got "
                    f"{header!r:.200} (self.path={self.path!r:.200}) - the journal was started with another "
                    "header; start a new file"
                )
            # END VAL d64042
            self._file = open(self.path, "r+b")  # noqa: SIM115  closed by close()
            self._file.truncate(self.path.stat().st_size - len(old.torn.encode("utf-8", "surrogateescape")))
            self._file.seek(0, os.SEEK_END)
        else:
            self._file = open(self.path, "xb")  # noqa: SIM115  closed by close()
            self._file.write(_line(encode_header(header)))
            self._file.flush()

    def write(self, t: float, event: Event, commands: Iterable[Command]) -> None:
        """Append one handled event."""
        self._file.write(_line(encode_entry(Entry(t, event, tuple(commands)))))
        if t - self._flushed_at >= self.flush_after:
            self._file.flush()
            self._flushed_at = t

    def flush(self) -> None:
        """Hand everything written so far to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Flush to disk and close. Calling again is harmless."""
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def write_journal(journal: Journal, path: Path | str) -> None:
    """Write a whole journal at once, replacing `path` only when it is complete."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as out:
        out.write(_line(encode_header(journal.header)))
        out.writelines(_line(encode_entry(entry)) for entry in journal.entries)
    os.replace(part, path)


class JournalReader:
    """A journal read line by line, once, however long it is: `header` at once, entries by iterating.

    `torn` is the cut-off last line of a crashed run, known when all entries were read. The file is closed at the end of
    the iteration. Raises OSError if it cannot be read, JournalError, with file and line, for a line that is no entry.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.torn = ""
        with open(self.path, "rb") as file:
            first = _text(file.readline())
        # VAL: VAL_SUFFIX(first, suffix="\n", error=JournalError, about=self.path) - there is no complete header line
        if not str(first).endswith("\n"):
            raise JournalError(
                f"JournalReader.__init__: first must end with '\\n', got {first!r:.200} "
                f"(self.path={self.path!r:.200}) - there is no complete header line"
            )
        # END VAL 11e3e6
        try:
            self.header = decode_header(_record(first.removesuffix("\n")))
        except JournalError as error:
            raise JournalError(f"{path}: {error}") from error

    def __iter__(self) -> Iterator[Entry]:
        """The entries in order. A last line without its line end is kept in `torn`."""
        ranks, now = len(self.header.settings.layout.ranks), -math.inf
        with open(self.path, "rb") as file:
            file.readline()
            for number, line in enumerate(file, start=2):
                text = _text(line)
                if not text.endswith("\n"):
                    self.torn = text
                    return
                try:
                    entry = decode_entry(_record(text.removesuffix("\n")))
                    _check_entry(entry, now, ranks)
                except (KeyError, TypeError, ValueError) as error:
                    raise JournalError(f"{self.path}:{number}: not a journal entry: {error!r}") from error
                yield entry
                now = entry.t


def read_journal(path: Path | str) -> Journal:
    """The whole journal in `path`, in memory. Raises like `JournalReader`."""
    reader = JournalReader(path)
    entries = tuple(reader)
    return Journal(reader.header, entries, reader.torn)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")


def _check_entry(entry: Entry, now: float, ranks: int) -> None:
    """An entry that may follow one at `now` seconds, in a run with so many ranks."""
    # VAL: VAL_FLOAT_RANGE(entry.t, min=now) - time only goes on
    if not entry.t >= now:
        raise ValueError(f"_check_entry: entry.t must lie in [{now!r:.200}, inf), got {entry.t!r} - time only goes on")
    # END VAL e6a02c
    # VAL: VAL_FINITE(entry.t)
    if not -math.inf < entry.t < math.inf:
        raise ValueError(f"_check_entry: entry.t must be finite, got {entry.t!r}")
    # END VAL 955e3f
    for message in (entry.event, *entry.commands):
        rank = getattr(message, "rank", 0)
        # VAL: VAL_RANK(rank, ranks) - the layout of line 1 has no other
        if not 0 <= rank < ranks:
            raise ValueError(
                f"_check_entry: rank must be a rank in [0, {ranks!r:.200}), got {rank!r:.200} - the layout "
                "of line 1 has no other"
            )
        # END VAL 41dace


def _record(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and brackets without end
        raise JournalError(f"not JSON: {error}") from error
    # VAL: VAL_TYPE_CHECK(record, dict, error=JournalError)
    if not isinstance(record, dict):
        raise JournalError(f"_record: record must be dict, got {type(record).__name__} {record!r:.200}")
    # END VAL ae496c
    return record
