"""`concertino call`: one call of one tool or agent, through the executor that runs also run through."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import click

from concertino.core.documents import why_unusable
from concertino.core.errors import UsageError

from . import complete
from .failures import Failed
from .options import PoolChoice, common_options, pool_options, read_stdin, warn_about_broken_plugins
from .output import STATUS_COLOURS, clean, one_line, show_cost, write_json
from .terminal import Painted, say

if TYPE_CHECKING:
    from concertino.core.approval import ApprovalRequest, Decision
    from concertino.core.budget import Budget
    from concertino.core.observation import Observation
    from concertino.pool.pool import Pool

_EXAMPLES = """\b
Examples:
  concertino call toy/calculate '{"expression": "6*7"}'
  concertino call toy/calculate @arguments.json --json
  echo '{"expression": "6*7"}' | concertino call calculate -
"""


@click.command("call", epilog=_EXAMPLES)
@click.argument("name", shell_complete=complete.callables)
@click.argument("arguments", default="{}")
@pool_options
@click.option(
    "--budget", default="", metavar="LIMITS", help="Such as seconds=5,usd=0.1.", shell_complete=complete.limits
)
@common_options
def call(name: str, arguments: str, choice: PoolChoice, budget: str, as_json: bool) -> None:
    """Call one tool or agent with JSON arguments: `{…}`, `@FILE`, or `-` for stdin.

    The arguments are read, checked against the input schema and run with deadline, retries and budget, exactly as
    when an orchestrator calls. A call that needs approval is asked about in the terminal. The result goes to stdout.
    Exit code: 0 if the status is OK, else 1.

    JSON: the observation, {"id", "name", "status", "content", "error", "usage", "attempts", "started", "ended"}; what
    is empty is left out.
    """
    import asyncio

    from concertino.core.budget import Budget

    if not name.strip():
        raise UsageError("the name is empty; give that of a tool or an agent; `concertino tools` lists them")
    pool = choice.open()
    seen = asyncio.run(_call(pool, name, _read(arguments), Budget.parse(budget)))
    if seen.error is not None and seen.error.code == "unknown_name":
        if any(name in (model.name, model.short_name) for model in pool.models):
            raise UsageError(f"{name!r} is a model; tools and agents are called, a model leads: run --model {name}")
        # The name may belong to a plugin that was left out.
        warn_about_broken_plugins()
    if as_json:
        write_json(seen.to_json())
    else:
        _show(seen)
    if not seen.ok:
        raise Failed("" if as_json else _explain(seen))


def _read(arguments: str) -> str:
    if arguments == "-":
        return read_stdin()
    if not arguments.startswith("@"):
        return arguments
    try:
        # `utf-8-sig`: PowerShell and Windows editors put a mark at the begin of a file.
        return Path(arguments[1:]).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{arguments}: cannot be read: {why_unusable(error)}; give JSON, @FILE, or - for stdin"
        ) from error


async def _call(pool: Pool, name: str, arguments: str, budget: Budget) -> Observation:
    import asyncio

    from concertino.core.plan import Call
    from concertino.executor import Executor

    from .show import ask_about, at_a_terminal

    async def decide(request: ApprovalRequest) -> Decision:
        return (await asyncio.to_thread(ask_about, [request]))[request.call_id]

    approver = decide if at_a_terminal() else None
    # Idempotency keys are made of it: with a fixed one, a service would take a second payment for the first, repeated.
    run_id = f"call-{uuid4().hex}"
    async with Executor() as executor:
        return (await executor.run([Call(name, arguments)], pool, budget=budget, run_id=run_id, approver=approver))[0]


def _show(seen: Observation) -> None:
    content: Any = seen.content
    if isinstance(content, str):
        say(content)
    elif content is not None:
        write_json(content)
    seconds = seen.ended - seen.started
    notes = [f"repaired: {', '.join(seen.repairs)}"] if seen.repairs else []
    notes += [f"{seen.truncated} characters cut"] if seen.truncated else []
    line = ["", one_line(seen.name), f"{seconds:.3f} s", show_cost(seen.usage.to_json()), *notes]
    say(Painted(seen.status.value, STATUS_COLOURS[seen.status]), "  ".join(line), error=True)


def _explain(seen: Observation) -> str:
    error = seen.error
    if error is None:
        return seen.status.value
    # The message of most errors begins with the path already, and names the near ones.
    place = f" at {error.path}" if error.path and error.path not in error.message else ""
    told = all(name in error.message for name in error.near)
    near = "" if told else f"; near names: {', '.join(error.near)}"
    step = "; call it in a terminal, where you are asked" if error.code == "approval_pending" else ""
    return clean(f"{seen.name}: {error.code}{place}: {error.message}{near}{step}")
