"""What a document of settings could do to the person who uses it. Read from its data alone: nothing of it is done.

A *danger* is a key that starts a program, imports a module, chooses who gets a key, opens a path outside the folder of
the document, or loosens a protection. Settings files and pool files have keys of their own, which are listed here; in
other documents (training settings, evaluations) every text is looked at.

Invariant: in settings files and pool files, a key that is not listed as harmless is a danger.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from .services import LOCAL_SERVERS, SERVICE_KEYS

MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
"""`module:name`, as settings name what is imported."""

Kind = Literal["settings", "pool", "document"]
"""How a document is read: `concertino.toml`, a pool file, or training settings and evaluations."""
_Rule = Callable[[Any, Path], bool]
_STARTS_A_MODEL = ("vllm", "local")
"""Providers whose declared models are loaded or started on this machine."""
_FOR_ALL = {"models": "declares a model", "providers": "sets up a provider"}
_OPENS = "opens the path"
_LONGEST_PATH = 4096
_SANDBOXES = ("auto", "namespaces", "bubblewrap", "landlock")


class Danger(NamedTuple):
    """One thing that a document could do.

    Attributes:
        key: where it stands, with dots.
        text: what it does, with the value. As the document has it: clean it before it is shown.
        named: texts that may name files whose code would run.
    """

    key: str
    text: str
    named: tuple[str, ...] = ()


def inside(value: Any, folder: Path) -> bool:
    """Whether a path, or each of a list, lies in a folder. Links are followed."""
    if isinstance(value, list):
        return all(inside(each, folder) for each in value)
    if not isinstance(value, str) or value.startswith("~"):
        return False
    try:
        return (folder / value).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, or links in a circle
        return False


def _any(value: Any, folder: Path) -> bool:
    return True


def _number(value: Any, folder: Path) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _off(value: Any, folder: Path) -> bool:
    return value is False or value == ""


def _on(value: Any, folder: Path) -> bool:
    return value is True


def _sandboxed(value: Any, folder: Path) -> bool:
    return value in _SANDBOXES


def _path(value: Any, folder: Path) -> bool:
    """Whether it is in the folder. Of another value, its reader says that it is wrong."""
    return not isinstance(value, str) or inside(value, folder)


def _prepared(value: Any, folder: Path) -> bool:
    """Never harmless, but not covered by a digest: what lies there is written anew by the program itself."""
    return False


_SETTINGS: Mapping[str, _Rule] = {"disable": _any, "pool": _path, "traces": _path}
_POOL: Mapping[str, _Rule] = dict.fromkeys(
    ("members", "without", "offer", "roles", "routers", "aliases", "descriptions", "prices"), _any
)
_OVERRIDES: Mapping[str, _Rule] = {
    **dict.fromkeys(("timeout", "concurrency", "max_chars", "cost", "context", "max_tokens"), _any),
    "approval": _on,
    "writes": _on,
    "retry_safe": _off,
}
_MODEL_OPTIONS: Mapping[str, _Rule] = {
    **dict.fromkeys(
        (
            *("model", "server", "connect_timeout", "idle_timeout", "max_event_bytes", "max_reply_bytes", "max_output"),
            *("stream", "stream_usage", "max_tokens_field", "schema_style", "think", "reasoning_field", "logprobs"),
            *("token_ids", "seed", "null_content", "keeps_stop", "call_errors", "mute_errors", "accepts"),
            *("thinking", "display", "effort", "cache", "describe", "verdict", "latency", "draw"),
        ),
        _any,
    ),
    "key_env": _off,
    "file": inside,
}
_MODEL_PROVIDERS = frozenset({*SERVICE_KEYS, *LOCAL_SERVERS, "replay", "toy"}) - {*_STARTS_A_MODEL}
_PROVIDERS: Mapping[str, Mapping[str, _Rule]] = {
    "code": {"level": _sandboxed, "allow_unsafe": _off, "network": _off, "": _number},
    "reasoning": {"agents": inside},
    "replay": {"files": inside, **dict.fromkeys(("names", "describe", "verdict", "latency", "draw"), _any)},
    "scorer": {"sufficient": _number},
    "search": {"cache": _prepared, "corpus": inside, "analyser": _any, "about": _any, "web": _any},
}
"""Harmless keys of our providers; `""` stands for all others."""


def settings_dangers(data: Mapping[str, Any], folder: Path) -> list[Danger]:
    """The dangers of a settings file, `concertino.toml`, that lies in a folder."""
    return [*_listed(data, folder, _SETTINGS, "", skip=_FOR_ALL), *_shared(data, folder)]


def pool_dangers(data: Mapping[str, Any], folder: Path) -> list[Danger]:
    """The dangers of a pool file that lies in a folder."""
    apart = (*_FOR_ALL, "overrides", "orchestrators", "search")
    found = _listed(data, folder, _POOL, "", skip=apart)
    for name, table in _tables(data.get("overrides")):
        found += _listed(table, folder, _OVERRIDES, f"overrides.{name}")
    for name, table in _tables(data.get("orchestrators")):
        found += document_dangers(table, folder, f"orchestrators.{name}")
    found += document_dangers({"search": data.get("search")}, folder)
    return [*found, *_shared(data, folder)]


def document_dangers(data: Any, folder: Path, key: str = "") -> list[Danger]:
    """The dangers of any other document: each text that names a module, an address or a path outside."""
    found = [
        Danger(_joined(key, place), f"{what} {text}", () if what == _OPENS else (text,))
        for place, text in texts(data)
        if (what := _what(place, text, folder))
    ]
    return list(dict.fromkeys(found))


def dangers_of(kind: Kind, data: Mapping[str, Any], folder: Path) -> list[Danger]:
    """The dangers of a document that is read as of a kind."""
    if kind == "settings":
        return settings_dangers(data, folder)
    return pool_dangers(data, folder) if kind == "pool" else document_dangers(data, folder)


def kind_of(data: Mapping[str, Any], name: str) -> Kind:
    """The kind of a document, as its name and its keys look."""
    if name == "concertino.toml":
        return "settings"
    apart = {"rollout", "trainer", "reward", "model", "tasks", "systems", "base"}
    pool = {"members", "sources", "providers", "models", "overrides", "offer"} & set(data) and not apart & set(data)
    return "pool" if pool else "document"


def texts(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Every text in data, with its place; keys of tables count as texts."""
    left: list[tuple[str, Any]] = [(place, value)]
    while left:  # a loop, as documents may be nested deeply
        place, value = left.pop()
        if isinstance(value, str):
            yield place, value
        elif isinstance(value, Mapping):
            for key, each in value.items():
                here = _joined(place, str(key))
                left.append((here, each))
                if isinstance(key, str):
                    yield here, key
        elif isinstance(value, (list, tuple)):
            left += [(f"{place}.{number}", each) for number, each in enumerate(value)]


