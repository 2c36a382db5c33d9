"""Settings as people give them: YAML files, one on top of another, and `key=value` words of a command line.

    base: toolorchestra/toy            # a recipe, or a file beside this one; what stands here changes it
    trainer: {seed: 2}

The invariants: what comes later wins: a file over its base key by key, down to the leaves (lists are replaced whole); a
word of the command line takes the place of what is there, a table whole; a pool of another source, a strategy or a
reward of another name replaces the one below. And for every key it is known where it was given, so that
an error can say file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from concertino import UsageError
from concertino.core.trust import require
from concertino.schema import near_names

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Keys = tuple[str, ...]

WHOLE: tuple[Keys, ...] = (
    ("rollout", "strategy"),
    ("reward",),
    ("pool", "make"),
    ("data", "collect", "teacher"),
    ("data", "collect", "strategy"),
)
"""Tables that belong to one name among their keys: `name` of a strategy, `preset` of a reward. Another name replaces
the table instead of changing it."""
_NAMED = ("name", "preset")
SOURCES = ("make", "file", "members")
"""Where a pool comes from. Another source replaces the table `pool`, for the rest of it speaks of other members."""


class _Loader(yaml.SafeLoader):
    """YAML whose numbers may be written 1e-6, as YAML 1.2 and everybody else has them."""


# PyYAML reads YAML 1.1, in which 1e-6 is a text.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$|^[-+]?\.(?:inf|Inf)$|^\.(?:nan|NaN)$"),
    list("-+0123456789."),
)


@dataclass
class Given:
    """Settings as they were given.

    Attributes:
        data: nested tables.
        places: where each key was given: `paper.yaml:12`, `command line`.
    """

    data: dict[str, Any] = field(default_factory=dict)
    places: dict[Keys, str] = field(default_factory=dict)

    def where(self, keys: Sequence[Any]) -> str:
        """The place of a key, or of the nearest table around it."""
        path = tuple(str(key) for key in keys)
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, "")

    def on_top(self, other: Given) -> None:
        """Put other settings on top of these."""
        self.data = _merged(self.data, other.data, ())
        self.places |= other.places

    def put(self, keys: Keys, value: Any, place: str) -> None:
        """Put one value in the place of what is there; a table is replaced whole, as is a pool of another source."""
        pool = self.data.get("pool")
        if keys[0] == "pool" and isinstance(pool, Mapping) and _another_source(keys[:1], pool, {keys[-1]: value}):
            self.data = {**self.data, "pool": {}}
        self.data = _placed(self.data, keys, value)
        # Places of what stood there are of settings that no longer exist.
        self.places = {path: where for path, where in self.places.items() if path[: len(keys)] != keys}
        self.places[keys] = place


def recipe_names() -> list[str]:
    """The recipes that come with this package: `gap`, `gap/toy`, ... The bare name is the paper's."""
    found = []
    for folder in sorted((each for each in _recipes().iterdir() if each.is_dir()), key=lambda each: each.name):
        kinds = sorted(each.name.removesuffix(".yaml") for each in folder.iterdir() if each.name.endswith(".yaml"))
        found += [f"{folder.name}/{kind}" for kind in kinds]
    return found


def recipe_text(name: str) -> str:
    """The YAML of a recipe.

    Raises:
        UsageError: there is none of that name; gives near ones.
    """
    full = name if "/" in name else f"{name}/paper"
    if full not in recipe_names():
        near = near_names(full.partition("/")[0], sorted({each.partition("/")[0] for each in recipe_names()}), limit=1)
        own = [each for each in recipe_names() if each.partition("/")[0] in near]
        meant = [each for each in own if each.endswith(f"/{full.partition('/')[2]}")] or own
        hint = f"did you mean {' or '.join(map(repr, meant))}?" if meant else f"there are {', '.join(recipe_names())}"
        raise UsageError(f"there is no recipe {name!r}, and no such file; {hint}")
    system, _, kind = full.partition("/")
    return (_recipes() / system / f"{kind}.yaml").read_text(encoding="utf-8")


def read_settings(
    source: str | Path | Mapping[str, Any] | None, overrides: Sequence[str] = (), *, trusted: bool | None = None
) -> Given:
    """Read settings.

    Args:
        source: a YAML file, the name of a recipe, a table, or None for nothing.
        overrides: `key=value`, keys with dots, values in YAML.
        trusted: as for `load_config`; what a table or `overrides` say is the caller's own.

    Raises:
        UntrustedFile: a file could do harm, and was not trusted.
        UsageError: a file cannot be read, is no table, or bases go round in a circle.
    """
    given = Given(deepcopy(dict(source))) if isinstance(source, Mapping) else Given()
    if isinstance(source, Mapping):
        given = _based(given, Path(), [], "", trusted)
    elif source is not None:
        given = _read(str(source), Path(), [], trusted)
    for text in overrides:
        keys, value = _override(text)
        given.put(keys, value, "command line")
    return given


