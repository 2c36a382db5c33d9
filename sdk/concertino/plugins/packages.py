"""Packages of concertino that may be missing: which one brings a provider, and the key that it needs.

Only messages read this table. A provider of anybody else's package is unknown here, and loses nothing by it.
"""

from __future__ import annotations

from concertino.core.services import LOCAL_SERVERS, SERVICE_KEYS

_KEYS = {
    **{name: " and ".join(variables) for name, variables in SERVICE_KEYS.items()},
    **dict.fromkeys(LOCAL_SERVERS, ""),
    "local": "",
    "code": "",
    "mcp": "",
    "reasoning": "",
    "replay": "",
    "scorer": "",
    "search": "",
    "toy": "",
}
"""Providers, and the variables with the keys of those that have one."""


def install_provider(name: str) -> str:
    """What brings a provider, as the rest of a sentence; empty if nobody knows."""
    if name not in _KEYS:
        return ""
    key = f", and set {_KEYS[name]}" if _KEYS[name] else ""
    return f"install it: pip install 'concertino[{name.replace('.', '-')}]'{key}"
