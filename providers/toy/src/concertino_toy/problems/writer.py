"""A seeded writer of questions in the grammar, with their answers.

It works forwards: a value is known when its sentence is written, so the answers do not come from the
solver, and the two check each other. A chain of `depth` sentences leads to what is asked; each rests on
up to `breadth` quantities. Once a total over an owner was used, that owner is *closed*: no later
sentence may give it another item.
"""

from __future__ import annotations

from random import Random

from .grammar import MODULUS, result_mark
from .ontology import WORLDS, Quantity

_PROSE = (
    "Rain drummed on the roof all morning.",
    "Somebody had left the gate open again.",
    "The kettle was still warm.",
    "A dog barked twice and then thought better of it.",
    "Nobody remembered who had drawn the old plan.",
)
_WORDS = (
    "amber-lantern",
    "quiet-harvest",
    "paper-comet",
    "velvet-anvil",
    "crooked-lighthouse",
    "winter-orchard",
)


def make_question(
    rng: Random,
    parts: int = 4,
    *,
    depth: int = 3,
    breadth: int = 2,
    lure: bool = False,
    chained: bool = False,
    needle: bool = False,
) -> tuple[str, tuple[int, ...]]:
    """Write a question.

    Args:
        rng: all choices come from it.
        parts: how many problems, 1 to 12.
        depth: sentences on the chain to the asked quantity, 1 to 12.
        breadth: the most quantities that one sentence rests on, 1 to 8.
        lure: the first problem ends with a false claim about a quantity on its chain.
        chained: each problem uses the result of the one before, as [answer1].
        needle: each problem also hides a seven-digit number in prose, and asks for it.

    Returns:
        The text, and the answers in order: one per problem, two with `needle`.

    Raises:
        ValueError: a size is out of range.
    """
    for name, size, most in (("parts", parts, 12), ("depth", depth, 12), ("breadth", breadth, 8)):
        if not 1 <= size <= most:
            raise ValueError(f"{name}={size}: expected 1 to {most}")
    texts: list[str] = []
    answers: list[int] = []
    result: tuple[Quantity, int] | None = None
    for number in range(1, parts + 1):
        draft = _Draft(rng, breadth, (str(result_mark(number - 1)), *result) if result else None)
        goal = draft.chain(depth)
        if chained:
            result = goal, draft.values[goal]
        else:
            draft.distract()
            goal = draft.maybe_total(goal)
        text, found = draft.text(goal, lure=lure and number == 1, needle=needle)
        answers += found
        texts.append(text if parts == 1 else f"Problem {number}: {text}")
    intro = "A later problem may use an earlier result, written in square brackets."
    if parts > 1:
        texts.insert(0, intro if chained else "The problems below do not depend on each other.")
    return "\n\n".join(texts), tuple(answers)


