"""Which models can lead a run, and why others cannot, as far as that is known without asking any server.

A model says itself what it lacks (`ModelSpec.lacks`): a key, a package, a program. Of services whose models may be
named without a declaration, the tables of `concertino.core.services` tell what is missing. Whether an address answers
is only found out where somebody asks for it: `listed`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from concertino.core.display_text import is_plain_name
from concertino.core.errors import PoolError
from concertino.core.services import LOCAL_SERVERS, SERVICE_KEYS

if TYPE_CHECKING:
    from concertino.members.specs import ModelSpec
    from concertino.pool.pool import Pool

SECONDS = 1.0
"""How long a server may take to answer when it is asked whether it is there."""
_REPLY = 4 * 2**20
"""Bytes of a list of models at most."""


class Leader(NamedTuple):
    """A model, and whether it can lead.

    Attributes:
        why: what keeps it from leading; empty for nothing that is known.
        step: what to do about it.
    """

    name: str
    why: str = ""
    step: str = ""


def leader_of(spec: ModelSpec, pool: Pool) -> Leader:
    """A model, or a router, which can lead if one of its models can."""
    found = [_alone(each) for each in pool.behind(spec.name)]
    able = [each for each in found if not each.why]
    if able or not found:
        return Leader(spec.name)
    first = found[0]
    why = first.why if len(found) == 1 else f"none of its models can, {first.name} for one: {first.why}"
    return Leader(spec.name, why, first.step)


def _alone(spec: ModelSpec) -> Leader:
    try:
        text = spec.lacks() if spec.lacks is not None else ""
    except Exception as error:  # the plugin's fault
        text = f"its plugin cannot say what it lacks ({type(error).__name__}: {error}); tell its author"
    why, _, step = text.partition("; ")
    return Leader(spec.name, why, step)


def leaders(pool: Pool) -> list[Leader]:
    """All models of a pool."""
    return [leader_of(spec, pool) for spec in pool.models]


def chosen_leader(pool: Pool) -> Leader | None:
    """The model that leads a run on a pool; None if the pool says no one.

    Raises:
        PoolError: the role names a model that is not there.
    """
    if "orchestrator" in pool.roles:
        return leader_of(pool.model("orchestrator"), pool)
    try:
        return leader_of(pool.model("orchestrator"), pool)
    except PoolError:
        return None


def services_without_key() -> list[Leader]:
    """The services on the web whose key is not in the environment."""
    found = []
    for name, variables in SERVICE_KEYS.items():
        missing = [variable for variable in variables if not os.environ.get(variable)]
        if missing:
            found.append(Leader(name, f"{' and '.join(missing)} not set", f"set {' and '.join(missing)}"))
    return found


def services_with_key() -> list[str]:
    """The services on the web whose variables are all set."""
    without = {each.name for each in services_without_key()}
    return [name for name in SERVICE_KEYS if name not in without]


# -- asking ------------------------------------------------------------------------------------------------------------


def listed(address: str, seconds: float = SECONDS, key: str = "") -> list[str] | None:
    """The models that a server lists; empty if it answers and lists none, None if it does not answer.

    Args:
        address: up to and including `/v1`.
    """
    import http.client

    parts = urlsplit(address)
    # Not through a proxy of the environment: these are servers on this machine or given by address.
    kind: Any = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    try:
        connection = kind(parts.hostname, parts.port, timeout=seconds)
        try:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            connection.request("GET", f"{parts.path.rstrip('/')}/models", headers=headers)
            text = connection.getresponse().read(_REPLY)
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException):
        return None
    return _names_in(text)


def _names_in(text: bytes) -> list[str]:
    try:
        data = json.loads(text)
        names = [str(item["id"]) for item in data["data"] if isinstance(item, dict) and "id" in item]
        # A name with characters that nobody sees could pass for another one.
        return [name for name in names if is_plain_name(name)]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []


def is_local(address: str) -> bool:
    """Whether an address is on this machine."""
    return (urlsplit(address).hostname or "") in ("127.0.0.1", "localhost", "::1")


def local_servers() -> Iterator[tuple[str, list[str]]]:
    """The servers that answer at their default addresses, and the models that they list."""
    for name, address in LOCAL_SERVERS.items():
        found = listed(address)
        if found is not None:
            yield name, found
