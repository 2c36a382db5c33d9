"""`concertino tools`, `agents` and `models`: what is in a pool, in a list or one by one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from concertino.core.display_text import show_call_cost, show_prices
from concertino.core.errors import UsageError

from . import complete
from .options import PoolChoice, common_options, pool_options, warn_about_broken_plugins
from .output import write_fields, write_json, write_table
from .terminal import say

if TYPE_CHECKING:
    from concertino.members.specs import Spec
    from concertino.pool.pool import Pool
    from concertino.pool.views import ContextCost


def describe(spec: Spec, pool: Pool, tokens: ContextCost) -> dict[str, Any]:
    """A member as JSON; tools and agents with the name that the orchestrator sees and their tokens of its context."""
    data = spec.to_json()
    visible = pool.visible_names.get(spec.name)
    if visible is not None:
        data["visible_name"], data["context_tokens"] = visible, tokens.by_member[visible]
    else:
        data["roles"] = sorted(role for role, name in pool.roles.items() if name == spec.name)
    return data


def _group(kind: str) -> click.Group:
    """The command of one kind of member: `list` (the default) and `show`."""

    @click.group(f"{kind}s", invoke_without_command=True, help=f"List the {kind}s of a pool, or show one.")
    @pool_options
    @common_options
    @click.pass_context
    def group(ctx: click.Context, choice: PoolChoice, as_json: bool) -> None:
        if ctx.invoked_subcommand is None:
            _list(kind, choice, as_json)
        # click would take these for the group and drop them silently.
        elif choice or as_json:
            raise UsageError(f"give options after the last word: concertino {kind}s {ctx.invoked_subcommand} …")

    @group.command("list", help=f"List the {kind}s of a pool.\n\nJSON: a list of objects as `show --json` prints one.")
    @pool_options
    @common_options
    def list_(choice: PoolChoice, as_json: bool) -> None:
        _list(kind, choice, as_json)

    @group.command("show", help=f"Show one {kind}: everything that a run can depend on.\n\n{_JSON[kind]}")
    @click.argument("name", shell_complete=complete.members_of[kind])
    @pool_options
    @common_options
    def show(name: str, choice: PoolChoice, as_json: bool) -> None:
        _show(kind, name, choice, as_json)

    return group


_ACTION = (
    '"kind", "name", "visible_name", "description", "input_schema", "cost", "timeout", "writes", "retry_safe", '
    '"isolation", "max_chars", "context_tokens"'
)
_IF_SET = 'and where they are set "output_schema", "concurrency", "maths_fields".'
_JSON = {
    "tool": f"JSON: {{{_ACTION}}}, {_IF_SET}",
    "agent": f'JSON: {{{_ACTION}, "models"}}, {_IF_SET}',
    "model": (
        'JSON: {"kind", "name", "description", "prices", "context", "concurrency", "timeout", "max_tokens", "roles"}'
    ),
}
"""What `show --json` prints."""


def _list(kind: str, choice: PoolChoice, as_json: bool) -> None:
    pool = choice.open()
    members = [member for member in pool.members if member.kind == kind]
    tokens = pool.count_context()
    if as_json:
        write_json([describe(member, pool, tokens) for member in members])
        return
    warn_about_broken_plugins()
    if not members:
        say(f"The pool has no {kind}s; pip install a plugin that has some, or see `concertino plugins`.")
    elif kind == "model":
        write_table(("NAME", "ROLES", "$ PER MILLION", "DESCRIPTION"), _model_rows(members, pool))
    else:
        write_table(
            ("NAME", "SEEN AS", "COST", "TIMEOUT", "TOKENS", "DESCRIPTION"), _action_rows(members, pool, tokens)
        )


def _action_rows(members: Sequence[Any], pool: Pool, tokens: ContextCost) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for spec in members:
        visible = pool.visible_names[spec.name]
        timeout = f"{spec.timeout:g} s" if spec.timeout else "-"
        rows.append(
            (spec.name, visible, show_call_cost(spec.cost), timeout, tokens.by_member[visible], spec.description)
        )
    return rows


def _model_rows(members: Sequence[Any], pool: Pool) -> list[tuple[object, ...]]:
    roles = pool.roles
    return [
        (
            spec.name,
            ",".join(role for role, name in roles.items() if name == spec.name) or "-",
            show_prices(spec.prices),
            spec.description,
        )
        for spec in members
    ]


def _show(kind: str, name: str, choice: PoolChoice, as_json: bool) -> None:
    pool = choice.open()
    spec = pool.model(name) if kind == "model" and name in pool.roles else pool[name]
    if spec.kind != kind:
        raise UsageError(f"{name!r} is not one of the {kind}s; see `concertino {spec.kind}s show {spec.name}`")
    data = describe(spec, pool, pool.count_context())
    if as_json:
        write_json(data)
    else:
        write_fields(_model_fields(spec, data) if spec.kind == "model" else _action_fields(spec, data))


def _action_fields(spec: Any, data: dict[str, Any]) -> dict[str, object]:
    fields: dict[str, object] = {
        "name": spec.name,
        "seen as": data["visible_name"],
        "description": spec.description,
        "cost": show_call_cost(spec.cost),
        "timeout": f"{spec.timeout:g} s" if spec.timeout else "none; only the run's deadline",
        "at once": spec.concurrency or "no limit",
        "runs on": {"loop": "the event loop", "thread": "a thread", "process": "a process"}[spec.isolation],
        "writes": "yes: such calls run one after another" if spec.writes else "no",
        "context": f"{data['context_tokens']} tokens",
    }
    if data.get("models"):
        fields["models"] = ", ".join(data["models"])
    fields["input"] = json.dumps(spec.input_schema, indent=2, ensure_ascii=False)
    if spec.output_schema is not None:
        fields["output"] = json.dumps(spec.output_schema, indent=2, ensure_ascii=False)
    return fields


def _model_fields(spec: Any, data: dict[str, Any]) -> dict[str, object]:
    return {
        "name": spec.name,
        "description": spec.description or "-",
        "prices": f"{show_prices(spec.prices)} (input / output, $ per million tokens)",
        "context": f"{spec.context:,} tokens" if spec.context else "unknown",
        "timeout": f"{spec.timeout:g} s" if spec.timeout else "none; only the run's deadline",
        "roles": ", ".join(data["roles"]) or "-",
    }


tools, agents, models = _group("tool"), _group("agent"), _group("model")
