"""The prompt templates: Markdown with a head that says what the prompt is for and what the user may add.

`templates/prompts/<name>.md.j2` of a project goes before the shipped template of that name, and may add new ones. A
template knows one word, `argument`: the user's words in the notation of the agent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml
from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from codegen.diagnostics import UsageError

SHIPPED = Path(__file__).parent / "templates"
FOLDER = "templates/prompts"
SUFFIX = ".md.j2"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\Z")
KEYS = ("description", "argument")


@dataclass(frozen=True)
class Prompt:
    """A template: what it is for in a sentence, what the user may add, and its source below the head."""

    name: str
    description: str
    argument: str
    source: str
    path: Path
    body_line: int

    def render(self, argument: str) -> str:
        """The text, with `argument` where the user's words go. UsageError: the template does not render."""
        environment = _environment()
        try:
            text = environment.from_string(self.source).render(argument=argument)
        except TemplateError as error:
            raise UsageError(
                f"{self.path}: does not render: {error}; the only name it may use is `argument`"
            ) from error
        return text.strip() + "\n"


def load_prompts(root: Path | None = None) -> dict[str, Prompt]:
    """All prompts by name: the shipped ones, and with `root` those of the project. UsageError: a bad template."""
    found = {prompt.name: prompt for prompt in map(read_prompt, sorted(SHIPPED.glob(f"*{SUFFIX}")))}
    if root is not None:
        for path in sorted((root / FOLDER).glob(f"*{SUFFIX}")):
            prompt = read_prompt(path)
            found[prompt.name] = prompt
    return dict(sorted(found.items()))


def read_prompt(path: Path) -> Prompt:
    """Read one template. UsageError names the place and the fix."""
    name = path.name.removesuffix(SUFFIX)
    if not NAME.match(name) or len(name) > 48:
        raise UsageError(f"{path}: {name!r} is no name for a prompt; use at most 48 of a-z, 0-9 and single hyphens")
    try:
        text = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8; save it as UTF-8") from error
    if not text.startswith("---\n") or "\n---\n" not in text[3:]:
        raise UsageError(f"{path}:1: begin with a head, `---`, `description: …`, `argument: …`, `---`")
    end = text.index("\n---\n", 3)
    try:
        head = yaml.load(text[4 : end + 1], Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: the head is not YAML: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{path}: the head is nested too deeply") from error
    if not isinstance(head, dict) or set(head) - set(KEYS) or not all(isinstance(v, str) for v in head.values()):
        raise UsageError(f"{path}:2: the head may have {' and '.join(KEYS)}, each one text")
    description = " ".join(head.get("description", "").split())
    if not description or len(description) > 1024:
        raise UsageError(f"{path}:2: `description` has {len(description)} characters; 1 to 1024 are allowed")
    argument = " ".join(head.get("argument", "").split())
    return Prompt(name, description, argument, text[end + 5 :], path, text[: end + 5].count("\n") + 1)


def context_text() -> str:
    """What every agent should know about a project of this kind."""
    return (Path(__file__).parent / "context.md").read_text(encoding="utf-8")


def _environment() -> SandboxedEnvironment:
    return SandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
