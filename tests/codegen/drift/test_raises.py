"""Which exceptions leave a function, as far as its text tells: what must be documented, and what may be."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from codegen.document.parse import parse_document
from codegen.drift.calls import CallGraph
from codegen.drift.code import Code, Place
from codegen.drift.report import drift

HEAD = "import json\nimport os\n\n\nclass Full(Exception): ...\nclass Worse(Full): ...\nclass Odd(make()): ...\n\n\n"


def graph_of(root: Path, source: str) -> CallGraph:
    (root / "act.py").write_text(HEAD + textwrap.dedent(source))
    code = Code(root)
    module = code.module("act")
    assert module is not None
    return CallGraph(code, [module])


def escapes(root: Path, source: str, name: str = "f", everywhere: bool = False) -> set[str]:
    graph = graph_of(root, source)
    module = graph.modules[0]
    return {each.name for each in graph.escapes(Place(module, module.definitions[name]), everywhere)}


MUST = [
    ("def f(): raise Full()", {"Full"}),
    ("def f(): raise Full", {"Full"}),
    ("def f(): raise os.error('x') from None", set()),  # a name in lower case may be any value
    ("def f(error): raise error", set()),
    ("def f():\n    try: g()\n    except Full: raise", set()),
    ("def f():\n    try: raise Full()\n    except Full: pass", set()),
    ("def f():\n    try: raise Worse()\n    except Full: pass", set()),
    ("def f():\n    try: raise Full()\n    except Worse: pass", {"Full"}),
    ("def f():\n    try: raise Full()\n    except (KeyError, Full): pass", set()),
    ("def f():\n    try: raise Full()\n    except: pass", set()),
    ("def f():\n    try: raise Full()\n    except Exception: pass", set()),
    ("def f():\n    try: raise Full()\n    except BaseException: pass", set()),
    ("def f():\n    try: raise Full()\n    except Full as e: raise e", {"Full"}),
    ("def f():\n    try: raise Full()\n    except Full as e: raise KeyError() from e", {"KeyError"}),
    ("def f():\n    try: pass\n    except Full: raise Worse()", {"Worse"}),
    ("def f():\n    try: pass\n    except Full: pass\n    else: raise Worse()", {"Worse"}),
    ("def f():\n    try: pass\n    finally: raise Worse()", {"Worse"}),
    ("def f():\n    try: raise Odd()\n    except KeyError: pass", {"Odd"}),
    ("def f():\n    def inner(): raise Full()\n    return inner", set()),
    ("def f():\n    return lambda: _g()\ndef _g(): raise Full()", set()),
    ("def f():\n    class Inner:\n        def g(self): raise Full()", set()),
    ("def f(): _g()\ndef _g(): raise Full()", {"Full"}),
    ("def f(): _g()\ndef _g(): _h()\ndef _h(): raise Full()", {"Full"}),
    ("def f(): g()\ndef g(): raise Full()", set()),  # a public function speaks for itself
    ("def f():\n    try: _g()\n    except Full: pass\ndef _g(): raise Worse()", set()),
    ("def f(_g): _g()\ndef _g(): raise Full()", set()),  # the parameter, not the function
    ("def f():\n    _g = 3\n    _g()\ndef _g(): raise Full()", set()),
    ("def f(): _f()\ndef _f():\n    f()\n    raise Full()", {"Full"}),
    ("def f(x): assert x", set()),
    ("def f(x):\n    match x:\n        case 1: raise Full()", {"Full"}),
    ("def f(x):\n    with x:\n        for y in x:\n            while y: raise Full()", {"Full"}),
    ("async def f(x):\n    async with x:\n        async for y in x: raise Full()", {"Full"}),
]
METHODS = [
    ("class B:\n    def f(self): self._g()\n    def _g(self): raise Full()", {"Full"}),
    ("class B:\n    def f(self): self.b._g()\n    def _g(self): raise Full()", set()),  # another object's method
    ("class B:\n    @classmethod\n    def f(cls): cls._g()\n    def _g(self): raise Full()", {"Full"}),
    ("class A:\n    def _g(self): raise Full()\nclass B(A):\n    def f(self): self._g()", {"Full"}),
    ("class _C:\n    def __init__(self): raise Full()\nclass B:\n    def f(self): _C()", {"Full"}),
    ("class _C:\n    def __post_init__(self): raise Full()\nclass B:\n    def f(self): _C()", {"Full"}),
    ("class _C:\n    def g(self): raise Full()\nclass B:\n    def f(self): _C()", set()),
]


@pytest.mark.parametrize(("source", "names"), MUST)
def test_what_certainly_leaves_a_function_must_be_documented(tmp_path: Path, source: str, names: set[str]) -> None:
    assert escapes(tmp_path, source) == names


@pytest.mark.parametrize(("source", "names"), METHODS)
def test_calls_of_the_own_object_and_of_private_classes_are_followed(
    tmp_path: Path, source: str, names: set[str]
) -> None:
    assert escapes(tmp_path, source, "B.f") == names


CLASSES = "".join(f"class C{at}:\n    def go(self): raise Full()\n" for at in range(4))
MAY = [
    ("def f(x): x.go()\n" + CLASSES, {"Full"}),
    # with a fifth candidate the name says nothing
    ("def f(x): x.go()\n" + CLASSES + "class D:\n    def go(self): raise Full()\n", set()),
    ("def f(x): x.close()\nclass C:\n    def close(self): raise Full()\n", set()),
    ("def f(x): x.append(3)\nclass C:\n    def append(self, x): raise Full()\n", set()),
    ("def f(): json.go()\n" + CLASSES, set()),  # the imported module's, not a method of ours
    ("def f(x): make(x).go()\n" + CLASSES, {"Full"}),
    ("def f(x): assert x", {"AssertionError"}),
    ("def f(x):\n    def inner():\n        assert x\n    return inner", set()),
    ("def f(): g()\ndef g(): raise Full()", {"Full"}),
    ("def f(json): json.go()\n" + CLASSES, {"Full"}),
]


def test_a_method_of_what_the_own_object_holds_is_a_candidate_and_not_the_own_method(tmp_path: Path) -> None:
    source = "class B:\n    def f(self): self.b.go()\nclass C:\n    def go(self): raise Full()\n"
    assert escapes(tmp_path, source, "B.f", everywhere=True) == {"Full"}
    own = "class B:\n    def f(self): self.go()\nclass C:\n    def go(self): raise Full()\n"
    assert escapes(tmp_path, own, "B.f", everywhere=True) == set()


@pytest.mark.parametrize(("source", "names"), MAY)
def test_what_may_leave_a_function_follows_every_candidate(tmp_path: Path, source: str, names: set[str]) -> None:
    assert escapes(tmp_path, source, everywhere=True) == names


def messages(root: Path, source: str, errors: str, stub: str = "def f(x): ...", name: str = "f") -> list[str]:
    (root / "act.py").write_text(HEAD + textwrap.dedent(source))
    fence = f"#### 5.1.1 `{name}`\n\n- errors: {errors}\n\n```python\n{stub}\n```\n"
    head = "---\nid: x\ntitle: X\nversion: 0.1\nstatus: draft\nroots: []\n---\n# X\n\n## 5. APIs\n\n### 5.1 `act`\n\n"
    found = drift(parse_document(head + fence, root / "design" / "x.md"), Code(root)).findings
    return [each.message.partition(": ")[2] or each.message for each in found]


DOCUMENTED = [
    ("def f(x): raise Full()", "Full when it is", []),
    ("def f(x): raise Worse()", "Full when it is", []),
    ("def f(x): raise Full()", "Worse when it is", ["Full is raised (act.py:10) and not documented", "never raised"]),
    ("def f(x): pass", "Full when it is", ["never raised"]),
    ("def f(x): pass", "ValueError", ["never raised"]),
    ("def f(x): pass", "KeyError", []),  # any expression may raise it
    ("def f(x): pass", "requests.Timeout when slow", []),  # nothing is known of it
    ("def f(x): json.loads(x)", "ValueError from json.loads when odd", []),
    ("def f(x): json.loads(x)", "ValueError from loads when odd", []),
    ("def f(x): g(x)\ndef g(x): json.loads(x)", "ValueError from json.loads when odd", []),
    ("def f(x): json.dumps(x)", "ValueError from json.loads when odd", ["said to come from `json.loads`"]),
    ("def f(x): x.go()\nclass C:\n    def go(self): raise Full()", "Full when it is", []),
    ("def f(x): assert x", "AssertionError", []),
]


@pytest.mark.parametrize(("source", "errors", "parts"), DOCUMENTED)
def test_a_documented_error_must_be_possible(tmp_path: Path, source: str, errors: str, parts: list[str]) -> None:
    (tmp_path / "act.py").write_text(HEAD + source)
    document = "---\nid: x\ntitle: X\nversion: 0.1\nstatus: draft\nroots: [act.py]\n---\n# X\n\n## 5. APIs\n\n"
    document += f"### 5.1 `act`\n\n#### 5.1.1 `f`\n\n- errors: {errors}\n\n```python\ndef f(x): ...\n```\n"
    report = drift(parse_document(document, tmp_path / "design" / "x.md"), Code(tmp_path))
    found = [each.message for each in report.findings if each.code == "DRF012"]
    assert len(found) == len(parts), found
    assert all(part in text for part, text in zip(parts, found, strict=True)), found


def test_errors_of_an_entry_that_is_missing_in_the_code_are_not_judged(tmp_path: Path) -> None:
    found = messages(tmp_path, "def g(x): ...", "ValueError when odd", "def f(x): ...")
    assert len(found) == 1 and "in the document, not in the code" in found[0]


def test_the_constructor_speaks_for_its_class_unless_it_is_an_entry_of_its_own(tmp_path: Path) -> None:
    source = "class C:\n    def __init__(self, x): raise Full()\n"
    stub = "class C:\n    def __init__(self, x): ..."
    assert messages(tmp_path, source, "-", stub, "C") == ["Full is raised (act.py:11) and not documented"]
    assert messages(tmp_path, source, "Full", stub, "C") == []
    folded = "### 5.1 `act`\n\n```python\nclass C:\n    def __init__(self, x):\n        raise Full\n        ...\n```\n"
    head = "---\nid: x\ntitle: X\nversion: 0.1\nstatus: draft\nroots: []\n---\n# X\n\n## 5. APIs\n\n"
    assert drift(parse_document(head + folded, tmp_path / "design" / "x.md"), Code(tmp_path)).findings == ()
    bare = folded.replace("        raise Full\n", "")
    (finding,) = drift(parse_document(head + bare, tmp_path / "design" / "x.md"), Code(tmp_path)).findings
    assert "Full is raised" in finding.message
