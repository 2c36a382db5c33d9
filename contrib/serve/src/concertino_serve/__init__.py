"""concertino-serve: pools behind an address, for any client of the OpenAI API or of MCP.

    serve_settings  the settings file             api_error       what a client is told of an error
    request_record  what a client asked for       request_reader  from a body to a question
    side_prompts    titles, tags and such         run_moments     what happened in a run, live or from disk
    told_text       pieces of answers, as told    served_run      a run as one request sees it
    run_story       the fold over the moments     conversation_store  what belongs to a conversation
    client_tools    tools that clients supply     call_answers    what their calls returned
    run_hub         the runs of this server       served_folder   one server for a folder
    run_ledger      what workers agree on         worker_group    several workers
    run_locks       one change of a run at a time  trace_facts    what is on disk of a run
    request_digests  which run answers what
    settings_reload  the settings file, again     sealed_file     files beside a trace
    chat_wire       chat completions              response_wire   responses
    key_ring        keys, budgets, rates          gate            who gets in, and with how much
    event_stream    frames to a client            web_app         the routes
    response_items  items that clients send       chat_page       the page
    chat_routes, response_routes, conversation_routes   what each route does
    one_call        a call without a model        mcp_tools       what MCP clients find
    mcp_server      what they are answered        mcp_results     what they read of a run
    mcp_progress    how far a call is             mcp_tasks       long calls as tasks
    mcp_routes, mcp_stdio                         its two transports
    a2a_routes, a2a_wire  tasks of other agents   a2a_contexts    the tasks of a conversation, and all
    serving         what routes share             server_metrics  counts
    serve_commands  the command                   http_server     how it listens
    static          the files of the chat page

Everything that a client reads is a fold over the trace of its run and the pieces of the answer that were told before
its end. `make_app` is for programs. Importing this package imports none of the modules; the hook below imports the
command.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import hookimpl

if TYPE_CHECKING:
    from starlette.types import ASGIApp

__all__ = ["make_app"]


def make_app(settings: str | Path) -> ASGIApp:
    """The server of a settings file as an ASGI application, for a server or a program of one's own.

    It needs the lifespan of ASGI: its begin resumes interrupted runs, its end suspends those under way. One process may
    serve a folder of traces at a time.

    Args:
        settings: the file.

    Raises:
        UsageError: something in the file is wrong.
        PoolError: a pool cannot be made.
    """
    from .serve_settings import read_serve_settings
    from .web_app import application_of

    return application_of(read_serve_settings(Path(settings))).gate


@hookimpl
def concertino_cli() -> list[Any]:
    """`concertino serve`."""
    from .serve_commands import serve_command

    return [serve_command]
