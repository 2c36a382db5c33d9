"""What tells pools and members apart: hashes of what the outside sees of them, equal in every process.

Invariant: the id of a pool is the hash of `canonical_text(pool.to_json())`. It is computed in two parts, so that a pool
with one more member at its end does not hash the others again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from concertino.members.specs import Spec, canonical_text


def fingerprint_of(member: Spec) -> str:
    """12 digits of the SHA-256 of what the outside sees of a member."""
    return hashlib.sha256(_encoded(member.canonical)).hexdigest()[:12]


def hash_of_members(aliases: Mapping[str, str], members: Iterable[Spec]) -> hashlib._Hash:
    """The hash of a pool up to its last member."""
    beginning = hashlib.sha256(_encoded(f'{{"aliases":{canonical_text(aliases)},"members":['))
    for place, member in enumerate(members):
        _add(beginning, member, first=not place)
    return beginning


def with_member(beginning: hashlib._Hash, member: Spec, *, first: bool) -> hashlib._Hash:
    """The hash with one more member at the end; `first` says that there was none before."""
    longer = beginning.copy()
    _add(longer, member, first=first)
    return longer


def id_of(beginning: hashlib._Hash, roles: Mapping[str, str], search: Mapping[str, Any]) -> str:
    """16 digits for a whole pool, from the hash up to its last member."""
    whole = beginning.copy()
    setting = f',"search":{canonical_text(search["search"])}' if search else ""
    whole.update(_encoded(f'],"roles":{canonical_text(roles)}{setting}}}'))
    return whole.hexdigest()[:16]


def _add(beginning: hashlib._Hash, member: Spec, *, first: bool) -> None:
    beginning.update(_encoded(member.canonical if first else f",{member.canonical}"))


def _encoded(text: str) -> bytes:
    # A description may hold lone surrogates, which strict UTF-8 refuses.
    return text.encode("utf-8", "surrogatepass")
