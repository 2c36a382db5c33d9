"""What a router knows: questions like those to come, and how well each model did on them, at what cost.

Questions are compared by their words: cosine of TF-IDF vectors, numbers left out. Nothing is learnt but the weights of
words, so a profile is made in a moment, and a file of it can be read by people.

    profile = RouterProfile.fit(concertino_replay.read("recorded.jsonl").rows())
    profile.save("profile.json")

Invariant: the same profile and question give the same ranking; models of equal utility stay in the profile's order.
What is not known is not zero: with one price unknown, what its model costs is unknown, and no cost is weighed.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from concertino import Prices, UsageError

from concertino_bench.metrics.spending import known_usd
from concertino_bench.tasks.item import Item
from concertino_bench.tasks.task import Task

FORMAT = "concertino-router-profile/1"
# Letters alone: numbers differ from question to question and say nothing about who can answer it.
_WORD = re.compile(r"[^\W\d_]{2,}")


class Performance(NamedTuple):
    """What one model did with one question, averaged over its samples.

    Attributes:
        score: 0 to 1.
        usd: what it cost; None where the price of a sample is unknown.
        samples: how many there were.
    """

    score: float
    usd: float | None
    samples: int = 1


class KnownQuestion(NamedTuple):
    """A question of the profile with the outcomes of the models that were asked it."""

    question: str
    outcomes: Mapping[str, Performance]


class Ranked(NamedTuple):
    """A model as a router sees it for one question.

    Attributes:
        model: its name in the profile.
        utility: `score - cost_weight * usd`.
        score, usd: means over the neighbours that it was asked; usd is None where a price is unknown.
        neighbours: how many these were; 0 where the means are those of the whole profile.
    """

    model: str
    utility: float
    score: float
    usd: float | None
    neighbours: int


class RouterProfile:
    """Questions with outcomes.

    Args:
        known: at least one question, each with at least one outcome.

    Raises:
        UsageError: there is nothing to learn from.
    """

    def __init__(self, known: Iterable[KnownQuestion]) -> None:
        self.known = tuple(each for each in known if each.outcomes)
        if not self.known:
            raise UsageError("a router profile needs questions with outcomes; there are none")
        self.models: tuple[str, ...] = tuple(dict.fromkeys(m for each in self.known for m in each.outcomes))

    # -- making one ------------------------------------------------------------------------------------------------

    @classmethod
    def fit(cls, rows: Iterable[Mapping[str, Any]], prices: Mapping[str, Prices] | None = None) -> RouterProfile:
        """Make a profile of rows: plain data with `question`, `model`, and `correct` or `score`.

        Args:
            rows: what a row costs is its `usd`, or its `input_tokens` and `output_tokens` at the price of its model;
                unknown without both. A row whose `correct` is None was not graded and is left out.
            prices: $ per million tokens by model.

        Raises:
            UsageError: a row lacks what is needed; says which.
        """
        found: dict[str, dict[str, list[tuple[float, float | None]]]] = {}
        for number, row in enumerate(rows, 1):
            score = row.get("score", row.get("correct"))
            # Not graded is not wrong: counted as 0 it would teach the router against the model.
            if score is None and ("score" in row or "correct" in row):
                continue
            question, model = row.get("question"), row.get("model")
            if not isinstance(question, str) or not isinstance(model, str) or not isinstance(score, (int, float)):
                given = {key: row.get(key) for key in ("question", "model", "correct")}
                raise UsageError(
                    f"row {number}: {given!r:.120}; expected texts, and 'correct' or a 'score' from 0 to 1"
                )
            usd = _spent(row, (prices or {}).get(model))
            found.setdefault(question, {}).setdefault(model, []).append((float(score), usd))
        return cls(KnownQuestion(text, {m: _mean(given) for m, given in by.items()}) for text, by in found.items())

    @classmethod
    def of_items(
        cls, items: Iterable[Item], tasks: Iterable[Task], models: Mapping[str, str] | None = None
    ) -> RouterProfile:
        """Make a profile of a results file.

        Args:
            items: of systems that ask one model each; those of other tasks are left out.
            tasks: whose questions the items answer.
            models: the model of each system; by default what stands behind the last `:` of the system's name.

        Raises:
            UsageError: no item is left.
        """
        questions = {task.id: task.question for task in tasks}
        chosen = [item for item in items if item.key.task in questions and not item.error]
        named = models or {}
        return cls.fit(
            {
                "question": questions[item.key.task],
                "model": named.get(item.key.system, item.key.system.rpartition(":")[2]),
                "correct": item.right,
                "usd": known_usd(item),
            }
            for item in chosen
            if not models or item.key.system in models
        )

    # -- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        rows = [{"question": question, "outcomes": outcomes} for question, outcomes in self._rows()]
        text = json.dumps({"format": FORMAT, "questions": rows}, ensure_ascii=False)
        Path(path).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> RouterProfile:
        """Read what `save` wrote.

        Raises:
            UsageError: the file is missing or is not a profile; says what to do.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            step = "make one with RouterProfile.fit(rows).save(path)"
            raise UsageError(f"router profile {path}: file not found; {step}") from None
        except (OSError, ValueError, RecursionError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"router profile {path}: cannot be read: {why}") from None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            given = data.get("format") if isinstance(data, dict) else type(data).__name__
            raise UsageError(f"router profile {path}: its format is {given!r}; expected {FORMAT!r}")
        try:
            rows = [
                (row["question"], {m: Performance(*o) for m, o in row["outcomes"].items()}) for row in data["questions"]
            ]
            return cls(KnownQuestion(str(text), outcomes) for text, outcomes in rows)
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"router profile {path}: {type(error).__name__}: {error}; make it again") from None

    @cached_property
    def digest(self) -> str:
        """The same for profiles that know the same: 16 hexadecimal digits."""
        return hashlib.sha256(json.dumps(self._rows()).encode()).hexdigest()[:16]

    def _rows(self) -> list[tuple[str, dict[str, list[float | None]]]]:
        """What it knows, as plain data."""
        return [(each.question, {model: list(seen) for model, seen in each.outcomes.items()}) for each in self.known]

    # -- asking it -------------------------------------------------------------------------------------------------

    def has_seen(self, question: str) -> bool:
        """Whether it was fitted to this very question; case and blanks do not count."""
        return _squeezed(question) in self._seen

    def rank(
        self, question: str, *, k: int = 20, cost_weight: float = 0.0, among: Sequence[str] | None = None
    ) -> list[Ranked]:
        """The models for a question, the most useful first.

        Args:
            question: any text.
            k: how many of the most similar questions count.
            cost_weight: how much accuracy a $ is worth; 0 looks at accuracy alone.
            among: only these models; all of the profile by default.

        Raises:
            UsageError: cost is weighed, and what a model costs is not known.
        """
        near = self.nearest(question, k)
        chosen = self.models if among is None else [model for model in self.models if model in among]
        if cost_weight and (unknown := [model for model in chosen if self.overall[model].usd is None]):
            raise UsageError(
                f"cost_weight={cost_weight:g} weighs what models cost, and that is not known of {', '.join(unknown)}: "
                "fit the profile to rows with 'usd', or with token counts and prices={model: Prices(...)}; "
                "or use cost_weight=0"
            )
        ranked = []
        for model in chosen:
            seen = [self.known[at].outcomes[model] for at, _ in near if model in self.known[at].outcomes]
            # A model that was asked none of the neighbours is judged by the whole profile.
            mean = _mean([(o.score, o.usd) for o in seen]) if seen else self.overall[model]
            utility = mean.score - (cost_weight * mean.usd if cost_weight and mean.usd is not None else 0.0)
            ranked.append(Ranked(model, utility, mean.score, mean.usd, len(seen)))
        # The sort is stable: models of equal utility stay in the profile's order.
        return sorted(ranked, key=lambda each: -each.utility)

    def nearest(self, question: str, k: int) -> list[tuple[int, float]]:
        """Places of the most similar questions with their cosines, most similar first; only with a word in common."""
        vector = self._vector(Counter(_words(question)))
        likeness: dict[int, float] = {}
        for word, weight in vector.items():
            for at, other in self._places.get(word, ()):
                likeness[at] = likeness.get(at, 0.0) + weight * other
        # The place breaks ties, so the same profile gives the same neighbours.
        return sorted(likeness.items(), key=lambda pair: (-pair[1], pair[0]))[:k]

    @cached_property
    def overall(self) -> dict[str, Performance]:
        """Each model over the whole profile."""
        return {
            model: _mean([(o.score, o.usd) for each in self.known if (o := each.outcomes.get(model)) is not None])
            for model in self.models
        }

    @cached_property
    def _seen(self) -> frozenset[str]:
        """All questions, as they are compared."""
        return frozenset(_squeezed(each.question) for each in self.known)

    @cached_property
    def _rarity(self) -> dict[str, float]:
        """Inverse document frequency of each word."""
        count = Counter(word for each in self.known for word in set(_words(each.question)))
        # smoothed as in scikit-learn: a word of every question keeps the weight 1
        return {word: math.log((1 + len(self.known)) / (1 + seen)) + 1 for word, seen in count.items()}

    @cached_property
    def _places(self) -> dict[str, list[tuple[int, float]]]:
        """For each word, the questions that have it, with its weight there."""
        places: dict[str, list[tuple[int, float]]] = {}
        for at, each in enumerate(self.known):
            for word, weight in self._vector(Counter(_words(each.question))).items():
                places.setdefault(word, []).append((at, weight))
        return places

    def _vector(self, counts: Mapping[str, int]) -> dict[str, float]:
        """A unit vector of the words that the profile knows."""
        # The logarithm of the count: a word that stands ten times is not ten times as telling.
        raw = {word: (1 + math.log(n)) * self._rarity[word] for word, n in counts.items() if word in self._rarity}
        length = math.sqrt(sum(value * value for value in raw.values()))
        return {word: value / length for word, value in raw.items()} if length else {}


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _squeezed(text: str) -> str:
    return " ".join(text.casefold().split())


def _spent(row: Mapping[str, Any], price: Prices | None) -> float | None:
    """What a row cost in $, None where that is not known."""
    if row.get("usd") is not None:
        return float(row["usd"])
    read, written = row.get("input_tokens"), row.get("output_tokens")
    return None if price is None or read is None or written is None else price.usd(read, written)


def _mean(given: Sequence[tuple[float, float | None]]) -> Performance:
    known = [usd for _, usd in given if usd is not None]
    # A mean over the known prices alone would make a model look as cheap as its cheapest samples.
    usd = sum(known) / len(known) if len(known) == len(given) else None
    return Performance(sum(score for score, _ in given) / len(given), usd, len(given))
