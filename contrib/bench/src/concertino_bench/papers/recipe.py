"""A table of a paper as data: a TOML file that says what it shows, what we run for it, and what differs.

The invariants: a published number stands in a recipe as the paper prints it; every column, row and data set that a
recipe names exists in it; and a table without a recipe is listed with the reason why it cannot be repeated.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from concertino import UsageError
from concertino.schema import compile_schema, explain, suggestion

_TEXT = {"type": "string", "minLength": 1}
_TEXTS = {"type": "array", "items": _TEXT}
_OPEN = {"type": "object"}


def _table(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_FILES = {"type": "object", "additionalProperties": {"anyOf": [_TEXT, {**_TEXTS, "minItems": 1}]}}
_DATA = _table("name", "set", name=_TEXT, set=_TEXT, files=_FILES, options=_OPEN, optional=_OPEN, grader=_TEXT)
_COLUMN = _table("name", "of", name=_TEXT, of=_TEXTS, metric=_TEXT, scale={"type": "number"}, unit=_TEXT)
_ROW = _table("name", "values", name=_TEXT, values={"type": "array", "items": {"type": ["number", "string"]}})
_SYSTEM = _table(
    "name",
    name=_TEXT,
    beside=_TEXT,
    baseline=_TEXT,
    workflow={"type": "boolean"},
    strategy=_TEXT,
    offer=_TEXTS,
    options=_OPEN,
)
_LIST = {"type": "array", "minItems": 1}
RECIPE = _table(
    *("paper", "arxiv", "table", "title", "same", "differs", "data", "columns", "rows", "systems"),
    paper=_TEXT,
    arxiv=_TEXT,
    table=_TEXT,
    title=_TEXT,
    samples={"type": "integer", "minimum": 1},
    budget=_OPEN,
    sampling=_OPEN,
    same=_TEXTS,
    differs=_TEXTS,
    data={**_LIST, "items": _DATA},
    columns={**_LIST, "items": _COLUMN},
    rows={**_LIST, "items": _ROW},
    systems={**_LIST, "items": _SYSTEM},
)
"""The schema of a recipe's file."""
NONE = "-"
"""In the place of a number that the paper does not give."""


@dataclass(frozen=True)
class PaperData:
    """Tasks of a table.

    Attributes:
        name: as columns name them, and the name of their results file.
        set: the task set.
        files: by option of the set, patterns of its file in the folder of the data: `{"path": ("aime24.*",)}`. The
            first one that a file has counts.
        options: other options of the set.
        optional: options that are given only where the set has them.
        grader: instead of that of its kind.
    """

    name: str
    set: str
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    optional: Mapping[str, Any] = field(default_factory=dict)
    grader: str = ""


@dataclass(frozen=True)
class PaperColumn:
    """A column.

    Attributes:
        name: as the paper heads it.
        of: names of the data it is computed over; of several, the mean of their values.
        metric: of the bench, `tokens` or `requests` of a run, or `value:NAME` for a value of the grader.
        scale: our value is multiplied with it.
        unit: of the numbers.
    """

    name: str
    of: Sequence[str]
    metric: str = "accuracy"
    scale: float = 100.0
    unit: str = "%"


