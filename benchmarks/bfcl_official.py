"""Our official BFCL grader beside the published checker, and beside the published verdicts on recorded outputs.

    python benchmarks/bfcl_official.py --checkout GORILLA --python PYTHON [--cases 6000] [--results BFCL-RESULT]

GORILLA is a checkout of github.com/ShishirPatil/gorilla; PYTHON belongs to an environment with
`pip install tree_sitter==0.21.3 tree-sitter-java==0.21.0 tree-sitter-javascript==0.21.4`. Cases are made from the gold
of BFCL v4: written right, and then changed or written in other ways (seeded). The verdicts of the published checker
come from running it there (`bfcl_published.py`). Nothing of it is part of this project.

BFCL-RESULT is a checkout of github.com/HuanzhiMao/BFCL-Result: what 71 models said in August 2024, with the verdicts of
that day. GORILLA must then have its history, for the gold of that day.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from concertino_bench.graders.bfcl_dialects import dialect_of, read_dialect, underscored
from concertino_bench.graders.bfcl_rules import fault, language_of

CATEGORIES = [
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
    "simple_java",
    "simple_javascript",
]
DATA = "berkeley-function-call-leaderboard/bfcl_eval/data"
OLD_CATEGORIES = [
    "simple",
    "multiple_function",
    "parallel_function",
    "parallel_multiple_function",
    "java",
    "javascript",
    "relevance",
]
OLD_DATA = "berkeley-function-call-leaderboard/data"
# The last commit of the day on which the recorded outputs were scored.
OLD_COMMIT = "de8307b415d5e609be141e38f954a2850be4a4d5"


# -- cases -------------------------------------------------------------------------------------------------------------


def cases(checkout: Path, count: int) -> Iterator[dict[str, Any]]:
    """Constructed cases, the same for the same count."""
    chance = random.Random(20261129)
    rows = [row for category in CATEGORIES for row in _rows(checkout, category)]
    for number in range(count):
        row = rows[number % len(rows)]
        calls = [(next(iter(call)), _given(next(iter(call.values())), chance)) for call in row["gold"]]
        change = chance.choice(CHANGES)
        calls = change(calls, chance)
        source = row["language"] != "python"
        as_data = chance.random() < 0.3 and not source
        case = {**row, "change": change.__name__.strip("_"), "model": "plain", "calls": None, "text": ""}
        if as_data:
            case["model"] = chance.choice(["plain", "underscored"])
            case["calls"] = json.loads(json.dumps([{name: given} for name, given in calls]))
        else:
            write = partial(_source, row["language"], chance) if source else _python
            text = "[" + ", ".join(f"{name}({_joined(given, write)})" for name, given in calls) + "]"
            case["text"] = text if source and chance.random() < 0.7 else chance.choice(WRAPPINGS)(text)
        yield case


def _rows(checkout: Path, category: str) -> list[dict[str, Any]]:
    folder = checkout / DATA
    name = f"BFCL_v4_{category}.json"
    questions = _lines(folder / name)
    answers = _lines(folder / "possible_answer" / name)
    gold = {row["id"]: row["ground_truth"] for row in answers}
    return [
        {
            "category": category,
            "language": language_of(category),
            "functions": row["function"],
            "gold": gold[row["id"]],
            "id": row["id"],
        }
        for row in questions
    ]


def _given(accepted: dict[str, list[Any]], chance: random.Random) -> dict[str, Any]:
    """Arguments that the gold takes."""
    given = {}
    for name, values in accepted.items():
        if "" in values and (chance.random() < 0.5 or len(values) == 1):
            continue
        options = [value for value in values if value != ""]
        if options:
            given[name] = _plain(chance.choice(options))
    return given


def _plain(value: Any) -> Any:
    """A value of the gold as a model would give it: the names of an object have lists of accepted values."""
    if isinstance(value, dict):
        listed = all(isinstance(options, list) and options for options in value.values())
        if listed:
            return {name: _plain(options[0]) for name, options in value.items() if options[0] != ""}
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


Calls = list[tuple[str, dict[str, Any]]]


class _Bare(str):
    """A text that is written without quotes: an expression or a bare word."""


def _same(calls: Calls, chance: random.Random) -> Calls:
    return calls


def _reordered(calls: Calls, chance: random.Random) -> Calls:
    return [(name, dict(sorted(given.items(), reverse=True))) for name, given in reversed(calls)]


def _one_left_out(calls: Calls, chance: random.Random) -> Calls:
    return calls[:-1]


def _one_twice(calls: Calls, chance: random.Random) -> Calls:
    return [*calls, calls[0]]


def _of_one(calls: Calls, chance: random.Random, change: Callable[[dict[str, Any], str], None]) -> Calls:
    place = chance.randrange(len(calls))
    name, given = calls[place]
    given = dict(given)
    if given:
        change(given, chance.choice(list(given)))
    return [*calls[:place], (name, given), *calls[place + 1 :]]


def _argument_left_out(calls: Calls, chance: random.Random) -> Calls:
    return _of_one(calls, chance, lambda given, key: given.pop(key))


def _argument_added(calls: Calls, chance: random.Random) -> Calls:
    extra = chance.choice(["verbose", "unit", "limit", "name"])
    return _of_one(calls, chance, lambda given, key: given.setdefault(extra, chance.choice([1, "x", True])))


def _other_name(calls: Calls, chance: random.Random) -> Calls:
    change = chance.choice([lambda name: name.replace(".", "_"), lambda name: name + "s", str.upper])
    return [(change(name), given) for name, given in calls]


def _other_value(calls: Calls, chance: random.Random) -> Calls:
    def change(given: dict[str, Any], key: str) -> None:
        given[key] = _different(given[key], chance)

    return _of_one(calls, chance, change)


def _other_writing(calls: Calls, chance: random.Random) -> Calls:
    def change(given: dict[str, Any], key: str) -> None:
        given[key] = _rewritten(given[key], chance)

    return _of_one(calls, chance, change)


def _other_type(calls: Calls, chance: random.Random) -> Calls:
    def change(given: dict[str, Any], key: str) -> None:
        value = given[key]
        other = [str(value), [value], None, {"value": value}, True, 0, 1.5, "", []]
        given[key] = chance.choice(other)

    return _of_one(calls, chance, change)


def _expression(calls: Calls, chance: random.Random) -> Calls:
    def change(given: dict[str, Any], key: str) -> None:
        value = given[key]
        options = ["x", "items[0]", "f(1)", "g(a=1)", "1+1", "'a' + 'b'", "-5", "not True", "...", "lambda: 1", "a.b"]
        if isinstance(value, str) and value.isidentifier():
            options = [value]
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            options = [f"{value} * 1", f"{value} + 0", f"{value * 2} / 2", f"+{value}", f"-{value}", f"({value})"]
        elif isinstance(value, list):
            options = [f"tuple({value})", f"{tuple(value)!r}", f"{value} + []", f"list({value})", f"{value}[0]"]
        given[key] = _Bare(chance.choice(options))

    return _of_one(calls, chance, change)


CHANGES = (
    *[_same] * 2,
    _reordered,
    _one_left_out,
    _one_twice,
    *[_argument_left_out] * 2,
    _argument_added,
    _other_name,
    *[_other_value] * 2,
    *[_other_writing] * 4,
    *[_other_type] * 2,
    *[_expression] * 2,
)


def _different(value: Any, chance: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + chance.choice([1, -1, 0.5])
    if isinstance(value, str):
        return chance.choice([value + "x", value[1:], value[::-1], "Paris"])
    if isinstance(value, list):
        return chance.choice([value[:-1], value + value[:1], value[::-1]])
    if isinstance(value, dict):
        return chance.choice([dict(list(value.items())[:-1]), {**value, "more": 1}, {}])
    return "none"


def _rewritten(value: Any, chance: random.Random) -> Any:
    """The same value in the eyes of some reader."""
    if isinstance(value, bool):
        return chance.choice([int(value), str(value).lower(), value])
    if isinstance(value, int):
        return chance.choice([float(value), str(value), value])
    if isinstance(value, float):
        return chance.choice([int(value), str(value), round(value, 1)])
    if isinstance(value, str):
        changes: list[Callable[[str], str]] = [str.upper, str.title, lambda text: text.replace(" ", "")]
        changes += [lambda text: text.replace(",", ""), lambda text: f" {text}. ", lambda text: text.replace("-", "_")]
        changes += [lambda text: text + "\n", lambda text: text.replace('"', "'"), lambda text: text + "!"]
        return chance.choice(changes)(value)
    if isinstance(value, list):
        return chance.choice([[_rewritten(item, chance) for item in value], [*map(str, value)], _joined_text(value)])
    if isinstance(value, dict):
        return {name: _rewritten(item, chance) for name, item in value.items()}
    return value


def _joined_text(value: list[Any]) -> str:
    return ", ".join(map(str, value))


def _joined(given: dict[str, Any], write: Callable[[Any], str]) -> str:
    return ", ".join(f"{name}={write(value)}" for name, value in given.items())


def _python(value: Any) -> str:
    return str(value) if isinstance(value, _Bare) else repr(value)


def _source(language: str, chance: random.Random, value: Any) -> str:
    """A value as source of Java or JavaScript, in one of its forms."""
    if isinstance(value, _Bare):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        bare = value.replace(".", "").isidentifier() or chance.random() < 0.1
        return value if bare else json.dumps(value)
    if isinstance(value, (int, float)):
        return f"{value}{chance.choice(['', '', 'L', 'f', 'n'])}"
    if value is None or chance.random() < 0.2:
        return json.dumps(value)
    return (_java if language == "java" else _script)(chance, value)


def _java(chance: random.Random, value: Any) -> str:
    if isinstance(value, dict):
        puts = " ".join(f"put({json.dumps(name)}, {_source('java', chance, item)});" for name, item in value.items())
        return chance.choice(["new HashMap<String, String>() {{ %s }}", "new HashMap<>()%.0s"]) % puts
    items = ", ".join(_source("java", chance, item) for item in value)
    adds = " ".join(f"add({_source('java', chance, item)});" for item in value)
    forms = [f"new ArrayList<>(Arrays.asList({items}))", f"new int[]{{{items}}}", f"Arrays.asList({items})"]
    forms += [f"new ArrayList<String>() {{{{ {adds} }}}}", "new ArrayList<>()", f"new String[] {{{items}}}"]
    return chance.choice(forms)


def _script(chance: random.Random, value: Any) -> str:
    if isinstance(value, dict):
        quote = chance.choice(["", '"', "'"])
        pairs = (f"{quote}{name}{quote}: {_source('javascript', chance, item)}" for name, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    items = ", ".join(_source("javascript", chance, item) for item in value)
    return chance.choice([f"[{items}]", f"[ {items} ]", f"new Array({items})"])


WRAPPINGS: tuple[Callable[[str], str], ...] = (
    *[lambda text: text] * 6,
    lambda text: text[1:-1],
    lambda text: f"```\n{text}\n```",
    lambda text: f"```python\n{text}\n```",
    lambda text: f"`{text}`",
    lambda text: f"\n\n {text} \n",
    lambda text: f"'{text}'",
    lambda text: text.replace("), ", "),\n "),
    lambda text: f"Here is the call: {text}",
    lambda text: text[:-2],
    lambda text: json.dumps([text]),
    lambda text: text + ";",
    lambda text: text.replace("_", "\\_"),
)


# -- verdicts ----------------------------------------------------------------------------------------------------------


def ours(case: dict[str, Any]) -> str:
    """Why a case is wrong, by our grader; empty where it is right."""
    try:
        calls = case["calls"]
        calls = read_dialect(case["text"], "prompted", case["language"]) if calls is None else calls
    except ValueError as error:
        return str(error)
    return fault(calls, case["gold"], case["functions"], case["category"], case["model"] == "underscored")


def theirs(made: list[dict[str, Any]], checkout: Path, python: str) -> list[bool | None]:
    """The verdicts of the published checker."""
    program = Path(__file__).with_name("bfcl_published.py")
    lines = "".join(json.dumps(case) + "\n" for case in made)
    done = subprocess.run(
        [python, str(program), str(checkout)], input=lines, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"the published checker did not run:\n{done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line in ("true", "false", "null")]


def compare(checkout: Path, python: str, count: int, show: int) -> None:
    """Print how often the verdicts on constructed cases agree."""
    made = list(cases(checkout, count))
    published = theirs(made, checkout, python)
    if len(published) != len(made):
        raise SystemExit(f"{len(published)} verdicts for {len(made)} cases")
    table: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for case, verdict in zip(made, published, strict=True):
        if verdict is None:
            table[case["category"]]["stopped"] += 1
            continue
        why = ours(case)
        agrees = verdict is (not why)
        table[case["category"]].update(cases=1, right=verdict, agree=agrees)
        if not agrees and show:
            show -= 1
            said = case["text"] or json.dumps(case["calls"])
            print(f"{case['id']} {case['change']}: published {verdict}, ours {why or 'right'}\n    {said[:600]}")
            print(f"    gold {json.dumps(case['gold'])[:400]}")
    print(f"{'category':24} {'cases':>6} {'right':>6} {'agree':>6} {'stopped':>8}")
    total: collections.Counter[str] = collections.Counter()
    for category, counts in table.items():
        total.update(counts)
        print(f"{category:24} {counts['cases']:6} {counts['right']:6} {counts['agree']:6} {counts['stopped']:8}")
    print(f"{'all':24} {total['cases']:6} {total['right']:6} {total['agree']:6} {total['stopped']:8}")


# -- recorded outputs --------------------------------------------------------------------------------------------------


def recorded(results: Path, checkout: Path) -> None:
    """Print our accuracy beside the published one for each model of the recorded outputs."""
    worst = 0.0
    tasks = {category: _old_rows(checkout, category) for category in OLD_CATEGORIES}
    print(f"{'model':48} {'rows':>6} {'ours':>6} {'theirs':>6} {'differ':>6}  dialect")
    for folder in sorted((results / "2024-08-11" / "result").iterdir()):
        counts: collections.Counter[str] = collections.Counter()
        dialect = dialect_of(folder.name)
        for category in OLD_CATEGORIES:
            score = _lines(results / "2024-08-11" / "score" / folder.name / f"{category}_score.json")
            wrong, names = {row["id"] for row in score[1:]}, underscored(dialect)
            said = _lines(folder / f"gorilla_openfunctions_v1_test_{category}_result.json")
            for number, (row, (functions, gold)) in enumerate(zip(said, tasks[category], strict=True), 1):
                try:
                    calls = read_dialect(row["result"], dialect, language_of(category))
                except ValueError:
                    calls = []
                right = not calls if category == "relevance" else not fault(calls, gold, functions, category, names)
                counts.update(rows=1, ours=right, theirs=number not in wrong, differ=right is (number in wrong))
        mine, other = (100 * counts[name] / counts["rows"] for name in ("ours", "theirs"))
        worst = max(worst, abs(mine - other))
        line = f"{folder.name:48} {counts['rows']:6} {mine:6.2f} {other:6.2f} {counts['differ']:6}"
        print(f"{line}  {dialect}")
    print(f"farthest apart: {worst:.2f} points")


def _old_rows(checkout: Path, category: str) -> list[tuple[list[Any], list[Any]]]:
    name = f"gorilla_openfunctions_v1_test_{category}.json"
    questions = _parsed(_show(checkout, f"{OLD_DATA}/{name}"))
    # What was called "relevance" then is right without a call.
    if category == "relevance":
        return [([], [])] * len(questions)
    answers = _parsed(_show(checkout, f"{OLD_DATA}/possible_answer/{name}"))
    rows = []
    for question, answer in zip(questions, answers, strict=True):
        functions = question["function"] if isinstance(question["function"], list) else [question["function"]]
        gold = []
        for name, accepted in answer["ground_truth"].items():
            # Gold of that day numbers the calls of one function: `f_1`, `f_2`.
            known = next((each["name"] for each in functions if each["name"] in name), name)
            gold.append({known: accepted})
        rows.append((functions, gold))
    return rows


def _show(checkout: Path, path: str) -> str:
    command = ["git", "-C", str(checkout), "show", f"{OLD_COMMIT}:{path}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _lines(path: Path) -> list[Any]:
    return _parsed(path.read_text())


def _parsed(text: str) -> list[Any]:
    # Not splitlines(): texts hold other line ends.
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def main() -> None:
    """Read the options and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--cases", type=int, default=6000)
    parser.add_argument("--show", type=int, default=0, help="disagreements to print")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    if options.cases:
        compare(options.checkout, options.python, options.cases, options.show)
    if options.results:
        recorded(options.results, options.checkout)


if __name__ == "__main__":
    main()
