"""The trainer as the world has it: its processes, memory, versions, checkpoints and its side of a broadcast."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roll_ts.core import alphabet as a
from tests.roll_ts.outside.dice import Dice

if TYPE_CHECKING:
    from tests.roll_ts.outside.world import World


@dataclass
class Broadcast:
    """One weight group: the incarnations of its members when the sending began, those who have all tensors (whatever
    becomes of them later, the others get theirs), and who spoils it, if anybody."""

    members: dict[int, int]
    served: set[int] = field(default_factory=set)
    spoiled: str | None = None
    culprit: int | None = None


class Trainer:
    """`holds` is "nothing", "params" or "all" of what may lie on its devices."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.incarnation = 0
        self.alive = False
        self.hung = False
        self.holds = "nothing"
        self.version = world.scenario.start_version
        self.digests: dict[int, str] = {}
        self.broadcasts: dict[int, Broadcast] = {}
        self.steps = 0
        self.saved: dict[str, int] = {}

    def digest_of(self, version: int) -> str:
        """The digest of the tensors that the trainer has for a version."""
        return self.digests.get(version, f"d{version}")

    def die(self, command: int | None = None, delay: float = 0.05) -> None:
        """Its processes end; somebody notices after `delay` seconds."""
        if self.alive:
            self.alive, self.holds = False, "nothing"
            event = a.TrainerDied(incarnation=self.incarnation, reason="killed", command=command)
            self.world.post(delay, event)

    def start(self, c: a.StartTrainer, delay: float, fault: str | None) -> None:
        """New processes come up with the version of a checkpoint, or with the first one."""
        self.world.truth(not self.alive, "R34", f"the trainer is started while incarnation {self.incarnation} lives")
        self.incarnation, self.alive, self.hung, self.holds = c.incarnation, True, fault == "hang", "params"
        self.version = self.world.scenario.start_version if c.resume_from is None else self.saved[c.resume_from]
        digest = self.digests.setdefault(self.version, f"d{self.version}")
        self._say(
            delay, a.TrainerReady(incarnation=c.incarnation, version=self.version, digest=digest, command=c.id), fault
        )

    def fence(self, c: a.FenceTrainer, delay: float, fault: str | None) -> None:
        """Its processes are killed; the end is confirmed unless nobody can."""
        if fault in ("die", "hang"):
            self.hung = True
            return

        def killed() -> a.Event:
            if self.incarnation == c.incarnation:
                self.alive, self.holds = False, "nothing"
            return a.TrainerDied(incarnation=c.incarnation, reason="fenced", command=c.id)

        self.world.answer(delay, killed, fault)

    def obey(self, c: a.Command, delay: float, fault: str | None) -> None:
        """Carry out any other command to the trainer."""
        if not self.alive or self.hung:
            return
        if fault == "hang":
            self.hung = True
            return
        match c:
            case a.Train():
                self._train(c, delay, fault)
            case a.ReleaseTrainer():
                self._release(c, delay, fault)
            case a.Checkpoint():
                path = f"/ck/{self.incarnation}.{c.id}"
                self.saved[path] = c.version
                self._say(delay, a.CheckpointSaved(version=c.version, path=path, command=c.id), fault)
            case a.FormGroup():
                self._form(c, delay, fault)
            case a.Sync():
                self._sync(c, delay, fault)
            case _:
                raise AssertionError(f"the world does not know {type(c).__name__}")

    def trouble(self, epoch: int, rank: int) -> str | None:
        """What a member sees of a broadcast that cannot succeed: nothing ("silent") or an error; None: it can."""
        broadcast = self.broadcasts.get(epoch)
        if broadcast is None:
            return "silent"
        if broadcast.spoiled is not None:
            return broadcast.spoiled
        engines = self.world.engines
        for member, incarnation in broadcast.members.items():
            if member in broadcast.served:
                continue
            process = engines.by_rank.get(member)
            if process is None or process.hung or process.incarnation != incarnation:
                broadcast.culprit = member
                return self._spoil(broadcast, epoch)
            if self.world.sick(member) == "alone":
                return self._spoil(broadcast, epoch)
        if not self.alive or self.hung:
            return self._spoil(broadcast, epoch)
        return None

    def named(self, epoch: int) -> tuple[str, ...]:
        """Whom an error of the broadcast names: the dead member, where somebody knows it."""
        broadcast = self.broadcasts[epoch]
        known = broadcast.culprit is not None and Dice(self.world.scenario.seed, "named", epoch).chance(0.5)
        return (f"rank:{broadcast.culprit}",) if known else ()

    def _spoil(self, broadcast: Broadcast, epoch: int) -> str:
        broadcast.spoiled = Dice(self.world.scenario.seed, "spoil", epoch).choose(("silent", "error"))
        return broadcast.spoiled

    def _say(self, delay: float, event: a.Event, fault: str | None) -> None:
        incarnation = self.incarnation
        self.world.answer(
            delay, lambda: event if self.alive and not self.hung and self.incarnation == incarnation else None, fault
        )

    def _train(self, c: a.Train, delay: float, fault: str | None) -> None:
        world = self.world
        for rank, process in world.engines.by_rank.items():
            if world.shared(rank):
                held = process.holds
                world.truth(held == "nothing", "R2", f"training starts while rank {rank} has {held} on its devices")
        self.holds = "all"
        incarnation = self.incarnation
        self.steps += 1
        step = self.steps

        def trained() -> a.Event | None:
            if not self.alive or self.hung or self.incarnation != incarnation:
                return None
            self.version = c.version + 1
            self.digests[self.version] = f"d{self.version}.{step}"
            return a.TrainingFinished(
                epoch=c.epoch, version=self.version, digest=self.digests[self.version], seconds=delay, command=c.id
            )

        world.answer(1.0 + delay, trained, fault)

    def _release(self, c: a.ReleaseTrainer, delay: float, fault: str | None) -> None:
        self.holds = "nothing" if c.parts == "all" else "params"
        holder, epoch, size = "trainer", c.epoch, 1000
        if fault == "lie":
            holder, epoch, size = Dice(self.world.scenario.seed, "lie", c.id).choose(
                ((holder, epoch, 0), ("rank:0", epoch, 1000), (holder, epoch + 1, 1000))
            )
        self._say(delay, a.MemoryReleased(holder=holder, epoch=epoch, bytes=size, command=c.id), fault)

    def _form(self, c: a.FormGroup, delay: float, fault: str | None) -> None:
        world = self.world

        def formed() -> a.Event | None:
            if not self.alive or self.hung:
                return None
            dead = [rank for rank in c.members if rank not in world.engines.by_rank]
            stuck = [rank for rank in c.members if world.engines.answers(rank) is None]
            if stuck or any(world.sick(rank) == "alone" for rank in c.members):
                dice = Dice(world.scenario.seed, "group", c.id)
                if dice.chance(0.3):
                    return None
                named = (f"rank:{dead[0]}",) if dead and dice.chance(0.5) else ()
                return a.CommandFailed(error="no rendezvous", culprits=named, command=c.id)
            return a.GroupFormed(epoch=c.epoch, command=c.id)

        world.answer(delay, formed, fault)

    def _sync(self, c: a.Sync, delay: float, fault: str | None) -> None:
        engines = self.world.engines
        members = {r: engines.by_rank[r].incarnation if r in engines.by_rank else -1 for r in c.members}
        self.broadcasts[c.epoch] = Broadcast(members)

        def sent() -> a.Event | None:
            if not self.alive or self.hung:
                return None
            trouble = self.trouble(c.epoch, -1)
            if trouble == "silent":
                return None
            if trouble is not None:
                return a.CommandFailed(error="the broadcast broke", culprits=self.named(c.epoch), command=c.id)
            return a.WeightsSent(epoch=c.epoch, version=c.version, command=c.id)

        self.world.answer(delay, sent, fault)
