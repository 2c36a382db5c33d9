"""The chat page at `/`, and a run as a page to keep.

Invariant: the page holds nothing of a run and needs no key; its script gets everything through the API, as any other
client. Nothing but its own script runs in it.
"""

from __future__ import annotations

import tempfile
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from .api_error import ApiError
from .serving import Serving

_KINDS = {"chat.html": "text/html", "chat.css": "text/css", "chat.js": "text/javascript"}
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


async def page(serving: Serving, request: Request) -> ASGIApp:
    """The page, or a file of it."""
    name = request.path_params.get("name", "chat.html")
    if name not in _KINDS:
        raise ApiError(404, "there is no such file", code="not_found")
    data = files(__package__).joinpath("static", name).read_bytes()
    return Response(data, media_type=_KINDS[name], headers=_HEADERS)


async def trace(serving: Serving, request: Request) -> ASGIApp:
    """A run as one HTML file, to be kept."""
    run = serving.hub.get(request.path_params["name"], serving.owner(request))
    if find_spec("concertino_view") is None:
        raise ApiError(501, "the pages of runs come with: pip install 'concertino[view]'", code="not_installed")
    from concertino_view import write_page

    with tempfile.TemporaryDirectory() as folder:
        data = write_page(run.trace, Path(folder, "run.html")).read_bytes()
    kept = {**_HEADERS, "content-disposition": f'attachment; filename="{run.id}.html"'}
    return Response(data, media_type="text/html", headers=kept)
