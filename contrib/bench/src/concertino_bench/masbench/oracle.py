"""The second opinion: from the text of a row to its answers and its measures, by another way than the generator's.

The generator knows every value while it builds. This reads the finished text, makes an equation of every quantity that
is mentioned anywhere, and sweeps over all of them until nothing changes. It knows no catalogue: a word stands for a
category if it is counted, and no sentence defines it or makes it an owner. How deep a category lies follows from who
owns what, by relative heights of names: it lies right below the lowest owner that it is counted for. Generated texts
always tell that; a published text may count a category from two layers above only, which `other_answers` allows for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .reading import Equation, Name, Section, read_text

_MODULUS = 23


class NoAnswer(ValueError):
    """A text was read, but has no answer: quantities define each other in a circle, or a hidden number is missing."""


@dataclass(frozen=True)
class Measures:
    """What a text holds, measured on the text.

    Attributes:
        problems: how many problems.
        depth: nodes on the longest chain that an answer is in.
        breadth: the most nodes that one node rests on.
        breadth_needed: the same among the nodes that some answer rests on.
        independent: groups of problems of which no two are linked by a result.
        handed_on: problems whose result a later one uses.
        attacked: answers that a note contradicts.
    """

    problems: int
    depth: int
    breadth: int
    breadth_needed: int
    independent: int
    handed_on: int
    attacked: int


Sum = tuple[tuple[Name, ...], ...]


def answers(text: str) -> tuple[int, ...]:
    """Every answer, in the order of the questions.

    Raises:
        QuestionReadingError: a sentence is outside the grammar.
        NoAnswer: the text has no answer.
    """
    return tuple(value for system in _systems(text) for value in system.answers)


def other_answers(text: str) -> list[tuple[int, ...]]:
    """The answers if one category lies a layer deeper than the text tells; without those of `answers`.

    Raises:
        QuestionReadingError: a sentence is outside the grammar.
        NoAnswer: the text has no answer.
    """
    plain = answers(text)
    found: list[tuple[int, ...]] = []
    for system in _systems(text):
        for counted in system.counted:
            try:
                other = tuple(value for each in _systems(text, counted) for value in each.answers)
            except NoAnswer:
                continue
            if other != plain and other not in found:
                found.append(other)
    return found


def measure(text: str) -> Measures:
    """Measure a text.

    Raises:
        QuestionReadingError: a sentence is outside the grammar.
        NoAnswer: the text has no answer.
    """
    systems = _systems(text)
    group = {system.section.number: system.section.number for system in systems}
    handed: set[int] = set()
    for system in systems:
        for number in system.section.handed:
            handed.add(number)
            old, new = group[number], group[system.section.number]
            group = {key: new if value == old else value for key, value in group.items()}
    degrees = [system.degrees() for system in systems]
    needed = [system.needed() for system in systems]
    return Measures(
        problems=len(systems),
        depth=max(system.depth() for system in systems),
        breadth=max(max(each.values(), default=0) for each in degrees),
        breadth_needed=max(
            max((degree for name, degree in each.items() if name in on_the_way), default=0)
            for each, on_the_way in zip(degrees, needed, strict=True)
        ),
        independent=len(set(group.values())),
        handed_on=len(handed),
        attacked=sum(system.attacked() for system in systems),
    )


def _systems(text: str, deeper: tuple[str, str] | None = None) -> list[_System]:
    systems: list[_System] = []
    results: dict[int, int] = {}
    for section in read_text(text):
        system = _System(section, results, deeper)
        systems.append(system)
        first = section.asked[0]
        if isinstance(first, tuple):
            results[section.number] = system.answers[0]
    return systems


class _System:
    """All equations of one problem, solved."""

    def __init__(self, section: Section, results: Mapping[int, int], deeper: tuple[str, str] | None) -> None:
        self.section = section
        self.counted: list[tuple[str, str]] = []  # (group of names, category)
        self._equations = dict(section.equations)
        for number, name in section.handed.items():
            self._equations.setdefault(name, Equation(plus=results[number]))
        self._asked = [name for name in section.asked if isinstance(name, tuple)]
        self._sums = self._totals(deeper)
        self._values = self._solved()
        self.answers = [self._answer(asked) for asked in section.asked]

    def _answer(self, asked: Name | str) -> int:
        if isinstance(asked, str):
            if asked not in self.section.hidden:
                raise NoAnswer(f"no magic number for {asked!r} is told")
            return self.section.hidden[asked]
        if asked not in self._values:
            raise NoAnswer(f"{asked[0]}'s {asked[1]} rests on itself")
        return self._values[asked]

    # -- totals --------------------------------------------------------------------------------------------------

    def _totals(self, deeper: tuple[str, str] | None) -> dict[Name, Sum]:
        """What each counted category adds up, for every owner that it is counted for."""
        counted = [*self._asked, *(name for equation in self._equations.values() for name in equation.terms)]
        owners = {owner for owner, _ in [*self._equations, *counted]}
        categories = {item for _, item in counted} - {item for _, item in self._equations} - owners
        heights = _Heights()
        for owner, item in [*self._equations, *(name for name in counted if name[1] not in categories)]:
            heights.link(owner, item)
        lowest: dict[tuple[str, str], int] = {}  # (group, category) → the height of its lowest owner
        for owner, category in counted:
            if category in categories:
                group, height = heights.of(owner)
                lowest[group, category] = max(height, lowest.get((group, category), height))
        self.counted = list(lowest)
        if deeper in lowest:
            lowest[deeper] += 1
        found: dict[Name, Sum] = {}
        waiting = [name for name in counted if name[1] in categories]
        while waiting:
            owner, category = waiting.pop()
            if (owner, category) in found:
                continue
            group, height = heights.of(owner)
            inner = height < lowest.get((group, category), height)
            items = [name for name in self._equations if name[0] == owner]
            found[owner, category] = tuple((name, (name[1], category)) if inner else (name,) for name in items)
            waiting += [(item, category) for _, item in items] if inner else []
        return found

    # -- values --------------------------------------------------------------------------------------------------

    def _solved(self) -> dict[Name, int]:
        """Sweep until nothing changes. What has neither a sentence nor items is 0 from the start."""
        mentioned = {*self._asked, *(name for needs in self._all_needs().values() for name in needs)}
        values = {name: 0 for name in mentioned if name not in self._equations and name not in self._sums}
        left = [*self._equations, *self._sums]
        while left:
            ready = [name for name in left if all(need in values for need in self._needs(name))]
            if not ready:
                break
            for name in ready:
                values[name] = self._work_out(name, values)
            left = [name for name in left if name not in values]
        return values

    def _work_out(self, name: Name, values: Mapping[Name, int]) -> int:
        if name in self._equations:
            equation = self._equations[name]
            signs = [1, -1] if equation.minus else [1] * len(equation.terms)
            body = sum(sign * values[term] for sign, term in zip(signs, equation.terms, strict=True))
            return (equation.plus + equation.times * body) % _MODULUS
        total = 0
        for part in self._sums[name]:
            product = 1
            for factor in part:
                product = product * values[factor] % _MODULUS
            total += product
        return total % _MODULUS

    def _needs(self, name: Name) -> Iterable[Name]:
        if name in self._equations:
            return self._equations[name].terms
        return [factor for part in self._sums.get(name, ()) for factor in part]

    def _all_needs(self) -> dict[Name, set[Name]]:
        return {name: set(self._needs(name)) for name in [*self._equations, *self._sums]}

    # -- measures ------------------------------------------------------------------------------------------------

    def _nodes(self) -> dict[Name, set[Name]]:
        """Each quantity that has to be worked out, with those that it rests on; a total over nothing is none."""
        nodes = {*self._equations, *(name for name, parts in self._sums.items() if parts)}
        return {name: needs & nodes for name, needs in self._all_needs().items() if name in nodes}

    def degrees(self) -> dict[Name, int]:
        """How many nodes each node rests on."""
        return {name: len(needs) for name, needs in self._nodes().items()}

    def needed(self) -> set[Name]:
        """The nodes that some answer rests on, and the answers."""
        nodes = self._nodes()
        found = {name for name in self._asked if name in nodes}
        while True:
            more = {need for name in found for need in nodes[name]} - found
            if not more:
                return found
            found |= more

    def depth(self) -> int:
        """Nodes on the longest chain that an answer is in."""
        needs = self._nodes()
        users = {name: {user for user in needs if name in needs[user]} for name in needs}
        below, above = _longest(needs), _longest(users)
        return max((below[name] + above.get(name, 1) - 1 for name in self._asked if name in below), default=0)

    def attacked(self) -> int:
        """Answers that a note contradicts."""
        truth = dict(zip(self.section.asked, self.answers, strict=True))
        return len({about for about, value in self.section.attacked if about in truth and truth[about] != value})


def _longest(edges: Mapping[Name, set[Name]]) -> dict[Name, int]:
    """Names on the longest way from each name along the edges; what runs in a circle is left out."""
    length: dict[Name, int] = {}
    while True:
        ready = [name for name, ends in edges.items() if name not in length and ends <= length.keys()]
        if not ready:
            return length
        length.update({name: 1 + max((length[end] for end in edges[name]), default=0) for name in ready})


class _Heights:
    """Relative heights of names, an owner one above its items, by a union of groups with offsets."""

    def __init__(self) -> None:
        self._parent: dict[str, tuple[str, int]] = {}

    def of(self, name: str) -> tuple[str, int]:
        """(group, height below the group's root) of a name."""
        parent, offset = self._parent.setdefault(name, (name, 0))
        if parent == name:
            return name, 0
        root, above = self.of(parent)
        self._parent[name] = root, offset + above
        return self._parent[name]

    def link(self, owner: str, item: str) -> None:
        """`item` lies one below `owner`; what is linked already keeps its height."""
        (first, top), (second, bottom) = self.of(owner), self.of(item)
        if first != second:
            self._parent[second] = first, top + 1 - bottom


__all__ = ["Measures", "NoAnswer", "answers", "measure"]
