"""The world around a scheduler: it answers every command by its contract, late, twice, wrongly or never.

It keeps the truth: who lives, whose memory lies where, what was generated. Commands that contradict the truth are
violations at once; all that can be judged from events and commands alone is left to the oracle.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable
from dataclasses import dataclass, field

from roll_ts.core import alphabet as a
from roll_ts.core.errors import SchedulerError
from roll_ts.core.policies import make_policy
from roll_ts.core.scheduler import Scheduler
from tests.roll_ts.outside.coverage import Coverage
from tests.roll_ts.outside.dice import Dice
from tests.roll_ts.outside.engines import Engines
from tests.roll_ts.outside.oracle import Oracle
from tests.roll_ts.outside.scenario import Scenario
from tests.roll_ts.outside.training import Trainer
from tests.roll_ts.outside.trouble import FAULTS, OFTEN, RARE, bad_event, guilty_of
from tests.roll_ts.outside.violation import Violation

SILENT = (a.RankMoved, a.Settled, a.GroupDropped, a.Decided, a.Cancel, a.SetTimer, a.Finish)
TO_TRAINER = (a.Train, a.ReleaseTrainer, a.Checkpoint, a.FormGroup, a.Sync)


@dataclass(frozen=True)
class Entry:
    """One event and what came of it. `void`: it was refused, or stale, so that nothing may depend on it."""

    now: float
    event: a.Event
    commands: tuple[a.Command, ...]
    void: bool = False


@dataclass
class World:
    """One history of one scenario. `injected` names every fault that came up and what it was."""

    scenario: Scenario
    coverage: Coverage = field(default_factory=Coverage)
    most_events: int = 150_000

    def __post_init__(self) -> None:
        self.settings = self.scenario.settings()
        self.layout = self.settings.layout
        self.scheduler = Scheduler(self.settings, make_policy(self.scenario.policy))
        self.oracle = Oracle(self.settings, self.scenario.policy, self.scenario.start_version)
        self.oracle.blame(self.scenario.sick, None)
        self.engines = Engines(self)
        self.trainer = Trainer(self)
        self.injected: dict[str, str] = {}
        self.journal: list[Entry] = []
        self.now = 0.0
        self.posted = 0
        self.ended: dict[a.AttemptId, int] = {}
        self.finish: a.Finish | None = None
        self._shared = frozenset(self.layout.shared_ranks)
        self._heap: list[tuple[float, int, Callable[[], a.Event | None]]] = []
        self._timer: float | None = None
        self._count: dict[str, int] = {}
        self._tail = 0

    def shared(self, rank: int) -> bool:
        """Whether the trainer uses the rank's devices too."""
        return rank in self._shared

    def sick(self, rank: int) -> str | None:
        """What is lastingly wrong with a rank."""
        return self.scenario.sick.get(rank)

    def truth(self, good: object, rule: str, wrong: str) -> None:
        """What must be so in the world whatever the scheduler believes."""
        if not good:
            raise Violation(rule, wrong)

    def post(self, delay: float, event: a.Event) -> None:
        """Have an event happen in `delay` seconds, whatever comes between."""
        self.answer(delay, lambda: event, None)

    def answer(self, delay: float, made: Callable[[], a.Event | None], fault: str | None) -> None:
        """Have what `made` gives happen in `delay` seconds; None is nothing. Faults of the way there are applied."""
        if fault == "unheard":
            self._push(delay, lambda: made() and None)
            return
        if fault == "twice":
            again: list[a.Event | None] = []

            def once() -> a.Event | None:  # another order may bring the second before the first
                if not again:
                    again.append(made())
                return again[0]

            self._push(delay, once)
            self._push(delay + 0.3, once)
            return
        self._push(delay, made)

    def run(self) -> World:
        """Play until `Finish`, then let what is still on the way arrive. Raises Violation."""
        if self.scenario.stop_at == 0:
            self.post(0.0, a.UserStop())
        self.post(0.0, a.TrajectoriesWanted(until=self.scenario.start_version + self.scenario.until))
        if self.scenario.evaluate_at > 0:
            self.post(self.scenario.evaluate_at, a.EvaluationWanted(episodes=2, first_seed=500))
        while self._heap and self._tail < 15:
            at, _, made = self._next()
            self.now = max(self.now, at)
            event = made()
            if event is None or (isinstance(event, a.TimerFired) and at != self._timer):
                continue
            self._disturb(event)
            self.deliver(event)
            self._tail += self.finish is not None
            if len(self.journal) > self.most_events:
                raise Violation("R11", f"the run does not end: {len(self.journal)} events, {self.now:.0f} s")
        if self.finish is None:
            raise Violation("R26", f"nothing more will happen and the run has not ended; {self.oracle.waits_for()}")
        self.oracle.close()
        self._judge_the_end()
        return self

    def deliver(self, event: a.Event) -> None:
        """Hand one event to the scheduler, have the oracle judge the answer, and carry it out."""
        stale = self.oracle.is_stale(event, self.now)
        self.coverage.event(event, self.oracle)
        try:
            commands = tuple(self.scheduler.handle(event, self.now))
        except Exception as error:
            raise Violation("R38", f"{type(event).__name__} raised {error!r}: {event}") from error
        self.journal.append(Entry(self.now, event, commands, stale and not commands))
        self.oracle.judge(event, self.now, commands, stale)
        for command in commands:
            self._obey(command)

    def _next(self) -> tuple[float, int, Callable[[], a.Event | None]]:
        """What happens next; where the scenario says so by "swap#…", one of the things behind it instead."""
        head = self._heap[0]
        behind = self._pick("swap", 0.0, ()) if self.scenario.faults is not None else None
        if behind is None:
            return heapq.heappop(self._heap)
        ahead = [heapq.heappop(self._heap) for _ in range(min(int(behind), len(self._heap) - 1))]
        found = heapq.heappop(self._heap)
        for other in ahead:
            heapq.heappush(self._heap, other)
        if found[2] is a.TimerFired:
            heapq.heappush(self._heap, found)
            return heapq.heappop(self._heap)
        return (head[0], *found[1:])  # another order, at the time at which something was to happen

    def _push(self, delay: float, made: Callable[[], a.Event | None]) -> None:
        heapq.heappush(self._heap, (self.now + delay, self.posted, made))
        self.posted += 1

    def place(self, name: str) -> str:
        """The name of the next place of its kind at which a fault may come up."""
        number = self._count[name] = self._count.get(name, -1) + 1
        return f"{name}#{number}"

    def _pick(self, name: str, rate: float, options: tuple[str, ...]) -> str | None:
        number = self._count[name] = self._count.get(name, -1) + 1
        if self.scenario.faults is not None:
            found = self.scenario.faults.get(f"{name}#{number}")
        elif rate <= 0.0:
            return None
        else:
            dice = Dice(self.scenario.seed, "fault", name, number)
            found = dice.choose(options) if dice.chance(rate) else None
        if found is not None:
            self.injected[f"{name}#{number}"] = found
        return found

    def _obey(self, command: a.Command) -> None:
        if isinstance(command, SILENT):
            if isinstance(command, a.SetTimer):
                self._timer = max(command.at, self.now)
                self._push(self._timer - self.now, a.TimerFired)
                # the heap rounds: what counts is the very time it was pushed with
                self._timer = self.now + (self._timer - self.now)
            elif isinstance(command, a.Finish):
                self.finish = command
            return
        kind = type(command).__name__
        fault = self._pick(kind, min(0.4, self.scenario.rate * RARE.get(kind, 1.0)), FAULTS[kind])
        self.coverage.command(kind, fault)
        number = self._count[kind]
        dice = Dice(self.scenario.seed, "delay", kind, number)
        delay = dice.real() * dice.choose((0.01, 0.2, 1.0))
        if fault is not None:
            self.oracle.blame(guilty_of(command, self.oracle), command)
        if fault == "late" and command.due is not None:
            delay = command.due - self.now + 0.1 + 2.0 * dice.real()
        if fault == "lost":
            return
        if fault in ("fail", "named"):
            self._refuse(command, fault, dice)
            return
        if isinstance(command, a.StepEnvironment):
            self._step_environment(command, delay, fault)
        elif isinstance(command, a.StartTrainer):
            self.trainer.start(command, delay, fault)
        elif isinstance(command, a.FenceTrainer):
            self.trainer.fence(command, delay, fault)
        elif isinstance(command, TO_TRAINER):
            if fault == "die":
                self.trainer.die()
            else:
                self.trainer.obey(command, delay, fault)
        elif isinstance(command, a.Restart):
            self.engines.restart(command, delay, fault)
            if fault == "die":
                self.engines.die(command.rank, command.id)
        elif isinstance(command, a.Fence):
            self.engines.fence(command, delay, fault)
        elif fault == "die":
            self.engines.die(command.rank)  # type: ignore[attr-defined]
        else:
            self.engines.obey(command, delay, fault)

    def _refuse(self, command: a.Command, fault: str, dice: Dice) -> None:
        """The party answers that it cannot."""
        event: a.Event
        match command:
            case a.Dispatch():
                event = a.Failed(attempt=command.attempt, error="injected")
            case a.StepEnvironment():
                event = a.EnvironmentFailed(
                    trajectory=command.trajectory, turn=command.turn, error="injected", command=command.id
                )
            case a.FormGroup() | a.Sync() if fault == "named":
                culprit = dice.choose(command.members)
                self.oracle.blame({culprit}, None)
                event = a.CommandFailed(error="injected", culprits=(f"rank:{culprit}",), command=command.id)
            case _:
                event = a.CommandFailed(error="injected", command=command.id)
        if isinstance(command, a.Sync):
            self.trainer.broadcasts.pop(command.epoch, None)
        self.post(0.01 + 0.2 * dice.real(), event)

    def _step_environment(self, c: a.StepEnvironment, delay: float, fault: str | None) -> None:
        dice = Dice(self.scenario.seed, "episode", c.kind, c.group, c.member)
        turns, growth = dice.choose((1, 1, 2, 3, 9)), 10 + dice.below(30)
        done = 0 < c.turn >= turns
        event = a.EnvironmentReplied(
            trajectory=c.trajectory,
            turn=c.turn,
            context_tokens=12 + growth * c.turn,
            done=done,
            reward=float(dice.below(3)) if done else 0.0,
            success=done and dice.chance(0.5),
            command=c.id,
        )
        self.answer(delay, lambda: event, fault)

    def _disturb(self, event: a.Event) -> None:
        """What else happens at this moment: an echo later, a bad event, a stop, a jump of the clock, a restart."""
        scenario, number = self.scenario, len(self.journal)
        if number == scenario.stop_at and number:
            self.deliver(a.UserStop())
        if scenario.restore_every and number % scenario.restore_every == 0 and self.finish is None:
            saved = json.loads(json.dumps(self.scheduler.save()))
            self.scheduler = Scheduler.restore(saved, self.settings, make_policy(scenario.policy))
        noisy = 0.0 if isinstance(event, a.TrajectoriesWanted) else scenario.noise
        if not isinstance(event, OFTEN):
            noisy *= 4
        what = self._pick("noise", noisy, ("echo", "much later", "much later", "bad", "early"))
        dice = Dice(scenario.seed, "echo", number)
        if what == "echo":
            self._push(0.001 + 0.5 * dice.real(), lambda: event)
        elif what == "much later":
            for _ in range(4):
                self._push(0.3 * 3.0 ** (6.0 * dice.real()), lambda: event)
        elif what == "early":
            self.deliver(a.TimerFired())
        elif what == "bad":
            self._insult(Dice(scenario.seed, "bad", number))
        if self._pick("jump", scenario.jumps, ("jump",)) is not None:
            self.now += 20.0 + 2000.0 * Dice(scenario.seed, "jump", number).real()
            self.oracle.jumped(self.now)

    def _insult(self, dice: Dice) -> None:
        """An event that cannot have happened: it is refused, or it does nothing, and either way changes nothing."""
        if not self.journal:
            return
        event, late = bad_event(dice, self.layout)
        before = self.journal[-1].now  # nothing is due then
        now = before - 1.0 if late else before
        said: list[a.Command] = []
        try:
            said = self.scheduler.handle(event, now)
        except AssertionError as error:
            raise Violation("R38", f"foreign data is checked by assert: {event}: {error}") from error
        except (ValueError, TypeError, LookupError, SchedulerError):
            pass
        self.truth(not said, "R38", f"an impossible event was taken: {event} at {now}: {said}")
        self.journal.append(Entry(now, event, (), True))

    def _judge_the_end(self) -> None:
        """A run whose troubles all pass must end well."""
        assert self.finish is not None
        lasting = bool(self.scenario.sick) or any(
            what == "jump" or (what != "twice" and name.startswith(("Fence", "FenceTrainer")))
            for name, what in self.injected.items()
        )
        if "episodes are void" in self.finish.reason:
            size = max(32, 2 * self.settings.groups_per_batch * self.settings.group_size)
            ends = self.oracle.rollouts.ends
            worst = max(ends[at : at + size].count("infra-void") for at in range(max(1, len(ends) - size + 1)))
            self.truth(
                worst > self.settings.max_void_share * size, "R24", f"few episodes are void: {self.finish.reason}"
            )
            return
        if "could not be saved" in self.finish.reason:
            spoilt = [name for name in self.injected if name.startswith(("Checkpoint", "jump"))]
            self.truth(spoilt or self.trainer.hung, "R36", f"nothing speaks against saving: {self.finish.reason}")
            return
        if "lost with the trainer" in self.finish.reason:
            gone = not self.trainer.alive or self.trainer.hung or not self.oracle.trainer.up
            self.truth(gone, "R36", f"the trainer lives: {self.finish.reason}")
            return
        enough = self.settings.max_restarts_per_rank >= 50
        self.truth(
            self.finish.ok or lasting or not (enough or not self.injected),
            "R24",
            f"no trouble lasted and the run gave up: {self.finish.reason}",
        )

    def replayed(self) -> None:
        """Feed what happened to a fresh scheduler, without refused and stale events: it says the same (R29, R38)."""
        fresh = Scheduler(self.settings, make_policy(self.scenario.policy))
        for number, entry in enumerate(self.journal):
            if entry.void:
                continue
            event = a.decode(json.loads(json.dumps(a.encode(entry.event))))
            again = tuple(fresh.handle(event, entry.now))
            if again != entry.commands:
                raise Violation("R38", f"without what was refused, entry {number} differs: {again} != {entry.commands}")
