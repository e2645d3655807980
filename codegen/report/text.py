"""A report for people: one line a step, then what it adds up to."""

from __future__ import annotations

from codegen.report.figures import Report, StepFigures

_HEAD = ("step", "status", "runs", "rounds", "minutes", "lines", "validated", "findings")


def report_text(report: Report) -> str:
    """The table and the totals."""
    rows = [_HEAD, *map(_row, report.steps)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    lines = [
        report.document,
        *("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows),
    ]
    t = report.totals
    lines += [
        "",
        f"{t.done} of {t.steps} steps done, {t.reviewed} of them reviewed by a person, {t.taken_back} taken back, "
        f"{t.corrected} corrected later",
        f"{t.runs} runs of agents, {t.delivered} delivered; steps right at once: {_percent(t.first_time_right)}; "
        f"rounds a delivery: {'-' if t.rounds_per_delivery is None else f'{t.rounds_per_delivery:.1f}'}",
        f"agents worked {_minutes(t.agent_seconds)} min, checks took {_minutes(t.check_seconds)} min",
        f"validated functions: {_percent(t.validation_coverage)}; lines +{t.lines_added} -{t.lines_removed}",
    ]
    if t.findings:
        lines.append(f"findings: {_counts(t.findings)}")
    if t.failures:
        lines.append(f"steps failed: {_counts(t.failures)}")
    return "\n".join(lines) + "\n"


def _row(step: StepFigures) -> tuple[str, ...]:
    size = f"+{step.lines_added} -{step.lines_removed}" if step.lines_added or step.lines_removed else "-"
    validated = f"{step.validated}/{step.functions}" if step.functions else "-"
    title = step.title if len(step.title) <= 40 else f"{step.title[:39]}…"
    return (
        f"{step.number} {title}",
        step.status,
        str(step.runs or "-"),
        str(step.rounds or "-"),
        _minutes(step.agent_seconds) if step.runs else "-",
        size,
        validated,
        _counts(step.findings) or "-",
    )


def _counts(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{n} {name}" for name, n in ordered)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"
