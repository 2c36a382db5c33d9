"""A pool as HTML for a notebook: its members by kind, what the orchestrator calls them, what they cost.

Long lists are cut, and say so. Secrets are hidden, which a description of somebody's server may hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from concertino.core.display_text import counted, show_call_cost, show_prices
from concertino.core.html import details, escaped, fitting, page, row, table
from concertino.core.redaction import DisplayRedactor
from concertino.members.specs import ModelSpec, ToolSpec

if TYPE_CHECKING:
    from .pool import Pool

MOST_ROWS = 60
"""Members of one kind."""
_DESCRIPTION = 240
_ACTIONS = ("name", "seen as", "cost", "description")
_COLUMNS = {3: "long"}
_MODELS = ("name", "roles", "$ per million tokens, in / out", "description")


def pool_html(pool: Pool) -> str:
    """What a notebook shows of a pool."""
    tools = [member for member in pool.members if isinstance(member, ToolSpec)]
    kinds = {kind: [member for member in tools if member.kind == kind] for kind in ("tool", "agent")}
    models = [member for member in pool.members if isinstance(member, ModelSpec)]
    roles = ", ".join(f"{escaped(role, 60)} = {escaped(name, 80)}" for role, name in pool.roles.items())
    return page(
        [
            f"<p><b>Pool</b> {escaped(pool.id)}</p>",
            f'<p class="dim">roles: {roles or "none bound"}</p>',
            *(_part(kind, len(found), _ACTIONS, _actions(pool, found)) for kind, found in kinds.items()),
            _part("model", len(models), _MODELS, _models(pool, models)),
        ]
    )


def _part(kind: str, number: int, titles: tuple[str, ...], rows: Iterator[str]) -> str:
    if not number:
        return ""
    kept = fitting(rows, MOST_ROWS)
    left_out = f'<p class="dim">and {number - len(kept):,} more</p>' if len(kept) < number else ""
    return details(counted(number, kind), table(titles, kept, _COLUMNS) + left_out, opened=True)


def _actions(pool: Pool, members: list[ToolSpec]) -> Iterator[str]:
    redactor, visible, aliases = DisplayRedactor(), pool.visible_names, pool.aliases
    for spec in members:
        seen = escaped(visible[spec.name], 80) + (' <span class="dim">(alias)</span>' if spec.name in aliases else "")
        cost = escaped(show_call_cost(spec.cost))
        yield row([escaped(spec.name, 80), seen, cost, escaped(redactor.text(pool.card(spec)), _DESCRIPTION)], _COLUMNS)


def _models(pool: Pool, members: list[ModelSpec]) -> Iterator[str]:
    redactor = DisplayRedactor()
    for spec in members:
        roles = ", ".join(role for role, name in pool.roles.items() if name == spec.name)
        prices = escaped(show_prices(spec.prices))
        if spec.prices is not None and spec.prices.as_of:
            prices += f' <span class="dim">({escaped(spec.prices.as_of, 40)})</span>'
        yield row(
            [
                escaped(spec.name, 80),
                escaped(roles, 120),
                prices,
                escaped(redactor.text(spec.description), _DESCRIPTION),
            ],
            _COLUMNS,
        )
