"""The application: its routes, and its life.

    GET  /health                     GET  /v1/models, /v1/models/{name}
    GET  /metrics                    POST /v1/chat/completions, /v1/responses
    GET  /v1/responses/{id}, /v1/responses/{id}/input_items
    POST /v1/responses/{id}/cancel   DELETE /v1/responses/{id}
    GET  /, /static/{name}           GET  /v1/responses/{id}/trace
    POST /v1/conversations           GET, POST, DELETE /v1/conversations/{id}
    GET, POST /v1/conversations/{id}/items             GET, DELETE /v1/conversations/{id}/items/{item}
    POST, DELETE /mcp                where the settings offer it
    GET  /view, /view/...            POST /view/key
    POST /a2a                        GET  /.well-known/agent-card.json      where they are asked for

Invariant: a route reads its request, asks the hub, and sends what a wire makes of the story; it decides nothing about a
run.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

from concertino.core.caller import called_by
from concertino.core.errors import UsageError
from concertino.core.logs import logger_of
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from . import a2a_routes, chat_page, conversation_routes, response_routes
from .api_error import ApiError
from .chat_routes import chat
from .event_stream import JsonAnswer
from .gate import LOOPBACK, Gate
from .key_ring import KeyRing, check_preset_budgets
from .run_hub import RunHub
from .run_ledger import RunLedger
from .serve_settings import ServeSettings
from .server_metrics import metrics_text, publish_counts
from .serving import Serving
from .settings_reload import SettingsReload
from .view_routes import BASE, ViewRoutes

_LOOK = 0.5
"""Seconds between two looks for runs of dead workers."""
logger = logger_of("serve")
_Endpoint = Callable[[Serving, Request], Awaitable[ASGIApp]]


class Application(NamedTuple):
    """The server as an ASGI application, and what it is made of."""

    gate: Gate
    serving: Serving


def application_of(
    settings: ServeSettings,
    hosts: tuple[str, ...] = LOOPBACK,
    *,
    reload_by_signal: bool = False,
    ledger: RunLedger | None = None,
) -> Application:
    """The server of some settings.

    Args:
        hosts: names under which it may be asked, beside those of the settings.
        reload_by_signal: SIGHUP reads the settings file again, as a change of it does.
        ledger: that it shares with other workers; by default there are none.

    Raises:
        UsageError: presets and keys do not fit together.
    """
    serving = serving_of(settings, ledger)
    mcp = None
    if settings.mcp is not None:
        require_mcp()
        from .mcp_routes import McpRoutes

        mcp = McpRoutes(serving)
    view = ViewRoutes(serving)
    routes = [
        _route("/health", _health, serving),
        _route("/metrics", _metrics, serving),
        _route("/v1/models", _models, serving),
        _route("/v1/models/{name:path}", _model, serving),
        _route("/v1/chat/completions", chat, serving, "POST"),
        _route("/v1/responses", response_routes.create, serving, "POST"),
        _route("/v1/responses/{name}", response_routes.read, serving),
        _route("/v1/responses/{name}", response_routes.delete, serving, "DELETE"),
        _route("/v1/responses/{name}/cancel", response_routes.cancel, serving, "POST"),
        _route("/v1/responses/{name}/trace", chat_page.trace, serving),
        _route("/v1/conversations", conversation_routes.create, serving, "POST"),
        _route("/v1/conversations/{name}", conversation_routes.read, serving),
        _route("/v1/conversations/{name}", conversation_routes.update, serving, "POST"),
        _route("/v1/conversations/{name}", conversation_routes.delete, serving, "DELETE"),
        _route("/v1/conversations/{name}/items", conversation_routes.items, serving),
        _route("/v1/conversations/{name}/items", conversation_routes.add_items, serving, "POST"),
        _route("/v1/conversations/{name}/items/{item}", conversation_routes.item, serving),
        _route("/v1/conversations/{name}/items/{item}", conversation_routes.delete_item, serving, "DELETE"),
        _route("/", chat_page.page, serving),
        _route("/static/{name}", chat_page.page, serving),
        _route("/v1/responses/{name}/input_items", response_routes.input_items, serving),
        Route(f"{BASE}/key", view.give_ticket, methods=["POST"]),
        Route(BASE, view.answer),
        Route(f"{BASE}/{{path:path}}", view.answer),
        *([Route("/mcp", mcp.answer, methods=["POST", "DELETE"])] if mcp is not None else []),
    ]
    if settings.a2a:
        routes.append(_route("/a2a", a2a_routes.answer, serving, "POST"))
        routes.append(_route("/.well-known/agent-card.json", a2a_routes.agent_card, serving))

    @contextlib.asynccontextmanager
    async def life(app: Any) -> AsyncIterator[None]:
        if resumed := await serving.hub.open():
            logger.info("%s interrupted runs were resumed", resumed)
        try:
            async with (
                _reloading(serving, reload_by_signal),
                _keeping_up(serving),
                mcp.running() if mcp is not None else contextlib.nullcontext(),
            ):
                yield
        finally:
            view.close()
            await serving.hub.close()

    router = Router(routes, redirect_slashes=False, default=_nothing, lifespan=life)
    return Application(Gate(router, (*hosts, *settings.hosts), settings.origins, serving.statuses), serving)


def _reloading(serving: Serving, by_signal: bool) -> contextlib.AbstractAsyncContextManager[None]:
    files = serving.settings.files
    return SettingsReload(serving, files[0]).watching(by_signal=by_signal) if files else contextlib.nullcontext()


@contextlib.asynccontextmanager
async def _keeping_up(serving: Serving) -> AsyncIterator[None]:
    """While the block lasts, do a worker's part for the others."""
    if not serving.hub.ledger.shared:
        yield
        return

    async def keep_up() -> None:
        while True:
            try:
                publish_counts(serving)
                if adopted := await serving.hub.adopt():
                    logger.warning("%s runs of a worker that has died were resumed", adopted)
            except Exception:  # a full disk, say: the next look may do better
                logger.exception("runs of dead workers were not looked at")
            await asyncio.sleep(_LOOK)

    task = asyncio.create_task(keep_up())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        publish_counts(serving)


