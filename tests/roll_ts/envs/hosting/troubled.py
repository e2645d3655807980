"""An environment that does what its action says: everything a real one has ever done to a run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from typing import Any

from roll_ts.envs.protocol import EnvSpec


class Troubled:
    """`at_reset`: an action that `reset` already does, for seeds divisible by `every`."""

    def __init__(self, at_reset: str = "", every: int = 1) -> None:
        self.at_reset, self.every, self.steps = at_reset, every, 0

    def reset(self, seed: int) -> tuple[str, dict[str, Any]]:
        self.steps = 0
        if self.at_reset and seed % self.every == 0:
            self._do(self.at_reset)
        return f"seed {seed} in {os.getpid()}", {"success": False}

    def step(self, action: str) -> Any:
        self.steps += 1
        said = self._do(action)
        return said if said is not None else (f"step {self.steps}", 0.5, action == "end", False, {"success": True})

    def close(self) -> None:
        pass

    def _do(self, action: str) -> Any:
        if action == "hang":
            time.sleep(3600)
        elif action == "spin":
            while True:
                pass
        elif action == "die":
            print("the last words", file=sys.stderr, flush=True)
            os._exit(7)
        elif action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif action == "raise":
            raise OSError("sandbox lost")
        elif action == "exit":
            sys.exit(3)
        elif action == "print":
            print("x" * 1_000_000)
        elif action == "huge":
            return "y" * 10_000_000, 0.0, False, False, {"success": False}
        elif action == "none":
            return None, 0.0, False, False, {"success": False}
        elif action == "eat":
            return "z" * (1 << 31), 0.0, False, False, {"success": False}
        elif action.startswith("leave "):
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
            with open(action.removeprefix("leave "), "w") as file:
                file.write(str(child.pid))
        return None


class Async(Troubled):
    """The same with coroutines."""

    async def reset(self, seed: int) -> tuple[str, dict[str, Any]]:  # type: ignore[override]
        await asyncio.sleep(0.01)
        return f"seed {seed}", {"success": False}

    async def step(self, action: str) -> Any:  # type: ignore[override]
        await asyncio.sleep(0.01)
        return "later", 1.0, action == "end", False, {"success": True}

    async def close(self) -> None:  # type: ignore[override]
        await asyncio.sleep(0)


SPEC = EnvSpec("troubled", Troubled, "")
ASYNC = EnvSpec("async", Async, "")
