"""The exact solver: a `Question` in, every answer out, with the steps that lead there.

It evaluates on demand and without recursion, so a chain of ten thousand sentences is no problem, and a
cycle is reported with its path. Two hooks make the simulated models fail: `believe` chooses the false notes that count,
and `waver` may change the value of a step, which spoils every step that depends on it. Without them it is the oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from .grammar import MODULUS, Ask, GrammarError, Lure, Needle, Problem, Question, Relation, result_mark, result_number
from .ontology import Ontology, Quantity


class SolutionStep(NamedTuple):
    """One quantity worked out: `formula` with names, `numbers` with values, and the `value`."""

    about: Ask
    formula: str
    numbers: str
    value: int
    operations: frozenset[str]

    def __str__(self) -> str:
        return " = ".join([str(self.about), self.formula, self.numbers, str(self.value)])


@dataclass(frozen=True)
class SolvedQuestion:
    """All answers in the order of the questions, and the steps in the order of work."""

    answers: tuple[int, ...]
    steps: tuple[SolutionStep, ...]


Waver = Callable[[SolutionStep], int]
Believe = Callable[[Lure], bool]


def solve(question: Question, *, believe: Believe | None = None, waver: Waver | None = None) -> SolvedQuestion:
    """Work out every answer.

    Raises:
        GrammarError: quantities define each other in a circle; a needle or an earlier result is missing.
    """
    answers: list[int] = []
    steps: list[SolutionStep] = []
    results: dict[int, tuple[Quantity, int]] = {}
    for problem in question.problems:
        work = _ProblemWork(problem, results, believe, waver, steps)
        found = [work.answer(ask) for ask in problem.asks]
        answers += found
        quantities = [(ask, value) for ask, value in zip(problem.asks, found, strict=True) if isinstance(ask, Quantity)]
        if quantities:
            results[problem.number] = quantities[0]
    return SolvedQuestion(tuple(answers), tuple(steps))


class _ProblemWork:
    """One problem being solved."""

    def __init__(
        self,
        problem: Problem,
        results: dict[int, tuple[Quantity, int]],
        believe: Believe | None,
        waver: Waver | None,
        steps: list[SolutionStep],
    ) -> None:
        self._problem, self._waver, self._steps = problem, waver, steps
        # What is believed is drawn once for each note, before any step: a model that believes it does so throughout.
        self._claims = {lure.about: lure.value for lure in problem.lures if lure.about and believe and believe(lure)}
        self._values: dict[Quantity, int] = {}
        self._alias: dict[Quantity, Quantity] = {}
        self._use_results(results)
        self._facts = {self._named(q): self._renamed(relation) for q, relation in problem.facts.items()}
        asked = [self._named(ask) for ask in problem.asks if isinstance(ask, Quantity)]
        # Totals count what is asked for as well as what is stated.
        counted = [*asked, *(q for relation in self._facts.values() for q in relation.needs)]
        self._ontology = Ontology({**self._facts, **self._values}, counted)

    def answer(self, ask: Ask) -> int:
        """The value asked for."""
        if isinstance(ask, Needle):
            return self._recall(ask)
        quantity = self._named(ask)
        self._evaluate(quantity)
        return self._values[quantity]

    def _use_results(self, results: dict[int, tuple[Quantity, int]]) -> None:
        """Put the quantity that problem k asked for, with its value, in the place of [answerk]."""
        known = {**results, **self._problem.given}
        for k in self._problem.results_used:
            mark = result_mark(k)
            if k in known:
                about, value = known[k]
                self._alias[mark] = about
                self._values[about] = value
            elif mark not in self._problem.facts:
                raise GrammarError(
                    f"problem {self._problem.number} uses [answer{k}], which is not known: put problem {k} "
                    f'before it, or add "[answer{k}] stands for each X\'s Y and equals 7."'
                )

    def _named(self, quantity: Quantity) -> Quantity:
        return self._alias.get(quantity, quantity)

    def _renamed(self, relation: Relation) -> Relation:
        if not any(result_number(q) is not None for q in relation.needs):
            return relation
        terms = tuple(tuple(map(self._named, term)) for term in relation.terms)
        return Relation(terms, relation.factor, relation.shift, relation.difference)

    def _recall(self, needle: Needle) -> int:
        if needle in self._claims:
            return self._record(needle, "as the note says", self._claims[needle], "recall")
        if needle.word not in self._problem.needles:
            known = ", ".join(self._problem.needles) or "none"
            raise GrammarError(f"the text has no magic number for {needle.word!r}; it has: {known}")
        return self._record(needle, "as the text says", self._problem.needles[needle.word], "recall")

    def _record(self, about: Ask, source: str, value: int, operation: str) -> int:
        step = SolutionStep(about, source, str(value), value, frozenset({operation}))
        return self._settle(step)

    def _settle(self, step: SolutionStep) -> int:
        value = self._waver(step) if self._waver else step.value
        self._steps.append(step._replace(value=value))
        return value

    def _evaluate(self, goal: Quantity) -> None:
        """Depth first with an explicit stack; the stack is the path, so a cycle can be shown."""
        # Its keys are the path, in order, and a look-up finds a circle.
        path: dict[Quantity, tuple[Relation, Iterator[Quantity]]] = {}
        waiting = [goal]
        while waiting:
            quantity = waiting[-1]
            if quantity in self._values:
                waiting.pop()
                continue
            if quantity not in path:
                relation = self._relation(quantity)
                path[quantity] = (relation, iter(relation.needs))
            relation, needs = path[quantity]
            missing = next((q for q in needs if q not in self._values), None)
            if missing is None:
                waiting.pop()
                del path[quantity]
                self._values[quantity] = self._value(quantity, relation)
            elif missing in path:
                circle = [*list(path)[list(path).index(missing) :], missing]
                raise GrammarError(f"these define each other in a circle: {' → '.join(map(str, circle))}")
            else:
                waiting.append(missing)

    def _relation(self, quantity: Quantity) -> Relation:
        if quantity in self._claims:
            return Relation(shift=self._claims[quantity] % MODULUS)
        if quantity in self._facts:
            return self._facts[quantity]
        total = self._ontology.total(quantity)
        return Relation(total.parts, total=True) if total else Relation()

    def _value(self, quantity: Quantity, relation: Relation) -> int:
        if quantity in self._claims:
            return self._record(quantity, "as the note says", relation.shift, "copy")
        if quantity not in self._facts and not relation.terms:
            return self._record(quantity, "not mentioned", 0, "copy")
        value = relation.value(self._values)
        if not relation.terms:
            return self._record(quantity, "as the text says", value, "copy")
        numbers = relation.formula(self._values)
        return self._settle(SolutionStep(quantity, relation.formula(), numbers, value, relation.operations))
