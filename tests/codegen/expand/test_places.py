"""Where an annotation may stand, and where its block goes. Numbers are those of the list of edge cases in the docs."""

from __future__ import annotations

import ast

import pytest

from tests.codegen.expand.helpers import dedent, expand, problem, report, strip


def lines_around(text: str) -> list[str]:
    """The expanded text, with each generated block shortened to `…`."""
    out: list[str] = []
    inside = False
    for line in expand(text).splitlines():
        if " on entry:" in line or " on return:" in line or " on else:" in line or " on except:" in line:
            out.append(line.partition(":")[0])
            inside = True
        elif "# END" in line:
            out.append(line.partition("#")[0] + "…")
            inside = False
        elif not inside and not line.strip().startswith(("if not ", "raise ValueError", "assert ")):
            out.append(line)
    return out


def keeps(text: str) -> None:
    """Stripping gives the text back, a second expansion changes nothing, and the result is Python."""
    done = expand(text)
    ast.parse(done)
    assert strip(done) == text
    assert expand(done) == done


def test_06_a_one_line_suite_is_refused_with_the_fix() -> None:
    for text in (
        "def take(x): return x  # VAL: VAL_POSITIVE\n",
        "# VAL: VAL_POSITIVE\ndef take(x): return x\n",
        "def take(x):\n    if x: return 1  # VAL: VAL_POSITIVE(x)\n",
        "class A: x = 1  # VAL: VAL_POSITIVE(x)\n",
    ):
        done = report(text)
        (finding,) = done.findings
        assert finding.code == "no-place" and done.text is None
        assert "line" in (finding.fix or "")


def test_06_a_return_on_the_line_of_its_if_is_refused_with_its_line() -> None:
    text = "# AST: AST_ENSURES(result > 0)\ndef take(x):\n    if x: return 1\n    return 2\n"
    line, code, message = problem(text)
    assert (line, code) == (3, "shared-line") and "return on line 3" in message


def test_07_statements_that_share_a_line_are_refused() -> None:
    assert problem("def take(x):\n    a = 1; b = 2  # VAL: VAL_POSITIVE\n    return x\n")[1] == "no-place"
    assert problem("# AST: AST_ENSURES(result)\ndef take(x):\n    a = 1; return a\n")[1] == "shared-line"


def test_08_entry_checks_stand_below_the_docstring() -> None:
    text = dedent('''
        def take(x):
            # VAL: VAL_POSITIVE
            """Doc.

            More.
            """
            return x
    ''')
    assert lines_around(text) == [
        *text.splitlines()[:6],
        "    # VAL on entry",
        "    …",
        "    return x",
    ]
    keeps(text)


def test_08_a_body_that_is_only_a_docstring_takes_a_check() -> None:
    text = '# VAL: VAL_POSITIVE\ndef take(x):\n    """Doc."""\n'
    done = expand(text)
    assert ast.get_docstring(ast.parse(done).body[0]) == "Doc."  # type: ignore[arg-type]
    keeps(text)


def test_09_the_def_line_and_the_line_of_its_return_type() -> None:
    for text in (
        "def take(x):  # VAL: VAL_POSITIVE\n    return x\n",
        "def take(\n    x,\n) -> int:  # VAL: VAL_POSITIVE\n    return x\n",
        "async def take(x):  # VAL: VAL_POSITIVE\n    return x\n",
    ):
        done = expand(text).splitlines()
        at = next(number for number, line in enumerate(done) if "VAL: VAL_POSITIVE" in line)
        assert done[at + 1] == "    # VAL on entry: VAL_POSITIVE"
        keeps(text)


def test_09_several_parameters_on_one_line_need_a_name() -> None:
    text = "def take(\n    x, y,  # VAL: VAL_POSITIVE\n):\n    return x\n"
    assert "candidates: x, y" in problem(text)[2]


def test_10_above_a_def_a_decorator_and_between_them() -> None:
    for text in (
        "# VAL: VAL_POSITIVE\ndef take(x):\n    return x\n",
        "# VAL: VAL_POSITIVE\n@wrap\n@wrap(3)\ndef take(x):\n    return x\n",
        "@wrap\n# VAL: VAL_POSITIVE\n@wrap(3)\ndef take(x):\n    return x\n",
        "@wrap\n# VAL: VAL_POSITIVE\ndef take(x):\n    return x\n",
        "@wrap  # VAL: VAL_POSITIVE\ndef take(x):\n    return x\n",
    ):
        assert "def take(x):\n    # VAL on entry: VAL_POSITIVE\n    if not x > 0:" in expand(text)
        keeps(text)


def test_10_above_a_method_in_a_class() -> None:
    text = "class A:\n    y = 1\n\n    # VAL: VAL_POSITIVE\n    def take(self, x):\n        return x\n"
    assert "        # VAL on entry: VAL_POSITIVE\n" in expand(text)
    keeps(text)


