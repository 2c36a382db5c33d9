"""The size of a question, measured on its text: how deep and broad its graph is, and what its problems share.

concertino-toy reads the text, with a reader that shares no code with the generator. So a measure is what a solver sees,
and published questions can be measured too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from concertino_toy.problems import Quantity, read, solve
from concertino_toy.problems.grammar import Problem, result_mark
from concertino_toy.problems.ontology import Ontology

Needs = dict[Quantity, set[Quantity]]
"""Each quantity that has to be worked out, with those of them that it rests on."""


@dataclass(frozen=True)
class Measures:
    """The size of a question.

    Attributes:
        problems: how many problems.
        depth: quantities on the longest chain that an answer is in.
        breadth: the most quantities that one rests on.
        breadth_needed: the same among the quantities that some answer rests on.
        independent: groups of problems of which no two are linked by a result.
        handed_on: problems whose result a later one uses.
        attacked: answers that a false note contradicts.
    """

    problems: int
    depth: int
    breadth: int
    breadth_needed: int
    independent: int
    handed_on: int
    attacked: int


def measure(text: str) -> Measures:
    """Measure a question.

    Raises:
        GrammarError: a sentence is outside the grammar, or an answer cannot be worked out.
    """
    problems = read(text).problems
    answers = iter(solve(read(text)).answers)
    results: dict[Quantity, Quantity] = {}  # [answer2] → the quantity that problem 2 asks for
    group = {problem.number: problem.number for problem in problems}
    handed: set[int] = set()
    depths, breadths, breadths_needed, attacked = [0], [0], [0], 0
    for problem in problems:
        for number in problem.results_used:
            handed.add(number)
            # Two problems that a result links become one group, with all that either was linked to.
            group = {key: group[problem.number] if at == group[number] else at for key, at in group.items()}
        goals = [results.get(ask, ask) for ask in problem.asks if isinstance(ask, Quantity)]
        needs = _needs(problem, goals, results)
        depths.append(_depth(needs, goals))
        breadths += map(len, needs.values())
        breadths_needed += [len(needs[each]) for each in _closure(needs, goals)]
        truth = {ask: next(answers) for ask in problem.asks}
        claims = [(lure.about, lure.value) for lure in problem.lures]
        attacked += len({ask for ask, value in truth.items() if any(a == ask and v != value for a, v in claims)})
        if goals:
            results[result_mark(problem.number)] = goals[0]
    return Measures(
        problems=len(problems),
        depth=max(depths),
        breadth=max(breadths),
        breadth_needed=max(breadths_needed),
        independent=len(set(group.values())),
        handed_on=len(handed),
        attacked=attacked,
    )


def _needs(problem: Problem, goals: Iterable[Quantity], results: Mapping[Quantity, Quantity]) -> Needs:
    """What a problem's sentences define, the results that it uses, and every total that is counted."""
    facts = {
        results.get(quantity, quantity): [results.get(need, need) for need in relation.needs]
        for quantity, relation in problem.facts.items()
    }
    for number in problem.results_used:
        facts.setdefault(results[result_mark(number)], [])
    waiting = [*goals, *(need for needs in facts.values() for need in needs)]
    ontology = Ontology(list(facts), waiting)
    while waiting:
        quantity = waiting.pop()
        if quantity not in facts and (total := ontology.total(quantity)) and total.parts:
            facts[quantity] = [factor for part in total.parts for factor in part]
            waiting += facts[quantity]
    return {quantity: facts.keys() & needs for quantity, needs in facts.items()}


def _closure(needs: Needs, goals: Iterable[Quantity]) -> set[Quantity]:
    """The goals, and all that they rest on."""
    found: set[Quantity] = set()
    waiting = [goal for goal in goals if goal in needs]
    while waiting:
        quantity = waiting.pop()
        if quantity not in found:
            found.add(quantity)
            waiting += needs[quantity]
    return found


def _depth(needs: Needs, goals: Iterable[Quantity]) -> int:
    """Quantities on the longest chain that a goal is in, whether it ends there or leads further."""
    users = {quantity: {user for user in needs if quantity in needs[user]} for quantity in needs}
    below, above = _longest(needs), _longest(users)
    # The goal itself is in both lengths.
    return max((below[goal] + above.get(goal, 1) - 1 for goal in goals if goal in below), default=0)


def _longest(edges: Needs) -> dict[Quantity, int]:
    """Quantities on the longest way from each one along the edges; what runs in a circle is left out."""
    length: dict[Quantity, int] = {}
    while ready := [each for each, ends in edges.items() if each not in length and ends <= length.keys()]:
        length |= {each: 1 + max((length[end] for end in edges[each]), default=0) for each in ready}
    return length
