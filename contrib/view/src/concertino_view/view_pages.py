"""The pages of a folder of traces: what is answered to which path, without a transport.

`concertino view` carries answers by a server of its own, `concertino serve` by its. Who may ask is checked by the
carrier, before anything comes here. Invariants: a run is found among the files of the folder, never by a path that a
request names; a trace that is kept from the one who asks is as good as none; nothing is changed, and nothing computed
but what a page shows.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs, unquote

from concertino.core.errors import TraceError
from concertino.traces import TraceStore
from concertino.traces.sink import SUFFIX

from .evaluation_list import EvaluationList
from .replayed_end import known_strategies
from .run_difference import comparison
from .run_file import RunFile
from .run_list import RunList
from .run_page import page_of, scripts, static
from .shown_texts import fault_of

Shows = Callable[[Path], bool]
"""Whether the one who asks may see a trace."""
POLL = 0.05
"""Seconds between two looks at a trace that is followed."""
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_FIRST, _THEN = 0.4, 1.5
"""Seconds for which a long trace is read before its begin is shown, and then between two patches."""
_HEARTBEAT = 10.0
_MOST_FOLLOWED = 64
"""Pages that may follow at once; further ones are told to come back."""
_MOST_OPEN = 8
"""Traces whose folds are kept."""
_MOST_BODIES = 200


class Refused(Exception):
    """A request that gets an error: its status, and a sentence."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status

    def to_json(self) -> bytes:
        """What the page is told."""
        return json.dumps({"error": str(self)}).encode()


class Answer(NamedTuple):
    """Bytes for a page; `download` is the name of the file in which they are kept."""

    data: bytes
    kind: str
    download: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """Beside those of every page."""
        return {"Content-Disposition": f'attachment; filename="{self.download}"'} if self.download else {}


class Following:
    """The changes of a run as server-sent events, until the run is over. Close it, whatever happens.

    The id of an event is the version that the page has with it.
    """

    def __init__(self, run: RunFile, since: int, places: threading.BoundedSemaphore) -> None:
        self.over = False
        self._run, self._since, self._places = run, since, places
        self._wrote = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._places.release()

    def event(self) -> bytes:
        """What is new; now and then a comment, which says that nothing is; most often empty."""
        self._run.refresh(_THEN)
        now = time.monotonic()
        if self._run.fold.version > self._since:
            patch = self._run.patch(self._since)
            self._since, self._wrote = patch["version"], now
            self.over = patch["head"]["over"] and not patch["more"]
            return b"id: %d\ndata: %b\n\n" % (self._since, _json(patch))  # JSON has no line feeds
        if now - self._wrote > _HEARTBEAT:
            self._wrote = now
            return b": still here\n\n"
        return b""


def everything(_: Path) -> bool:
    """Shows all traces of the folder."""
    return True


