"""Who is at fault when a weight group fails and nobody can say (R32): a search by halves.

A group is the trainer and some ranks; it fails as a whole. A rank is charged when it fails alone with a trainer that
has worked with others; the trainer is charged when disjoint groups fail one after the other and none works. So one bad
rank of n is alone after ⌈log2 n⌉ + 2 further groups, each of which serves the innocent in it, and no rank is charged
that has not failed alone.
"""

from __future__ import annotations

from typing import NamedTuple

Group = tuple[int, ...]


class Verdict(NamedTuple):
    """Who is charged: ranks, or the trainer. Nobody (false): the fault has gone away by itself."""

    ranks: Group = ()
    trainer: bool = False

    def __bool__(self) -> bool:
        return bool(self.ranks) or self.trainer


def halves(group: Group) -> list[Group]:
    """The two halves of a group, the larger first; a group of one is its own only half."""
    middle = (len(group) + 1) // 2
    return [half for half in (group[:middle], group[middle:]) if half]


class Search:
    """The search after the group `failed` has failed. `proven`: the trainer has worked with some group since.
    `patient`: the trainer was charged and replaced before, so two failing halves do not charge it again.

    `group` is what to try next; `tried(ok)` takes how that went. Invariant: if the fault is a rank's and lasts, each
    of `bad` (groups that failed) and, once proven, `suspects` holds a guilty one.
    """

    def __init__(self, failed: Group, proven: bool = False, patient: bool = False) -> None:
        # VAL: VAL_LENGTH(failed, min=2) - who fails alone needs no search
        if not len(failed) >= 2:
            raise ValueError(
                f"Search.__init__: failed must have at least 2 elements, got {len(failed)!r}: "
                f"{failed!r:.200} - who fails alone needs no search"
            )
        # END VAL fee525
        self.proven = proven
        self.patient = patient
        self.tries = 0
        self.limit = 2 * len(failed).bit_length() + 6
        self.suspects: Group = failed
        self.bad: list[Group] = []
        self.queue: list[Group] = halves(failed)
        self.group: Group = self.queue.pop(0)

    def tried(self, ok: bool) -> Verdict | None:
        """The group has worked or failed. Returns the verdict when the search is over."""
        self.tries += 1
        return self._among_ranks(ok) if self.proven else self._in_doubt(ok)

    def _in_doubt(self, ok: bool) -> Verdict | None:
        """Until one group works, the trainer may be at fault."""
        if ok:
            self.proven = True
            alone = tuple(group[0] for group in self.bad if len(group) == 1)
            # With no failure on this level yet, the sibling of what worked has the guilty rank of both.
            if alone:
                return Verdict(alone)
            self._suspect(self.bad[0] if self.bad else self.queue[0])
            return None
        self.bad.append(self.group)
        if not self.queue:
            if not self.patient or self.tries >= self.limit:
                return Verdict(trainer=True)
            self.queue = [half for group in self.bad if len(group) > 1 for half in halves(group)]
            self.bad = [group for group in self.bad if len(group) == 1]
        if not self.queue:
            return Verdict(trainer=True)
        self.group = self.queue.pop(0)
        return None

    def _among_ranks(self, ok: bool) -> Verdict | None:
        if ok:
            left = tuple(rank for rank in self.suspects if rank not in self.group)
            if not left:
                return Verdict()
            self._suspect(left)
        elif len(self.group) == 1:
            return Verdict(self.group)
        else:
            self._suspect(self.group)
        return None

    def _suspect(self, group: Group) -> None:
        self.suspects = group
        self.group = halves(group)[0]
