"""What crosses a package's border counts, under the name users reach it by; what stays inside is counted beside it."""

from __future__ import annotations

import importlib
import inspect
import sys
import textwrap
from pathlib import Path

import pytest

from codegen.diagnostics import UsageError
from codegen.document.parse import parse_document
from codegen.drift.code import Code
from codegen.drift.report import DriftReport, drift
from codegen.drift.surface import Surface, surface_of


def project(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return root


def read(root: Path, head: str = "roots: [web]", section: str = "") -> tuple[Surface, DriftReport]:
    text = f"---\nid: x\ntitle: X\nversion: 0.1\nstatus: draft\n{head}\n---\n# X\n\n## 5. APIs\n\n{section}"
    document = parse_document(text, root / "design" / "x.md")
    return surface_of(document, Code(root)), drift(document, Code(root))


def reached(root: Path, head: str = "roots: [web]") -> dict[str, str]:
    """The name users reach it by → where it is defined."""
    return {each.name: each.place.full_name for each in read(root, head)[0].reached}


def inside(root: Path, head: str = "roots: [web]") -> set[str]:
    return set(read(root, head)[0].inside)


CLIENT = """\
    class Base:
        def build(self): ...
        def close(self): ...
        def _hidden(self): ...

    class Client(Base):
        timeout: int = 3
        def __init__(self, base): ...
        def get(self, url): ...
        def close(self): ...
        class Options:
            def merge(self): ...

    def helper(): ...
"""


def test_names_re_exported_from_private_modules_count_one_by_one(tmp_path: Path) -> None:
    project(tmp_path, {"web/__init__.py": "from ._client import Client", "web/_client.py": CLIENT})
    assert reached(tmp_path) == {
        "web.Client": "web._client.Client",
        "web.Client.build": "web._client.Base.build",
        "web.Client.get": "web._client.Client.get",
        "web.Client.close": "web._client.Client.close",
        "web.Client.Options": "web._client.Client.Options",
        "web.Client.Options.merge": "web._client.Client.Options.merge",
    }
    _, report = read(tmp_path)
    assert (report.coverage.covered_count, report.coverage.total) == (0, 6)
    assert "web.Client.build (defined as web._client.Base.build) is public and Section 5 does not define it" in (
        report.findings[0].message
    )


@pytest.mark.parametrize("module", ["web", "web._client"])
def test_a_name_is_covered_under_its_own_and_under_its_users_name(tmp_path: Path, module: str) -> None:
    project(tmp_path, {"web/__init__.py": "from ._api import get", "web/_api.py": "def get(url): ...\n"})
    section = (
        f"### 5.1 `{module.replace('_client', '_api')}`\n\n#### 5.1.1 `get`\n\n```python\ndef get(url): ...\n```\n"
    )
    _, report = read(tmp_path, section=section)
    assert report.findings == () and (report.coverage.covered_count, report.coverage.total) == (1, 1)


STARRED = {
    "shop/__init__.py": """\
        from ._a import *
        from ._b import *
        from . import extra
        __all__ = ["one", "Two", "renamed", "VALUE", "extra"]
        from ._c import original as renamed
        """,
    "shop/_a.py": "__all__ = ['one', 'unlisted']\ndef one(): ...\ndef unlisted(): ...\n",
    "shop/_b.py": "class Two:\n    def two(self): ...\ndef three(): ...\nVALUE = 3\n",
    "shop/_c.py": "def original(): ...\n",
    "shop/extra.py": "def more(): ...\n",
}


def test_what_import_star_of_the_running_package_gives_is_what_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path, STARRED)
    monkeypatch.syspath_prepend(str(root))
    given: dict[str, object] = {}
    exec("from shop import *", given)
    callables = {f"shop.{name}" for name, each in given.items() if inspect.isclass(each) or inspect.isfunction(each)}
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        importlib.invalidate_caches()
        del sys.modules[name]
    tops = {name for name in reached(root, "roots: [shop]") if name.count(".") == 1}
    assert tops == callables == {"shop.one", "shop.Two", "shop.renamed"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("__all__ = ['a']", {"web.a"}),
        ("__all__ = ('a', 'b')", {"web.a", "web.b"}),
        ("__all__ = ['a'] + ['b']", {"web.a", "web.b"}),
        ("__all__ = ['a']\n__all__ += ['b']", {"web.a", "web.b"}),
        ("__all__ = ['a']\n__all__.extend(['b'])", {"web.a", "web.b"}),
        ("__all__ = ['a']\n__all__.append('_c')", {"web.a", "web._c"}),
        ("__all__: list[str] = ['a']", {"web.a"}),
        ("from . import _d\n__all__ = ['a', *_d.__all__]\nfrom ._d import d", {"web.a", "web.d"}),
        ("from . import _d\n__all__ = _d.__all__ + ['b']\nfrom ._d import d", {"web.d", "web.b"}),
        # what cannot be read from the text is no narrower border
        ("__all__ = sorted(globals())", {"web.a", "web.b"}),
        ("__all__ = [name for name in ('a',)]", {"web.a", "web.b"}),
        ("", {"web.a", "web.b"}),
    ],
)
def test_all_is_read_as_python_reads_it(tmp_path: Path, text: str, names: set[str]) -> None:
    body = "def a(): ...\ndef b(): ...\ndef _c(): ...\n"
    project(tmp_path, {"web/__init__.py": body, "web/_d.py": "__all__ = ['d']\ndef d(): ...\n"})
    (tmp_path / "web/__init__.py").write_text(body + text + "\n")
    assert set(reached(tmp_path)) == names


