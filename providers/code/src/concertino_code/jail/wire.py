"""The messages between the caller and a supervisor: one JSON header, then raw blobs, on one socket per execution.

The socket is the whole connection: what to run goes in, one result comes out, and its closing by the caller is the
order to end at once. The script's process never holds it.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

_HEADER = struct.Struct(">II")
MOST_BYTES = 256 << 20


def pack(message: Mapping[str, Any], blobs: Sequence[bytes] = ()) -> bytes:
    """A message as bytes."""
    head = json.dumps({**message, "blobs": [len(blob) for blob in blobs]}).encode("ascii")
    body = b"".join((head, *blobs))
    return _HEADER.pack(len(head), len(body)) + body


def unpack(data: bytes | bytearray) -> tuple[dict[str, Any], list[bytes]] | None:
    """The message and its blobs; None while bytes are missing.

    Raises:
        ValueError: this is not a message.
    """
    if len(data) < _HEADER.size:
        return None
    head_length, length = _HEADER.unpack_from(data)
    if length > MOST_BYTES or head_length > length:
        raise ValueError(f"a message of {length} bytes; at most {MOST_BYTES} are taken")
    if len(data) < _HEADER.size + length:
        return None
    place = _HEADER.size + head_length
    message = json.loads(data[_HEADER.size : place])
    blobs = []
    for size in message.pop("blobs"):
        blobs.append(bytes(data[place : place + size]))
        place += size
    return message, blobs


def receive(connection: socket.socket, seconds: float) -> tuple[dict[str, Any], list[bytes]] | None:
    """Wait for one message; None if the other side is gone or too slow."""
    connection.settimeout(seconds)
    data = bytearray()
    try:
        while (message := unpack(data)) is None:
            more = connection.recv(1 << 18)
            if not more:
                return None
            data += more
    except OSError:
        return None
    return message
