"""The AI command lines: where each reads its commands, in which format, and how it runs without a person.

Facts about each come from its own documentation, as of 2026. iFlow CLI was shut down in April 2026; its files are still
written, for forks and for teams that keep them. A prompt must not hold what an agent would run or replace by itself:
`active` is that, apart from the placeholder, and there is no way to quote it, so it is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from codegen.diagnostics import UsageError
from codegen.prompts.formats import markdown_command, skill, toml_command
from codegen.prompts.library import Prompt

PREFIX = "codegen-"
_BRACES = r"!\{|@\{|\{\{\s*args\s*\}\}"
_DOLLARS = r"\$ARGUMENTS\b|\$\d|!`|(?:^|(?<=\s))@[\w-]*[./][\w./-]*"


@dataclass(frozen=True)
class Agent:
    """One agent. Folders are relative to the project, `user_folder` to the home folder.

    `call` is how a person calls a prompt; `headless` a command that takes a prompt on standard input, or in place of
    the word `{prompt}`, may edit files in the current folder, and ends.
    """

    key: str
    title: str
    layout: Literal["toml", "markdown", "skill"]
    folder: str
    user_folder: str
    argument: str
    call: str
    context: str
    user_context: str
    headless: tuple[str, ...]
    active: str = ""
    extra: dict[str, bool] = field(default_factory=dict)
    prefix: str = PREFIX

    def file(self, prompt: Prompt, user: bool = False) -> str:
        """Path of a prompt's file below the project, or below the home folder."""
        folder = self.user_folder if user else self.folder
        if self.layout == "skill":
            return f"{folder}/{self.prefix}{prompt.name}/SKILL.md"
        return f"{folder}/{self.prefix}{prompt.name}.{'toml' if self.layout == 'toml' else 'md'}"

    def command(self, prompt: Prompt) -> str:
        """What a person types."""
        return self.call.format(name=prompt.name)

    def text(self, prompt: Prompt) -> str:
        """The prompt as this agent gets it. UsageError: it holds something that the agent would run or replace."""
        if self.active:
            first = prompt.body_line + len(prompt.source) - len(prompt.source.lstrip("\n"))
            for number, line in enumerate(prompt.render("…").split("\n"), first):
                if found := re.search(self.active, line):
                    message = f"{self.title} would act on {found.group()!r} instead of reading it; reword it"
                    raise UsageError(f"{prompt.path}:{number}: {message}")
        return prompt.render(self.argument)

    def content(self, prompt: Prompt) -> str:
        """The file for a prompt."""
        body = self.text(prompt)
        if self.layout == "toml":
            return toml_command(prompt.description, body)
        hint = {"argument-hint": prompt.argument} if self.argument == "$ARGUMENTS" else {}
        if self.layout == "markdown":
            return markdown_command({"description": prompt.description, **hint}, body)
        return skill(f"{self.prefix}{prompt.name}", prompt.description, body, {**hint, **self.extra})


_ALL = (
    Agent(
        "claude", "Claude Code", "skill", ".claude/skills", ".claude/skills", "$ARGUMENTS", "/codegen-{name}",
        "CLAUDE.md", ".claude/CLAUDE.md", ("claude", "-p", "--permission-mode", "acceptEdits"), _DOLLARS,
        # Only a person calls these; so their descriptions take no room in every conversation.
        {"disable-model-invocation": True},
    ),
    Agent(
        "codex", "Codex", "skill", ".agents/skills", ".agents/skills", "what the request says after this skill's name",
        "$codegen-{name}", "AGENTS.md", ".codex/AGENTS.md", ("codex", "exec", "--sandbox", "workspace-write", "-"),
    ),
    Agent(
        "gemini", "Gemini CLI", "toml", ".gemini/commands/codegen", ".gemini/commands/codegen", "{{args}}",
        "/codegen:{name}", "GEMINI.md", ".gemini/GEMINI.md",
        ("gemini", "--skip-trust", "--approval-mode", "auto_edit"), _BRACES, prefix="",
    ),
    Agent(
        "iflow", "iFlow CLI", "toml", ".iflow/commands", ".iflow/commands", "{{args}}", "/codegen-{name}",
        "IFLOW.md", ".iflow/IFLOW.md", ("iflow", "--yolo", "-p", "{prompt}"), _BRACES,
    ),
    Agent(
        "opencode", "opencode", "markdown", ".opencode/commands", ".config/opencode/commands", "$ARGUMENTS",
        "/codegen-{name}", "AGENTS.md", ".config/opencode/AGENTS.md", ("opencode", "run", "{prompt}"), _DOLLARS,
    ),
    Agent(
        "qoder", "Qoder CLI", "skill", ".qoder/skills", ".qoder/skills", "$ARGUMENTS", "/codegen-{name}",
        "AGENTS.md", ".qoder/AGENTS.md", ("qodercli", "-p", "{prompt}"), _DOLLARS,
    ),
    Agent(
        "qwen", "Qwen Code", "markdown", ".qwen/commands/codegen", ".qwen/commands/codegen", "{{args}}",
        "/codegen:{name}", "QWEN.md", ".qwen/QWEN.md", ("qwen", "--approval-mode", "auto-edit"), _BRACES, prefix="",
    ),
)  # fmt: skip
AGENTS = {agent.key: agent for agent in _ALL}


def find_agent(key: str) -> Agent:
    """The agent of this name. UsageError names those there are."""
    if key not in AGENTS:
        raise UsageError(f"there is no agent {key!r}; known: {', '.join(AGENTS)}")
    return AGENTS[key]