APPLICATION = {
    "pyproject.toml": "[project.scripts]\nweb = 'web.cli:main'\n",
    "web/__init__.py": "",
    "web/cli.py": "from web.store import open_store\ndef main(): ...\ndef parse(): ...\n",
    "web/store/__init__.py": "from web.store.files import open_store, Store\n",
    "web/store/files.py": (
        "class Store:\n    def put(self): ...\ndef open_store(): ...\ndef inner(): ...\ndef _no(): ...\n"
    ),
    "web/store/locks.py": "from web.store.files import inner\nclass Lock:\n    def free(self): ...\ndef wait(): ...\n",
    "web/worker.py": (
        "from web.store import locks\nfrom web.cli import parse as p\ndef run():\n    return locks.Lock().free()\n"
    ),
}


def test_what_a_command_runs_and_what_crosses_a_sub_package_counts(tmp_path: Path) -> None:
    found = reached(project(tmp_path, APPLICATION))
    assert found == {
        "web.cli.main": "web.cli.main",
        "web.store.Store": "web.store.files.Store",
        "web.store.Store.put": "web.store.files.Store.put",
        "web.store.open_store": "web.store.files.open_store",
        "web.store.locks.Lock": "web.store.locks.Lock",
        "web.store.locks.Lock.free": "web.store.locks.Lock.free",
        "web.worker.run": "web.worker.run",
    }
    # `parse` is imported inside of its own package, `inner` inside of its sub-package, `wait` by nobody
    assert inside(tmp_path) == {"web.cli.parse", "web.store.files.inner", "web.store.locks.wait"}


def test_surface_all_counts_everything_public(tmp_path: Path) -> None:
    project(tmp_path, APPLICATION)
    head = "roots: [web]\nsurface: all"
    assert {"web.cli.parse", "web.store.files.inner", "web.store.locks.wait"} < set(reached(tmp_path, head))
    assert "web.store.files._no" not in set(reached(tmp_path, head)) and inside(tmp_path, head) == set()


def test_another_word_for_the_surface_is_refused_with_its_place(tmp_path: Path) -> None:
    project(tmp_path, APPLICATION)
    with pytest.raises(UsageError, match=r"x\.md:7: `surface: everything` is neither `border` nor `all`"):
        read(tmp_path, "roots: [web]\nsurface: everything")


@pytest.mark.parametrize(
    "importer",
    [
        "from web.store.files import inner",
        "from web.store import files\nfiles.inner()",
        "import web.store.files\nweb.store.files.inner()",
        "import web.store.files as f\nprint(f.inner)",
        "from importlib import import_module\nimport_module('web.store.files').inner()",
        "import web.store.files as f\nregister(f)",
        "def late():\n    from web.store.files import inner\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from web.store.files import inner",
        "from web.store.files import *",
    ],
)
def test_each_way_to_import_a_name_crosses_the_border(tmp_path: Path, importer: str) -> None:
    project(tmp_path, APPLICATION | {"shop/__init__.py": importer})
    assert "web.store.files.inner" in reached(tmp_path)


@pytest.mark.parametrize(
    "importer",
    ["from web.store import files", "import web.store.files", "import web\nprint(web.__name__)", "inner = 3"],
)
def test_importing_a_module_alone_reaches_none_of_its_names(tmp_path: Path, importer: str) -> None:
    project(tmp_path, APPLICATION | {"shop/__init__.py": importer})
    assert "web.store.files.inner" in inside(tmp_path)


@pytest.mark.parametrize(
    "path", ["tests/__init__.py", "web/tests/__init__.py", "web/store2/test_it.py", "web/store2/conftest.py"]
)
def test_what_only_a_test_imports_stays_inside(tmp_path: Path, path: str) -> None:
    project(tmp_path, APPLICATION | {path: "from web.store.files import inner\ndef helper(): ...\n"})
    assert "web.store.files.inner" in inside(tmp_path)
    assert not [name for name in reached(tmp_path) if name.endswith("helper")]


@pytest.mark.parametrize(
    "path", ["web/testing.py", "web/latest.py", "web/contest/x.py", "web/tests.py", "web/attest_x.py"]
)
def test_a_module_that_only_sounds_like_a_test_is_none(tmp_path: Path, path: str) -> None:
    project(tmp_path, APPLICATION | {path: "def helper(): ...\n"})
    assert [name for name in reached(tmp_path) if name.endswith("helper")]


