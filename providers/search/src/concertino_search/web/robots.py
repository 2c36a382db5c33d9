"""Robots: what a site asks programs not to fetch, obeyed as RFC 9309 says.

A site's robots.txt is read once an hour, through the same gates as pages. Rules for `concertino-search` count, else
those for everybody. A missing file allows everything; a site that answers 5xx for it forbids everything for now.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from concertino import ProviderError
from protego import Protego

from concertino_search.errors import call_failed

from .fetching import ROBOT

if TYPE_CHECKING:
    from yarl import URL

    from .fetching import Fetcher

KEPT_SECONDS = 3600.0
_KEPT_SITES = 1000


class Robots:
    """The rules of sites, kept for an hour."""

    def __init__(self) -> None:
        self._rules: dict[str, tuple[float, Protego | None]] = {}

    async def __call__(self, url: URL, fetcher: Fetcher) -> None:
        """Check a page.

        Raises:
            ProviderError: the site does not want it fetched.
        """
        site = str(url.origin())
        known = self._rules.get(site)
        if known is None or known[0] < time.monotonic():
            rules = await _read(site, fetcher)
            while len(self._rules) >= _KEPT_SITES:
                self._rules.pop(next(iter(self._rules)))
            known = self._rules[site] = time.monotonic() + KEPT_SECONDS, rules
        if known[1] is not None and not known[1].can_fetch(str(url), ROBOT):
            raise call_failed(
                f"{url.origin()}{url.path} is not to be fetched, says the site's robots.txt; use another page"
            )


async def _read(site: str, fetcher: Fetcher) -> Protego | None:
    """The rules of a site, None where everything is allowed."""
    try:
        found = await fetcher.fetch(f"{site}/robots.txt")
    except ProviderError:
        return None  # what keeps it from being read keeps the page from being read, and is said there
    if found.status >= 500:
        return Protego.parse("User-agent: *\nDisallow: /")
    return Protego.parse(found.text()) if found.status < 400 else None
