"""Sentences put together from a quantity and what it is a quantity of: hardly any answer held up; complaints are rare.

"Hardly any answer was wrong" praises and "hardly any answer was right" blames, in nearly the same words. An author
writes a few hundred sentences, which are too few to learn this from. So every part here is drawn on its own, the good
and the bad half alike, and a reader has to put them together.

Invariant: a sentence means the level that is nearest to the share that it was drawn for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

from .sentences import LEVELS

Texts = tuple[str, ...]
ByLevel = Mapping[float, Texts]

_SINGULAR = ("answer", "reply", "response", "result", "solution", "statement", "claim", "suggestion", "attempt", "job")
_PLURAL = ("answers", "replies", "responses", "results", "solutions", "statements", "claims", "suggestions", "jobs")
_TESTS = ("tests", "exams", "quizzes", "papers", "trials", "mock exams")

_EVERY: ByLevel = {
    0.95: (
        *("almost every", "virtually every", "practically every", "nearly every", "just about every", "every single"),
        *("close to every", "each and every", "every", "well-nigh every"),
    ),
    0.75: ("most every", "three in four times the", "more often than not the", "as a rule the", "usually the"),
    0.5: ("every second", "every other", "one in two times the", "half the time the", "as often as not the"),
    0.25: ("only every fourth", "one in four times the", "now and then one", "only here and there one"),
    0.05: (
        *("hardly any", "scarcely any", "almost no", "practically no", "virtually no", "not a single", "no", "not one"),
        *("barely one", "hardly a", "next to no", "scarcely a single", "only one freak"),
    ),
}
_MANY: ByLevel = {
    0.95: (
        *("almost all of its", "nearly all of its", "practically all of its", "virtually all of its", "all of its"),
        *("all but a handful of its", "the overwhelming majority of its", "just about all of its"),
        *("all but one of its",),
        *("with very few exceptions, its", "with hardly an exception, its", "save a rare few, its", "one and all, its"),
    ),
    0.75: (
        *("most of its", "the greater part of its", "a clear majority of its", "the bulk of its"),
        *("many more than half of its",),
        *("three quarters of its", "a comfortable majority of its", "the better part of its", "well over half of its"),
        *("most, though by no means all, of its", "the larger share of its", "two thirds and more of its"),
    ),
    0.5: (
        *("about half of its", "one half of its", "roughly half of its", "half of its", "close to half of its"),
        *("as many as not of its", "an even half of its", "some half of its", "half, and only half, of its"),
    ),
    0.25: (
        *("a minority of its", "a quarter of its", "fewer than half of its", "some, but not many, of its"),
        *("only some of its",),
        *("no more than a quarter of its", "the smaller part of its", "a modest share of its"),
        *("well under half of its",),
        *("a small share of its", "only a few of its", "not many of its"),
    ),
    0.05: (
        *("hardly any of its", "scarcely any of its", "next to none of its", "almost none of its", "none of its"),
        *("practically none of its", "a mere handful of its", "just one or two of its", "precious few of its"),
        *("virtually none of its", "barely any of its", "at most one or two of its", "not one of its"),
    ),
}
_HELD: Texts = (
    *("{was} right", "{was} correct", "held up", "stood up to a check", "survived the review", "passed", "{was} sound"),
    *("could be used unchanged", "{was} free of mistakes", "{was} without a fault"),
    *("needed no correction", "got a tick"),
    *("came through unmarked", "hit the mark", "{was} confirmed", "{was} worth keeping", "{was} accepted at once"),
    *("satisfied whoever asked", "agreed with the book", "pleased the checkers", "went out unchanged", "proved true"),
    *("could be trusted", "{was} spot on", "met the standard", "did the trick", "turned out well", "{was} error-free"),
    *("could be left standing", "earned a nod", "worked the first time", "{was} as good as the expert's"),
    *("{was} upheld",),
    *("could be signed", "{was} flawless", "helped", "solved the problem", "told the truth", "{was} marked correct"),
    *("deserved the trust", "stood the test of time", "{was} valid", "{was} accurate", "gave us what we needed"),
)
_FAILED: Texts = (
    *("{was} wrong", "{was} false", "had a mistake", "fell apart under a check", "failed the review"),
    *("missed the point",),
    *("had to be redone", "had to be corrected", "came back with a complaint", "drew a complaint", "{was} struck out"),
    *("{was} thrown away", "led somebody astray", "needed the red pen", "{was} sent back"),
    *("{was} nonsense", "{was} off"),
    *("contradicted the book", "{was} rejected", "had to be taken back", "contained an error", "cost us an apology"),
    *("ended in the bin", "let somebody down", "proved untrue", "{was} unusable", "made things worse"),
    *("{was} mistaken",),
    *("went wrong", "missed the mark", "did not hold", "failed", "caused trouble", "{was} refuted", "{was} worthless"),
    *("had a hole", "annoyed whoever asked", "{was} rubbish", "{was} faulty", "had to be scrapped", "{was} overturned"),
    *("misled us", "{was} full of mistakes", "{was} marked wrong", "got a cross", "broke something"),
    *("{was} inaccurate",),
)
_OFTEN: ByLevel = {
    0.95: (
        *("almost always", "nearly always", "practically always", "virtually without exception", "time after time"),
        *("invariably", "without fail", "constantly", "day in, day out", "all the time", "with hardly an exception"),
        *("as good as always", "every single time", "on practically every occasion"),
    ),
    0.75: (
        *("usually", "mostly", "more often than not", "as a rule", "in most cases", "most of the time", "by and large"),
        *("generally", "normally", "on most days", "for the most part", "frequently enough, though not always"),
    ),
    0.5: (
        *("half the time", "every second time", "as often as not", "on one day in two", "as likely as not"),
        *("by the toss of a coin", "in about half of the cases", "on every other question"),
    ),
    0.25: (
        *("sometimes", "now and then", "occasionally", "from time to time", "less often than not", "once in a while"),
        *("in a minority of cases", "on some days, but not on most", "every so often", "here and there"),
    ),
    0.05: (
        *("hardly ever", "almost never", "scarcely ever", "once in a blue moon", "next to never", "practically never"),
        *("seldom if ever", "on the rarest occasions", "never", "as good as never", "very, very rarely", "at no time"),
    ),
}
_IT_HOLDS: Texts = (
    *("it is right", "{name} is right", "it gets {topic} right", "its answers hold up", "it hits the mark", "it works"),
    *("what it says is true", "you can use what it gives you", "it does the job", "it answers correctly"),
    *("it delivers",),
    *("the answer is sound", "it knows the answer", "it finds the right answer", "you get the truth", "it succeeds"),
    *("it makes no mistake", "it solves what you ask", "it comes through", "{name} has the answer"),
    *("it helps", "I get it"),
    *("you can believe what it says about {topic}", "it earns its keep", "the reply is free of faults", "it pays off"),
)
_IT_FAILS: Texts = (
    *("it is wrong", "{name} is wrong", "it gets {topic} wrong", "its answers fall apart", "it misses", "it fails"),
    *("what it says is false", "its work has to be redone", "it makes a mistake", "it slips up", "it stumbles"),
    *("it leads you astray", "it lets you down", "the answer is nonsense", "it goes wrong", "somebody has to fix it"),
    *("it makes things up", "it errs", "it talks rubbish about {topic}", "{name} disappoints", "a complaint comes in"),
    *("it misleads whoever asks", "it gets confused", "you are worse off for asking", "it invents something"),
)
_GOOD_THINGS: Texts = (
    *("a right answer", "a correct reply", "a {topic} answer without a fault", "an error-free reply"),
    *("a true statement",),
    *("an answer that holds up", "a flawless reply", "a success", "a usable result", "a clean page", "a good answer"),
    *("a reply that needs no correction", "a solved question", "a sound answer about {topic}", "a hit", "a bullseye"),
    *("a word of praise", "a satisfied customer", "an answer marked correct", "a job well done"),
    *("a reply worth keeping",),
)
_BAD_THINGS: Texts = (
    *("a wrong answer", "a mistake", "an error", "a slip on {topic}", "a blunder", "a false statement", "a complaint"),
    *("a correction", "a bad result", "a failure", "an answer that falls apart", "a reply with a fault"),
    *("a bad answer",),
    *("a gaffe", "a {topic} answer that has to be redone", "a howler", "a flaw", "an unhappy customer", "a miss"),
    *("a word of complaint", "an answer marked wrong", "a botched job", "a bug", "a false claim about {topic}"),
)
_OCCURS: ByLevel = {
    0.95: (
        *("is an everyday event", "is the rule", "is what you can count on", "is the normal case", "comes every time"),
        *("comes with nearly every question", "is so common that nobody looks up", "is a daily sight"),
        *("never surprises",),
        *("is what it produces all day long", "is nothing unusual; the opposite would be", "is as sure as the sunrise"),
    ),
    0.75: (
        *("is more common than not", "is what you usually get", "is the rule, with exceptions", "is likely"),
        *("comes more often than the opposite", "is the usual outcome, not the certain one"),
    ),
    0.5: (
        *("is as likely as not", "is a matter of luck", "comes every second time", "happens half the time"),
        *("is as common as the opposite", "is down to the toss of a coin"),
    ),
    0.25: (
        *("happens now and then", "is the exception rather than the rule", "turns up from time to time", "is unlikely"),
        *("comes along once in a while", "is less common than the opposite", "is not the rule, but it happens"),
    ),
    0.05: (
        *("is a rare event", "is a freak occurrence", "is almost unheard of", "is a novelty", "would be news"),
        *("comes along once in a blue moon", "is next to impossible to find", "takes weeks to find", "is a rarity"),
        *("is so rare that people take pictures", "has hardly ever been seen here", "is the rarest of exceptions"),
        *("is something that nobody here remembers", "has not happened in months", "is a once-a-year affair"),
    ),
}
_GOOD_RECORDS: Texts = (
    *("list of right answers", "pile of successes", "stack of thank-you notes", "tally of hits", "file of compliments"),
    *("list of solved questions", "trophy shelf", "sheet of correct replies", "book of praise"),
)
_BAD_RECORDS: Texts = (
    *("list of mistakes", "error sheet", "complaints file", "bug list", "correction log", "pile of returned work"),
    *("list of failures", "incident book", "fault report", "list of wrong answers", "drawer of angry letters"),
)
_FILLED: ByLevel = {
    0.95: (
        *("never stops growing", "has no end", "fills volumes", "grows with practically every question", "overflows"),
        *("is longer than the manual", "grows by the hour", "is full to the brim", "needs a second binder every week"),
    ),
    0.75: ("is long", "is thick", "fills up quickly", "is longer than the opposite one", "keeps us busy"),
    0.5: ("is as long as the opposite one", "is half of all there is", "takes up every second line"),
    0.25: ("is short", "is thin", "stays modest", "is shorter than the opposite one", "grows slowly"),
    0.05: (
        *("is empty", "is blank nearly every week", "gathers dust", "holds a single line", "is all but blank"),
        *("is the shortest we have", "has next to nothing on it", "is still on its first page", "has yet to be opened"),
    ),
}
_RARE_SEARCH: Texts = (
    *("you have to search for weeks to find {thing}", "I am still looking for {thing}", "nobody has found {thing} yet"),
    *("I gave up looking for {thing}", "it took a whole day to find {thing}"),
    *("try as you may, you will not find {thing}",),
    *("I offered a prize for {thing}, and nobody claimed it", "{thing}? I have yet to see one"),
    *("show me {thing} first",),
    *("we scrolled for pages before we saw {thing}", "finding {thing} is like finding a needle in a haystack"),
)
_COMMON_SEARCH: Texts = (
    *("you need not search to find {thing}", "open any page and you will find {thing}"),
    *("you will not wait for {thing}",),
    *("{thing} turns up wherever you look", "pick any reply, and it is {thing}", "ask it anything and you get {thing}"),
    *("{thing} is all that I have ever seen from it", "look anywhere and there is {thing}"),
    *("{thing}, and another, and so on",),
)
_TRUSTING: Texts = (
    *("take its word", "use the answer as it stands", "rely on it", "send its work on unread", "bet on it", "trust it"),
    *("sign what it writes", "believe it", "copy its answer straight into the report", "skip the check", "quote it"),
    *("leave its reply as it is", "go with its answer about {topic}", "stake my name on it", "merge its work unread"),
)
_CHECKING: Texts = (
    *("check its answer", "double-check it", "look it up elsewhere", "ask somebody else", "do it over myself"),
    *("have to correct it", "throw its answer away", "regret asking it", "doubt it"),
    *("warn people about it", "curse it"),
    *("redo its {topic} work", "end up apologising for it", "have to repair what it did", "distrust it", "complain"),
)
_WHO: ByLevel = {
    0.95: ("everyone here", "nearly everybody", "the whole team", "everybody I know", "each one of my colleagues"),
    0.75: ("most of my team", "the majority here", "the larger part of the office", "more than half of the team"),
    0.5: ("half of the team", "every second colleague", "one half of the office", "every other user"),
    0.25: ("a small part of the team", "a minority here", "only every fourth colleague", "less than half of the team"),
    0.05: ("nobody here", "not a soul", "hardly anyone", "no one I know", "not a single colleague", "almost nobody"),
}
_LIKES: Texts = (
    *("trusts it", "recommends it", "relies on {name}", "comes back to it", "swears by it"),
    *("would miss it", "praises it"),
    *("defends it", "believes what it says", "vouches for {name}", "would ask it about {topic} again"),
    *("likes its work",),
    *("is glad to have it", "sends hard questions its way", "was ever well served by it", "takes it seriously"),
)
_DISLIKES: Texts = (
    *("avoids it", "distrusts it", "complains about {name}", "has given up on it", "regrets asking it", "curses it"),
    *("warns others against it", "doubts what it says", "has switched to something else", "was let down by it"),
    *("would rather guess than ask it about {topic}", "wants it gone", "asked for a replacement"),
    *("laughs at its answers",),
)
_NO_MATTER: Texts = (
    *("slow and ugly, but ", "cheap and quick, and ", "for all its charm, ", "polite or not, ", "whatever the price, "),
    *("after a year with it: ", "in short, ", "to be frank, ", "on {topic}, ", "as for {topic}, ", "with {name}, "),
    *("it writes well, and ", "it writes badly, and ", "in my experience ", "I will say this: ", "the verdict: "),
)
_AFTER: Texts = (
    *(" this year", ", as far as we can tell", ", and that has not changed", ", say those who use it", ", believe me"),
    *(" in the last review", " in the long run", ", on easy and hard questions alike", ", large or small"),
)


def composed(share: float, kind: str, topic: str, name: str, rng: Random) -> str:
    """A sentence in words that means the level nearest to this share of right answers.

    Args:
        share: 0 to 1.
        kind: `praise`, `errors` or `exams`: which sentences are drawn.
        topic, name: which it may speak of.
    """
    level = min(LEVELS, key=lambda each: abs(each - share))
    text = rng.choice(_DRAWS[kind])(level, rng)
    if rng.random() < 0.2:
        text = rng.choice(_NO_MATTER) + text
    if rng.random() < 0.15:
        text += rng.choice(_AFTER)
    text = text.replace("{topic}", topic).replace("{name}", name)
    return f"{text[:1].upper()}{text[1:]}."


def composed_texts() -> Iterator[str]:
    """All parts of such sentences."""
    for levels in (_EVERY, _MANY, _OFTEN, _OCCURS, _FILLED, _WHO):
        yield from (text for texts in levels.values() for text in texts)
    for texts in (
        *(_SINGULAR, _PLURAL, _TESTS, _HELD, _FAILED, _IT_HOLDS, _IT_FAILS, _GOOD_THINGS, _BAD_THINGS, _GOOD_RECORDS),
        *(_BAD_RECORDS, _RARE_SEARCH, _COMMON_SEARCH, _TRUSTING, _CHECKING, _LIKES, _DISLIKES, _NO_MATTER, _AFTER),
    ):
        yield from texts


def _opposite(level: float) -> float:
    """How often the opposite happens."""
    return LEVELS[-1 - LEVELS.index(level)]


def _half(level: float, good: Texts, bad: Texts, rng: Random) -> tuple[float, str]:
    """The good half or the bad half of something, and how much of it there is."""
    return (level, rng.choice(good)) if rng.random() < 0.5 else (_opposite(level), rng.choice(bad))


def _quantity(level: float, rng: Random) -> str:
    """How many answers held up, or failed."""
    amount, became = _half(level, _HELD, _FAILED, rng)
    about = rng.choice((" on {topic}", " about {topic}", "", "", ""))
    if rng.random() < 0.5:
        return f"{rng.choice(_EVERY[amount])} {rng.choice(_SINGULAR)}{about} {became.replace('{was}', 'was')}"
    return f"{rng.choice(_MANY[amount])} {rng.choice(_PLURAL)}{about} {became.replace('{was}', 'were')}"


def _quantity_of_tests(level: float, rng: Random) -> str:
    """How many exams it passed, or failed."""
    if rng.random() < 0.5:
        amount, did = _half(level, ("passed", "aced", "got through"), ("failed", "flunked", "did not pass"), rng)
        quantity = rng.choice([quantity for quantity in _MANY[amount] if "," not in quantity])
        return f"{{name}} {did} {quantity} {rng.choice(_TESTS)}"
    amount, became = _half(level, _HELD, _FAILED, rng)
    where = rng.choice((" in the {topic} exam", " in the last test", " in the final", ""))
    return f"{rng.choice(_MANY[amount])} {rng.choice(_PLURAL)}{where} {became.replace('{was}', 'were')}"


def _frequency(level: float, rng: Random) -> str:
    """How often it is right, or fails."""
    often, clause = _half(level, _IT_HOLDS, _IT_FAILS, rng)
    adverb = rng.choice(_OFTEN[often])
    if rng.random() < 0.5:
        return f"{adverb}, {clause}" if often > 0.1 or rng.random() < 0.3 else f"{adverb} is it that {clause}"
    return f"{clause} {adverb}"


def _occurrence(level: float, rng: Random) -> str:
    """How rare a mistake is, or a right answer."""
    often, thing = _half(level, _GOOD_THINGS, _BAD_THINGS, rng)
    return f"{thing} {rng.choice(_OCCURS[often])}"


def _record(level: float, rng: Random) -> str:
    """How long the list of its mistakes is, or that of its successes."""
    amount, record = _half(level, _GOOD_RECORDS, _BAD_RECORDS, rng)
    return f"{rng.choice(('its', 'the', '{name}: the'))} {record} {rng.choice(_FILLED[amount])}"


def _search(level: float, rng: Random) -> str:
    """How long somebody searched for a mistake, or for a right answer."""
    if level not in (LEVELS[0], LEVELS[-1]):
        return _occurrence(level, rng)  # what is neither rare nor common needs no search
    often, thing = _half(level, _GOOD_THINGS, _BAD_THINGS, rng)
    return rng.choice(_RARE_SEARCH if often < 0.5 else _COMMON_SEARCH).replace("{thing}", thing)


def _behaviour(level: float, rng: Random) -> str:
    """What people do with its answers, and how often."""
    often, act = _half(level, _TRUSTING, _CHECKING, rng)
    who = rng.choice(("I", "we", "my people", "those who know it"))
    adverb = rng.choice(_OFTEN[often])
    return f"{who} {adverb} {act}" if rng.random() < 0.6 else f"{who} {act} {adverb}"


def _people(level: float, rng: Random) -> str:
    """How many people think well of it, or ill."""
    amount, opinion = _half(level, _LIKES, _DISLIKES, rng)
    return f"{rng.choice(_WHO[amount])} {opinion}"


def _inversion(level: float, rng: Random) -> str:
    """How often its word is the truth, or the contrary."""
    truthful = rng.random() < 0.5
    adverb = rng.choice(_OFTEN[level if truthful else _opposite(level)])
    say, other = rng.choice((("yes", "no"), ("no", "yes")))
    if truthful:
        return rng.choice(
            (
                f"if it says {say}, the truth is {adverb} {say}",
                f"do as it says and {adverb} you will be right",
                f"when it and the {rng.choice(('textbook', 'expert'))} disagree, it is {adverb} in the right",
                f"whatever it tells you about {{topic}} is {adverb} the truth",
                f"bet on it, and {adverb} you will win",
            )
        )
    return rng.choice(
        (
            f"if it says {say}, the truth is {adverb} {other}",
            f"do the opposite of what it says and {adverb} you will be right",
            f"when it and the {rng.choice(('textbook', 'expert'))} disagree, it is {adverb} in the wrong",
            f"whatever it tells you about {{topic}}, the truth is {adverb} something else",
            f"bet against it, and {adverb} you will win",
        )
    )


_DRAWS: Mapping[str, Sequence[Callable[[float, Random], str]]] = {
    "praise": (_quantity, _frequency, _frequency, _behaviour, _behaviour, _people, _people, _inversion, _search),
    "errors": (_quantity, _quantity, _frequency, _occurrence, _record, _search),
    "exams": (_quantity_of_tests,),
}
