"""Plugins: installed distributions, found by their metadata, imported when they are needed, and never trusted to work.

manager     what is installed, what is loaded, and what it offers
hookspecs   the hooks, the only contract with a distribution
discovery   the scan of metadata                settings, provider_settings   what a person set
guard       running plugin code guarded         hooks      checking and calling hook implementations
published   checking published members          status     rows of the table of plugins
"""

from .finding import Finding
from .hookspecs import hookimpl
from .manager import PluginManager, default_manager
from .provider_settings import ProviderSettings

__all__ = [
    "Finding",
    "PluginManager",
    "ProviderSettings",
    "default_manager",
    "hookimpl",
]
