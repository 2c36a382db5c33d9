"""All servers of this process: one for equal settings."""

from __future__ import annotations

import os
import threading

from concertino_vllm.settings import VllmSettings

from .server import VllmServer
from .state import leave_state_folders_to_parent

_servers: dict[VllmSettings, VllmServer] = {}
_lock = threading.Lock()


def server_of(settings: VllmSettings) -> VllmServer:
    """The server of these settings."""
    with _lock:
        if settings not in _servers:
            _servers[settings] = VllmServer(settings)
        return _servers[settings]


def _start_afresh() -> None:
    """In a forked child: the servers that run, and their files, are the parent's; the child starts its own."""
    global _lock  # noqa: PLW0603 - another thread of the parent may have held it
    leave_state_folders_to_parent()
    _lock = threading.Lock()
    for server in _servers.values():
        server.forget()


os.register_at_fork(after_in_child=_start_afresh)
