"""How well the tiny conductor leads: three kinds of pools, none of whose questions it was trained on.

    python benchmarks/conductor.py                          the figures of its MODEL_CARD.md
    python benchmarks/conductor.py --only exercises --json  one part, as JSON
    python benchmarks/conductor.py --quick                  24 of each part
    python benchmarks/conductor.py --folder FOLDER          another model of the same form

exercises  pools and questions drawn as in training, of another seed, at three rates of failing calls
demo       questions of `concertino demo`, with the faults that are built into its members, and without them
replay     six recorded models, 160 questions of GSM8K: one a run, four a run, four a run while calls fail, and one a
           run in another order for each question, alone and behind `concertino-scorer`
forms      1,000 runs over pools that once broke the form of a call or of an answer: names of several words, answers of
           three digits, models without a tool, twenty members. Everybody knows the answer
cards      whom it asks first behind the scorer, by cards of authors that no training read; with the cards permuted, and
           with the order reversed

Everything is greedy. A run is *right* if all of its answers are; `replay` counts questions. `single-model` and
`majority-vote` are the systems of concertino-bench, on the same questions and the same answers; the teacher is the
scripted policy that the conductor learned from. The pool of `replay` lists its best model last, because the conductor
begins with that one: it does not choose. The scorer does: it reads descriptions that say how many of the
first questions of the recording each model answered rightly, and lists the best one last. The questions are the last
160 of the recording; the first ones were looked at while the conductor was made.

The data of `replay` are looked for in CONCERTINO_TEST_DATA, by default `../shared/data` from the root of the tree.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, TypeVar

import concertino as ct
import concertino_replay
import concertino_toy
from baselines import DATA, PRICES, STRONG, outcomes
from concertino.runs.orchestrator import Arrange
from concertino_bench import System, Task, Verdict
from concertino_bench.baselines import systems
from concertino_bench.graders import Numeric
from concertino_bench.tasks.unseen import unseen_pool
from concertino_toy.conductor import TINY, TinyConductor, strategy
from concertino_toy.demo import demo_members, demo_question
from concertino_toy.exercises import Assignee, ConductorTeacher, boxes, is_clean, try_out

Row = dict[str, Any]
T = TypeVar("T")
NAMES = {
    "Mixtral-8x7B-Instruct-v0.1": "mixtral",
    "gpt3-6b_finetuning": "small",
    "gpt3-6b_verification": "careful",
    "gpt3-175b_finetuning": "large",
    "gpt3-175b_verification": "judge",
    "gpt-4-1106-preview": "turbo",
}
"""The models of `replay` as the pool lists them, and short names of theirs for comparison."""
AT_ONCE = 4
BUDGET = ct.Budget(rounds=8, calls=40, usd=0.5, seconds=60)


def exercises(model: ct.Model, count: int) -> list[Row]:
    """Exercises that training never showed."""
    rows = []
    for rate in (0.0, 0.2, 0.4):
        found = try_out(model, range(count), seed=1, fault_rate=rate)
        rows.append({"what": f"exercises, {rate:.0%} of calls fail", **vars(found)})
    return rows


async def several(make: Callable[[int], Coroutine[Any, Any, T]], count: int) -> list[T]:
    """Runs by their numbers, a few at once."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> T:
        async with room:
            return await make(number)

    return await asyncio.gather(*(one(number) for number in range(count)))


def demo(model: ct.Model, count: int) -> list[Row]:
    """Questions of the demonstration, of the seeds 0, 1, 2 and so on."""
    hooks = (concertino_toy.concertino_tools, concertino_toy.concertino_agents, concertino_toy.concertino_models)
    sound = [spec.with_(name=f"toy/{spec.name}") for hook in hooks for spec in hook()]
    tiny = ct.ModelSpec("toy/conductor", lambda: model, prices=ct.Prices(0.0, 0.0))
    leader = ct.Orchestrator(tiny.name, strategy())
    rows = []
    for what, pool_of in (
        ("demo, its faults built in", lambda seed: ct.Pool(demo_members(seed))),
        ("demo, without faults", lambda seed: ct.Pool(sound)),
    ):

        async def one(seed: int, pool_of: Callable[[int], ct.Pool] = pool_of) -> ct.Run:
            pool = pool_of(seed).without("toy/leader", "toy/conductor").adding(tiny)
            return await leader.run(demo_question(seed)[0], pool=pool, budget=BUDGET)

        runs = asyncio.run(several(one, count))
        expected = [tuple(map(str, demo_question(seed)[1])) for seed in range(count)]
        right = [boxes(run) == known for run, known in zip(runs, expected, strict=True)]
        failed = [any(not seen.ok for seen in run.observations) for run in runs]
        both = [good for good, bad in zip(right, failed, strict=True) if bad]
        rows.append(
            {
                "what": what,
                "runs": count,
                "right": fmean(right),
                "clean": fmean(map(is_clean, runs)),
                "recovered": sum(both) / max(1, len(both)),
                "failed": len(both),
                "rounds": fmean(len(run.rounds) for run in runs),
                "wrong": [seed for seed, good in enumerate(right) if not good],
            }
        )
    return rows


