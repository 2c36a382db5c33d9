"""The server of an MCP registry: what it needs, and what it would start."""

import os
from pathlib import Path

import concertino as ct

for key in ("", "secret"):
    os.environ["WEATHER_KEY"] = key
    try:
        print(ct.Pool.of(Path("server.json")))
    except ct.UsageError as error:
        print(error)
