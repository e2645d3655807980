"""Groups and the next batch (R13–R15). A batch is the oldest complete groups; it waits for no other group.

Invariant: members of a group are unique; a group is trained whole or dropped whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from roll_ts.core.alphabet import Assignment
from roll_ts.core.errors import IllegalTransition, UnknownId


@dataclass
class Group:
    """One prompt. `players[m]` is the trajectory that plays member m now; `done` the members with a trainable end and
    `oldest` the oldest version among their tokens (−1: none); `replaced[m]` counts how often m was played anew."""

    id: int
    seed: int
    players: list[int]
    done: set[int] = field(default_factory=set)
    oldest: int = -1
    replaced: list[int] = field(default_factory=list)


class GroupTable:
    """Open groups, complete groups in the order of completion, and the groups now being trained."""

    def __init__(self, group_size: int) -> None:
        self.group_size = group_size
        self.open: dict[int, Group] = {}
        self.complete: dict[int, Group] = {}
        self.training: dict[int, Group] = {}

    def start(self, group: int, seed: int, players: list[int]) -> Group:
        """Open a group whose members are played by the trajectories `players`."""
        # VAL: VAL_NO_DUPLICATES(players)
        if len(set(players)) != len(players):
            raise ValueError(f"start: players must not contain duplicates, got {players!r:.200}")
        # END VAL ce958a
        # VAL: VAL_LENGTH(players, min=self.group_size, max=self.group_size)
        if len(players) != self.group_size:
            raise ValueError(
                f"start: players must have exactly {self.group_size!r:.200} elements, got "
                f"{len(players)!r}: {players!r:.200}"
            )
        # END VAL ebf8b5
        # VAL: VAL_KEY_ABSENT(group, mapping=self.open, error=IllegalTransition)
        if group in self.open:
            raise IllegalTransition(f"start: group must not yet be a key of self.open, got {group!r:.200}")
        # END VAL b5dcd7
        self.open[group] = Group(group, seed, list(players), replaced=[0] * self.group_size)
        return self.open[group]

    def replace(self, group: int, member: int, trajectory: int) -> None:
        """Let a new trajectory play the member whose last one was void (R13)."""
        # VAL: VAL_KEY_IN(group, mapping=self.open, error=UnknownId)
        if group not in self.open:
            raise UnknownId(f"replace: group must be a key of self.open, got {group!r:.200}")
        # END VAL be6a39
        row = self.open[group]
        # VAL: VAL_INT_RANGE(member, min=0, max=self.group_size - 1)
        if not 0 <= member <= self.group_size - 1:
            raise ValueError(f"replace: member must lie in [0, {self.group_size - 1!r:.200}], got {member!r}")
        # END VAL 0759bf
        # VAL: VAL_KEY_ABSENT(trajectory, mapping=row.players)
        if trajectory in row.players:
            raise ValueError(f"replace: trajectory must not yet be a key of row.players, got {trajectory!r:.200}")
        # END VAL 865da8
        row.players[member] = trajectory
        row.replaced[member] += 1

    def finish_member(self, group: int, member: int, oldest: int) -> bool:
        """The member has a trainable end; its oldest token has version `oldest`. True when that completes the group."""
        # VAL: VAL_KEY_IN(group, mapping=self.open, error=UnknownId)
        if group not in self.open:
            raise UnknownId(f"finish_member: group must be a key of self.open, got {group!r:.200}")
        # END VAL bdc1da
        row = self.open[group]
        # VAL: VAL_KEY_ABSENT(member, mapping=row.done, error=IllegalTransition)
        if member in row.done:
            raise IllegalTransition(f"finish_member: member must not yet be a key of row.done, got {member!r:.200}")
        # END VAL 68a4b2
        row.done.add(member)
        row.oldest = oldest if row.oldest < 0 else min(row.oldest, oldest)
        if len(row.done) < self.group_size:
            return False
        self.complete[group] = self.open.pop(group)
        return True

    def take(self, count: int) -> tuple[Assignment, ...]:
        """Move the `count` oldest complete groups into training; returns their members in order."""
        available = len(self.complete)
        # VAL: VAL_INT_RANGE(count, min=1, max=available)
        if not 1 <= count <= available:
            raise ValueError(f"take: count must lie in [1, {available!r:.200}], got {count!r}")
        # END VAL 8bf11f
        taken = list(self.complete)[:count]
        for group in taken:
            self.training[group] = self.complete.pop(group)
        batch = tuple(
            Assignment(group, member, player)
            for group in taken
            for member, player in enumerate(self.training[group].players)
        )
        # AST: AST_POSTCONDITION(len(batch) == count * self.group_size)
        assert len(batch) == count * self.group_size, (
            f"Post-condition: len(batch) == count * self.group_size, got batch={batch!r:.200}, "
            f"count={count!r:.200}, self.group_size={self.group_size!r:.200}"
        )
        # END AST 72ee6c
        return batch

    def trained(self) -> list[Group]:
        """The training groups are done with; returns them."""
        done = list(self.training.values())
        self.training = {}
        return done

    def drop(self, group: int) -> Group:
        """Forget an open or complete group, whole (R15). Returns it."""
        here = {**self.open, **self.complete}
        # VAL: VAL_KEY_IN(group, mapping=here, error=UnknownId)
        if group not in here:
            raise UnknownId(f"drop: group must be a key of here, got {group!r:.200}")
        # END VAL 00f751
        self.open.pop(group, None)
        self.complete.pop(group, None)
        return here[group]
