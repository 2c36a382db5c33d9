"""Plugins: installed distributions, found by their metadata, imported when they are needed, and never trusted to work.

manager     what is installed, what is loaded, and what it offers
hookspecs   the hooks, the only contract with a distribution
discovery   the scan of metadata              hooks    checking and calling hook implementations
guard       running plugin code guarded       status   rows of the table of plugins
published   checking published members        sources  members of files, folders and objects
"""

from concertino.core.provider_settings import ProviderSettings

from .finding import Finding
from .hookspecs import hookimpl
from .manager import PluginManager, default_manager

__all__ = [
    "Finding",
    "PluginManager",
    "ProviderSettings",
    "default_manager",
    "hookimpl",
]
