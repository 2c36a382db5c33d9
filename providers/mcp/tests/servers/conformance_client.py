"""A client for the conformance suite: lists the tools of the server at the URL, calls each with fitting arguments."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import concertino as ct
import concertino_mcp

VALUES: dict[str, Any] = {"string": "text", "number": 2, "integer": 2, "boolean": True, "array": [], "object": {}}


async def main() -> int:
    specs = await concertino_mcp.server_async("suite", url=sys.argv[-1], start_timeout=20.0, timeout=20.0)
    failed = 0
    async with ct.Executor() as executor:
        for spec in specs:
            properties = spec.input_schema.get("properties", {})
            arguments = {name: VALUES[schema["type"]] for name, schema in properties.items()}
            (seen,) = await executor.run([ct.Call(spec.name, arguments)], ct.Pool.of(spec))
            sys.stderr.write(f"{spec.name} {seen.status} {seen.content} {seen.error}\n")
            failed += not seen.ok
    return failed


status = asyncio.run(main())
concertino_mcp.close()
sys.exit(status)
