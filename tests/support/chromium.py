"""A headless Chromium for tests of pages, spoken to by its debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    "--window-size=1280,900",
]
_START = """
import fcntl, os, sys
kept = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3]]
os.dup2(kept[0], 3), os.dup2(kept[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """Chromium, spoken to by its debugging pipe: JSON messages that end with NUL, on the descriptors 3 and 4.

    Attributes:
        events: everything that it told.
    """

    def __init__(self, program: str, profile: Path) -> None:
        to_it, from_it = os.pipe(), os.pipe()
        fds = [str(to_it[0]), str(from_it[1])]
        command = [sys.executable, "-c", _START, *fds, program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(
            command, pass_fds=(to_it[0], from_it[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_it[0])
        os.close(from_it[1])
        self._out, self._in = os.fdopen(to_it[1], "wb", buffering=0), os.fdopen(from_it[0], "rb", buffering=0)
        self._buffer, self._number, self.session = b"", 0, ""
        self.events: list[dict[str, Any]] = []

    def begin(self) -> None:
        """Open an empty page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something, and wait for the answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, page: Path | str) -> None:
        """Open a file or an address, and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        deadline = time.monotonic() + 60
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            assert time.monotonic() < deadline, "the page did not load"
            self.call("Runtime.evaluate", expression="0")
        self.call("Runtime.evaluate", expression="new Promise(r => setTimeout(r, 200))", awaitPromise=True)

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def until(self, expression: str, seconds: float = 60.0) -> None:
        """Wait until a JavaScript expression is true."""
        deadline = time.monotonic() + seconds
        while self.value(expression) is not True:
            assert time.monotonic() < deadline, f"{expression} did not become true"
            time.sleep(0.02)

    def show(self, dark: bool = False, width: int = 1280) -> None:
        """Set the scheme of colours, and the width of the window."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    def screenshot(self, to: Path, dark: bool = False, width: int = 1280) -> None:
        """A picture of the whole page."""
        self.show(dark, width)
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        to.write_bytes(base64.b64decode(data))

    def told(self, *methods: str) -> list[dict[str, Any]]:
        """What it told of certain kinds since the page was opened."""
        return [event["params"] for event in self.events if event.get("method") in methods]

    def close(self) -> None:
        """End it."""
        self._out.close()
        self._in.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            more = self._in.read(1 << 16)
            assert more, "Chromium went away"
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


def headless_chromium(profile: Path) -> Iterator[Browser]:
    """Chromium while a fixture lasts; skips where there is none.

    Args:
        profile: an empty folder, for what it keeps.
    """
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium on the PATH, so no page is opened; on Debian: apt-get install -y chromium")
    made = Browser(program, profile)
    try:
        made.begin()
        yield made
    finally:
        made.close()
