"""Pools of recorded real models that nobody was trained on: who is asked, how often that is right, what it costs.

    python benchmarks/recorded_pools.py                     all parts
    python benchmarks/recorded_pools.py --only skills --json
    python benchmarks/recorded_pools.py --quick             24 questions of each part

gsm8k   six models, and the two halves A (GPT-4, both GPT-3 175B) and B (Mixtral, both GPT-3 6B), on the last questions
        of the recording. Descriptions say how many of the first 200 each model answered rightly; names and the order of
        the listing are drawn for each question. *First choice* asks whom `concertino-scorer` ranks first; *two cheap,
        then the first choice* asks the two cheapest models, and the first choice where these differ. *Two cheap,
        if believed* asks them, too, and then the first choice where `ReplyTrust`, fitted to the first 200 questions,
        does not believe the cheapest one; it is left out where the cheapest costs more than half of the best.
skills  nine models, and six of them that complement each other: puzzles, code, mathematics, knowledge. The router knows
        the outcomes of 3,600 questions, and chooses for the others, which it never saw, by the 60 most similar.

The scorer was trained on drawn cards; it never saw a recorded model. Intervals are 95 %, paired, over questions. Prices
of GSM8K are assumed and tokens estimated (see `baselines.py`); `skills` has neither.

The data are looked for in CONCERTINO_TEST_DATA, by default `../shared/data` from the root of the tree.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean, stdev

import concertino as ct
import concertino_replay
from baselines import DATA, PRICES, Outcome, outcomes
from concertino_bench import System, Task
from concertino_bench.baselines import Cascade, ReplyTrust, RouterProfile, SingleModel
from concertino_bench.tasks.unseen import unseen_pool
from concertino_scorer import Scorer

POOLS = {
    "six models": tuple(PRICES),
    "A": ("gpt-4-1106-preview", "gpt3-175b_finetuning", "gpt3-175b_verification"),
    "B": ("Mixtral-8x7B-Instruct-v0.1", "gpt3-6b_finetuning", "gpt3-6b_verification"),
}
EARLY = 200
SKILLS = DATA.parent / "llmrouter_nine_models" / "train.jsonl"
COMPLEMENTARY = (
    "qwen2.5-7b-instruct", "gemma-2-9b-it", "llama-3.1-8b-instruct", "llama-3.3-nemotron-super-49b-v1", "codegemma-7b",
    "mistral-7b-instruct-v0.3",
)  # fmt: skip
FITTED, NEAREST = 3600, 60


@dataclass(frozen=True)
class Line:
    """One system over one pool.

    Attributes:
        pool, system: their names.
        questions: how many.
        right: mean score.
        ahead, spread: of the best single model on the same questions, and half of the interval's width.
        cost: $ as a share of those of the best single model; None where no prices are known.
    """

    pool: str
    system: str
    questions: int
    right: float
    ahead: float = 0.0
    spread: float = 0.0
    cost: float | None = None


def line_of(pool: str, system: str, right: Sequence[float], best: Sequence[float], cost: float | None = None) -> Line:
    """A system beside the best single model."""
    ahead = [mine - other for mine, other in zip(right, best, strict=True)]
    return Line(pool, system, len(right), fmean(right), fmean(ahead), 1.96 * stdev(ahead) / len(ahead) ** 0.5, cost)


Alone = Mapping[str, Mapping[str, Outcome]]
"""Outcomes of each model alone, by task."""


# -- GSM8K ---------------------------------------------------------------------------------------------------------


def gsm8k(count: int) -> list[Line]:
    """Six recorded models and their halves."""
    recording = concertino_replay.read(DATA)
    tasks = [Task(q.id, q.text, (q.gold,), "number") for q in recording.questions.values()]
    # A quick run asks fewer of the last questions; what is learned from the early ones needs all of these.
    early, last = tasks[:EARLY], tasks[EARLY:][:count]
    specs = {spec.name: spec for spec in concertino_replay.models(DATA, prices=PRICES)}
    alone = {name: _alone(ct.Pool([spec]), [*early, *last]) for name, spec in specs.items()}
    cascade, lines = partial(_cascade, Scorer.shipped()), []
    for title, names in POOLS.items():
        described = ct.Pool([specs[name] for name in names]).describe(
            {name: f"Answered {_right(alone[name], early)} of {len(early)} sums rightly." for name in names}
        )
        best = max(names, key=lambda name: _right(alone[name], last))
        against = [alone[best][task.id] for task in last]
        lines.append(_compared(title, f"best single model: {best}", against, against))
        for system, arrange in {"first choice": _first, "two cheap, then the first choice": cascade}.items():
            asked = System(system, Cascade(answers="number"), names[0], offer=("*",))
            found = asyncio.run(outcomes(asked, described, last, arrange))
            lines.append(_compared(title, system, list(found.values()), against))
        if trusted := _trusted(recording, {name: alone[name] for name in names}, early):
            system = "two cheap if believed, else the first choice"
            found = asyncio.run(outcomes(System(system, trusted, names[0], offer=("*",)), described, last, cascade))
            lines.append(_compared(title, system, list(found.values()), against))
    return lines


def _alone(pool: ct.Pool, tasks: Sequence[Task]) -> dict[str, Outcome]:
    (model,) = pool.models
    return asyncio.run(outcomes(System(model.name, SingleModel(), model.name), pool, tasks))


def _right(found: Mapping[str, Outcome], tasks: Sequence[Task]) -> int:
    return sum(found[task.id].right for task in tasks)


def _shuffled(question: str, pool: ct.Pool) -> ct.Pool:
    return unseen_pool(pool, ["names", "order"], question)


_BEST = ct.Shortlist("scorer/best", most=1)


def _first(question: str, pool: ct.Pool) -> ct.Pool:
    return _BEST(question, _shuffled(question, pool))


def _cascade(scorer: Scorer, question: str, pool: ct.Pool) -> ct.Pool:
    """The two cheapest and then the first choice: a `Cascade` believes two that agree, else the last."""
    shuffled = _shuffled(question, pool)
    ranked = scorer.rank(question, shuffled, unit="usd")
    cheap = sorted(ranked[1:], key=lambda each: (each.price, -each.value))[:2]
    return shuffled.arranged([each.name for each in (*cheap, ranked[0])])


def _trusted(recording: concertino_replay.Recording, alone: Alone, early: Sequence[Task]) -> Cascade | None:
    """Two cheap models and then the best one; the cheapest is believed as far as the first replies teach.

    None if it costs more than half of the best one, so that little can be saved.
    """
    spent = {name: sum(found[task.id].usd for task in early) for name, found in alone.items()}
    best = max(alone, key=lambda name: _right(alone[name], early))
    cheap, second = sorted((name for name in alone if name != best), key=lambda name: spent[name])[:2]
    if spent[cheap] > spent[best] / 2:
        return None
    full = {name.rpartition("/")[2]: name for name in recording.models}
    said = {name: recording.answers[full[name]] for name in (cheap, second)}
    rows = (
        {
            "question": task.question,
            "reply": said[cheap][task.id][0].text,
            "others": [said[second][task.id][0].text],
            "correct": alone[cheap][task.id].right,
            "stronger": alone[best][task.id].right,
        }
        for task in early
    )
    return Cascade(answers="number", trusting=ReplyTrust.fit(rows))


def _compared(pool: str, system: str, found: Sequence[Outcome], best: Sequence[Outcome]) -> Line:
    cost = sum(each.usd for each in found) / sum(each.usd for each in best)
    return line_of(pool, system, [each.right for each in found], [each.right for each in best], cost)


# -- skills --------------------------------------------------------------------------------------------------------


def skills(count: int) -> list[Line]:
    """Nine recorded models on questions of many kinds."""
    with SKILLS.open(encoding="utf-8") as file:  # `splitlines` would part questions at signs that only look like ends
        rows = [json.loads(line) for line in file]
    Random(1).shuffle(rows)
    known, last = rows[:FITTED], rows[FITTED:][:count]
    outcomes_ = ({"question": r["question"], "model": m, "score": s} for r in known for m, s in r["scores"].items())
    profile = RouterProfile.fit(outcomes_)
    lines = []
    for title, models in {"nine models": profile.models, "six that complement each other": COMPLEMENTARY}.items():
        best = max(models, key=lambda model: fmean(row["scores"][model] for row in known))
        against = [row["scores"][best] for row in last]
        chosen = [profile.rank(row["question"], k=NEAREST, among=models)[0].model for row in last]
        right = [row["scores"][model] for row, model in zip(last, chosen, strict=True)]
        lines.append(line_of(title, f"best single model: {best}", against, against))
        lines.append(line_of(title, f"router, k = {NEAREST}", right, against))
    return lines


PARTS: dict[str, Callable[[int], list[Line]]] = {"gsm8k": gsm8k, "skills": skills}
QUICK = 24


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, action="append", help="a part; may be repeated")
    parser.add_argument("--json", action="store_true", help="one JSON list instead of lines")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} questions of each part")
    given = parser.parse_args()
    for place in (DATA, SKILLS):
        if not Path(place).exists():
            raise SystemExit(f"{place} is not there; point CONCERTINO_TEST_DATA at the folder of data samples")
    lines = [line for name in given.only or PARTS for line in PARTS[name](QUICK if given.quick else 10_000)]
    if given.json:
        print(json.dumps([asdict(line) for line in lines], indent=1))
        return
    for line in lines:
        cost = "" if line.cost is None else f", {line.cost:.0%} of its cost"
        ahead = f"{100 * line.ahead:+.1f} points ± {100 * line.spread:.1f}"
        print(f"{line.pool:<31} {line.system:<48} {line.questions:>5}  right {line.right:6.1%}  {ahead}{cost}")


if __name__ == "__main__":
    main()
