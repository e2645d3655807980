"""The virtual-time driver of the scheduler core: commands become future events by a cost model.

Each command is carried out as its docstring in the alphabet says. The driver plays the outside world honestly
and checks that the core does not ask it for the impossible (`ContractBroken`): memory of two owners on one
device, a dispatch to a rank without proven weights, a token that was never generated, a sample trained twice.

Invariant: equal arguments give the equal journal. No command is carried out before `handle` has returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from roll_ts.core import alphabet as a
from roll_ts.core.policies import Policy
from roll_ts.core.scheduler import Scheduler
from roll_ts.core.settings import Settings
from roll_ts.observe.journal import Entry, Header, Journal
from roll_ts.sim.clock import Clock
from roll_ts.sim.cost import CostModel
from roll_ts.sim.episodes import Episodes
from roll_ts.sim.errors import SimulationError, Stalled
from roll_ts.sim.faults import FaultBook, Faults
from roll_ts.sim.fleet import Fleet
from roll_ts.sim.trainer import Trainer
from roll_ts.sim.transfers import TRAINER
from roll_ts.sim.watching import Watch
from roll_ts.sim.workload import Workload

NO_FAULTS = Faults()
TO_TRAINER = (a.StartTrainer, a.Train, a.Checkpoint, a.ReleaseTrainer, a.Sync)
"""Commands that the trainer's process receives."""


class Handles(Protocol):
    """What is driven: the scheduler, or something scripted in its place."""

    def handle(self, event: a.Event, now: float) -> list[a.Command]:
        """Take an event, return what must be done."""
        ...


