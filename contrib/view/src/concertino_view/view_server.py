"""The server of `concertino view`: a folder of traces, shown to one person on this machine.

Invariants: it listens on 127.0.0.1 alone and answers only requests for that address (a foreign name that leads here is
refused), and only with the key; a run is found among the files of the folder, never by a path that a request names; it
changes nothing; it computes nothing for a page but what it shows, unless it was started with the right to replay, and
then only for its own page, one at a time; no error of one request ends it.
"""

from __future__ import annotations

import gzip
import json
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from concertino.core.errors import TraceError, UsageError
from concertino.core.logs import logger_of
from concertino.traces import TraceStore
from concertino.traces.sink import SUFFIX

from .evaluation_list import EvaluationList
from .replayed_end import known_strategies, replayed_end
from .run_difference import comparison
from .run_file import RunFile
from .run_list import RunList
from .run_page import page_of, scripts, static

_POLL = 0.05
"""Seconds between two looks at a trace that is followed."""
_FIRST, _THEN = 0.4, 1.5
"""Seconds for which a long trace is read before its begin is shown, and then between two patches."""
_HEARTBEAT = 10.0
_MOST_FOLLOWED = 64
"""Pages that may follow at once; further ones are told to come back."""
_MOST_OPEN = 8
"""Traces whose folds are kept."""
_MOST_BODIES = 200
_MOST_ASKED = 4096
"""Bytes of the body of a request."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
logger = logger_of("view")


class Refused(Exception):
    """A request that gets an error: its status, and a sentence."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class ViewServer(ThreadingHTTPServer):
    """The server of a folder; `serve_forever` runs it, `shutdown` ends it from another thread.

    Args:
        folder: of traces; None for that of the settings.
        port: 0 for a free one.
        replays: whether its pages may have runs replayed.
        results: results files of evaluations, whose systems are compared.

    Raises:
        OSError: the port is taken.
        UsageError: a results file cannot be read.
    """

    daemon_threads = True

    def __init__(
        self, folder: Path | None = None, port: int = 0, replays: bool = False, results: Sequence[Path] = ()
    ) -> None:
        self.store = TraceStore(folder)
        self.evaluations = EvaluationList(results)
        self.replays = replays
        self.replaying = threading.BoundedSemaphore(1)
        self.list = RunList(self.store)
        self.key = secrets.token_urlsafe(24)
        self.followers = threading.BoundedSemaphore(_MOST_FOLLOWED)
        self.closing = threading.Event()
        self._open: dict[Path, RunFile] = {}
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        """The address of the page, with the key."""
        return f"http://127.0.0.1:{self.server_port}/?key={self.key}"

    def run_of(self, name: str, seconds: float | None = None) -> RunFile:
        """The run of an id, read as far as it goes, or for so many seconds more.

        Raises:
            Refused: there is none, or it cannot be read.
        """
        # The name is compared with those of files, and never made into a path.
        path = next((each for each in self.store.paths() if each.name == name + SUFFIX), None)
        path = path or self.evaluations.trace(name)
        if path is None:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such run in the folder")
        with self._lock:
            found = self._open.pop(path, None)
        try:
            run = found if found is not None and not found.replaced() else RunFile(path, seconds)
            run.refresh(seconds)
        except TraceError as error:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error
        with self._lock:
            self._open[path] = run
            while len(self._open) > _MOST_OPEN:
                del self._open[next(iter(self._open))]
        return run

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that went away is no error; anything else is one for the log."""
        logger.debug("a request ended early", exc_info=True)

    def server_close(self) -> None:
        """End those who follow, and close."""
        self.closing.set()
        super().server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "concertino-view", ""
    timeout = 60

    def do_GET(self) -> None:
        self._guarded(self._answer)

    def do_POST(self) -> None:
        # Whatever is wrong with it, nothing of its body is taken for the next request.
        self.close_connection = True
        self._guarded(self._replay)

    def _guarded(self, answer: Callable[[], None]) -> None:
        try:
            answer()
        except Refused as refused:
            self._send(json.dumps({"error": str(refused)}).encode(), "application/json", refused.status)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except Exception:
            logger.exception("a request of the page failed")
            self._send(b'{"error": "the server failed; its log says why"}', "application/json", HTTPStatus(500))

    def _answer(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        if not self._admits(url.path, query):
            return
        head, *parts = [unquote(part) for part in url.path.split("/")[1:]]
        match head, *parts:
            case ("" | "compare" | "evaluations",) | ("run", _):
                self._send(_SHELL, "text/html; charset=utf-8")
            case "static", name:
                self._static(name)
            case "api", *_:
                self._data(parts, query)
            case _:
                raise Refused(HTTPStatus.NOT_FOUND, "page not found")

    def _data(self, parts: list[str], query: dict[str, str]) -> None:
        """Answer what a script of a page asks for."""
        server = self.server
        match parts:
            case ["runs"]:
                rows = server.list.rows(_number(query, "most", 200))
                evaluations = len(server.evaluations.files)
                self._json({"folder": server.store.folder.name, "runs": rows, "evaluations": evaluations})
            case ["replay"]:
                self._json({"strategies": known_strategies() if server.replays else []})
            case ["evaluations"]:
                self._json(server.evaluations.arms())
            case ["flips"]:
                found = server.evaluations.flips(_number(query, "a", 0), _number(query, "b", 1))
                if found is None:
                    raise Refused(HTTPStatus.NOT_FOUND, "evaluation not found")
                self._json(found)
            case ["compare"]:
                self._json(comparison(*(server.run_of(query.get(each, "")) for each in ("a", "b"))))
            case ["runs", name, what]:
                # What a page shows is read already, and what it follows is read while it looks.
                seconds = {"data": _FIRST, "bodies": 0.0, "events": 0.0}.get(what)
                self._run(server.run_of(name, seconds), what, query)
            case _:
                raise Refused(HTTPStatus.NOT_FOUND, "page not found")

    def _admits(self, path: str, query: dict[str, str]) -> bool:
        """Let in who asks for this address and has the key; whoever brings it in the address gets a cookie first."""
        port = self.server.server_port
        if self.headers.get_all("Host") not in ([f"127.0.0.1:{port}"], [f"localhost:{port}"]):
            raise Refused(HTTPStatus.FORBIDDEN, f"expected the address http://127.0.0.1:{port}")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise Refused(HTTPStatus.FORBIDDEN, "another page asks; open the address yourself")
        cookie = f"concertino-view-{port}"
        try:
            held = SimpleCookie(self.headers.get("Cookie", ""))
        except CookieError:
            held = SimpleCookie()
        if cookie in held and secrets.compare_digest(held[cookie].value.encode(), self.server.key.encode()):
            return True
        if not secrets.compare_digest(query.get("key", "").encode(), self.server.key.encode()):
            raise Refused(HTTPStatus.FORBIDDEN, "the key is missing; use the address that `concertino view` printed")
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Set-Cookie", f"{cookie}={self.server.key}; HttpOnly; SameSite=Strict; Path=/")
        self.send_header("Location", path if path.startswith("/run/") else "/")
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def _run(self, run: RunFile, what: str, query: dict[str, str]) -> None:
        match what:
            case "data":
                self._json(run.patch())
            case "bodies":
                begin = _number(query, "from", 0)
                end = min(_number(query, "to", begin + 1), begin + _MOST_BODIES)
                while len(run.fold.items) < end and run.refresh(_FIRST):
                    pass  # a page may know items that this process has yet to read
                self._json(run.bodies(begin, end))
            case "page":
                self._send("".join(page_of(run)).encode(), "text/html; charset=utf-8", download=f"{run.path.name}.html")
            case "events":
                self._follow(run, int(self.headers.get("Last-Event-ID") or _number(query, "from", 0)))
            case _:
                raise Refused(HTTPStatus.NOT_FOUND, "page not found")

    def _replay(self) -> None:
        """Replay a run, for a page of this server alone: a page of another site can neither ask nor read the answer."""
        url = urlsplit(self.path)
        head, *parts = [unquote(part) for part in url.path.split("/")[1:]]
        if not self._admits(url.path, {}):
            return
        port = self.server.server_port
        if self.headers.get_all("Origin") not in ([f"http://127.0.0.1:{port}"], [f"http://localhost:{port}"]):
            raise Refused(HTTPStatus.FORBIDDEN, "another page asks; open the address yourself")
        if (head, *parts[:1], *parts[2:]) != ("api", "runs", "replay"):
            raise Refused(HTTPStatus.NOT_FOUND, "page not found")
        if not self.server.replays:
            raise Refused(HTTPStatus.FORBIDDEN, "this server does not replay; start it with: concertino view --replay")
        asked = self._asked()
        run = self.server.run_of(parts[1])
        if not self.server.replaying.acquire(blocking=False):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "another run is being replayed; try again")
        try:
            self._json(replayed_end(run, asked["strategy"], asked["settings"]))
        except (TraceError, UsageError) as error:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, run.fold.texts.text(str(error))) from error
        finally:
            self.server.replaying.release()

    def _asked(self) -> dict[str, Any]:
        """The body of a request: the name of a strategy, and settings."""
        length = self.headers.get("Content-Length", "")
        kind = self.headers.get("Content-Type", "")
        if kind != "application/json" or not (length.isascii() and length.isdigit()) or int(length[:9]) > _MOST_ASKED:
            raise Refused(HTTPStatus.BAD_REQUEST, f"expected JSON of at most {_MOST_ASKED} bytes")
        try:
            asked = json.loads(self.rfile.read(int(length[:9])))
        except (ValueError, RecursionError) as error:
            raise Refused(HTTPStatus.BAD_REQUEST, "the body is not JSON") from error
        match asked:
            case {"strategy": str(), "settings": dict()}:
                return dict(asked)
        raise Refused(HTTPStatus.BAD_REQUEST, 'expected {"strategy": a text, "settings": {name: value}}')

    def _follow(self, run: RunFile, since: int) -> None:
        """Tell of every change, until the run is over or the page goes away. The id is the number of records."""
        if not self.server.followers.acquire(blocking=False):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages follow at once; close some")
        try:
            self._begin(HTTPStatus.OK, "text/event-stream", {})
            self.close_connection = True
            wrote = 0.0
            while not self.server.closing.wait(_POLL):
                run.refresh(_THEN)
                if run.fold.count > since:
                    patch = run.patch(since)
                    since = patch["version"]
                    self._event(patch)
                    wrote = time.monotonic()
                    if patch["head"]["over"]:
                        return
                elif time.monotonic() - wrote > _HEARTBEAT:
                    self.wfile.write(b": still here\n\n")
                    wrote = time.monotonic()
        finally:
            self.server.followers.release()

    def _event(self, patch: dict[str, Any]) -> None:
        data = json.dumps(patch, ensure_ascii=False, separators=(",", ":"))  # JSON has no line feeds
        self.wfile.write(f"id: {patch['version']}\ndata: {data}\n\n".encode())

    def _static(self, name: str) -> None:
        if name == "page.css":
            self._send(static(name).encode(), "text/css; charset=utf-8")
        elif name in scripts():
            self._send(static(name).encode(), "text/javascript; charset=utf-8")
        else:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such file")

    def _json(self, value: Any) -> None:
        self._send(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), "application/json")

    def _send(self, data: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK, download: str = "") -> None:
        more = {"Content-Disposition": f'attachment; filename="{download}"'} if download else {}
        if len(data) > 4096 and "gzip" in self.headers.get("Accept-Encoding", ""):
            data, more = gzip.compress(data, 1), {**more, "Content-Encoding": "gzip"}
        self._begin(status, kind, {**more, "Content-Length": str(len(data))})
        self.wfile.write(data)

    def _begin(self, status: HTTPStatus, kind: str, more: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, **more}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: addresses hold the key."""


def _number(query: dict[str, str], name: str, otherwise: int) -> int:
    text = query.get(name, "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name}: expected a number")
    return int(text) if text else otherwise


_SHELL = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>concertino</title>
<link rel="stylesheet" href="/static/page.css">
<script type="module" src="/static/server_main.js"></script>
</head>
<body><div id="page"><p>Reading ...</p><noscript>This page needs JavaScript.</noscript></div></body>
</html>
"""
