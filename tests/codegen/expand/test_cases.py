"""Inputs that nobody here wrote: each is refused, or checks what its annotation says."""

from __future__ import annotations

import asyncio
import textwrap
from typing import Any

import numpy as np
import pytest

from tests.codegen.expand.helpers import dedent, expand, report


def errors(text: str) -> list[tuple[int, str]]:
    """Line and code of each error."""
    found = report(text, guard="untyped").findings
    return [(finding.line, finding.code) for finding in found if finding.severity == "error"]


def said(text: str) -> str:
    """Messages and fixes of all findings."""
    return "\n".join(f"{f.message} | {f.fix}" for f in report(text, guard="untyped").findings)


def run(text: str, **given: object) -> dict[str, Any]:
    """The namespace of the expanded text, run."""
    namespace: dict[str, Any] = dict(given)
    exec(compile(expand(dedent(text), guard="untyped"), "sample.py", "exec"), namespace)
    return namespace


@pytest.mark.parametrize(
    "text",
    [
        "def f(n):\n    total = n - 5\n    print(total)\n    # VAL: VAL_POSITIVE\n    return n\n",
        "def f(n):\n    if n:\n        # VAL: VAL_POSITIVE\n        return n\n",
        "def f(n):\n    n += 1\n    n.sort()\n    # VAL: VAL_POSITIVE\n    return n\n",
    ],
)
def test_X1_a_bare_annotation_in_mid_body_never_reaches_for_the_parameter(text: str) -> None:
    assert [code for _, code in errors(text)] == ["ambiguous-target"]


@pytest.mark.parametrize(
    "text",
    [
        "def f(path):\n    for row in open(path):\n        if row:\n            # VAL: VAL_NON_BLANK\n            1\n",
        "def f(paths):\n    for path in paths:\n        # VAL: VAL_FILE_EXISTS\n        print(path)\n",
        "def f(path):\n    with open(path) as file:\n        # VAL: VAL_NOT_NONE\n        print(file)\n",
    ],
)
def test_X2_the_variable_of_a_block_is_no_target_that_goes_without_saying(text: str) -> None:
    assert [code for _, code in errors(text)] == ["ambiguous-target"]


@pytest.mark.parametrize(
    ("value", "check", "why"),
    [
        ("time.time()", "VAL_NON_EMPTY, VAL_NO_DUPLICATES", "float, which has no length"),
        ("len(x)", "VAL_NON_EMPTY", "int, which has no length"),
        ("[1, 2]", "VAL_POSITIVE", "list, which has no order against a number"),
        ("str(x)", "VAL_FINITE", "str, which has no order against a number"),
        ("3.5", "VAL_NON_BLANK", "float, which has no strip"),
        ("x is None", "VAL_SORTED", "bool, which cannot be gone through"),
    ],
)
def test_X3_a_pattern_that_the_type_cannot_bear_is_refused(value: str, check: str, why: str) -> None:
    text = f"import time\n\n\ndef f(x):\n    start = {value}\n    # VAL: {check}\n    return start\n"
    assert errors(text)[0] == (6, "wrong-type") and f"start is {why}" in said(text)


def test_X3_a_type_that_is_not_known_or_fits_is_not_refused() -> None:
    for value in ("f2()", "x", "[x]", "x or 3"):
        text = (
            f"def f2():\n    return 1\n\n\ndef f(x):\n    start = {value}\n    # VAL: VAL_NON_EMPTY\n    return start\n"
        )
        assert errors(text) == [], value


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        ("is_loaded is False", "Did you mean self.is_loaded?"),
        ("self.is_laoded is False", "Did you mean is_loaded?"),
        ("Engine.is_laoded", "Did you mean is_loaded?"),
        ("self.is_loaded is Flase", "Did you mean False?"),
    ],
)
def test_X4_a_name_that_is_bound_nowhere_is_refused_with_the_nearest(claim: str, why: str) -> None:
    text = dedent(f"""
        class Engine:
            def __init__(self):
                self.is_loaded = False

            def load(self):
                # AST: AST_INVARIANT({claim})
                self.is_loaded = True
    """)
    assert errors(text) == [(6, "unresolved-name")] and why in said(text)


