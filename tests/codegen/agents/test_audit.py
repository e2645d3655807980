"""What hides errors, drops validations or weakens tests is found; what does not is left alone."""

from __future__ import annotations

import textwrap

import pytest

from codegen.agents.erosion import empty_tests, is_test, lost_validations, sweeping, weakened_tests
from codegen.agents.swallowed import placeholders, swallowed
from tests.codegen.expand.helpers import expand


def code(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def wrapped(handler: str) -> str:
    body = textwrap.indent(textwrap.dedent(handler).strip(), "    ")
    return f"def f(x):\n    try:\n        g(x)\n{body}\n"


@pytest.mark.parametrize(
    ("handler", "found"),
    [
        ("except:\n    log()", "AUD001"),
        ("except Exception as e:\n    print(e)", "AUD001"),
        ("except (ValueError, BaseException):\n    log()", "AUD001"),
        ("except builtins.Exception:\n    def h():\n        raise ValueError\n    h", "AUD001"),
        ("except KeyError:\n    pass", "AUD002"),
        ("except KeyError:\n    'why'\n    ...", "AUD002"),
        ("except KeyError:\n    return None", "AUD002"),
        ("except KeyError:\n    return -1", "AUD002"),
        ("except KeyError:\n    return {}", "AUD002"),
        ("except KeyError:\n    return dict()", "AUD002"),
        ("except KeyError:\n    x = [0, 0]", "AUD002"),
        ("except* KeyError:\n    pass", "AUD002"),
        ("except Exception:\n    log()\n    raise", None),
        ("except KeyError as e:\n    raise ValueError(x) from e", None),
        ("except KeyError:\n    return g(x + 1)", None),
        ("except KeyError:\n    x = fallback(x)", None),
    ],
)
def test_handlers(handler: str, found: str | None) -> None:
    assert [finding.code for finding in swallowed("a.py", wrapped(handler), [])] == ([found] if found else [])


def test_suppress_is_a_handler_too() -> None:
    [found] = swallowed("a.py", "with contextlib.suppress(OSError, KeyError):\n    g()\n", [])
    assert (found.code, found.line) == ("AUD002", 1) and "OSError, KeyError" in found.message


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("try:\n    g()\nfinally:\n    return 1", "`finally` leaves"),
        ("for x in y:\n    try:\n        g()\n    finally:\n        continue", "`finally` leaves"),
        ("try:\n    g()\nfinally:\n    for x in y:\n        break", None),
        ("try:\n    g()\nfinally:\n    def h():\n        return 1\n    h()", None),
        ("def __exit__(self, *e):\n    return True", "__exit__ returns True"),
        ("def __exit__(self, *e):\n    self.close()\n    return None", None),
    ],
)
def test_ways_out_that_drop_an_error(body: str, found: str | None) -> None:
    findings = swallowed("a.py", f"def f(y):\n{textwrap.indent(body, '    ')}\n", [])
    assert [(each.code, found in each.message) for each in findings if found] == ([("AUD002", True)] if found else [])
    assert bool(findings) == bool(found)


def test_what_was_there_or_stands_in_section_5_is_not_the_agents() -> None:
    text = wrapped("except KeyError:\n    pass")
    assert swallowed("a.py", text, ["x = 1\n", "def other():\n  try: h()\n  except KeyError: pass\n"]) == []
    assert len(swallowed("a.py", text + text.replace("f(x)", "again(x)"), [text])) == 1


def test_a_stated_reason_makes_it_a_note() -> None:
    text = wrapped("except KeyError:\n    pass  # swallowed: absent is fine here")
    assert [finding.severity for finding in swallowed("a.py", text, [])] == ["note"]


def test_open_bodies_are_found_by_their_entry() -> None:
    text = 'def f():\n    raise NotImplementedError("5.1.2 f")\ndef g():\n    raise NotImplementedError("abstract")\n'
    assert [finding.line for finding in placeholders("a.py", text, ["5.1.2 f"])] == [2]


GUARDED = code("""
    def old(a: int) -> int:
        # VAL: VAL_INT_RANGE(a, min=0)
        if a > 5:
            raise ValueError(a)
        assert a != 3
        return a


    def mine(a: int) -> int:
        # VAL: VAL_INT_RANGE(a, min=1)
        assert a
        return a
""")


