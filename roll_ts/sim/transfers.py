"""Weight transfers: one group per epoch, a broadcast that starts when the trainer and every member have joined.

A member that dies breaks the group: everyone who has joined and has not got the weights fails, and so does
everyone who joins later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from roll_ts.sim.clock import Clock
from roll_ts.sim.cost import CostModel
from roll_ts.sim.errors import ContractBroken


@dataclass
class WeightGroup:
    """The group of one epoch. `joined` maps a member (rank id, or −1 for the trainer) to what to do with the
    outcome: called with the seconds it took, or with None when the group broke."""

    epoch: int
    members: tuple[int, ...]
    joined: dict[int, Callable[[float | None], None]] = field(default_factory=dict)
    broken: bool = False
    ticket: int | None = None


TRAINER = -1


class Transfers:
    """All groups formed so far, by epoch."""

    def __init__(self, clock: Clock, cost: CostModel) -> None:
        self.clock, self.cost = clock, cost
        self._groups: dict[int, WeightGroup] = {}

    def form(self, epoch: int, members: tuple[int, ...]) -> None:
        """Open the group. Raises ContractBroken for a second group of one epoch, and for members that are none or
        doubled."""
        # VAL: VAL_KEY_ABSENT(epoch, mapping=self._groups, error=ContractBroken) - an epoch has one group
        if epoch in self._groups:
            raise ContractBroken(
                f"Transfers.form: epoch must not yet be a key of self._groups, got {epoch!r:.200} - an "
                "epoch has one group"
            )
        # END VAL 5497f4
        # VAL: VAL_NON_EMPTY(members, error=ContractBroken, about=epoch)
        if len(members) == 0:
            raise ContractBroken(
                f"Transfers.form: members must not be empty, got {members!r:.200} (epoch={epoch!r:.200})"
            )
        # END VAL 997eef
        # VAL: VAL_NO_DUPLICATES(members, error=ContractBroken, about=epoch)
        if len(set(members)) != len(members):
            raise ContractBroken(
                f"Transfers.form: members must not contain duplicates, got {members!r:.200} (epoch={epoch!r:.200})"
            )
        # END VAL c86308
        self._groups[epoch] = WeightGroup(epoch, members)

    def join(self, epoch: int, who: int, then: Callable[[float | None], None]) -> None:
        """`who` takes part; `then` hears the outcome. Raises ContractBroken for an unknown group, member or
        second join."""
        # VAL: VAL_KEY_IN(epoch, mapping=self._groups, error=ContractBroken, about=who) - the epoch has no group
        if epoch not in self._groups:
            raise ContractBroken(
                f"Transfers.join: epoch must be a key of self._groups, got {epoch!r:.200} "
                f"(who={who!r:.200}) - the epoch has no group"
            )
        # END VAL d4c808
        group = self._groups[epoch]
        # VAL: VAL_ONE_OF(who, (TRAINER, *group.members), error=ContractBroken, about=epoch) - only its members join
        if who not in (TRAINER, *group.members):
            raise ContractBroken(
                f"Transfers.join: who must be one of {((TRAINER, *group.members))!r:.200}, got "
                f"{who!r:.200} (epoch={epoch!r:.200}) - only its members join"
            )
        # END VAL 19e3dc
        # VAL: VAL_KEY_ABSENT(who, mapping=group.joined, error=ContractBroken, about=epoch) - once
        if who in group.joined:
            raise ContractBroken(
                f"Transfers.join: who must not yet be a key of group.joined, got {who!r:.200} "
                f"(epoch={epoch!r:.200}) - once"
            )
        # END VAL dade4b
        group.joined[who] = then
        if group.broken:
            self.clock.after(0.0, lambda: then(None))
        elif len(group.joined) == len(group.members) + 1:
            seconds = self.cost.sync_time(len(group.members))
            self._plan(group, seconds, lambda: self._complete(group, seconds))
        elif len(group.joined) == 1:
            self._plan(group, self.cost.group_timeout_seconds, lambda: self._break(group))

    def lose(self, rank: int) -> None:
        """The rank, or `TRAINER`, is dead; groups that still need it break."""
        for group in self._groups.values():
            if rank in (TRAINER, *group.members) and not group.broken:
                group.joined.pop(rank, None)
                self._break(group)

    def _plan(self, group: WeightGroup, seconds: float, then: Callable[[], None]) -> None:
        """What happens to the group next, instead of what was planned before."""
        if group.ticket is not None:
            self.clock.cancel(group.ticket)
        group.ticket = self.clock.after(seconds, then)

    def _break(self, group: WeightGroup) -> None:
        group.broken = True
        if group.ticket is not None:
            self.clock.cancel(group.ticket)
        for then in group.joined.values():
            self.clock.after(0.0, lambda then=then: then(None))  # type: ignore[misc]

    def _complete(self, group: WeightGroup, seconds: float) -> None:
        del self._groups[group.epoch]
        for then in group.joined.values():
            then(seconds)
