"""What the tests of this provider share: small corpora, and an index folder of each test's own."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

BIRDS = [
    {"id": "owl", "title": "Owl", "text": "An owl hunts at night. It hears a mouse under snow."},
    {"id": "swift", "title": "Swift", "text": "A swift sleeps while it flies. It lands to breed only."},
    {"id": "penguin", "title": "Penguin", "text": "A penguin cannot fly. It swims under water and hunts fish."},
    {"id": "kiwi", "title": "Kiwi", "text": "The kiwi lives in New Zealand. It smells worms with its beak."},
]


@pytest.fixture
def write_lines(tmp_path: Path) -> Callable[..., Path]:
    """Writes objects as a JSON Lines file."""

    def write(rows: list[object], name: str = "corpus.jsonl") -> Path:
        file = tmp_path / name
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return file

    return write


@pytest.fixture
def bird_rows() -> list[dict[str, str]]:
    """Four lines about birds."""
    return [dict(row) for row in BIRDS]


@pytest.fixture
def birds(write_lines: Callable[..., Path]) -> Path:
    """Four passages about birds."""
    return write_lines(BIRDS)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A folder for indexes."""
    return tmp_path / "indexes"


class _Pages(BaseHTTPRequestHandler):
    """One page, one slow page, and no log."""

    def do_GET(self) -> None:
        if self.path == "/slow":
            time.sleep(1.5)
        known = self.path in ("/page.html", "/slow")
        body = b"<title>A page</title><p>Some text." if known else b"none"
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # the client may give up, as in some tests
            super().handle()


@pytest.fixture
def file_server() -> Iterator[str]:
    """The address of a small server on a thread, for tests whose event loop comes and goes."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()