@dataclass(frozen=True)
class PaperRow:
    """A published row: a number for each column, None where the paper gives none."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class PaperSystem:
    """What we run.

    Attributes:
        name: of the system.
        beside: the published row that it is shown beside; empty where there is none.
        given: what it is made of: `baseline`, `strategy` or `workflow`, `options`, `offer`.
    """

    name: str
    beside: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """A table of a paper, and how it is repeated.

    Attributes:
        name: "toolorchestra/table-1".
        paper, arxiv, table, title: where it is printed, and what it shows.
        data, columns, rows, systems: its parts.
        same, differs: what our run has in common with the paper's and what not, one sentence each.
        samples: of each task.
        budget, sampling: of each run.
    """

    name: str
    paper: str
    arxiv: str
    table: str
    title: str
    data: Sequence[PaperData]
    columns: Sequence[PaperColumn]
    rows: Sequence[PaperRow]
    systems: Sequence[PaperSystem]
    same: Sequence[str]
    differs: Sequence[str]
    samples: int = 1
    budget: Mapping[str, Any] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        data, rows = {each.name for each in self.data}, {each.name for each in self.rows}
        for column in self.columns:
            if missing := [name for name in column.of if name not in data]:
                raise UsageError(f"{self.name}, column {column.name}: there is no data {missing[0]!r}")
        for row in self.rows:
            if len(row.values) != len(self.columns):
                raise UsageError(
                    f"{self.name}, row {row.name}: {len(row.values)} values; expected {len(self.columns)}, one a column"
                )
        for system in self.systems:
            if system.beside and system.beside not in rows:
                raise UsageError(f"{self.name}, system {system.name}: there is no published row {system.beside!r}")

    @classmethod
    def from_toml(cls, text: str, name: str) -> Recipe:
        """A recipe from the text of its file.

        Raises:
            UsageError: it is no TOML, or says something that a recipe cannot; says what.
        """
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{name}: invalid TOML: {error}") from error
        validator = compile_schema(RECIPE)
        if not validator.is_valid(data):
            told = "; ".join(explain(validator.check(data), validator).splitlines()[:4])
            raise UsageError(f"{name} is not a recipe: {told}")
        parts = {
            "data": tuple(_data(each) for each in data["data"]),
            "columns": tuple(PaperColumn(**each) for each in data["columns"]),
            "rows": tuple(PaperRow(each["name"], tuple(map(_number, each["values"]))) for each in data["rows"]),
            "systems": tuple(_system(each) for each in data["systems"]),
        }
        return cls(name, **{**data, **parts})

    @property
    def source(self) -> str:
        """Where it is printed: `ParaManager (arXiv 2604.17009), Table 1`."""
        return f"{self.paper} (arXiv {self.arxiv}), {self.table}"


def _number(value: Any) -> float | None:
    if isinstance(value, str) and value != NONE:
        raise UsageError(f"{value!r}: expected a number, or {NONE!r} where the paper gives none")
    return None if isinstance(value, str) else float(value)


def _data(entry: Mapping[str, Any]) -> PaperData:
    files = {key: (each,) if isinstance(each, str) else tuple(each) for key, each in entry.get("files", {}).items()}
    return PaperData(**{**entry, "files": files})


def _system(entry: Mapping[str, Any]) -> PaperSystem:
    given = {key: value for key, value in entry.items() if key not in ("name", "beside")}
    if len({"baseline", "strategy", "workflow"} & given.keys()) != 1:
        raise UsageError(f"system {entry['name']}: expected one of baseline, strategy, workflow")
    return PaperSystem(entry["name"], entry.get("beside", ""), given)


@dataclass(frozen=True)
class LeftOutTable:
    """A table that cannot be repeated.

    Attributes:
        name: "paramanager/table-6".
        title: what it shows.
        reason: why it cannot be repeated.
    """

    name: str
    title: str
    reason: str


_ELSEWHERE = "left_out.toml"


@cache
def recipes() -> dict[str, Recipe]:
    """All recipes by name."""
    return {name: Recipe.from_toml(file.read_text("utf-8"), name) for name, file in _files()}


def left_out_tables() -> list[LeftOutTable]:
    """The tables that cannot be repeated."""
    text = files(__package__).joinpath("recipes", _ELSEWHERE).read_text("utf-8")
    return [LeftOutTable(**each) for each in tomllib.loads(text)["tables"]]


def find_recipe(name: str) -> Recipe:
    """A recipe by its name.

    Raises:
        UsageError: there is none; names near ones, or says why the table cannot be repeated.
    """
    known = recipes()
    if name in known:
        return known[name]
    for each in left_out_tables():
        if each.name == name:
            raise UsageError(f"{name} cannot be repeated: {each.reason}")
    of_paper = [each for each in known if each.startswith(f"{name.partition('/')[0]}/")]
    if of_paper:
        raise UsageError(f"there is no recipe {name!r}; of this paper there are: {', '.join(of_paper)}")
    raise UsageError(f"there is no recipe {name!r}; {suggestion(name, known, 'concertino bench paper lists them')}")


def _files() -> Iterator[tuple[str, Traversable]]:
    home = files(__package__).joinpath("recipes")
    for folder in sorted(home.iterdir(), key=lambda each: each.name):
        if folder.is_dir():
            for file in sorted(folder.iterdir(), key=lambda each: each.name):
                if file.name.endswith(".toml"):
                    yield f"{folder.name}/{file.name.removesuffix('.toml')}", file