def test_10_on_a_class_it_is_an_error() -> None:
    for text in (
        "# VAL: VAL_POSITIVE(x)\nclass A:\n    x = 1\n",
        "class A:  # VAL: VAL_POSITIVE(x)\n    x = 1\n",
        "class A:\n    x = 1\n    # VAL: VAL_POSITIVE(x)\n    y = 2\n",
        "class A:\n    x: int = 1  # VAL: VAL_POSITIVE\n",
    ):
        assert problem(text)[1] == "no-place"


def test_11_below_a_return_is_dead_code() -> None:
    for word in ("return x", "raise ValueError(x)"):
        line, code, message = problem(f"def take(x):\n    {word}\n    # VAL: VAL_POSITIVE\n")
        assert (line, code) == (3, "dead-code") and word.split()[0] in message
    text = "def take(x):\n    for y in x:\n        continue\n        # VAL: VAL_POSITIVE(y)\n"
    assert problem(text)[1] == "dead-code"


def test_11_as_the_last_line_of_a_suite_it_is_placed_at_its_end() -> None:
    text = "def take(x):\n    if x:\n        y = 1\n        # VAL: VAL_POSITIVE(y)\n    # VAL: VAL_POSITIVE(x)\n"
    assert lines_around(text)[4:] == ["        …", "    # VAL: VAL_POSITIVE(x)", "    …"]
    keeps(text)


def test_11_at_the_end_of_a_file_without_newline() -> None:
    text = "x = 1\n# VAL: VAL_POSITIVE"
    done = expand(text)
    assert done.startswith("x = 1\n# VAL: VAL_POSITIVE\nif not x > 0:") and not done.endswith("\n")
    keeps(text)


def test_12_a_dedented_comment_belongs_to_the_next_statement_and_is_reported() -> None:
    text = "def take(x):\n    y = 1\n  # VAL: VAL_POSITIVE(y)\n    return y\n"
    done = report(text)
    assert [finding.code for finding in done.findings] == ["odd-indentation"]
    assert "    y = 1\n  # VAL: VAL_POSITIVE(y)\n    if not y > 0:" in expand(text)
    keeps(text)


def test_12_a_too_deep_comment_belongs_to_the_suite_of_its_column() -> None:
    text = "def take(x):\n    if x:\n        y = 1\n            # VAL: VAL_POSITIVE(y)\n    return x\n"
    assert "        y = 1\n            # VAL: VAL_POSITIVE(y)\n        if not y > 0:" in expand(text)
    keeps(text)


def test_13_before_a_clause_it_goes_to_the_head_of_that_clause() -> None:
    text = dedent("""
        def take(x):
            try:
                y = x()
            # VAL: VAL_POSITIVE(x)
            except ValueError:
                y = 1
            # VAL: VAL_POSITIVE(y)
            else:
                y = 2
            if y == 1:
                y = 4
            # VAL: VAL_POSITIVE(y)
            elif y:
                y = 5
            match y:
                # VAL: VAL_POSITIVE(x)
                case 1:
                    y = 3
            return y
    """)
    done = expand(text)
    assert "    except ValueError:\n        # VAL on except: VAL_POSITIVE(x)\n        if not x > 0:" in done
    assert "    else:\n        # VAL on else: VAL_POSITIVE(y)\n        if not y > 0:" in done
    assert "    elif y:\n        # VAL on elif: VAL_POSITIVE(y)\n        if not y > 0:" in done
    assert "        case 1:\n            # VAL on case: VAL_POSITIVE(x)\n            if not x > 0:" in done
    keeps(text)


def test_13_behind_a_header_it_goes_to_the_head_of_its_suite() -> None:
    text = "def take(x):\n    if x:  # VAL: VAL_POSITIVE(x)\n        x()\n"
    text += "    else:  # VAL: VAL_POSITIVE(x)\n        return 1\n"
    done = expand(text)
    assert "    if x:  # VAL: VAL_POSITIVE(x)\n        if not x > 0:" in done
    assert "    else:  # VAL: VAL_POSITIVE(x)\n        if not x > 0:" in done
    keeps(text)


@pytest.mark.parametrize(
    "text",
    [
        "x = f(\n    # VAL: VAL_POSITIVE(y)\n    y,\n)\n",
        "x = [\n    1,  # VAL: VAL_POSITIVE(y)\n]\n",
        "x = (y  # VAL: VAL_POSITIVE(y)\n     + 1)\n",
        "with (\n    open(x) as y,  # VAL: VAL_POSITIVE(y)\n):\n    pass\n",
        "def f(x=(\n    1,  # VAL: VAL_POSITIVE\n)):\n    pass\n",
    ],
)
def test_14_inside_brackets_no_statement_can_stand(text: str) -> None:
    done = report(text)
    (finding,) = done.findings
    assert finding.code == "no-place" and done.text is None
    assert finding.line == next(n for n, line in enumerate(text.splitlines(), 1) if "VAL:" in line)


