"""Changes of a pool that another process finds by their name: functions of this package, with plain arguments.

Invariant: what comes from elsewhere names functions of this package alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from concertino import Pool, UsageError

_OWN = "concertino_bench."


def change_to_json(change: Callable[[Pool], Pool]) -> dict[str, Any] | None:
    """The name and the arguments of a change; None for one that only this process has."""
    function, given = change, dict[str, Any]()
    if isinstance(change, partial):
        function, given = change.func, change.keywords
        if change.args:
            return None
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if not module.startswith(_OWN) or not name.isidentifier():
        return None
    try:
        plain = json.loads(json.dumps(given))
    except (TypeError, ValueError):
        return None
    return {"module": module, "function": name, "arguments": plain}


def change_from_json(data: Mapping[str, Any]) -> Callable[[Pool], Pool]:
    """The inverse of `change_to_json`.

    Raises:
        UsageError: this version has no such change.
    """
    module, name = str(data["module"]), str(data["function"])
    try:
        if not module.startswith(_OWN):
            raise ImportError(module)
        return partial(getattr(import_module(module), name), **data["arguments"])
    except (ImportError, AttributeError):
        raise UsageError(f"no change {module}:{name} of a pool here; install the same distributions") from None
