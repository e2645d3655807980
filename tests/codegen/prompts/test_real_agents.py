"""The agents' own programs list our prompts, or send one. Skipped where a program is not on the PATH; no accounts.

npm install --prefix DIR @anthropic-ai/claude-code @openai/codex @google/gemini-cli opencode-ai @qwen-code/qwen-code
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from codegen.prompts.agents import AGENTS
from codegen.prompts.install import Place, plan_install
from codegen.prompts.library import context_text, load_prompts

pytestmark = pytest.mark.nightly
PROMPTS = load_prompts()


class Project:
    """A repository with one agent's prompts, and a home folder of its own."""

    def __init__(self, base: Path, key: str, program: str) -> None:
        self.program = shutil.which(program)
        if self.program is None:
            pytest.skip(f"{program} is not on the PATH")
        self.root, self.home = base / "project", base / "home"
        self.root.mkdir()
        self.home.mkdir()
        subprocess.run(["git", "init", "--quiet", str(self.root)], check=True)
        plan_install(Place(self.root), [AGENTS[key]], list(PROMPTS.values())).carry_out()
        self.environment = {**os.environ, "HOME": str(self.home), "CI": "1"}

    def output(self, *arguments: str, **environment: str) -> str:
        return subprocess.run(
            [str(self.program), *arguments],
            cwd=self.root,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        ).stdout

    def answer(self, *arguments: str, asked: list[dict], until: str, **environment: str) -> str:
        """What a program that speaks JSON lines says up to the line that holds `until`."""
        with subprocess.Popen(
            [str(self.program), *arguments],
            cwd=self.root,
            env={**self.environment, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdin and process.stdout
            try:
                said = ""
                for message in asked:
                    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
                    process.stdin.flush()
                    deadline = time.monotonic() + 120
                    while "id" in message and f'"id":{message["id"]}' not in said.replace(" ", ""):
                        assert time.monotonic() < deadline, said
                        said += process.stdout.readline()
                while until not in said:
                    line = process.stdout.readline()
                    assert line, said
                    said += line
                return said
            finally:
                process.kill()


def test_claude_lists_them(tmp_path: Path) -> None:
    project = Project(tmp_path, "claude", "claude")
    first = project.output("-p", "/codegen-brief", "--output-format", "stream-json", "--verbose").splitlines()[0]
    assert {f"codegen-{name}" for name in PROMPTS} <= set(json.loads(first)["slash_commands"])


def test_codex_lists_them(tmp_path: Path) -> None:
    project = Project(tmp_path, "codex", "codex")
    asked = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "t", "title": "t", "version": "1"}}},
        {"method": "initialized", "params": {}},
        {"id": 2, "method": "skills/list", "params": {"cwds": [str(project.root)]}},
    ]
    said = project.answer("app-server", asked=asked, until='"skills"')
    assert all(f'"codegen-{name}"' in said for name in PROMPTS)


class Model(BaseHTTPRequestHandler):
    """A model on this machine that keeps what it is asked and says "ok"."""

    asked: list[str] = []  # noqa: RUF012 - one server, one list

    def do_POST(self) -> None:
        self.asked.append(self.rfile.read(int(self.headers["content-length"])).decode())
        said = {"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}
        data = f"data: {json.dumps({'candidates': [said]})}\n\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_gemini_sends_one_with_the_users_words_and_the_context(tmp_path: Path) -> None:
    project = Project(tmp_path, "gemini", "gemini")
    (project.home / ".gemini").mkdir()
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (project.home / ".gemini/settings.json").write_text(json.dumps(auth))
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        words = ("--skip-trust", "--model", "gemini-2.5-flash", "-p", "/codegen:fix-step 4")
        project.output(*words, GEMINI_API_KEY="x", GOOGLE_GEMINI_BASE_URL=address)
        server.shutdown()
    [asked] = Model.asked
    assert "Step 4 fails. Why?" in asked
    assert context_text().split("\n")[0] in asked


def test_opencode_lists_them(tmp_path: Path) -> None:
    project = Project(tmp_path, "opencode", "opencode")
    said = project.output("debug", "config", OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_AUTOUPDATE="1")
    commands = json.loads(said)["command"]
    assert set(commands) == {f"codegen-{name}" for name in PROMPTS}
    assert commands["codegen-fix-step"]["template"].startswith("Step $ARGUMENTS fails.")


def test_qwen_lists_them(tmp_path: Path) -> None:
    project = Project(tmp_path, "qwen", "qwen")
    asked = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}},
        {"id": 2, "method": "session/new", "params": {"cwd": str(project.root), "mcpServers": []}},
    ]
    said = project.answer(
        "--acp", "--auth-type=openai", asked=asked, until="available_commands_update",
        OPENAI_API_KEY="x", OPENAI_BASE_URL="http://127.0.0.1:9", OPENAI_MODEL="m",
    )  # fmt: skip
    assert all(f'"codegen:{name}"' in said for name in PROMPTS)
