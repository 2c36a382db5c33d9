"""Words from which the exercises are drawn: names, descriptions, sentences, replies.

Most of it is invented for this purpose; the rest is English that means nothing (`english`). Names are put together at
random, so that none can be learned by heart: what a member is called has to be read from the prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from concertino_toy.practice.words import words_of

from .english import phrase, sentence

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
    "",
    "",
    "",
    "",
    "-{n}",
    "{n}",
    "-{n}b",
    "-v{n}",
    ".{n}",
    "_{n}",
    "-{n}x{n}B",
    "-v0.{n}",
    "-{n}.{n}",
    "-{n}0{n}",
)
SOLVER_NAMES = words_of("""solve solver answer_one work_out ask delegate run_model expert worker agent""")
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
    "{name}, {manner}.",
    "The {word0} model {name} of {word1}/{word2}, in {number} languages; {manner}.",
    "What {word0}/{name} said of {number} {word1} in {word2}.json.",
    "{word0} {word1} {number}: {manner}.",
)
MANNERS = (
    "cheap",
    "dear",
    "cheap and quick",
    "slow but careful",
    "small",
    "large",
    "of middle price",
    "short answers",
    "long answers",
    "often right",
    "sometimes wrong",
    "for easy questions",
    "for hard questions",
    "fast",
)
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
_VERBS = words_of("""has buys sells finds loses carries counts needs paints packs reads gives""")
_PROSE = (
    "It rained all day.",
    "The shop opens at noon.",
    "Nobody was surprised.",
    "The gate was left open.",
    "This was last week.",
    "The rest does not matter.",
    "A note says to check everything.",
    "The bus was late.",
)
_ASKS = (
    "How many {noun} are left?",
    "How many {noun} does {person} have?",
    "What is the total?",
    "How many {noun} are there in all?",
    "What is the value of {person}'s {noun}?",
    "How much does {person} pay?",
)
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
    """A made-up word; now and then one that cannot be pronounced."""
    if rng.random() < 0.15:
        return "".join(rng.choice(_LETTERS) for _ in range(rng.randint(2, 6)))
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(least, most)))


def model_names(rng: Random, count: int) -> list[str]:
    """Names for at most so many models of one exercise: each of its own kind, or some of one family and alike."""
    kin = rng.randint(2, count) if count > 1 and rng.random() < 0.5 else 0
    names = [*_family(rng, kin), *(model_name(rng) for _ in range(count - kin))]
    rng.shuffle(names)
    return list(dict.fromkeys(names))


def model_name(rng: Random) -> str:
    """What a model may be called."""
    word = rng.choice(_MODEL_WORDS) if rng.random() < 0.4 else new_word(rng)
    if rng.random() < 0.15:
        word = word.title()
    if rng.random() < 0.15:
        parts = rng.choice((2, 2, 3))
        more = (rng.choice((_size(rng), _manner(rng), str(rng.randrange(10_000)))) for _ in range(parts))
        return "-".join([word, *more])
    if rng.random() < 0.25:
        word = f"{word}{rng.choice('--_')}{rng.choice(_MODEL_WORDS)}"
    return word + rng.choice(_MODEL_ENDS).format(n=rng.choice((1, 2, 3, 4, 7, 8, 9, 12, 13, 30, 70)))


def _family(rng: Random, count: int) -> list[str]:
    """Names that begin alike, and often end alike too: one stem, in versions, sizes and manners."""
    word = new_word(rng, 1, 2)
    stems = [word, f"{word}{rng.randrange(1, 10)}", f"{word}-{rng.randrange(1, 10)}", f"{word}{rng.randrange(1, 10)}"]
    stems = stems[: rng.choice((1, 1, 2, 3, 4))] if rng.random() < 0.5 else [rng.choice(stems)]
    sizes, manners = [_size(rng) for _ in range(3)], [_manner(rng) for _ in range(3)]
    forms = ["{stem}-{size}_{manner}", "{stem}-{size}-{manner}", "{stem}_{manner}", "{stem}-{size}"]
    forms = forms if rng.random() < 0.3 else [rng.choice(forms)]
    return [
        rng.choice(forms).format(stem=rng.choice(stems), size=rng.choice(sizes), manner=rng.choice(manners))
        for _ in range(count)
    ]


def about_agent(rng: Random, name: str) -> str:
    """What an agent says of itself, its name now and then; at times numbers and names that mean nothing here."""
    told = rng.choice(AGENT_WORDS)
    words = {f"word{place}": new_word(rng) for place in range(3)}
    return told.format(name=name, manner=rng.choice(MANNERS), number=rng.randrange(2, 900), **words)


def _size(rng: Random) -> str:
    number = rng.choice((1, 2, 3, 6, 7, 8, 12, 13, 14, 30, 32, 70, 72, 120, 180, 235, 405))
    return rng.choice(("{n}b", "{n}b", "{n}B", "{n}x{n}B", "v{n}", "v0.{n}", "{n}")).format(n=number)


def _manner(rng: Random) -> str:
    """How a model was made, or what it is for; mostly in made-up words."""
    return rng.choice(_MODEL_WORDS) if rng.random() < 0.4 else new_word(rng, 2, 4)


def problem_writer(rng: Random) -> Callable[[Random], str]:
    """Who writes the problems of one question: mostly short ones, now and then others."""
    return rng.choices((problem_text, wordy_text, english_text), (0.65, 0.15, 0.2))[0]


def wordy_text(rng: Random) -> str:
    """A long problem, most of whose words are made up."""
    return problem_text(rng, rng.randint(5, 14), strange=0.6)


def english_text(rng: Random) -> str:
    """A problem in English words."""
    told = (sentence(rng, _amounts(rng)) for _ in range(rng.choice((1, 2, 2, 3, 4, 5))))
    return " ".join([*told, f"How {phrase(rng, 3, 12)}?"])


def problem_text(rng: Random, count: int | None = None, strange: float = 0.15) -> str:
    """A word problem without a meaning.

    Args:
        rng: by which it is drawn.
        count: of its sentences before the question; few by default.
        strange: share of sentences of made-up words.
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
            more = f" {_tail(rng)}" if rng.random() < 0.3 else ""
            sentences.append(f"{person} {verb} {rng.choice(('', '', '$'))}{_amount(rng)} {rng.choice(_NOUNS)}{more}.")
    asked = rng.choice(_ASKS).format(noun=rng.choice(_NOUNS), person=rng.choice(_PEOPLE))
    return " ".join([*sentences, asked])


