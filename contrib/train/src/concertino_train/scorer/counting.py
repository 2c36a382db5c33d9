"""Sentences that count: 19 of 20 jobs signed off, one blunder in nine, 3 on a gauge where 8 is always wrong.

What is counted, how it is called, which number comes first, how large the total is, and whether numbers are words: all
of it is drawn, so that a reader of cards can know no scale by heart and has to read which way it points.

Invariant: a sentence means the share that it was drawn for, as far as its total can say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from random import Random

from .sentences import with_ordinal

_UNITS = (
    *("answers", "replies", "questions", "jobs", "orders", "rulings", "cases", "tries", "shots", "tickets", "parcels"),
    *("tasks", "checks", "samples", "drawings", "pages", "entries", "letters", "decisions", "items", "batches"),
    *("rounds", "matches", "lessons", "guesses", "calls", "translations", "sums", "claims", "findings", "reports"),
    *("forecasts", "estimates", "quotes", "repairs", "loaves", "plates", "dishes", "seedlings", "bolts", "welds"),
    *("flights", "voyages", "soundings", "hands", "deals", "lots", "bids", "verdicts", "leads", "tests", "problems"),
    *("requests", "attempts", "visits", "sessions", "exercises", "statements", "invoices", "boards", "bricks", "songs"),
    *("scenes", "recipes", "prescriptions", "diagnoses", "audits", "measurements", "readings", "shipments", "stitches"),
)
_GOOD = (
    *("right", "correct", "accurate", "sound", "accepted", "approved", "passed", "upheld", "confirmed", "verified"),
    *("signed off", "valid", "on target", "spot on", "in order", "good", "fine", "kept", "delivered intact", "true"),
    *("flawless", "clean", "usable", "vindicated", "endorsed", "certified", "undisputed", "error-free", "faultless"),
    *("above reproach", "fit for use", "without a fault", "well done", "solved", "as they should be", "trustworthy"),
)
_BAD = (
    *("wrong", "incorrect", "inaccurate", "faulty", "rejected", "refused", "failed", "overturned", "reversed"),
    *("quashed", "refuted", "redone", "reworked", "sent back", "returned", "scrapped", "binned", "spoiled", "botched"),
    *("flawed", "false", "off target", "void", "corrected later", "retracted", "withdrawn", "struck out", "wasted"),
    *("lost", "broken", "fumbled", "missed", "mangled", "unusable", "condemned", "recalled", "patched up", "disputed"),
    *("thrown out", "torn up", "set aside", "written off", "beyond repair", "rubbish", "nonsense", "unfit for use"),
    *("done over", "shot down", "struck down", "misjudged", "garbled", "in error", "fouled up", "full of holes"),
)
_HITS = (
    *("hits", "right answers", "passes", "bullseyes", "approvals", "sign-offs", "wins", "goals", "correct replies"),
    *("successes", "confirmations", "ticks", "gold stars", "clean results", "good calls", "correct verdicts", "points"),
    *("safe landings", "happy customers", "smiles", "saves", "solved cases", "fulfilled orders", "sound results"),
)
_MISSES = (
    *("mistakes", "errors", "faults", "slips", "blunders", "misses", "defects", "flaws", "failures", "complaints"),
    *("corrections", "retractions", "returns", "rejects", "callbacks", "recalls", "disputes", "penalties", "fouls"),
    *(
        "reversals",
        "write-offs",
        "refunds",
        "apologies",
        "howlers",
        "gaffes",
        "bugs",
        "strikes",
        "red cards",
        "crashes",
    ),
    *("black marks", "crosses", "demerits", "breakdowns", "losses", "dead ends", "false alarms", "wrong turns", "duds"),
    *("lemons", "wrong answers", "burnt pans", "leaks", "misprints", "own goals", "unhappy customers", "bad calls"),
    *("bloopers", "stumbles", "oversights", "miscounts", "rework orders", "repairs under warranty", "angry letters"),
)
_GOOD_DIALS = (
    *("accuracy gauge", "truth dial", "trust meter", "quality scale", "ladder", "score sheet", "confidence meter"),
    *("report card", "thermometer", "yardstick", "star chart", "merit list", "honesty scale", "correctness scale"),
)
_BAD_DIALS = (
    *("blunder gauge", "error meter", "fault dial", "trouble scale", "complaint index", "penalty sheet", "leak gauge"),
    *("slip counter", "damage scale", "blame scale", "mistake meter", "gaffe chart", "failure index", "defect gauge"),
)
_BEST_ENDS = (
    "never wrong",
    "always right",
    "flawless",
    "perfect",
    "spotless",
    "no mistakes",
    "all correct",
    "faultless",
)
_WORST_ENDS = ("always wrong", "never right", "hopeless", "all mistakes", "nothing right", "a wreck", "all wrong")
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def counted(share: float, topic: str, name: str, rng: Random) -> str:
    """A sentence that means this share of right answers, in numbers.

    Args:
        share: 0 to 1.
        topic, name: which it may speak of.
    """
    draw = rng.choice((_of_total, _of_total, _of_total, _odds, _on_a_dial, _place, _per))
    text = draw(share, topic, name, rng)
    ending = "" if text.endswith((".", "!")) else "."
    return f"{text[:1].upper()}{text[1:]}{ending}"


def counted_words() -> Mapping[str, float]:
    """The words of such sentences, each with how good it sounds: 1, -1, or 0."""
    found = dict.fromkeys(_UNITS, 0.0)
    for texts, sound in ((_GOOD, 0.8), (_HITS, 0.8), (_BAD, -0.8), (_MISSES, -0.8)):
        # Of several words none is known to carry the sound: "off target" is bad, and "target" is not.
        found |= {word: sound if " " not in text else 0.0 for text in texts for word in text.split()}
    return found


def in_words(number: int, rng: Random | None = None) -> str:
    """A whole number from 0 to 1,000 in English: `a hundred and five`, or `one hundred five`."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + (f"-{_ONES[number % 10]}" if number % 10 else "")
    if number == 1000:
        return "a thousand" if rng is None or rng.random() < 0.6 else "one thousand"
    hundreds = (
        "a hundred" if number < 200 and (rng is None or rng.random() < 0.6) else f"{_ONES[number // 100]} hundred"
    )
    rest = number % 100
    joint = " and " if rng is None or rng.random() < 0.6 else " "
    return hundreds + (f"{joint}{in_words(rest)}" if rest else "")