def lost(new: str | None) -> list[str]:
    return [f"{f.code} {f.message}" for f in lost_validations("a.py", GUARDED, new, ["mine"])]


def test_validations_of_other_code_may_not_go() -> None:
    assert lost(GUARDED) == []
    assert lost(GUARDED.replace("    # VAL: VAL_INT_RANGE(a, min=0)\n", "")) == [
        "AUD004 old: the validation `VAL: VAL_INT_RANGE(a, min=0)` was deleted"
    ]
    assert lost(GUARDED.replace("min=0", "min=-9"))[0].startswith("AUD004")
    assert lost(GUARDED.replace("    assert a != 3\n", "")) == ["AUD005 a check was deleted: assert a != 3"]
    assert lost(GUARDED.replace("a > 5", "a > 50")) == ["AUD005 a check was deleted: if a > 5: raise"]
    assert len(lost(None)) == 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if a > 5:\n        raise ValueError(a)", "if not a <= 5:\n        raise ValueError('too many')"),
        ("if a > 5:\n        raise ValueError(a)", "if 5 < a:\n        raise ValueError(a)"),
        ("if a > 5:\n        raise ValueError(a)", "if a <= 5:\n        pass\n    else:\n        raise ValueError(a)"),
        ("if a > 5:\n        raise ValueError(a)", "if a > 5 or a == 4:\n        raise ValueError(a)"),
        ("assert a != 3", "assert not a == 3"),
        ("assert a != 3", "# AST: AST_PRECONDITION(a != 3)\n    assert a != 3, 'generated'\n    # END AST 000000"),
    ],
)
def test_a_check_in_other_words_or_under_management_was_not_deleted(old: str, new: str) -> None:
    assert old in GUARDED
    assert lost(GUARDED.replace(old, new)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if a > 5:\n        raise ValueError(a)", "if a >= 5:\n        raise ValueError(a)"),
        ("if a > 5:\n        raise ValueError(a)", "if a > 5:\n        raise TypeError(a)"),
        ("if a > 5:\n        raise ValueError(a)", "assert a <= 5"),
        ("if a > 5:\n        raise ValueError(a)", "if a > 5 and a != 9:\n        raise ValueError(a)"),
        ("if a > 5:\n        raise ValueError(a)", "for b in [a]:\n        if b > 5:\n            break"),
        ("assert a != 3", "if a == 3:\n        raise ValueError(a)"),
    ],
)
def test_a_check_that_fails_in_other_cases_or_otherwise_does_not_keep_it(old: str, new: str) -> None:
    assert old in GUARDED
    assert [text.partition(":")[0] for text in lost(GUARDED.replace(old, new))] == ["AUD005 a check was deleted"]


def test_a_hand_written_check_of_floats_is_not_kept_by_its_opposite_order() -> None:
    text = "def f(a: float) -> float:\n    if not a > 0:\n        raise ValueError(a)\n    return a\n"
    weaker = text.replace("not a > 0", "a <= 0")
    assert [f.code for f in lost_validations("a.py", text, weaker, [])] == ["AUD005"]


def test_a_loop_under_management_keeps_the_hand_written_loop() -> None:
    text = code("""
        def f(xs: list[int]) -> int:
            for x in xs:
                if x <= 0:
                    raise ValueError(x)
            return 1
    """)
    annotated = "def f(xs: list[int]) -> int:\n    # VAL: VAL_POSITIVE(xs)\n    return 1\n"
    assert lost_validations("a.py", text, expand(annotated), []) == []
    assert [f.message for f in lost_validations("a.py", text, annotated, [])] == [
        "a check was deleted: for x in xs: if x <= 0: raise"
    ]


def test_a_block_that_was_there_before_keeps_no_check_beside_it() -> None:
    text = expand("def f(x: int) -> int:\n    # VAL: VAL_POSITIVE(x)\n    return x\n")
    guarded = text.replace("    return x\n", "    if x <= 0:\n        raise ValueError(x)\n    return x\n")
    assert [f.code for f in lost_validations("a.py", guarded, text, [])] == ["AUD005"]