def new_value(rng: Random) -> str:
    """An answer."""
    share = rng.random()
    if share < 0.5:
        return str(rng.randrange(100))
    if share < 0.75:
        return str(rng.randrange(100, 10_000))
    if share < 0.9:
        return str(rng.randrange(1, 1000) * rng.choice((10, 100, 500, 1000)))
    return f"-{rng.randrange(1, 100)}" if rng.random() < 0.2 else _with_cents(rng, 1000)


def _with_cents(rng: Random, below: int) -> str:
    return f"{rng.randrange(below)}.{rng.choice(('5', '25', '50', '75', f'{rng.randrange(1, 100):02}'))}"


def _amount(rng: Random) -> str:
    """An intermediate number, as it is written."""
    share = rng.random()
    if share < 0.65:
        return str(rng.randrange(2, 100))
    if share < 0.85:
        return _grouped(rng, str(rng.randrange(100, 100_000)))
    return rng.choice((f"1/{rng.randrange(2, 9)}", f"{rng.randrange(5, 200)}%", _with_cents(rng, 100)))


def _step(rng: Random, style: int) -> str:
    """One sum, in one of several manners of writing."""
    a, b, found = _amount(rng), _amount(rng), _amount(rng)
    sign, noun, person, verb = rng.choice("+-*/x"), rng.choice(_NOUNS), rng.choice(_PEOPLE), rng.choice(_VERBS)
    return (
        f"{a} {sign} {b} = {found} {noun}.",
        f"{person} {verb} {a}{sign}{b}=<<{a}{sign}{b}={found}>>{found} {noun}.",
        f"{person} {verb} {a} {noun} {sign} {b} = ${found}.",
        f"The {noun} of {new_word(rng).title()} are {a} {sign} {b} = {found}.",
        f"Since {person} {verb} {a} {noun} each {rng.choice(('day', 'week', 'time'))}, {rng.choice(_PEOPLE)} "
        f"{rng.choice(_VERBS)} {b} {sign} {found} of them.",
        f"First, {person} {verb} {a} {noun}: {b} {sign} {a} = {found}",
    )[style]


