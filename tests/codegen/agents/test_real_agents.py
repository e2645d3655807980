"""The command that `step run` calls hands the whole prompt to each agent's own program, which sends it to its model.

Skipped where a program is not on the PATH. The model is a server on this machine that refuses whatever it is asked.
npm install --prefix DIR @anthropic-ai/claude-code @openai/codex @google/gemini-cli opencode-ai @qwen-code/qwen-code
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from codegen.agents.process import PLACEHOLDER
from codegen.prompts.agents import AGENTS

pytestmark = pytest.mark.nightly
RUN = ("claude", "codex", "gemini", "opencode", "qwen")  # iFlow was shut down, Qoder wants an account
PROMPT = "Implement the step \"below\" — 审查 'it'\n" + "line\n" * 200 + "the last line\n"


class Model(ThreadingHTTPServer):
    """Keeps what it is asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Refusal)
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Refusal(BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"] or 0)).decode("utf-8", "replace")
        self.server.asked.append(body.replace(json.dumps("审查")[1:-1], "审查"))
        self.send_error(400)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def settings(home: Path, address: str) -> dict[str, str]:
    """Files and variables that point the programs to the model."""
    (home / ".gemini").mkdir(parents=True)
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini/settings.json").write_text(json.dumps(auth))
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text(
        f'model = "m"\nmodel_provider = "l"\n[model_providers.l]\nname = "l"\nbase_url = "{address}/v1"\n'
        'env_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
    )
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{address}/v1", "apiKey": "x"},
        "models": {"m": {}},
    }
    return {
        "HOME": str(home),
        "CI": "1",
        "ANTHROPIC_API_KEY": "x",
        "ANTHROPIC_BASE_URL": address,
        "GEMINI_API_KEY": "x",
        "GOOGLE_GEMINI_BASE_URL": address,
        "OPENAI_API_KEY": "x",
        "OPENAI_BASE_URL": f"{address}/v1",
        "OPENAI_MODEL": "m",
        "OPENCODE_CONFIG_CONTENT": json.dumps({"provider": {"l": provider}, "model": "l/m"}),
    }


@pytest.mark.parametrize("key", RUN)
def test_the_headless_command_sends_the_whole_prompt(key: str, tmp_path: Path, model: Model) -> None:
    command = AGENTS[key].headless
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not on the PATH")
    root = tmp_path / "project"
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    environment = {**os.environ, **settings(tmp_path / "home", model.address)}
    words = [word.replace(PLACEHOLDER, PROMPT) for word in command]
    with subprocess.Popen(
        words,
        cwd=root,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        try:
            if words == list(command):
                process.stdin.write(PROMPT.encode())
            process.stdin.close()
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline and not any("the last line" in asked for asked in model.asked):
                time.sleep(0.1)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert any("the last line" in asked and "审查 'it'" in asked for asked in model.asked)