def serving_of(settings: ServeSettings, ledger: RunLedger | None = None) -> Serving:
    """What a server of some settings is made of.

    Args:
        ledger: that it shares with other workers.

    Raises:
        UsageError: presets and keys do not fit together.
    """
    check_preset_budgets(settings.presets.values(), settings.keys)
    ring = KeyRing(settings.keys, settings.limits, ledger=ledger)
    return Serving(ring, RunHub(settings, ring))


def require_mcp() -> None:
    """Say what brings MCP, where it is missing.

    Raises:
        UsageError: the package is not installed.
    """
    if find_spec("mcp") is None:
        raise UsageError("[mcp]: the package mcp is not installed; pip install 'concertino-serve[mcp]'")


def _route(path: str, endpoint: _Endpoint, serving: Serving, method: str = "GET") -> Route:
    async def answer(request: Request) -> ASGIApp:
        with called_by(request.headers.get("traceparent", "")):
            return await endpoint(serving, request)

    return Route(path, answer, methods=[method])


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        raise ApiError(404, "there is no such address; the API begins with /v1", code="not_found")


async def _health(serving: Serving, request: Request) -> ASGIApp:
    return JsonAnswer({"status": "stopping" if serving.hub.stopping else "ok"})


async def _metrics(serving: Serving, request: Request) -> ASGIApp:
    serving.owner(request)
    return PlainTextResponse(metrics_text(serving), media_type="text/plain; version=0.0.4")


async def _models(serving: Serving, request: Request) -> ASGIApp:
    serving.owner(request)
    return JsonAnswer({"object": "list", "data": [_model_of(serving, name) for name in serving.settings.presets]})


async def _model(serving: Serving, request: Request) -> ASGIApp:
    serving.owner(request)
    return JsonAnswer(_model_of(serving, serving.preset(request.path_params["name"]).name))


def _model_of(serving: Serving, name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": serving.began, "owned_by": "concertino"}
