"""What things cost, and what was used.

Three words, one meaning each. `Cost` is what one call of a tool or an agent costs. `Prices` are what the tokens of a
model cost. `Usage` is what was consumed, by one call or by a whole run; usages add up.

Two currencies run side by side. *Units* are ParaManager's abstract cost units (its Table of tools, Eq. 17), fixed per
call and known beforehand. *usd* is money. An unknown price stays unknown: it is counted in `Usage.unpriced`, never
taken for zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .errors import SpecError


def is_amount(value: object, least: float = 0) -> bool:
    """Whether something is a finite number, `least` or more. Booleans and NaN are not."""
    # As a chain of comparisons, which NaN fails too.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value < float("inf")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call of a tool or agent costs, apart from the models it uses.

    Args:
        units: cost units per call (ParaManager's table: agents 1, `ensemble_solver` 4, plain tools 0).
        usd: $ per call.
        usd_per_second: $ per second of run time.
        max_usd: the most one call can bill, for tools that report their own bill; it is what the budget reserves.
    """

    units: float = 0.0
    usd: float = 0.0
    usd_per_second: float = 0.0
    max_usd: float | None = None

    def __post_init__(self) -> None:
        for name in ("units", "usd", "usd_per_second", "max_usd"):
            value = getattr(self, name)
            if not is_amount(value) and not (name == "max_usd" and value is None):
                raise SpecError(f"Cost({name}={value!r}): expected a number >= 0")

    def upper_bound(self, seconds: float | None) -> float:
        """The most $ that a call of at most `seconds` can cost."""
        if self.max_usd is not None:
            return self.max_usd
        return self.usd + (self.usd_per_second * seconds if seconds and self.usd_per_second else 0.0)


FREE = Cost()


@dataclass(frozen=True, slots=True)
class Prices:
    """$ per million tokens of a model. `as_of` dates the table it comes from (ISO date).

    Args:
        input, output: of tokens read and written.
        cached: of tokens that the server had in its cache; by default as `input`.
        cache_write: of tokens that the server put into its cache; by default as `input`.
        long_from: a request whose prompt has more tokens than this has the prices `long_input` and `long_output`, for
            all its tokens; `cached` and `cache_write` rise as `input` does.
    """

    input: float
    output: float
    cached: float | None = None
    as_of: str = ""
    cache_write: float | None = None
    long_from: int | None = None
    long_input: float | None = None
    long_output: float | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached", "cache_write", "long_input", "long_output"):
            value = getattr(self, name)
            if not is_amount(value) and not (name not in ("input", "output") and value is None):
                raise SpecError(f"Prices({name}={value!r}): expected $ per million tokens, a number >= 0")
        given = [value is not None for value in (self.long_from, self.long_input, self.long_output)]
        if any(given) and not (all(given) and is_amount(self.long_from, 1)):
            raise SpecError(
                f"Prices(long_from={self.long_from!r}, long_input={self.long_input!r}, "
                f"long_output={self.long_output!r}): expected all three, long_from as a number of tokens"
            )

    def at(self, prompt_tokens: int) -> Prices:
        """The prices of a request with a prompt of that length, which depend on it no more."""
        if self.long_from is None or self.long_input is None or self.long_output is None:
            return self
        plain = replace(self, long_from=None, long_input=None, long_output=None)
        if prompt_tokens <= self.long_from:
            return plain
        rise = self.long_input / self.input if self.input else 1.0
        raised = {
            name: value * rise for name in ("cached", "cache_write") if (value := getattr(self, name)) is not None
        }
        return replace(plain, input=self.long_input, output=self.long_output, **raised)

    @property
    def prompt(self) -> float:
        """The most that a token of a prompt costs: the server may write it into its cache."""
        return self.input if self.cache_write is None else max(self.input, self.cache_write)

    def most(self, prompt_tokens: int, reply_tokens: int) -> float:
        """The most $ that a request can cost."""
        prices = self.at(prompt_tokens)
        return (prompt_tokens * prices.prompt + reply_tokens * prices.output) / 1e6

    def usd(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0, cache_write_tokens: int = 0) -> float:
        """$ for a request; the last two are the parts of `input_tokens` read from the cache and written into it."""
        if self.long_from is not None:
            return self.at(input_tokens).usd(input_tokens, output_tokens, cached_tokens, cache_write_tokens)
        cached = self.input if self.cached is None else self.cached
        cache_write = self.input if self.cache_write is None else self.cache_write
        fresh = input_tokens - cached_tokens - cache_write_tokens
        read = fresh * self.input + cached_tokens * cached + cache_write_tokens * cache_write
        return (read + output_tokens * self.output) / 1e6

    def cost_of(self, usage: Usage) -> float:
        """$ for the tokens of a usage."""
        return self.usd(usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens)


class Usage(NamedTuple):
    """What was consumed. Usages add up; a missing price is counted in `unpriced`, not taken for zero.

    `seconds` is the sum over calls, not wall time: calls that ran side by side both count. `reasoning_tokens` are a
    part of `output_tokens`; `cached_tokens` (read from the server's cache) and `cache_write_tokens` (written into it)
    are parts of `input_tokens`. `estimated` counts the requests whose server told no tokens, so that they had to be
    estimated.
    """

    calls: int = 0
    units: float = 0.0
    usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    unpriced: int = 0
    reasoning_tokens: int = 0
    estimated: int = 0
    cache_write_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def plus(self, other: Usage) -> Usage:
        """The sum, field by field."""
        # Written out: the ledger adds at every level of every call, and a loop takes twice as long.
        return Usage(
            self.calls + other.calls,
            self.units + other.units,
            self.usd + other.usd,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.seconds + other.seconds,
            self.unpriced + other.unpriced,
            self.reasoning_tokens + other.reasoning_tokens,
            self.estimated + other.estimated,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    def to_json(self) -> dict[str, Any]:
        """The fields that are not zero."""
        return {name: value for name, value in zip(self._fields, self, strict=True) if value}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Usage:
        """The inverse of `to_json`; unknown fields are ignored."""
        try:
            return cls(**data)  # no unknown ones as a rule, and a trace has thousands
        except TypeError:
            return cls(**{name: data[name] for name in cls._fields if name in data})


NOTHING = Usage()
