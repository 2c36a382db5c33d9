"""Plain JSON requests to a server, with failures as `ProviderError`s that say which endpoint answered what.

One `VllmClient` belongs to one event loop. It never repeats a request. A cancelled request closes its connection,
which makes vLLM stop the generation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from concertino import FailureClass, ProviderError
from concertino.text import read_stranger_json

if TYPE_CHECKING:
    import aiohttp

_ANSWER_BYTES = 64 * 2**20


class VllmClient:
    """Requests to one address."""

    def __init__(self, base: str, key: str = "") -> None:
        self.base = base
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def get(self, path: str, *, seconds: float | None = 30.0) -> Any:
        """The JSON of a GET; the text where it is none."""
        return await self._request("GET", path, None, seconds)

    async def post(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        """The JSON of a POST; the text where it is none.

        Args:
            body: JSON data; an empty object by default.
            seconds: how long it may take; None for as long as it takes.

        Raises:
            ProviderError: the status is not 2xx, or the connection failed.
        """
        return await self._request("POST", path, {} if body is None else body, seconds)

    async def _request(self, method: str, path: str, body: Any, seconds: float | None) -> Any:
        import aiohttp

        where = f"{method} {self.base}{path}"
        session = self._open()
        try:
            async with asyncio.timeout(seconds):
                async with session.request(method, self.base + path, json=body) as response:
                    text = (await _body(response, where)).decode(errors="replace")
        except TimeoutError:
            raise ProviderError(
                f"{where}: no answer after {seconds:g} s", failure=FailureClass.MAYBE_EXECUTED
            ) from None
        except aiohttp.ClientConnectorError as error:
            raise ProviderError(f"{where}: {error}", failure=FailureClass.NOT_EXECUTED) from error
        except aiohttp.ClientError as error:
            what = str(error) or type(error).__name__
            raise ProviderError(f"{where}: {what}", failure=FailureClass.MAYBE_EXECUTED) from error
        if not 200 <= response.status < 300:
            raise _refused(where, response.status, text)
        try:
            return read_stranger_json(text)
        except (ValueError, RecursionError):
            return text

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                # aiohttp's own limit of 100 connections would be a queue that nobody sees.
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                headers=self._headers,
                # aiohttp's default ends a request after 300 s; a generation, or loading weights, may take longer.
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
                auto_decompress=True,
            )
        return self._session

    async def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


async def _body(response: aiohttp.ClientResponse, where: str) -> bytes:
    """The body of an answer, unless it is larger than any that is expected."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > _ANSWER_BYTES:
            text = f"{where}: an answer of more than {_ANSWER_BYTES:,} bytes"
            raise ProviderError(text, failure=FailureClass.MAYBE_EXECUTED)
    return bytes(body)


def _refused(where: str, status: int, text: str) -> ProviderError:
    """The failure that a server answered with. A server that says 503 has a full queue: it did not begin."""
    message = text.strip()
    try:
        data = read_stranger_json(text)
        message = data["error"]["message"] if isinstance(data["error"], dict) else str(data["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    failure = ProviderError.from_http(status).failure
    if status == 503:
        failure = FailureClass.THROTTLED
    return ProviderError(f"{where}: {status} {message[:500]}", failure=failure, status=status)


async def load_folder(wire: VllmClient, folder: Path, *, extended: bool, seconds: float | None = None) -> None:
    """Have the workers load a folder of weights. The prefix cache is not touched.

    Raises:
        ProviderError: they did not in that time, or layers were left as they were.
    """
    if not extended:
        body = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
        await wire.post("/collective_rpc", body, seconds=seconds)
        return
    body = {"method": "concertino_load_weights", "kwargs": {"folder": str(folder)}}
    answer = await wire.post("/collective_rpc", body, seconds=seconds)
    results = answer.get("results") if isinstance(answer, Mapping) else None
    if not isinstance(results, list):
        raise ProviderError(
            f"POST {wire.base}/collective_rpc: {str(answer)[:100]!r}; expected the results of the workers",
            failure=FailureClass.MAYBE_EXECUTED,
        )
    for result in results:
        if "error" in result:
            raise ProviderError(f"a worker could not load {folder}: {result['error']}")
        if result["missed"]:
            raise ProviderError(f"{folder} brings nothing for these layers: {', '.join(sorted(set(result['missed'])))}")
