"""Each of the seven formats as its agent reads it, with text that would break naive writers."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.diagnostics import UsageError
from codegen.prompts.agents import AGENTS, Agent, find_agent
from codegen.prompts.formats import quoted, skill, toml_command
from codegen.prompts.library import Prompt, load_prompts, read_prompt

PROMPTS = load_prompts()
AGENT_KEYS = sorted(AGENTS)
HOSTILE = (
    "He said \"no\" — it's 'fine': #1 & {braces} [lists] \\back\\slash %s {{ jinja }}\n"
    "---\n- key: value\n\"\"\" and ''' and ``` end\n审查设计 ёж \U0001f40d \u202eabc\u202c\n\ttab\n"
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=200)


def front(text: str) -> tuple[dict, str]:
    """The YAML head and the body of a Markdown file."""
    assert text.startswith("---\n")
    head, _, body = text[4:].partition("\n---\n")
    return yaml.safe_load(head), body


def read_back(agent: Agent, content: str) -> tuple[str, str]:
    """Description and body, by a parser that has nothing to do with the writer."""
    if agent.layout == "toml":
        data = tomllib.loads(content)
        assert set(data) == {"description", "prompt"}
        return data["description"], data["prompt"]
    head, body = front(content)
    return head["description"], body.removeprefix("\n")


def prompt(description: str, source: str, name: str = "hostile") -> Prompt:
    return Prompt(name, description, 'a "word": {x}', source, Path("hostile.md.j2"), 5)


@pytest.mark.parametrize("key", AGENT_KEYS)
def test_every_shipped_prompt_reads_back(key: str) -> None:
    agent = AGENTS[key]
    for each in PROMPTS.values():
        description, body = read_back(agent, agent.content(each))
        assert description == each.description
        assert body == each.render(agent.argument)
        assert agent.argument in body


@pytest.mark.parametrize("key", AGENT_KEYS)
def test_hostile_text_reads_back(key: str) -> None:
    agent = AGENTS[key]
    source = "{% raw %}" + HOSTILE + '{% endraw %}{{ argument }} end """"'
    description = " ".join(HOSTILE.split())
    assert read_back(agent, agent.content(prompt(description, source))) == (
        description,
        (HOSTILE + agent.argument + ' end """"').strip() + "\n",
    )


@pytest.mark.parametrize("key", AGENT_KEYS)
def test_what_only_another_agent_would_act_on_stays_as_it_is(key: str) -> None:
    agent = AGENTS[key]
    braces = key in ("gemini", "iflow", "qwen")
    text = "$ARGUMENTS, $1, !`ls`, @docs/a.md" if braces else "{{args}}, !{ls}, @{a.md}"
    if key == "codex":
        text += " $ARGUMENTS !`ls`"
    source = "{% raw %}" + text + "\n{% endraw %}\nfor: {{ argument }}\n"
    assert read_back(agent, agent.content(prompt("d", source)))[1] == f"{text}\nfor: {agent.argument}\n"


@pytest.mark.parametrize("key", AGENT_KEYS)
def test_a_template_with_other_line_ends_gives_the_same_file(tmp_path: Path, key: str) -> None:
    text = '---\ndescription: \'true: [no], "yes" & # {x}\'\n---\nOne `{{ argument }}`\n\n```\n"""\n```\n'
    files = []
    for newline in ("\n", "\r\n"):
        path = tmp_path / "odd.md.j2"
        path.write_bytes(text.replace("\n", newline).encode())
        files.append(AGENTS[key].content(read_prompt(path)))
    assert files[0] == files[1] and "\r" not in files[0]
    assert read_back(AGENTS[key], files[0])[0] == 'true: [no], "yes" & # {x}'


@pytest.mark.parametrize("name", ["Upper", "two words", "a--b", "审查", "x" * 49, "..", "a.b"])
def test_a_name_that_some_agent_would_refuse_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.md.j2"
    path.write_text("---\ndescription: d\n---\nx")
    with pytest.raises(UsageError, match="is no name for a prompt"):
        read_prompt(path)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(TEXT, TEXT)
def test_any_text_survives_toml(description: str, body: str) -> None:
    data = tomllib.loads(toml_command(description, body))
    assert data == {"description": description, "prompt": body.replace("\r\n", "\n")}


@settings(deadline=None, derandomize=True, max_examples=200)
@given(TEXT)
def test_a_quoted_text_is_the_same_in_toml_yaml_and_json(text: str) -> None:
    line = quoted(text)
    assert "\n" not in line
    assert tomllib.loads(f"x = {line}")["x"] == text
    assert json.loads(line) == text
    assert yaml.safe_load(f"x: {line}")["x"] == text


@pytest.mark.parametrize("key", [key for key in AGENT_KEYS if AGENTS[key].layout == "skill"])
def test_skills_keep_to_the_limits_of_their_form(key: str) -> None:
    agent = AGENTS[key]
    for each in PROMPTS.values():
        head, body = front(agent.content(each))
        folder = agent.file(each).split("/")[-2]
        assert head["name"] == folder and len(folder) <= 64
        assert folder.replace("-", "").isalnum() and folder == folder.lower()
        assert 1 <= len(head["description"]) <= 1024
        assert body.count("\n") < 500 and len(body) < 20_000


