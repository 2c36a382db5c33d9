"""A term of a reward: a named, parametrised, pure function from a group of episodes to one number for each.

The invariants: equal groups give equal numbers, whatever the order of the episodes; every number is finite; a parameter
that is not known or cannot be is refused when the term is made, and not when it is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self, get_type_hints

from concertino import UsageError

from concertino_train.episodes import Episode
from concertino_train.settings import did_you_mean

Variant = Literal["paper", "as_released"]
"""`paper`: the formula as printed. `as_released`: what the published code computes where the two differ."""


class UnpricedError(UsageError):
    """A reward charges $, and the $ of an episode are not known."""


@dataclass(frozen=True)
class Term(ABC):
    """One term. Subclasses are frozen dataclasses, so that their parameters are their fields.

    Attributes:
        name: `system/term`, as a reward file names it.
        formula: in plain text.
        source: paper and equation.
        meaning: one or two sentences.
        parameters: what each field means, with its unit, by name.
        differences: where `as_released` differs from the paper, and why it matters; empty if it does not.
        charges: what of `concertino_train.rewards.SPENDING` it takes reward away for.
    """

    name: ClassVar[str]
    formula: ClassVar[str]
    source: ClassVar[str]
    meaning: ClassVar[str]
    parameters: ClassVar[Mapping[str, str]] = {}
    differences: ClassVar[str] = ""
    charges: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def values(self, group: Sequence[Episode]) -> list[float]:
        """One number per episode.

        Args:
            group: episodes that are compared with each other, G of them, of one question.

        Returns:
            G numbers within `bounds`.

        Raises:
            UnpricedError: it charges $ that are not known.
            UsageError: the episodes lack what it reads.
        """

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest value, infinite where there is no bound; 0 to 1 unless a subclass says otherwise."""
        return 0.0, 1.0

    @property
    def charged(self) -> frozenset[str]:
        """What it takes reward away for with these parameters; a part of `charges`."""
        return self.charges

    @classmethod
    def from_json(cls, data: Mapping[str, Any], where: str = "") -> Self:
        """A term from its parameters.

        Raises:
            UsageError: an unknown parameter, with near names, or a value that cannot be.
        """
        label = where or cls.name
        known = [each.name for each in fields(cls)]
        for key in data:
            if key not in known:
                raise UsageError(f"{label}: unknown parameter {key!r} of {cls.name}; {did_you_mean(str(key), known)}")
        try:
            return cls(**{key: _typed(cls, key, value, label) for key, value in data.items()})
        except UsageError as error:
            # The error of the constructor may name the term already.
            text = str(error)
            raise UsageError(text if text.startswith(label) else f"{label}: {text}") from None

    def to_json(self) -> dict[str, Any]:
        """Parameters that differ from their default, as plain JSON data."""
        plain = asdict(self)
        return {each.name: plain[each.name] for each in fields(self) if getattr(self, each.name) != each.default}

    # -- for those below -----------------------------------------------------------------------------------------------

    def _above_zero(self, *names: str) -> None:
        for name in names:
            if not 0 < getattr(self, name) < float("inf"):
                raise UsageError(f"{self.name}: {name}={getattr(self, name)!r}; expected a number above 0")

    def _not_negative(self, *names: str) -> None:
        for name in names:
            if not 0 <= getattr(self, name) < float("inf"):
                raise UsageError(f"{self.name}: {name}={getattr(self, name)!r}; expected a number, 0 or more")

    def _one_of(self, name: str, known: Sequence[str]) -> None:
        if (value := getattr(self, name)) not in known:
            raise UsageError(f"{self.name}: {name}={value!r}; {did_you_mean(str(value), known)}")


def _typed(cls: type[Term], key: str, value: Any, label: str) -> Any:
    from concertino_bench.metrics import Preference
    from pydantic import TypeAdapter, ValidationError

    hint = _hints(cls)[key]
    # The hint is a union such as `Preference | None`; the class itself knows how its table is read.
    if "Preference" in str(hint) and isinstance(value, Mapping):
        try:
            return Preference.from_json(value)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{label}: {key}: {error}") from None
    try:
        # Strict, so that a YAML text such as "3" or `yes` is refused and not read as a number.
        return TypeAdapter(hint).validate_python(value, strict=True)
    except ValidationError as error:
        said = error.errors()[0]["msg"]
        raise UsageError(f"{label}: {key}={value!r}: {said}; {cls.parameters.get(key, '')}".rstrip("; ")) from None


@lru_cache(maxsize=256)
def _hints(cls: type[Term]) -> dict[str, Any]:
    return get_type_hints(cls)
