"""How a graph is told: sentences, questions, prose to hide a number in, and false notes.

The invariant: prose states nothing. It holds no digit, no "equals" and no "number of", so that a reader may skip it;
and a false note always says "verify". The rules are told in words for the same reason.
"""

from __future__ import annotations

from random import Random

from concertino_toy.problems import Quantity

from .graph import QuestionGraph, QuestionNode

# The published rows leave these rules out, and without them no answer can be right.
RULES = (
    "Work in whole numbers modulo twenty-three. What no sentence mentions is zero. The name of a whole category stands "
    "for the total over those of its members that the owner has. A claim that you are asked to verify may be false; "
    "rely on the sentences alone."
)
"""What a solver must know; it opens every question unless it is left out."""

INDEPENDENT = "Each problem stands on its own; take nothing from one into another."
CHAINED = "A later problem may use the result of an earlier one, written in square brackets with the word answer."
ANSWER_ONE = "Give the result in one \\boxed{}."
ANSWER_MANY = "Give one \\boxed{} for each problem, in the order of the problems, and no other box."

_PROSE = (
    "A cart rattled over the cobbles before sunrise.",
    "The baker's cat slept through the whole affair.",
    "Fog lay on the meadow until the bells rang.",
    "Somebody whistled a tune that nobody could place.",
    "The ferry came late and left later.",
    "A letter without a stamp lay on the bench.",
    "The old clock was wrong twice a day.",
    "Two gulls fought over a crust and lost it.",
    "The lamplighter had a cold and stayed at home.",
    "A painter asked for directions and forgot them.",
    "Wet leaves stuck to every boot in the street.",
    "The kettle sang, and the radio did not.",
    "Children drew a map of a country that does not exist.",
    "The postman swore that the hill grew every winter.",
    "A violin case stood open, full of apples.",
    "The tide took the sandcastle without a word.",
)
_FIRST = ("amber", "brisk", "crooked", "dusty", "early", "faint", "gentle", "hollow", "icy", "jolly", "keen", "lofty")
_SECOND = ("anchor", "badger", "candle", "dagger", "ember", "falcon", "goblet", "harbour", "jacket", "kettle", "otter")
_NOTES = (
    "Somebody adds, and asks you to verify it: {claim}.",
    "A note in the margin, which you should verify first, says that {claim}.",
    "Please verify the following before you use it: {claim}.",
)


def sentence(node: QuestionNode) -> str:
    """The sentence that defines a node."""
    return f"The number of each {node.quantity} equals {_right_side(node)}."


def statements(graph: QuestionGraph, rng: Random) -> str:
    """All sentences of a problem, shuffled. Totals and results of other problems have none."""
    told = [sentence(node) for node in graph.nodes.values() if node.kind not in ("total", "result")]
    rng.shuffle(told)
    return " ".join(told)


def question(goal: Quantity, rng: Random) -> str:
    """The question for one quantity."""
    return rng.choice((f"How many {goal.item} does {goal.owner} have?", f"What is the value of {goal}?"))


def named(goal: Quantity) -> str:
    """One quantity in a list of what is asked, or in a claim."""
    return f"the number of {goal.item} that {goal.owner} has"


def needle(word: str) -> str:
    """One hidden number in a list of what is asked, or in a claim."""
    return f"the magic number for {word}"


def identify(asked: list[str]) -> str:
    """The question for several things at once."""
    listed = f"{', '.join(asked[:-1])} and {asked[-1]}" if len(asked) > 1 else asked[0]
    return f"From the passage, identify {listed}, in order, each in a \\boxed{{}} of its own."


def haystack(word: str, number: int, rng: Random) -> str:
    """Prose with one number hidden in it."""
    prose = [rng.choice(_PROSE) for _ in range(rng.randint(12, 24))]
    # Never at the beginning, where a reader that only skims would find it.
    prose.insert(rng.randrange(2, len(prose)), f"The magic number for {word} is {number}.")
    return " ".join(prose)


def note(thing: str, value: int, rng: Random) -> str:
    """A false claim about what `named` or `needle` names."""
    return rng.choice(_NOTES).format(claim=f"{thing} is {value}")


def words(count: int, rng: Random) -> list[str]:
    """Different made-up words to hide numbers under."""
    return rng.sample([f"{first}-{second}" for first in _FIRST for second in _SECOND], count)


def _right_side(node: QuestionNode) -> str:
    if node.kind == "given":
        return str(node.number)
    shown = [f"each {quantity}" for (quantity,) in node.terms]
    if len(shown) == 1:
        body = shown[0]
    else:
        body = f"the {node.kind} of {', '.join(shown[:-1])} and {shown[-1]}"
    scales = {"": "", "more": "more than ", "less": "less than ", "times": "times as much as "}
    return f"{node.number} {scales[node.scale]}{body}" if node.scale else body
