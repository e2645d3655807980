"""Environments and the sample store of a simulated run: what each trajectory plays and the tokens it has so
far.

Contexts only grow: prompt, then reply and observation of each turn. A dispatch must carry exactly the tokens
that are in the store; carrying fewer would generate tokens twice, which is counted, carrying more is
impossible.
"""

from __future__ import annotations

from dataclasses import dataclass

from roll_ts.core.alphabet import AttemptId, Dispatch, EnvironmentReplied, StepEnvironment
from roll_ts.sim.errors import ContractBroken
from roll_ts.sim.workload import Episode, Workload


@dataclass
class Play:
    """One trajectory. `context` excludes the `saved` tokens of the turn being generated. `version` is of
    its last dispatch, `attempt` the one that generates the turn now, and `carried` what that one went on from."""

    episode: Episode
    context: int
    turn: int = 1
    saved: int = 0
    generated: int = 0
    version: int = 0
    done: bool = False
    attempt: AttemptId | None = None
    carried: int = 0


class Episodes:
    """All trajectories ever started; cancelled ones are closed."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.regenerated = 0
        self._plays: dict[int, Play] = {}
        self._closed: set[int] = set()

    def play(self, trajectory: int) -> Play:
        """The trajectory's play. Raises ContractBroken when it was never reset."""
        # VAL: VAL_KEY_IN(trajectory, mapping=self._plays, error=ContractBroken) - a trajectory begins with its reset
        if trajectory not in self._plays:
            raise ContractBroken(
                f"Episodes.play: trajectory must be a key of self._plays, got {trajectory!r:.200} - a "
                "trajectory begins with its reset"
            )
        # END VAL 4087bb
        return self._plays[trajectory]

    def is_closed(self, trajectory: int) -> bool:
        """Whether it was cancelled."""
        return trajectory in self._closed

    def close(self, trajectory: int) -> None:
        """Close the environment."""
        self._closed.add(trajectory)

    def tokens(self, trajectory: int) -> int:
        """All tokens of a finished trajectory: what training reads."""
        return self.play(trajectory).context

    def step(self, command: StepEnvironment) -> tuple[float, EnvironmentReplied]:
        """Seconds until the environment answers, and its answer."""
        if command.turn == 0:
            # the same episodes in every evaluation round, so that before and after can be compared
            group = 0 if command.kind == "eval" else command.group
            episode = self.workload.episode(command.kind, group, command.member)
            self._plays[command.trajectory] = Play(episode, episode.prompt_tokens)
            return episode.reset_wait, self._reply(command, episode.prompt_tokens, False, 0.0, False)
        play = self.play(command.trajectory)
        turn, saved, done = play.turn, play.saved, play.done
        # AST: AST_PRECONDITION(
        #     command.turn == turn and saved > 0 and not done, error=ContractBroken, about=command.trajectory
        # ) - a step follows the reply of its turn
        if command.turn != turn or not saved > 0 or done:
            raise ContractBroken(
                "Pre-condition: command.turn == turn and saved > 0 and not done, got "
                f"command.turn={command.turn!r:.200}, turn={turn!r:.200}, saved={saved!r:.200}, "
                f"done={done!r:.200} (command.trajectory={command.trajectory!r:.200}) - a step follows the "
                "reply of its turn"
            )
        # END AST 682f91
        at = command.turn - 1
        play.context += play.saved + play.episode.observations[at]
        play.saved, play.turn = 0, play.turn + 1
        play.done = command.turn >= play.episode.turns
        success = play.done and play.episode.luck < self.workload.skill(play.version)
        reply = self._reply(command, play.context, play.done, float(success), success)
        return play.episode.waits[at], reply

    def request(self, command: Dispatch) -> tuple[int, int, str]:
        """Prompt tokens, tokens to generate and the reason it will end for. Raises ContractBroken when the
        dispatch does not fit the trajectory."""
        play = self.play(command.attempt.trajectory)
        attempt, context, turn, done = command.attempt, play.context, play.turn, play.done
        # AST: AST_PRECONDITION(
        #     command.context_tokens == context and attempt.turn == turn and not done, error=ContractBroken
        # ) - a dispatch fits its trajectory
        if command.context_tokens != context or attempt.turn != turn or done:
            raise ContractBroken(
                "Pre-condition: command.context_tokens == context and attempt.turn == turn and not done, "
                f"got command.context_tokens={command.context_tokens!r:.200}, context={context!r:.200}, "
                f"attempt={attempt!r:.200}, turn={turn!r:.200}, done={done!r:.200} - a dispatch fits its "
                "trajectory"
            )
        # END AST 3e247f
        # VAL: VAL_INT_RANGE(
        #     command.carried, min=0, max=play.saved, error=ContractBroken, about=attempt
        # ) - only what is stored can be carried
        if not 0 <= command.carried <= play.saved:
            raise ContractBroken(
                f"Episodes.request: command.carried must lie in [0, {play.saved!r:.200}], got "
                f"{command.carried!r} (attempt={attempt!r:.200}) - only what is stored can be carried"
            )
        # END VAL cc9a61
        self.regenerated += play.saved - command.carried
        play.generated -= play.saved - command.carried
        play.saved = play.carried = command.carried
        play.attempt = attempt
        play.version = command.version
        whole = play.episode.replies[play.turn - 1]
        left = max(1, whole - command.carried)
        if command.max_new_tokens < left:
            return command.context_tokens + command.carried, command.max_new_tokens, "length"
        return command.context_tokens + command.carried, left, "stop"

    def store(self, attempt: AttemptId, total: int) -> None:
        """The attempt has generated `total` tokens by now. One that is no longer the turn's present attempt is left
        out: its engine is given up, and the turn goes on elsewhere."""
        play = self.play(attempt.trajectory)
        if play.attempt == attempt:
            play.generated += play.carried + total - play.saved
            play.saved = play.carried + total

    def _reply(
        self, command: StepEnvironment, context: int, done: bool, reward: float, success: bool
    ) -> EnvironmentReplied:
        return EnvironmentReplied(
            command=command.id,
            trajectory=command.trajectory,
            turn=command.turn,
            context_tokens=context,
            done=done,
            reward=reward,
            success=success,
        )
