"""FrozenLake as a text game over several turns, on gymnasium's rules.

An observation is a line feed and the chosen views, separated by spaces. Views: `map`, one letter a cell, rows separated
by `/`, `A` where the agent is; `position`, row and column digit; `around`, what is up, left, down and right, `#`
for the edge; `moves`, the letters of the moves that lead neither into a hole nor against the edge, in the same order.
The action of a reply is its first L, D, R or U; a reply with none of them passes. The episode ends at the goal or in a
hole (terminated) or after `max_turns` replies (truncated). Maps are drawn by seed and always solvable, unless one is
given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv, generate_random_map

from roll_ts.envs.protocol import EnvSpec

ACTIONS = "LDRU"
CELLS = "SFHG"
ALPHABET = "LDRUSFHGA/#\n 0123456789"
VIEWS = ("map", "position", "around", "moves")
_ORDER = "ULDR"  # how `around` and `moves` list directions: the one that most often leads on comes last
_MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))


def parse_action(reply: str) -> int | None:
    """gymnasium's action number of the first L, D, R or U in `reply`; None if there is none."""
    return next((ACTIONS.index(c) for c in reply if c in ACTIONS), None)


def distances_to_goal(desc: Sequence[str]) -> dict[tuple[int, int], int]:
    """Moves to the goal along safe cells (no slipping) from each cell that can reach it, by breadth-first
    search."""
    goal = next((r, row.index("G")) for r, row in enumerate(desc) if "G" in row)
    found = {goal: 0}
    queue = deque([goal])
    while queue:
        r, c = queue.popleft()
        for dr, dc in _MOVES:
            cell = (r + dr, c + dc)
            inside = 0 <= cell[0] < len(desc) and 0 <= cell[1] < len(desc[0])
            if inside and cell not in found and desc[cell[0]][cell[1]] != "H":
                found[cell] = found[(r, c)] + 1
                queue.append(cell)
    return found


