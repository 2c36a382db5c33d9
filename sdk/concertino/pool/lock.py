"""Locks: exactly which distributions and members a pool consisted of, to notice later that it is another one.

A lock file (TOML, by custom `pool.lock`) holds the pool's id, the distribution and version behind each
provider, and a fingerprint per member. It restores nothing; it says in words what differs.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino.core.documents import check_keys, read_document, write_document
from concertino.core.errors import PoolError

if TYPE_CHECKING:
    from concertino.members.specs import Spec
    from concertino.plugins.manager import PluginManager

    from .pool import Pool


def lock_pool(pool: Pool, path: Path, manager: PluginManager | None = None) -> None:
    """Write the lock of a pool.

    Args:
        pool: what to lock.
        path: the file, replaced if it is there.
        manager: who knows the distributions; by default the one the pool came from, or that of the process.

    Raises:
        PoolError: the file cannot be written.
    """
    write_document(path, lock_of(pool, manager), suffix=".toml")


def check_lock(pool: Pool, path: Path, manager: PluginManager | None = None) -> list[str]:
    """What differs between a pool and a lock, in words; empty if nothing does.

    Raises:
        PoolError: the file is missing or no lock.
    """
    if not path.exists():
        raise PoolError(f"{path}: file not found; `concertino pool lock` writes it")
    return differences_from(_read(path), pool, manager)


def differences_from(locked: dict[str, Any], pool: Pool, manager: PluginManager | None = None) -> list[str]:
    """What differs between a pool and what `lock_of` gave of another one, in words."""
    now = lock_of(pool, manager)
    differences = _provider_differences(locked["providers"], _providers(pool, manager, locked["providers"]))
    for name, fingerprint in locked["members"].items():
        if name not in now["members"]:
            differences.append(f"member {name!r} is locked but not in the pool")
        elif now["members"][name] != fingerprint:
            differences.append(f"member {name!r} has changed since it was locked")
    differences += [
        f"member {name!r} is in the pool but not locked" for name in now["members"] if name not in locked["members"]
    ]
    if not differences and locked["pool"] != now["pool"]:
        differences.append("roles, aliases or the order of members have changed since the pool was locked")
    return differences


def lock_of(pool: Pool, manager: PluginManager | None = None) -> dict[str, Any]:
    """What a lock holds of a pool, as plain JSON data."""
    return {
        "pool": pool.id,
        "providers": _providers(pool, manager),
        "members": {member.name: _fingerprint(member) for member in pool.members},
    }


def _providers(
    pool: Pool, manager: PluginManager | None, also: dict[str, Any] | None = None
) -> dict[str, dict[str, str]]:
    """Distribution and version of each provider that the pool has members of, and of others."""
    from concertino.plugins.manager import default_manager

    manager = manager or pool._manager or default_manager()
    # Also the providers of the lock, so that versions are compared where no member is left.
    wanted = {*(member.provider for member in pool.members), *(also or ())}
    return {
        row.name: {"distribution": row.distribution, "version": row.version}
        for row in manager.plugins()
        if row.name in wanted and row.state != "disabled"
    }


def _fingerprint(member: Spec) -> str:
    text = json.dumps(member.to_json(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(path: Path) -> dict[str, Any]:
    data = read_document(path, suffix=".toml")
    check_keys(str(path), data, ("pool", "providers", "members"), PoolError)
    providers, members = data.get("providers", {}), data.get("members", {})
    if not (
        isinstance(data.get("pool"), str)
        and isinstance(providers, dict)
        and all(isinstance(row, dict) and {"distribution", "version"} <= set(row) for row in providers.values())
        and isinstance(members, dict)
    ):
        raise PoolError(f"{path}: not a lock file of a pool; write one with `concertino pool lock`")
    return {"pool": data["pool"], "providers": providers, "members": members}


def _provider_differences(locked: dict[str, Any], now: dict[str, dict[str, str]]) -> list[str]:
    differences = []
    for name, was in locked.items():
        row = now.get(name)
        before = f"{was['distribution']} {was['version']}".strip()
        if row is None:
            differences.append(f"provider {name!r}: {before} is not installed, or is disabled")
        elif row["distribution"] != was["distribution"]:
            found = f"{row['distribution']} {row['version']}".strip()
            differences.append(f"provider {name!r}: it comes from {found}; locked is {before}")
        elif row["version"] != was["version"]:
            differences.append(
                f"provider {name!r}: {row['distribution']} is {row['version']}; locked is {was['version']}"
            )
    return differences