@pytest.mark.parametrize(
    "methods",
    [
        "def __init__(self): ...",
        'def __init__(self):\n    """Open."""\n    raise NotImplementedError("5.1 Engine.__init__")',
        "def __init__(self):\n    self.prepare()\n\ndef prepare(self):\n    raise NotImplementedError",
        "async def start(self):\n    ...",
    ],
)
def test_a_member_may_be_set_by_a_method_that_is_still_to_be_written(methods: str) -> None:
    text = f"class Engine:\n{textwrap.indent(methods, '    ')}\n\n    def load(self, name: str):\n"
    text += "        # VAL: VAL_KEY_IN(name, mapping=self.buckets)\n        return name\n"
    assert errors(text) == []


@pytest.mark.parametrize(
    "methods",
    [
        "def __init__(self): pass",
        "@abstractmethod\ndef run(self): ...",
        "def stop(self):\n    if self.x: raise NotImplementedError\n    self.y = 1",
    ],
)
def test_a_member_that_no_method_can_set_is_refused(methods: str) -> None:
    text = f"from abc import abstractmethod\nclass Engine:\n{textwrap.indent(methods, '    ')}\n\n"
    text += (
        "    def load(self, name: str):\n        # VAL: VAL_KEY_IN(name, mapping=self.buckets)\n        return name\n"
    )
    assert [code for _, code in errors(text)] == ["unresolved-name"]


@pytest.mark.parametrize(
    ("method", "claim", "recursive"),
    [
        ("__eq__", "self == other", True),
        ("__eq__", "other != self", True),
        ("__eq__", "self is not other", False),
        ("__eq__", "self.kind == 1", False),
        ("__ne__", "self == other", False),
        ("__lt__", "0 < 1 and other > self", True),
        ("__lt__", "self <= other", False),
        ("__contains__", "other in self", True),
        ("__contains__", "self in other", False),
        ("__bool__", "not self", True),
        ("__bool__", "self and other", True),
        ("__bool__", "self is None", False),
        ("__len__", "not (other or self)", True),
    ],
)
def test_X16_an_operator_that_runs_the_method_it_is_claimed_in_is_refused(
    method: str, claim: str, recursive: bool
) -> None:
    text = dedent(f"""
        class Row:
            def __init__(self):
                self.kind = 1

            def {method}(self, other):
                # AST: AST_PRECONDITION({claim})
                return True
    """)
    assert errors(text) == ([(6, "recursive-claim")] if recursive else [])


@pytest.mark.parametrize(
    ("opened", "check", "code"),
    [
        ("open(path)", "VAL_NO_DUPLICATES(lines)", "used-up"),
        ("path.open()", "VAL_SORTED(lines)", "used-up"),
        ("gzip.open(path)", "VAL_SORTED(lines)", "used-up"),
        ("open(path)", "VAL_NOT_NONE(lines)", ""),
        ("image.open(path)", "VAL_SORTED(lines)", ""),
    ],
)
def test_X9_a_file_that_with_opens_is_gone_through_only_once(opened: str, check: str, code: str) -> None:
    text = dedent(f"""
        import gzip
        from pathlib import Path


        def read(path: Path, image):
            with {opened} as lines:
                # VAL: {check}
                return list(lines)
    """)
    assert errors(text) == ([(7, code)] if code else [])
    claim = text.replace(f"VAL: {check}", "AST: AST_PRECONDITION(not lines.closed)")
    assert errors(claim) == []


COUNTER = """
    class Row:
        def __init__(self):
            self.version = 1

        # AST: {claim}
        def bump(self, by):
            {body}
"""


@pytest.mark.parametrize(
    ("claim", "good", "bad"),
    [
        ("AST_UNCHANGED(self.version, old(self.version))", "print(by)", "self.version = 99"),
        ("AST_ENSURES(self.version == old(self.version))", "by.copy()", "self.version += 1"),
        ("AST_POSTCONDITION(old(self.version) + by == self.version)", "self.version += by", "self.version = by"),
        ("AST_MONOTONIC(self.version, old(self.version), strict=True)", "self.version += 1", "self.version -= 0"),
        ("AST_MONOTONIC(self.version, old(self.version))", "self.version -= 0", "self.version -= 1"),
    ],
)
def test_X5_X6_above_a_def_old_is_the_entry_and_the_claim_is_judged_at_the_exit(
    claim: str, good: str, bad: str
) -> None:
    by: Any = 5 if "copy" not in good else {}
    run(COUNTER.format(claim=claim, body=good))["Row"]().bump(by)
    with pytest.raises(AssertionError):
        run(COUNTER.format(claim=claim, body=bad))["Row"]().bump(5)