def _amounts(rng: Random) -> list[str]:
    """The numbers of a sentence, as prose writes them; a sum counts as one."""
    return [_written(rng, _amount(rng)) for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3)))]


def _written(rng: Random, number: str) -> str:
    """A number that may be money, a product, an end of a sum, or emphasised."""
    a, b, sign = _amount(rng), _amount(rng), rng.choice("+-*/x")
    return rng.choice(
        (
            number,
            number,
            number,
            number,
            f"${number}",
            f"${number}",
            f"= {number}",
            f"{a} {sign} {b} = {number}",
            f"${a} {sign} ${b} = ${number}",
            f"{a}{sign}{b}=<<{a}{sign}{b}={number}>>{number}",
            f"**{number}**",
            f"\\( {a} {sign} {b} = {number} \\)",
            f"\\[ {a} {sign} {b} = {number} \\]",
            f"\\({number}\\)",
            f"{a} ({phrase(rng, 1, 3)}) {sign} {b} ({phrase(rng, 1, 3)}) = {number}",
        )
    )


def _steps(rng: Random, *, long: bool = False) -> str:
    """Intermediate sums, none of which is the answer."""
    style, kind = rng.randrange(6), rng.choice(("one", "one", "mixed", "english", "english"))
    count = rng.randint(4, 11) if long else rng.choice((1, 1, 1, 2, 2, 3, 4, 7))
    lines = [
        sentence(rng, _amounts(rng))
        if kind == "english"
        else _step(rng, rng.randrange(6) if kind == "mixed" else style)
        for _ in range(count)
    ]
    return rng.choice((" ", " ", "\n", "\n\n")).join(lines)


def _grouped(rng: Random, value: str) -> str:
    """A number as prose writes it: half of the time with commas between thousands."""
    return f"{int(value):,}" if value.isdigit() and rng.random() < 0.5 else value


def _prose(rng: Random, value: str) -> str:
    """A last sentence that states the answer and no other number behind it."""
    return rng.choice((" ", " ", "\n", "\n\n")) + _last(rng, value) + rng.choice((".", ".", ".", "", ".\n"))


def _last(rng: Random, value: str) -> str:
    if rng.random() < 0.5:
        way = rng.choice(("So", "Therefore,", "Thus,", "In total,", "That means", "Finally,", "", "", ""))
        tail = phrase(rng, 1, 5) if rng.random() < 0.7 else ""
        tail = tail if len(tail) < 30 else ""  # the end of a long reply, which is all that is shown, has the answer
        parts = [way, *_amounts(rng)[:1], phrase(rng, 1, 12), _written(rng, _grouped(rng, value)), tail]
        return " ".join(filter(None, parts))
    person, noun, told = rng.choice(_PEOPLE), rng.choice(_NOUNS), _grouped(rng, value)
    a, b, sign = _amount(rng), _amount(rng), rng.choice("+-*/x")
    verb, way = rng.choice(_VERBS), rng.choice(("So", "Therefore,", "Thus,", "In total,", "That means", "Finally,"))
    return rng.choice(
        (
            f"{way} {person} has {told} {noun}",
            f"In all there are {told} {noun}",
            f"{way} {person} pays ${told}",
            f"Then {a} {sign} {b} = {told} {noun} are left",
            f"{person} {verb} {a} {sign} {b} = ${told} in all",
            f"That makes <<{a}{sign}{b}={told}>>{told} {noun}",
            f"The total is {told}",
            f"{a} {sign} {b} = {told}",
            f"{way} {person} {verb} {a} {noun} {sign} {b} {noun} = {told} {noun}",
            f"{way} the {noun} that {person} {verb} are ${a} ({new_word(rng)}) {sign} ${b} ({new_word(rng)}) = ${told}",
            f"{way} {person} {verb} {told} {noun} {_tail(rng)}",
            f"{way} it takes {person} {told} {noun}",
            f"{person} {verb} ${told} {_tail(rng)}",
        )
    )