def _number(number: int, rng: Random, spelt: bool) -> str:
    return in_words(number, rng) if spelt and number <= 1000 else f"{number:,}" if rng.random() < 0.5 else str(number)


def _total(rng: Random) -> int:
    round_ones = (8, 9, 10, 12, 15, 16, 18, 20, 24, 25, 30, 32, 36, 40, 44, 48, 50, 60, 64, 72, 75, 80, 88, 90, 96, 100)
    if rng.random() < 0.6:
        return rng.choice(
            (*round_ones, 120, 140, 144, 150, 160, 180, 200, 220, 240, 250, 300, 400, 500, 600, 800, 1000)
        )
    return round(10 ** rng.uniform(0.9, 3.2))


def _of_total(share: float, topic: str, name: str, rng: Random) -> str:
    """A part of a total: of those that are right, or of those that are wrong."""
    total, good = _total(rng), rng.random() < 0.5
    part = round((share if good else 1 - share) * total)
    spelt = rng.random() < 0.25
    n, all_, rest = (_number(each, rng, spelt) for each in (part, total, total - part))
    units, state, other = rng.choice(_UNITS), rng.choice(_GOOD if good else _BAD), rng.choice(_BAD if good else _GOOD)
    noun = rng.choice(_HITS if good else _MISSES)
    about = rng.choice((f" on {topic}", f" about {topic}", f" in {topic}", "", "", ""))
    return rng.choice(
        (
            f"{n} of {all_} {units}{about} {state}",
            f"{n} of its {all_} {units}{about} were {state}",
            f"{n} out of {all_} {units}{about} are {state}",
            f"of {all_} {units}{about}, {n} were {state}",
            f"out of {all_} {units} from {name}, {n} {state}",
            f"{all_} {units}{about}, {n} of them {state}",
            f"{all_} {units}, {n} {state}",
            f"{name} had {n} {state} in {all_} {units}{about}",
            f"{name} got {n} {noun} from {all_} {units}{about}",
            f"{n} {noun} in {all_} {units}{about}",
            f"{n} {noun} per {all_} {units}",
            f"{noun}{about}: {n}; {units}: {all_}",
            f"{units} given {all_}, {noun} {n}",
            f"{n} of {all_}{about} {state}, as counted last month",
            f"{n}/{all_} {state}",
            f"{n} {noun} and {rest} {rng.choice(_MISSES if good else _HITS)}{about}",
            f"{n} {state}, {rest} {other}",
            f"all but {rest} of {all_} {units}{about} were {state}",
            f"we gave {name} {all_} {units}{about}; {n} came out {state}",
            f"I counted {n} {noun} among {all_} {units}",
            f"the ledger{about} shows {all_} {units} with {n} {noun}",
            f"{name} was {state} {n} times in {all_}"
            if good and state in ("right", "correct")
            else f"{n} in {all_} {state}",
        )
    )


