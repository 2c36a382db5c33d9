"""Who asks, and whether one more run of theirs may begin.

    owner = ring.owner_of(token)
    held = ring.admit(owner, preset, run_id)      # reserved: the budget of the run, and its place
    ring.settle(held, usd)                        # used: what it cost in truth

Invariant: what all runs of a key reserve and have used on a day is never more than its limit. A run is given no larger
budget than was reserved for it.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from concertino import Budget
from concertino.core.errors import UsageError

from .api_error import ApiError
from .run_ledger import RunLedger
from .serve_settings import ClientKey, Limits, Preset

_DAY = 86400
_TICKET = 12 * 3600
"""Seconds for which a ticket is good."""
_MINUTE = 60.0
_SOON = 2.0
"""Seconds after which a client may ask again where all places are taken."""


@dataclass(eq=False)
class Held:
    """What a run holds.

    Attributes:
        budget: that it may use.
        usd: reserved of its key's limit; None without one.
        paid: $ that the run had cost before, which are counted already.
        number: of its place in the ledger.
    """

    owner: str
    budget: Budget
    usd: float | None
    paid: float = 0.0
    number: int = 0


class Account(NamedTuple):
    """What a client uses now.

    Attributes:
        running: runs under way.
        reserved: $ that they may still use.
        used: $ of today.
    """

    running: int
    reserved: float
    used: float


class KeyRing:
    """The keys of a server; without any, whoever reaches it may ask, and owns everything.

    Args:
        clock: seconds since 1970.
        ledger: what other workers of the server hold too; by default there are none.
    """

    def __init__(
        self,
        keys: Iterable[ClientKey],
        limits: Limits,
        clock: Callable[[], float] = time.time,
        ledger: RunLedger | None = None,
    ) -> None:
        self.ledger = ledger or RunLedger()
        self._clock = clock
        self._limits = limits
        self._keys = {key.name: key for key in keys}
        self._digests = {key.name: _digest(key.secret) for key in self._keys.values()}

    @property
    def running(self) -> int:
        """Runs under way, of all clients."""
        return self.ledger.running()

    def account(self, owner: str) -> Account:
        """What a client uses now."""
        ledger, day = self.ledger, int(self._clock() // _DAY)
        return Account(ledger.running(owner), ledger.reserved(owner), ledger.used(owner, day))

    @property
    def open(self) -> bool:
        """Whether nobody needs a key."""
        return not self._digests

    def owner_of(self, authorization: str) -> str:
        """The name of a client.

        Args:
            authorization: the header.

        Raises:
            ApiError: there is no such key.
        """
        if self.open:
            return ""
        scheme, _, token = authorization.partition(" ")
        given, found = _digest(token.strip()), ""
        # All are compared, so that the time tells nothing.
        for name, digest in self._digests.items():
            if hmac.compare_digest(given, digest):
                found = name
        if scheme.lower() != "bearer" or not found:
            raise ApiError(401, "the key is missing or wrong; send Authorization: Bearer KEY", code="invalid_api_key")
        return found

    def ticket(self, owner: str) -> tuple[str, int]:
        """What stands for a key for some hours where a browser cannot send it, and how many seconds these are.

        Any process that has the key knows the ticket, and nobody else can make one.
        """
        until = int(self._clock()) + _TICKET
        return f"{until}.{_signed(self._digests[owner], until)}", _TICKET

    def owner_of_ticket(self, ticket: str) -> str:
        """The name of the client.

        Raises:
            ApiError: it is none, or too old, or its key was removed.
        """
        if self.open:
            return ""
        text, _, signed = ticket.partition(".")
        until = int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else 0
        found = ""
        for name, digest in self._digests.items():
            if hmac.compare_digest(signed.encode("utf-8", "replace"), _signed(digest, until).encode()):
                found = name
        if not found or until < self._clock():
            raise ApiError(401, "the ticket for the pages is wrong or too old; give the key", code="invalid_api_key")
        return found

    def admit(self, owner: str, preset: Preset, run: str = "") -> Held:
        """Reserve a place and a budget for a run.

        Args:
            run: its id.

        Raises:
            ApiError: the server, or the limits of the key, allow no more now; says when to ask again.
        """
        key, budget, usd = self._keys.get(owner), preset.budget, None
        with self.ledger.turn():
            self._check_room(owner)
            if key is not None:
                now = self._clock()
                self._check_rate(key, now)
                usd = self._reservation(key, budget, now)
                if usd is not None:
                    budget = budget.with_(usd=usd)
                if key.per_minute is not None:
                    self.ledger.note_begin(owner, now)
            return self._hold(Held(owner, budget, usd), run)

    def admit_again(self, owner: str, budget: Budget, paid: float, run: str = "") -> Held:
        """Reserve a place and the rest of its budget for a run that was suspended, since its client lets it go on.

        Args:
            paid: $ that it has cost so far.
            run: its id.

        Raises:
            ApiError: as `admit`.
        """
        key = self._keys.get(owner)
        with self.ledger.turn():
            self._check_room(owner)
            if key is not None and key.usd_per_day is not None:
                rest = max(0.0, (budget.usd or 0.0) - paid)
                left = self._reservation(key, budget.with_(usd=rest), self._clock())
                if left is not None and left < rest:
                    # Its budget is fixed, so less would be too little.
                    raise _too_many(
                        "the rest of the run's budget is more than the key has left", _SOON, "insufficient_quota"
                    )
            return self.take_back(owner, budget, paid, run)

    def take_back(self, owner: str, budget: Budget, paid: float = 0.0, run: str = "") -> Held:
        """What a run holds that was admitted before: it is resumed, with the budget that it had.

        Args:
            paid: $ that it has cost so far.
            run: its id; what a dead worker held for it is held no more.
        """
        key = self._keys.get(owner)
        limited = key is not None and key.usd_per_day is not None
        usd = max(0.0, (budget.usd or 0.0) - paid) if limited else None
        with self.ledger.turn():
            self.inherit(run, paid)
            return self._hold(Held(owner, budget, usd, paid), run)

    def inherit(self, run: str, usd: float | None) -> None:
        """Settle what a dead worker held for a run.

        Args:
            usd: what the run has cost, all in all; None if nobody knows, so that it counts as all that it might.
        """
        with self.ledger.turn():
            for orphan in self.ledger.inherit(run):
                cost = (orphan.usd or 0.0) if usd is None else max(0.0, usd - orphan.paid)
                self.charge(orphan.owner, cost, self._clock())

    def _check_room(self, owner: str) -> None:
        """Refuse a client that may have no further run now."""
        if self.ledger.running() >= self._limits.runs:
            raise _too_many("the server runs as much as it may; ask again soon", _SOON, "busy")
        key = self._keys.get(owner)
        if key is not None and key.runs is not None and self.ledger.running(owner) >= key.runs:
            raise _too_many(f"this key may have {key.runs} runs at once; ask again when one is over", _SOON, "runs")

    def _hold(self, held: Held, run: str) -> Held:
        held.number = self.ledger.hold(run, held.owner, held.usd, held.paid)
        return held

    def settle(self, held: Held, usd: float) -> None:
        """The run is no longer under way.

        Args:
            usd: what it has cost, all in all.
        """
        with self.ledger.turn():
            if self.ledger.release(held.number):
                self.charge(held.owner, max(0.0, usd - held.paid), self._clock())

    def charge(self, owner: str, usd: float, at: float) -> None:
        """Count what a run of a day has cost.

        Args:
            at: when it ended, seconds since 1970.
        """
        if usd:
            self.ledger.charge(owner, int(at // _DAY), usd)

    def _check_rate(self, key: ClientKey, now: float) -> None:
        if key.per_minute is None:
            return
        begun = self.ledger.begun_since(key.name, now - _MINUTE)
        if len(begun) >= key.per_minute:
            wait = begun[0] + _MINUTE - now
            raise _too_many(f"this key may begin {key.per_minute} runs a minute", wait, "rate_limit_exceeded")

    def _reservation(self, key: ClientKey, budget: Budget, now: float) -> float | None:
        if key.usd_per_day is None:
            return None
        _, reserved, used = self.account(key.name)
        left = key.usd_per_day - used - reserved
        if left <= 0:
            # What is reserved comes back when its run ends; what is used comes back at midnight.
            wait = _SOON if reserved else _DAY - now % _DAY
            raise _too_many("the money of this key is used or reserved for today", wait, "insufficient_quota")
        return left if budget.usd is None else min(left, budget.usd)


def check_preset_budgets(presets: Iterable[Preset], keys: Iterable[ClientKey]) -> None:
    """Refuse presets without a limit of $ where a key has one: one run would reserve the whole day.

    Raises:
        UsageError: names the preset.
    """
    if not any(key.usd_per_day is not None for key in keys):
        return
    for preset in presets:
        if preset.budget.usd is None:
            raise UsageError(
                f"the preset {preset.name!r} has no budget in usd, and a key has usd_per_day, so one run would reserve "
                'the whole day; add budget = "usd=0.5"'
            )


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _signed(digest: bytes, until: int) -> str:
    return hmac.new(digest, b"concertino-view %d" % until, "sha256").hexdigest()


def _too_many(message: str, seconds: float, code: str) -> ApiError:
    return ApiError(429, message, code=code, retry_after=seconds)
