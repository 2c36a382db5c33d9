"""`fetch_page`: limits hold whatever a server does, pages become text, and sites' wishes are kept."""

from __future__ import annotations

import asyncio
import gzip
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from concertino import ProviderError, ToolSpec
from concertino.testing import ToolConformance, run_call
from concertino_search import FetchLimits, fetch_page_tool
from concertino_search.web.addresses import AddressGuard
from concertino_search.web.fetching import Fetched, Fetcher
from concertino_search.web.html import read_html
from hypothesis import given
from hypothesis import strategies as st
from linear import assert_linear

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Site:
    """A server on loopback that answers as its test says; unknown paths are 404."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[web.Request] = []
        self.handlers: dict[str, Handler] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answers(self, path: str, body: bytes | str = "", *, status: int = 200, **headers: str) -> None:
        """Answer a path with a body; underscores in the names of headers stand for hyphens."""
        raw = body.encode() if isinstance(body, str) else body
        sent = {"Content-Type": "text/html; charset=utf-8"} | {k.replace("_", "-"): v for k, v in headers.items()}

        async def handle(request: web.Request) -> web.StreamResponse:
            return web.Response(status=status, body=raw, headers=sent)

        self.handlers[path] = handle

    async def dispatch(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        handle = self.handlers.get(request.path)
        return await handle(request) if handle else web.Response(status=404, text="nothing here")

    def paths(self) -> list[str]:
        return [request.path for request in self.asked]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    app = web.Application()
    app.router.add_get("/{path:.*}", site.dispatch)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    site.port = runner.addresses[0][1]
    yield site
    await runner.cleanup()


def fetcher(**limits: Any) -> Fetcher:
    return Fetcher(AddressGuard.of(["127.0.0.1/32"]), FetchLimits(**limits))


def page_tool(**options: Any) -> ToolSpec:
    return fetch_page_tool(allowed=["127.0.0.1/32"], **options)


# -- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coding", ["", "gzip", "deflate", "raw deflate"])
async def test_a_body_is_cut_at_its_limit_however_it_is_packed(site: Site, coding: str) -> None:
    plain = b"0123456789" * 500_000
    raw = zlib.compressobj(wbits=-15)
    packed = {
        "": plain,
        "gzip": gzip.compress(plain),
        "deflate": zlib.compress(plain),
        "raw deflate": raw.compress(plain) + raw.flush(),
    }[coding]
    headers = {"Content_Encoding": coding.rsplit(maxsplit=1)[-1]} if coding else {}
    site.answers("/", packed, Content_Type="text/plain", **headers)
    found = await fetcher(max_bytes=1000).fetch(f"{site.url}/")
    assert (found.body, found.cut) == (plain[:1000], True)
    whole = await fetcher(max_bytes=len(plain)).fetch(f"{site.url}/")
    assert (len(whole.body), whole.cut) == (len(plain), False)


async def test_a_stream_that_unpacks_to_nothing_ends_at_the_limit_too(site: Site) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers={"Content-Type": "text/plain", "Content-Encoding": "gzip"})
        await response.prepare(request)
        await response.write(gzip.compress(b"all there is"))
        while sent < 50_000_000:
            await response.write(b"\0" * 65_536)  # behind the end of the packed data
            sent += 65_536
        return response

    site.handlers["/"] = endless
    found = await fetcher(max_bytes=200_000).fetch(f"{site.url}/")
    assert (found.body, found.cut) == (b"all there is", True)
    assert sent < 20_000_000


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip"])
async def test_a_packing_that_was_not_asked_for_is_refused(site: Site, coding: str) -> None:
    site.answers("/", b"x", Content_Encoding=coding)
    with pytest.raises(ProviderError, match=r"which was not asked for|broke off"):
        await fetcher().fetch(f"{site.url}/")


async def test_a_body_that_cannot_be_unpacked_is_an_error(site: Site) -> None:
    site.answers("/", b"no zip at all", Content_Encoding="gzip")
    with pytest.raises(ProviderError, match="broke off"):
        await fetcher().fetch(f"{site.url}/")


@pytest.mark.parametrize("kind", ["application/pdf", "image/png", "application/octet-stream", "video/mp4"])
async def test_what_is_no_text_is_refused_by_its_type(site: Site, kind: str) -> None:
    site.answers("/a", b"%PDF", Content_Type=kind)
    with pytest.raises(ProviderError, match=f"is {kind}; only text can be read"):
        await fetcher().fetch(f"{site.url}/a")


async def test_redirects_end_at_their_limit(site: Site) -> None:
    site.answers("/loop", status=302, Location="/loop")
    with pytest.raises(ProviderError, match="redirects more than 3 times"):
        await fetcher(redirects=3).fetch(f"{site.url}/loop")
    assert len(site.asked) == 4


async def test_a_silent_server_ends_in_time(site: Site) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    async def trickling(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        for _ in range(1000):
            await response.write(b".")
            await asyncio.sleep(0.05)
        return response

    site.handlers.update({"/silent": silent, "/trickling": trickling})
    with pytest.raises(ProviderError, match="did not answer in time"):
        await fetcher(idle_seconds=0.2).fetch(f"{site.url}/silent")
    with pytest.raises(ProviderError, match=r"took more than 0\.4 s|did not answer in time"):
        await fetcher(seconds=0.4).fetch(f"{site.url}/trickling")


async def test_a_port_where_nobody_listens_is_said() -> None:
    with pytest.raises(ProviderError, match=r"127\.0\.0\.1:9/x cannot be reached"):
        await fetcher().fetch("http://127.0.0.1:9/x?token=secret")


async def test_nothing_of_the_caller_goes_along(site: Site) -> None:
    site.answers("/", "one", Set_Cookie="a=b; Path=/")
    site.answers("/go", status=302, Location="/", Set_Cookie="c=d; Path=/")
    await fetcher().fetch(f"{site.url}/go")
    for request in site.asked:
        assert not {"Cookie", "Referer", "Authorization"} & set(request.headers)
        assert "concertino-search" in request.headers["User-Agent"]


async def test_an_error_names_no_query_and_no_credentials(site: Site) -> None:
    site.answers("/a", b"x", Content_Type="image/png")
    for url in (f"{site.url}/a?key=secret#part", f"http://me:secret@127.0.0.1:{site.port}/a"):
        with pytest.raises(ProviderError) as raised:
            await fetcher().fetch(url)
        assert "secret" not in str(raised.value)


# -- text --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("charset", "kind", "body", "text"),
    [
        ("", "text/plain", "käse".encode(), "käse"),
        ("", "text/plain", "käse".encode("cp1252"), "käse"),
        ("iso-8859-1", "text/plain", "“käse”".encode("cp1252"), "“käse”"),
        ("utf-8", "text/plain", b"k\xe4se", "k\ufffdse"),
        ("shift_jis", "text/plain", "北".encode("shift_jis"), "北"),
        ("", "text/html", b'<meta charset="koi8-r">' + "да".encode("koi8-r"), '<meta charset="koi8-r">да'),
        ("utf-8", "text/plain", "\ufeffa".encode("utf-16-le"), "a"),
        ("zlib_codec", "text/plain", b"plain", "plain"),
        ("punycode", "text/plain", b"plain", "plain"),
        ("no such", "text/plain", b"plain", "plain"),
    ],
)
def test_bytes_become_text_by_what_is_said_of_them(charset: str, kind: str, body: bytes, text: str) -> None:
    assert Fetched("", 200, kind, charset, body, False).text() == text


def test_a_character_that_the_limit_cuts_is_left_out() -> None:
    assert Fetched("", 200, "text/plain", "", "aä".encode()[:2], True).text() == "a"


PAGE = """<!doctype html><html><head><title> The
 page </title><style>p{}</style><script>var a = "<p>no</p>"</script></head><body>
