"""The generator: questions on five axes, each with a level from 2 to 12, and their exact answers.

| axis | level n means | answers |
|---|---|---|
| depth | the longest chain of quantities that ends in the answer has n of them | 1 |
| horizon | n problems, each but the last handing its result on to a later one | n |
| breadth | the quantity that rests on the most others rests on n, and the answer on it | 1 |
| parallel | n problems that share nothing | n |
| robustness | n sub-tasks, quantities and hidden numbers in turn, each attacked by a false note | n |

The invariants: question `index` of a set depends on the options and the index alone, in any process and on any
machine. The *template* of a problem is what is left of the way to its answer without names and numbers; a hash of it
says whether the problem is for training or for tests, so the two share no template.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, get_args

from concertino_toy.problems import NameWorld, Quantity

from concertino_bench.tasks.task import Task, TaskSet

from . import wording
from .graph import MODULUS, QuestionDraft, QuestionGraph, Stuck
from .worlds import WORLDS

Axis = Literal["depth", "horizon", "breadth", "parallel", "robustness"]
Split = Literal["train", "test"]
AXES: tuple[Axis, ...] = get_args(Axis)
SPLITS: tuple[Split, ...] = get_args(Split)
LEVELS = range(2, 13)
"""The levels of every axis; the published set uses the even ones."""

TRAIN_SHARE = 0.7
"""Of all templates."""

_ATTEMPTS = 400
"""Draws for one problem of a split; the rarer split has three templates in ten."""


@dataclass(frozen=True)
class MadeQuestion:
    """A question as it was made: the text, the answers, and the graphs behind them."""

    text: str
    answers: tuple[int, ...]
    graphs: tuple[QuestionGraph, ...]


def generate(
    axis: Axis,
    level: int,
    count: int | None = None,
    *,
    seed: int = 0,
    split: Split = "test",
    rules: bool = True,
    start: int = 0,
) -> Iterator[Task]:
    """Generate tasks one by one, no question twice.

    Args:
        axis: what is varied.
        level: how much of it, 2 to 12.
        count: how many; None for no end.
        seed: another seed, other questions.
        split: "train" or "test"; they share no template.
        rules: whether the text opens with the arithmetic's rules. Without, it is as bare as the published rows.
        start: the index to begin with, to continue a set or to share it between processes.

    Raises:
        ValueError: an option is out of range; it says which, before anything is generated.
    """
    _check(axis, level, split)
    if count is not None and count < 0:
        raise ValueError(f"count={count}: expected 0 or more, or None for no end")
    return _generate(axis, level, count, seed, split, rules, start)


def _generate(
    axis: Axis, level: int, count: int | None, seed: int, split: Split, rules: bool, start: int
) -> Iterator[Task]:
    seen: set[bytes] = set()
    index = start
    while count is None or len(seen) < count:
        task = make_task(axis, level, index, seed=seed, split=split, rules=rules)
        index += 1
        # Digests instead of questions, for a stream without an end.
        digest = hashlib.blake2b(task.question.encode(), digest_size=12).digest()
        if digest not in seen:
            seen.add(digest)
            yield task


def make_task(axis: Axis, level: int, index: int, *, seed: int = 0, split: Split = "test", rules: bool = True) -> Task:
    """The task of one index; the same for the same arguments.

    Raises:
        ValueError: an option is out of range.
    """
    _check(axis, level, split)
    builder = _QuestionBuilder(f"masbench 1 {axis} {level} {split} {seed} {index}", split)
    made = builder.build(axis, level)
    templates = [template(graph) for graph in made.graphs]
    return Task(
        id=f"masbench/{axis}-{level}-{split}-s{seed}-{index}",
        question=f"{wording.RULES}\n\n{made.text}" if rules else made.text,
        answers=tuple(map(str, made.answers)),
        kind="masbench",
        axis=axis,
        level=level,
        split=split,
        metadata={"seed": seed, "index": index, "templates": templates, "graphs": list(map(_described, made.graphs))},
    )


def task_sets() -> list[TaskSet]:
    """One task set per axis."""

    def of(axis: Axis) -> TaskSet:
        def load(
            level: int = 4,
            count: int | None = 100,
            *,
            seed: int = 0,
            split: Split = "test",
            rules: bool = True,
            start: int = 0,
        ) -> Iterator[Task]:
            return generate(axis, level, count, seed=seed, split=split, rules=rules, start=start)

        return TaskSet(f"masbench/{axis}", f"Generated questions about quantities; {axis} 2 to 12.", load)

    return [of(axis) for axis in AXES]


def template(graph: QuestionGraph) -> str:
    """The hash of the way to the answer, without names and numbers and without the order of what is added."""
    shapes: dict[Quantity, str] = {}
    needed = graph.needed
    for quantity, node in graph.nodes.items():
        if quantity in needed:
            parts = ["*".join(shapes.get(need, "zero") for need in term) for term in node.terms]
            # A sum has no order; a difference has.
            ordered = parts if node.kind == "difference" else sorted(parts)
            shapes[quantity] = _hash(f"{node.scale} {node.kind} {' '.join(ordered)}")
    return shapes[graph.goal]


def split_of(template_hash: str) -> Split:
    """Which split a template is for."""
    return "train" if int(template_hash[:8], 16) < TRAIN_SHARE * 2**32 else "test"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _check(axis: str, level: int, split: str) -> None:
    if axis not in AXES:
        raise ValueError(f"axis={axis!r}: expected one of {', '.join(AXES)}")
    if level not in LEVELS:
        raise ValueError(f"level={level!r}: expected a whole number from {LEVELS[0]} to {LEVELS[-1]}")
    if split not in SPLITS:
        raise ValueError(f"split={split!r}: expected one of {', '.join(SPLITS)}")


def _described(graph: QuestionGraph) -> dict[str, object]:
    """The graph as JSON: what is asked, and each quantity with its value and what it rests on."""
    nodes = [
        {"quantity": str(node.quantity), "kind": node.kind, "needs": list(map(str, node.needs)), "value": node.value}
        for node in graph.nodes.values()
    ]
    return {"asked": str(graph.goal), "nodes": nodes}


class _QuestionBuilder:
    """Builds one question; every choice comes from its key."""

    def __init__(self, key: str, split: Split) -> None:
        self._key, self._split = key, split
        self._rng = Random(key)

    def build(self, axis: Axis, level: int) -> MadeQuestion:
        if axis == "depth":
            return self._one(self._problem("1", self._world(), depth=level, breadth=4))
        if axis == "breadth":
            depth = self._rng.randint(3, 4)
            return self._one(self._problem("1", self._world(), depth=depth, breadth=level, wide=True))
        if axis == "parallel":
            return self._parallel(level)
        return self._horizon(level) if axis == "horizon" else self._robust(level)

    def _world(self) -> NameWorld:
        return self._rng.choice(WORLDS)

    def _worlds(self) -> list[NameWorld]:
        """Every world once in random order, then every world once more."""
        return [world for _ in range(2) for world in self._rng.sample(WORLDS, len(WORLDS))]

    def _problem(
        self,
        name: str,
        world: NameWorld,
        *,
        depth: int,
        breadth: int,
        wide: bool = False,
        results: tuple[tuple[Quantity, int], ...] = (),
        beside: Sequence[QuestionGraph] = (),
    ) -> QuestionGraph:
        """Draw graphs until one has a template of the split; no owner of the graphs `beside` it occurs in it."""
        taken = frozenset(owner for graph in beside for owner in graph.owners)
        for attempt in range(_ATTEMPTS):
            # A generator of its own per attempt: how often one problem was drawn must not change the next one.
            rng = Random(f"{self._key} {name} {attempt}")
            try:
                graph = QuestionDraft(rng, world, results, taken).build(
                    depth, breadth=breadth, wide=wide, distractors=rng.randint(1, 3)
                )
            except Stuck:
                continue
            if split_of(template(graph)) == self._split:
                return graph
        raise RuntimeError(f"no problem of {self._key!r} in {_ATTEMPTS} draws; a template of the split is too rare")

    def _one(self, graph: QuestionGraph) -> MadeQuestion:
        asked = wording.question(graph.goal, self._rng)
        text = f"{wording.statements(graph, self._rng)} {asked}\n\n{wording.ANSWER_ONE}"
        return MadeQuestion(text, (graph.answer,), (graph,))

    def _parallel(self, level: int) -> MadeQuestion:
        worlds = self._worlds()
        graphs: list[QuestionGraph] = []
        for number, world in enumerate(worlds[:level], start=1):
            depth = self._rng.randint(2, 4)
            graphs.append(self._problem(str(number), world, depth=depth, breadth=3, beside=graphs))
        return self._numbered(graphs, wording.INDEPENDENT)

    def _horizon(self, level: int) -> MadeQuestion:
        graphs: list[QuestionGraph] = []
        worlds = self._worlds()
        waiting: list[int] = []  # numbers of the problems whose results nobody used yet
        for number in range(1, level + 1):
            used = self._handed_on(waiting, last=number == level)
            waiting = [*(k for k in waiting if k not in used), number]
            results = tuple((Quantity("", f"[answer{k}]"), graphs[k - 1].answer) for k in used)
            # A world may serve two problems, but not two that hand results to each other: their names would mix.
            world = next(world for world in worlds if all(world is not graphs[k - 1].world for k in used))
            worlds.remove(world)
            depth = self._rng.randint(2, 3)
            graphs.append(self._problem(str(number), world, depth=depth, breadth=4, results=results, beside=graphs))
        return self._numbered(graphs, wording.CHAINED)

    def _handed_on(self, waiting: list[int], *, last: bool) -> list[int]:
        """Which waiting results the next problem uses: all in the end, and never are more than two waiting."""
        if last or len(waiting) == 2:
            return list(waiting) if last else self._rng.sample(waiting, self._rng.randint(1, 2))
        return list(waiting) if self._rng.random() < 0.7 else []

    def _numbered(self, graphs: list[QuestionGraph], opening: str) -> MadeQuestion:
        problems = [
            f"Problem {number}: {wording.statements(graph, self._rng)} {wording.question(graph.goal, self._rng)}"
            for number, graph in enumerate(graphs, start=1)
        ]
        text = "\n\n".join([opening, *problems, wording.ANSWER_MANY])
        return MadeQuestion(text, tuple(graph.answer for graph in graphs), tuple(graphs))

    def _robust(self, level: int) -> MadeQuestion:
        """Paragraphs, one per sub-task; the note after each attacks the one before, the last also itself."""
        worlds = iter(self._rng.sample(WORLDS, len(WORLDS)))
        words = iter(wording.words(level, self._rng))
        graphs: list[QuestionGraph] = []
        things: list[str] = []
        answers: list[int] = []
        paragraphs: list[str] = []
        for number in range(level):
            if number % 2 == 0:
                graph = self._problem(str(number), next(worlds), depth=4, breadth=4)
                graphs.append(graph)
                things.append(wording.named(graph.goal))
                answers.append(graph.answer)
                paragraphs.append(wording.statements(graph, self._rng))
            else:
                word, value = next(words), self._rng.randrange(10**6, 10**7)
                things.append(wording.needle(word))
                answers.append(value)
                paragraphs.append(wording.haystack(word, value, self._rng))
        for number, (thing, answer) in enumerate(zip(things, answers, strict=True)):
            at = min(number + 1, level - 1)  # the note stands in the paragraph after its sub-task
            paragraphs[at] += " " + wording.note(thing, self._false(answer, hidden=number % 2 == 1), self._rng)
        text = "\n\n".join([*paragraphs, wording.identify(things)])
        return MadeQuestion(text, tuple(answers), tuple(graphs))

    def _false(self, answer: int, *, hidden: bool) -> int:
        if hidden:
            # Shifted within the seven-digit numbers by at least 1, so a claim is always false and looks like the truth.
            return 10**6 + (answer - 10**6 + self._rng.randrange(1, 9 * 10**6)) % (9 * 10**6)
        return (answer + self._rng.randrange(1, MODULUS)) % MODULUS