def _tail(rng: Random) -> str:
    """How a sentence may end without a number."""
    return rng.choice(
        (
            f"by the end of the {new_word(rng)}",
            "in all",
            f"for the {new_word(rng)} of {rng.choice(_PEOPLE)}",
            f"before {rng.choice(_PEOPLE)} {rng.choice(_VERBS)} the {rng.choice(_NOUNS)}",
            "each week",
            "a day",
            f"more than {rng.choice(_PEOPLE)}",
            f"{new_word(rng)} {new_word(rng)} {rng.choice(_NOUNS)}",
        )
    )


def reply_text(rng: Random, value: str, *, long: bool = False) -> str:
    """What a model may answer, in one of several forms; the value stands in it as the answer."""
    if not long and rng.random() < 0.15:
        return _short_reply(rng, _grouped(rng, value))
    form, steps = rng.randrange(12 if long else 14), _steps(rng, long=long)
    if form < 3:
        worked = "\n".join(f"- {line}" for line in steps.split(". "))
        return f"<reasoning>\n{worked}\n</reasoning>\n<answer>\n\\boxed{{{value}}}\n</answer>"
    if form < 8:
        return steps + _prose(rng, value)
    return (
        f"{steps} The answer is {value}.",
        f"{steps} So the answer is \\boxed{{{value}}}.",
        f"{steps}\n#### {value}" + rng.choice(("", "\n\n")),
        f"{steps}\n{rng.choice(('A', 'A', 'Answer'))}: {_grouped(rng, value)}",
        value,
        f"\\boxed{{{value}}}",
    )[form - 8]


def _short_reply(rng: Random, told: str) -> str:
    """The answer in a few words, and nothing worked out."""
    noun = rng.choice(_NOUNS)
    text = rng.choice(
        (
            f"It comes to {told}",
            f"I get {told}",
            f"It is {told}",
            f"That leaves {told} {noun}",
            f"I make it {told} {noun}",
            f"My result: {told}",
            f"{told} {noun}",
            f"After some thought, {told} {noun}",
            f"{phrase(rng, 1, 6).capitalize()}, {told} {noun} {_tail(rng)}",
            f"{phrase(rng, 1, 8).capitalize()} {told}",
            f"{rng.choice(_PEOPLE)} {rng.choice(_VERBS)} {told}",
            f"Result = {told}",
        )
    )
    return text + rng.choice((".", ".", "", "!", ".\n"))


def refusal_text(rng: Random) -> str:
    """What a model answers that cannot."""
    why = rng.choice(
        (
            "it is beyond me",
            "I cannot answer this",
            "I do not know",
            "something is missing",
            "this is unknown to me",
            f"the {rng.choice(_NOUNS)} of {rng.choice(_PEOPLE)} are missing",
            "I cannot tell",
            "unknown",
        )
    )
    steps = _steps(rng)
    return rng.choice(
        (
            f"<reasoning>\n{why}: {steps}\n</reasoning>\n<answer>\nunknown\n</answer>",
            f"{why}. unknown",
            "unknown",
            f"{why}.",
            f"{steps} Then {why}.",
            f"{steps}\n{why}",
            f"{why}: {steps}",
        )
    )
