"""The judge: it hears every event, sees every command, and raises Violation when a rule is broken.

It shares no code and no state with the core: what it knows it has from the alphabet, the settings and the rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from roll_ts.core import alphabet as a
from roll_ts.core.settings import Settings
from tests.roll_ts.outside.rank_book import RankBook
from tests.roll_ts.outside.rollout_book import RolloutBook, need
from tests.roll_ts.outside.trainer_book import TrainerBook

OF_ATTEMPT = (a.SubmitAcked, a.Progress, a.Finished, a.Aborted, a.Failed)
OF_RANK = (a.RankStats, a.RankBooted, a.RankDied, a.WeightsLoaded, a.KVReady)
SAYS_NOTHING_BACK = (a.RankMoved, a.Settled, a.GroupDropped, a.Decided, a.Cancel, a.SetTimer, a.Finish)
ANSWER: dict[type[a.Command], type[a.Event]] = {
    a.StepEnvironment: a.EnvironmentReplied,
    a.Drain: a.RankStats,
    a.Release: a.MemoryReleased,
    a.ReleaseTrainer: a.MemoryReleased,
    a.LoadWeights: a.WeightsLoaded,
    a.WakeKV: a.KVReady,
    a.ResetCache: a.KVReady,
    a.Fence: a.RankDied,
    a.Restart: a.RankBooted,
    a.StartTrainer: a.TrainerReady,
    a.FenceTrainer: a.TrainerDied,
    a.Train: a.TrainingFinished,
    a.FormGroup: a.GroupFormed,
    a.Sync: a.WeightsSent,
    a.Checkpoint: a.CheckpointSaved,
    a.Abort: a.Aborted,
}


class Oracle:
    """The accounts of one history. `guilty` are the ranks against which something speaks (R32)."""

    def __init__(self, settings: Settings, policy: str, start_version: int) -> None:
        self.settings = settings
        self.policy = policy
        self.rollouts = RolloutBook(settings)
        self.ranks = RankBook(settings)
        self.trainer = TrainerBook(settings, start_version, self.ranks)
        self.guilty: set[int] = set()
        self.all_guilty = False
        self.trainer_blamed = False
        self.said: dict[int, a.Command] = {}
        self.answered: set[int] = set()
        self.holder: dict[a.AttemptId, int] = {}
        self.until: int | None = None
        self.stopping = False
        self.finish: a.Finish | None = None
        self.roomy = not settings.session_admission and not settings.evaluation_first
        self.decided = False
        self.timer = math.inf
        self.now = 0.0
        self.last_id = -1
        self._dead_now: list[int] = []

    # what the world tells it about the truth

    def blame(self, ranks: Iterable[int], command: a.Command | None) -> None:
        """Something speaks against `ranks`, or against the trainer when it is one of its commands."""
        self.guilty.update(ranks)
        trainers = a.Train | a.ReleaseTrainer | a.Checkpoint | a.FormGroup | a.Sync | a.StartTrainer | a.FenceTrainer
        self.trainer_blamed = self.trainer_blamed or isinstance(command, trainers)

    def jumped(self, now: float) -> None:
        """The clock jumped: everybody may have missed a deadline."""
        self.all_guilty = True
        self.rollouts.leap = math.inf

    # questions

    def rank_of(self, event: a.Event) -> int | None:
        """The rank that an event is about."""
        if isinstance(event, OF_RANK):
            return event.rank
        if isinstance(event, OF_ATTEMPT):
            return self.holder.get(event.attempt)
        if isinstance(event, a.MemoryReleased) and event.holder.startswith("rank:"):
            rank = int(event.holder[5:])
            return rank if rank < len(self.ranks.rows) else None
        command = self.said.get(event.command) if event.command is not None else None
        return getattr(command, "rank", None)

    def waits_for(self) -> str:
        """What is still owed, for a message."""
        owed = [c for c in self.said.values() if c.due is not None and c.id not in self.answered]
        return ", ".join(f"{type(c).__name__} ({c.awaits}, due {c.due:.1f})" for c in owed[-5:] if c.due is not None)

    def is_stale(self, event: a.Event, now: float) -> bool:
        """Whether the event belongs to what is over, and no deadline has come: nothing may come of it (R3, R33)."""
        if now >= self.timer:
            return False
        if self.finish is not None:
            return True
        if isinstance(event, a.RankDied):
            return self.ranks.is_old(event.rank, event.incarnation)
        if isinstance(event, a.TrainerDied):
            return event.incarnation != self.trainer.incarnation or self.trainer.gone
        if isinstance(event, a.RankStats | a.RankBooted) and self.ranks.is_old(event.rank, event.incarnation):
            return True
        if isinstance(event, OF_ATTEMPT):
            return event.attempt not in self.rollouts.tries
        if isinstance(event, a.EnvironmentReplied | a.EnvironmentFailed):
            play = self.rollouts.plays.get(event.trajectory)
            return play is None or play.asked != event.command
        return event.command is not None and event.command in self.answered

    # the history

    def judge(self, event: a.Event, now: float, commands: tuple[a.Command, ...], stale: bool) -> None:
        """Take one event and what the scheduler said to it."""
        need(not stale or not commands, "R33", f"a stale event is acted on: {event}: {commands}")
        late = self._overdue(now)
        self.now = now
        self.rollouts.begin(now)
        self._dead_now.clear()
        if not stale:
            self._hear(event)
        for command in late:
            self._unanswered(command)
        for command in commands:
            self._see(command)
        self.rollouts.check(now)
        if isinstance(event, a.TrainingFinished) and not stale:
            self.rollouts.check_stale()
        self._check_group_is_dropped(commands)
        if self.roomy and self.finish is None and not self.stopping:
            self._check_nobody_waits_beside_room()

    def close(self) -> None:
        """The history is over: every trajectory has its outcome."""
        need(not self.rollouts.open, "R13", f"without an outcome: {list(self.rollouts.open)[:10]}")

    def _hear(self, event: a.Event) -> None:
        command = self._answers(event)
        match event:
            case a.TrajectoriesWanted():
                self.until = event.until
            case a.UserStop():
                self.stopping = self.rollouts.stopping = True
            case a.Progress():
                self.rollouts.progress(event)
            case a.Finished() | a.Aborted() | a.Failed():
                self.rollouts.ended(event)
            case a.EnvironmentReplied():
                self.rollouts.replied(event)
            case a.EnvironmentFailed():
                self.rollouts.environment_failed(event.command)
            case a.RankDied():
                self.ranks.died(event)
                self.rollouts.rank_gone(event.rank)
                self._dead_now.append(event.rank)
            case a.TrainerDied():
                self.trainer.died()
                self.rollouts.step_undone()
            case a.CommandFailed() if event.command is not None and event.command in self.said:
                self._failed(self.said[event.command])
            case _ if command is not None:
                self._hear_answer(event, command)

    def _hear_answer(self, event: a.Event, command: a.Command) -> None:
        row = self.ranks.rows[command.rank] if hasattr(command, "rank") else None
        match event:
            case a.RankBooted() if event.kv_capacity > 0:
                self.ranks.booted(event)
                most = self.settings.max_running_per_rank * self.settings.max_context_tokens
                self.roomy = self.roomy and event.kv_capacity >= most
            case a.RankStats() if row is not None and event.running + event.waiting == 0:
                row.quiet = True
            case a.MemoryReleased():
                if isinstance(command, a.Release):
                    self.ranks.give_back(f"rank {command.rank}")
                else:
                    self.trainer.released(command)
            case a.WeightsLoaded() if row is not None:
                if event.digest == self.trainer.asked_digest[command.id] and event.version == command.version:
                    row.loaded = event.version
            case a.KVReady() if row is not None:
                row.ready = event.canary_gap <= self.settings.canary_tolerance
            case a.TrainerReady():
                self.trainer.ready(event)
                self.rollouts.new_version(event.version)
            case a.TrainingFinished():
                self.decided = False
                self.trainer.trained(event)
                self.rollouts.step_done()
                self.rollouts.new_version(event.version)
            case a.CheckpointSaved():
                self.trainer.was_saved(event)

    def _answers(self, event: a.Event) -> a.Command | None:
        """The command that the event answers, if it fits it and it was not answered before."""
        command = self.said.get(event.command) if event.command is not None else None
        if command is None or command.id in self.answered or not isinstance(event, ANSWER.get(type(command), a.Event)):
            return None
        for name in ("rank", "epoch", "incarnation"):
            if hasattr(event, name) and hasattr(command, name) and getattr(event, name) != getattr(command, name):
                return None
        if isinstance(event, a.MemoryReleased):
            holder = "trainer" if isinstance(command, a.ReleaseTrainer) else f"rank:{command.rank}"
            if event.holder != holder or event.bytes <= 0:
                return None
        self.answered.add(command.id)
        return command

    def _overdue(self, now: float) -> list[a.Command]:
        if now < self.timer:
            return []
        return [c for c in self.said.values() if c.due is not None and c.due <= now and c.id not in self.answered]

    def _unanswered(self, command: a.Command) -> None:
        if command.id not in self.answered:
            self._failed(command)

    def _failed(self, command: a.Command) -> None:
        if isinstance(command, a.Abort | a.Dispatch):
            return
        if isinstance(command, a.Checkpoint):
            self.trainer.save_failed.add(command.version)
        if isinstance(command, a.StepEnvironment):
            self.rollouts.environment_failed(command.id)
        if isinstance(command, a.Train) and command.id == self.trainer.step:
            self.trainer.training = False
            self.rollouts.step_undone()
        self.answered.add(command.id)

    def _see(self, c: a.Command) -> None:
        need(self.finish is None or isinstance(c, a.SetTimer), "R26", f"after the end: {c}")
        need(c.id > self.last_id, "R29", f"command id {c.id} after {self.last_id}")
        self.last_id = c.id
        quiet = isinstance(c, SAYS_NOTHING_BACK)
        need((c.due is None) == (c.awaits is None) == quiet, "R26", f"who answers by when is not said: {c}")
        data = isinstance(c, a.Dispatch | a.StepEnvironment)
        need(c.lane == ("data" if data else "control"), "R25", f"in the lane {c.lane}: {c}")
        if c.due is not None:
            need(self.now < c.due < math.inf, "R26", f"due at once or never: {c}")
            self.said[c.id] = c
        rank = getattr(c, "rank", None)
        if rank is not None and c.awaits is not None:
            need(str(rank) in c.awaits, "R26", f"the party is not named: {c}")
        match c:
            case a.SetTimer():
                self.timer = c.at
            case a.Decided():
                self.decided = self.decided or "train" in c.decision
            case a.StepEnvironment():
                self.rollouts.step(c, self.now)
            case a.Dispatch():
                row = self.ranks.rows[c.rank]
                self.holder[c.attempt] = c.rank
                self.rollouts.dispatch(c, row.state, row.proven)
            case a.Abort():
                self.rollouts.abort(c, self.now, self.policy not in ("colocated", "disaggregated", "time_sharing"))
            case a.Settled():
                self.rollouts.settled(c)
            case a.GroupDropped():
                self.rollouts.dropped(c)
            case a.RankMoved():
                self._moved(c)
            case a.Fence():
                innocent = c.rank not in self.guilty and not self.all_guilty
                need(not innocent, "R32", f"rank {c.rank} is fenced and nothing speaks against it: {c.reason}")
                need(c.incarnation == self.ranks.rows[c.rank].incarnation, "R33", f"{c}: another incarnation")
            case a.Finish():
                self.finish = c
                self.trainer.check_saved(c)
            case _:
                self._see_control(c)

    def _see_control(self, c: a.Command) -> None:
        row = self.ranks.rows[c.rank] if hasattr(c, "rank") else None
        running = self.rollouts.on_rank[c.rank] if hasattr(c, "rank") else ()
        match c:
            case a.Restart():
                self.ranks.restart(c)
            case a.Drain() if row is not None:
                need(row.state in ("DRAINING", "SYNCING"), "R7", f"rank {c.rank} is drained and is {row.state}")
            case a.Release() if row is not None:
                need(row.quiet and not running, "R7", f"rank {c.rank} is released: quiet {row.quiet}, open {running}")
                need(row.state in ("DRAINING", "RELEASING"), "R4", f"rank {c.rank} is released and is {row.state}")
                need(c.recover_from, "R21", f"{c} does not say where the version is")
            case a.LoadWeights() if row is not None:
                need(row.state in ("LOADING", "SYNCING"), "R19", f"rank {c.rank} loads and is {row.state}")
                ready = row.state == "LOADING" or row.quiet
                need(ready and not running, "R20", f"rank {c.rank} loads under its requests: {running}")
                row.ready = False
                self.trainer.load(c)
            case a.WakeKV() if row is not None:
                need(row.state == "LOADING" and row.loaded == c.version, "R19", f"rank {c.rank} wakes unproven: {row}")
                self.ranks.grant(f"rank {c.rank}", self.settings.layout.ranks[c.rank])
            case a.ResetCache() if row is not None:
                need(row.loaded == c.version, "R20", f"rank {c.rank} resets its cache before it has {c.version}: {row}")
                row.ready = False
            case a.FormGroup():
                need(not self.stopping, "R36", f"a group is formed after the user's stop: {c}")
                self._check_members(c)
                self.trainer.form(c)
            case a.Sync():
                self._check_members(c)
                self.trainer.sync(c)
            case a.FenceTrainer():
                guilty = self.trainer_blamed or self.all_guilty or bool(self.guilty)
                need(guilty, "R32", f"the trainer is fenced and nothing speaks against it: {c.reason}")
                self.trainer.fenced()
            case a.Train():
                need(not self.stopping, "R36", f"training starts after the user's stop: {c}")
                need(self.decided, "R29", f"no decision was written down before {c}")
                self.trainer.train(c)
                self.rollouts.train(c)
            case a.StartTrainer():
                self.trainer.started(c)
            case a.ReleaseTrainer():
                self.trainer.asked_to_release(c)
            case a.Checkpoint():
                need(c.version == self.trainer.version, "R36", f"{c}: the trainer has {self.trainer.version}")

    def _moved(self, c: a.RankMoved) -> None:
        before = self.ranks.rows[c.rank].state
        self.ranks.moved(c)
        if c.new == "QUARANTINED":
            self.rollouts.rank_gone(c.rank)
        if c.new == "FAILED":
            dead = c.rank in self._dead_now
            need(dead, "R34", f"rank {c.rank} goes from {before} to FAILED and nobody said that it is dead")

    def _check_nobody_waits_beside_room(self) -> None:
        """Where neither KV nor sessions are scarce, a turn that goes on waits for nothing but a slot (R9, R12)."""
        waiting = [p for p in self.rollouts.open.values() if p.phase == "queued" and p.oldest >= 0 and not p.trouble]
        if not waiting or len(self.rollouts.open) > 100:
            return
        limit = self.settings.max_running_per_rank
        for rank, row in enumerate(self.ranks.rows):
            free = row.state == "ACTIVE" and len(self.rollouts.on_rank[rank]) < limit
            need(not free, "R9", f"{waiting[0]} waits and rank {rank} has a free slot")

    def _check_members(self, c: a.FormGroup | a.Sync) -> None:
        need(c.members and len(set(c.members)) == len(c.members), "R23", f"members are empty or doubled: {c}")
        for rank in c.members:
            need(self.ranks.live(rank), "R23", f"rank {rank} is {self.ranks.rows[rank].state} and a member: {c}")

    def _check_group_is_dropped(self, commands: tuple[a.Command, ...]) -> None:
        """A member whose death is known does not hold up the others (R23)."""
        group = self.trainer.group
        if group is None or group.id in self.answered or self.finish is not None or self.stopping:
            return
        if not any(self.ranks.live(rank) for rank in group.members if rank not in self._dead_now):
            return
        if self.ranks.population["BOOTING"] and not self.ranks.population["ACTIVE"]:
            return  # nobody serves: the next group is for all who are about to be there
        for rank in self._dead_now:
            need(rank not in group.members, "R23", f"rank {rank} is dead and its group is waited for: {group}")