def test_X5_in_mid_body_old_is_the_entry_too_and_every_exit_is_judged() -> None:
    text = """
        def f(row, early):
            # AST: AST_INVARIANT(len(row) >= old(len(row)))
            row.pop()
            if early:
                return 1
            row.append(3)
            row.append(4)
    """
    f = run(text)["f"]
    f([1, 2], False)
    with pytest.raises(AssertionError, match=r"len\(row\) >= old\(len\(row\)\)"):
        f([1, 2], True)


@pytest.mark.parametrize(
    "text",
    [
        "# AST: AST_UNCHANGED(n, old(n))\ndef f(n: int):\n    return n\n",
        "# AST: AST_ENSURES(old(n) == old(n))\ndef f(n: int):\n    n += 1\n    return 2\n",
        "class C:\n    n: int\n\n    # AST: AST_ENSURES(self.n == old(self.n))\n    def f(self):\n        return 1\n",
    ],
)
def test_X5_a_thing_compared_with_its_own_snapshot_at_the_same_point_is_a_tautology(text: str) -> None:
    assert [code for _, code in errors(text)] == ["tautology"]


@pytest.mark.parametrize(
    "body",
    [
        "x -= 5\n    return x\n",
        "for x in range(x):\n        pass\n    return x\n",
        "if (x := x - 5):\n        pass\n    return x\n",
    ],
)
def test_X7_a_claim_at_the_exit_that_names_a_parameter_the_body_changes_is_refused(body: str) -> None:
    text = f"def f(x: int):\n    # AST: AST_ENSURES(result >= x)\n    {body}"
    assert errors(text) == [(2, "changed-parameter")] and "Write old(x)" in said(text)
    with pytest.raises(AssertionError):
        run(text.replace(">= x", ">= old(x)"))["f"](7)


MUTABLE = [
    ("class C:\n    def __init__(self):\n        self.items = []\n\n", "self.items", "self.items.append(x)"),
    ("class C:\n    items: dict[str, int]\n\n", "self.items", "self.items[x] = 1"),
    ("class C:\n", "self.items", "helper(self.items)"),
    ("class C:\n", "x", "x.clear()"),
]


@pytest.mark.parametrize(("head", "source", "body"), MUTABLE)
def test_X8_a_snapshot_of_what_can_change_in_place_is_refused(head: str, source: str, body: str) -> None:
    text = (
        f"def helper(x):\n    x.pop()\n\n\n{head}    # AST: AST_UNCHANGED({source}, old({source}))\n"
        f"    def f(self, x):\n        {body}\n        return 1\n"
    )
    assert [code for _, code in errors(text)] == ["mutable-snapshot"] and f"old(copy({source}))" in said(text)


@pytest.mark.parametrize("way", ["copy", "deepcopy", "list", "tuple"])
def test_X8_an_explicit_copy_is_compared_as_it_was(way: str) -> None:
    now = "self.items" if way != "tuple" else "tuple(self.items)"
    text = f"""
        class C:
            def __init__(self):
                self.items = [1]

            # AST: AST_ENSURES({now} == old({way}(self.items)))
            def f(self, x):
                if x:
                    self.items.append(x)
    """
    made = run(text)["C"]()
    made.f(0)
    with pytest.raises(AssertionError):
        made.f(2)
    assert ("import copy  # AST import" in expand(dedent(text))) is ("copy" in way)


