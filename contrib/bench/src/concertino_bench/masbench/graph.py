"""A dependency graph of quantities with a stated depth and in-degree, built forwards, and with it the answer.

A *node* is a quantity that has to be worked out: one that a sentence defines, a total over a category, or a result that
another problem hands over. What no sentence mentions is 0 and no node. Two sizes are controlled: the *depth* of a node
is the number of nodes on the longest chain that ends in it, its *in-degree* the number of nodes that it rests on.

The invariants: a node is added after all that it rests on, so its value is known at once and never changes. An owner
whose total was taken is *closed*: no later sentence gives it another item. What was used as not mentioned is never
mentioned. A word stands for a category exactly if it is counted, and no sentence defines it or makes it an owner, so
that a reader without the catalogue understands the text too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from random import Random
from typing import Literal

from concertino_toy.problems import NameWorld, Quantity

# The published rows count modulo 23, which their paper never says.
MODULUS = 23
"""All values are taken modulo this."""


Kind = Literal["given", "sum", "difference", "total", "result"]
Scale = Literal["", "more", "less", "times"]


@dataclass(frozen=True)
class QuestionNode:
    """One quantity to work out, `scale(number, kind(terms))`.

    Attributes:
        quantity: what is worked out.
        kind: `given` is a number; a `total` adds products of one or two quantities; a `sum` may have one term.
        terms: what it rests on, in the order of the text; each a product.
        scale: how `number` changes it.
        number: the number of a `given` or of the scale; 0 where there is none.
        value: 0 to 22.
        depth: nodes on the longest chain that ends here, at least 1.
    """

    quantity: Quantity
    kind: Kind
    terms: tuple[tuple[Quantity, ...], ...]
    scale: Scale
    number: int
    value: int
    depth: int

    @cached_property
    def needs(self) -> tuple[Quantity, ...]:
        """The quantities that it rests on, each once."""
        return tuple(dict.fromkeys(quantity for term in self.terms for quantity in term))


class Stuck(Exception):
    """The draft has no room for what was requested; the caller draws again."""


@dataclass(frozen=True)
class QuestionGraph:
    """One problem.

    Attributes:
        nodes: in an order in which they can be worked out.
        goal: what is asked for.
        world: where the names are from.
    """

    nodes: dict[Quantity, QuestionNode]
    goal: Quantity
    world: NameWorld

    @property
    def answer(self) -> int:
        """The value of what is asked for."""
        return self.nodes[self.goal].value

    @property
    def needed(self) -> frozenset[Quantity]:
        """The nodes that the answer rests on, and the answer."""
        found: set[Quantity] = set()
        waiting = [self.goal]
        while waiting:
            quantity = waiting.pop()
            if quantity in self.nodes and quantity not in found:
                found.add(quantity)
                waiting.extend(self.nodes[quantity].needs)
        return frozenset(found)

    @property
    def owners(self) -> frozenset[str]:
        """Every owner that the problem mentions."""
        mentioned = [*self.nodes, *(need for node in self.nodes.values() for need in node.needs)]
        return frozenset(quantity.owner for quantity in mentioned) - {""}

    @property
    def breadth(self) -> int:
        """The largest in-degree."""
        return max(sum(need in self.nodes for need in node.needs) for node in self.nodes.values())


class QuestionDraft:
    """A graph while it is built."""

    def __init__(
        self,
        rng: Random,
        world: NameWorld,
        results: Iterable[tuple[Quantity, int]] = (),
        taken: Set[str] = frozenset(),
    ) -> None:
        """`results` are handed over by other problems, with their values; all get used. `taken` owners get no item."""
        self._rng, self._world, self._taken = rng, world, taken
        self._nodes: dict[Quantity, QuestionNode] = {}
        self._absent: set[Quantity] = set()
        self._closed: set[str] = set()
        self._most = 0
        self._results = [self._add(QuestionNode(q, "result", (), "", 0, value, 1)).quantity for q, value in results]

    def build(self, depth: int, *, breadth: int, wide: bool = False, distractors: int = 2) -> QuestionGraph:
        """Build a chain of `depth` nodes to what is asked, and sentences that lead elsewhere.

        Args:
            depth: of the answer, exactly; at least 2.
            breadth: the most nodes that one rests on.
            wide: one node on the way to the answer rests on `breadth` nodes exactly.
            distractors: sentences that the answer does not need.

        Raises:
            Stuck: this draw cannot be finished; another one may.
        """
        self._most = breadth
        wide_at = self._rng.randint(2, depth) if wide else 0
        handed = {result: self._rng.randint(2, depth) for result in self._results}
        last = self._given(self._fresh()).quantity
        for step in range(2, depth + 1):
            must = [last, *(result for result, at in handed.items() if at == step)]
            last = self._step(must, step, wide=step == wide_at)
        for _ in range(distractors):
            self._distract(last)
        graph = QuestionGraph(self._nodes, last, self._world)
        # Terms are drawn freely within limits; a draw that missed the requested size is given up here.
        if graph.nodes[last].depth != depth or graph.breadth > breadth:
            raise Stuck(f"depth {graph.nodes[last].depth} and breadth {graph.breadth}")
        return graph

    def _step(self, must: list[Quantity], step: int, *, wide: bool) -> Quantity:
        """Add the next node of the chain, of depth `step`."""
        if len(must) == 1 and self._rng.random() < (0.5 if wide else 0.3):
            total = self._chain_total(must[0], step, exact=wide)
            if total is not None:
                return total
        size = self._most if wide else max(len(must), self._rng.choice((1, 1, 2, 2, 2, 3, 4)))
        terms = list(must)
        while len(terms) < min(size, self._most):
            terms.append(self._term(terms, step - 1, node_only=wide))
        return self._relate(self._fresh(), terms).quantity

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _add(self, node: QuestionNode) -> QuestionNode:
        if node.quantity in self._nodes:
            # Two sentences for one quantity could contradict each other.
            raise Stuck(f"{node.quantity} is there already")
        self._nodes[node.quantity] = node
        return node

    def _value(self, quantity: Quantity) -> int:
        return self._nodes[quantity].value if quantity in self._nodes else 0

    def _depth(self, quantities: Iterable[Quantity]) -> int:
        return 1 + max((self._nodes[q].depth for q in quantities if q in self._nodes), default=0)

    def _given(self, quantity: Quantity) -> QuestionNode:
        value = self._rng.randrange(MODULUS)
        return self._add(QuestionNode(quantity, "given", (), "", value, value, 1))

    def _relate(self, quantity: Quantity, terms: list[Quantity]) -> QuestionNode:
        """Define `quantity` by a sum, a difference or a copy of `terms`, maybe scaled."""
        self._rng.shuffle(terms)
        kind: Kind = "difference" if len(terms) == 2 and self._rng.random() < 0.4 else "sum"
        values = [self._value(term) for term in terms]
        value = values[0] - values[1] if kind == "difference" else sum(values)
        scale: Scale = self._rng.choice(("", "more", "less", "times"))
        number = self._rng.randrange(2, MODULUS) if scale else 0
        scaled = {"": value, "more": value + number, "less": value - number, "times": value * number}[scale]
        shown = tuple((term,) for term in terms)
        return self._add(QuestionNode(quantity, kind, shown, scale, number, scaled % MODULUS, self._depth(terms)))

    def _term(self, used: list[Quantity], limit: int, *, node_only: bool) -> Quantity:
        """One more quantity to rest on, of depth `limit` at most: known, new, a total, or not mentioned."""
        choice = self._rng.random()
        known = [
            q for q, node in self._nodes.items() if node.depth <= limit and q not in used and node.kind != "result"
        ]
        if choice < 0.4 and known:
            return self._rng.choice(known)
        if choice < 0.55 and limit >= 2:
            for owner in self._shuffled(dict.fromkeys(q.owner for q in self._nodes if q.owner)):
                total = self._small_total(owner, limit)
                if total is not None and total not in used:
                    return total
        if choice < 0.7 and not node_only:
            absent = self._unmentioned(used)
            if absent is not None:
                return absent
        return self._given(self._fresh()).quantity

    def _distract(self, goal: Quantity) -> None:
        """Add a sentence that the answer does not need, and that does not rest on the answer."""
        # A distractor that rests on the answer would lengthen the chain beyond the requested depth.
        above = self._dependents(goal)
        known = [q for q, node in self._nodes.items() if q not in above and node.kind != "result"]
        size = min(self._rng.choice((0, 1, 1, 2, 3)), self._most, len(known))
        if size:
            self._relate(self._fresh(), self._rng.sample(known, size))
        else:
            self._given(self._fresh())

    def _dependents(self, goal: Quantity) -> set[Quantity]:
        found = {goal}
        for quantity, node in self._nodes.items():
            if found.intersection(node.needs):
                found.add(quantity)
        return found

    # -- totals --------------------------------------------------------------------------------------------------

    def _chain_total(self, last: Quantity, step: int, *, exact: bool) -> Quantity | None:
        """Extend the chain by a total that counts `last`, of depth `step`; None if there is none."""
        if self._nodes[last].kind in ("total", "result") or last.owner in self._closed:
            return None
        layer = self._world.layer_of(last.item)
        if not exact and layer < 3 and self._rng.random() < 0.4:
            return self._deep_total(last.owner, layer + 1, step)
        here = [q for q in self._owned(last.owner) if self._nodes[q].depth < step]
        if len(here) != len(list(self._owned(last.owner))):
            return None
        room = [q for q in self._free() if q.owner == last.owner]
        if exact:
            if not len(here) <= self._most <= len(here) + len(room):
                return None
            for quantity in self._rng.sample(room, self._most - len(here)):
                self._given(quantity)
        elif len(here) > self._most:
            return None
        return self._total(last.owner, layer)

    def _small_total(self, owner: str, limit: int) -> Quantity | None:
        """A total over one to four items of an owner, of depth `limit` at most."""
        owned = list(self._owned(owner))
        if owner in self._closed or not 1 <= len(owned) <= min(4, self._most) or self._depth(owned) > limit:
            return None
        return self._total(owner, self._world.layer_of(owned[0].item))

    def _total(self, owner: str, layer: int) -> Quantity:
        """Add the total of an owner's items and close the owner."""
        terms = tuple((q,) for q in self._owned(owner))
        return self._count(Quantity(owner, self._world.categories[layer]), terms).quantity

    def _deep_total(self, owner: str, layer: int, step: int) -> Quantity | None:
        """A total two layers down: the items of an owner, times what each of them has of the next layer.

        A sentence that counts the category for one of the items is added too: it tells which layer the category is.
        """
        middle = list(self._owned(owner))
        totals = {q: Quantity(q.item, self._world.categories[layer]) for q in middle}
        filled = [q for q in middle if any(True for _ in self._owned(q.item))]
        if any(q.item in self._taken for q in middle):
            return None
        if not filled or len(middle) + len(filled) > self._most or len(filled) > 2:
            return None
        if any(q.item in self._closed and totals[q] not in self._nodes for q in filled):
            return None
        depths = [self._nodes[q].depth for q in middle]
        depths += [self._depth(self._owned(q.item)) for q in filled]
        if max(depths) != step - 1 or any(len(list(self._owned(q.item))) > self._most for q in filled):
            return None
        for q in filled:
            if totals[q] not in self._nodes:
                self._total(q.item, layer)
        # Totals count what their owners have now; a later item would change a value that is in use.
        self._closed.update(q.item for q in middle)
        found = self._count(Quantity(owner, self._world.categories[layer]), tuple((q, totals[q]) for q in middle))
        # Without such a sentence a reader could not tell which layer the category's name is of.
        self._relate(self._fresh(), [totals[self._rng.choice(filled)]])
        return found.quantity

    def _count(self, quantity: Quantity, terms: tuple[tuple[Quantity, ...], ...]) -> QuestionNode:
        value = 0
        for term in terms:
            product = 1
            for factor in term:
                product *= self._value(factor)
            value += product
        self._closed.add(quantity.owner)
        needs = [factor for term in terms for factor in term]
        return self._add(QuestionNode(quantity, "total", terms, "", 0, value % MODULUS, self._depth(needs)))

    # -- names ---------------------------------------------------------------------------------------------------

    def _owned(self, owner: str) -> Iterator[Quantity]:
        """The plain quantities of an owner so far."""
        return (q for q, node in self._nodes.items() if q.owner == owner and node.kind not in ("total", "result"))

    def _free(self) -> list[Quantity]:
        nodes, absent, closed, taken = self._nodes, self._absent, self._closed, self._taken
        return [
            quantity
            for owner, owned in self._world.owned
            if owner not in closed and owner not in taken
            for quantity in owned
            if quantity not in nodes and quantity not in absent
        ]

    def _fresh(self) -> Quantity:
        """A quantity that nothing mentions yet, often of an owner that is known, so that totals have parts."""
        free = self._free()
        if not free:
            raise Stuck("every quantity of the world is taken")
        # Both halves of a quantity: an item of one is the owner of others.
        names = set(chain.from_iterable(self._nodes))
        near = [q for q in free if q.owner in names]
        return self._rng.choice(near if near and self._rng.random() < 0.6 else free)

    def _unmentioned(self, used: list[Quantity]) -> Quantity | None:
        """A quantity that stays unmentioned, of an item that some sentence defines for another owner."""
        defined = {q.item for q, node in self._nodes.items() if node.kind not in ("total", "result")}
        free = [q for q in self._free() if q.item in defined and q not in used]
        if not free:
            return None
        quantity = self._rng.choice(free)
        self._absent.add(quantity)
        return quantity

    def _shuffled(self, names: Iterable[str]) -> list[str]:
        found = list(names)
        self._rng.shuffle(found)
        return found
