"""Print the figures by which the tree is kept in order.

    python scripts/house.py [--json] [--all] [--mypy]

All figures are read from the files of the tree, except the walk of one question, which runs. *Source* is Python in the
packages of the SDK, the providers and the contrib distributions, without tests, docs and benchmarks. The table comes
first, then the places behind each figure, a dozen of each. `--all` prints every place, `--json` prints data, `--mypy`
also runs mypy over every source tree. The words entry, circle, repeat and hop are defined in `import_graph.py`,
`repeats.py` and `walk.py`.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from import_graph import Imports, back_edges, distributions, layers, levels
from repeats import repeats
from tree import ROOT, comments, tree_files

SHOWN = 12
"""How many lines of detail stand below each figure, unless all are asked for."""

STRATEGIES = ("parallel-rounds", "agent-graph", "dependency-plan", "serial-calls", "role-workflow")
AT_HOME = re.compile(r"^docs/|/recipes/|(^|/)strategies/|^tests/docs/|^scripts/house.py$")
"""Where a built-in strategy may be named: its package and the tests of it, documents, recipes of training."""


@dataclass(frozen=True)
class OneOfAKind:
    """What should stand once: a sign by which a file is found, and the files that have the sign for another reason."""

    sign: str
    others: dict[str, str] = field(default_factory=dict)


ONE_OF_A_KIND = {
    "readers of tool calls": OneOfAKind(
        r"""["']<tool_call>|<tool_call>\(|<tool_call>\\s""",
        {
            "sdk/concertino/strategies/parallel_rounds/prompts.py": "shows the format to models",
            "sdk/concertino/testing/hostile_texts.py": "texts for tests",
            "providers/local/src/concertino_local/codec/": "cuts token sequences at the tags",
            "providers/openai/src/concertino_openai/chat/channels.py": "cuts a stream at the tags",
            "providers/openai/src/concertino_openai/probe.py": "looks whether a server leaves the tags in the text",
            "providers/toy/src/concertino_toy/conductor/guide.py": "bounds what the tiny model may write next",
            "providers/toy/src/concertino_toy/practice/experts/calls.py": "breaks calls on purpose",
        },
    ),
    "guardians of child processes": OneOfAKind(
        r"PR_SET_PDEATHSIG",
        {"providers/code/src/concertino_code/jail/": "inside the sandbox, without the SDK"},
    ),
    "writers of JSON Lines that survive a crash": OneOfAKind(
        r"\bos\.fsync\(",
        {"contrib/train/src/concertino_train/running/files.py": "replaces a whole file"},
    ),
}


@dataclass
class Figure:
    """One line of the table: its name, its value, and the places that make it up."""

    name: str
    value: str
    places: list[str] = field(default_factory=list)


def figures() -> Iterator[Figure]:
    """Every figure that is read from the tree, in the order of the table."""
    yield _source_lines()
    yield from _entries_of_the_sdk()
    yield from _circles()
    yield _public_names()
    yield _shared_names()
    yield _repeats()
    yield from _named_strategies()
    yield from _walk()
    yield _marks("type: ignore")
    yield _marks("fmt: skip")
    yield _comments()
    for name, kind in ONE_OF_A_KIND.items():
        yield _copies(name, kind)


def _copies(name: str, kind: OneOfAKind) -> Figure:
    found = [_place(file) for file in _sources() if re.search(kind.sign, _text(file))]
    excused = {place: why for place in found for path, why in kind.others.items() if place.startswith(path)}
    counted = [place for place in found if place not in excused]
    return Figure(name, str(len(counted)), [*counted, *(f"not {place}: {why}" for place, why in excused.items())])


def _source_lines() -> Figure:
    sizes = {name: sum(_lines(file) for file in imports.files.values()) for name, imports in _distributions().items()}
    return Figure("source lines", f"{sum(sizes.values()):,}", [f"{size:7,}  {name}" for name, size in sizes.items()])