@pytest.mark.parametrize(
    "annotation",
    [
        "VAL: VAL_SORTED(it)",
        "VAL: VAL_SUBSET(it, ok)",
        "VAL: VAL_SUBSET(ok, of=it)",
        "VAL: VAL_POSITIVE(it, each=items)",
        "AST: AST_PRECONDITION(all(x > 0 for x in it))",
        "AST: AST_ENSURES(len(old(list(it))) > 0)",
        "VAL: VAL_ONE_OF(3, it)",
    ],
)
@pytest.mark.parametrize(
    "hint", ["Iterator[int]", "Iterable[int]", "Generator[int, None, None]", "list[int] | Iterator[int]"]
)
def test_X9_a_value_that_can_be_gone_through_only_once_is_not_gone_through(annotation: str, hint: str) -> None:
    text = f"def f(it: '{hint}', ok: set[int]):\n    # {annotation}\n    return list(it)\n"
    assert [code for _, code in errors(text)] in (["used-up"], ["ambiguous-target"])
    assert errors(f"def f(it: '{hint}'):\n    # VAL: VAL_NOT_NONE(it, each=none)\n    return list(it)\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    it = map(abs, x)\n    # VAL: VAL_SORTED\n    return list(it)\n",
        "def f(x):\n    it = (y for y in x)\n    # AST: AST_INVARIANT(sum(it) > 0)\n    return list(it)\n",
        "def g():\n    yield 1\n\n\ndef f(x):\n    it = g()\n    # VAL: VAL_SUBSET(it, x)\n    return list(it)\n",
    ],
)
def test_X9_what_a_call_makes_can_be_one_pass_too(text: str) -> None:
    assert [code for _, code in errors(text)] == ["used-up"]


def test_X9_an_awaitable_says_nothing_before_it_is_awaited() -> None:
    text = "async def g() -> bool:\n    return False\n\n\nasync def f():\n    # AST: AST_INVARIANT(g())\n    return 1\n"
    assert [code for _, code in errors(text)] == ["awaitable"]


@pytest.mark.parametrize(
    "statement", ["yield await q.get()", "x = yield await q.get()", "for r in q:\n        yield await r"]
)
def test_X10_a_deadline_around_a_yield_is_refused_with_the_reason(statement: str) -> None:
    text = f"async def f(q):\n    # VAL: VAL_DEADLINE(3, waiting_for='q')\n    {statement}\n"
    assert [code for _, code in errors(text)] == ["wrap"] and "the consumer that would be cancelled" in said(text)


def test_X10_a_yield_of_a_function_inside_is_not_enclosed() -> None:
    text = "async def f(q):\n    # VAL: VAL_DEADLINE(3, waiting_for='q')\n    await q(lambda: (yield))\n"
    assert errors(text) == []


@pytest.mark.parametrize(
    "annotation",
    [
        "VAL: VAL_POSITIVE(n, error=NoSuchError)",
        "VAL: VAL_POSITIVE(n, error=int)",
        "VAL: VAL_POSITIVE(n, error=Plain)",
        "VAL: VAL_INT_RANGE(n, max=hi)",
        "VAL: VAL_INT_RANGE(n, max=LIMIT, about=nn)",
        "AST: AST_INVARIANT(whne > 0)",
        "AST: AST_ENSURES(later > 0)",
        "VAL: VAL_POSITIVE(later)",
    ],
)
def test_X11_names_in_any_argument_have_to_have_a_value_there(annotation: str) -> None:
    head = "LIMIT = 3\n\n\nclass Plain:\n    pass\n\n\n"
    text = f"{head}def f(n):\n    # {annotation}\n    if n:\n        return n\n    later = n\n"
    assert {code for _, code in errors(text)} <= {"unresolved-name", "bad-argument"} and errors(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import sys\nif sys.platform == 'win32':\n    import math\n\n\n{f}", "uncertain-import"),
        ("import math\n\n\n{f}\n\ndel math\n", "uncertain-import"),
        ("{f}\n\nf(1.0)\nimport math\n", "late-import"),
        ("try:\n    import math\nexcept ImportError:\n    pass\n\n\n{f}", "uncertain-import"),
        ("class C:\n    import math\n\n\n{f}", None),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import math\n\n\n{f}", None),
        ("import math\n\n\n{f}\n\nf(1.0)\n", None),
        ("{f}\n\nX = 3\nimport math\nf(1.0)\n", None),
    ],
)
def test_X12_an_import_counts_only_if_it_has_surely_run(text: str, code: str | None) -> None:
    whole = text.format(f="def f(rate: float):\n    # VAL: VAL_FINITE\n    return rate\n")
    assert [c for _, c in errors(whole)] == ([code] if code else [])
    if code is None:
        assert run(whole)["f"](1.0) == 1.0


