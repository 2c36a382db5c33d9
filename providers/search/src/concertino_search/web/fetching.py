"""Fetching: one page over http, inside limits of size, type, time, redirects and addresses.

Redirects are followed by hand, so that every hop passes the same gates (`addresses`). Bodies are unpacked by hand,
so that a small answer that unpacks into a large one stops at the limit. Nothing of the caller goes along: no cookies,
no referrer, no credentials, and no proxy of the environment, which would connect in our place.

Invariant: no more than about `max_bytes` are read, unpacked or kept, whatever length the server declares.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import socket
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from concertino import ProviderError
from yarl import URL

from concertino_search.errors import call_failed
from concertino_search.options import FetchLimits

from .addresses import AddressGuard, AddressRefused
from .breakers import HostBreakers

USER_AGENT = "concertino-search (fetches single pages on request)"
ROBOT = "concertino-search"
"""The name by which robots.txt may address this program."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_ENCODINGS = re.compile(
    r"utf-8|utf-16(?:-[lb]e)?|iso8859-\d+|cp(?:125\d|874|932|949|950)|koi8-[ru]|gb2312|gbk|gb18030|big5(?:hkscs)?"
    r"|euc_(?:jp|kr)|shift_jis|iso2022_jp|mac-(?:roman|cyrillic)"
)
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Gives the numeric addresses of a name."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer.

    Attributes:
        url: where it came from, after all redirects.
        status: the HTTP status.
        type: the content type without parameters, lower case.
        charset: that the server named; may be empty.
        body: unpacked, up to the limit.
        cut: whether there was more than the limit.
    """

    url: str
    status: int
    type: str
    charset: str
    body: bytes
    cut: bool

    def text(self) -> str:
        """The body as text, by its byte order mark, its header, its meta element, UTF-8, or else Windows-1252."""
        for mark, name in _BOMS:
            if self.body.startswith(mark):
                return self.body[len(mark) :].decode(name, "replace")
        declared = _META_CHARSET.search(self.body[:4096]) if "html" in self.type else None
        for label in (self.charset, declared[1].decode("ascii") if declared else ""):
            if name := _encoding(label):
                return self.body.decode(name, "replace")
        for missing in range(4 if self.cut else 1):  # the cut may have gone through a character
            try:
                return self.body[: len(self.body) - missing].decode("utf-8")
            except UnicodeDecodeError:
                continue
        return self.body.decode("cp1252", "replace")


def _encoding(label: str) -> str:
    """Python's name of an encoding that pages use; empty for any other codec that Python has."""
    try:
        name = codecs.lookup(label).name if label else ""
    except (LookupError, ValueError):
        return ""
    if name in ("ascii", "iso8859-1"):
        return "cp1252"  # as browsers take them
    return name if _ENCODINGS.fullmatch(name) else ""


class Fetcher:
    """Fetches pages, with a connection of its own each time.

    Args:
        guard: what may be connected to.
        limits: what a fetch may take.
        resolve: resolves names; by default the system does.
    """

    def __init__(
        self, guard: AddressGuard | None = None, limits: FetchLimits | None = None, resolve: Resolve | None = None
    ):
        self.guard = guard or AddressGuard()
        self.limits = limits or FetchLimits()
        self._resolve = resolve
        self._breakers = HostBreakers()

    async def fetch(self, url: str, *, robots: Callable[[URL, Fetcher], Awaitable[None]] | None = None) -> Fetched:
        """Fetch a page.

        Args:
            url: an absolute http or https URL.
            robots: is asked before each hop, and raises where the hop is not welcome.

        Raises:
            ProviderError: says what was refused, by whom, and what to do instead.
        """
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await self._follow(url, robots)
        except TimeoutError:
            self._breakers.record(URL(url).authority, ok=False)
            raise call_failed(f"{_shown(url)} took more than {self.limits.seconds:g} s; try another page") from None

    async def _follow(self, url: str, robots: Callable[[URL, Fetcher], Awaitable[None]] | None) -> Fetched:
        here = self._checked(url)
        async with self._session() as session:
            for _ in range(self.limits.redirects + 1):
                if robots is not None:
                    await robots(here, self)
                found = await self._ask(session, here)
                if isinstance(found, Fetched):
                    return found
                here = self._checked(found, came_from=here)
        raise call_failed(f"{_shown(url)} redirects more than {self.limits.redirects} times")

    def _checked(self, url: str, came_from: URL | None = None) -> URL:
        by = f" (a redirect of {_shown(came_from)})" if came_from is not None else ""
        try:
            return self.guard.check_url(url)
        except AddressRefused as refused:
            raise call_failed(f"{_shown(url)}{by} is refused: {refused}") from None

    def _session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(self.guard, self._resolve),
            socket_factory=self.guard.make_socket,
            # Every hop resolves and connects again, so that none goes around the guard.
            use_dns_cache=False,
            force_close=True,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            requote_redirect_url=False,
            max_line_size=16_384,
            headers={"User-Agent": USER_AGENT, "Accept": "text/html, text/*;q=0.8, application/json;q=0.5"},
            timeout=aiohttp.ClientTimeout(
                total=self.limits.seconds,
                connect=self.limits.connect_seconds,
                sock_read=self.limits.idle_seconds,
            ),
        )

    async def _ask(self, session: aiohttp.ClientSession, url: URL) -> Fetched | str:
        """The answer, or the address that it redirects to."""
        if refusal := self._breakers.refusal(url.authority):
            raise call_failed(f"{_shown(url)} is not asked: {refusal}; try another page")
        try:
            found, status = await self._answer(session, url)
        except ProviderError:
            self._breakers.record(url.authority, ok=True)  # it answered, with what is not read
            raise
        except aiohttp.ClientConnectorError as error:
            refused = _refusal(error)
            if not refused:
                self._breakers.record(url.authority, ok=False)
            why = f"is refused: {refused}" if refused else f"cannot be reached ({_cause(error)}); is the address right?"
            raise call_failed(f"{_shown(url)} {why}") from None
        except TimeoutError:
            self._breakers.record(url.authority, ok=False)
            raise call_failed(f"{_shown(url)} did not answer in time; try another page") from None
        except (aiohttp.ClientError, ValueError) as error:
            self._breakers.record(url.authority, ok=False)
            raise call_failed(
                f"{_shown(url)} broke off: {type(error).__name__}; try again or try another page"
            ) from None
        self._breakers.record(url.authority, ok=status < 500)
        return found

    async def _answer(self, session: aiohttp.ClientSession, url: URL) -> tuple[Fetched | str, int]:
        """The answer or the address that it redirects to, and the status."""
        # No other packing is asked for than what `_Unpacker` can stop in the middle.
        async with session.get(url, allow_redirects=False, headers={"Accept-Encoding": "gzip, deflate"}) as response:
            place = response.headers.get("Location", "")
            if response.status in _REDIRECTS and place:
                return str(_joined(url, place)), response.status
            return await self._read(url, response), response.status

    async def _read(self, url: URL, response: aiohttp.ClientResponse) -> Fetched:
        kind = response.content_type.lower()
        if response.status < 400 and not kind.startswith(tuple(self.limits.types)):
            raise call_failed(f"{_shown(url)} is {kind}; only text can be read ({', '.join(self.limits.types)})")
        unpack = _Unpacker(response.headers.get("Content-Encoding", ""), self.limits.max_bytes, _shown(url))
        async for piece in response.content.iter_chunked(65_536):
            if unpack.full(piece):
                break
        charset = response.charset or ""
        return Fetched(str(url), response.status, kind, charset, bytes(unpack.body), unpack.cut)