<header><a href=/>Home</a></header><nav><ul><li>Menu</ul></nav>
<main><h1>Head</h1><p>One <b>bold</b>, two<br>three.<p>Four&nbsp;&amp; five
<ul><li>a <li>b</ul><table><tr><th>x<th>y<tr><td>1<td>2</table>
<pre>  code
    block</pre><div hidden>unseen</div><p style="display: none">unseen</p><p aria-hidden="true">unseen</p>
<aside>Advert</aside><noscript>unseen</noscript></main><footer>Imprint</footer></body></html>"""


def test_a_page_becomes_what_a_reader_reads() -> None:
    page = read_html(PAGE)
    assert page.title == "The page"
    assert page.text == (
        "# Head\n\nOne bold, two\nthree.\n\nFour & five\n\n- a\n- b\n\nx | y\n1 | 2\n\n  code\n    block"
    )


def test_a_main_part_that_holds_little_of_a_page_does_not_stand_for_it() -> None:
    text = "<body><article>Teaser.</article><div><p>" + "The story goes on. " * 20 + "</div>"
    assert "The story goes on." in read_html(text).text


@pytest.mark.parametrize(
    "html", ["", "   ", "<", "<html>", "\0", "<body", "<p>" * 5000 + "deep", "<title>", "</p></div>", "<table><td>x"]
)
def test_no_html_is_too_broken(html: str) -> None:
    assert isinstance(read_html(html).text, str)


@pytest.mark.parametrize(
    "tag",
    ["<div>", "<b>", "<table><tr><td>", "<div></span>", "<DIV a=b>", "<form>", "<p>", "<li>", "<script>", "<a b>"],
)
def test_a_page_that_nests_without_end_is_read_in_linear_time(tag: str) -> None:
    html = tag * (1_000_000 // len(tag)) + "text"
    assert_linear(lambda: read_html(html), len(html))  # a parser alone takes minutes for some of them


def test_a_page_that_nests_too_deep_keeps_its_text_and_not_its_scripts() -> None:
    html = "<div>" * 3000 + "<p>One<SCRIPT>no()</script> two<style>p{}</style><p>three" + "<script>no()"
    assert re.findall(r"\w+", read_html(html).text) == ["One", "two", "three"]
    assert read_html("<p>a</p>" * 3000 + "<div><b>x</b></div>" * 3000).text.startswith("a\n\na")


@given(st.text(st.sampled_from("<>/pbdiv \"='a&;!-\n"), max_size=200))
def test_any_html_is_read(html: str) -> None:
    assert isinstance(read_html(html).text, str)


# -- the tool ----------------------------------------------------------------------------------------------------------


async def test_a_long_page_comes_in_parts(site: Site) -> None:
    text = " ".join(str(n) for n in range(2000))
    site.answers("/", f"<title>T</title><p>{text}")
    tool, seen, start = page_tool(), "", 0
    while True:
        part = (await run_call(tool, {"url": f"{site.url}/", "start": start, "max_chars": 1000})).content
        seen += part["text"]
        if "next" not in part:
            break
        start = part["next"]
    assert seen == text
    behind = await run_call(tool, {"url": f"{site.url}/", "start": 99_999})
    assert "start=99999 is behind its end" in behind.error.message  # type: ignore[union-attr]


async def test_a_page_that_was_cut_says_so(site: Site) -> None:
    site.answers("/", "<p>" + "word " * 1000)
    seen = await run_call(page_tool(limits=FetchLimits(max_bytes=500)), {"url": f"{site.url}/"})
    assert "its end is missing" in seen.content["note"]


async def test_a_page_without_text_says_so(site: Site) -> None:
    site.answers("/", "<div id=app></div><script>draw()</script>")
    assert "no text" in (await run_call(page_tool(), {"url": f"{site.url}/"})).content["note"]


@pytest.mark.parametrize(
    ("status", "hint"), [(404, "none at this address"), (503, "later"), (401, "password"), (500, "")]
)
async def test_an_error_page_is_a_failed_call_and_tells_nothing_on_the_provider(
    site: Site, status: int, hint: str
) -> None:
    site.answers("/a", "<p>sorry", status=status)
    seen = await run_call(page_tool(), {"url": f"{site.url}/a"})
    assert seen.status == "EXEC_ERR"
    assert f"answered {status}" in seen.error.message  # type: ignore[union-attr]
    assert hint in seen.error.message  # type: ignore[union-attr]
    assert seen.attempts == 1


async def test_json_and_plain_text_are_shown_as_they_are(site: Site) -> None:
    site.answers("/j", '{"a": [1, 2]}', Content_Type="application/json")
    assert (await run_call(page_tool(), {"url": f"{site.url}/j"})).content["text"] == '{"a": [1, 2]}'


# -- robots.txt --------------------------------------------------------------------------------------------------------


async def test_what_a_site_forbids_is_not_fetched_and_its_rules_are_read_once(site: Site) -> None:
    site.answers("/robots.txt", "User-agent: *\nDisallow: /private\nAllow: /private/ok\n", Content_Type="text/plain")
    for path in ("/open", "/private/x", "/private/ok"):
        site.answers(path, "<p>text")
    tool = page_tool()
    for path, status in (("/open", "OK"), ("/private/x", "EXEC_ERR"), ("/private/ok", "OK")):
        seen = await run_call(tool, {"url": site.url + path})
        assert seen.status == status
    assert site.paths() == ["/robots.txt", "/open", "/private/ok"]


async def test_rules_for_this_program_go_before_those_for_all(site: Site) -> None:
    rules = "User-agent: concertino-search\nDisallow: /\n\nUser-agent: *\nAllow: /\n"
    site.answers("/robots.txt", rules, Content_Type="text/plain")
    site.answers("/a", "<p>text")
    seen = await run_call(page_tool(), {"url": f"{site.url}/a"})
    assert "robots.txt" in seen.error.message  # type: ignore[union-attr]
    assert (await run_call(page_tool(robots=False), {"url": f"{site.url}/a"})).ok


@pytest.mark.parametrize(("status", "ok"), [(404, True), (403, True), (500, False), (503, False)])
async def test_a_site_without_rules_is_open_and_one_that_fails_is_closed(site: Site, status: int, ok: bool) -> None:
    site.answers("/robots.txt", "x", status=status)
    site.answers("/a", "<p>text")
    assert (await run_call(page_tool(), {"url": f"{site.url}/a"})).ok is ok


async def test_a_redirect_asks_the_rules_of_the_place_it_leads_to(site: Site) -> None:
    site.answers("/robots.txt", "User-agent: *\nDisallow: /b", Content_Type="text/plain")
    site.answers("/a", status=301, Location="/b")
    site.answers("/b", "<p>text")
    seen = await run_call(page_tool(), {"url": f"{site.url}/a"})
    assert "/b is not to be fetched" in seen.error.message  # type: ignore[union-attr]
    assert "/b" not in site.paths()


def test_networks_are_opened_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCERTINO_FETCH_ALLOW", "127.0.0.1/32, fd00::/8")
    guard = fetch_page_tool().function._guard  # type: ignore[attr-defined]
    assert [str(network) for network in guard.allowed] == ["127.0.0.1/32", "fd00::/8"]


class TestFetchPage(ToolConformance):
    """The tool does what every tool owes; its site is a server thread, since each check has a loop of its own."""

    rejected = ({}, {"url": "ftp://example.org"}, {"url": "http://example.org", "start": -1})
    failing = ({"url": "http://127.0.0.2/"}, {"url": "http://localhost/"})

    @pytest.fixture(autouse=True)
    def _site(self, file_server: str) -> None:
        self.spec = page_tool()
        self.examples = (({"url": f"{file_server}/page.html"}, lambda part: part["title"] == "A page"),)
        self.slow = {"url": f"{file_server}/slow"}
