"""`concertino pool`: pools as values: shown, compared, counted, saved, locked and checked against a lock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import complete
from .failures import Failed
from .group import OpenGroup
from .members import describe
from .options import PoolChoice, common_options, pool_options, warn_about_broken_plugins
from .output import write_fields, write_json, write_table
from .terminal import say

if TYPE_CHECKING:
    from concertino.pool.pool import Pool

LOCK_FILE = Path("pool.lock")
INSTALLED = "installed"
"""The word for everything installed, where a pool file is expected."""

_lock_option = click.option(
    "--lock", "lock_file", type=click.Path(path_type=Path), default=LOCK_FILE, show_default=True, metavar="FILE"
)


@click.group(
    "pool",
    cls=OpenGroup,
    epilog="Plugins may add commands; concertino-bench adds `concertino pool describe`.",
)
def pool() -> None:
    """Show, compare, save and lock pools. Without --pool: the settings' file, else everything installed."""


@pool.command("show")
@pool_options
@common_options
def show(choice: PoolChoice, as_json: bool) -> None:
    """Show a pool.

    JSON: {"id", "members": [as `tools show`, `models show`], "roles", "aliases", "context_tokens"}
    """
    chosen = choice.open()
    tokens = chosen.count_context()
    members = [describe(member, chosen, tokens) for member in chosen.members]
    if as_json:
        data = {"id": chosen.id, "members": members, "roles": chosen.roles, "aliases": chosen.aliases}
        write_json({**data, "context_tokens": tokens.total})
        return
    warn_about_broken_plugins()
    bound = ", ".join(f"{role} = {name}" for role, name in chosen.roles.items()) or "none bound"
    write_fields({"pool": chosen.id, "roles": bound, "context": f"{tokens.total} tokens"})
    if members:
        say()
        rows = [
            (m["kind"], m["name"], m.get("visible_name", "-"), m.get("context_tokens", "-"), m["description"])
            for m in members
        ]
        write_table(("KIND", "NAME", "SEEN AS", "TOKENS", "DESCRIPTION"), rows, key=1)


@pool.command("diff")
@click.argument("before", shell_complete=complete.pools_to_compare)
@click.argument("after", shell_complete=complete.pools_to_compare)
@common_options
def diff(before: str, after: str, as_json: bool) -> None:
    """Compare two pool files; `installed` means everything installed.

    `+` added, `-` removed, `~` changed, `@` a role bound to another model. Exit code: 0, equal or not.

    JSON: {"equal", "added", "removed", "changed", "rebound"}
    """
    found = _named(before).diff(_named(after))
    if as_json:
        write_json({"equal": not found, **{name: list(names) for name, names in found._asdict().items()}})
    else:
        say(str(found))


@pool.command("tokens")
@pool_options
@common_options
def tokens(choice: PoolChoice, as_json: bool) -> None:
    """Count what each tool and agent takes of the orchestrator's context, most first (an estimate).

    JSON: {"total", "by_member": {visible name: tokens}}
    """
    cost = choice.open().count_context()
    if as_json:
        write_json(cost._asdict())
        return
    by_size = sorted(cost.by_member.items(), key=lambda pair: -pair[1])
    write_table(("TOKENS", "SEEN AS"), [*((count, name) for name, count in by_size), (cost.total, "(all)")])


@pool.command("find")
@click.argument("question")
@pool_options
@common_options
def find(question: str, choice: PoolChoice, as_json: bool) -> None:
    """Show which tools and agents fit a question, best first.

    It asks the search of the pool, if it has one, else `search/tools` of concertino-search. A run lists what fits where
    the pool is too large for a prompt.

    JSON: {"searched": whether runs of this pool search, "found": [visible names, best first]}
    """
    from concertino.pool.search import ToolSearch
    from concertino.runs.action_space import learned

    if not question.strip():
        raise click.UsageError("the question is empty; say what is to be done, such as 'send an e-mail'")
    chosen = choice.open()
    own = learned(chosen)
    view = own or learned(chosen.with_search(ToolSearch(above=0)))
    found = [] if view is None else view.find(question)
    if as_json:
        write_json({"searched": own is not None, "found": found})
        return
    if own is None:
        say("The pool is short enough to be listed whole.", error=True)
    members = dict(chosen.actions)
    write_table(
        ("SEEN AS", "NAME", "DESCRIPTION"), [(n, members[n].name, members[n].description) for n in found], key=0
    )


@pool.command("save")
@click.argument("file", type=click.Path(path_type=Path))
@pool_options
@common_options
def save(file: Path, choice: PoolChoice, as_json: bool) -> None:
    """Write a pool to a .toml or .yaml file, which is replaced if it is there.

    JSON: {"file", "id", "members"}, the number of members
    """
    chosen = choice.open()
    chosen.save(file)
    if as_json:
        write_json({"file": str(file), "id": chosen.id, "members": len(chosen)})
    else:
        say(f"{file}: pool {chosen.id} with {len(chosen)} members")


@pool.command("lock")
@pool_options
@_lock_option
@common_options
def lock(choice: PoolChoice, lock_file: Path, as_json: bool) -> None:
    """Write down exactly which distributions and members the pool consists of.

    JSON: {"file", "id"}
    """
    from concertino.pool.lock import lock_pool

    chosen = choice.open()
    lock_pool(chosen, lock_file)
    if as_json:
        write_json({"file": str(lock_file), "id": chosen.id})
    else:
        say(f"{lock_file}: pool {chosen.id} is locked; `concertino pool check` compares")


@pool.command("check")
@pool_options
@_lock_option
@common_options
def check(choice: PoolChoice, lock_file: Path, as_json: bool) -> None:
    """Compare the pool with a lock. Exit code: 0 if it is the locked one, else 1.

    JSON: {"ok", "differences": [text]}
    """
    from concertino.pool.lock import check_lock

    differences = check_lock(choice.open(), lock_file)
    if as_json:
        write_json({"ok": not differences, "differences": differences})
    else:
        say("\n".join(differences) or f"the pool is the one in {lock_file}")
    if differences:
        raise Failed("" if as_json else f"the pool is not the one in {lock_file}")


def _named(name: str) -> Pool:
    from concertino.pool.pool import Pool

    return Pool.installed() if name == INSTALLED else Pool.load(name)