class Failing(ct.Model):
    """A model that breaks in a share of its requests, by the text and how often it was asked."""

    def __init__(self, inner: ct.Model, rate: float) -> None:
        self._inner, self._rate = inner, rate
        self._asked: Counter[str] = Counter()

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        """The recorded reply, or none."""
        text = request.messages[-1].text
        self._asked[text] += 1
        if Random(f"{text} {self._asked[text]}").random() < self._rate:
            raise RuntimeError("the connection was reset")
        return await self._inner.chat(request)


def replay(model: ct.Model, count: int) -> list[Row]:
    """Recorded models and questions of which nothing was seen in training."""
    recording = concertino_replay.read(DATA)
    tasks = [Task(q.id, q.text, (q.gold,), "number") for q in recording.questions.values()][-count:]
    specs = {spec.name: spec for spec in concertino_replay.models(DATA, prices=PRICES)}
    pool = ct.Pool([specs[name] for name in NAMES])
    known = [Task(q.id, q.text, (q.gold,), "number") for q in recording.questions.values()][: min(120, count)]
    described = pool.describe({name: _share_of(name, pool, known) for name in NAMES})
    rows = []
    for system in systems(pool, ["single-model", "majority-vote"], answers="number", leader=STRONG):
        found = asyncio.run(outcomes(system, pool, tasks)).values()
        rows.append(
            {
                "what": f"replay, {system.name}",
                "questions": len(tasks),
                "right": fmean(o.right for o in found),
                "usd": fmean(o.usd for o in found),
                "calls": fmean(o.calls for o in found),
            }
        )
    short = ct.Pool([specs[name].with_(name=called) for name, called in NAMES.items()])
    broken = ct.Pool([spec.with_(factory=lambda spec=spec: Failing(spec.factory(), 0.2)) for spec in pool.models])
    teacher = ConductorTeacher([Assignee(name, "task") for name, _ in pool.offering("*").actions])
    for what, leader, size, members, arrange in (
        ("teacher, one question a run", teacher, 1, pool, None),
        ("tiny, one question a run", model, 1, pool, None),
        ("tiny, one question a run, short names", model, 1, short, None),
        ("tiny, four questions a run", model, 4, pool, None),
        ("tiny, four questions a run, 20% of calls fail", model, 4, broken, None),
        ("tiny, one question a run, shuffled", model, 1, described, _shuffled),
        ("tiny, one question a run, shuffled, behind the scorer", model, 1, described, _ranked),
    ):
        found = asyncio.run(conducted(leader, members.offering("*"), tasks, size, arrange))
        rows.append({"what": f"replay, {what}", **found})
    return rows


def _share_of(name: str, pool: ct.Pool, tasks: list[Task]) -> str:
    """What a description says of a recorded model, from questions that are not measured."""
    found = asyncio.run(outcomes(System(name, "single-model", model=name), pool, tasks)).values()
    right = sum(each.right for each in found)
    return f"Answered {right} of {len(tasks)} questions of grade-school mathematics correctly."


_BEST_LAST = ct.Shortlist("scorer/best", best="last")


def _shuffled(question: str, pool: ct.Pool) -> ct.Pool:
    return unseen_pool(pool, ["order"], question)


def _ranked(question: str, pool: ct.Pool) -> ct.Pool:
    return _BEST_LAST(question, _shuffled(question, pool))


