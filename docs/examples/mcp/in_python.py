"""A server that a program starts, without a settings file."""

import sys
from pathlib import Path

import concertino as ct
import concertino_mcp

server = Path(__file__).with_name("notes_server.py")
found = concertino_mcp.inspect_server("notes", command=[sys.executable, str(server)], include=["read_*"])
pool = ct.Pool.of(*found.members)
print(found.title, [(spec.name, "writes" if spec.writes else "reads") for spec in pool.members])
concertino_mcp.close()
