"""Wrong variants: each kind is made, and each that the examples let pass is a finding of `patterns test --mutate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.cli import main
from codegen.patterns.mutation import mutants
from tests.codegen.patterns.test_library import GOOD, write


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("assert a > 0", ["assert True", "assert False", "assert a >= 0", "assert a > 0 + 1", "assert a > 0 + -1"]),
        ("assert a == b", ["assert a != b"]),
        ("assert a in b", ["assert a not in b"]),
        ("assert a and b", ["assert a or b", "assert True and b", "assert a and False"]),
        ("assert any((x for x in a))", ["assert all((x for x in a))"]),
        ("assert [x for x in a if x]", ["assert [x for x in a if True]", "assert [x for x in a if False]"]),
        ("y = a if b else c", ["y = a if True else c", "y = a if False else c"]),
    ],
)
def test_each_kind_of_wrong_variant_is_made(code: str, wrong: list[str]) -> None:
    assert set(wrong) <= {source for _, source in mutants(code)}


def test_a_variant_is_never_the_code_itself() -> None:
    code = "if not (0 <= a < b) or any((x is None for x in c)):\n    raise ValueError"
    found = [source for _, source in mutants(code)]
    assert code not in found and len(set(found)) == len(found)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_examples_that_let_a_wrong_bound_pass_are_a_finding(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = GOOD.replace("% 2 != 0", "> 8").replace("n = 3:", "n = 30:").replace("got 3", "got 30")
    path = write(project, "VAL_EVEN", text)
    assert main(["patterns", "test", "VAL_EVEN"]) == 0
    assert main(["patterns", "test", "VAL_EVEN", "--mutate"]) == 1
    out = capsys.readouterr().out
    assert f"{path}:15:1: error pattern-mutant no example of VAL_EVEN(n) notices the change n > 8: 8 +1" in out
    write(
        project, "VAL_EVEN", text.replace("[n = 2]", "[n = 8]").replace("n = 30:", "n = 9:").replace("got 30", "got 9")
    )
    assert main(["patterns", "test", "VAL_EVEN", "--mutate"]) == 0


def test_a_branch_of_the_template_that_no_example_takes_is_a_finding(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GOOD.replace("target: required", "parameters: [{name: odd, type: bool, default: 'False'}]\ntarget: required")
    text = text.replace("% 2 != 0", "% 2 != {% if label is string %}1{% else %}0{% endif %}")
    text = text.replace('message: "', 'message: "{% if odd is on %}{% endif %}')
    write(project, "VAL_EVEN", text)
    main(["patterns", "test", "VAL_EVEN", "--mutate"])
    assert "pattern-mutant" not in capsys.readouterr().out
    never = text.replace("label is string", "odd is on and label is string and label is literal")
    write(project, "VAL_EVEN", never.replace("}1{", "}0{"))
    assert main(["patterns", "test", "VAL_EVEN", "--mutate"]) == 1
    assert "template: if odd is on" in capsys.readouterr().out


def test_the_shipped_library_passes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patterns", "test", "--mutate"]) == 0
    assert capsys.readouterr().out == ""
