"""Plugins: installed distributions, found by their metadata, imported when they are needed, and never trusted to work.

    _manager    what is installed, what of it is loaded, and what it gives
    _discovery  the scan of metadata                _status    what the table of plugins shows
    _guard      running plugin code at arm's length _hooks     checking and calling hook implementations
    _members    checking published members          _patterns  naming members in bulk

The manager is imported at its first use: a pool made by hand needs the patterns only.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._manager import PluginManager, default_manager
    from ._status import PluginInfo

__all__ = ["PluginInfo", "PluginManager", "default_manager"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'concertino.plugins' has no attribute {name!r}")
    from . import _manager, _status

    return getattr(_status if name == "PluginInfo" else _manager, name)