@pytest.mark.parametrize(
    ("name", "description", "body"),
    [
        ("Upper", "d", "b"),
        ("a--b", "d", "b"),
        ("x" * 65, "d", "b"),
        ("a", "", "b"),
        ("a", "d" * 1025, "b"),
        ("a", "d", "\n" * 501),
    ],
)
def test_what_is_no_skill_is_refused(name: str, description: str, body: str) -> None:
    with pytest.raises(UsageError):
        skill(name, description, body)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("gemini", "run !{rm -rf /}"),
        ("qwen", "see @{secrets.txt}"),
        ("iflow", "and {{args}} again"),
        ("claude", "run !`ls`"),
        ("opencode", "the first is $1"),
        ("qoder", "read @docs/a.md"),
        ("claude", "again $ARGUMENTS"),
    ],
)
def test_what_an_agent_would_act_on_is_refused_with_its_line(key: str, text: str) -> None:
    with pytest.raises(UsageError, match=r"hostile\.md\.j2:7: .* would act on"):
        AGENTS[key].content(prompt("d", "{% raw %}one\ntwo\n" + text + "{% endraw %}\n"))


def test_the_fifteen_situations_are_there_and_short() -> None:
    assert sorted(PROMPTS) == [
        "brief", "check-consistency", "compress", "defensive-audit", "find-missing-decisions", "fix-step",
        "implement-step", "plan-steps", "propagate", "review-decisions", "review-step", "simplify", "sync-from-code",
        "trace-scenario", "verify-against-code",
    ]  # fmt: skip
    for each in PROMPTS.values():
        text = each.render("X")
        assert len(text) < 2200, each.name
        assert "Output:" in text or each.name == "review-decisions"
        assert "`codegen " in text and ("json" in text or each.name == "trace-scenario")


SAY = 'description: "Say \\"hi\\""\n'
HINT = 'argument-hint: "a \\"word\\": {x}"\n'
NAME = 'name: "codegen-tiny"\n'
TOML = 'description = "Say \\"hi\\""\nprompt = """\nHi {{args}}\n"""\n'
GOLDEN = {
    "claude": (
        ".claude/skills/codegen-tiny/SKILL.md",
        f"---\n{NAME}{SAY}{HINT}disable-model-invocation: true\n---\n\nHi $ARGUMENTS\n",
    ),
    "codex": (
        ".agents/skills/codegen-tiny/SKILL.md",
        f"---\n{NAME}{SAY}---\n\nHi what the request says after this skill's name\n",
    ),
    "gemini": (".gemini/commands/codegen/tiny.toml", TOML),
    "iflow": (".iflow/commands/codegen-tiny.toml", TOML),
    "opencode": (".opencode/commands/codegen-tiny.md", f"---\n{SAY}{HINT}---\n\nHi $ARGUMENTS\n"),
    "qoder": (".qoder/skills/codegen-tiny/SKILL.md", f"---\n{NAME}{SAY}{HINT}---\n\nHi $ARGUMENTS\n"),
    "qwen": (".qwen/commands/codegen/tiny.md", f"---\n{SAY}---\n\nHi {{{{args}}}}\n"),
}


@pytest.mark.parametrize("key", AGENT_KEYS)
def test_a_file_is_where_and_as_its_agent_wants_it(key: str) -> None:
    tiny = prompt('Say "hi"', "Hi {{ argument }}", "tiny")
    assert (AGENTS[key].file(tiny), AGENTS[key].content(tiny)) == GOLDEN[key]


def test_an_unknown_agent_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="there is no agent 'cursor'; known: claude, codex"):
        find_agent("cursor")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no head", r"bad\.md\.j2:1: begin with a head"),
        ("---\ndescription: ''\n---\nx", "`description` has 0 characters"),
        ("---\ndescription: d\nextra: e\n---\nx", "the head may have description and argument"),
        ("---\ndescription: [\n---\nx", "the head is not YAML"),
    ],
)
def test_a_bad_template_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.md.j2"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_prompt(path)


def test_an_unknown_word_in_a_template_is_refused() -> None:
    with pytest.raises(UsageError, match="does not render: 'secret' is undefined"):
        prompt("d", "{{ secret }}").render("x")


def test_a_projects_template_goes_before_the_shipped_one(tmp_path: Path) -> None:
    folder = tmp_path / "templates" / "prompts"
    folder.mkdir(parents=True)
    (folder / "brief.md.j2").write_text("---\ndescription: ours\n---\nOurs {{ argument }}\n")
    (folder / "new-one.md.j2").write_text("---\ndescription: new\nargument: n\n---\nNew\n")
    found = load_prompts(tmp_path)
    assert found["brief"].render("x") == "Ours x\n"
    assert found["new-one"].argument == "n" and len(found) == 16
