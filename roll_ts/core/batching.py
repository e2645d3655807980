"""Groups and the next batch (R13–R15). A batch is the oldest complete groups; it waits for no other group.

A group needs `group_size` members with a trainable end; more may be started, and who is not needed any more is
redundant. Invariant: members of a group are unique; a group is trained whole or dropped whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from roll_ts.core.alphabet import Assignment
from roll_ts.core.errors import IllegalTransition, UnknownId


@dataclass(slots=True)
class Group:
    """One prompt. `players[m]` is the trajectory that plays member m now; `done` the members with a trainable end and
    their rewards, `given_up` those that are played no more; `oldest` the oldest version among the tokens of `done` (−1:
    none) and `filed` the version it is filed under; `newest` the newest version among them; `replaced[m]` counts how
    often m was played again."""

    id: int
    seed: int
    players: list[int]
    done: dict[int, float] = field(default_factory=dict)
    given_up: set[int] = field(default_factory=set)
    oldest: int = -1
    filed: int = -1
    newest: int = -1
    replaced: list[int] = field(default_factory=list)
    alarm: int | None = None


class GroupTable:
    """Open groups, complete groups in the order of completion, and the groups now being trained. `extra`: members
    started beyond the `group_size` that are needed."""

    def __init__(self, group_size: int, extra: int = 0) -> None:
        self.group_size = group_size
        self.extra = extra
        self.open: dict[int, Group] = {}
        self.complete: dict[int, Group] = {}
        self.training: dict[int, Group] = {}
        self.changes = 0
        self._by_version: dict[int, dict[int, None]] = {}

    def start(self, group: int, seed: int, players: list[int]) -> Group:
        """Open a group whose members are played by the trajectories `players`."""
        # VAL: VAL_NO_DUPLICATES(players)
        if len(set(players)) != len(players):
            raise ValueError(f"GroupTable.start: players must not contain duplicates, got {players!r:.200}")
        # END VAL afe825
        # VAL: VAL_LENGTH(players, min=self.group_size + self.extra, max=self.group_size + self.extra)
        if len(players) != self.group_size + self.extra:
            raise ValueError(
                f"GroupTable.start: players must have exactly {self.group_size + self.extra!r:.200} "
                f"elements, got {len(players)!r}: {players!r:.200}"
            )
        # END VAL a0c69a
        # VAL: VAL_KEY_ABSENT(group, mapping=self.open, error=IllegalTransition)
        if group in self.open:
            raise IllegalTransition(f"GroupTable.start: group must not yet be a key of self.open, got {group!r:.200}")
        # END VAL 19afde
        self.open[group] = Group(group, seed, list(players), replaced=[0] * len(players))
        return self.open[group]

    def replace(self, group: int, member: int, trajectory: int) -> None:
        """Let a new trajectory play the member whose last one was void (R13)."""
        # VAL: VAL_KEY_IN(group, mapping=self.open, error=UnknownId)
        if group not in self.open:
            raise UnknownId(f"GroupTable.replace: group must be a key of self.open, got {group!r:.200}")
        # END VAL 94e8a9
        row = self.open[group]
        # VAL: VAL_INT_RANGE(member, min=0, max=len(row.players) - 1)
        if not 0 <= member <= len(row.players) - 1:
            raise ValueError(
                f"GroupTable.replace: member must lie in [0, {len(row.players) - 1!r:.200}], got {member!r}"
            )
        # END VAL c05fa1
        # VAL: VAL_KEY_ABSENT(trajectory, mapping=row.players)
        if trajectory in row.players:
            raise ValueError(
                f"GroupTable.replace: trajectory must not yet be a key of row.players, got {trajectory!r:.200}"
            )
        # END VAL e04251
        row.players[member] = trajectory
        row.replaced[member] += 1

    def give_up(self, group: int, member: int) -> bool:
        """Play the member no more. False when the group can no longer become complete without it."""
        # VAL: VAL_KEY_IN(group, mapping=self.open, error=UnknownId)
        if group not in self.open:
            raise UnknownId(f"GroupTable.give_up: group must be a key of self.open, got {group!r:.200}")
        # END VAL 1a7e4b
        row = self.open[group]
        row.given_up.add(member)
        return len(row.players) - len(row.given_up) >= self.group_size

    def finish_member(self, group: int, member: int, oldest: int, reward: float = 0.0, newest: int = -1) -> bool:
        """The member has a trainable end; its tokens have versions from `oldest` to `newest`. True when that completes
        the group."""
        # VAL: VAL_KEY_IN(group, mapping=self.open, error=UnknownId)
        if group not in self.open:
            raise UnknownId(f"GroupTable.finish_member: group must be a key of self.open, got {group!r:.200}")
        # END VAL b41255
        row = self.open[group]
        # VAL: VAL_KEY_ABSENT(member, mapping=row.done, error=IllegalTransition)
        if member in row.done:
            raise IllegalTransition(
                f"GroupTable.finish_member: member must not yet be a key of row.done, got {member!r:.200}"
            )
        # END VAL 085eee
        row.done[member] = reward
        row.newest = max(row.newest, newest, oldest)
        row.oldest = oldest if row.oldest < 0 else min(row.oldest, oldest)
        if len(row.done) < self.group_size:
            return False
        self.complete[group] = self.open.pop(group)
        self.changes += 1
        return True

    def missing(self, group: int) -> int:
        """Members that an open group still needs; 0 when it is complete."""
        row = self.open.get(group)
        return 0 if row is None else self.group_size - len(row.done)

    def rewards_are_equal(self, group: int) -> bool:
        """Whether all needed members of a complete group have the same reward: nothing can be learned from it."""
        return len(set(self.complete[group].done.values())) == 1

    def take(self, groups: Sequence[int]) -> tuple[Assignment, ...]:
        """Move these complete groups into training; returns their members in order."""
        # VAL: VAL_NON_EMPTY(groups)
        if len(groups) == 0:
            raise ValueError(f"GroupTable.take: groups must not be empty, got {groups!r:.200}")
        # END VAL 88c3e0
        # VAL: VAL_NO_DUPLICATES(groups)
        if len(set(groups)) != len(groups):
            raise ValueError(f"GroupTable.take: groups must not contain duplicates, got {groups!r:.200}")
        # END VAL 714cad
        # VAL: VAL_SUBSET(groups, of=self.complete)
        _extra = sorted(set(groups) - set(self.complete), key=repr)
        if _extra:
            raise ValueError(
                f"GroupTable.take: groups must be a subset of self.complete, but has {_extra!r:.200} "
                f"outside {self.complete!r:.200}"
            )
        # END VAL 4dbd59
        self.changes += 1
        for group in groups:
            self.training[group] = self.complete.pop(group)
        batch = tuple(
            Assignment(group, member, self.training[group].players[member])
            for group in groups
            for member in sorted(self.training[group].done)
        )
        # AST: AST_POSTCONDITION(len(batch) == len(groups) * self.group_size)
        assert len(batch) == len(groups) * self.group_size, (
            f"Post-condition: len(batch) == len(groups) * self.group_size, got batch={batch!r:.200}, "
            f"groups={groups!r:.200}, self.group_size={self.group_size!r:.200}"
        )
        # END AST ba6fce
        return batch

    def trained(self) -> list[Group]:
        """The training groups are done with; returns them."""
        done = list(self.training.values())
        for group in done:
            self._unfile(group)
        self.training = {}
        return done

    def untrain(self) -> None:
        """The step was not done: its groups are complete again, before those that were completed since."""
        self.complete = {**self.training, **self.complete}
        self.training = {}

    def drop(self, group: int) -> Group:
        """Forget an open or complete group, whole (R15). Returns it."""
        dropped = self.open.pop(group, None) or self.complete.pop(group, None)
        # VAL: VAL_NOT_NONE(dropped, error=UnknownId, about=group) - the group is neither open nor complete
        if dropped is None:
            raise UnknownId(
                f"GroupTable.drop: dropped must not be None, got {dropped} (group={group!r:.200}) - the "
                "group is neither open nor complete"
            )
        # END VAL 87a1a5
        self._unfile(dropped)
        self.changes += 1
        return dropped

    def file(self, group: int, version: int) -> None:
        """A token of `version` is among the group's: `older_than` finds it under its lowest version."""
        row = self.open.get(group)
        if row is None or 0 <= row.filed <= version:
            return
        self._unfile(row)
        row.filed = version
        self._by_version.setdefault(version, {})[group] = None

    def older_than(self, version: int) -> list[Group]:
        """Open and complete groups that are filed under a version below `version`, by id. Filed low does not mean old:
        the member may have been played again since."""
        old = [ident for filed, groups in self._by_version.items() if filed < version for ident in groups]
        found = (self.open.get(ident) or self.complete.get(ident) for ident in sorted(old))
        return [group for group in found if group is not None]

    def refile(self, group: Group, version: int) -> None:
        """The group's oldest token is of `version` now (−1: it has none)."""
        self._unfile(group)
        group.filed = version
        if version >= 0:
            self._by_version.setdefault(version, {})[group.id] = None

    def _unfile(self, group: Group) -> None:
        filed = self._by_version.get(group.filed)
        if filed is None:
            return
        filed.pop(group.id, None)
        if not filed:
            del self._by_version[group.filed]
