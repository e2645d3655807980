"""The server over standard input and output, on the official SDK (the extra `mcp`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codegen.diagnostics import UsageError
from codegen.mcp.tools import Check, Tools

INSTRUCTIONS = (
    "Design documents are the ledger of this project. Ask next_step and brief before writing code, drift and "
    "expand_check after it. set_status is the only way to change a status; a person reviews and commits."
)
OFFERED = ("lint", "status", "next_step", "brief", "set_status", "expand_check", "drift")


def serve(root: Path, annotations: Check) -> None:
    """Serve until the client closes. UsageError: the SDK is not installed."""
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError as error:
        raise UsageError(f"the MCP server needs the extra `mcp`: pip install 'roll-ts[mcp]' ({error})") from error

    def reported(tool: Callable[..., Any]) -> Callable[..., Any]:
        """The tool, whose refusals reach the client: the SDK keeps the text of any other error to itself."""

        @functools.wraps(tool)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return tool(*args, **kwargs)
            except UsageError as error:
                raise ToolError(str(error)) from error

        return call

    server = MCPServer("codegen", instructions=INSTRUCTIONS)
    tools = Tools(root, annotations)
    for name in OFFERED:
        server.tool()(reported(getattr(tools, name)))
    server.run("stdio")
