"""A plain function of an episode as a term, and terms by `module:name`.

    def cheap(episode: Episode) -> float:
        \"\"\"The fewer cost units, the better.\"\"\"
        return 1 / (1 + episode.totals.units)

The invariant: such a term has no parameters, sees one episode at a time, and gives finite numbers or an error that
names the function.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from concertino import UsageError

from concertino_train.episodes import Episode
from concertino_train.settings import imported

from .term import Term

Scorer = Callable[[Episode], float]


def term_of(function: Scorer, name: str = "") -> type[Term]:
    """The term that a function is.

    Args:
        function: one number for an episode; the first line of its docstring is what people read.
        name: as reward files name it; the function's own by default.
    """
    called = name or str(getattr(function, "__name__", type(function).__name__))
    told = (inspect.getdoc(function) or "").partition("\n")[0]

    @dataclass(frozen=True)
    class OfFunction(Term):
        name: ClassVar[str] = called
        formula: ClassVar[str] = f"{called}(episode)"
        source: ClassVar[str] = str(getattr(function, "__module__", ""))
        meaning: ClassVar[str] = told

        def values(self, group: Sequence[Episode]) -> list[float]:
            found = [float(function(episode)) for episode in group]
            if not all(map(math.isfinite, found)):
                raise UsageError(f"{called}: gave {found}; expected finite numbers")
            return found

        @property
        def bounds(self) -> tuple[float, float]:
            return -math.inf, math.inf

    return OfFunction


def is_term(value: Any) -> bool:
    """Tell whether a value is a concrete subclass of Term."""
    return inspect.isclass(value) and issubclass(value, Term) and not inspect.isabstract(value)


def imported_term(word: str) -> type[Term]:
    """The term behind `module:name`: a class of terms, or a function of an episode.

    Raises:
        UsageError: an unknown name.
    """
    module, _, attribute = word.partition(":")
    try:
        found = getattr(imported(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"{word} cannot be imported: {error}") from error
    if is_term(found):
        term: type[Term] = found
        return term
    # The whole word is the name: two modules may have functions of one name.
    if inspect.isfunction(found):
        return term_of(found, word)
    raise UsageError(f"{word} is {found!r}; expected a subclass of Term, or a function of an episode")
