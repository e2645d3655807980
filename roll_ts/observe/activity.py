"""What each device was doing at every moment: training, busy, switching or idle; and the phases of the control
side.

Both are partitions of time, so shares sum to 1 and phases to the length of the run. Formulas:

- training: the device belongs to the trainer and an optimizer step is open;
- busy: else, its rank is ACTIVE and holds at least one request;
- idle: else, its rank is ACTIVE and holds none; or the device has no rank and the trainer is asked nothing;
- switching: everything else: booting, draining, releasing, lent without training, loading, syncing, waking,
  fenced.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from roll_ts.core import alphabet as a
from roll_ts.observe.intervals import History, Span

ACTIVITIES = ("busy", "training", "switching", "idle")

PHASES = (
    "boot", "shrink", "train", "free", "form", "quiesce", "load", "clear", "wake", "save", "rollout", "idle",
)  # fmt: skip
"""Phases in the order of a cycle. "rollout": no control command is open and a request is; "idle": neither."""

_PRECEDENCE = ("train", "shrink", "free", "form", "quiesce", "load", "clear", "wake", "save", "boot", "rollout")


def devices(history: History) -> list[int]:
    """All devices of the layout, in order."""
    layout = history.header.settings.layout
    return sorted({device for rank in layout.ranks for device in rank} | set(layout.train_devices))


def device_activity(history: History, device: int) -> list[Span]:
    """The device's activities from the start to the end of the run, without gap or overlap."""
    layout = history.header.settings.layout
    rank = next((number for number, own in enumerate(layout.ranks) if device in own), None)
    sources: dict[str, list[Span]] = {}
    if device in layout.train_devices:
        sources["training"] = [Span(c.start, c.end, "training") for c in history.controls(a.Train)]
    if rank is not None:
        sources["state"] = history.states[rank]
        sources["flying"] = loaded(history, rank)
    else:
        asked = history.controls(a.ReleaseTrainer, a.FormGroup, a.Sync, a.Checkpoint)
        sources["asked"] = _merge(Span(c.start, c.end, "asked") for c in asked)
        ready = history.versions[0][0] if history.versions else history.end
        sources["state"] = [Span(history.start, ready, "BOOTING")]
    return _merge(
        Span(start, end, _activity(labels, rank is not None))
        for start, end, labels in _overlay(history.start, history.end, sources)
    )


def device_shares(history: History, device: int) -> dict[str, float]:
    """Share of the time since `serving_since` that the device spent in each activity; they sum to 1."""
    since = history.serving_since
    seconds = dict.fromkeys(ACTIVITIES, 0.0)
    for span in device_activity(history, device):
        seconds[span.label] += max(0.0, span.end - max(span.start, since))
    whole = sum(seconds.values())
    return {label: value / whole if whole else 0.0 for label, value in seconds.items()}


def loaded(history: History, rank: int) -> list[Span]:
    """When the rank held at least one request; the label is "flying"."""
    points = [*history.loads[rank], (history.end, 0)]
    spans = [Span(t, later, "flying") for (t, count), (later, _) in pairwise(points) if count and later > t]
    return _merge(spans)


def phases(history: History) -> list[Span]:
    """The phases of the control side from start to end. Where several are open the one named first here counts:
    train, shrink, free, form, quiesce, load, clear, wake, save, boot."""
    groups = {span.command.epoch for span in history.control if isinstance(span.command, a.FormGroup)}
    sources: dict[str, list[Span]] = {name: [] for name in _PRECEDENCE}
    for span in history.control:
        name = _phase(span.command, groups)
        if name:
            sources[name].append(Span(span.start, span.end, name))
    sources = {name: _merge(sorted(spans, key=lambda s: s.start)) for name, spans in sources.items()}
    flying = [span for rank in history.states for span in loaded(history, rank)]
    sources["rollout"] = _merge(sorted(flying, key=lambda s: s.start))
    return _merge(
        Span(start, end, next((name for name in _PRECEDENCE if name in labels), "idle"))
        for start, end, labels in _overlay(history.start, history.end, sources)
    )


def _phase(command: a.Command, groups: set[int]) -> str:
    match command:
        case a.Train():
            return "train"
        case a.Drain():
            return "quiesce" if command.epoch in groups else "shrink"
        case a.Release():
            return "shrink"
        case a.ReleaseTrainer():
            return "free" if command.parts == "state" else "clear"
        case a.FormGroup():
            return "form"
        case a.Sync() | a.LoadWeights():
            return "load"
        case a.WakeKV() | a.ResetCache():
            return "wake"
        case a.Checkpoint():
            return "save"
        case a.Restart() | a.StartTrainer():
            return "boot"
    return ""


def _activity(labels: dict[str, str], has_rank: bool) -> str:
    if "training" in labels:
        return "training"
    if has_rank and labels.get("state") == "ACTIVE":
        return "busy" if "flying" in labels else "idle"
    if not has_rank and "state" not in labels and "asked" not in labels:
        return "idle"
    return "switching"


def _overlay(start: float, end: float, sources: dict[str, list[Span]]) -> Iterable[tuple[float, float, dict[str, str]]]:
    """Cut [start, end] at every boundary of the sources' spans; each piece with the label of every source
    there."""
    edges: list[tuple[float, int, str, str]] = []
    for name, spans in sources.items():
        for span in spans:
            if span.end > span.start:
                edges.append((span.end, 0, name, span.label))
                edges.append((span.start, 1, name, span.label))
    # ends before starts at one time, so that a span which touches the next does not erase it
    edges.sort(key=lambda edge: (edge[0], edge[1]))
    now, labels = start, dict[str, str]()
    for t, opens, name, label in edges:
        if t > now:
            yield now, t, dict(labels)
            now = t
        if opens:
            labels[name] = label
        else:
            labels.pop(name, None)
    if end > now:
        yield now, end, dict(labels)


def _merge(spans: Iterable[Span]) -> list[Span]:
    """Join neighbours and overlaps of equal label; the spans come in order of their start."""
    merged: list[Span] = []
    for span in spans:
        last = merged[-1] if merged else None
        if last is not None and last.label == span.label and span.start <= last.end:
            merged[-1] = Span(last.start, max(last.end, span.end), last.label)
        else:
            merged.append(span)
    return merged
