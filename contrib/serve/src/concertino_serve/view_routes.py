"""The pages of `concertino view` under `/view`: the runs of this server's folder, for the client that began them.

A browser sends no key with a page that it opens, so a client shows its key once, at `/view/key`, and gets a *ticket*: a
cookie that holds no key, that scripts cannot read, and that is good for the pages alone. Invariants: a client sees the
runs that it began and no others; a server without keys shows what nobody's key began. Traces are read in threads of
their own, so no other request waits for them.
"""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from concertino.core.errors import TraceError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .api_error import ApiError
from .event_stream import EventStream
from .http_server import ENDS_WITH_SERVER
from .request_record import RequestRecord
from .serving import Serving

if TYPE_CHECKING:
    from concertino_view.view_pages import Answer, Following, ViewPages

_T = TypeVar("_T")
BASE = "/view"
_WITHOUT_RUNS = re.compile(r"/?|/compare|/evaluations|/run/[^/]+|/static/[a-z_.]+")
"""Paths of what holds nothing of a run: a page whose script asks for all of it."""
_THREADS = 2
_MOST_KNOWN = 50_000
"""Traces whose owners are remembered."""
_SMALL = 4096
"""Bytes of an answer that are sent as they are."""


class ViewRoutes:
    """The routes below `/view`.

    Args:
        serving: whose keys and folder they are.
    """

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._threads = ThreadPoolExecutor(_THREADS, "concertino-view")
        self._pages: ViewPages | None = None
        self._owners: dict[str, str] = {}

    def close(self) -> None:
        """Begin nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def give_ticket(self, request: Request) -> ASGIApp:
        """A ticket for the client of a key."""
        owner, ring = self._serving.owner(request), self._serving.ring
        self._found_pages()  # else there is nothing to open
        answer = Response(status_code=204, headers={"cache-control": "no-store"})
        if not ring.open:
            answer.set_cookie(
                _cookie(request),
                *ring.ticket(owner),
                path=BASE,
                httponly=True,
                samesite="strict",
                secure=request.url.scheme == "https",
            )
        return answer

    async def answer(self, request: Request) -> ASGIApp:
        """A page, or what its script asks for."""
        path = request.scope["raw_path"].decode("latin-1").removeprefix(BASE)
        owner = None if _WITHOUT_RUNS.fullmatch(path) else self._owner(request)
        pages = self._found_pages()
        from concertino_view.view_pages import Following, Refused

        shows = partial(self._shows, owner)
        asked = partial(pages.answer, path or "/", request.url.query, request.headers.get("last-event-id", ""), shows)
        try:
            found = await self._in_thread(asked)
        except Refused as refused:
            return Response(refused.to_json(), refused.status, _headers(), "application/json")
        if isinstance(found, Following):
            request.scope[ENDS_WITH_SERVER] = True
            return partial(self._follow, found)
        return await self._in_thread(partial(_response, found, request.headers.get("accept-encoding", "")))

    def _found_pages(self) -> ViewPages:
        if self._pages is None:
            if find_spec("concertino_view") is None:
                raise ApiError(501, "the pages of runs come with: pip install 'concertino[view]'", code="not_installed")
            from concertino_view.view_pages import ViewPages

            self._pages = ViewPages(self._serving.hub.runs.store.folder, base=BASE)
        return self._pages

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _follow(self, following: Following, scope: Scope, receive: Receive, send: Send) -> None:
        with following:
            await EventStream(self._events(following), _headers(), _nobody_minds)(scope, receive, send)

    async def _events(self, following: Following) -> AsyncIterator[bytes]:
        from concertino_view.view_pages import POLL

        while not following.over:
            yield await self._in_thread(following.event)
            await asyncio.sleep(POLL)

    def _owner(self, request: Request) -> str:
        """A client with a key, or with a ticket for it.

        Raises:
            ApiError: nobody.
        """
        ticket = request.cookies.get(_cookie(request), "")
        if ticket and "authorization" not in request.headers:
            return self._serving.ring.owner_of_ticket(ticket)
        return self._serving.owner(request)

    def _shows(self, owner: str | None, trace: Path) -> bool:
        """Whether a client began a run."""
        began = self._owners.get(trace.name)
        if began is None:
            try:
                began = RequestRecord.read(trace).owner
            except (TraceError, OSError):
                began = ""  # of the command line, say
            if len(self._owners) >= _MOST_KNOWN:
                self._owners.clear()
            self._owners[trace.name] = began
        return began == owner


def _cookie(request: Request) -> str:
    # Cookies do not tell ports apart.
    return f"concertino-view-{request.url.port or request.url.scheme}"


def _headers() -> dict[str, str]:
    from concertino_view.view_pages import PAGE_HEADERS

    return {name.lower(): value for name, value in PAGE_HEADERS.items()}


def _response(answer: Answer, encodings: str) -> Response:
    data, headers = answer.data, {**_headers(), **answer.headers}
    if len(data) > _SMALL and "gzip" in encodings:
        data, headers = gzip.compress(data, 1), {**headers, "content-encoding": "gzip"}
    return Response(data, headers=headers, media_type=answer.kind)


async def _nobody_minds() -> None:
    """Who looks at a run and leaves changes nothing about it."""
