"""Generated code must not meet the author's names, and must find its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.codegen.expand.helpers import dedent, expand, problem, report, strip


def test_21_temporary_names_avoid_every_name_of_the_function() -> None:
    text = dedent("""
        def take(counts: list[int]):
            # VAL: VAL_POSITIVE
            global _count
            def inner():
                nonlocal_ = _count_2
            return _count
    """)
    assert "for _count_3 in counts:" in expand(text)


def test_21_no_temporary_name_is_mangled_in_a_class() -> None:
    text = "class A:\n    def take(self, __items: list[int]):\n        # VAL: VAL_POSITIVE\n        return 1\n"
    assert "for _item in __items" in expand(text)


def test_21_functions_that_look_at_their_names_are_reported() -> None:
    text = "def take(counts: list[int]):\n    # VAL: VAL_POSITIVE\n    return locals()\n"
    assert [finding.code for finding in report(text).findings] == ["visible-name"]
    plain = text.replace(": list[int]", "")
    assert report(plain).findings == ()


@pytest.mark.parametrize(
    "text",
    [
        "def take(xs, isinstance):\n    # VAL: VAL_TYPE_CHECK(xs, list)\n    return xs\n",
        "def take(xs):\n    # VAL: VAL_TYPE_CHECK(xs, list)\n    isinstance = 1\n    return xs\n",
        "def outer(isinstance):\n    def take(xs):\n        # VAL: VAL_TYPE_CHECK(xs, list)\n        return xs\n",
        "from mine import isinstance\n\n\ndef take(xs):\n    # VAL: VAL_TYPE_CHECK(xs, list)\n    return xs\n",
        "def isinstance(): ...\nclass A:\n    def take(self, xs):\n        # VAL: VAL_TYPE_CHECK(list)\n        xs()\n",
    ],
)
def test_22_a_shadowed_builtin_is_refused(text: str) -> None:
    _, code, message = problem(text)
    assert code == "shadowed-builtin" and "isinstance" in message


def test_22_a_shadowed_error_type_is_refused() -> None:
    assert problem("def take(x, ValueError):\n    # VAL: VAL_POSITIVE(x)\n    return x\n")[1] == "shadowed-builtin"


def test_22_a_name_of_a_class_body_or_comprehension_shadows_nothing() -> None:
    text = "class A:\n    isinstance = 1\n\n    def take(self, xs):\n        # VAL: VAL_TYPE_CHECK(list)\n"
    text += "        return [type for type in xs]\n"
    assert "isinstance(xs, list)" in expand(text)


@pytest.mark.parametrize("claim", ["(y := x)", "await x", "(yield x)", "[a async for a in x]"])
def test_23_claims_with_side_effects_are_refused(claim: str) -> None:
    assert problem(f"async def take(x):\n    # AST: AST_PRECONDITION({claim})\n    return x\n")[1] == "bad-argument"


def test_24_braces_quotes_and_line_breaks_in_a_claim_do_not_reach_the_message_raw() -> None:
    text = dedent(r'''
        def take(x):
            # AST: AST_PRECONDITION(x not in {"{", '}', "a\n", """'q"'""", f"{x!r:>{4}}"})
            return x
    ''')
    namespace: dict[str, Any] = {}
    done = expand(text)
    exec(done, namespace)
    assert namespace["take"]("b") == "b" and strip(done) == text
    with pytest.raises(AssertionError) as caught:
        namespace["take"]("{")
    assert "x not in {" in str(caught.value)


def test_24_a_huge_value_does_not_flood_the_message() -> None:
    namespace: dict[str, Any] = {}
    exec(expand("def take(x):\n    # AST: AST_PRECONDITION(x is None)\n    return x\n"), namespace)
    with pytest.raises(AssertionError) as caught:
        namespace["take"]("y" * 100_000)
    assert len(str(caught.value)) < 400


def test_25_a_needed_import_goes_below_docstring_and_futures_and_before_use() -> None:
    text = dedent('''
        #!/usr/bin/env python
        # -*- coding: utf-8 -*-
        """Doc."""
        from __future__ import annotations

        import abc
        import os
        from x import y

        LIMIT = y
        # VAL: VAL_FINITE(LIMIT)
    ''')
    done = expand(text)
    assert "import abc\nimport math  # VAL import\nimport os\n" in done
    assert strip(done) == text and expand(done) == done


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("", "import math  # VAL import\ndef"),
        ('"""Doc."""\n', '"""Doc."""\nimport math  # VAL import\ndef'),
        ("#!/bin/sh\n", "#!/bin/sh\nimport math  # VAL import\ndef"),
        ("import zlib\n", "import math  # VAL import\nimport zlib\ndef"),
        ("import abc\n\nx = 1\n", "import abc\nimport math  # VAL import\n\nx = 1\ndef"),
        ("if TYPE_CHECKING:\n    import math\n", "import math  # VAL import\nif TYPE_CHECKING:"),
        ("import math\n", "import math\ndef"),
        ("import abc, math\n", "import abc, math\ndef"),
    ],
)
def test_25_places_of_an_import(head: str, expected: str) -> None:
    text = f"{head}def take(x):\n    # VAL: VAL_FINITE\n    return x\n"
    done = expand(text)
    assert done.startswith(expected)
    assert strip(done) == text and expand(done) == done


@pytest.mark.parametrize(
    "text",
    [
        "math = 3\n\n\ndef take(x):\n    # VAL: VAL_FINITE\n    return x\n",
        "def take(x, math):\n    # VAL: VAL_FINITE(x)\n    return x\n",
        "import numpy as math\n\n\ndef take(x):\n    # VAL: VAL_FINITE\n    return x\n",
    ],
)
def test_25_a_name_that_is_something_else_is_refused(text: str) -> None:
    assert problem(text)[1] == "name-clash"


def test_25_an_import_goes_when_nothing_needs_it_and_stays_wherever_a_sorter_put_it() -> None:
    text = "import os\n\n\ndef take(x):\n    # VAL: VAL_FINITE\n    return x\n"
    moved = expand(text).replace("import math  # VAL import\nimport os\n", "import os\n\nimport math  # VAL import\n")
    assert expand(moved) == moved
    without = expand(moved).replace("VAL_FINITE", "VAL_POSITIVE")
    assert "import math" not in expand(without)


def test_25_a_managed_import_that_came_to_bind_more_is_left_alone() -> None:
    text = "from math import inf, pi  # VAL import\n\n\ndef take(x):\n    # VAL: VAL_FINITE\n    return x\n"
    assert problem(text)[1] == "edited"


def test_a_check_above_a_global_statement_is_not_written() -> None:
    from tests.codegen.expand.fuzz import JOB

    outcome = JOB.process("a.py", b"N = 1\n\n\ndef take():\n    # VAL: VAL_POSITIVE(N)\n    global N\n    N = 2\n")
    assert outcome.new is None
    (finding,) = outcome.report.findings
    assert finding.code == "unproven" and "global declaration" in finding.message


def test_the_type_of_the_result_says_whether_its_elements_are_checked() -> None:
    text = "# VAL: VAL_POSITIVE(result)\ndef take(x) -> list[int]:\n    return x\n"
    assert "for _item in x:" in expand(text).replace("for _result in", "for _item in")


def test_a_file_that_some_tool_generated_is_left_alone() -> None:
    done = report("# @generated by a tool\ndef take(x):\n    # VAL: VAL_POSITIVE\n    return x\n")
    assert [finding.code for finding in done.findings] == ["generated"] and not done.changed


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n# VAL: VAL_FINITE(x)\n\nimport os\n",
        "# VAL: VAL_FINITE(1.5)\n",
        "if True:\n    x = 1\n    # VAL: VAL_FINITE(x)\nimport os\n",
        "if True:\n    # VAL: VAL_FINITE(1.5)\n    x = 1\nelse:\n    x = 2\nimport os\n",
        "for x in (1, 2):  # VAL: VAL_FINITE(x)\n    pass\nimport os\n",
        "import abc  # VAL: VAL_NON_EMPTY(abc.__name__)\ndef f(x):\n    # VAL: VAL_OWNER_THREAD(x)\n    return x\n",
    ],
)
def test_25_an_import_stands_above_the_checks_that_run_while_the_module_is_imported(text: str) -> None:
    done = expand(text)
    assert strip(done) == text and expand(done) == done
    exec(compile(done, "a.py", "exec"), {})
    lines = done.splitlines(keepends=True)
    managed = next(line for line in lines if line.endswith(" import\n") and "# VAL" in line)
    lines.remove(managed)
    low = "".join([*lines, managed])
    again = expand(low)
    if "def f" not in text:
        assert ("STALE", managed.partition("  ")[0]) in [(s.state.value, s.what) for s in report(low).sites]
    assert strip(again) == text and expand(again) == again
    exec(compile(again, "a.py", "exec"), {})


def test_25_an_import_of_the_authors_below_such_a_check_is_refused() -> None:
    text = "x = 1\n# VAL: VAL_FINITE(x)\n\nimport math\n"
    assert problem(text)[:2] == (2, "late-import")
    text = "def f(x):\n    # VAL: VAL_FINITE\n    return x\n\nimport math\n"
    assert report(text).text is not None


def test_25_an_import_between_an_annotation_and_its_check_goes_below_both() -> None:
    done = expand("x = 1\n# VAL: VAL_POSITIVE(x)\n\ndef f(y):\n    # VAL: VAL_FINITE\n    return y\n")
    head, _, rest = done.partition("import math  # VAL import\n")
    torn = (head + rest).replace("VAL_POSITIVE(x)\n", "VAL_POSITIVE(x)\nimport math  # VAL import\n", 1)
    torn = torn.replace(torn[torn.index("if not x > 0") : torn.index("\n\ndef f")], "")
    mended = expand(torn)
    assert mended.index("# VAL: VAL_POSITIVE(x)\nif not x > 0") < mended.index("import math  # VAL import")
    assert expand(mended) == mended
