"""Words from which casts and questions of the conductor's training are drawn: names, descriptions, sentences, replies.

All of it is invented for this purpose. Names are put together at random, so that none can be learned by heart: what a
member is called has to be read from the prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from concertino_train.practice.words import words_of

_SYLLABLES = words_of(
    """ba be bo bri ca cor da del di dra el fa fer fi ga gor ha hel is ja jo ka kel ki la lin lo lu ma mar mi mo na nel
    no nu or pa pel pi qua ra rin ro ru sa sel si so ta tel ti to tra ul va vel vi vo wa wen wi xa yor za zen zi zo
    st sw ft dy ge py mi xt"""
)
_MODEL_WORDS = words_of(
    """small large mini max base pro light heavy fast deep turbo plus prime core flash nano grand basic expert old new
    first second alpha beta swift steady sage quick calm clever plain bright local remote cheap strong"""
)
_MODEL_ENDS = (
    "", "", "", "", "-{n}", "{n}", "-{n}b", "-v{n}", ".{n}", "_{n}", "-{n}x{n}B", "-v0.{n}", "-{n}.{n}", "-{n}0{n}",
)  # fmt: skip
SOLVER_NAMES = (
    "solve",
    "solver",
    "answer_one",
    "work_out",
    "ask",
    "delegate",
    "run_model",
    "expert",
    "worker",
    "agent",
)
TEXT_ARGUMENTS = ("subtask", "task", "question", "query", "problem", "prompt", "text", "input", "agent_input", "ask")
MODEL_ARGUMENTS = ("model", "model_id", "by", "who", "worker", "solver")

SOLVER_WORDS = (
    "Solve one subtask with one model ({models}); returns its steps and its answer.",
    "Answers one problem with a model of your choice.",
    "Gives one question to one model ({models}) and returns what it says.",
    "One subtask, one model; the reply holds the answer in \\boxed{{}}.",
    "Lets a model work on a problem; hand over all that it needs.",
    "Solves a problem in a context of its own, step by step.",
    "Asks a language model. The answer stands at the end of its reply.",
    "Works a subtask out; returns steps and result.",
)
AGENT_WORDS = (
    "Answers questions of every kind, {manner}.",
    "A language model that answers in full sentences, {manner}.",
    "Solves word problems; {manner}.",
    "Recorded answers of a model, {manner}.",
    "Invented for training: answers to sums, {manner}.",
    "General assistant, {manner}. It does not browse.",
    "A model for reasoning tasks: {manner}.",
)
MANNERS = (
    "cheap", "dear", "cheap and quick", "slow but careful", "small", "large", "of middle price", "short answers",
    "long answers", "often right", "sometimes wrong", "for easy questions", "for hard questions", "fast",
)  # fmt: skip
PRICES = ("$0.05/$0.2", "$0.1/$0.4", "$0.25/$1", "$0.5/$2", "$1/$3", "$2.5/$10", "$3/$15", "$5/$25", "$10/$30")

TOOLS: tuple[tuple[str, str, tuple[tuple[str, bool], ...]], ...] = (
    ("compute", "Evaluates an arithmetic expression.", (("expression", True),)),
    (
        "calculator",
        "Works out sums of whole numbers, if wanted with a modulus.",
        (("expression", True), ("mod", False)),
    ),
    ("list_facts", "Lists what a text states: quantities, formulas and notes.", (("text", True),)),
    ("merge", "Joins the answers of several solvers into one.", (("opinions", True),)),
    ("vote", "Counts votes.", (("votes", True),)),
    ("search", "Searches the web.", (("queries", True), ("top_k", False))),
    ("fetch", "Reads a page.", (("url", True),)),
    ("python", "Runs a Python script in a sandbox.", (("code", True),)),
    ("count_letters", "Counts how often a letter occurs in a text.", (("text", True), ("letter", True))),
    ("convert", "Converts units.", (("value", True), ("unit", True), ("to", True))),
    ("today", "Tells the date.", ()),
    ("summarise", "Makes a text shorter.", (("text", True), ("words", False))),
    ("translate", "Translates a text.", (("text", True), ("language", True))),
)
"""Members that are of no use here: name, description, arguments and whether they are needed."""

_NOUNS = words_of(
    """apples pens boxes rolls pages litres euros friends rows singers trains hours days metres tiles cards coins
    shelves books jars bottles seats tickets stamps bricks lamps chairs eggs birds boats maps shells plants"""
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PEOPLE = words_of("""Ada Ben Cleo Dan Eva Finn Gita Hugo Ina Jan Kofi Lea Max Nora Omar Pia Quin Ruth Sam Tess""")
_VERBS = ["has", "buys", "sells", "finds", "loses", "carries", "counts", "needs", "paints", "packs", "reads", "gives"]
_PROSE = (
    "It rained all day.", "The shop opens at noon.", "Nobody was surprised.", "The gate was left open.",
    "This was last week.", "The rest does not matter.", "A note says to check everything.", "The bus was late.",
)  # fmt: skip
_ASKS = (
    "How many {noun} are left?", "How many {noun} does {person} have?", "What is the total?",
    "How many {noun} are there in all?", "What is the value of {person}'s {noun}?", "How much does {person} pay?",
)  # fmt: skip
INTROS = (
    "The problems below do not depend on each other.",
    "Answer all of the following problems.",
    "There are several problems. Each stands alone.",
    "Here is some work for you:",
)
OUTROS = (
    "Give each answer in \\boxed{}, in the order of the problems.",
    "Put the answers into boxes.",
    "Thank you.",
)


def new_word(rng: Random, least: int = 2, most: int = 3) -> str:
    """A word that nobody has heard; now and then one that nobody can speak."""
    if rng.random() < 0.15:
        return "".join(rng.choice(_LETTERS) for _ in range(rng.randint(2, 6)))
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(least, most)))


def model_name(rng: Random) -> str:
    """What a model may be called."""
    word = rng.choice(_MODEL_WORDS) if rng.random() < 0.4 else new_word(rng)
    if rng.random() < 0.08:
        word = word.title()
    if rng.random() < 0.25:
        word = f"{word}{rng.choice('--_')}{rng.choice(_MODEL_WORDS)}"
    return word + rng.choice(_MODEL_ENDS).format(n=rng.choice((1, 2, 3, 4, 7, 8, 9, 12, 13, 30, 70)))


def problem_writer(rng: Random) -> Callable[[Random], str]:
    """Who writes the problems of one question: mostly short ones, now and then long ones of strange words."""
    return wordy_text if rng.random() < 0.1 else problem_text


def wordy_text(rng: Random) -> str:
    """A long problem, most of whose words nobody has heard."""
    return problem_text(rng, rng.randint(5, 14), strange=0.6)


def problem_text(rng: Random, count: int | None = None, strange: float = 0.15) -> str:
    """A word problem that nobody needs to understand.

    Args:
        rng: by which it is drawn.
        count: of its sentences before the question; few by default.
        strange: share of sentences whose words nobody has heard.
    """
    sentences = []
    for _ in range(count or rng.choice((1, 1, 1, 1, 2, 2, 3, 5))):
        if rng.random() < 0.1:
            sentences.append(rng.choice(_PROSE))
        elif rng.random() < strange:
            sentences.append(" ".join(new_word(rng) for _ in range(rng.randint(3, 9))).capitalize() + ".")
        elif rng.random() < 0.4:
            owner, other = new_word(rng).title(), new_word(rng).title()
            thing, number = rng.choice(_NOUNS).title(), rng.randrange(23)
            how = rng.choice(("{n}", "{n} more than each {o}'s {t}", "{n} times as much as each {o}'s {t}"))
            told = how.format(n=number, o=other, t=rng.choice(_NOUNS).title())
            sentences.append(f"The number of each {owner}'s {thing} equals {told}.")
        else:
            person, verb = rng.choice(_PEOPLE), rng.choice(_VERBS)
            sentences.append(f"{person} {verb} {rng.randrange(2, 400)} {rng.choice(_NOUNS)}.")
    asked = rng.choice(_ASKS).format(noun=rng.choice(_NOUNS), person=rng.choice(_PEOPLE))
    return " ".join([*sentences, asked])


def new_value(rng: Random) -> str:
    """An answer."""
    share = rng.random()
    if share < 0.7:
        return str(rng.randrange(100))
    if share < 0.95:
        return str(rng.randrange(100, 10_000))
    return f"-{rng.randrange(1, 100)}" if rng.random() < 0.5 else f"{rng.randrange(100)}.{rng.randrange(1, 10)}"


def _steps(rng: Random) -> str:
    """Sums on the way to an answer, which are not it."""
    lines, style = [], rng.randrange(4)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4))):
        a, b, found = rng.randrange(2, 100), rng.randrange(2, 100), rng.randrange(2, 400)
        noun = rng.choice(_NOUNS)
        sign = rng.choice("+-*/")
        lines.append(
            (
                f"{a} {sign} {b} = {found} {noun}.",
                f"{a} {sign} {b} = {found} {noun}.",
                f"{rng.choice(_PEOPLE)} {rng.choice(_VERBS)} {a}{sign}{b}=<<{a}{sign}{b}={found}>>{found} {noun}.",
                f"{rng.choice(_PEOPLE)} {rng.choice(_VERBS)} {a} {noun} {sign} {b} = ${found}.",
            )[style]
        )
    return " ".join(lines)


def _grouped(rng: Random, value: str) -> str:
    """A number as prose writes it: with commas, where it has thousands and one is minded to."""
    return f"{int(value):,}" if value.isdigit() and rng.random() < 0.5 else value


def _prose(rng: Random, value: str) -> str:
    """A last sentence that states the answer and no other number behind it."""
    person, noun, told = rng.choice(_PEOPLE), rng.choice(_NOUNS), _grouped(rng, value)
    a, b = rng.randrange(2, 300), rng.randrange(2, 300)
    sentence = rng.choice((
        f"So {person} has {told} {noun}.", f"In all there are {told} {noun}.", f"Therefore {person} pays ${told}.",
        f"Then {a} + {b} = {told} {noun} are left.", f"{person} {rng.choice(_VERBS)} {a} - {b} = ${told} in all.",
        f"That makes <<{a}*{b}={told}>>{told} {noun}.", f"The total is {told}",
    ))  # fmt: skip
    return rng.choice((" ", " ", "\n", "\n\n")) + sentence


def reply_text(rng: Random, value: str) -> str:
    """What a model may answer, in one of several forms; the value stands in it as the answer."""
    form, steps = rng.randrange(12), _steps(rng)
    if form < 3:
        worked = "\n".join(f"- {line}" for line in steps.split(". "))
        return f"<reasoning>\n{worked}\n</reasoning>\n<answer>\n\\boxed{{{value}}}\n</answer>"
    if form < 6:
        return steps + _prose(rng, value)
    return (
        f"{steps} The answer is {value}.",
        f"{steps} So the answer is \\boxed{{{value}}}.",
        f"{steps}\n#### {value}" + rng.choice(("", "\n\n")),
        f"{steps}\n{rng.choice(('A', 'A', 'Answer'))}: {_grouped(rng, value)}",
        value,
        f"\\boxed{{{value}}}",
    )[form - 6]


def refusal_text(rng: Random) -> str:
    """What a model answers that cannot."""
    why = rng.choice(("it is beyond me", "I cannot answer this", "I do not know", "something is missing"))
    return rng.choice(
        (f"<reasoning>\n{why}: {_steps(rng)}\n</reasoning>\n<answer>\nunknown\n</answer>", f"{why}. unknown", "unknown")
    )
