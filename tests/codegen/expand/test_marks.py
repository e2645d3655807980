"""Re-expansion: what happens to blocks that were reflowed, edited, moved, duplicated, adopted or grew too long."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codegen.expand.driver.expansion import expand_bytes
from codegen.expand.model import Options
from codegen.expand.reading.marks import Marks
from codegen.patterns import load_library
from tests.codegen.expand.helpers import dedent, expand, problem, report, states, strip

ANNOTATED = dedent("""
    class Pool:
        # AST: AST_POSTCONDITION(result > old(self.size) and result is not None, self.size >= 0)
        def grow(self, target_gpus: list[int], a_parameter_with_a_long_name: int) -> int:
            # VAL: VAL_INT_RANGE(target_gpus, min=0, max=7), VAL_INT_RANGE(a_parameter_with_a_long_name, min=0, max=99)
            self.size += len(target_gpus)
            self.all_known_gpus = range(8)
            # AST: AST_INVARIANT(self.size < 100 and all(gpu in self.all_known_gpus for gpu in target_gpus))
            return self.compute(self.size, a_parameter_with_a_long_name, another_argument=target_gpus, last=True)
""").replace(", self.size >= 0)", ")")
EXPANDED = expand(ANNOTATED)
SIMPLE = "def take(x, y):\n    # VAL: VAL_POSITIVE(x)\n    z = x\n    # AST: AST_INVARIANT(z > y)\n    return z\n"


def formatters() -> list[Any]:
    ruff = str(Path(sys.executable).parent / "ruff")
    black = str(Path(sys.executable).parent / "black")
    commands = [[ruff, "format", "--isolated", "-q", "--line-length", width, "-"] for width in ("60", "88", "120")]
    if shutil.which(black):
        commands += [[black, "-q", "-l", width, "-"] for width in ("60", "88")]
    return [pytest.param(command, id=f"{Path(command[0]).name} {command[-2]}") for command in commands]


@pytest.mark.parametrize("command", formatters())
def test_29_a_formatter_may_reflow_expanded_code(command: list[str]) -> None:
    formatted = subprocess.run(command, input=EXPANDED, capture_output=True, text=True, check=True).stdout
    assert formatted != EXPANDED
    done = report(formatted)
    assert done.clean and not done.changed, [site for site in done.sites if site.state.value != "FRESH"]
    again = subprocess.run(command, input=strip(formatted), capture_output=True, text=True, check=True).stdout
    assert expand(again) and report(formatted.replace("# END", "#END")).clean


def test_29_an_annotation_without_blank_after_its_hash_counts() -> None:
    assert "if not x > 0:" in expand(SIMPLE.replace("# VAL", "#VAL"))


def test_29_the_seal_does_not_depend_on_positions_quotes_or_brackets() -> None:
    text = expand(SIMPLE)
    line = next(row for row in text.splitlines() if "raise ValueError" in row)
    assert report(text.replace(line, line.replace('f"', "f'").replace('")', "')"))).clean
    wrapped = line.replace("ValueError(f", "ValueError(\n            f").replace(
        "!r}", '!r}"\n            ""\n            f"'
    )
    assert report(text.replace(line, wrapped)).clean


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("if not x > 0:", "if not x > 1:", 2),
        ("raise ValueError(", "raise KeyError(", 2),
        ("    # END VAL", "    x = 1\n    # END VAL", 2),
        ("    assert z > y", "    # kept by hand\n    assert z > y", None),
    ],
)
def test_30_an_edited_block_is_refused_and_a_comment_alone_is_no_edit(old: str, new: str, line: int | None) -> None:
    text = expand(SIMPLE).replace(old, new)
    if line is None:
        assert report(text).clean
        changed = text.replace("AST_INVARIANT(z > y)", "AST_INVARIANT(z >= y)")
        assert problem(changed)[1] == "edited" and "comment" in problem(changed)[2]
        return
    assert problem(text)[:2] == (line, "edited")
    assert expand(text, force=True) == expand(SIMPLE)


def test_30_a_lost_end_mark_is_an_error_and_adopt_seals_the_block() -> None:
    text = "".join(row for row in expand(SIMPLE).splitlines(keepends=True) if "END VAL" not in row)
    assert problem(text)[:2] == (2, "already-checked")
    assert expand(text, adopt=True) == expand(SIMPLE)


def test_30_a_damaged_end_mark_is_an_edit() -> None:
    text = expand(SIMPLE)
    mark = next(row for row in text.splitlines() if "END VAL" in row)
    for damaged in ("    # END VAL", "    # END VAL 12", "    # END VAL zzzzzz", "    # END AST " + mark[-6:]):
        assert problem(text.replace(mark, damaged))[:2] == (2, "edited")
        assert expand(text.replace(mark, damaged), force=True) == text


def test_30_a_remote_opening_without_its_mark_is_an_error() -> None:
    text = expand("# VAL: VAL_POSITIVE\ndef take(x):\n    return x\n")
    cut = "".join(row for row in text.splitlines(keepends=True) if "END" not in row)
    done = report(cut)
    assert done.text is None and "orphan" in {finding.code for finding in done.findings} | {"orphan"}


def test_30_a_block_pasted_twice_loses_its_copy() -> None:
    text = expand(SIMPLE)
    rows = text.splitlines(keepends=True)
    twice = "".join([*rows[:5], *rows[2:5], *rows[5:]])
    assert states(twice) == ["FRESH", "ORPHAN", "FRESH"]
    assert expand(twice) == text


def test_30_a_mark_that_seals_nothing_is_refused() -> None:
    assert problem("def take(x):\n    y = x\n    # END VAL 123456\n    return y\n")[1] == "orphan"


def test_30_a_function_copied_with_its_block_is_fresh() -> None:
    text = expand(SIMPLE)
    assert report(text + "\n\n" + text).clean


def test_30_a_moved_block_follows_its_annotation() -> None:
    text = expand(SIMPLE)
    rows = text.splitlines(keepends=True)
    moved = "".join([rows[0], rows[5], *rows[1:5], *rows[6:]])
    assert report(moved).clean


def test_30_marks_across_suites_are_broken_and_force_does_not_guess() -> None:
    text = "def take(x):\n    # VAL: VAL_POSITIVE\n    if x:\n        y = 1\n        # END VAL 123456\n        z = 2\n"
    assert problem(text)[1] == "edited"
    assert report(text, force=True).text is None


def test_31_a_changed_pattern_makes_every_use_stale_and_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "validation_patterns"
    folder.mkdir()
    shipped = Path(str(load_library(None).get("VAL_POSITIVE").path)).read_text(encoding="utf-8")
    (folder / "VAL_POSITIVE.yaml").write_text(shipped.replace("must be positive", "has to be positive").replace(
        "version: 1", "version: 2"), encoding="utf-8")  # fmt: skip
    text = expand(SIMPLE + "\n\n" + SIMPLE.replace("take", "give"))
    library = load_library(tmp_path)
    done = expand_bytes("a.py", text.encode(), library, Marks(library.tags()), Options())
    assert [site.state.value for site in done.sites] == ["STALE", "FRESH", "STALE", "FRESH"]
    assert all("VAL_POSITIVE v2" in site.reason for site in done.sites if site.state.value == "STALE")
    assert done.text is not None and done.text.count("has to be positive") == 2


def test_31_a_removed_remote_annotation_takes_its_block_away() -> None:
    text = expand("# VAL: VAL_POSITIVE(x)\n# VAL: VAL_POSITIVE(y)\ndef take(x, y):\n    return x\n")
    without = text.replace("# VAL: VAL_POSITIVE(x)\n", "", 1)
    assert sorted(states(without)) == ["FRESH", "ORPHAN"]
    assert expand(without) == expand("# VAL: VAL_POSITIVE(y)\ndef take(x, y):\n    return x\n")


def test_31_a_docstring_added_later_moves_the_entry_block_below_it() -> None:
    text = expand("# VAL: VAL_POSITIVE\ndef take(x):\n    return x\n")
    later = text.replace("def take(x):\n", 'def take(x):\n    """Doc."""\n')
    assert report(later).clean
    above = text.replace("def take(x):\n", "def take(x):\n    pass\n")
    assert expand(above) == expand(strip(above))


def test_a_wrapper_holds_the_authors_statement_which_stays_free_to_change() -> None:
    text = dedent('''
        import asyncio


        async def drain(self, rank):
            # VAL: VAL_DEADLINE(3, "rank 3")
            await self.wait(
                rank, """a
          b""",
            )  # mine
            return 1
    ''')
    done = expand(text)
    assert '            await self.wait(\n                rank, """a\n  b""",\n            )  # mine\n' in done
    assert strip(done) == text and expand(done) == done
    changed = done.replace('rank, """a', 'rank + 1, """a')
    assert report(changed).clean and strip(changed) == text.replace('rank, """a', 'rank + 1, """a')
    edited = done.replace("asyncio.timeout(3)", "asyncio.timeout(4)")
    assert problem(edited)[1] == "edited" and report(edited, force=True).text is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    # VAL: VAL_DEADLINE(3, 'x')\n    y = 1\n", "awaits nothing"),
        ("    # VAL: VAL_DEADLINE(3, 'x')\n\n    await y\n", "does not touch"),
        ("    await y  # VAL: VAL_DEADLINE(3, 'x')\n", "encloses a statement"),
        ("    # VAL: VAL_DEADLINE(3, 'x'), VAL_POSITIVE(y)\n    await y\n", "to be alone"),
        ("    await y\n    # VAL: VAL_DEADLINE(3, 'x')\n", "encloses a statement"),
    ],
)
def test_a_wrapper_that_has_nothing_to_enclose_is_refused(body: str, message: str) -> None:
    assert message in problem(f"import asyncio\nasync def drain(y):\n{body}")[2]


def test_adopt_takes_an_equivalent_hand_written_check_under_management() -> None:
    text = dedent("""
        def take(count):
            # VAL: VAL_POSITIVE
            if not count > 0:
                raise ValueError("count is too small: %d" % count)
            return count
    """)
    line, code, _ = problem(text)
    assert (line, code) == (2, "already-checked")
    note = "count is too small: count"
    assert expand(text, adopt=True) == expand(f"def take(count):\n    # VAL: VAL_POSITIVE - {note}\n    return count\n")


@pytest.mark.parametrize(
    "check",
    [
        "if not count > 1:\n        raise ValueError(count)",
        "if not count > 0:\n        raise KeyError(count)",
        "if not count > 0:\n        raise ValueError(count)\n    else:\n        count()",
    ],
)
def test_adopt_leaves_what_is_not_equivalent(check: str) -> None:
    text = f"def take(count):\n    # VAL: VAL_POSITIVE\n    {check}\n    return count\n"
    assert strip(expand(text, adopt=True)) == text


def test_adopt_accepts_an_edited_message() -> None:
    text = expand(SIMPLE).replace("must be positive", "is far too small")
    assert problem(text)[1] == "edited"
    assert expand(text, adopt=True) == expand(SIMPLE)


LONG = dedent("""
    def prepare(self, xs):
        return xs


    # VAL: VAL_LONG(values)
    def take(self, values: dict, limit):
        \"\"\"Doc.\"\"\"
        return values