def _odds(share: float, topic: str, name: str, rng: Random) -> str:
    """So many right for so many wrong."""
    ratio = Fraction(min(0.98, max(0.02, share))).limit_denominator(rng.choice((12, 20, 40)))
    good, bad = ratio.numerator, ratio.denominator - ratio.numerator
    if good == 0 or bad == 0:
        return _of_total(share, topic, name, rng)
    spelt = rng.random() < 0.35
    g, b = _number(good, rng, spelt), _number(bad, rng, spelt)
    hits, misses = rng.choice(_HITS), rng.choice(_MISSES)
    return rng.choice(
        (
            f"{g} {hits} for every {b} {misses}",
            f"{b} {misses} for every {g} {hits}",
            f"right to wrong on {topic}: {g} to {b}",
            f"wrong to right: {b} to {g}",
            f"for each {b} {misses} it has {g} {hits}",
            f"{hits} to {misses}: {g} to {b}",
            f"the odds of {name} being right about {topic} are {g} to {b}",
            f"{g} to {b} that it is right" if good >= bad else f"{b} to {g} against its being right",
            f"{g} to {b} on that {name} is correct" if good >= bad else f"{b} to {g} against {name} on {topic}",
            f"{g} {rng.choice(_GOOD)}, then {b} {rng.choice(_BAD)}, and so on",
        )
    )


def _on_a_dial(share: float, topic: str, name: str, rng: Random) -> str:
    """A place between two ends whose meaning is said."""
    high_is_good = rng.random() < 0.5
    top = rng.choice((5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 20, 24, 25, 30, 40, 50, 60, 99, 100, 200))
    value = (share if high_is_good else 1 - share) * top
    x = f"{value:.1f}".removesuffix(".0") if top < 15 else str(round(value))
    dial = rng.choice(_GOOD_DIALS if high_is_good else _BAD_DIALS)
    ends = rng.choice(_WORST_ENDS), rng.choice(_BEST_ENDS)
    low, high = ends if high_is_good else ends[::-1]
    hint = rng.choice(("higher is better", "up is good") if high_is_good else ("lower is better", "low is good"))
    return rng.choice(
        (
            f"on the {dial}, where 0 is {low} and {top} is {high}, it stands at {x}",
            f"{name} reads {x} for {topic} on a {dial} that ends at {top} ({high})",
            f"{dial}: {x} of {top}, {hint}",
            f"{dial} for {topic} at {x} out of {top}",
            f"{x} on a {dial} from 0, {low}, to {top}, {high}",
            f"with {top} for {high} and 0 for {low}, {name} gets {x}",
            f"it shows {x}, and the {dial} goes up to {top} for {high}",
            f"{x} on the {top}-point {dial}; {hint}",
            f"if {top} is {high}, {name} is a {x}",
        )
    )


def _place(share: float, topic: str, name: str, rng: Random) -> str:
    """A place in a field, counted from the best one or from the worst."""
    field = rng.choice((6, 8, 9, 10, 12, 15, 20, 24, 30, 40, 50, 60, 75, 80, 100, 120, 150))
    place = 1 + round((1 - share) * (field - 1))
    below, whom = field - place, rng.choice(("models", "entrants", "teams", "helpers", "rivals", "runners", "bidders"))
    return rng.choice(
        (
            f"{with_ordinal(place)} of {field} {whom} on {topic}",
            f"ranked {place} of {field}, with 1 the best",
            f"place {place} in a field of {field}",
            f"number {place} among {field} {whom}, counting from the top",
            f"{below} of {field} {whom} did worse on {topic}",
            f"it beat {below} of its {field - 1} {whom}",
            f"{place - 1} of {field} {whom} were better than {name}",
            f"counted from the bottom of {field} {whom}, it is number {below + 1}",
            f"finished {with_ordinal(place)} in a race of {field} about {topic}",
        )
    )


def _per(share: float, topic: str, name: str, rng: Random) -> str:
    """Per hundred, per thousand, one in so many."""
    good = rng.random() < 0.5
    part, noun = (share if good else 1 - share), rng.choice(_HITS if good else _MISSES)
    state, units = rng.choice(_GOOD if good else _BAD), rng.choice(_UNITS)
    percent, mille = round(100 * part), round(1000 * part)
    every = max(1, round(1 / max(part, 0.002)))
    spelt = rng.random() < 0.3
    some = [
        f"{percent}% {state} on {topic}",
        f"{percent} percent of its {units} are {state}",
        f"{noun} in {percent}% of {units}",
        f"{mille} per mille {state}",
        f"{mille}\u2030 of its {units} {state}",
        f"{mille} in every thousand {units} about {topic} are {state}",
        f"{_number(percent, rng, spelt)} in a hundred {units} {state}",
        f"{percent} {noun} to the hundred",
        f"{part:.2f} of its {units} {state}",
    ]
    if part <= 0.5 and every > 1:
        some += [f"one in {_number(every, rng, spelt)} {units} {state}", f"1 of every {every} {units} {state}"] * 2
    return rng.choice(some)
