"""What a person sees while a run goes on: ranks, trajectories, version, success; one line per step without a terminal.

It looks at the scheduler's snapshot a few times a second and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from roll_ts.core import alphabet as a
from roll_ts.runtime.controller import Controller

_BARS = "▁▂▃▄▅▆▇█"
_PER_SECOND = 4
_COLORS = {"ACTIVE": "green", "LENT": "magenta", "FENCED": "red", "FAILED": "red"}


class LiveView:
    """The view of one run on `console`. `watch` must be told of every event."""

    def __init__(self, controller: Controller, console: Console) -> None:
        self._run, self._console = controller, console
        self._success: list[float] = []
        self._reward: list[float] = []
        self._greedy: dict[int, list[bool]] = {}
        self._note = "starting"

    def watch(self, now: float, event: a.Event, commands: Sequence[a.Command]) -> None:
        """Remember what the snapshot does not hold, and, without a terminal, print a line per step."""
        if isinstance(event, a.TrainingFinished):
            self._success.append(event.figures["success_rate"])
            self._reward.append(event.figures["mean_reward"])
            self._say(
                f"{now:8.1f} s  step {event.version}/{self._run.config.steps}  reward {self._reward[-1]:.3f}  "
                f"success {self._success[-1]:.3f}  log-prob gap max {event.figures['logprob_max']:.1e} over "
                f"{event.figures['logprob_share']:.0%}"
            )
        elif isinstance(event, a.RankDied):
            self._say(f"{now:8.1f} s  rank {event.rank} died: {event.reason.splitlines()[0]}")
        elif isinstance(event, a.UserStop):
            self._say(f"{now:8.1f} s  stopping: saving what there is; press Ctrl-C again to kill")
        for command in commands:
            if isinstance(command, a.Settled) and command.kind == "eval" and command.outcome != "cancelled":
                self._greedy.setdefault(command.group, []).append(command.success)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Draw for as long as the block runs, if there is a terminal to draw on."""
        if not self._console.is_terminal:
            yield
            return
        with Live(get_renderable=self._draw, console=self._console, refresh_per_second=_PER_SECOND, transient=True):
            yield

    def _say(self, line: str) -> None:
        self._note = line.strip()
        if not self._console.is_terminal:
            self._console.print(line, highlight=False, soft_wrap=True)

    def _draw(self) -> RenderableType:
        now = self._run.scheduler.snapshot()
        table = Table("rank", "state", "version", "requests", box=None, padding=(0, 2))
        for row in now.ranks:
            state = Text(str(row.state), _COLORS.get(str(row.state), "yellow"))
            table.add_row(str(row.rank), state, str(row.version) if row.version >= 0 else "-", str(row.running))
        settled = ", ".join(f"{count} {outcome}" for outcome, count in now.outcomes.items() if count)
        head = (
            f"{self._run.config.name} · {self._run.config.policy} · step {max(now.version, 0)}/{self._run.config.steps}"
        )
        greedy = "  ".join(f"{sum(won)}/{len(won)}" for won in self._greedy.values())
        return Group(
            Text(f"{head} · {now.stage} · {self._run.now():.0f} s", "bold"),
            table,
            Text(
                f"trajectories: {now.open_trajectories} open, {now.running} generating, {now.queued} queued; {settled}"
            ),
            Text(f"success {sparkline(self._success)}  reward {sparkline(self._reward)}"),
            Text(f"greedy successes: {greedy}" if greedy else ""),
            Text(self._note, "dim"),
        )


def sparkline(values: Sequence[float], width: int = 60) -> str:
    """The curve as bars from its least to its greatest value, and its last value; the latest `width` of them."""
    if not values:
        return "-"
    shown = values[-width:]
    low, high = min(shown), max(shown)
    step = (high - low) / (len(_BARS) - 1) or 1.0
    return "".join(_BARS[round((value - low) / step)] for value in shown) + f" {shown[-1]:.3f}"
