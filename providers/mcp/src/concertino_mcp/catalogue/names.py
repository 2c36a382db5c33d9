"""What a server calls a tool, and what the pool calls it.

A pool shows `read.file` of the server `files` as `files_read_file`, since model servers take letters, digits, '_' and
'-' alone. So two names are different here only if they still are when shown.

Invariant: no two names that one `ToolNames` gave are shown alike, and a name depends only on the server's prefix, the
tool's own name and the names given before. A name that is too long, has odd characters or is taken ends in a hash
of the whole name.
"""

from __future__ import annotations

import hashlib
import re

LIMIT = 59
"""Characters of a name, so that `mcp__name` has 64 at most."""

_ODD = re.compile(r"[^A-Za-z0-9_.-]")
_SHOWN = re.compile(r"[^A-Za-z0-9_-]")
_HASH = 8


class ToolNames:
    """Gives names that stay apart."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}

    def give(self, prefix: str, tool: str) -> str | None:
        """The name of a tool in the pool; None where even its hash is taken (it was listed twice)."""
        whole = f"{prefix}{tool}"
        name = _ODD.sub("_", whole)
        if name != whole or len(name) > LIMIT or not name[:1].isalnum() or not tool:
            name = _hashed(name, whole)
        if self._taken(name):
            name = _hashed(name, whole)
            if self._taken(name):
                return None
        self._shown[_SHOWN.sub("_", name)] = whole
        return name

    def _taken(self, name: str) -> bool:
        return _SHOWN.sub("_", name) in self._shown


def _hashed(name: str, whole: str) -> str:
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    kept = name[: LIMIT - _HASH - 1]
    if not kept[:1].isalnum():
        kept = f"t{kept}"[: LIMIT - _HASH - 1]
    return f"{kept}-{digest}"