def _what(place: str, text: str, folder: Path) -> str:
    """What a text of a document names that is a danger, in words; empty for none."""
    if ".server." in f".{place}" and not place.endswith(f".{text}"):
        return "sets up a server with"
    if place.endswith("backend") and text in _STARTS_A_MODEL:
        return "starts a server of"
    if MODULE.fullmatch(text):
        return "imports"
    if "://" in text:
        return "connects to"
    # The system takes no longer path.
    return "" if len(text) > _LONGEST_PATH or inside(text, folder) else _OPENS


def _listed(
    data: Mapping[str, Any], folder: Path, rules: Mapping[str, _Rule], key: str, skip: Iterable[str] = ()
) -> list[Danger]:
    """The keys of a table that no rule says to be harmless."""
    found: list[Danger] = []
    for name, value in data.items():
        rule = rules.get(name, rules.get(""))
        if name not in skip and (rule is None or not rule(value, folder)):
            found += _leaves(value, _joined(key, name), names=rule not in (inside, _path, _prepared))
    return found


def _shared(data: Mapping[str, Any], folder: Path) -> list[Danger]:
    """The dangers of the tables that settings files and pool files have alike."""
    found: list[Danger] = []
    for name, table in _tables(data.get("models")):
        known = name.partition("/")[0] in _MODEL_PROVIDERS
        found += _listed(table, folder, _MODEL_OPTIONS if known else {}, f"models.{name}")
        if not known and not table:
            found.append(Danger(f"models.{name}", _FOR_ALL["models"]))
    for name, table in _tables(data.get("providers")):
        found += _listed(table, folder, _PROVIDERS.get(name, {}), f"providers.{name}")
    return found


def _tables(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tables of a table; what is none is an error that whoever reads the document tells."""
    if isinstance(value, Mapping):
        yield from ((str(name), table) for name, table in value.items() if isinstance(table, Mapping))


def _leaves(value: Any, key: str, names: bool) -> Iterator[Danger]:
    """The values of a table with their keys; a list of texts, such as a command, stays together."""
    if isinstance(value, Mapping) and value:
        for name, each in value.items():
            yield from _leaves(each, _joined(key, str(name)), names)
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        yield Danger(key, " ".join(value), tuple(value) if names else ())
    else:
        yield Danger(key, str(value), tuple(text for _, text in texts(value)) if names else ())


def _joined(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name