def _entries_of_the_sdk() -> Iterator[Figure]:
    imports = _distributions()["concertino"]
    entries = imports.entries(imports.name) - {"__main__"}
    yield Figure("entries at the SDK's root", str(len(entries)), [" ".join(sorted(entries))])
    pairs = {
        pair: edges
        for pair, edges in imports.between_entries(imports.name).items()
        if not {"__init__", "__main__"} & set(pair)
    }
    down = [pair for pair in pairs if pair not in back_edges(pairs)]
    yield Figure("imports between the entries of the SDK", str(len(pairs)))
    yield Figure("levels of the SDK's import graph", str(levels(down)))
    for name, rules in layers().items():
        against = rules.imports_against(_distributions()[name])
        places = [f"{pair}: {edge}" for pair, edges in against.items() for edge in edges]
        missing = sorted(rules.entries_without_layer(_distributions()[name]))
        places += [f"without a layer: {' '.join(missing)}"] if missing else []
        yield Figure(
            f"imports against the layers of {name}; entries without a layer", f"{len(places)}; {len(missing)}", places
        )


def _circles() -> Iterator[Figure]:
    found = [circle for imports in _distributions().values() for circle in imports.circles()]
    for kind, wanted in (("packages", True), ("modules of one package", False)):
        places = []
        for circle in found:
            if circle.has_packages == wanted:
                places.append(f"{circle.package}: {' '.join(circle.entries)}; opened by cutting {len(circle.edges)}:")
                places += [f"  {edge}" for edge in circle.edges]
        count = sum(circle.has_packages == wanted for circle in found)
        yield Figure(f"circles between {kind}", str(count), places)


def _public_names() -> Figure:
    total = distinct = 0
    places = []
    for name, imports in _distributions().items():
        exports = _exports(imports)
        listed, different = sum(map(len, exports.values())), len({each for names in exports.values() for each in names})
        total, distinct = total + listed, distinct + different
        places.append(f"{listed:5} {different:5}  {name}")
        places += [f"{len(names):11}  {package}" for package, names in exports.items() if len(exports) > 1]
    return Figure("public names, package by package; distinct ones", f"{total}; {distinct}", places)


def _exports(imports: Imports) -> dict[str, list[str]]:
    """The names in `__all__` of every public package, and of the public modules that have one."""
    found = {}
    for module, file in imports.files.items():
        if not any(part.startswith("_") for part in module.split(".")):
            names = _all_of(module, file)
            if names:
                found[module] = names
    return found


def _all_of(module: str, file: Path) -> list[str]:
    for node in ast.parse(_text(file)).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            try:
                return list(ast.literal_eval(node.value))
            except ValueError:  # the list is made when the module is imported
                command = [sys.executable, "-c", f"import json, {module} as m; print(json.dumps(list(m.__all__)))"]
                return list(json.loads(subprocess.check_output(command, text=True)))
    return []