class Driver:
    """One simulated run. `after(entry)` is called when an event is handled, before its commands are carried
    out."""

    def __init__(
        self,
        scheduler: Handles,
        settings: Settings,
        cost: CostModel,
        workload: Workload,
        seed: int = 0,
        faults: Faults = NO_FAULTS,
        after: Callable[[Entry], None] | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.cost = cost
        self.clock = Clock()
        self.entries: list[Entry] = []
        self.finished: a.Finish | None = None
        self.episodes = Episodes(workload)
        self.book = FaultBook(faults, seed)
        self.trainer = Trainer(settings, cost, self.episodes)
        self.fleet = Fleet(settings, cost, self.clock, self.episodes, self.trainer, self.deliver)
        self._after = after
        self._timer: int | None = None
        for kill in faults.kills:
            self.clock.at(kill.at, lambda rank=kill.rank: self._kill(rank))  # type: ignore[misc]

    def _kill(self, rank: int | None) -> None:
        if rank is None:
            self.kill_trainer("killed")
        else:
            self.fleet.kill(rank, "killed")

    def deliver(self, event: a.Event) -> None:
        """Hand an event to the scheduler now, record it, and carry out what it says."""
        if self.finished is not None:
            return
        now = self.clock.now
        entry = Entry(now, event, tuple(self.scheduler.handle(event, now)))
        self.entries.append(entry)
        if self._after is not None:
            self._after(entry)
        for command in entry.commands:
            self._carry_out(command)

    def run(self, max_seconds: float, max_events: int) -> None:
        """Run until `Finish`. Raises Stalled when nothing is left to happen or a limit (virtual seconds,
        handled events) is passed, naming the commands that still wait."""
        while self.finished is None:
            upcoming = self.clock.next_time()
            now, events = self.clock.now if upcoming is None else upcoming, len(self.entries)
            # VAL: VAL_INT_RANGE(now, max=max_seconds, error=Stalled, about=self._unanswered())
            if not now <= max_seconds:
                raise Stalled(
                    f"Driver.run: now must be at most {max_seconds!r:.200}, got {now!r} "
                    f"(self._unanswered()={self._unanswered()!r:.200})"
                )
            # END VAL 691f42
            # VAL: VAL_INT_RANGE(events, max=max_events, error=Stalled, about=self._unanswered())
            if not events <= max_events:
                raise Stalled(
                    f"Driver.run: events must be at most {max_events!r:.200}, got {events!r} "
                    f"(self._unanswered()={self._unanswered()!r:.200})"
                )
            # END VAL 0c5bbd
            happened = self.clock.step()
            # AST: AST_INVARIANT(happened, error=Stalled, about=(now, self._unanswered())) - nothing more will happen
            if not happened:
                raise Stalled(
                    f"Invariant: happened, got {happened!r:.200} (now={now!r:.200}, "
                    f"self._unanswered()={self._unanswered()!r:.200}) - nothing more will happen"
                )
            # END AST 873af8

    def _unanswered(self) -> list[str]:
        """The last commands nobody has answered, latest first, for a message."""
        answered = {entry.event.command for entry in self.entries}
        open_commands = [
            f"{type(c).__name__} (awaits {c.awaits}, due {c.due})"
            for entry in self.entries
            for c in entry.commands
            if c.awaits and c.id not in answered and not isinstance(c, a.Dispatch)
        ]
        return open_commands[:-9:-1]

    def _later(self, seconds: float, event: Callable[[], a.Event | None]) -> None:
        """Deliver what `event` makes in `seconds`; None is nothing."""

        def happen() -> None:
            made = event()
            if made is not None:
                self.deliver(made)

        self.clock.after(seconds, happen)

    def _carry_out(self, command: a.Command) -> None:
        fault = self.book.meet(command)
        late = 0.0
        if fault is not None:
            match fault.do:
                case "drop":
                    return
                case "error":
                    self._later(self.cost.submit_seconds, lambda: _refusal(command))
                    return
                case "kill":
                    rank = getattr(command, "rank", None)
                    trainers = isinstance(command, TO_TRAINER)
                    # AST: AST_PRECONDITION(
                    #     rank is not None or trainers, error=SimulationError, about=command
                    # ) - kill needs a command to one process
                    if rank is None and not trainers:
                        raise SimulationError(
                            f"Pre-condition: rank is not None or trainers, got rank={rank!r:.200}, "
                            f"trainers={trainers!r:.200} (command={command!r:.200}) - kill needs a command to one "
                            "process"
                        )
                    # END AST 27980b
                    self.clock.after(self.cost.submit_seconds, lambda: self._kill(rank))
                    return
                case "delay":
                    late = fault.seconds
        spoilt = fault is not None and fault.do in ("wrong_digest", "bad_canary")
        match command:
            case a.StepEnvironment():
                self._step_environment(command, late)
            case a.Cancel():
                self.episodes.close(command.trajectory)
            case a.SetTimer():
                if self._timer is not None:
                    self.clock.cancel(self._timer)
                self._timer = self.clock.at(command.at + late, lambda: self.deliver(a.TimerFired()))
            case a.Finish():
                self.finished = command
            case a.Train() | a.Checkpoint() | a.ReleaseTrainer():
                self._ask_trainer(command, late)
            case a.StartTrainer() | a.FenceTrainer():
                self._start_or_kill_trainer(command, late)
            case a.RankMoved() | a.Decided() | a.GroupDropped():
                pass
            case a.Settled():
                self.trainer.settle(command)
            case _:
                self.fleet.carry_out(command, late, spoilt)

    def _step_environment(self, command: a.StepEnvironment, late: float) -> None:
        broken = self.book.environment(command.trajectory, command.turn)
        if broken == "hang":
            return
        seconds, reply = self.episodes.step(command)
        if broken == "fail":
            self._later(min(seconds, 1.0), lambda: _refusal(command))
            return
        closed = self.episodes.is_closed
        self._later(seconds + late, lambda: None if closed(command.trajectory) else reply)

    def _ask_trainer(self, command: a.Train | a.Checkpoint | a.ReleaseTrainer, late: float) -> None:
        if self.trainer.incarnation is None:
            return
        self.fleet.check_room_for_trainer(command)
        seconds, answer = self.trainer.carry_out(command)
        life = self.trainer.incarnation
        self._later(seconds + late, lambda: answer() if self.trainer.incarnation == life else None)

    def _start_or_kill_trainer(self, command: a.StartTrainer | a.FenceTrainer, late: float) -> None:
        if isinstance(command, a.FenceTrainer):
            self.clock.after(self.cost.fence_seconds + late, lambda: self.kill_trainer(f"fenced: {command.reason}"))
            return
        self.fleet.check_room_for_trainer(command)
        life = self.trainer.start(command)
        ready = self.trainer.ready
        self._later(
            self.cost.trainer_boot_seconds + late,
            lambda: ready(command.id) if self.trainer.incarnation == life else None,
        )

    def kill_trainer(self, reason: str) -> None:
        """The trainer's process ends now. Nothing when it is dead."""
        incarnation = self.trainer.incarnation
        if incarnation is not None:
            self.trainer.die()
            self.fleet.transfers.lose(TRAINER)
            self.deliver(a.TrainerDied(incarnation=incarnation, reason=reason))


def _refusal(command: a.Command) -> a.Event:
    """The answer of a party that cannot do it."""
    error = "injected"
    match command:
        case a.Dispatch():
            return a.Failed(attempt=command.attempt, error=error)
        case a.StepEnvironment():
            return a.EnvironmentFailed(
                command=command.id, trajectory=command.trajectory, turn=command.turn, error=error
            )
        case _:
            return a.CommandFailed(command=command.id, error=error)


def simulate(
    settings: Settings,
    policy: Policy,
    cost: CostModel,
    workload: Workload,
    until: int,
    seed: int = 0,
    *,
    faults: Faults = NO_FAULTS,
    script: Sequence[tuple[float, a.Event]] = (),
    start_version: int = 0,
    max_seconds: float = 1e6,
    max_events: int = 2_000_000,
    after: Callable[[Scheduler, Entry], None] | None = None,
    invariants: bool = True,
) -> Journal:
    """Run `policy` on virtual time until the trainer reaches version `until`; returns the journal.

    `seed` is the seed of random faults; the work itself depends on `workload.seed`. `script` holds further
    events with their times (a `UserStop`, say). `start_version` is what the trainer holds at the start (a
    resume). `after` sees the scheduler behind every handled event. `invariants`: check the scheduler's state as the
    run goes (see `Watch`).

    Raises ContractBroken when the core asks for the impossible, InvariantBroken when its state contradicts a rule,
    Stalled when it never finishes, and whatever the core raises itself.
    """
    scheduler = Scheduler(settings, policy)
    guard = Watch(scheduler) if invariants else None

    def watch(entry: Entry) -> None:
        if guard is not None:
            guard.look()
        if after is not None:
            after(scheduler, entry)

    driver = Driver(scheduler, settings, cost, workload, seed, faults, watch)
    driver.trainer.version = driver.trainer.first_version = start_version
    driver.clock.at(0.0, lambda: driver.deliver(a.TrajectoriesWanted(until=until)))
    for at, event in script:
        driver.clock.at(at, lambda event=event: driver.deliver(event))  # type: ignore[misc]
    driver.run(max_seconds, max_events)
    if guard is not None:
        guard.check()
    return Journal(Header(settings, policy.name, seed, "sim", _versions()), tuple(driver.entries))


def _versions() -> dict[str, str]:
    try:
        return {"roll-ts": version("roll-ts")}
    except PackageNotFoundError:
        return {}