class _Unpacker:
    """Collects a body, unpacked, up to a limit."""

    def __init__(self, coding: str, limit: int, shown: str) -> None:
        coding = coding.strip().lower()
        if coding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise call_failed(f"{shown} is packed as {coding!r}, which was not asked for")
        self._packed = coding not in ("", "identity")
        # 47: zlib and gzip, told apart by their header.
        self._zip = zlib.decompressobj(wbits=47) if self._packed else None
        self._coding, self._limit = coding, limit
        self._taken = 0
        self.body = bytearray()
        self.cut = False

    def full(self, piece: bytes) -> bool:
        """Take a piece in; whether the limit is passed."""
        # A byte above the limit shows that there is more.
        room = self._limit + 1 - len(self.body)
        self._taken += len(piece)
        if self._zip is None:
            self.body += piece[:room]
        else:
            self.body += self._unpacked(self._zip, piece, room)
        if len(self.body) > self._limit:
            del self.body[self._limit :]
            self.cut = True
        # Packed bytes count too, or a stream that unpacks to nothing would be read for ever.
        self.cut |= self._taken > self._limit
        return self.cut

    def _unpacked(self, unpacker: Any, piece: bytes, room: int) -> bytes:
        try:
            # Bounded here, since 398 KB of gzip can hold 400 MB.
            return bytes(unpacker.decompress(piece, room))
        except zlib.error:
            if self._coding != "deflate" or self.body:
                raise ValueError("the body cannot be unpacked") from None
            self._zip = zlib.decompressobj(wbits=-15)  # deflate without a header, as some servers send it
            try:
                return self._zip.decompress(piece, room)
            except zlib.error:
                raise ValueError("the body cannot be unpacked") from None


class GuardedResolver(AbstractResolver):
    """Resolves names, and refuses those with any address that must not be connected to."""

    def __init__(self, guard: AddressGuard, resolve: Resolve | None = None) -> None:
        self._guard = guard
        self._resolve = resolve or _system

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a name."""
        found = await self._resolve(host)
        if not found:
            raise OSError(None, f"{host} has no address")
        for address in found:
            try:
                self._guard.check_address(address)
            except AddressRefused as refused:
                raise AddressRefused(f"{host} resolves to {refused}") from None
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                proto=0,
                flags=socket.AI_NUMERICHOST,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
            )
            for address in found
        ]

    async def close(self) -> None:
        """Nothing is held."""


async def _system(host: str) -> list[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _joined(url: URL, place: str) -> URL | str:
    try:
        return url.join(URL(place))
    except (ValueError, TypeError):
        return place


def _refusal(error: BaseException) -> AddressRefused | None:
    """The refusal of an address behind an error of aiohttp."""
    # aiohttp keeps it as `os_error`, as a cause or in a group; causes may form a circle.
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, AddressRefused):
            return one
        waiting += [one.__cause__, one.__context__, getattr(one, "os_error", None)]
        waiting += getattr(one, "exceptions", ())
    return None


def _cause(error: aiohttp.ClientConnectorError) -> str:
    cause = getattr(error, "os_error", None)
    return (getattr(cause, "strerror", None) or str(cause) or type(error).__name__)[:120]


def _shown(url: URL | str) -> str:
    """A URL for a message: without credentials, query and fragment, and not too long."""
    try:
        parsed = URL(url) if isinstance(url, str) else url
        text = str(parsed.with_user(None).with_query(None).with_fragment(None)) if parsed.absolute else str(parsed.path)
    except (ValueError, TypeError):
        text = re.split(r"[?#@]", str(url))[-1 if "@" in str(url) else 0]
    return text if len(text) <= 200 else f"{text[:199]}…"
