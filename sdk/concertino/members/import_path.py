"""Where another process finds a function: its module and its qualified name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from concertino.core.errors import SpecError


def import_path(function: Callable[..., Any], name: str) -> tuple[str, str]:
    """Module and qualified name under which a worker finds a function.

    Raises:
        SpecError: the function cannot be imported by another process.
    """
    module, qualname = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if not module or module == "__main__" or "<" in qualname:
        raise SpecError(
            f"{name!r} with isolation='process' must be a module-level function of an importable module; "
            f"{module}.{qualname} is not"
        )
    return module, qualname
