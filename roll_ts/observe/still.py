"""Journals as one still picture (SVG): a lane a device, one panel a run, one time axis. For a page; what moves
and can be zoomed is `picture`.

The picture follows the reader's colour scheme and needs no script. A column of pixels shows what the device did in the
middle of its time; a paler blue is a rank with less than a quarter of the largest number of requests of any rank.
"""

from __future__ import annotations

import html
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from roll_ts.observe.activity import device_activity, devices
from roll_ts.observe.intervals import History, read_history
from roll_ts.observe.journal import Journal
from roll_ts.observe.report import report_of

_LEFT, _WIDTH, _COLUMN = 64, 780, 2
_LANE, _GAP, _HEAD, _FOOT = 16, 4, 34, 44
_KEY = (("full", "rollout"), ("thin", "rollout, few requests"), ("training", "training"), ("switching", "switching"))
_STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--ink) }
.soft { fill: var(--soft); font-size: 12px } .name { font-weight: 600 }
.lane { fill: var(--lane) } .full { fill: var(--full) } .thin { fill: var(--thin) }
.training { fill: var(--training) } .switching { fill: var(--switching) } .axis { stroke: var(--faint) }
svg { --ink: #1c2430; --soft: #66707f; --faint: #dfe4ec; --lane: #f1f4f8; --full: #2b6cb8; --thin: #a9c9ec;
  --training: #d9622b; --switching: #d8c66a }
@media (prefers-color-scheme: dark) { svg { --ink: #e6eaf0; --soft: #97a2b2; --faint: #2a3342; --lane: #19212d;
  --full: #6aa9ee; --thin: #2f568a; --training: #e57a43; --switching: #8a7a2c } }
"""


def make_still(journals: Sequence[Journal], title: str) -> str:
    """The SVG text. Raises ValueError without a journal, and AccountError for a journal that contradicts itself."""
    # VAL: VAL_NON_EMPTY(journals)
    if len(journals) == 0:
        raise ValueError(f"make_still: journals must not be empty, got {journals!r:.200}")
    # END VAL 166b6d
    histories = [read_history(journal) for journal in journals]
    whole = max(history.end for history in histories) or 1.0
    parts: list[str] = []
    y = 30
    for journal, history in zip(journals, histories, strict=True):
        parts += _panel(journal, history, y, whole)
        y += _HEAD + len(devices(history)) * (_LANE + _GAP)
    parts += _axis(y, whole)
    height, width = y + _FOOT, _LEFT + _WIDTH + 16
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" width="{width}">'
    label = html.escape(title)
    begin = [head, f"<title>{label}</title>", f"<style>{_STYLE}</style>", f'<text x="0" y="16">{label}</text>']
    return "\n".join([*begin, *parts, "</svg>", ""])


def _panel(journal: Journal, history: History, y: int, whole: float) -> Iterator[str]:
    report = report_of(history, bool(journal.torn))
    name = html.escape(str(journal.header.notes.get("name", journal.header.policy.replace("_", "-"))))
    figures = f"{report.step_seconds:.0f} s from step to step" if len(report.steps) > 1 else report.reason
    yield f'<text class="name" x="0" y="{y + 22}">{name}</text>'
    yield f'<text class="soft" x="{_LEFT + _WIDTH}" y="{y + 22}" text-anchor="end">{html.escape(figures)}</text>'
    most = max((count for loads in history.loads.values() for _, count in loads), default=0)
    device_word = str(journal.header.notes.get("device", "device"))
    for at, device in enumerate(devices(history)):
        top = y + _HEAD + at * (_LANE + _GAP)
        yield f'<text class="soft" x="0" y="{top + 12}">{html.escape(device_word)} {device}</text>'
        yield f'<rect class="lane" x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_LANE}" rx="2"/>'
        for kind, first, columns in _runs(history, device, most, whole):
            x, width = _LEFT + first * _COLUMN, columns * _COLUMN
            yield f'<rect class="{kind}" x="{x}" y="{top}" width="{width}" height="{_LANE}"/>'


def _runs(history: History, device: int, most: int, whole: float) -> Iterator[tuple[str, int, int]]:
    """(kind, first column, columns) of a lane; idle columns are left out."""
    ranks = history.header.settings.layout.ranks
    rank = next((number for number, own in enumerate(ranks) if device in own), None)
    loads = [] if rank is None else history.loads[rank]
    times = [t for t, _ in loads]
    spans = device_activity(history, device)
    width = whole * _COLUMN / _WIDTH
    begun, kind = 0, ""
    last = _WIDTH // _COLUMN
    for column in range(last + 1):
        found = ""
        if column < last:
            middle = (column + 0.5) * width
            label = next((span.label for span in spans if span.start <= middle < span.end), "idle")
            if label == "busy":
                at = bisect_right(times, middle) - 1
                found = "full" if at >= 0 and loads[at][1] * 4 >= most else "thin"
            elif label != "idle":
                found = label
        if found != kind:
            if kind:
                yield kind, begun, column - begun
            begun, kind = column, found


def _axis(y: int, whole: float) -> Iterator[str]:
    step = next(s for power in range(12) for s in (10**power, 2 * 10**power, 5 * 10**power) if whole / s <= 8)
    yield f'<line class="axis" x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y + 2}" y2="{y + 2}"/>'
    for tick in range(0, int(whole) + 1, step):
        x = _LEFT + tick / whole * _WIDTH
        yield f'<text class="soft" x="{x:.0f}" y="{y + 16}" text-anchor="middle">{tick:,} s</text>'
    x = _LEFT
    for kind, words in _KEY:
        yield f'<rect class="{kind}" x="{x}" y="{y + 26}" width="14" height="12" rx="2"/>'
        yield f'<text class="soft" x="{x + 20}" y="{y + 36}">{words}</text>'
        x += 34 + 7 * len(words)
