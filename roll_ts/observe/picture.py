"""One or several journals as a picture: device lanes one under the other on one time axis, in a single HTML
file.

The page carries its data, style and script; it needs no network. Idle time is an empty lane, so gaps can be
seen.
"""

from __future__ import annotations

import html
import json
import os
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from roll_ts.core import alphabet as a
from roll_ts.observe.activity import ACTIVITIES, device_activity, devices
from roll_ts.observe.intervals import History, read_history
from roll_ts.observe.journal import Journal
from roll_ts.observe.page import PAGE
from roll_ts.observe.report import Report, report_of

POINTS = 1500
"""A curve with more points than this is averaged over as many equal pieces of time."""

SCHEMES = {
    "colocated": "All devices roll out, wait for the last sample, then all train.",
    "disaggregated": "Fixed devices roll out, fixed devices train; both wait for each other.",
    "time_sharing": "All devices roll out; when a batch is complete some train while the long tail goes on elsewhere.",
}


def make_picture(journals: Sequence[Journal], title: str = "Who did what, when", lead: str = "") -> str:
    """The HTML page. `lead` is a sentence under the title. Raises ValueError without a journal, and
    AccountError for a journal that contradicts itself."""
    # VAL: VAL_NON_EMPTY(journals)
    if len(journals) == 0:
        raise ValueError(f"make_picture: journals must not be empty, got {journals!r:.200}")
    # END VAL b4a4f3
    data = {"panels": [_panel(journal) for journal in journals], "activities": list(ACTIVITIES)}
    # "<" never appears raw inside the script, so no text in a journal can close it
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    page = PAGE.replace("$TITLE", html.escape(title)).replace("$LEAD", html.escape(lead))
    return page.replace("$DATA", text)


def write_picture(
    journals: Sequence[Journal], path: Path | str, title: str = "Who did what, when", lead: str = ""
) -> None:
    """Write the page, replacing `path` only when it is complete."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    part.write_text(make_picture(journals, title, lead), encoding="utf-8")
    os.replace(part, path)


def _panel(journal: Journal) -> dict[str, Any]:
    history = read_history(journal)
    report = report_of(history, bool(journal.torn))
    header = history.header
    return {
        "name": header.notes.get("name", header.policy.replace("_", "-")),
        "about": header.notes.get("about", SCHEMES.get(header.policy, "")),
        "ok": report.ok,
        "reason": report.reason,
        "start": history.start,
        "end": history.end,
        "serving": history.serving_since,
        "shares": {name: _mean_share(report, name) for name in ACTIVITIES},
        "figures": _figures(report),
        "lanes": [_lane(history, device) for device in devices(history)],
        "trainings": _trainings(history),
        "syncs": [
            [span.start, span.end, span.command.version] for span in history.control if isinstance(span.command, a.Sync)
        ],
        "moves": _moves(history),
        "open": thin(_open_trajectories(history), history.end),
        "deaths": [[t, death.rank, death.reason] for t, death in history.deaths],
    }


def _mean_share(report: Report, activity: str) -> float:
    return sum(shares[activity] for shares in report.devices.values()) / len(report.devices)


def _figures(report: Report) -> list[list[str]]:
    """What is shown beside the name, in the order of interest: label and value."""
    figures = [
        ["steps", str(len(report.steps))],
        ["s per step", f"{report.step_seconds:.1f}"],
        ["samples / s", f"{report.samples_per_second:.2f}"],
        ["tokens / s", f"{report.tokens_per_second:,.0f}"],
        ["migrated turns", str(report.tokens.migrations)],
        ["regenerated tokens", str(report.tokens.regenerated)],
    ]
    return figures if report.steps else figures[3:]


def _lane(history: History, device: int) -> dict[str, Any]:
    layout = history.header.settings.layout
    rank = next((number for number, own in enumerate(layout.ranks) if device in own), None)
    trains = device in layout.train_devices
    role = "rollout + training" if rank is not None and trains else ("training" if trains else "rollout")
    kinds = {name: index for index, name in enumerate(ACTIVITIES)}
    return {
        "name": f"{history.header.notes.get('device', 'device')} {device}",
        "role": role,
        "rank": rank,
        "first": rank is None or layout.ranks[rank][0] == device,
        "spans": [[s.start, s.end, kinds[s.label]] for s in device_activity(history, device)],
        "states": [] if rank is None else [[s.start, s.end, s.label] for s in history.states[rank]],
        "load": [] if rank is None else thin(history.loads[rank], history.end),
    }


def _trainings(history: History) -> list[list[Any]]:
    """Start, end, version, samples, oldest version among the samples."""
    oldest = {settled.trajectory: settled.oldest_version for _, settled in history.outcomes}
    return [
        [
            span.start,
            span.end,
            span.command.version,
            len(span.command.batch),
            min((oldest.get(item.trajectory, 0) for item in span.command.batch), default=0),
        ]
        for span in history.control
        if isinstance(span.command, a.Train)
    ]


def _moves(history: History) -> list[list[float]]:
    """Time, rank before, rank after, number of turns resumed there at this time."""
    counts: Counter[tuple[float, int, int]] = Counter()
    for attempts in history.turns().values():
        for before, after in pairwise(attempts):
            if before.rank != after.rank:
                counts[(round(after.start, 1), before.rank, after.rank)] += 1
    return [[t, before, after, count] for (t, before, after), count in sorted(counts.items())]


def _open_trajectories(history: History) -> list[tuple[float, int]]:
    """(time, trajectories started and without an outcome from then on)."""
    changes = Counter[float]()
    for who in history.members.values():
        changes[who.start] += 1
    for t, _ in history.outcomes:
        changes[t] -= 1
    level, levels = 0, [(history.start, 0)]
    for t, change in sorted(changes.items()):
        level += change
        levels.append((t, level))
    return levels


def thin(points: Sequence[tuple[float, int]], end: float, most: int = POINTS) -> list[list[float]]:
    """A step curve with at most `most` points: as it is, or averaged over `most` equal pieces of time."""
    if len(points) <= most:
        return [[t, value] for t, value in points]
    start = points[0][0]
    width = (end - start) / most
    area = [0.0] * most
    for (t, value), (later, _) in pairwise([*points, (end, 0)]):
        first, last = int((t - start) / width), min(int((later - start) / width), most - 1)
        for piece in range(first, last + 1):
            left, right = start + piece * width, start + (piece + 1) * width
            area[piece] += value * max(0.0, min(later, right) - max(t, left))
    return [[start + piece * width, round(area[piece] / width, 2)] for piece in range(most)]
