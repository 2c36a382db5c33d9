"""What a scorer makes of cards by authors, and about topics, that its training never read.

Each figure is a share of casts, with its 95 % interval (Wilson). Beside them stands what a heuristic gets that counts
good and bad words and looks for the largest percentage, and what chance gets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from concertino_scorer.beliefs import Belief, cheapest_sufficient
from concertino_scorer.scorer import Scorer

from .casts import Card, Cast, CastSettings, Mode, draw_cast
from .sentences import KINDS, Voice
from .topics import Topic

Choose = Callable[[str, Sequence[str]], int]
"""From a question and the cards to the number of the card that is asked first."""

_GOOD = frozenset(("excellent", "great", "good", "best", "strong", "reliable", "accurate", "superb", "outstanding"))
_BAD = frozenset(("bad", "poor", "weak", "terrible", "unreliable", "wrong", "awful", "worst", "useless", "hopeless"))
_GAP = 0.12
"""How much better than the second the best member is at least: about half a level, so that a reader can tell."""
_SUFFICIENT = 0.62
"""Between the levels 0.5 and 0.75: members of 0.75 and more suffice."""


@dataclass(frozen=True)
class ReadingFigure:
    """A share of casts in which something was right.

    Attributes:
        what: what was measured.
        hits: in how many casts it was right.
        casts: how many there were.
        chance: what choosing at random gets.
        heuristic: what good words and percentages get; None where it was not asked.
    """

    what: str
    hits: int
    casts: int
    chance: float
    heuristic: float | None = None

    @property
    def share(self) -> float:
        """Of casts that were right."""
        return self.hits / self.casts

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, by Wilson."""
        z, n, p = 1.96, self.casts, self.share
        middle, spread = p + z * z / (2 * n), z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
        return (middle - spread) / (1 + z * z / n), (middle + spread) / (1 + z * z / n)


def reading_figures(
    scorer: Scorer, voices: Sequence[Voice], topics: Sequence[Topic], *, casts: int = 300, seed: int = 0
) -> Iterator[ReadingFigure]:
    """All figures, one after another.

    Args:
        voices: of authors that training did not read.
        topics: that it did not read.
        casts: for each figure.
    """
    honest = CastSettings(modes=("general",), lying=0.0, silent=0.0)

    def drawn(settings: CastSettings, name: str) -> list[Cast]:
        chance = Random(f"{seed}:{name}")
        return [draw_cast(voices, topics, chance, settings) for _ in range(casts)]

    def chosen(question: str, cards: Sequence[str]) -> int:
        return _first(scorer.beliefs(question, cards))

    for size in (6, 20):
        for kind in KINDS:
            name = f"best of {size} first: {kind}"
            some = drawn(replace(honest, sizes=(size,), kind=kind, gap=_GAP), name)
            yield ReadingFigure(name, _hits(some, chosen), casts, 1 / size, _hits(some, by_heuristic) / casts)
    some = drawn(replace(honest, sizes=(6,), gap=_GAP), "permuted")
    yield ReadingFigure("cards permuted: choice follows the best card", _followed(some, chosen), casts, 1 / 6)
    yield ReadingFigure("order reversed: choice stays", _stayed(some, chosen), casts, 1 / 6)
    some = drawn(replace(honest, sizes=(4,), modes=("complementary",)), "complementary")
    yield ReadingFigure("right skill of 4 first", _hits(some, chosen), casts, 1 / 4, _hits(some, by_heuristic) / casts)
    modes: tuple[tuple[Mode, int, str], ...] = (
        ("specialists", 6, "right specialist of 6 first"),
        ("several", 4, "best of 4 first, several skills each"),
    )
    for mode, size, name in modes:
        settings = replace(honest, sizes=(size,), modes=(mode,))
        some = _told_apart(voices, topics, Random(f"{seed}:{mode}"), settings, casts)
        yield ReadingFigure(name, _hits(some, chosen), casts, 1 / size, _hits(some, by_heuristic) / casts)
    some = drawn(replace(honest, sizes=(6,), gap=_GAP), "lying")
    chance = Random(f"{seed}:calls")
    hits = sum(_found_out(scorer, cast, chance) for cast in some)
    yield ReadingFigure("liar found out within 3 calls", hits, casts, 0.0)
    some = drawn(replace(honest, sizes=(6,)), "prices")
    fit = [cast for cast in some if any(card.share > _SUFFICIENT for card in cast.cards)]
    yield ReadingFigure("cheapest sufficient of 6 first", sum(_cheapest(scorer, cast) for cast in fit), len(fit), 1 / 6)