@pytest.mark.parametrize(
    ("name", "head", "why"),
    [
        ("LIMIT", "import sys\nif sys.platform == 'win32':\n    LIMIT = 3\n", "only under"),
        ("LIMIT", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    LIMIT = 3\n", "type checkers only"),
        ("LIMIT", "LIMIT = 3\ndel LIMIT\n", "deleted again"),
        ("LIMIT", "if __name__ == '__main__':\n    LIMIT = 3\n", "run as a script"),
        ("LIMIT", "if False:\n    LIMIT = 3\n", "never runs"),
    ],
)
def test_X12_a_name_of_the_module_counts_only_if_the_module_binds_it(name: str, head: str, why: str) -> None:
    text = f"{head}\n\ndef f(n: int):\n    # VAL: VAL_INT_RANGE(n, max={name})\n    return n\n"
    assert [code for _, code in errors(text)] == ["unresolved-name"] and why in said(text)


def test_X12_a_name_that_every_branch_binds_or_that_is_used_in_the_same_branch_counts() -> None:
    both = "import sys\nif sys.platform == 'win32':\n    LIMIT = 3\nelse:\n    LIMIT = 4\n"
    assert errors(f"{both}\n\ndef f(n: int):\n    # VAL: VAL_INT_RANGE(n, max=LIMIT)\n    return n\n") == []
    same = "import sys\nif sys.platform == 'win32':\n    LIMIT = 3\n\n    def f(n: int):\n"
    assert errors(f"{same}        # VAL: VAL_INT_RANGE(n, max=LIMIT)\n        return n\n") == []


def test_X13_an_argument_with_a_call_is_evaluated_once() -> None:
    f = run("def f(n: int, it):\n    # VAL: VAL_INT_RANGE(n, min=next(it), max=100)\n    return n\n")["f"]
    it = iter([5, 6, 7])
    with pytest.raises(ValueError, match=r"f: n must lie in \[5, 100\], got 4"):
        f(4, it)
    assert next(it) == 6


def test_X14_an_argument_is_not_evaluated_for_each_element() -> None:
    calls: list[int] = []

    def size() -> int:
        calls.append(1)
        return 4000

    f = run("def f(ranks: list[int], size):\n    # VAL: VAL_RANK(ranks, size())\n    return ranks\n")["f"]
    f(list(range(4000)), size)
    assert len(calls) == 1
    g = run("def g(a, size):\n    # VAL: VAL_EXACTLY_ONE((a, size()))\n    return a\n")["g"]
    with pytest.raises(TypeError, match="got a=1, size\\(\\)=4000"):
        g(1, size)
    assert len(calls) == 2


class Mute:
    """Nothing can be asked of it."""

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")


@pytest.mark.parametrize(
    ("hint", "value", "kind"),
    [
        (": np.ndarray", np.array([1, -2]), "ndarray"),
        ("", np.array([1, -2]), "ndarray"),
        ("", "7", "str"),
        (": Any", [3], "list"),
        (": object", Mute(), "Mute"),
        ("", 3j, "complex"),
    ],
)
@pytest.mark.parametrize("pattern", ["VAL_POSITIVE", "VAL_FINITE", "VAL_INT_RANGE(max=3)", "VAL_DIVISIBLE(2)"])
def test_X15_a_value_that_cannot_be_judged_ends_in_the_checks_own_error(
    hint: str, value: object, kind: str, pattern: str
) -> None:
    f = run(f"from typing import Any\n\n\ndef f(x{hint}):\n    # VAL: {pattern}\n    return x\n", np=np)["f"]
    with pytest.raises(ValueError, match=rf"^f: x (cannot be judged by {pattern[:8]}.*, got {kind} |must )") as caught:
        f(value)
    assert caught.value.__cause__ is not None or "must" in str(caught.value)
    assert f(2) == 2


def test_X15_numbers_too_large_for_a_float_are_finite() -> None:
    f = run("def f(rate: float):\n    # VAL: VAL_FINITE\n    return rate\n")["f"]
    assert f(10**400) == 10**400
    with pytest.raises(ValueError, match="must be finite, got -inf"):
        f(float("-inf"))


def test_X15_what_the_target_itself_raises_passes_as_it_is() -> None:
    f = run("def f(x):\n    # VAL: VAL_POSITIVE(x())\n    return x\n")["f"]

    def broken() -> int:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f(broken)


@pytest.mark.parametrize(
    ("head", "claim"),
    [
        ("@property\n    def total(self)", "self.total >= 0"),
        ("def total(self)", "self.total() >= 0"),
        ("def __len__(self)", "len(self) >= 0"),
        ("@property\n    def total(self)", "self.half * 2 >= 0"),
    ],
)
def test_X16_a_claim_that_runs_what_it_belongs_to_is_refused(head: str, claim: str) -> None:
    text = (
        "class C:\n    @property\n    def half(self):\n        return self.total / 2\n\n"
        f"    {head}:\n        # AST: AST_ENSURES({claim})\n        return 3\n"
    )
    assert [code for _, code in errors(text)] == ["recursive-claim"]
    assert errors(text.replace(claim, "result >= 0")) == []


def test_X16_a_function_that_claims_something_of_itself_is_refused() -> None:
    assert [c for _, c in errors("def f(n: int):\n    # AST: AST_REQUIRES(f(n - 1) > 0)\n    return n\n")] == [
        "recursive-claim"
    ]


def test_keys_are_asked_of_mappings_only() -> None:
    for kind in ("list[int]", "set[int]", "tuple[int, ...]"):
        text = f"def f(n: int, seen: {kind}):\n    # VAL: VAL_KEY_ABSENT(n, seen)\n    return n\n"
        assert errors(text) == [(2, "wrong-type")] and "Use VAL_NOT_IN" in said(text)
        assert errors(text.replace("KEY_ABSENT", "NOT_IN")) == []
    assert errors("def f(n: int, seen: dict[int, str]):\n    # VAL: VAL_KEY_ABSENT(n, seen)\n    return n\n") == []


def test_a_call_that_may_change_its_object_is_a_warning() -> None:
    for call in ("xs.pop()", "next(xs)", "self.drop()"):
        text = (
            "class C:\n    def drop(self):\n        self.n = 0\n        return 1\n\n"
            f"    def f(self, xs):\n        # AST: AST_PRECONDITION({call} > 0)\n        return xs\n"
        )
        assert [f.code for f in report(text).findings] == ["impure-check"], call
        assert "[" not in call and errors(text) == []


def test_a_deadline_still_encloses_what_awaits() -> None:
    f = run("async def f(q):\n    # VAL: VAL_DEADLINE(0.01, waiting_for='q')\n    await q()\n    return 3\n")["f"]

    async def slow() -> None:
        await asyncio.sleep(5)

    async def quick() -> None:
        return None

    assert asyncio.run(f(quick)) == 3
    with pytest.raises(TimeoutError, match="f: q did not answer"):
        asyncio.run(f(slow))


@pytest.mark.parametrize(
    ("check", "code"),
    [
        ("VAL_POSITIVE(x)", "if not x > 0:\n        raise ValueError('too small')\n"),
        ("VAL_EQUAL(x, y)", "if x != y:\n        raise ValueError('differ')\n"),
        ("VAL_ONE_OF(x, y)", "if x not in y:\n        raise ValueError('strange')\n"),
        (
            "VAL_SORTED(x)",
            "for a, b in itertools.pairwise(x):\n        if not a <= b:\n            raise ValueError('order')\n",
        ),
    ],
)
def test_a_check_by_hand_is_recognised_where_ours_would_be_guarded(check: str, code: str) -> None:
    text = f"import itertools\n\n\ndef f(x, y):\n    # VAL: {check}\n    {code}    return x\n"
    assert errors(text) == [(5, "already-checked")]
    adopted = report(text, guard="untyped", adopt=True)
    assert adopted.text is not None and adopted.text.count("except Exception") == 1
    assert f"# VAL: {check} - " in adopted.text
