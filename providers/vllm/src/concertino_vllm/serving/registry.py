"""All servers of this process: one for equal settings."""

from __future__ import annotations

import os
import threading

from concertino_vllm.settings import VllmSettings

from .server import VllmServer
from .state import leave_state_folders_to_parent


class ServerRegistry:
    """All servers of this process, one for equal settings."""

    def __init__(self) -> None:
        self._servers: dict[VllmSettings, VllmServer] = {}
        self._lock = threading.Lock()

    def get(self, settings: VllmSettings) -> VllmServer:
        """The server of these settings."""
        with self._lock:
            if settings not in self._servers:
                self._servers[settings] = VllmServer(settings)
            return self._servers[settings]

    def forget(self) -> None:
        """In a forked child: the servers that run, and their files, are the parent's; the child starts its own."""
        leave_state_folders_to_parent()
        self._lock = threading.Lock()
        for server in self._servers.values():
            server.forget()


_registry = ServerRegistry()
server_of = _registry.get
os.register_at_fork(after_in_child=_registry.forget)
