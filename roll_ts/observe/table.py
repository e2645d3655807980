"""Reports as text for a terminal: one run, or several side by side."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from roll_ts.observe.activity import ACTIVITIES
from roll_ts.observe.figures import Gain, Spread
from roll_ts.observe.report import Report

SHARES_FORMULA = (
    "per device, share of the seconds since the first rank was ACTIVE; they sum to 1:\n"
    "training = an optimizer step is open on it; busy = else, its rank is ACTIVE with ≥ 1 request;\n"
    "idle = else, its rank is ACTIVE with none, or it has no rank and the trainer is asked nothing;\n"
    "switching = all else (boot, drain, release, lent without training, load, wake, fenced)"
)

Row = tuple[str, Callable[[Report], str]]


def report_text(report: Report, width: int = 118, color: bool = False) -> str:
    """The report of one run as a text block of at most `width` columns."""
    return _print(report_view(report), width, color)


def report_view(report: Report) -> RenderableType:
    """The report of one run for a rich console."""
    parts: list[RenderableType] = [_headline(report), _devices(report), Text(SHARES_FORMULA, "dim"), _figures([report])]
    parts += [Text(MEANING, "dim"), _phases([report]), _lengths(report)]
    if report.steps:
        parts.append(_curve(report))
    return Group(*parts)


def comparison_text(reports: Sequence[Report], width: int = 118, color: bool = False) -> str:
    """Several runs side by side, one column each, as a text block."""
    return _print(comparison_view(reports), width, color)


def comparison_view(reports: Sequence[Report]) -> RenderableType:
    """Several runs side by side for a rich console."""
    shares = _table("share of device seconds", *[report.policy for report in reports])
    for activity in ACTIVITIES:
        shares.add_row(activity, *[f"{_mean_share(report, activity):.1%}" for report in reports])
    return Group(
        *[_headline(report) for report in reports],
        shares,
        Text(SHARES_FORMULA, "dim"),
        _figures(reports),
        Text(MEANING, "dim"),
        _phases(reports),
    )


def _print(view: RenderableType, width: int, color: bool) -> str:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=color, color_system="truecolor" if color else None
    )
    with console.capture() as captured:
        console.print(view)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def _table(first: str, *columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title_justify="left")
    table.add_column(first, style="bold")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _headline(report: Report) -> Text:
    end = "finished" if report.ok else ("failed" if report.finished else "unfinished")
    text = Text(f"{report.policy} ({report.driver}): {end}, {report.reason}", "bold green" if report.ok else "bold red")
    if report.torn:
        text.append("; the journal's last line was torn and is left out", "red")
    return text


def _devices(report: Report) -> Table:
    table = _table("device", *ACTIVITIES, "sum")
    for device, shares in report.devices.items():
        table.add_row(str(device), *[f"{shares[name]:.1%}" for name in ACTIVITIES], f"{sum(shares.values()):.3f}")
    table.add_row("mean", *[f"{_mean_share(report, name):.1%}" for name in ACTIVITIES], "")
    return table


def _mean_share(report: Report, activity: str) -> float:
    return sum(shares[activity] for shares in report.devices.values()) / len(report.devices)


def _figures(reports: Sequence[Report]) -> Table:
    table = _table("figure", *[report.policy for report in reports])
    for name, show in _ROWS:
        table.add_row(name, *[show(report) for report in reports])
    return table


def _phases(reports: Sequence[Report]) -> Table:
    table = _table("seconds per phase", *[report.policy for report in reports])
    for name in reports[0].phases:
        table.add_row(name, *[f"{report.phases[name]:.2f}" for report in reports])
    table.add_row("sum", *[f"{sum(report.phases.values()):.2f}" for report in reports])
    return table


def _lengths(report: Report) -> Table:
    table = _table("generated tokens per trajectory", "count", "mean", "p10", "p50", "p90", "max")
    for name, values in report.lengths.items():
        table.add_row(name, *_spread(values))
    table.add_row("turns of started", *_spread(report.turns))
    return table


def _spread(values: Spread) -> list[str]:
    if not values.count:
        return ["0", *["–"] * 5]
    return [str(values.count), *[f"{v:.1f}" for v in (values.mean, values.p10, values.p50, values.p90, values.max)]]


def _curve(report: Report) -> Table:
    table = _table("version", "at s", "train s", "samples", "tokens", "reward", "success", "")
    # a long run is shown by some twenty of its steps, the first and the last among them
    every = max(1, len(report.steps) // 20)
    shown = [step for index, step in enumerate(report.steps) if index % every == 0 or step is report.steps[-1]]
    for step in shown:
        table.add_row(
            f"{step.version} → {step.version + 1}",
            f"{step.at:.1f}",
            f"{step.seconds:.2f}",
            str(step.samples),
            str(step.tokens),
            f"{step.reward:.3f}",
            f"{step.success:.3f}",
            Text("█" * round(20 * step.success), "green"),
        )
    table.columns[-1].justify = "left"
    return table


def _ends(gain: Gain | None) -> str:
    return "–" if gain is None else f"{gain.first:.3f} → {gain.last:.3f}"


def _gain(gain: Gain | None) -> str:
    return "–" if gain is None else f"{gain.gain:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"


def _outcome(name: str) -> Callable[[Report], str]:
    return lambda report: str(report.outcomes.get(name, 0))


def _counts(counts: dict[str, int] | dict[int, int]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in counts.items()) or "none"


def _evaluation(report: Report) -> str:
    return ", ".join(f"v{e.version}: {e.success:.3f} of {e.episodes}" for e in report.evaluations) or "–"


_ROWS: tuple[Row, ...] = (
    ("seconds from first rank ACTIVE", lambda r: f"{r.end - r.serving_since:.1f}"),
    ("training steps", lambda r: str(len(r.steps))),
    ("seconds from step to step", lambda r: f"{r.step_seconds:.2f}"),
    ("generated tokens / s", lambda r: f"{r.tokens_per_second:.1f}"),
    ("trained tokens / s", lambda r: f"{r.trained_tokens_per_second:.1f}"),
    ("trained samples / s", lambda r: f"{r.samples_per_second:.3f}"),
    ("mean requests in flight per rank", lambda r: ", ".join(f"{v:.1f}" for v in r.in_flight.values())),
    ("shrink-train-sync-expand cycles", lambda r: str(r.cycles)),
    ("migrated turns", lambda r: str(r.tokens.migrations)),
    ("moves in a turn / between turns", lambda r: f"{r.tokens.moves} / {r.tokens.boundary_moves}"),
    ("regenerated tokens", lambda r: str(r.tokens.regenerated)),
    ("lost tokens", lambda r: str(r.tokens.lost)),
    ("re-prefilled tokens", lambda r: str(r.tokens.reprefilled)),
    ("trajectories started", lambda r: str(r.started)),
    *((f"  {name}", _outcome(name)) for name in ("scored", "policy-failed", "infra-void", "cancelled")),
    ("  still open", lambda r: str(r.open)),
    ("groups dropped", lambda r: _counts(r.groups_dropped)),
    ("staleness of trained samples", lambda r: _counts(r.staleness)),
    ("reward, first to last fifth", lambda r: _ends(r.reward_gain)),
    ("  gain, 95 % interval", lambda r: _gain(r.reward_gain)),
    ("success, first to last fifth", lambda r: _ends(r.success_gain)),
    ("  gain, 95 % interval", lambda r: _gain(r.success_gain)),
    ("greedy success by version", _evaluation),
    ("rank deaths", lambda r: str(r.rank_deaths)),
)

MEANING = (
    "migrated turns: ≥ 1 token generated on each of two ranks. regenerated: thrown away and generated again.\n"
    "lost: generated by a rank that died, never reported. re-prefilled: context computed again after a move or sync.\n"
    "intervals: bootstrap over groups, of the last fifth of the steps minus the first."
)
