"""The ledger: a budget that parallel calls cannot overshoot, down the whole tree of sub-calls.

Before a call starts, the most it can cost is *reserved* in its ledger and in every ledger above; when it ends, the
reservation is replaced by what it really cost. A call that does not fit now, while others are running, *waits* for them
to settle; when nothing that could settle is left, it is refused. (Check-then-spend overshoots on every run;
reserve-and-reject leaves half of the budget unused; reserve-and-wait does neither.)

Invariants, for every ledger and every currency: spent + reserved <= limit, unless a provider billed more than its own
bound, which is recorded as an overrun and freezes the ledger; and whenever a call waits, another one is running that
will settle without waiting, so waiting always ends.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from concertino.core.budget import UNLIMITED, ZERO, Amount, Budget
from concertino.core.usage import NOTHING, Usage

# Tolerance for sums of floats: three reservations of 0.1 must fit a limit of 0.3.
_SLACK = 1e-9
_ENDLESS = Amount(UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED)


class Reservation:
    """An amount set aside in a ledger and in all above it. Settle it exactly once."""

    __slots__ = ("amount", "ledger", "settled")

    def __init__(self, ledger: Ledger, amount: Amount) -> None:
        self.ledger = ledger
        self.amount = amount
        self.settled = False

    def grow(self, more: Amount) -> bool:
        """Set aside more for another attempt of the same call, if it fits now."""
        if not self.ledger.fits(more):
            return False
        self.amount = Amount(*[a + b for a, b in zip(self.amount, more, strict=True)])
        level: Ledger | None = self.ledger
        while level is not None:
            if level.limits is not None:
                level.reserved = Amount(*[a + b for a, b in zip(level.reserved, more, strict=True)])
            level = level.parent
        return True


class _Waiter(NamedTuple):
    ledger: Ledger
    amount: Amount
    future: asyncio.Future[Reservation | None]


class _Account:
    """What all ledgers of one tree share: who waits, and how many run that could settle without waiting."""

    __slots__ = ("running", "waiters")

    def __init__(self) -> None:
        self.running = 0
        self.waiters: list[_Waiter] = []


class Ledger:
    """The account of a run, or of one agent's call inside it. Belongs to one event loop.

    Args:
        limits: what may be spent at this level; infinity for no limit. Without any, nothing is an overrun, and only
            `usage` is counted.
        parent: the ledger above, which pays too.
    """

    __slots__ = (
        "_account",
        "_blocked",
        "_closed",
        "frozen",
        "limits",
        "overrun",
        "parent",
        "reserved",
        "spent",
        "usage",
    )

    def __init__(self, limits: Amount | None = None, parent: Ledger | None = None) -> None:
        self.limits = limits if limits != _ENDLESS else None
        self.parent = parent
        self.spent = ZERO
        self.reserved = ZERO
        self.usage: Usage = NOTHING
        self.overrun = ZERO
        self.frozen = False
        self._blocked = 0
        self._closed = False
        self._account: _Account = parent._account if parent is not None else _Account()

    def child(self, budget: Budget | None = None) -> Ledger:
        """A ledger below this one: what it spends, this one spends."""
        return Ledger(budget.limits() if budget is not None else None, self)

    def fits(self, amount: Amount) -> bool:
        """Whether an amount can be reserved now, here and all the way up."""
        level: Ledger | None = self
        while level is not None:
            if level.frozen or (level.limits is not None and not level._has_room(amount)):
                return False
            level = level.parent
        return True

    def can_ever_fit(self, amount: Amount) -> bool:
        """Whether an amount would fit if everything under way settled at nothing."""
        level: Ledger | None = self
        while level is not None:
            limits = level.limits
            if level.frozen or (
                limits is not None
                and any(a > 0 and s + a > m + _SLACK for a, s, m in zip(amount, level.spent, limits, strict=True))
            ):
                return False
            level = level.parent
        return True

    def _has_room(self, amount: Amount) -> bool:
        spent, reserved, limits = self.spent, self.reserved, self.limits
        assert limits is not None
        # An amount of zero always fits: exhausted money does not stop what is free.
        # Written out here and below, because every call comes here and a loop takes twice as long.
        return (
            (not amount[0] or spent[0] + reserved[0] + amount[0] <= limits[0] + _SLACK)
            and (not amount[1] or spent[1] + reserved[1] + amount[1] <= limits[1] + _SLACK)
            and (not amount[2] or spent[2] + reserved[2] + amount[2] <= limits[2] + _SLACK)
            and (not amount[3] or spent[3] + reserved[3] + amount[3] <= limits[3] + _SLACK)
        )

    def try_reserve(self, amount: Amount) -> Reservation | None:
        """Reserve at once, or None if it does not fit now."""
        if not self.fits(amount):
            return None
        self._account.running += 1
        level: Ledger | None = self
        while level is not None:
            if level.limits is not None:
                held = level.reserved
                level.reserved = Amount(
                    held[0] + amount[0], held[1] + amount[1], held[2] + amount[2], held[3] + amount[3]
                )
            level = level.parent
        return Reservation(self, amount)

    async def reserve(self, amount: Amount) -> Reservation | None:
        """Reserve, waiting for calls under way to settle if need be.

        Returns:
            The reservation, or None if the budget cannot cover the amount any more.
        """
        reservation = self.try_reserve(amount)
        if reservation is not None or not self.can_ever_fit(amount):
            return reservation
        waiter = _Waiter(self, amount, asyncio.get_running_loop().create_future())
        self._account.waiters.append(waiter)
        self._block(+1)
        # This call may have been the last one that ran, and then nothing would settle any more.
        self._refuse_if_stuck()
        try:
            return await waiter.future
        except asyncio.CancelledError:
            if waiter.future.done() and not waiter.future.cancelled() and (granted := waiter.future.result()):
                # Granted at the very moment of the cancellation: nobody else would give it back.
                self.settle(granted, NOTHING)
            raise
        finally:
            if waiter in self._account.waiters:
                self._account.waiters.remove(waiter)
                self._block(-1)

    def settle(self, reservation: Reservation, usage: Usage, *, at_reservation: bool = False) -> None:
        """Replace a reservation by what the call consumed.

        Args:
            usage: what it consumed itself (its sub-calls settle their own reservations).
            at_reservation: charge what was reserved: the call was cancelled or its outcome is unknown.
        """
        if reservation.settled:
            return
        reservation.settled = True
        amount = reservation.amount
        actual = Amount(usage.calls, usage.units, usage.usd, usage.input_tokens + usage.output_tokens)
        charged = Amount(*map(max, amount, actual)) if at_reservation else actual
        over = _exceeds(charged, amount)
        level: Ledger | None = self
        while level is not None:
            if level.limits is not None:
                held, spent = level.reserved, level.spent
                level.reserved = Amount(
                    held[0] - amount[0], held[1] - amount[1], held[2] - amount[2], held[3] - amount[3]
                )
                level.spent = Amount(
                    spent[0] + charged[0], spent[1] + charged[1], spent[2] + charged[2], spent[3] + charged[3]
                )
                if over:
                    level._record_overrun(charged, amount)
            level.usage = level.usage.plus(usage)
            level = level.parent
        self._account.running -= 1
        if self._account.waiters:
            self._wake()

    def charge(self, usage: Usage) -> None:
        """Count what was spent elsewhere: by an earlier process of the same run."""
        # `settle` takes it off again.
        self._account.running += 1
        self.settle(Reservation(self, ZERO), usage)

    def _record_overrun(self, charged: Amount, reserved: Amount) -> None:
        assert self.limits is not None
        excess = Amount(*[max(0.0, c - r) for c, r in zip(charged, reserved, strict=True)])
        self.overrun = Amount(*[a + b for a, b in zip(self.overrun, excess, strict=True)])
        # An overrun that the limit still covers stops nothing.
        if any(
            e > _SLACK and s + r > limit + _SLACK
            for e, s, r, limit in zip(excess, self.spent, self.reserved, self.limits, strict=True)
        ):
            self.frozen = True

    def pause(self) -> None:
        """A sub-call waits for a place at a gate: until `resume`, the agent of this ledger cannot settle."""
        self._block(+1)
        self._refuse_if_stuck()

    def resume(self) -> None:
        """The sub-call has its place, or needs none any more."""
        self._block(-1)

    def close(self) -> None:
        """The agent of this ledger has ended; from now on it neither runs nor waits, whatever it left behind."""
        # A blocked agent is not counted as running, and its own settlement is about to take it off once more.
        if self._blocked and not self._closed:
            self._account.running += 1
        self._closed = True

    def _block(self, step: int) -> None:
        """An agent whose sub-call waits cannot settle now: it stops counting as running."""
        level: Ledger | None = self
        # The root belongs to the run, which is no call and never counts as running.
        while level is not None and level.parent is not None:
            before = level._blocked
            level._blocked += step
            if (before == 0) != (level._blocked == 0) and not level._closed:
                self._account.running -= step
            level = level.parent

    def _wake(self) -> None:
        """Grant whatever fits now, in the order of asking; refuse what can never fit; never leave all waiting."""
        account = self._account
        for waiter in list(account.waiters):
            if waiter.future.done():
                continue
            reservation = waiter.ledger.try_reserve(waiter.amount)
            if reservation is not None or not waiter.ledger.can_ever_fit(waiter.amount):
                self._answer(waiter, reservation)
        self._refuse_if_stuck()

    def _refuse_if_stuck(self) -> None:
        account = self._account
        # The last to ask is refused. Its agent then continues and settles, which serves those before it.
        while account.running <= 0 and account.waiters:
            self._answer(account.waiters[-1], None)

    def _answer(self, waiter: _Waiter, reservation: Reservation | None) -> None:
        self._account.waiters.remove(waiter)
        waiter.ledger._block(-1)
        if not waiter.future.done():
            waiter.future.set_result(reservation)
        elif reservation is not None:
            reservation.ledger.settle(reservation, NOTHING)

    def remaining(self) -> Amount:
        """What is left at this level or above, whichever is less: limit - spent - reserved."""
        if self.limits is None and self.parent is None:
            return _ENDLESS
        calls = units = usd = tokens = UNLIMITED
        level: Ledger | None = self
        while level is not None:
            if level.limits is not None:
                limits, spent, reserved = level.limits, level.spent, level.reserved
                calls = min(calls, limits[0] - spent[0] - reserved[0])
                units = min(units, limits[1] - spent[1] - reserved[1])
                usd = min(usd, limits[2] - spent[2] - reserved[2])
                tokens = min(tokens, limits[3] - spent[3] - reserved[3])
            level = level.parent
        return Amount(max(0.0, calls), max(0.0, units), max(0.0, usd), max(0.0, tokens))


def _exceeds(one: Amount, other: Amount) -> bool:
    """Whether an amount is beyond another one in any currency."""
    return (
        one[0] > other[0] + _SLACK
        or one[1] > other[1] + _SLACK
        or one[2] > other[2] + _SLACK
        or one[3] > other[3] + _SLACK
    )
