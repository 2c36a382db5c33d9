"""HTTP with a clock and a cap on everything: one exchange, or one stream, and then the connection is closed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from concertino_code.sandbox import SandboxFault, SandboxUnavailable

if TYPE_CHECKING:
    import aiohttp

MOST_BYTES = 64 << 20


@dataclass
class Service:
    """One HTTP service.

    Attributes:
        name: for messages.
        url: its address, without a slash at the end.
        headers: sent with every request; may hold a key, so it is never shown.
        unix_socket: path of the socket to connect to instead of the address.
    """

    name: str
    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    unix_socket: str = ""

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, path: str, *, seconds: float, body: Any = None, headers: dict[str, str] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response whose body is still to be read, all within so many seconds.

        Raises:
            SandboxUnavailable: it refuses the request, as it would again.
            SandboxFault: it could not be reached, failed, or took too long.
        """
        try:
            import aiohttp
        except ImportError:
            raise SandboxUnavailable(f"{self.name} needs aiohttp: pip install 'concertino-code[remote]'") from None
        connector = aiohttp.UnixConnector(self.unix_socket) if self.unix_socket else None
        try:
            async with (
                asyncio.timeout(seconds),
                aiohttp.ClientSession(connector=connector, headers={**self.headers, **(headers or {})}) as session,
                session.request(
                    method, self.url + path, json=body, allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=seconds),
                ) as response,
            ):  # fmt: skip
                await self._check(response)
                yield response
        except aiohttp.ClientConnectorError as error:
            raise SandboxFault(f"{self.name} cannot be reached: {error}") from error
        except aiohttp.ClientError as error:
            raise SandboxFault(f"{self.name}: {type(error).__name__}: {error}", executed=True) from error
        except TimeoutError:
            raise SandboxFault(f"{self.name} gave no answer within {seconds:g} s", executed=True) from None

    async def ask(
        self, method: str, path: str, *, seconds: float, body: Any = None, headers: dict[str, str] | None = None
    ) -> Any:
        """One exchange of JSON; None for an empty answer."""
        async with self.stream(method, path, seconds=seconds, body=body, headers=headers) as response:
            data = await read_capped(response, self.name)
        if not data.strip():
            return None
        try:
            return json.loads(data)
        except ValueError:
            raise SandboxFault(f"{self.name} answered what is no JSON: {data[:80]!r}", executed=True) from None

    async def _check(self, response: aiohttp.ClientResponse) -> None:
        if response.status < 300:
            return
        text = (await response.content.read(400)).decode("utf-8", "replace").strip()
        message = f"{self.name} answered {response.status}: {text}"
        if response.status in (408, 429) or response.status >= 500:
            raise SandboxFault(message, executed=response.status not in (429, 503))
        raise SandboxUnavailable(message)


async def read_capped(response: aiohttp.ClientResponse, name: str) -> bytes:
    """The whole body, unless it is larger than anything that is expected."""
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += chunk
        if len(data) > MOST_BYTES:
            raise SandboxFault(f"{name} answered more than {MOST_BYTES} bytes", executed=True)
    return bytes(data)
