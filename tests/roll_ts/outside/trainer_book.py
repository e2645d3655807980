"""The oracle's account of the trainer: versions, digests, memory, groups, saves (R2, R19, R22, R33, R36)."""

from __future__ import annotations

from roll_ts.core import alphabet as a
from roll_ts.core.settings import Settings
from tests.roll_ts.outside.rank_book import RankBook
from tests.roll_ts.outside.rollout_book import need

TRAINER = "trainer"


class TrainerBook:
    """`up`: ready, and neither dead nor being killed. `group` is the weight group in use, as it was formed last."""

    def __init__(self, settings: Settings, start_version: int, ranks: RankBook) -> None:
        self.settings = settings
        self.ranks = ranks
        self.first = start_version
        self.shares = bool(ranks.shared)
        self.incarnation = 0
        self.up = False
        self.gone = True
        self.version = -1
        self.digests: dict[int, str] = {}
        self.asked_digest: dict[int, str] = {}
        self.holds = "nothing"
        self.group: a.FormGroup | None = None
        self.epoch = 0
        self.saved = -1
        self.path = ""
        self.save_failed: set[int] = set()
        self.training = False
        self.step = -1

    def started(self, c: a.StartTrainer) -> None:
        """New processes with the next number, once the old ones are known to be gone (R33, R34)."""
        need(
            c.incarnation == self.incarnation + 1,
            "R33",
            f"trainer incarnation {c.incarnation} after {self.incarnation}",
        )
        need(self.gone, "R34", "the trainer is started again and nobody said that it is dead")
        need(c.resume_from == (self.path or None), "R36", f"{c}: the last checkpoint is {self.path!r}")
        self.incarnation, self.gone = c.incarnation, False

    def ready(self, event: a.TrainerReady) -> None:
        """It can publish a version."""
        self.up, self.version, self.holds = True, event.version, "params"
        self.digests[event.version] = event.digest

    def died(self) -> None:
        """Its processes are certainly gone."""
        self.up, self.gone, self.holds, self.training, self.group = False, True, "nothing", False, None
        self.ranks.give_back(TRAINER)

    def fenced(self) -> None:
        """It is being killed."""
        self.up = False

    def train(self, c: a.Train) -> None:
        """A step begins on devices that nobody else has (R2)."""
        need(self.up, "R24", f"a trainer that is not there is asked to train: {c}")
        need(not self.training, "R18", f"a second step beside the first: {c}")
        need(c.version == self.version, "R17", f"{c.version} is trained, the trainer has {self.version}")
        self.ranks.grant(TRAINER, self.settings.layout.train_devices)
        self.training, self.holds, self.step = True, "all", c.id

    def trained(self, event: a.TrainingFinished) -> None:
        """The next version is there."""
        self.training = False
        self.version = event.version
        self.digests[event.version] = event.digest

    def asked_to_release(self, c: a.ReleaseTrainer) -> None:
        """It keeps what a step needs until the step is over (R22)."""
        need(not self.training, "R22", f"the trainer is asked to release while it trains: {c}")

    def released(self, c: a.Command) -> None:
        """Memory is back: all of it, or all but the parameters."""
        assert isinstance(c, a.ReleaseTrainer)
        self.holds = "nothing" if c.parts == "all" else "params"
        if c.parts == "all":
            self.ranks.give_back(TRAINER)

    def form(self, c: a.FormGroup) -> None:
        """A group under an epoch of its own, for a version that the trainer has (R3, R22)."""
        need(self.up, "R23", f"a group is formed with a trainer that is not there: {c}")
        need(c.epoch > self.epoch, "R3", f"epoch {c.epoch} after {self.epoch}")
        need(c.version == self.version, "R19", f"{c}: the trainer has version {self.version}")
        self.epoch, self.group = c.epoch, c

    def sync(self, c: a.Sync) -> None:
        """Weights go to the members of the group that was formed (R23)."""
        group = self.group
        need(group is not None and group.epoch == c.epoch, "R3", f"{c}: the group is {group}")
        assert group is not None
        need(set(c.members) <= set(group.members), "R23", f"{c}: the group is {group.members}")
        need(c.version == group.version, "R19", f"{c}: the group is for version {group.version}")

    def load(self, c: a.LoadWeights) -> None:
        """What a member must receive: the digest of the version at this moment (R19)."""
        need(c.version in self.digests, "R19", f"{c}: nobody has that version")
        self.asked_digest[c.id] = self.digests[c.version]

    def was_saved(self, event: a.CheckpointSaved) -> None:
        """A version is on disk."""
        self.saved, self.path = event.version, event.path

    def check_saved(self, c: a.Finish) -> None:
        """What was trained is saved before the end, whatever ends it (R36)."""
        if self.up and self.version != self.first:
            tried = self.saved == self.version or self.version in self.save_failed
            need(tried, "R36", f"{c}: version {self.version} is not saved, the last one is {self.saved}")
        if not self.up and self.path and not c.ok:
            need(self.path in c.reason, "R36", f"{c}: the last checkpoint {self.path} is not named")
