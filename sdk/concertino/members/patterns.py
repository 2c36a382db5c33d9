"""Patterns: how members are named in bulk, and which providers a pattern concerns before anything is
imported.

A pattern is a full name (`search/web`), a short name (`web`), or either with the wildcards of `fnmatch`
(`search/*`, `*/web`, `*`). The first slash of a full name ends the provider's name, so the part before a
pattern's first slash speaks of providers alone; without a slash, what stands before the first wildcard is the
beginning of a full name.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from .specs import Spec

_WILDCARD = re.compile(r"[*?\[]")


def matches(spec: Spec, pattern: str) -> bool:
    """Whether a pattern matches the full name of a member, or is exactly its short name."""
    return fnmatchcase(spec.name, pattern) or pattern == spec.short_name


def provider_of(pattern: str) -> str:
    """The one provider that a pattern names; empty if it names none, or several."""
    provider, slash, _ = pattern.partition("/")
    return provider if slash and not _WILDCARD.search(provider) else ""


def is_full_name(pattern: str) -> bool:
    """Whether a pattern is `provider/name` without a wildcard."""
    return "/" in pattern and not _WILDCARD.search(pattern)


def may_match(pattern: str, provider: str) -> bool:
    """Whether some member of a provider can match. A short name may belong to any provider."""
    before, slash, _ = pattern.partition("/")
    if slash:
        return fnmatchcase(provider, before)
    wildcard = _WILDCARD.search(pattern)
    return wildcard is None or f"{provider}/".startswith(pattern[: wildcard.start()])
