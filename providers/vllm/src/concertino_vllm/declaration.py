"""Models on a vLLM server as members of a pool: declared in Python by `model`, in a pool file by a table.

A table is about three things, which the names of its keys tell apart: the server (`VllmSettings`), what of it this
member is (`adapter`), and the chat (options of `concertino_openai`). Members with equal server settings share one
server; `of` takes the server settings of another member, so that they need not be repeated.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from concertino import Model, ModelSpec, Prices, SpecError

from .chat_model import VllmModel
from .errors import VllmServerError
from .executable import find_executable
from .serving.registry import server_of
from .serving.server import VllmServer
from .settings import STARTUP_SECONDS, VllmSettings

CHAT_OPTIONS = (
    "connect_timeout",
    "extra_body",
    "headers",
    "idle_timeout",
    "max_event_bytes",
    "max_reply_bytes",
    "reasoning_field",
    "schema_style",
    "think",
)
"""Options that are handed on to `concertino_openai.model`."""

SERVER_OPTIONS = tuple(field.name for field in dataclasses.fields(VllmSettings))
OPTIONS = ("of", "adapter", *SERVER_OPTIONS, *CHAT_OPTIONS)

ANSWER_SECONDS = 300.0
"""What a request may take by default once the server is ready."""

_ELSEWHERE = {"description": "descriptions", "prices": "prices"} | dict.fromkeys(
    ("context", "concurrency", "timeout", "max_tokens"), 'overrides."vllm/..."'
)
_declared: dict[str, list[VllmSettings]] = {}
_WORDS = {"env": "a table of texts", "adapters": "a table of names and folders", "args": "a list of texts"}
_WORDS["env_from"] = _WORDS["args"]


class VllmModelFactory:
    """Makes the `Model` of a spec, and knows its server. Two factories with equal content are equal."""

    def __init__(
        self, name: str, settings: VllmSettings | None, of: str, adapter: str, chat: Mapping[str, Any]
    ) -> None:
        self.name = name
        self.adapter = adapter
        self._settings = settings
        self._of = of
        self._chat = dict(chat)

    @property
    def settings(self) -> VllmSettings:
        """The settings of the server.

        Raises:
            SpecError: `of` names a member that is not declared, or declared differently in two places.
        """
        if self._settings is None:
            self._settings = _settings_of(self.name, self._of)
        return self._settings

    @property
    def server(self) -> VllmServer:
        """The server, which need not have been started."""
        return server_of(self.settings)

    def __call__(self) -> Model:
        # An attached server, or one in training, may be given the adapter later.
        if self.adapter and not self.settings.attach and not self.settings.training:
            known = [name for name, _ in self.settings.adapters]
            if self.adapter not in known:
                hint = _nearest(self.adapter, known) or f"there are {', '.join(known) or 'none'}"
                raise SpecError(f"model {self.name!r}: adapter = {self.adapter!r} is not of the server; {hint}")
        return VllmModel(self.server, self.adapter, self._chat)


def model(
    name: str,
    *,
    of: ModelSpec | str | None = None,
    adapter: str = "",
    description: str = "",
    prices: Prices | None = None,
    context: int | None = None,
    concurrency: int | None = None,
    timeout: float | None = None,
    max_tokens: int = 4096,
    **options: Any,
) -> ModelSpec:
    """Declare a chat model that a local vLLM server serves. Nothing is started before it is asked.

    Args:
        name: the member's name, `coder` or `vllm/coder`.
        of: another declared model whose server this one shares.
        adapter: the LoRA adapter of the server that answers; by default the model itself.
        description, prices, context, concurrency, max_tokens: as in `ModelSpec`.
        timeout: seconds for one request, the server's start included; by default the time for the start and 300.
        options: fields of `VllmSettings` (`model`, `executable`, `args`, `adapters`, `training`, `attach`, ...) and
            of the chat (`extra_body`, `think`, `idle_timeout`, ...); the README lists them.

    Raises:
        SpecError: an option cannot be; it names the option, what was given and what is expected.
    """
    short = name.rpartition("/")[2]
    place = f"model {name!r}"
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in OPTIONS:
            hint = _nearest(key, OPTIONS) or f"there are {', '.join(OPTIONS)}"
            raise SpecError(f"{place}: unknown option {key!r}; {hint}")
    chat = {key: given.pop(key) for key in CHAT_OPTIONS if key in given}
    _check_chat(place, chat)
    settings, seen = None, []
    if of is None:
        settings = _read_settings(place, given)
        _remember(short, settings)
    elif given:
        raise SpecError(f"{place}: of takes the server of another model; so leave out {', '.join(sorted(given))}")
    elif isinstance(of, ModelSpec):
        settings = _factory(of).settings
    else:
        # The other member may be declared later; then its server is looked up when it is needed.
        seen = _declared.get(of.rpartition("/")[2], [])
    known = settings or (seen[0] if len(seen) == 1 else None)
    declared = {"of": of.name if isinstance(of, ModelSpec) else of, "adapter": adapter or None, **_plain(options)}
    return ModelSpec(
        name,
        VllmModelFactory(name, settings, of if isinstance(of, str) else "", adapter, chat),
        description or _describe(known, adapter),
        prices,
        context,
        concurrency,
        timeout or (known.startup_seconds if known else STARTUP_SECONDS) + ANSWER_SECONDS,
        max_tokens,
        options={key: value for key, value in declared.items() if value is not None},
        endpoint=known.endpoint if known else f"server of {of}",
        lacks=partial(_lacking, known) if known else None,
    )


def _lacking(settings: VllmSettings) -> str:
    """What keeps the server from being started, and the next step; empty for nothing."""
    if settings.attach:
        return ""
    try:
        find_executable(settings.executable)
    except VllmServerError as error:
        return f"vLLM cannot be started; {error}"
    return ""


def declare(name: str, options: Mapping[str, Any]) -> ModelSpec:
    """The same from the table of a pool file, whose keys are options only.

    Raises:
        SpecError: as `model`; also for what a pool file says in other tables.
    """
    for key, table in _ELSEWHERE.items():
        if key in options:
            raise SpecError(f"model {name!r}: {key} stands in another table of the file: [{table}]")
    return model(name, **options)


def at_running_server(name: str) -> ModelSpec:
    """A model of a vLLM server that somebody else has started, by the name that the server knows."""
    from concertino_openai.declaration import declare as declare_at_server

    return declare_at_server(name, {}, "vllm")


def server(spec: ModelSpec) -> VllmServer:
    """The server behind a model that `model` or a pool file declared: to start it early, stop it, or look at it.

    Raises:
        SpecError: the model is somebody else's.
    """
    return _factory(spec).server


def _describe(settings: VllmSettings | None, adapter: str) -> str:
    """What an orchestrator reads when nobody said more; never a path of this machine."""
    model = settings.model.rstrip("/").rpartition("/")[2] if settings else ""
    what = f"Adapter {adapter} of {model}".removesuffix(" of ") if adapter else model
    return f"{what} on vLLM." if what else ""


def _factory(spec: ModelSpec) -> VllmModelFactory:
    if not isinstance(spec.factory, VllmModelFactory):
        raise SpecError(
            f"model {spec.name!r} is not served by concertino-vllm; give one that concertino_vllm.model declared"
        )
    return spec.factory


def _settings_of(name: str, of: str) -> VllmSettings:
    known = _declared.get(of.rpartition("/")[2], [])
    if len(known) == 1:
        return known[0]
    if known:
        raise SpecError(
            f"model {name!r}: of = {of!r} was declared {len(known)} times in this process, with different settings; "
            f"write the server's settings into {name!r} itself"
        )
    near = _nearest(of, [f"vllm/{other}" for other in _declared])
    hint = near or 'declare it as [models."vllm/..."] with a model = "..."'
    raise SpecError(f"model {name!r}: of = {of!r} is not declared; {hint}")


def _remember(short: str, settings: VllmSettings) -> None:
    known = _declared.setdefault(short, [])
    if settings not in known:
        known.append(settings)


def _nearest(name: str, known: Sequence[str]) -> str:
    """A hint at the known name that is nearest to a wrong one, "" without one."""
    from concertino.schema import near_names  # takes longer to import than the rest, and is needed for errors alone

    near = near_names(name, known, limit=1)
    return f"did you mean {near[0]!r}?" if near else ""


# -- reading options -----------------------------------------------------------------------------------------


def _check_chat(place: str, chat: Mapping[str, Any]) -> None:
    """Have `concertino_openai` refuse what it will refuse later."""
    if chat:
        from concertino_openai import model as chat_model

        try:
            chat_model("chat", server="vllm", base_url="http://127.0.0.1:8000/v1", model="any", **chat)
        except SpecError as error:
            raise SpecError(f"{place}: {error}") from None


def _read_settings(place: str, given: Mapping[str, Any]) -> VllmSettings:
    """Check the types of the options of a server, and make settings of them."""
    hints = typing.get_type_hints(VllmSettings)
    values: dict[str, Any] = {}
    for key, value in given.items():
        expected = hints[key]
        right, values[key] = _convert(value, expected)
        if not right:
            words = _WORDS.get(key) or _word(expected)
            raise SpecError(f"{place}: {key} = {value!r}; expected {words}")
    # An empty path would be the working folder.
    folder = Path(values.get("model") or "no-model").expanduser()
    if folder.is_dir():
        values["model"] = str(folder.absolute())
    try:
        return VllmSettings(**values)
    except SpecError as error:
        raise SpecError(f"{place}: {error}") from None


def _convert(value: Any, expected: Any) -> tuple[bool, Any]:
    """Whether a value of a document fits, and the value as the settings hold it."""
    if isinstance(value, Path):
        value = str(value)
    if expected == tuple[str, ...]:
        texts = (
            isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(part, str) for part in value)
        )
        return texts, tuple(value) if texts else ()
    if expected == tuple[tuple[str, str], ...]:
        if not isinstance(value, Mapping):
            return False, ()
        pairs = tuple(sorted((str(key), str(item)) for key, item in value.items()))
        return all(isinstance(item, (str, Path)) for item in value.values()), pairs
    kinds = expected.__args__ if isinstance(expected, types.UnionType) else (expected,)
    # People write 600 for 600.0; JSON and TOML keep the two apart.
    if float in kinds and type(value) is int:
        value = float(value)
    # A bool is an int, but true is not a number of seconds.
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)), value


def _word(expected: Any) -> str:
    kinds = expected.__args__ if isinstance(expected, types.UnionType) else (expected,)
    return {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}[kinds[0]]


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON data."""
    plain: dict[str, Any] = {}
    for key, value in options.items():
        if isinstance(value, Mapping):
            plain[key] = {str(name): str(item) if isinstance(item, Path) else item for name, item in value.items()}
        elif isinstance(value, (list, tuple)):
            plain[key] = [str(item) if isinstance(item, Path) else item for item in value]
        else:
            plain[key] = str(value) if isinstance(value, Path) else value
    return plain
