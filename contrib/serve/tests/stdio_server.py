"""An MCP server on stdin and stdout for tests: `stdio_server.py FOLDER`. Its members print, as members do."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import concertino as ct
from concertino_serve.mcp_stdio import serve_stdio
from concertino_serve.serve_settings import Preset, ServeSettings


def main(folder: Path) -> None:
    running = folder / "running"

    @ct.tool
    async def wait() -> str:
        """Wait for ever; while it does there is a file."""
        running.touch()
        try:
            await asyncio.sleep(600)
        finally:
            running.unlink()
        return "waited"

    @ct.tool
    def add(a: int, b: int) -> dict[str, int]:
        """Add."""
        sys.stdout.write("printed by a member\n")
        return {"sum": a + b}

    class Model(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            return ct.Reply("".join(ct.ParallelRounds().write_answer("It is 5.")))

    pool = ct.Pool.of(wait, add, ct.ModelSpec("m/lead", Model)).bind(orchestrator="m/lead")
    presets = {"helper": Preset("helper", pool, strategy=ct.ParallelRounds())}
    asyncio.run(serve_stdio(ServeSettings(presets, traces=folder / "runs")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
