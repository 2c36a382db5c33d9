"""The pool as an MCP server on stdin and stdout, for the client that starts it.

Invariants: the program that starts the process is its only client, so it needs no key, and only the limits of presets
and of the whole server hold. Its runs end with it: no later start resumes them, for another client would pay for them.
"""

from __future__ import annotations

import dataclasses

from mcp.server.stdio import stdio_server

from .mcp_server import McpService
from .serve_settings import ServeSettings
from .web_app import serving_of


async def serve_stdio(settings: ServeSettings) -> None:
    """Answer the client until it closes stdin.

    Raises:
        UsageError: as `McpService`.
        PoolError: as `McpService`.
    """
    serving = serving_of(dataclasses.replace(settings, keys=()))
    server = McpService(serving).server
    try:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
    finally:
        await serving.hub.close(for_good=True)
