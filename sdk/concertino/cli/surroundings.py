"""What there is to lead and to be called: keys in the environment, servers on this machine, installed members.

Servers are asked at their default addresses on the loopback interface alone, and at an address in the environment that
is on this machine; no service on the web is asked for anything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from concertino.core.errors import ConcertinoError
from concertino.core.services import LOCAL_SERVERS, SERVICE_KEYS
from concertino.plugins.packages import install_provider

from .leaders import is_local, leader_of, listed, services_with_key

if TYPE_CHECKING:
    from concertino.members.specs import Spec
    from concertino.plugins.manager import PluginManager

TOY_LEADER = "toy/leader"
_MIDDLING = ("mini", "flash", "haiku", "small", "sol")
"""Words in the names of models that are neither the dearest nor the weakest."""
_LISTED = 20
"""Models of one source that are offered."""


@dataclass(frozen=True)
class Candidate:
    """A model that may lead.

    Attributes:
        name: `provider/name`.
        why: how it came to be here, in words.
        options: what a pool file has to declare it with; empty for a model that needs no declaration.
    """

    name: str
    why: str
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Surroundings:
    """What was found.

    Attributes:
        candidates: models that may lead, the one to propose first.
        unnamed: services whose key is set and whose models nobody lists.
        providers: of tools and agents, each with how many it has.
        hints: what else is there, with the step that is missing.
    """

    candidates: tuple[Candidate, ...]
    unnamed: tuple[str, ...]
    providers: tuple[tuple[str, int], ...]
    hints: tuple[str, ...]


def look_around(manager: PluginManager, *, probe: bool = True) -> Surroundings:
    """Look for models and members. Loads every plugin.

    Args:
        probe: whether servers on this machine are asked.
    """
    specs = manager.specs()
    loaded = {row.name for row in manager.plugins() if row.state == "loaded"}
    candidates = list(_published(specs))
    named = {each.name.partition("/")[0] for each in candidates}
    unnamed = tuple(service for service in services_with_key() if service in loaded and service not in named)
    hints = [
        f"a key of {name} is set: {install_provider(name).removeprefix('install it: ').partition(', and')[0]}"
        for name in services_with_key()
        if name not in loaded
    ]
    if probe:
        served, more = _served(manager, loaded)
        candidates += served
        hints += more
    candidates += (Candidate(TOY_LEADER, "simulated: no key, no network") for spec in specs if spec.name == TOY_LEADER)
    return Surroundings(tuple(candidates), unnamed, tuple(_providers(specs)), tuple(hints))


def _published(specs: Sequence[Spec]) -> Iterator[Candidate]:
    """Models of services whose key is set: of each the middling one first."""
    from concertino.pool.pool import Pool

    pool = Pool(specs)
    for service, variables in SERVICE_KEYS.items():
        names = [spec.name for spec in pool.models if spec.provider == service and not leader_of(spec, pool).why]
        middling = [name for name in names if re.search(rf"\b({'|'.join(_MIDDLING)})\b", name)]
        ordered = dict.fromkeys([*middling[:1], *names])
        yield from (Candidate(name, f"{' and '.join(variables)} set") for name in list(ordered)[:_LISTED])


def _served(manager: PluginManager, loaded: set[str]) -> tuple[list[Candidate], list[str]]:
    """Models of servers on this machine, and servers whose package is missing."""
    places = {**{name: (name, address) for name, address in LOCAL_SERVERS.items()}, **_addressed(manager, loaded)}
    with ThreadPoolExecutor(len(places)) as threads:
        answers = dict(zip(places, threads.map(lambda place: listed(place[1]), places.values()), strict=True))
    candidates: list[Candidate] = []
    hints: list[str] = []
    for key, (provider, address) in places.items():
        names = answers[key]
        if names is None:
            continue
        if provider not in loaded and not (provider == "vllm" and "openai" in loaded):
            hints.append(f"a server answers at {address}: {install_provider(provider).removeprefix('install it: ')}")
        candidates += (_behind(provider, address, name) for name in names[:_LISTED] if provider in loaded)
    return candidates, hints


def _addressed(manager: PluginManager, loaded: set[str]) -> dict[str, tuple[str, str]]:
    """Providers whose address the environment sets to one on this machine."""
    found = {}
    for provider in (*SERVICE_KEYS, *LOCAL_SERVERS):
        variable = f"{re.sub('[^A-Z0-9]', '_', provider.upper())}_BASE_URL"
        if not os.environ.get(variable) or provider not in loaded:
            continue
        try:
            endpoint = manager.declare(f"{provider}/model", {}).endpoint
        except ConcertinoError:
            continue
        if is_local(endpoint):
            found[variable] = (provider, endpoint)
    return found


def _behind(provider: str, address: str, model: str) -> Candidate:
    why = f"{provider} answers at {address}"
    if provider != "vllm":
        return Candidate(f"{provider}/{model}", why)
    # The provider `vllm` starts servers of its own; one that runs is a server like others.
    short = re.sub(r"[^A-Za-z0-9_.-]", "-", model.rpartition("/")[2]) or "local"
    return Candidate(f"openai/{short}", why, (("server", "vllm"), ("base_url", address), ("model", model)))


def _providers(specs: Sequence[Spec]) -> Iterator[tuple[str, int]]:
    counts: dict[str, int] = {}
    for spec in specs:
        if spec.kind != "model":
            counts[spec.provider] = counts.get(spec.provider, 0) + 1
    return iter(counts.items())