class FrozenLake:
    """One text FrozenLake.

    size: cells per side. frozen_share: probability that a cell is ice, not a hole (1.0: no holes).
    slippery: gymnasium's rule, a move goes aside with probability 2/3. desc: a fixed map (rows of S, F, H,
    G) instead of random ones. max_turns: replies before truncation. progress_reward: paid in total for
    covering the way to the goal, in proportion (0: reward is 1 at the goal, 0 elsewhere; a hole gives back
    what was paid). turn_cost: taken each turn.
    """

    def __init__(
        self,
        size: int = 3,
        frozen_share: float = 0.8,
        slippery: bool = False,
        desc: Sequence[str] | None = None,
        max_turns: int = 8,
        progress_reward: float = 0.0,
        turn_cost: float = 0.0,
        view: Sequence[str] = ("map", "position"),
    ) -> None:
        if desc is not None:
            _check_map(desc)
        # VAL: VAL_INT_RANGE(size, min=2)
        if not size >= 2:
            raise ValueError(f"FrozenLake.__init__: size must be at least 2, got {size!r}")
        # END VAL ce838e
        # VAL: VAL_FLOAT_RANGE(frozen_share, min=0, max=1, exclude_min=True)
        if not 0 < frozen_share <= 1:
            raise ValueError(f"FrozenLake.__init__: frozen_share must lie in (0, 1], got {frozen_share!r}")
        # END VAL 7c1b93
        # VAL: VAL_INT_RANGE(max_turns, min=1)
        if not max_turns >= 1:
            raise ValueError(f"FrozenLake.__init__: max_turns must be at least 1, got {max_turns!r}")
        # END VAL f61c2b
        # VAL: VAL_NON_EMPTY(view), VAL_SUBSET(view, of=VIEWS)
        if len(view) == 0:
            raise ValueError(f"FrozenLake.__init__: view must not be empty, got {view!r:.200}")
        _extra = sorted(set(view) - set(VIEWS), key=repr)
        if _extra:
            raise ValueError(
                f"FrozenLake.__init__: view must be a subset of VIEWS, but has {_extra!r:.200} outside {VIEWS!r:.200}"
            )
        # END VAL 732a48
        if "position" in view:
            rows = max(size, len(desc or ()))
            # VAL: VAL_INT_RANGE(rows, max=10) - the view `position` shows two digits
            if not rows <= 10:
                raise ValueError(
                    f"FrozenLake.__init__: rows must be at most 10, got {rows!r} - the view `position` shows two digits"
                )
            # END VAL c27aad
        self._view = tuple(view)
        self._size, self._frozen_share, self._slippery = size, frozen_share, slippery
        self._fixed = list(desc) if desc is not None else None
        self._max_turns, self._progress_reward, self._turn_cost = max_turns, progress_reward, turn_cost
        self._game: FrozenLakeEnv | None = None
        self._over = True

    def reset(self, seed: int) -> tuple[str, dict[str, Any]]:
        """Start the episode of `seed`: it draws the map and, on slippery ice, the slips."""
        self.close()
        self._desc = self._fixed or generate_random_map(self._size, self._frozen_share, seed=seed)
        self._game = FrozenLakeEnv(desc=self._desc, is_slippery=self._slippery)
        cell, _ = self._game.reset(seed=seed)
        self._distances = distances_to_goal(self._desc)
        self._at = divmod(int(cell), len(self._desc[0]))
        self._start_distance = self._distances[self._at]
        self._turn, self._over = 0, False
        return self._observe(), self._info(success=False)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play the reply `action`."""
        # AST: AST_PRECONDITION(
        #     self._game is not None and not self._over, error=RuntimeError
        # ) - no episode in progress, call reset first
        if self._game is None or self._over:
            raise RuntimeError(
                "Pre-condition: self._game is not None and not self._over, got "
                f"self._game={self._game!r:.200} - no episode in progress, call reset first"
            )
        # END AST 5df3e1
        before = self._covered()
        self._turn += 1
        move = parse_action(action)
        if move is not None:
            cell = self._game.step(move)[0]
            self._at = divmod(int(cell), len(self._desc[0]))
        here = self._desc[self._at[0]][self._at[1]]
        terminated = here in "GH"
        truncated = not terminated and self._turn >= self._max_turns
        self._over = terminated or truncated
        reward = self._progress_reward * (self._covered() - before) - self._turn_cost + float(here == "G")
        return self._observe(), reward, terminated, truncated, self._info(success=here == "G")

    def close(self) -> None:
        """End the episode."""
        if self._game is not None:
            self._game.close()
        self._game, self._over = None, True

    def _covered(self) -> float:
        """Share of the shortest way from the start that is behind the agent; 0 in a hole, at worst -1."""
        distance = self._distances.get(self._at)
        if distance is None:
            return 0.0
        return max(-1.0, 1 - distance / self._start_distance)

    def _observe(self) -> str:
        draw = {"map": self._map, "position": self._position, "around": self._around, "moves": self._moves}
        return "\n" + " ".join(draw[part]() for part in self._view)

    def _map(self) -> str:
        rows = [list(row) for row in self._desc]
        rows[self._at[0]][self._at[1]] = "A"
        return "/".join("".join(row) for row in rows)

    def _position(self) -> str:
        return f"{self._at[0]}{self._at[1]}"

    def _moves(self) -> str:
        return "".join(letter for letter, cell in zip(_ORDER, self._around(), strict=True) if cell not in "#H")

    def _around(self) -> str:
        steps = (_MOVES[ACTIONS.index(letter)] for letter in _ORDER)
        cells = ((self._at[0] + dr, self._at[1] + dc) for dr, dc in steps)
        rows, columns = range(len(self._desc)), range(len(self._desc[0]))
        return "".join(self._desc[r][c] if r in rows and c in columns else "#" for r, c in cells)

    def _info(self, success: bool) -> dict[str, Any]:
        return {"success": success, "turn": self._turn, "position": self._at}


def _check_map(desc: Sequence[str]) -> None:
    cells = "".join(desc)
    widths = sorted({len(row) for row in desc})
    # VAL: VAL_NON_EMPTY(cells, about=desc)
    if len(cells) == 0:
        raise ValueError(f"_check_map: cells must not be empty, got {cells!r:.200} (desc={desc!r:.200})")
    # END VAL fc96f2
    # VAL: VAL_LENGTH(widths, min=1, max=1, about=desc) - the rows of a map are equally long
    if len(widths) != 1:
        raise ValueError(
            f"_check_map: widths must have one element, got {len(widths)!r}: {widths!r:.200} "
            f"(desc={desc!r:.200}) - the rows of a map are equally long"
        )
    # END VAL 11d497
    # VAL: VAL_SUBSET(cells, of=CELLS, about=desc) - a map is made of S, F, H and G
    _extra = sorted(set(cells) - set(CELLS), key=repr)
    if _extra:
        raise ValueError(
            f"_check_map: cells must be a subset of CELLS, but has {_extra!r:.200} outside "
            f"{CELLS!r:.200} (desc={desc!r:.200}) - a map is made of S, F, H and G"
        )
    # END VAL 43a373
    starts, goals = cells.count("S"), cells.count("G")
    # VAL: VAL_EQUAL(starts, 1, about=desc), VAL_EQUAL(goals, 1, about=desc) - a map has one S and one G
    if starts != 1:
        raise ValueError(
            f"_check_map: starts must equal 1, got {starts!r:.200} (desc={desc!r:.200}) - a map has one S and one G"
        )
    if goals != 1:
        raise ValueError(
            f"_check_map: goals must equal 1, got {goals!r:.200} (desc={desc!r:.200}) - a map has one S and one G"
        )
    # END VAL ebeebf
    start = next((r, row.index("S")) for r, row in enumerate(desc) if "S" in row)
    reached = distances_to_goal(desc)
    # VAL: VAL_KEY_IN(start, mapping=reached, about=desc) - a way leads from S to G
    if start not in reached:
        raise ValueError(
            f"_check_map: start must be a key of reached, got {start!r:.200} (desc={desc!r:.200}) - a "
            "way leads from S to G"
        )
    # END VAL 6a3a6a


SPEC = EnvSpec("frozen_lake", FrozenLake, ALPHABET)