def _told_apart(
    voices: Sequence[Voice], topics: Sequence[Topic], chance: Random, settings: CastSettings, count: int
) -> list[Cast]:
    """Casts whose best member is better than the second by the gap."""
    found: list[Cast] = []
    while len(found) < count:
        cast = draw_cast(voices, topics, chance, settings)
        second, best = sorted(card.share for card in cast.cards)[-2:]
        if best - second >= _GAP:
            found.append(cast)
    return found


def by_heuristic(question: str, cards: Sequence[str]) -> int:
    """Good words less bad ones, and the largest percentage."""
    return max(range(len(cards)), key=lambda number: _sounds(cards[number]))


def _sounds(card: str) -> tuple[float, float]:
    words = re.findall(r"[a-z]+", card.lower())
    percentages = [float(found) for found in re.findall(r"(\d+(?:\.\d+)?) ?(?:%|percent)", card)]
    return sum(word in _GOOD for word in words) - sum(word in _BAD for word in words), max(percentages, default=0.0)


def _first(beliefs: Sequence[Belief]) -> int:
    return max(range(len(beliefs)), key=lambda number: beliefs[number].expected)


def _texts(cast: Cast) -> list[str]:
    return [card.text for card in cast.cards]


def _is_best(cast: Cast, number: int) -> bool:
    return cast.cards[number].share >= max(card.share for card in cast.cards) - 1e-9


def _hits(casts: Sequence[Cast], choose: Choose) -> int:
    return sum(_is_best(cast, choose(cast.question, _texts(cast))) for cast in casts)


def _followed(casts: Sequence[Cast], choose: Choose) -> int:
    """In how many casts the choice is the new holder of the best card, when each card moves on by one."""
    hits = 0
    for cast in casts:
        texts = _texts(cast)
        moved = [*texts[-1:], *texts[:-1]]
        holder = choose(cast.question, moved)
        hits += _is_best(cast, (holder - 1) % len(texts))
    return hits


def _stayed(casts: Sequence[Cast], choose: Choose) -> int:
    return sum(
        choose(cast.question, _texts(cast)) == len(cast.cards) - 1 - choose(cast.question, _texts(cast)[::-1])
        for cast in casts
    )


def _found_out(scorer: Scorer, cast: Cast, chance: Random) -> bool:
    """Whether the member whose card means most, and who is right in one call of ten, is left within three calls."""
    liar = max(cast.cards, key=lambda card: card.share)
    shares = [0.1 if card is liar else card.share for card in cast.cards]
    beliefs = scorer.beliefs(cast.question, _texts(cast))
    for _ in range(3):
        asked = _first(beliefs)
        right = chance.random() < shares[asked]
        beliefs[asked] = beliefs[asked].after(right, not right)
    return cast.cards[_first(beliefs)] is not liar


def _cheapest(scorer: Scorer, cast: Cast) -> bool:
    """Whether the cheapest member that suffices is asked first."""
    beliefs = scorer.beliefs(cast.question, _texts(cast))
    chances = cheapest_sufficient(beliefs, [card.price for card in cast.cards], _SUFFICIENT)
    asked = chances.index(max(chances))
    sufficient: list[Card] = [card for card in cast.cards if card.share > _SUFFICIENT]
    return cast.cards[asked] is min(sufficient, key=lambda card: card.price)