def _read(name: str, folder: Path, above: list[str], trusted: bool | None) -> Given:
    """A file or a recipe, on top of its bases."""
    file = folder / name
    # A name with the ending of a file means one, so that a missing file is not looked for among the recipes.
    if file.is_file() or name.endswith((".yaml", ".yml")):
        place, home = str(file), file.parent
        try:
            # Editors on Windows write a mark in front, which YAML would take for a part of the first key.
            text = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{place}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    else:
        text, home = recipe_text(name), None
        place = f"recipe {name if '/' in name else f'{name}/paper'}"
    if place in above:
        raise UsageError(f"{place}: circular `base`: {' -> '.join([*above, place])}")
    given = _parsed(text, place)
    if home is not None:  # the recipes of this package are no strangers
        require(file, given.data, "document", trusted=trusted)
    return _based(given, home or Path(), [*above, place], place, trusted)


def _based(given: Given, folder: Path, above: list[str], place: str, trusted: bool | None) -> Given:
    """Settings on top of the base that they name."""
    base = given.data.pop("base", None)
    if base is None:
        return given
    if not isinstance(base, str):
        raise UsageError(f"{given.where(['base']) or place}: base: got {base!r}; expected a recipe or a file")
    below = _read(base, folder, above, trusted)
    below.on_top(given)
    return below


def _parsed(text: str, place: str) -> Given:
    try:
        # Read once more for the lines, as the data does not know where it stood.
        node = yaml.compose(text, Loader=_Loader)
        data = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise UsageError(f"{place}{line}: invalid YAML: {getattr(error, 'problem', None) or error}") from error
    if data is None:
        return Given()
    if not isinstance(data, dict):
        raise UsageError(f"{place}: got a {type(data).__name__}; expected `key: value` lines")
    return Given(data, dict(_places(node, (), place)))


def _places(node: yaml.Node | None, path: Keys, place: str) -> Iterator[tuple[Keys, str]]:
    """Each key with its place: file and line."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, str(key.value)), f"{place}:{key.start_mark.line + 1}"
            yield from _places(value, (*path, str(key.value)), place)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield (*path, str(number)), f"{place}:{value.start_mark.line + 1}"
            yield from _places(value, (*path, str(number)), place)


def _override(text: str) -> tuple[Keys, Any]:
    key, equals, value = text.partition("=")
    keys = tuple(key.strip().split("."))
    if not equals or not all(keys):
        raise UsageError(f"{text!r}: expected KEY=VALUE, such as trainer.rl.steps=50")
    try:
        return keys, yaml.load(value, Loader=_Loader)
    except yaml.YAMLError as error:
        raise UsageError(f"{text!r}: the value is invalid YAML: {getattr(error, 'problem', None) or error}") from error


def _placed(data: Mapping[str, Any], keys: Keys, value: Any) -> dict[str, Any]:
    """A copy with one value in the place of another."""
    root = deepcopy(dict(data))
    held: Any = root
    for word, below in zip(keys, [*keys[1:], None], strict=True):
        place: Any = word
        if isinstance(held, list):
            if not word.isdecimal() or int(word) >= len(held):
                label = ".".join(keys)
                raise UsageError(f"{label}: got {word!r}; expected the number of an entry, 0 to {len(held) - 1}")
            place = int(word)
        child = held[place] if isinstance(held, list) else held.get(word)
        if below is None:
            held[place] = deepcopy(value)
        elif not isinstance(child, (dict, list)):
            held[place] = {}
        held = held[place]
    return root


def _merged(below: Mapping[str, Any], above: Mapping[str, Any], path: Keys) -> dict[str, Any]:
    result = deepcopy(dict(below))
    for key, value in above.items():
        here = (*path, str(key))
        if (
            isinstance(value, Mapping)
            and isinstance(result.get(key), Mapping)
            and not _renamed(here, result[key], value)
            and not _another_source(here, result[key], value)
        ):
            result[key] = _merged(result[key], value, here)
        else:
            result[key] = deepcopy(value)
    return result


def _renamed(path: Keys, below: Mapping[str, Any], above: Mapping[str, Any]) -> bool:
    return path in WHOLE and any(word in above and above[word] != below.get(word) for word in _NAMED)


def _another_source(path: Keys, below: Mapping[str, Any], above: Mapping[str, Any]) -> bool:
    named = [name for name in SOURCES if above.get(name)]
    return path == ("pool",) and bool(named) and named != [name for name in SOURCES if below.get(name)]


def _recipes() -> Traversable:
    return files("concertino_train") / "recipes"