def test_14_behind_a_continued_line_it_stands_below_the_statement() -> None:
    text = "x = 1 + \\\n    2  # VAL: VAL_POSITIVE\ny = 2\n"
    assert "    2  # VAL: VAL_POSITIVE\nif not x > 0:" in expand(text)
    keeps(text)


def test_15_text_in_strings_and_docstrings_is_never_an_annotation() -> None:
    text = dedent('''
        """Module.

        # VAL: VAL_NO_SUCH(x)
        """
        x = "# VAL: VAL_NO_SUCH"
        y = f"""
        # AST: AST_NO_SUCH({x})
        """


        def take():
            """
            >>> 1  # VAL: VAL_NO_SUCH
            """
    ''')
    done = report(text)
    assert done.text == text and done.findings == () and done.sites == ()


def test_above_a_nested_def_a_blank_line_decides_whom_it_belongs_to() -> None:
    apart = (
        "def take(x):\n    y = x\n    # VAL: VAL_POSITIVE(y)\n\n    def inner(z):\n        return z\n    return inner\n"
    )
    assert "    # VAL: VAL_POSITIVE(y)\n    if not y > 0:" in expand(apart)
    touching = apart.replace("(y)\n\n", "(z)\n")
    assert "        # VAL on entry: VAL_POSITIVE(z)\n        if not z > 0:" in expand(touching)
    keeps(apart)
    keeps(touching)


def test_nothing_can_stand_above_the_docstring_and_futures_of_a_module() -> None:
    for text in (
        '# VAL: VAL_POSITIVE(x)\n"""Doc."""\nx = 1\n',
        "# VAL: VAL_POSITIVE(x)\nfrom __future__ import annotations\nx = 1\n",
    ):
        assert problem(text)[1] == "no-place"


def test_order_of_blocks_follows_the_order_of_annotations() -> None:
    text = dedent("""
        # VAL: VAL_POSITIVE(a)
        # VAL: VAL_POSITIVE(b)
        def take(
            a,
            b,
            c,  # VAL: VAL_POSITIVE
            d,
            e,
        ):
            # VAL: VAL_POSITIVE(d), VAL_FINITE(e)
            return a
    """)
    done = expand(text)
    order = [line.split()[2] for line in done.splitlines() if line.strip().startswith("if not ")]
    assert order == ["a", "b", "c", "d", "-math.inf"]
    keeps(text)


def test_a_check_inside_a_case_is_indented_by_one_level() -> None:
    text = dedent("""
        def take(x):
            match x:
                case (
                    int() | float()
                ):
                    # VAL: VAL_POSITIVE(x)
                    return x
    """)
    assert "            if not x > 0:\n                raise ValueError(" in expand(text)


@pytest.mark.parametrize("name", ["take", "_take", "__init__"])
def test_X26_a_message_names_a_method_by_its_class(name: str) -> None:
    for around in (
        "# VAL: VAL_POSITIVE(x)\n    def {}(self, x):\n",
        "def {}(self, x):\n        # VAL: VAL_POSITIVE(x)\n",
    ):
        text = f"class Engine:\n    {around.format(name)}        if x:\n            return x\n"
        assert f'f"Engine.{name}: x must be positive' in expand(text)
    nested = f"class Engine:\n    def run(self):\n        def {name}(x):  # VAL: VAL_POSITIVE\n            return x\n"
    assert f'f"Engine.run.{name}: x must be positive' in expand(nested)


def test_X26_classes_inside_classes_and_functions_are_named_from_the_outside() -> None:
    text = dedent("""
        class Table:
            class Row:
                def get(self, rank):
                    # VAL: VAL_POSITIVE(rank)
                    return rank


        def make():
            class Local:
                def get(self, rank):
                    # VAL: VAL_POSITIVE(rank)
                    return rank
            return Local
    """)
    done = expand(text)
    assert 'f"Table.Row.get: rank' in done and 'f"make.Local.get: rank' in done


@pytest.mark.parametrize(
    ("decorator", "shown"),
    [
        ("@take.register", "Desk.take"),
        ("@take.register(int)", "Desk.take"),
        ("@other.take.register", "Desk.take"),
        ("@staticmethod", "Desk._"),
    ],
)
def test_X26_a_function_called_underscore_goes_by_what_it_is_registered_for(decorator: str, shown: str) -> None:
    text = f"class Desk:\n    {decorator}\n    def _(self, x):\n        # VAL: VAL_POSITIVE(x)\n        return x\n"
    assert f'f"{shown}: x must be positive' in expand(text)
