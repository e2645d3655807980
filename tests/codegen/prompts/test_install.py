"""Installing writes what is missing and upgrades what is ours; what a person wrote or edited stays."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.cli import main
from codegen.diagnostics import UsageError
from codegen.prompts.agents import AGENTS
from codegen.prompts.context import BEGIN, END, block_of, with_block, without_block
from codegen.prompts.install import Place, check, plan_install, plan_uninstall
from codegen.prompts.library import load_prompts
from codegen.prompts.manifest import PATH

PROMPTS = list(load_prompts().values())
ALL = list(AGENTS.values())


def tree(base: Path) -> dict[str, bytes]:
    return {path.relative_to(base).as_posix(): path.read_bytes() for path in base.rglob("*") if path.is_file()}


def install(base: Path, *agents: str, prompts: list = PROMPTS) -> dict[str, str]:
    plan = plan_install(Place(base), [AGENTS[key] for key in agents], prompts)
    plan.carry_out()
    return {change.path: change.action for change in plan.changes}


def uninstall(base: Path, *agents: str) -> dict[str, str]:
    plan = plan_uninstall(Place(base), [AGENTS[key] for key in agents])
    plan.carry_out()
    return {change.path: change.action for change in plan.changes}


def test_a_second_install_changes_no_byte(tmp_path: Path) -> None:
    install(tmp_path, *AGENTS)
    before = tree(tmp_path)
    assert set(install(tmp_path, *AGENTS).values()) == {"same"}
    assert tree(tmp_path) == before
    assert len(before) == 7 * 15 + 5 + 1


def test_uninstalling_all_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(b"Mine.\r\nStays.\r\n")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text("{}")
    before = tree(tmp_path)
    install(tmp_path, *AGENTS)
    uninstall(tmp_path, *AGENTS)
    assert tree(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [".claude", "AGENTS.md"]


@pytest.mark.parametrize("key", sorted(AGENTS))
def test_an_edited_file_is_neither_overwritten_nor_removed(tmp_path: Path, key: str) -> None:
    install(tmp_path, key)
    path = AGENTS[key].file(PROMPTS[0])
    (tmp_path / path).write_text("my own words\n")
    assert install(tmp_path, key)[path] == "keep"
    assert uninstall(tmp_path, key)[path] == "keep"
    assert (tmp_path / path).read_text() == "my own words\n"


def test_a_file_that_was_there_before_is_not_ours(tmp_path: Path) -> None:
    path = AGENTS["gemini"].file(PROMPTS[0])
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text("theirs\n")
    assert install(tmp_path, "gemini")[path] == "keep"
    uninstall(tmp_path, "gemini")
    assert tree(tmp_path) == {path: b"theirs\n"}


def test_a_link_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / AGENTS["qwen"].file(PROMPTS[0])
    path.parent.mkdir(parents=True)
    target = tmp_path / "elsewhere"
    target.write_text("x")
    path.symlink_to(target)
    install(tmp_path, "qwen")
    uninstall(tmp_path, "qwen")
    assert path.is_symlink() and target.read_text() == "x"


def test_an_upgrade_replaces_what_is_ours_and_withdraws_what_is_gone(tmp_path: Path) -> None:
    old = [replace(PROMPTS[0], source="old words {{ argument }}\n"), *PROMPTS[1:3]]
    install(tmp_path, "codex", prompts=old)
    plan = plan_install(Place(tmp_path), [AGENTS["codex"]], PROMPTS[:2])
    actions = {change.path: change for change in plan.changes}
    upgraded = actions[AGENTS["codex"].file(PROMPTS[0])]
    assert upgraded.action == "upgrade" and "-old words" in upgraded.diff()
    assert upgraded.counted().endswith("-1")
    assert actions[AGENTS["codex"].file(PROMPTS[2])].action == "remove"
    plan.carry_out()
    assert check(Place(tmp_path), ALL, PROMPTS[:2]) == []
    assert not (tmp_path / AGENTS["codex"].file(PROMPTS[2])).parent.exists()


def test_check_tells_missing_from_old_from_edited(tmp_path: Path) -> None:
    install(tmp_path, "claude", prompts=[replace(PROMPTS[0], source="old"), *PROMPTS[1:]])
    files = [AGENTS["claude"].file(prompt) for prompt in PROMPTS[:3]]
    (tmp_path / files[1]).unlink()
    (tmp_path / files[2]).write_text("mine")
    found = {finding.path: (finding.code, finding.severity) for finding in check(Place(tmp_path), ALL, PROMPTS)}
    assert found == {
        files[0]: ("PRM002", "error"),
        files[1]: ("PRM001", "error"),
        files[2]: ("PRM003", "note"),
    }


def test_agents_that_read_one_context_file_share_its_block(tmp_path: Path) -> None:
    install(tmp_path, "codex", "opencode")
    text = (tmp_path / "AGENTS.md").read_text()
    assert text.count(BEGIN) == 1
    uninstall(tmp_path, "codex")
    assert (tmp_path / "AGENTS.md").read_text() == text
    uninstall(tmp_path, "opencode")
    assert tree(tmp_path) == {}


def test_an_edited_block_is_kept(tmp_path: Path) -> None:
    install(tmp_path, "iflow")
    path = tmp_path / "IFLOW.md"
    path.write_text("Above.\n" + path.read_text().replace("one ledger", "ONE ledger"))
    text = path.read_text()
    assert install(tmp_path, "iflow")["IFLOW.md"] == "keep"
    assert uninstall(tmp_path, "iflow")["IFLOW.md"] == "keep"
    assert path.read_text() == text


@pytest.mark.parametrize("text", [BEGIN, END, f"{END}\n{BEGIN}\n", f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n"])
def test_marks_that_do_not_pair_are_refused_and_nothing_is_written(tmp_path: Path, text: str) -> None:
    (tmp_path / "AGENTS.md").write_text(text)
    with pytest.raises(UsageError, match="marks of the managed block do not pair"):
        install(tmp_path, "codex")
    assert tree(tmp_path) == {"AGENTS.md": text.encode()}


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.text(st.characters(codec="utf-8"), max_size=60), st.sampled_from(["\n", "\r\n"]))
def test_taking_a_block_out_again_gives_the_text_before(text: str, newline: str) -> None:
    before = text.replace("\r", "").replace("\n", newline)
    path = Path("AGENTS.md")
    after = with_block(before, "a\nb\n", path)
    assert after.startswith(before)
    assert block_of(after, path) == "a\nb\n"
    assert with_block(after, "c\n", path) == after.replace("a\nb\n", "c\n").replace("a\r\nb\r\n", "c\r\n")
    assert without_block(after, path).rstrip("\r\n") == before.rstrip("\r\n")


def test_the_user_scope_goes_below_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(project)
    assert main(["prompts", "install", "--agent", "opencode", "--scope", "user"]) == 0
    assert (home / ".config/opencode/commands/codegen-brief.md").is_file()
    assert (home / ".config/opencode/AGENTS.md").is_file()
    assert tree(project) == {}
    assert main(["prompts", "check", "--scope", "user"]) == 0
    assert main(["prompts", "uninstall", "--agent", "opencode", "--scope", "user"]) == 0
    assert tree(home) == {}


def test_the_commands_say_what_they_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    assert main(["prompts", "install", "--agent", "qwen", "--diff"]) == 1
    assert "+++ b/.qwen/commands/codegen/brief.md" in capsys.readouterr().out
    assert tree(tmp_path) == {"pyproject.toml": b""}
    assert main(["prompts", "install", "--agent", "qwen"]) == 0
    assert "written .qwen/commands/codegen/brief.md" in capsys.readouterr().out
    assert main(["prompts", "list", "--agents", "--json"]) == 0
    rows = {row["agent"]: row for row in json.loads(capsys.readouterr().out)}
    assert (rows["qwen"]["installed"], rows["claude"]["installed"]) == (15, 0)
    (tmp_path / ".qwen/commands/codegen/brief.md").unlink()
    assert main(["prompts", "check", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["code"] == "PRM001"
    assert main(["prompts", "show", "fix-step", "4"]) == 0
    assert capsys.readouterr().out.startswith("Step 4 fails. Why?")


@pytest.mark.parametrize(
    "record",
    [
        "{}",
        "",
        "[]",
        '{"files": [], "blocks": {}}',
        '{"files": {"codex": {"../mine": "d"}}, "blocks": {}}',
        '{"files": {"codex": {"/etc/hosts": "d"}}, "blocks": {}}',
        '{"files": {}, "blocks": {"a/../../b": {"agents": [], "digest": "", "made": true}}}',
        b"\xff",
    ],
)
def test_a_record_that_cannot_be_trusted_is_refused_and_nothing_changes(tmp_path: Path, record: str | bytes) -> None:
    install(tmp_path, "codex")
    (tmp_path / PATH).write_bytes(record if isinstance(record, bytes) else record.encode())
    before = tree(tmp_path)
    for change in (install, uninstall):
        with pytest.raises(UsageError, match=r"prompts\.json: is not a record of installed prompts"):
            change(tmp_path, "codex")
    assert tree(tmp_path) == before


@pytest.mark.parametrize("order", [("claude", "codex"), ("codex", "claude")])
def test_a_context_file_that_links_to_another_stays_a_link_to_one_block(tmp_path: Path, order: tuple[str, str]) -> None:
    (tmp_path / "AGENTS.md").write_text("Ours.\n")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    for key in order:
        install(tmp_path, key)
    assert (tmp_path / "CLAUDE.md").readlink() == Path("AGENTS.md")
    assert (tmp_path / "AGENTS.md").read_text().count(BEGIN) == 1
    uninstall(tmp_path, "codex")
    assert BEGIN in (tmp_path / "AGENTS.md").read_text(), "the other agent still reads it"
    (tmp_path / "CLAUDE.md").unlink()
    uninstall(tmp_path, "claude")
    assert tree(tmp_path) == {"AGENTS.md": b"Ours.\n"}


def test_a_context_file_that_links_out_of_the_project_is_left_alone(tmp_path: Path) -> None:
    project, shared = tmp_path / "project", tmp_path / "shared.md"
    project.mkdir()
    shared.write_text("Everybody's.\n")
    (project / "IFLOW.md").symlink_to(shared)
    assert install(project, "iflow")["IFLOW.md"] == "keep"
    uninstall(project, "iflow")
    assert shared.read_text() == "Everybody's.\n"
    assert [path.name for path in project.iterdir()] == ["IFLOW.md"]


def test_a_folder_that_is_a_link_is_used_and_stays(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "dotfiles"
    project.mkdir()
    elsewhere.mkdir()
    (project / ".qwen").symlink_to(elsewhere)
    install(project, "qwen")
    assert (elsewhere / "commands/codegen/brief.md").is_file()
    uninstall(project, "qwen")
    assert (project / ".qwen").is_symlink() and list(elsewhere.iterdir()) == []


def test_line_ends_that_git_changed_are_no_edit(tmp_path: Path) -> None:
    install(tmp_path, *AGENTS)
    for path in [*tmp_path.rglob("*.md"), *tmp_path.rglob("*.toml")]:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert set(install(tmp_path, *AGENTS).values()) == {"same"}
    assert check(Place(tmp_path), ALL, PROMPTS) == []
    uninstall(tmp_path, *AGENTS)
    assert tree(tmp_path) == {}


@pytest.mark.parametrize(
    ("path", "folder"), [(".gemini", False), ("GEMINI.md", True), (".gemini/commands/codegen/brief.toml", True)]
)
def test_what_is_in_the_way_is_named_before_anything_is_written(tmp_path: Path, path: str, folder: bool) -> None:
    (tmp_path / path).mkdir(parents=True) if folder else (tmp_path / path).write_text("mine")
    before = tree(tmp_path)
    with pytest.raises(UsageError, match="belongs; move it"):
        install(tmp_path, "gemini", "claude")
    assert tree(tmp_path) == before


def test_files_removed_by_hand_come_back_and_do_not_stop_an_uninstall(tmp_path: Path) -> None:
    install(tmp_path, "opencode")
    for path in (AGENTS["opencode"].file(PROMPTS[0]), "AGENTS.md"):
        (tmp_path / path).unlink()
    done = install(tmp_path, "opencode")
    assert (done[AGENTS["opencode"].file(PROMPTS[0])], done["AGENTS.md"]) == ("restore", "write")
    (tmp_path / "AGENTS.md").unlink()
    (tmp_path / AGENTS["opencode"].file(PROMPTS[1])).unlink()
    uninstall(tmp_path, "opencode")
    assert tree(tmp_path) == {}