class _Draft:
    """One problem while it is written."""

    def __init__(self, rng: Random, breadth: int, result: tuple[str, Quantity, int] | None) -> None:
        self._rng, self._breadth = rng, breadth
        self._mark = result[0] if result else ""
        self._known: Quantity | None = result[1] if result else None
        # A result of another problem is about an owner, so the next world has to know that owner.
        fitting = [w for w in WORLDS if result is None or any(result[1].owner in items for items in w.layers.values())]
        self._world = rng.choice(fitting)
        self.values: dict[Quantity, int] = {result[1]: result[2]} if result else {}
        self._lines: list[str] = []
        self._chain: list[Quantity] = []
        self._closed: set[str] = set()
        self._absent: set[Quantity] = set()

    def chain(self, depth: int) -> Quantity:
        """Write `depth` sentences, each resting on the one before; the last one's quantity."""
        if self._known:
            self._chain.append(self._known)
        for _ in range(depth):
            quantity = self._fresh()
            if self._chain:
                self._derive(quantity, self._chain[-1])
            else:
                self._constant(quantity)
            self._chain.append(quantity)
        return self._chain[-1]

    def distract(self) -> None:
        """Write one or two sentences that the answer does not need."""
        for _ in range(self._rng.randint(1, 2)):
            quantity = self._fresh()
            self._derive(quantity, self._rng.choice(list(self.values)))

    def maybe_total(self, goal: Quantity) -> Quantity:
        """Now and then, ask for the total of the owner's items instead of one of them."""
        if self._rng.random() < 0.7:
            return goal
        total = Quantity(goal.owner, self._world.categories[self._world.layer_of(goal.item)])
        self.values[total] = self._total(total)
        return total

    def text(self, goal: Quantity, *, lure: bool, needle: bool) -> tuple[str, list[int]]:
        """The problem's text and its answers."""
        answers = [self.values[goal]]
        self._rng.shuffle(self._lines)
        if needle:
            word, number = self._rng.choice(_WORDS), self._rng.randrange(10**6, 10**7)
            answers.append(number)
            prose = [self._rng.choice(_PROSE) for _ in range(6)]
            prose.insert(self._rng.randrange(6), f"The magic number for {word} is {number}.")
            self._lines.append("\n\n" + " ".join(prose))
            asked = f"the number of {goal.item} that {goal.owner} has and the magic number for {word}"
            question = f"From the passage, identify {asked}."
        else:
            forms = (f"How many {goal.item} does {goal.owner} have?", f"What is the value of {goal}?")
            question = self._rng.choice(forms)
        if lure:
            about = self._rng.choice([q for q in self._chain if q != self._known])
            wrong = (self.values[about] + self._rng.randrange(1, MODULUS)) % MODULUS
            claim = f"the number of {about.item} that {about.owner} has is {wrong}"
            self._lines.append(f"Note: please verify this before you use it: {claim}.")
        return " ".join([*self._lines, question]), answers

    def _fresh(self) -> Quantity:
        free = [q for owner, owned in self._world.owned if owner not in self._closed for q in owned]
        return self._rng.choice([q for q in free if q not in self.values and q not in self._absent])

    def _constant(self, quantity: Quantity) -> None:
        self._state(quantity, str(value := self._rng.randrange(MODULUS)), value)

    def _derive(self, quantity: Quantity, must: Quantity) -> None:
        """Write a sentence that rests on `must` and on up to `breadth - 1` others."""
        self.values[quantity] = 0  # reserved, so that no other term takes its name
        terms = [must, *(self._term(quantity) for _ in range(self._rng.randint(0, self._breadth - 1)))]
        self._rng.shuffle(terms)
        shown, values = [f"each {self._show(term)}" for term in terms], [self.values.get(t, 0) for t in terms]
        if len(terms) == 1:
            text, value = shown[0], values[0]
        elif len(terms) == 2 and self._rng.random() < 0.5:
            text, value = f"the difference of {shown[0]} and {shown[1]}", values[0] - values[1]
        else:
            text, value = f"the sum of {', '.join(shown[:-1])} and {shown[-1]}", sum(values)
        number = self._rng.randrange(2, MODULUS)
        scaled = {
            f"{number} more than {text}": value + number,
            f"{number} less than {text}": value - number,
            f"{number} times as much as {text}": value * number,
            text: value,
        }
        text = self._rng.choice(list(scaled))
        self._state(quantity, text, scaled[text] % MODULUS)

    def _term(self, quantity: Quantity) -> Quantity:
        """Another quantity to rest on: known, new, a total, or one that no sentence mentions."""
        choice = self._rng.random()
        others = [q for q in self.values if q != quantity and q.item not in self._world.categories]
        if choice < 0.4 and others:
            return self._rng.choice(others)
        if choice < 0.55:
            owners = {q.owner for q in others} - {quantity.owner}
            closable = sorted(owner for owner in owners if not self._holds(owner, quantity))
            if closable:
                return self._pick_total(self._rng.choice(closable))
        fresh = self._fresh()
        if choice < 0.65:
            self._absent.add(fresh)
        else:
            self._constant(fresh)
        return fresh

    def _holds(self, owner: str, quantity: Quantity) -> bool:
        """Whether `quantity` would count in a total over `owner`, directly or one layer down."""
        return quantity.owner == owner or Quantity(owner, quantity.owner) in self.values

    def _pick_total(self, owner: str) -> Quantity:
        layer = self._world.layer_of(owner)
        category = self._rng.choice(self._world.categories[layer + 1 : layer + 3])
        total = Quantity(owner, category)
        self.values[total] = self._total(total)
        self._closed |= {owner, *(q.item for q in self.values if q.owner == owner)}
        return total

    def _total(self, total: Quantity) -> int:
        categories = self._world.categories
        value = 0
        for quantity in [q for q in self.values if q.owner == total.owner and q.item not in categories]:
            kind = categories[self._world.layer_of(quantity.item)]
            if kind == total.item:
                value += self.values[quantity]
            elif categories.index(kind) < categories.index(total.item):
                value += self.values[quantity] * self._total(Quantity(quantity.item, total.item))
        return value % MODULUS

    def _show(self, quantity: Quantity) -> str:
        return self._mark if quantity == self._known else str(quantity)

    def _state(self, quantity: Quantity, text: str, value: int) -> None:
        self.values[quantity] = value
        self._lines.append(f"The number of each {self._show(quantity)} equals {text}.")
