"""Addresses: nothing that is not public is reached, by any spelling, redirect or name."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest
from aiohttp import web
from concertino import ProviderError, SpecError
from concertino_search.web.addresses import AddressGuard, AddressRefused
from concertino_search.web.fetching import Fetcher, GuardedResolver

CLOSED = {
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "169.254.169.254": "link-local",
    "0.0.0.0": "unspecified",
    "0.1.2.3": "",
    "100.64.0.1": "not a public",
    "192.0.0.8": "",
    "192.0.2.1": "",
    "198.18.0.1": "",
    "224.0.0.1": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "",
    "::": "unspecified",
    "::1": "loopback",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "fc00::1": "private",
    "fd12:3456::1": "private",
    "fec0::1": "",
    "ff02::1": "multicast",
    "2001:db8::1": "",
    "100::1": "",
    "::ffff:127.0.0.1": "127.0.0.1",
    "::ffff:10.1.2.3": "10.1.2.3",
    "::ffff:a9fe:a9fe": "169.254.169.254",
    "::127.0.0.1": "",
    "64:ff9b::127.0.0.1": "127.0.0.1",
    "64:ff9b::a9fe:a9fe": "169.254.169.254",
    "64:ff9b:1::a00:1": "",
    "2002:7f00:1::": "127.0.0.1",
    "2002:a9fe:a9fe::1": "169.254.169.254",
    "2001:0:7f00:1::": "",
}
OPEN = (
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
)


@pytest.mark.parametrize(("address", "why"), CLOSED.items())
def test_an_address_that_is_not_public_is_refused(address: str, why: str) -> None:
    with pytest.raises(AddressRefused, match=why.replace(".", r"\.") or "address"):
        AddressGuard().check_address(address)


@pytest.mark.parametrize("address", OPEN)
def test_a_public_address_is_let_through(address: str) -> None:
    AddressGuard().check_address(address)


@pytest.mark.parametrize("address", ["", "localhost", "1.2.3", "2130706433", "1.2.3.4.5", "::g", "0177.0.0.1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(AddressRefused, match="not a numeric address"):
        AddressGuard().check_address(address)


REFUSED_URLS = {
    # numbers in spellings that a resolver would take for an address
    "http://2130706433/": "unusual spelling",
    "http://0x7f000001/": "unusual spelling",
    "http://0x7f.0.0.1/": "unusual spelling",
    "http://017700000001/": "unusual spelling",
    "http://0177.0.0.1/": "unusual spelling",
    "http://127.1/": "unusual spelling",
    "http://127.0.1/": "unusual spelling",
    "http://127.0.0.1./": "unusual spelling|loopback",
    "http://0/": "unusual spelling",
    "http://0x/": "unusual spelling",
    "http://169.254.43518/": "unusual spelling",
    # the address itself
    "http://127.0.0.1/": "loopback",
    "http://127.0.0.1:80/": "loopback",
    "https://[::1]/": "loopback",
    "http://[::ffff:127.0.0.1]/": "127.0.0.1",
    "http://[::ffff:7f00:1]/": "127.0.0.1",
    "http://[0:0:0:0:0:ffff:169.254.169.254]/": "169.254.169.254",
    "http://[64:ff9b::7f00:1]/": "127.0.0.1",
    "http://[fe80::1%25eth0]/": "link-local|invalid URL",
    # letters that turn into digits and dots
    "http://１２７.０.０.１/": "loopback|not a host name|invalid URL|unusual",
    "http://127。0。0。1/": "loopback|not a host name|invalid URL|unusual",
    "http://①②⑦.0.0.1/": "loopback|not a host name|invalid URL|unusual",
    "http://%31%32%37.0.0.1/": "loopback|not a host name|invalid URL|unusual",
    "http://127.0.0.1%2f@example.org/": "user name",
    # two readings of one authority
    "http://example.org@127.0.0.1/": "user name",
    "http://user:secret@example.org/": "user name",
    "http://@127.0.0.1/": "user name|loopback",
    "http://127.0.0.1:80@example.org/": "user name",
    "http://example.org\\@127.0.0.1/": "backslashes",
    "http://127.0.0.1\\.example.org/": "backslashes",
    "http://example.org /": "blanks",
    "http://exam\tple.org/": "blanks|control",
    "http://example.org\r\nHost: x/": "blanks|control",
    "http://example.org\x00.x/": "control",
    # local names
    "http://localhost/": "local name",
    "http://LOCALHOST./": "local name",
    "http://a.localhost/": "local name",
    "http://printer.local/": "local name",
    "http://metadata.google.internal/": "own services",
    # schemes, ports, nothing
    "file:///etc/passwd": "scheme 'file'",
    "ftp://example.org/": "scheme 'ftp'",
    "gopher://example.org/": "scheme 'gopher'",
    "javascript:alert(1)": "scheme 'javascript'",
    "//example.org/": "scheme",
    "/etc/passwd": "scheme",
    "": "scheme",
    "http://": "no host|invalid URL",
    "http:///x": "no host|invalid URL",
    "http://example.org:22/": "port 22",
    "http://example.org:6379/": "port 6379",
    "http://example.org:99999/": "invalid URL",
    "http://[::1/": "invalid URL",
    "http://a b/": "blanks",
    "http://exa_mple$.org/": "not a host name|invalid URL",
}


@pytest.mark.parametrize(("url", "why"), REFUSED_URLS.items())
async def test_a_url_is_refused_before_anything_is_resolved_or_connected(url: str, why: str) -> None:
    async def resolve(host: str) -> list[str]:
        raise AssertionError(f"{host} was resolved")

    with pytest.raises(ProviderError, match=f"is refused: .*(?:{why})"):
        await Fetcher(resolve=resolve).fetch(url)


@pytest.mark.parametrize(
    "url",
    ["http://example.org", "https://EXAMPLE.org:8443/a?b#c", "http://bücher.example/", "http://8.8.8.8/", "http://x1/"],
)
def test_a_plain_url_is_let_through(url: str) -> None:
    assert AddressGuard().check_url(url).host


def test_allowed_networks_are_open_on_any_port_and_nothing_beside_them() -> None:
    guard = AddressGuard.of(["127.0.0.0/8", "fd00::/8"])
    for url in ("http://127.0.0.1:5000/", "http://[::ffff:127.0.0.1]:5000/", "http://[fd00::1]:81/"):
        guard.check_url(url)
    for url in ("http://10.0.0.1/", "http://[::1]/", "http://8.8.8.8:5000/"):
        with pytest.raises(AddressRefused):
            guard.check_url(url)


def test_an_allowed_network_that_is_none_is_a_mistake_of_the_declaration() -> None:
    with pytest.raises(SpecError, match=r"expected networks such as '10\.0\.0\.0/8'"):
        AddressGuard.of(["intranet"])


@pytest.mark.parametrize("found", [["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["::ffff:192.168.0.1"], ["fe80::1"]])
async def test_a_name_with_any_closed_address_is_refused_whole(found: list[str]) -> None:
    async def resolve(host: str) -> list[str]:
        return found

    with pytest.raises(ProviderError, match=r"http://rebind\.example/a is refused: rebind\.example resolves to"):
        await Fetcher(resolve=resolve).fetch("http://rebind.example/a?secret=1")


# -- against a server on this machine ----------------------------------------------------------------------------------

Pages = dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]]


class Site:
    """A server on loopback; `hits` are the paths that were asked for."""

    def __init__(self) -> None:
        self.hits: list[tuple[str, str]] = []
        self.location = ""
        self.port = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.hits.append((request.host, request.path))
        if request.path == "/go":
            return web.Response(status=302, headers={"Location": self.location})
        return web.Response(text="reached", content_type="text/plain")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    app = web.Application()
    app.router.add_get("/{path:.*}", site.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    server = web.TCPSite(runner, "127.0.0.1", 0)
    await server.start()
    site.port = runner.addresses[0][1]
    yield site
    await runner.cleanup()


def fetcher(resolve: Callable[[str], Awaitable[Sequence[str]]] | None = None) -> Fetcher:
    return Fetcher(AddressGuard.of(["127.0.0.1/32"]), resolve=resolve)


async def test_an_allowed_address_is_fetched(site: Site) -> None:
    assert (await fetcher().fetch(f"http://127.0.0.1:{site.port}/a")).body == b"reached"


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.2/",
        "//127.0.0.2/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.2]/",
        "http://2130706434/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "file:///etc/passwd",
        "http://user@8.8.8.8/",
        "http://inside.example/",
        "http://8.8.8.8:22/",
    ],
)
async def test_a_redirect_passes_the_same_gates(site: Site, location: str) -> None:
    async def resolve(host: str) -> list[str]:
        return {"outside.example": ["127.0.0.1"], "inside.example": ["127.0.0.2"]}[host]

    site.location = location
    start = f"http://outside.example:{site.port}/go"
    with pytest.raises(ProviderError, match="is refused"):
        await fetcher(resolve).fetch(start)
    assert [path for _, path in site.hits] == ["/go"]


async def test_a_redirect_within_the_bounds_is_followed(site: Site) -> None:
    site.location = "/b"
    found = await fetcher().fetch(f"http://127.0.0.1:{site.port}/go")
    assert found.url.endswith("/b")


async def test_a_name_is_resolved_once_and_that_address_is_connected_to(site: Site) -> None:
    answers = iter([["127.0.0.1"], ["127.0.0.2"], ["10.0.0.1"]])

    async def resolve(host: str) -> list[str]:
        return next(answers)

    found = await fetcher(resolve).fetch(f"http://rebind.example:{site.port}/a")
    assert found.body == b"reached"
    assert next(answers) == ["127.0.0.2"]


async def test_the_socket_is_guarded_even_where_the_resolver_is_not(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def careless(self: GuardedResolver, host: str, port: int = 0, family: int = 0) -> list[dict[str, object]]:
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}]

    monkeypatch.setattr(GuardedResolver, "resolve", careless)
    guard = AddressGuard.of(ports=[site.port])
    with pytest.raises(ProviderError, match=r"refused: 127\.0\.0\.1 is a loopback address"):
        await Fetcher(guard).fetch(f"http://rebind.example:{site.port}/")
    assert site.hits == []


async def test_no_proxy_of_the_environment_connects_in_our_place(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{site.port}")

    async def resolve(host: str) -> list[str]:
        return ["127.0.0.3"]

    with pytest.raises(ProviderError, match="refused"):
        await fetcher(resolve).fetch("http://page.example/")
    assert site.hits == []


async def test_the_system_resolver_is_guarded_too() -> None:
    guard = AddressGuard.of(
        ["203.0.113.0/24"]
    )  # some network is allowed, so that the name `localhost` gets past the first gate
    with pytest.raises(ProviderError, match=r"localhost resolves to .* loopback address"):
        await Fetcher(guard).fetch("http://localhost/")
    await asyncio.get_running_loop().shutdown_default_executor()