def test_validations_of_the_steps_own_entries_are_section_5s_business() -> None:
    assert lost(GUARDED.replace("    # VAL: VAL_INT_RANGE(a, min=1)\n    assert a\n", "")) == []


TESTS = code("""
    import pytest

    LIMIT = 3


    @pytest.mark.parametrize("x", [1, 2])
    def test_one(x):
        assert x < LIMIT


    class TestTwo:
        def test_inner(self):
            assert make() == 2


    def make():
        return 2
""")


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("assert x < LIMIT", "assert True", "test_one"),
        ("[1, 2]", "[1]", "test_one"),
        ("@pytest.mark.parametrize", "@pytest.mark.skip\n@pytest.mark.parametrize", "test_one"),
        ("== 2", "== 2 or True", "TestTwo.test_inner"),
        ("class TestTwo:", "class Two:", "TestTwo"),
        ("LIMIT = 3", "LIMIT = 300", "`LIMIT = 3`"),
        ("return 2", "return 3", "make"),
    ],
)
def test_any_change_of_an_old_test_is_found(old: str, new: str, name: str) -> None:
    changed = TESTS.replace(old, new)
    found = weakened_tests("tests/test_a.py", TESTS, changed)
    assert changed != TESTS and any(finding.message.startswith(f"{name}, there before") for finding in found)


def test_adding_tests_imports_and_comments_is_free() -> None:
    more = (
        TESTS.replace("import pytest", "import os\nimport pytest") + "\n\n# more\ndef test_new():\n    assert make()\n"
    )
    assert weakened_tests("tests/test_a.py", TESTS, more) == []


@pytest.mark.parametrize(
    ("added", "name"),
    [
        ("pytestmark = pytest.mark.skip", "`pytestmark = pytest.mark.skip` acts on all"),
        ("pytest.skip('later', allow_module_level=True)", "acts on all tests"),
        ("import sys\nsys.exit(0)", "`sys.exit(0)` acts on all"),
        ("raise SystemExit", "`raise SystemExit` acts on all"),
        ("@pytest.fixture(autouse=True)\ndef quiet(monkeypatch):\n    pass", "`def quiet` acts on all"),
        ("def pytest_runtest_call(item):\n    pass", "`def pytest_runtest_call` acts on all"),
        ("LIMIT = 300", "LIMIT, there before this step, means something else now"),
        ("del TestTwo", "TestTwo, there before this step"),
        ("import fakes as pytest", "pytest, there before this step, means something else now"),
        ("class TestTwo(Base):\n    pytestmark = 1", "TestTwo, there before this step, was changed"),
        ("make = int", "make, there before this step"),
    ],
)
def test_what_turns_old_tests_off_is_found(added: str, name: str) -> None:
    found = weakened_tests("tests/test_a.py", TESTS, f"{TESTS}\n\n{added}\n")
    assert any(name in finding.message for finding in found), found


def test_a_new_conftest_may_not_act_on_all_tests() -> None:
    hook = "def pytest_collection_modifyitems(items):\n    items.clear()\n"
    assert [finding.code for finding in sweeping("tests/conftest.py", hook, None)] == ["AUD006"]
    assert sweeping("tests/conftest.py", hook, hook) == []
    assert sweeping("tests/conftest.py", "import pytest\n@pytest.fixture\ndef desk():\n    return 1\n", None) == []


def test_removing_the_file_removes_all_its_tests() -> None:
    assert len(weakened_tests("tests/test_a.py", TESTS, None)) == 5


def test_a_new_test_that_checks_nothing_is_named() -> None:
    text = "def test_a():\n    f()\ndef test_b():\n    with raises(KeyError):\n        f()\ndef helper():\n    f()\n"
    assert [finding.message for finding in empty_tests("test_a.py", text, None)] == ["test_a checks nothing"]
    assert empty_tests("test_a.py", text, text) == []


@pytest.mark.parametrize("path", ["test_a.py", "a/b_test.py", "tests/helper.py", "x/conftest.py"])
def test_test_files_are_known_by_name_or_folder(path: str) -> None:
    assert is_test(path) and not is_test("pantry/latest.py")
