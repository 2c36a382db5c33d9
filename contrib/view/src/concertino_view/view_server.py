"""The server of `concertino view`: a folder of traces, shown to one person on this machine.

Invariants: it listens on 127.0.0.1 alone and answers only requests for that address (a foreign name that leads here is
refused), and only with the key; it changes nothing; it replays runs only if it was started with the right to, and then
only for its own page, one at a time; no error of one request ends it.
"""

from __future__ import annotations

import gzip
import json
import secrets
import threading
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from concertino.core.errors import TraceError, UsageError
from concertino.core.logs import logger_of

from .replayed_end import replayed_end
from .view_pages import PAGE_HEADERS, POLL, Answer, Following, Refused, ViewPages

_MOST_ASKED = 4096
"""Bytes of the body of a request."""
logger = logger_of("view")


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
        self.pages = ViewPages(folder, results, replays=replays)
        self.replaying = threading.BoundedSemaphore(1)
        self.key = secrets.token_urlsafe(24)
        self.closing = threading.Event()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        """The address of the page, with the key."""
        return f"http://127.0.0.1:{self.server_port}/?key={self.key}"

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
            self._send(Answer(refused.to_json(), "application/json"), refused.status)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except Exception:
            logger.exception("a request of the page failed")
            failed = Answer(b'{"error": "the server failed; its log says why"}', "application/json")
            self._send(failed, HTTPStatus.INTERNAL_SERVER_ERROR)

    def _answer(self) -> None:
        url = urlsplit(self.path)
        if not self._admits(url.path, {name: values[-1] for name, values in parse_qs(url.query).items()}):
            return
        found = self.server.pages.answer(url.path, url.query, self.headers.get("Last-Event-ID", ""))
        if isinstance(found, Answer):
            self._send(found)
        else:
            self._follow(found)

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
        if not self.server.pages.replays:
            raise Refused(HTTPStatus.FORBIDDEN, "this server does not replay; start it with: concertino view --replay")
        asked = self._asked()
        run = self.server.pages.run_of(parts[1])
        if not self.server.replaying.acquire(blocking=False):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "another run is being replayed; try again")
        try:
            found = replayed_end(run, asked["strategy"], asked["settings"])
            self._send(Answer(json.dumps(found).encode(), "application/json"))
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

    def _follow(self, following: Following) -> None:
        with following:
            self._begin(HTTPStatus.OK, "text/event-stream", {})
            self.close_connection = True
            while not following.over and not self.server.closing.wait(POLL):
                if event := following.event():
                    self.wfile.write(event)

    def _send(self, answer: Answer, status: HTTPStatus = HTTPStatus.OK) -> None:
        data, more = answer.data, answer.headers
        if len(data) > 4096 and "gzip" in self.headers.get("Accept-Encoding", ""):
            data, more = gzip.compress(data, 1), {**more, "Content-Encoding": "gzip"}
        self._begin(status, answer.kind, {**more, "Content-Length": str(len(data))})
        self.wfile.write(data)

    def _begin(self, status: HTTPStatus, kind: str, more: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**PAGE_HEADERS, "Content-Type": kind, **more}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: addresses hold the key."""
