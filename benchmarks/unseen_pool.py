"""An unseen pool: a policy is trained on some recorded models and evaluated on others; only the pool file changes.

    python benchmarks/unseen_pool.py --recordings pool.jsonl [--seeds 3] [--json] [--out DIR] [--quick]

The recording holds one question in a line with the outputs of all models (see `concertino_replay`). Its models are
sorted by how many training questions they got right, and dealt out in turn to two pool files, A and B, so that both
have strong and weak ones. A small policy is made from nothing, taught by a scripted leader that follows descriptions in
half of its runs, over variants of the pool whose cards are true or invented, and reinforced to be right at little cost,
once over A and once over B. Each is measured over both files, on questions that no training had, beside majority vote,
cascade, the scripted leader, every single model and the oracle.

What is reported: the share of right answers with a bootstrap interval over questions, $ and calls for each question,
and the difference to the majority vote on the same questions. No weights of a real model are used: *untrained* is the
same small policy before training. Prices are those of the recording, or those assumed in `baselines.py`; tokens that
were not recorded are estimated. The policy's own tokens cost what `model.prices` of `settings` says.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import concertino as ct
import concertino_replay
from concertino_bench import Item, Key, System, installed_graders, installed_task_sets
from concertino_bench.baselines import systems
from concertino_bench.metrics import METRICS, compare, intervals
from concertino_bench.reports import read_results
from concertino_bench.runner import Evaluation, evaluate, make_selection
from concertino_train.collection import run_collection
from concertino_train.config import TrainConfig, load_config
from concertino_train.config.named import make_strategy
from concertino_train.evaluation import run_eval
from concertino_train.factories.pools import make_pool
from concertino_train.rl import run_rl
from concertino_train.sft import run_sft
from unseen_members import Leader, shown

DATA = Path(os.environ.get("CONCERTINO_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
RECORDINGS = DATA / "replay_pool_gsm8k" / "pool.jsonl"
HALVES = ("A", "B")
VERDICT = "numeric_correct"
VOTE, ORACLE = "majority-vote", "oracle: the cheapest model that is right"
TRAINED, TAUGHT, UNTRAINED = "trained", "taught only", "untrained"


@dataclass(frozen=True)
class Size:
    """How large the measurement is.

    Attributes:
        train: questions that trainings and cards have; all others are measured on.
        variants: pools that the leader works with, half of them with invented cards; reinforcement learning has others,
            and nearly twice as many.
        asked: questions that it works on with each.
        teach, steps: steps of supervised and of reinforcement learning.
        questions, group: of a step, and rollouts of each question.
        layers, hidden, vocabulary: of the policy.
        force: reinforce although the audit finds nothing to learn from, as it does where next to nothing was taught.
    """

    train: int = 200
    variants: int = 32
    asked: int = 24
    teach: int = 250
    steps: int = 20
    questions: int = 8
    group: int = 8
    layers: int = 2
    hidden: int = 64
    vocabulary: int = 1280
    force: bool = False


QUICK = Size(
    train=8, variants=3, asked=4, teach=3, steps=1, questions=2, group=2, layers=1, hidden=16, vocabulary=900,
    force=True,
)  # fmt: skip
"""Shows that the whole chain works; nothing is learnt."""


@dataclass(frozen=True)
class Line:
    """One system over one pool.

    Attributes:
        pool: A or B.
        system: its name; of a policy, what it was trained on stands in `on`.
        on: the pool that a policy was trained on; empty for others.
        right: share of right answers, mean over seeds, with the ends of its interval over questions.
        usd, calls: mean of a question.
        seeds: share of right answers of each seed.
        ahead, ahead_low, ahead_high: how much more is right than with the majority vote, on the same questions.
        saved, saved_low, saved_high: likewise how many $ a question costs less.
    """

    pool: str
    system: str
    on: str
    right: float
    low: float
    high: float
    usd: float
    calls: float
    seeds: tuple[float, ...] = ()
    ahead: float | None = None
    ahead_low: float | None = None
    ahead_high: float | None = None
    saved: float | None = None
    saved_low: float | None = None
    saved_high: float | None = None


# -- files ---------------------------------------------------------------------------------------------------------


def write_files(recordings: Path, out: Path, size: Size) -> dict[str, list[str]]:
    """Write the questions, what each model got right of the training ones, and the two pool files.

    Args:
        recordings: a file of recorded answers with verdicts.
        out: folder.
        size: says how many questions are for training.

    Returns:
        Pool names of the models of each pool.

    Raises:
        SystemExit: there are too few models or questions.
    """
    recording = concertino_replay.read(recordings)
    questions = list(recording.questions.values())
    if len(recording.models) < 4 or len(questions) < size.train + 2:
        raise SystemExit(
            f"{recordings}: {len(recording.models)} models, {len(questions)} questions; expected 4 or more models, and "
            f"more than {size.train + 1} questions"
        )
    for name, part in (("train", questions[: size.train]), ("test", questions[size.train :])):
        rows = ({"id": each.id, "question": each.text, "answer": each.gold} for each in part)
        (out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    wanted = {each.id for each in questions[: size.train]}
    right: dict[str, list[bool]] = {}
    named = dict(zip(recording.models, (spec.name for spec in concertino_replay.models(recordings)), strict=True))
    verdict = VERDICT if VERDICT in recording.verdict_names() else ""
    for row in recording.rows(verdict) if verdict else recording.rows():
        if row["id"] in wanted:
            right.setdefault(f"replay/{named[row['model']]}", []).append(bool(row["correct"]))
    (out / "outcomes.json").write_text(json.dumps(right), encoding="utf-8")
    best_first = sorted(right, key=lambda name: -statistics.fmean(right[name]))
    halves = {half: best_first[place::2] for place, half in enumerate(HALVES)}
    for half, models in halves.items():
        _write_pool(recordings, out / f"{half}.toml", models, right)
    return halves


def _write_pool(recordings: Path, file: Path, models: Sequence[str], right: Mapping[str, list[bool]]) -> None:
    """A pool file of some models, the strongest neither first nor last."""
    from baselines import PRICES

    order = [*models[1:2], *models[:1], *models[2:]]
    lines = [f"members = {json.dumps(order)}", "", "[providers.replay]", f"files = [{json.dumps(str(recordings))}]"]
    for name in order:
        price = PRICES.get(name.removeprefix("replay/"))
        if price is not None:
            lines += ["", f"[prices.{json.dumps(name)}]", f"input = {price.input}", f"output = {price.output}"]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    shown(ct.Pool.load(file), right).save(file)


# -- training ------------------------------------------------------------------------------------------------------


def settings(out: Path, half: str, seed: int, size: Size) -> dict[str, Any]:
    """The settings of a training over one pool file."""
    made = {"name": "unseen_members:variant", "file": str(out / f"{half}.toml"), "outcomes": str(out / "outcomes.json")}
    columns = {"question": "question", "answer": "answer", "id": "id", "kind": "number"}
    tasks = {
        name: {"set": "jsonl", "options": {"path": str(out / f"{name}.jsonl"), **columns}} for name in ("train", "test")
    }
    spent = {"term": "shared/spending", "of": "usd", "limit": 0.05, "money": "calls"}
    rounds = {"name": "parallel-rounds", "prompt": "brief", "references": True, "show_budget": False, "max_rounds": 1,
              "observation_tokens": 40, "max_unreadable_replies": 2}  # fmt: skip
    return {
        "name": f"unseen-pool-{half}",
        "about": "whom to ask, over recorded models",
        "model": {
            "new": {"layers": size.layers, "hidden": size.hidden, "heads": 4, "context": 1024,
                    "vocabulary": size.vocabulary},
            "prices": {"input": 0.01, "output": 0.04},
        },
        "pool": {"make": made, "variation": {"make": [{"number": 1000 + n} for n in range(1, 2 * size.variants)]}},
        "tasks": {"train": [tasks["train"]], "eval": [tasks["test"]]},
        "data": {
            "collect": {"teacher": {"name": "unseen_members:Leader"}, "samples": 1},
            "select": {"recovery": "any", "tool_share": None},
        },
        "rollout": {"strategy": rounds, "group_size": size.group, "turn_tokens": 48, "total_tokens": 96},
        "reward": {"terms": {"correct": {"term": "shared/correct"}, "money": spent}},
        "trainer": {
            "output": str(out / f"{half}-{seed}"), "seed": seed, "device": "cpu", "threads": 1,
            "sft": {"steps": size.teach, "batch": 16, "micro_batch": 16, "learning_rate": 3e-3, "warmup": 10,
                    "save_every": size.teach, "eval_every": size.teach + 1},
            "rl": {"steps": size.steps, "questions_per_step": size.questions, "micro_batch": 16,
                   "learning_rate": 2e-4, "save_every": size.steps},
        },
        "logging": {"traces": {"every": 0}, "plot_every": 0},
    }  # fmt: skip


def train(out: Path, half: str, seed: int, size: Size) -> dict[str, Any]:
    """Collect, teach and reinforce over one pool file.

    Returns:
        The folders of the weights, `taught` and `trained`, and what it took.

    Raises:
        SystemExit: it was asked to stop.
    """
    base, began = settings(out, half, seed, size), (time.monotonic(), time.process_time())
    home, sets = Path(base["trainer"]["output"]), []
    selection = base["tasks"]["train"][0]
    for number in range(1, size.variants + 1):
        cards = f"pool.make.invented={json.dumps(number % 2 == 0)}"
        work = load_config(base, [f"pool.make.number={number}", cards, "pool.variation={}"])
        drawn = json.dumps([{**selection, "limit": size.asked, "seed": 1000 * seed + number}])
        asked = load_config(work.resolved(), [f"data.collect.tasks={drawn}"])
        made = run_collection(asked, output=home / f"leader-{number}")
        sets += [made.set] if made.set is not None else []
    learning = load_config(base, ["tasks.eval=[]"])
    taught = run_sft(learning, sets=sets)
    if taught.model is None:
        raise SystemExit(f"stopped by {taught.stopped}")
    told = time.process_time() - began[1]
    reinforcing = load_config(base, [f"model.path={taught.model}", "tasks.eval=[]"])
    trained = run_rl(reinforcing, output=home / "rl", force=size.force)
    if trained.model is None:
        raise SystemExit(f"stopped by {trained.stopped}")
    return {
        "half": half, "seed": seed, "taught": str(taught.model), "trained": str(trained.model), "examples": taught.rows,
        "taught_cpu_seconds": round(told, 1), "trained_cpu_seconds": trained.cpu_seconds,
        "reward": trained.figures.get("reward"), "warnings": trained.warnings,
        "seconds": round(time.monotonic() - began[0], 1),
    }  # fmt: skip


# -- measuring -----------------------------------------------------------------------------------------------------


def measured(config: TrainConfig, model: str, file: Path, name: str, sample: int) -> list[Item]:
    """A policy over a pool file: `run_eval`, with nothing changed but the file.

    Args:
        config: of the training.
        model: folder of the weights; empty for new ones.
        file: the pool file.
        name: of the system in the results.
        sample: what its items are counted as, for seeds are samples here.
    """
    chosen = load_config(config.resolved(), [f"model.path={model}"]) if model else config
    label = f"{name} {file.stem} {sample}".replace(" ", "-")
    found = run_eval(chosen, output=Path(config.trainer.output) / "eval", system=label, pool=file)
    items = read_results(found.results).items
    return [replace(each, key=Key(name, each.key.task, sample)) for each in items]


def baselines(out: Path, half: str, config: TrainConfig) -> list[Item]:
    """What needs no training, over one pool file: votes, cascade, scripted leaders, single models, the oracle."""
    pool = ct.Pool.load(out / f"{half}.toml")
    strategy = make_strategy(config.rollout.strategy)
    found = systems(pool, ["single-model", VOTE, "cascade"], answers="number")
    found += [
        System("scripted leader, as it teaches", strategy, Leader(pool, strategy)),
        System("scripted leader, asks all, believes a card", strategy, Leader(pool, strategy, everyone=True)),
    ]
    entry = config.tasks.eval[0].model_dump(exclude_none=True)
    selection = make_selection(entry, installed_task_sets(), "tasks", Path())
    wanted = Evaluation([selection], found, title="unseen pool: baselines")
    path = out / f"baselines-{half}.jsonl"
    items = list(asyncio.run(evaluate(wanted, pool, path, graders=installed_graders())).items)
    singles = [each for each in items if each.key.system.startswith("single-model:")]
    return [*items, *_oracle(singles)]


def _oracle(singles: Sequence[Item]) -> list[Item]:
    """Of each question the cheapest model that is right, as if one knew."""
    by_task: dict[str, list[Item]] = {}
    for each in singles:
        by_task.setdefault(each.key.task, []).append(each)
    chosen = [
        min([each for each in some if each.right] or some, key=lambda each: each.usage.usd) for some in by_task.values()
    ]
    return [replace(each, key=Key(ORACLE, each.key.task, 0)) for each in chosen]


def repeated_verdicts(items: Sequence[Item], recordings: Path) -> tuple[int, int]:
    """How many of the recorded verdicts the grader repeats, of single models; and how many there are."""
    recording = concertino_replay.read(recordings)
    verdict = VERDICT if VERDICT in recording.verdict_names() else ""
    rows = list(recording.rows(verdict) if verdict else recording.rows())
    named = dict(zip(recording.models, (spec.name for spec in concertino_replay.models(recordings)), strict=True))
    known = {(f"single-model:{named[row['model']]}", row["id"]): row["correct"] for row in rows}
    singles = [each for each in items if each.key.system.startswith("single-model:")]
    pairs = [(each.right, known[each.key.system, each.key.task]) for each in singles]
    return sum(mine is theirs for mine, theirs in pairs), len(pairs)


def summarised(pool: str, items: Sequence[Item], on: str = "", vote: Sequence[Item] = ()) -> Line:
    """The line of one system: its items of all seeds, which are its samples."""
    system, samples = items[0].key.system, sorted({each.key.sample for each in items})
    (right,) = intervals(items, [METRICS["accuracy"]])
    seeds = tuple(round(statistics.fmean(e.right for e in items if e.key.sample == n), 4) for n in samples)
    usd = statistics.fmean(each.usage.usd for each in items)
    calls = statistics.fmean(sum(use.calls for use in each.members.values() if use.kind == "model") for each in items)
    line = Line(pool, system, on, right.value or 0.0, right.low or 0.0, right.high or 0.0, usd, calls, seeds)
    if not vote:
        return line
    same = [replace(each, key=Key(VOTE, each.key.task, n)) for n in samples for each in vote]
    ahead, spent = compare([*same, *items], VOTE, system, [METRICS["accuracy"], METRICS["usd"]]).differences
    ends = {"ahead": ahead.difference, "ahead_low": ahead.low, "ahead_high": ahead.high}
    less = None if spent.difference is None else -spent.difference
    money = {"saved": less, "saved_low": _minus(spent.high), "saved_high": _minus(spent.low)}
    return replace(line, **ends, **money)


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


def measure(recordings: Path, out: Path, seeds: int, size: Size) -> dict[str, Any]:
    """Everything: files, baselines, trainings, evaluations; progress goes to stderr.

    Args:
        recordings: the file of recorded answers.
        out: folder for what is made; it should be empty.
        seeds: trainings over each pool.
        size: of all of it.
    """
    began = time.process_time()
    halves = write_files(recordings, out, size)
    files = {half: out / f"{half}.toml" for half in HALVES}
    configs = {half: load_config(settings(out, half, 0, size)) for half in HALVES}
    plain = {half: baselines(out, half, configs[half]) for half in HALVES}
    votes = {half: [each for each in plain[half] if each.key.system == VOTE] for half in HALVES}
    agreed, verdicts = repeated_verdicts([each for half in HALVES for each in plain[half]], recordings)
    policies: dict[tuple[str, str, str], list[Item]] = {}
    for half in HALVES:
        policies[half, "", UNTRAINED] = measured(configs[half], "", files[half], UNTRAINED, 0)
    trainings = []
    for half in HALVES:
        for seed in range(seeds):
            done = train(out, half, seed, size)
            trainings.append(done)
            config = load_config(settings(out, half, seed, size))
            for over in HALVES:
                for name, model in ((TAUGHT, done["taught"]), (TRAINED, done["trained"])):
                    found = measured(config, model, files[over], name, seed)
                    policies.setdefault((over, half, name), []).extend(found)
            print(f"  {half}, seed {seed}: {done['seconds']:.0f} s", file=sys.stderr, flush=True)
    lines = [summarised(over, items, half, votes[over]) for (over, half, _), items in policies.items()]
    for half, items in plain.items():
        for name in dict.fromkeys(each.key.system for each in items):
            own = [each for each in items if each.key.system == name]
            lines.append(summarised(half, own, vote=() if name == VOTE else votes[half]))
    return {
        "halves": halves, "pools": {half: make_pool(configs[half].pool).id for half in HALVES}, "seeds": seeds,
        "size": asdict(size), "questions": len(votes["A"]), "agreed": agreed, "verdicts": verdicts,
        "lines": [asdict(each) for each in lines], "trainings": trainings,
        "cpu_seconds": round(time.process_time() - began, 1),
    }  # fmt: skip


def table(found: Mapping[str, Any]) -> str:
    """The figures as text."""
    lines = [f"{found['questions']} questions; the grader repeats {found['agreed']} of {found['verdicts']} verdicts"]
    for half in HALVES:
        lines += ["", f"pool {half}: {', '.join(found['halves'][half])}"]
        head = f"{'system':<50}{'right':>7}  {'interval':<17}{'$ per 1000':>11}{'models':>7}"
        lines.append(f"{head}  more right than the vote; seeds")
        for each in (Line(**line) for line in found["lines"] if line["pool"] == half):
            seen = {"": "", half: f" on {half}"}.get(each.on, f" on {each.on}: an unseen pool")
            text = f"{each.system + seen:<50}{each.right:>7.1%}  [{each.low:>6.1%}, {each.high:>6.1%}] "
            text += f"{1000 * each.usd:>11.3f}{each.calls:>7.2f}"
            if each.ahead is not None and each.ahead_low is not None and each.ahead_high is not None:
                text += f"  {each.ahead:+.1%} [{each.ahead_low:+.1%}, {each.ahead_high:+.1%}]"
            several = "; " + ", ".join(f"{seed:.1%}" for seed in each.seeds) if len(each.seeds) > 1 else ""
            lines.append(text + several)
    cpu = ", ".join(f"{each['half']}{each['seed']} {each['taught_cpu_seconds']:.0f} + {each['trained_cpu_seconds']:.0f}"
                    for each in found["trainings"])  # fmt: skip
    return "\n".join([*lines, "", f"CPU-seconds of learning: {cpu}; of everything {found['cpu_seconds']:.0f}"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, help="recorded answers, JSON Lines")
    parser.add_argument("--seeds", type=int, default=3, help="trainings over each pool")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("--out", type=Path, help="folder that keeps pools, sets, weights and results")
    parser.add_argument("--quick", action="store_true", help="a tiny size: shows that the whole chain works")
    options = parser.parse_args()
    if not options.recordings.is_file():
        raise SystemExit(
            f"{options.recordings} is not there; give --recordings FILE: one JSON object in each line, "
            '{"question_id", "question", "gold", "models": {NAME: {"output", "numeric_correct"}}}, or any other form '
            "of concertino-replay with verdicts; CONCERTINO_TEST_DATA may name the folder of data samples"
        )
    with tempfile.TemporaryDirectory() as folder:
        out = (options.out or Path(folder)).resolve()
        out.mkdir(parents=True, exist_ok=True)
        found = measure(options.recordings.resolve(), out, options.seeds, QUICK if options.quick else Size())
    print(json.dumps(found, indent=1) if options.json else table(found))


if __name__ == "__main__":
    main()