@pytest.mark.parametrize("exclude", ["web/store", "[web/store/files.py, web/store/locks.py]", "web/store/*.py"])
def test_exclude_leaves_out_folders_files_and_globs(tmp_path: Path, exclude: str) -> None:
    project(tmp_path, APPLICATION | {"web/storehouse.py": "def keep(): ...\n"})
    found = reached(tmp_path, f"roots: [web]\nexclude: {exclude}")
    assert set(found) == {"web.cli.main", "web.worker.run", "web.storehouse.keep"}


@pytest.mark.parametrize("exclude", ["/", "web/nothing", "*.txt", "e", "web/stor"])
def test_exclude_leaves_out_whole_parts_of_paths_only(tmp_path: Path, exclude: str) -> None:
    project(tmp_path, APPLICATION)
    assert reached(tmp_path, f"roots: [web]\nexclude: {exclude!r}") == reached(tmp_path)


def test_a_root_that_is_a_folder_of_tests_is_looked_at(tmp_path: Path) -> None:
    project(tmp_path, {"tests/kit/__init__.py": "def make(): ...\n"})
    assert set(reached(tmp_path, "roots: [tests/kit]")) == {"tests.kit.make"}


def test_a_package_that_declares_nothing_offers_everything_public(tmp_path: Path) -> None:
    files = {"web/__init__.py": "__version__ = '1'\n", "web/a.py": "from web.b import two\ndef one(): ...\n"}
    project(tmp_path, files | {"web/b.py": "def two(): ...\ndef three(): ...\n"})
    assert set(reached(tmp_path)) == {"web.a.one", "web.b.two", "web.b.three"}
    (tmp_path / "web/__main__.py").write_text("from web.a import one\n")
    # with a `__main__` it is an application: what that imports counts
    assert set(reached(tmp_path)) == {"web.a.one"} and inside(tmp_path) == {"web.b.two", "web.b.three"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[project.scripts]\nx = 'web._cli:go'\n"),
        ("pyproject.toml", "[project.gui-scripts]\nx = 'web._cli:go'\n"),
        ("pyproject.toml", "[project.entry-points.'a.plugin']\nx = 'web._cli:go [extra]'\n"),
        ("pyproject.toml", "[tool.poetry.scripts]\nx = 'web._cli:go'\n"),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts =\n    x = web._cli:go\n"),
        ("web-1.dist-info/entry_points.txt", "[console_scripts]\nx = web._cli:go\n"),
    ],
)
def test_commands_and_entry_points_count_where_they_are_declared(tmp_path: Path, name: str, text: str) -> None:
    project(tmp_path, {"web/__init__.py": "", "web/_cli.py": "def go(): ...\ndef no(): ...\n"})
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert reached(tmp_path) == {"web._cli.go": "web._cli.go"}
    (only,) = read(tmp_path)[0].reached
    assert only.why == ("entry point x" if "plugin" in text else "command x")


def test_a_project_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    project(tmp_path, {"web/__init__.py": "", "pyproject.toml": "[project\n"})
    with pytest.raises(UsageError, match=r"pyproject\.toml: is not TOML"):
        read(tmp_path)


def test_a_name_of_another_public_module_is_counted_there_and_one_of_a_private_module_here(tmp_path: Path) -> None:
    files = {"new/__init__.py": "from old.shown import a\nfrom old._own import b\n__all__ = ['a', 'b']\n"}
    project(
        tmp_path, files | {"old/__init__.py": "", "old/shown.py": "def a(): ...\n", "old/_own.py": "def b(): ...\n"}
    )
    assert reached(tmp_path, "roots: [new]") == {"new.b": "old._own.b"}


def test_a_file_that_is_no_python_elsewhere_in_the_project_hides_nothing(tmp_path: Path) -> None:
    project(
        tmp_path, APPLICATION | {"shop/__init__.py": "from web.store.files import inner\n", "shop/old.py": "print 3\n"}
    )
    assert "web.store.files.inner" in reached(tmp_path)


def test_a_name_that_is_documented_is_compared_on_the_surface_or_not(tmp_path: Path) -> None:
    project(tmp_path, APPLICATION)
    section = "### 5.1 `web.store.files`\n\n#### 5.1.1 `inner`\n\n```python\ndef inner(gone): ...\n```\n"
    _, report = read(tmp_path, section=section)
    assert "inner: parameter `gone` is not in the code" in report.findings[0].message
    assert "web.store.files.inner" not in report.coverage.inside


def test_the_shortest_name_is_the_one_that_users_reach(tmp_path: Path) -> None:
    project(tmp_path, {"web/__init__.py": "from web.a import f\n", "web/a.py": "def f(): ...\n", "web/b.py": ""})
    (tmp_path / "web/b.py").write_text("from web.a import f\n__all__ = ['f']\n")
    assert reached(tmp_path) == {"web.f": "web.a.f"}


def test_of_two_star_imports_the_later_one_wins(tmp_path: Path) -> None:
    files = {"web/__init__.py": "from ._a import *\nfrom ._b import *\n__all__ = ['f']\n"}
    project(tmp_path, files | {"web/_a.py": "def f(): ...\n", "web/_b.py": "def f(): ...\n"})
    assert reached(tmp_path) == {"web.f": "web._b.f"}