class ViewPages:
    """The pages of a folder; safe to use from several threads.

    Args:
        folder: of traces; None for that of the settings.
        results: results files of evaluations, whose systems are compared.
        replays: whether pages may have runs replayed.
        base: path before all paths, such as `/view`.

    Raises:
        UsageError: a results file cannot be read.
    """

    def __init__(
        self, folder: Path | None = None, results: Sequence[Path] = (), *, replays: bool = False, base: str = ""
    ) -> None:
        self.store = TraceStore(folder)
        self.evaluations = EvaluationList(results)
        self.replays = replays
        self.list = RunList(self.store)
        self.followers = threading.BoundedSemaphore(_MOST_FOLLOWED)
        self._shell = _SHELL.replace("BASE", base).encode()
        self._open: dict[Path, RunFile] = {}
        self._lock = threading.Lock()

    def answer(self, path: str, query: str = "", last: str = "", shows: Shows = everything) -> Answer | Following:
        """What a page asks for.

        Args:
            path: below the base, as it came.
            query: as it came.
            last: the id of the last event that a page has which follows a run again.
            shows: which traces exist for the one who asks.

        Raises:
            Refused: it does not exist, or cannot be read.
        """
        asked = {name: values[-1] for name, values in parse_qs(query).items()}
        match [unquote(part) for part in path.split("/")[1:]]:
            case ["" | "compare" | "evaluations"] | ["run", _]:
                return Answer(self._shell, "text/html; charset=utf-8")
            case ["static", name]:
                return _static(name)
            case ["api", "runs", name, what]:
                # What a page shows is read already, and what it follows is read while it looks.
                seconds = {"data": _FIRST, "bodies": 0.0, "events": 0.0}.get(what)
                if last:
                    asked["from"] = last
                return self._of_run(self.run_of(name, seconds, shows), what, asked)
            case ["api", *parts]:
                return Answer(_json(self._of_folder(parts, asked, shows)), "application/json")
        raise Refused(HTTPStatus.NOT_FOUND, "page not found")

    def run_of(self, name: str, seconds: float | None = None, shows: Shows = everything) -> RunFile:
        """The run of an id, read as far as it goes, or for so many seconds more.

        Raises:
            Refused: there is none, or it cannot be read.
        """
        # The name is compared with those of files, and never made into a path.
        path = next((each for each in self.store.paths() if each.name == name + SUFFIX and shows(each)), None)
        path = path or self.evaluations.trace(name)
        if path is None:
            raise Refused(HTTPStatus.NOT_FOUND, "the folder has no run of this name")
        with self._lock:
            found = self._open.pop(path, None)
        try:
            run = found if found is not None and not found.replaced() else RunFile(path, seconds)
            run.refresh(seconds)
        except TraceError as error:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, fault_of(error, path)) from error
        with self._lock:
            self._open[path] = run
            while len(self._open) > _MOST_OPEN:
                del self._open[next(iter(self._open))]
        return run

    def _of_folder(self, parts: list[str], query: dict[str, str], shows: Shows) -> Any:
        match parts:
            case ["runs"]:
                rows = self.list.rows(_number(query, "most", 200), shows)
                return {"folder": self.store.folder.name, "runs": rows, "evaluations": len(self.evaluations.files)}
            case ["replay"]:
                return {"strategies": known_strategies() if self.replays else []}
            case ["evaluations"]:
                return self.evaluations.arms()
            case ["flips"]:
                found = self.evaluations.flips(_number(query, "a", 0), _number(query, "b", 1))
                if found is None:
                    raise Refused(HTTPStatus.NOT_FOUND, "evaluation not found")
                return found
            case ["compare"]:
                return comparison(*(self.run_of(query.get(each, ""), None, shows) for each in ("a", "b")))
        raise Refused(HTTPStatus.NOT_FOUND, "page not found")

    def _of_run(self, run: RunFile, what: str, query: dict[str, str]) -> Answer | Following:
        match what:
            case "data":
                return Answer(_json(run.patch()), "application/json")
            case "bodies":
                begin = _number(query, "from", 0)
                end = min(_number(query, "to", begin + 1), begin + _MOST_BODIES)
                while len(run.fold.items) < end and run.refresh(_FIRST):
                    pass  # a page may know items that this process has yet to read
                return Answer(_json(run.bodies(begin, end)), "application/json")
            case "page":
                page = "".join(page_of(run)).encode()
                return Answer(page, "text/html; charset=utf-8", download=f"{run.path.name}.html")
            case "events":
                since = _number(query, "from", 0)
                if not self.followers.acquire(blocking=False):
                    raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages follow at once; close some")
                return Following(run, since, self.followers)
        raise Refused(HTTPStatus.NOT_FOUND, "page not found")


def _static(name: str) -> Answer:
    if name == "page.css":
        return Answer(static(name).encode(), "text/css; charset=utf-8")
    if name in scripts():
        return Answer(static(name).encode(), "text/javascript; charset=utf-8")
    raise Refused(HTTPStatus.NOT_FOUND, "this file does not exist")


def _number(query: Mapping[str, str], name: str, otherwise: int) -> int:
    text = query.get(name, "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name}: expected a number")
    return int(text) if text else otherwise


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


_SHELL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>concertino</title>
<link rel="stylesheet" href="BASE/static/page.css">
<script type="module" src="BASE/static/server_main.js"></script>
</head>
<body><div id="page"><p>Reading ...</p><noscript>This page needs JavaScript.</noscript></div></body>
</html>
"""