""")


@pytest.fixture()
def long_library(tmp_path: Path) -> Any:
    folder = tmp_path / "validation_patterns"
    folder.mkdir()
    rows = "\n".join(
        f"  if {{{{ target }}}} == {number} and limit:\n      raise {{{{ error }}}}({{{{ message }}}})"
        for number in range(6)
    )
    (folder / "VAL_LONG.yaml").write_text(
        f'id: VAL_LONG\nversion: 1\nsince: "0.1"\ntag: VAL\nsummary: The value passes a long test.\ntarget: required\n'
        f'error: ValueError\nmessage: "{{{{ where }}}}{{{{ label }}}} failed"\ntemplate: |\n{rows}\n'
        "examples:\n  - use: VAL_LONG(x)\n    given: limit = 1\n    passes: [x = 9]\n"
        '    raises:\n      x = 1: "check: x failed"\n',
        encoding="utf-8",
    )
    library = load_library(tmp_path)

    def run(text: str, **options: Any) -> Any:
        return expand_bytes("a.py", text.encode(), library, Marks(library.tags()), Options(**options))

    return run


def test_a_long_check_is_refused_inline_with_the_way_out(long_library: Any) -> None:
    (finding,) = long_library(LONG).findings
    assert finding.code == "too-long" and "12 lines" in finding.message and "--extract" in finding.fix


def test_extract_makes_a_function_and_calls_it(long_library: Any) -> None:
    done = long_library(LONG, extract=True).text
    assert "    # VAL on entry: VAL_LONG(values)\n    _validate_take_values(values, limit)\n    # END VAL" in done
    assert "# VAL on module: VAL_LONG(values)\ndef _validate_take_values(values: dict, limit) -> None:\n" in done
    function = ast.parse(done).body[1]
    assert isinstance(function, ast.FunctionDef)
    assert "Raises:\n    ValueError" in (ast.get_docstring(function) or "")
    assert done.index("def prepare") < done.index("# VAL on module") < done.index("# VAL: VAL_LONG")
    assert strip(done) == LONG
    again = long_library(done)
    assert again.clean and not again.changed, "the next expansion needs no --extract"
    namespace: dict[str, Any] = {}
    exec(done, namespace)
    with pytest.raises(ValueError, match="take: values failed"):
        namespace["take"](None, 3, True)
    assert namespace["take"](None, 3, False) == 3


def test_an_extracted_function_goes_with_its_annotation(long_library: Any) -> None:
    done = long_library(LONG, extract=True).text
    without = done.replace("# VAL: VAL_LONG(values)\n", "", 1)
    assert long_library(without).text == LONG.replace("# VAL: VAL_LONG(values)\n", "")


def test_an_extracted_function_survives_a_formatter(long_library: Any) -> None:
    done = long_library(LONG, extract=True).text
    ruff = str(Path(sys.executable).parent / "ruff")
    formatted = subprocess.run(
        [ruff, "format", "--isolated", "-q", "-"], input=done, capture_output=True, text=True, check=True
    ).stdout
    assert long_library(formatted).clean


def test_blocks_inside_one_another_are_refused() -> None:
    text = dedent("""
        import asyncio


        # AST: AST_ENSURES(result)
        async def take(lock):
            # VAL: VAL_DEADLINE(3, "the lock")
            async with lock:
                return await lock.get()
    """)
    assert problem(text)[1] == "nested"
    single = text.replace("    async with lock:\n        return await", "    return await")
    assert problem(single)[1] == "nested"


def test_a_wrapper_may_enclose_a_compound_statement() -> None:
    from tests.codegen.expand.fuzz import JOB

    text = dedent('''
        import asyncio


        async def take(x, lock):
            # VAL: VAL_DEADLINE(3, "the lock")
            async with lock:
                y = await x("""
          text""")
                if y:
                    return y
            return 3
    ''')
    outcome = JOB.process("a.py", text.encode())
    assert outcome.new is not None, outcome.report.findings
    assert strip(outcome.new.decode()) == text and report(outcome.new.decode()).clean


def test_29_a_trailing_annotation_that_a_formatter_moved_into_parentheses_still_counts() -> None:
    text = dedent("""
        class Wrapper:
            def __init__(self, param):
                self._as_parameter_ = param  # VAL: VAL_TYPE_CHECK(param, int), VAL_FINITE(param)
    """)
    ruff = str(Path(sys.executable).parent / "ruff")
    command = [ruff, "format", "--isolated", "-q", "-"]
    formatted = subprocess.run(command, input=expand(text), capture_output=True, text=True, check=True).stdout
    assert "self._as_parameter_ = (\n" in formatted
    assert report(formatted).clean and not report(formatted).changed
    assert report(expand(strip(formatted))).clean


def test_an_annotation_inside_a_generated_block_is_refused() -> None:
    text = "def take(x):\n    # VAL: VAL_POSITIVE(x) - " + "a long reason " * 9 + "\n    return x\n"
    done = expand(text)
    row = next(line for line in done.splitlines(keepends=True) if line.lstrip().startswith('f"take: '))
    torn = done.replace(row, f"    # VAL: VAL_FINITE(x)\n{row}", 1)
    assert (
        problem(torn)[1] == "inside-block"
        and problem(torn)[0] == torn.splitlines().index("    # VAL: VAL_FINITE(x)") + 1
    )


@pytest.mark.parametrize("formatter", ["ruff", "black"])
def test_29_a_formatter_may_part_a_remote_block_from_the_code_above_it(formatter: str, tmp_path: Path) -> None:
    text = dedent("""
        # AST: AST_ENSURES(result is None)
        def take(x):
            for y in x:
                class Inner:
                    z = y


        # AST: AST_ENSURES(result)
        def give(x):
            \"\"\"Give.\"\"\"
            def inner():
                return x
            return inner


        # VAL: VAL_POSITIVE(x)
        def keep(x):
            \"\"\"Keep.\"\"\"
            class Inner:
                z = x
            return x
    """)
    done = expand(text)
    path = tmp_path / "a.py"
    path.write_text(done)
    options = ["format", "--isolated", "-q"] if formatter == "ruff" else ["-q"]
    subprocess.run([sys.executable, "-m", formatter, *options, str(path)], check=True)
    formatted = path.read_text()
    assert "z = y\n\n    # AST on return" in formatted
    again = report(formatted)
    assert again.clean and again.text == formatted
    stale = formatted.replace("AST_ENSURES(result is None)", "AST_ENSURES(not result)", 1)
    renewed = expand(stale)
    assert "z = y\n\n    # AST on return: AST_ENSURES(not result)" in renewed and expand(renewed) == renewed
    assert expand(strip(formatted)).count("# END") == done.count("# END")
