"""The official SDK's client, over standard input and output, gets facts in small replies and can set a status."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

anyio = pytest.importorskip("anyio")
mcp = pytest.importorskip("mcp")

from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402

from codegen.document.store import document_lock  # noqa: E402
from codegen.mcp.pages import CHARACTERS, ITEMS, LONGEST, page_of, short, text_page  # noqa: E402
from codegen.mcp.tools import Tools  # noqa: E402
from tests.codegen.workflow.conftest import Pantry, implement  # noqa: E402

Call = Callable[..., Awaitable[dict[str, Any]]]


def served(pantry: Pantry, talk: Callable[[Any, Call], Awaitable[None]]) -> None:
    """Run `talk` with a session and a function that calls a tool and gives its reply."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), str(pantry.root)])}
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "codegen", "mcp", "--root", str(pantry.root)],
        env=environment,
    )

    async def main() -> None:
        with anyio.fail_after(120):
            async with stdio_client(parameters) as (read, write), mcp.ClientSession(read, write) as session:
                await session.initialize()

                async def call(name: str, **arguments: Any) -> dict[str, Any]:
                    result = await session.call_tool(name, arguments)
                    text = "".join(block.text for block in result.content)
                    return {"error": text} if result.is_error else json.loads(text)

                await talk(session, call)

    anyio.run(main)


@pytest.mark.slow
def test_a_client_sees_the_tools_and_drives_a_step(pantry: Pantry) -> None:
    async def talk(session: Any, call: Call) -> None:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(tools) == {"lint", "status", "next_step", "brief", "set_status", "expand_check", "drift"}
        assert all(tool.description for tool in tools.values())
        assert (await call("next_step"))["next"]["number"] == 1
        status = await call("status")
        assert [(row["step"], row["status"]) for row in status["items"]] == [
            (1, "NOT_STARTED"),
            (2, "NOT_STARTED"),
            (3, "NOT_STARTED"),
        ]
        assert "VAL: VAL_INT_RANGE(grams, min=1, max=5000)" in (await call("brief", step=1))["text"]
        assert "not approved: D-1" in (await call("set_status", step=1, status="IN_PROGRESS"))["error"]
        implement(pantry, 1)
        assert (await call("expand_check", paths=["pantry"]))["summary"] == "no findings"
        assert (await call("set_status", step=1, status="DONE"))["status"] == "DONE"
        assert (await call("next_step"))["next"]["number"] == 2
        assert "there is no page 9" in (await call("drift", page=9))["error"]

    served(pantry, talk)
    assert pantry.statuses()[1] == "DONE"


def tools(pantry: Pantry) -> Tools:
    return Tools(pantry.root, lambda document: [])


def test_a_step_that_does_not_verify_is_not_done(pantry: Pantry) -> None:
    implement(pantry, 1)
    pantry.change("tests/test_jar.py", "== 5", "== 6")
    reply = tools(pantry).set_status(1, "DONE")
    assert (reply["status"], reply["items"][0]["code"]) == ("IN_PROGRESS", "STEP011")
    assert "AssertionError" in reply["output"]
    assert pantry.statuses()[1] == "IN_PROGRESS"


def test_a_failure_needs_a_kind_and_is_recorded(pantry: Pantry) -> None:
    implement(pantry, 1)
    with pytest.raises(Exception, match="FAILED needs a reason and a kind"):
        tools(pantry).set_status(1, "FAILED")
    reply = tools(pantry).set_status(1, "FAILED", kind="design-gap", reason="no jar")
    assert reply["revise"] == ("D-1", "pantry.jar.Jar", "pantry.jar.fill")
    assert pantry.statuses()[1] == "FAILED"


def test_replies_stay_small_whatever_there_is_to_say() -> None:
    assert len(short("x" * 10_000)) == LONGEST
    small = page_of([{"message": "x"}] * 1000, 2)
    assert (small["total"], small["pages"], len(small["items"])) == (1000, 1000 // ITEMS, ITEMS)
    row = {name: short("x" * 10_000) for name in ("path", "message", "fix", "code")}
    items = [{**row, "line": at} for at in range(100)]
    first = page_of(items, 1)
    replies = [page_of(items, number) for number in range(1, first["pages"] + 1)]
    assert [item for reply in replies for item in reply["items"]] == items
    assert max(len(json.dumps(reply)) for reply in replies) < CHARACTERS + 200
    assert page_of([], 1) == {"total": 0, "page": 1, "pages": 1, "items": []}


@pytest.mark.slow
def test_a_client_that_errs_is_told_and_one_that_pages_gets_all(pantry: Pantry) -> None:
    many = "".join(f"def f{at}(x: int) -> int:\n    # VAL: VAL_NON_EMPTY(x)\n    return x\n\n\n" for at in range(60))
    pantry.write("pantry/many.py", many)

    async def talk(session: Any, call: Call) -> None:
        first = await call("expand_check", paths=["pantry"])
        assert (first["total"], len(first["items"])) == (60, min(ITEMS, len(first["items"])))
        lines: list[int] = []
        for page in range(1, first["pages"] + 1):
            reply = await call("expand_check", paths=["pantry"], page=page)
            assert len(json.dumps(reply)) < CHARACTERS + 500
            lines += [item["line"] for item in reply["items"]]
        assert lines == [2 + 5 * at for at in range(60)]
        for name, arguments, told in (
            ("brief", {"step": 9}, "9"),
            ("brief", {"step": "two"}, "step"),
            ("brief", {}, "step"),
            ("brief", {"step": 1, "page": 0}, "there is no page 0"),
            ("status", {"document": "nowhere"}, "nowhere"),
            ("set_status", {"step": 1, "status": "VERIFIED"}, "status"),
            ("set_status", {"step": 2, "status": "IN_PROGRESS"}, "Step 2"),
            ("expand_check", {"paths": ["../"]}, "outside of the project"),
            ("expand_check", {"paths": ["/etc"]}, "outside of the project"),
            ("expand_check", {"paths": ["nothing.py"]}, "nothing.py"),
        ):
            error = (await call(name, **arguments))["error"]
            assert told in error and "Traceback" not in error, (name, arguments, error)
        with document_lock(pantry.root / "design/pantry.md", "an editor"):
            busy = await call("set_status", step=1, status="FAILED", kind="code-bug", reason="r")
            assert "held by process" in busy["error"]
        pantry.change("design/pantry.md", "| 3 | The report |", "| 3 | The new report |")
        rows = (await call("status"))["items"]
        assert rows[2]["title"] == "The new report", "an edit by somebody else is seen at once"
        both = {step: await call("set_status", step=1, status="DONE") for step in (1, 2)}
        assert all("status" in each or "error" in each for each in both.values())

    served(pantry, talk)
    assert set(pantry.statuses().values()) == {"NOT_STARTED"}


def test_the_pages_of_a_text_make_the_text() -> None:
    text = "".join(f"line {number}\n" for number in range(5000)) + "y" * 20_000
    first = text_page(text, 1)
    pieces = [text_page(text, number)["text"] for number in range(1, first["pages"] + 1)]
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= CHARACTERS