def _shared_names() -> Figure:
    places = defaultdict(list)
    for file in _sources():
        for node in ast.walk(ast.parse(_text(file))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{_place(file)}:{node.lineno}")
    shared = sorted(
        ((name, where) for name, where in places.items() if len(where) > 1), key=lambda x: (-len(x[1]), x[0])
    )
    most = ", ".join(f"{name} {len(where)}" for name, where in shared[:3])
    lines = [f"{len(where)}  {name}: {' '.join(where)}" for name, where in shared]
    return Figure("class names that are used twice and more; the most", f"{len(shared)}; {most}", lines)


def _repeats() -> Figure:
    files = [file for file in tree_files() if file.suffix == ".py"]
    places = [
        f"{each.lines} lines  " + "  ".join(f"{_place(line.file)}:{line.number}" for line in (each.first, each.second))
        for each in repeats(files)
    ]
    return Figure("pairs of places that repeat each other", str(len(places)), places)


def _named_strategies() -> Iterator[Figure]:
    sign = re.compile("|".join(STRATEGIES))
    files = [
        f for f in tree_files() if f.suffix in {".py", ".toml", ".yaml", ".jinja"} and not AT_HOME.search(_place(f))
    ]
    places = [_place(file) for file in files if sign.search(_text(file))]
    tests = [place for place in places if re.search(r"(^|/)tests/|^benchmarks/", place)]
    source = [place for place in places if place not in tests]
    yield Figure("files of source that name a built-in strategy elsewhere", str(len(source)), source)
    yield Figure("files of tests and benchmarks that do", str(len(tests)), tests)


def _walk() -> Iterator[Figure]:
    command = [sys.executable, str(ROOT / "scripts" / "walk.py"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        yield Figure("one question's walk", "it failed", done.stderr.strip().splitlines()[-3:])
        return
    walk: dict[str, Any] = json.loads(done.stdout)
    functions = f"{walk['functions']}; {walk['calls']}; {walk['changes_of_file']}"
    yield Figure("files of one question's walk", str(len(walk["files"])), walk["files"])
    yield Figure("functions it enters; calls; changes of file", functions)
    hops = [f"to the model: {hop}" for hop in walk["to_model"]] + [f"to a tool: {hop}" for hop in walk["to_tool"]]
    yield Figure("hops to the model; to a tool", f"{len(walk['to_model'])}; {len(walk['to_tool'])}", hops)
    yield Figure("hops that only pass on", str(len(walk["only_passing_on"])), walk["only_passing_on"])


def _marks(mark: str) -> Figure:
    sources = set(_sources())
    counts = {file: count for file in tree_files() if file.suffix == ".py" and (count := marks(file, mark))}
    inside = sum(count for file, count in counts.items() if file in sources)
    lines = [f"{count:3}  {_place(file)}" for file, count in sorted(counts.items(), key=lambda each: -each[1])]
    return Figure(f"`{mark}` in source; in the whole tree", f"{inside}; {sum(counts.values())}", lines)


def marks(file: Path, mark: str) -> int:
    """How many comments of a file hold a mark, e.g. `fmt: skip`."""
    return sum(mark in comment for comment in comments(file)) if mark in _text(file) else 0


def _comments() -> Figure:
    lines = []
    total = Counter[str]()
    for name, imports in _distributions().items():
        found = sum(len(comments(file)) for file in imports.files.values())
        size = sum(_lines(file) for file in imports.files.values())
        total.update(comments=found, lines=size)
        lines.append(f"{100 * found / size:5.1f}  {name}")
    return Figure("comments per 100 lines of source", f"{100 * total['comments'] / total['lines']:.1f}", lines)


def _mypy() -> Figure:
    command = [sys.executable, "-m", "mypy", "--no-pretty"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    return Figure("errors of mypy strict, all source trees", str(len(errors)), errors)


@cache
def _distributions() -> dict[str, Imports]:
    return distributions()


def _sources() -> list[Path]:
    return [file for imports in _distributions().values() for file in imports.files.values()]


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _lines(file: Path) -> int:
    return len(_text(file).splitlines())


def _place(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def _print(found: Iterable[Figure], shown: int | None) -> None:
    table = list(found)
    width = max(len(figure.name) for figure in table)
    for figure in table:
        print(f"{figure.name:{width}}  {figure.value}")
    for figure in table:
        if figure.places:
            print(f"\n{figure.name}: {figure.value}", *figure.places[:shown], sep="\n  ")
            if len(figure.places[:shown]) < len(figure.places):
                print(f"  ... {len(figure.places) - SHOWN} more; --all prints them")


def main() -> None:
    """Print the table, and what it is made of."""
    options = set(sys.argv[1:])
    if unknown := options - {"--json", "--all", "--mypy"}:
        sys.exit(f"unknown options {' '.join(sorted(unknown))}; expected some of: --json --all --mypy")
    work: list[Callable[[], Figure]] = [_mypy] if "--mypy" in options else []
    found = [*figures(), *(each() for each in work)]
    if "--json" in options:
        print(json.dumps({each.name: {"value": each.value, "places": each.places} for each in found}, indent=1))
    else:
        _print(found, None if "--all" in options else SHOWN)


if __name__ == "__main__":
    main()
