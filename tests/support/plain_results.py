"""A results file without what differs from run to run, so that two of them can be compared."""

from __future__ import annotations

import json
from pathlib import Path

_TIMES = ("seconds", "critical_path")


def plain_results(out: Path) -> bytes:
    """A results file, sorted, without its times and what names the file's own runs."""
    header, *items = map(json.loads, out.read_bytes().splitlines())
    for name in ("nonce", "started"):
        header.pop(name)
    for item in items:
        item.pop("trace")
        for use in [item, *item["members"].values()]:
            for name in _TIMES:
                use.pop(name, None)
                use["usage"].pop(name, None)
            # Costs of calls at once are added in the order of their ends.
            use["usage"]["usd"] = round(use["usage"].get("usd", 0.0), 9)
    return b"\n".join(sorted(json.dumps(row, sort_keys=True).encode() for row in (header, *items)))