REPLIES = (
    "The answer is {}.",
    "#### {}",
    "\\boxed{{{}}}",
    "I worked it out step by step. The answer is {}.",
    "First I counted the boxes, then I took away what was sold. The answer is {}.",
    "Let me see. There are 12 of them, and 3 more came.\n#### {}",
    "It comes to {}.",
    "In the end there are {} left.",
)
WORDS = (
    "river",
    "north",
    "quiet",
    "amber",
    "stone",
    "maple",
    "harbor",
    "violet",
    "copper",
    "winter",
    "meadow",
    "lantern",
)


def forms(model: ct.Model, count: int) -> list[Row]:
    """Runs over pools that once broke the form of a call or of an answer."""
    leader = ct.Orchestrator(model, strategy(), arrange=_BEST_LAST)
    rows = []
    for what, members, words, most in (
        ("names of four words", 6, 4, 99),
        ("answers of three digits", 4, 1, 999),
        ("models alone", 6, 2, 999),
        ("twenty members", 20, 2, 999),
    ):

        async def one(
            number: int, what: str = what, members: int = members, words: int = words, most: int = most
        ) -> tuple[ct.Run, str]:
            chance = Random(f"forms {what} {number}")
            answer = str(chance.randint(max(10, most // 10 + 1), most))
            names = ["_".join(chance.sample(WORDS, words)) + f"_{place}" for place in range(members)]
            reply = chance.choice(REPLIES).format(answer)
            pool = ct.Pool([_knowing(name, reply, model=what == "models alone") for name in names])
            pool = pool.offering("*") if what == "models alone" else pool
            question = f"How many eggs does {chance.choice(('Ada', 'Ben', 'Cleo'))} have after {number + 2} days?"
            return await leader.run(question, pool=pool), answer

        runs = asyncio.run(several(one, count // 4))
        good = [run.stop == "answered" and is_clean(run) for run, _ in runs]
        right = [boxes(run) == (answer,) for run, answer in runs]
        rows.append(
            {
                "what": f"forms, {what}",
                "runs": len(runs),
                "right": fmean(right),
                "clean": fmean(good),
                "recovered": 0.0,
                "failed": 0,
                "rounds": fmean(len(run.rounds) for run, _ in runs),
                "wrong": [number for number, (a, b) in enumerate(zip(good, right, strict=True)) if not (a and b)],
            }
        )
    return rows


def _knowing(name: str, reply: str, *, model: bool) -> ct.ToolSpec | ct.ModelSpec:
    """A member that always replies the same."""
    description = "Answers questions about sums."
    if model:
        return ct.ModelSpec(name, lambda: _Replying(reply), description=description)
    schema = {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}
    return ct.ToolSpec.from_schema(name, description, schema, lambda arguments: reply)


class _Replying(ct.Model):
    def __init__(self, reply: str) -> None:
        self._reply = reply

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        """Always the same."""
        return ct.Reply(self._reply)


def cards(model: ct.Model, count: int) -> list[Row]:
    """Whom the conductor asks first behind the scorer, by cards of authors that training did not read."""
    from concertino_train.scorer import TEST, CastSettings, Voice, draw_cast, load_topics

    voices, topics = [Voice(author) for author in TEST], load_topics("test")
    leader = ct.Orchestrator(model, strategy(), arrange=_BEST_LAST)
    rows = []
    for size, what in ((6, "as they are"), (20, "as they are"), (6, "permuted"), (6, "reversed")):
        settings = CastSettings(sizes=(size,), modes=("general",), lying=0.0, silent=0.0, gap=0.12)

        async def one(number: int, size: int = size, what: str = what, settings: Any = settings) -> tuple[bool, ct.Run]:
            chance = Random(f"cards {size} {number}")
            cast = draw_cast(voices, topics, chance, settings)
            best = max(range(size), key=lambda place: cast.cards[place].share)
            texts = [card.text for card in cast.cards]
            if what == "permuted":
                # A derangement: each description moves on by the same number of members.
                by = chance.randrange(1, size)
                texts, best = [texts[(place - by) % size] for place in range(size)], (best + by) % size
            members = [_described(card.name, text) for card, text in zip(cast.cards, texts, strict=True)]
            pool = ct.Pool(members[::-1] if what == "reversed" else members)
            run = await leader.run(cast.question, pool=pool, budget=ct.Budget(rounds=2))
            first = next((call.name for round_ in run.rounds for call in round_.plan.calls), "")
            return first == cast.cards[best].name, run

        found = asyncio.run(several(one, count))
        rows.append(
            {
                "what": f"cards, best of {size} first, {what}",
                "runs": count,
                "right": fmean(good for good, _ in found),
                "clean": fmean(is_clean(run) for _, run in found),
                "recovered": 0.0,
                "failed": 0,
                "rounds": fmean(len(run.rounds) for _, run in found),
            }
        )
    return rows


def _described(name: str, description: str) -> ct.ToolSpec:
    schema = {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}
    return ct.ToolSpec.from_schema(name, description, schema, lambda arguments: "The answer is 42.")


async def conducted(
    model: ct.Model, pool: ct.Pool, tasks: Sequence[Task], size: int, arrange: Arrange | None = None
) -> Row:
    """Let the conductor lead over recorded models, some questions a run."""
    groups = [tasks[start : start + size] for start in range(0, len(tasks), size)]
    leader = ct.Orchestrator(model, strategy(), arrange=arrange)

    async def one(number: int) -> ct.Run:
        texts = [task.question for task in groups[number]]
        if size > 1:
            texts = [f"Problem {place}: {' '.join(text.split())}" for place, text in enumerate(texts, start=1)]
        return await leader.run("\n\n".join(texts), pool=pool)

    runs = await several(one, len(groups))
    right = [judged(run, group) for run, group in zip(runs, groups, strict=True)]
    failed = [any(not seen.ok for seen in run.observations) for run in runs]
    after = [good for each, bad in zip(right, failed, strict=True) if bad for good in each]
    return {
        "questions": len(tasks),
        "right": fmean(good for each in right for good in each),
        "clean": fmean(map(is_clean, runs)),
        "recovered": fmean(after) if after else 0.0,
        "failed": sum(failed),
        "usd": sum(run.usage.usd for run in runs) / len(tasks),
        "calls": sum(len(run.observations) for run in runs) / len(tasks),
        "rounds": fmean(len(run.rounds) for run in runs),
    }


def judged(run: ct.Run, group: Sequence[Task]) -> list[bool]:
    """For each question of a run, whether its answer is right."""
    given = [re.sub(r"[^\d.-]", "", box) for box in boxes(run)]
    given += [""] * (len(group) - len(given))
    grader = Numeric()
    return [grader.judge(task, answer).verdict is Verdict.RIGHT for task, answer in zip(group, given, strict=False)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {
        "exercises": (exercises, 200),
        "demo": (demo, 60),
        "replay": (replay, 160),
        "forms": (forms, 1000),
        "cards": (cards, 200),
    }
    parser.add_argument("--only", choices=parts, action="append", help="a part; may be repeated")
    parser.add_argument("--folder", type=Path, default=TINY, help="of the model")
    parser.add_argument(
        "--count", type=int, help="runs, or questions, of each part; by default 200, 60, 160, 1000 and 200"
    )
    parser.add_argument("--quick", action="store_true", help="24 of each part: shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    given = parser.parse_args()
    if "replay" in (given.only or parts) and not DATA.is_dir():
        raise SystemExit(f"{DATA} is not there; point CONCERTINO_TEST_DATA at the folder of data samples")
    model = TinyConductor(given.folder)
    rows: list[Row] = []
    for name in given.only or parts:
        measure, usual = parts[name]
        begun = time.process_time()
        rows += (found := measure(model, given.count or (24 if given.quick else usual)))
        if not given.json:
            print("\n".join(map(line, found)), f"\n  {time.process_time() - begun:.0f} CPU-seconds", flush=True)
    if given.json:
        print(json.dumps({"parameters": model.transformer.parameters, "rows": rows}, indent=1))


def line(row: Row) -> str:
    """A row as text."""
    words = [f"{row['what']:<54}{row.get('runs', row.get('questions'))!s:>4}  right {row['right']:>6.1%}"]
    if "clean" in row:
        words.append(
            f"clean {row['clean']:>6.1%}, after a failed call {row['recovered']:>6.1%} in {row['failed']} runs"
        )
        words.append(f"{row['rounds']:.2f} rounds")
    if "usd" in row:
        words.append(f"{row['calls']:.2f} calls, ${row['usd'] * 1000:.3f} per 1000")
    if row.get("wrong"):
        words.append(f"wrong: {row['wrong']}")
    return ", ".join(words)


if __name__ == "__main__":
    main()
