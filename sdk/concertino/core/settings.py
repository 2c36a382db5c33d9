"""Settings: what a person sets once for a folder, in `concertino.toml` or in the environment.

The file is `./concertino.toml`, or the one that `CONCERTINO_CONFIG` names; paths in it count from its own
folder.

    disable = ["words"]         # providers that are not used
    always = ["approval"]       # providers that are loaded in every run, for the hooks around calls that they bring
    pool = "pool.toml"          # the pool of commands that are given none
    traces = "runs"             # where runs are recorded
    [models."openai/fast"]      # a model that the provider `openai` makes of these options, as in a pool file
    base_url = "http://127.0.0.1:8000/v1"
    [providers.search]          # what the provider `search` itself takes, as in a pool file
    corpus = "pages.jsonl"

A file that was found, not named, is obeyed only as far as it is harmless or its user trusts it (`core.trust`).
`CONCERTINO_DISABLE=a,b` disables more providers, `CONCERTINO_PLUGINS=a,b` all but these. No setting changes
what a pool file or an argument says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from concertino.core.documents import check_keys, read_document
from concertino.core.errors import UsageError

from .provider_settings import ProviderSettings

FILE_NAME = "concertino.toml"
_KEYS = ("always", "disable", "models", "pool", "providers", "traces")
_TABLES = {"models": '[models."openai/fast"]', "providers": "[providers.search]"}


@dataclass(frozen=True)
class Settings:
    """The settings in force.

    Attributes:
        disable: providers that are not used.
        only: the providers that alone are used; None for all.
        always: providers that are loaded in every run, whatever the pool holds.
        pool: the default pool file, if one is set.
        traces: the folder of traces, if one is set.
        models: options of declared models by `provider/name`.
        providers: what each provider was given, by its name.
        file: the file that was read, if there is one.
    """

    disable: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    always: tuple[str, ...] = ()
    pool: Path | None = None
    traces: Path | None = None
    file: Path | None = None
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)

    @property
    def trace_folder(self) -> Path:
        """Where runs are recorded: as set, else CONCERTINO_TRACES, else `.concertino/traces`."""
        return self.traces or Path(os.environ.get("CONCERTINO_TRACES") or ".concertino/traces")

    def why_disabled(self, provider: str) -> str:
        """The setting that disables a provider, in words; empty if none does."""
        if self.only is not None and provider not in self.only:
            return f"CONCERTINO_PLUGINS={','.join(self.only)} leaves it out"
        if provider in self.disable:
            return f"disabled by CONCERTINO_DISABLE or by 'disable' in {self.file or FILE_NAME}"
        return ""


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of the working directory and the environment.

    Args:
        environ: the environment, by default that of the process.

    Raises:
        UntrustedFile: the file lies in the working directory, could do harm, and was not trusted.
        UsageError: the file is missing or wrong; names the file, the key and what was expected.
    """
    environ = os.environ if environ is None else environ
    named = environ.get("CONCERTINO_CONFIG", "")
    if not os.path.isfile(named or FILE_NAME):  # noqa: PTH113 (every run comes here, mostly to find no file)
        if named:
            raise UsageError(f"CONCERTINO_CONFIG={named}: file not found; correct or unset it")
        return settings_of_environment(environ)
    file = Path(named or FILE_NAME)
    data = read_document(file, error=UsageError)
    check_keys(str(file), data, _KEYS, UsageError)
    if not named:
        from .trust import require  # every run begins with this module, mostly without a file

        # Whoever names a file has chosen it; one that only lies there may be a stranger's.
        require(file, data, "settings", trusted=False)
    return Settings(
        always=tuple(_strings(file, data, "always")),
        disable=(*_strings(file, data, "disable"), *(_names(environ, "CONCERTINO_DISABLE") or ())),
        only=_names(environ, "CONCERTINO_PLUGINS"),
        pool=_path(file, data, "pool"),
        traces=_path(file, data, "traces"),
        file=file,
        models=_tables(file, data, "models"),
        providers=provider_tables(file, _tables(file, data, "providers")),
    )


def settings_of_environment(environ: Mapping[str, str] | None = None) -> Settings:
    """What the environment alone sets, whatever file there is."""
    environ = os.environ if environ is None else environ
    return Settings(disable=_names(environ, "CONCERTINO_DISABLE") or (), only=_names(environ, "CONCERTINO_PLUGINS"))


def always_loaded() -> tuple[str, ...]:
    """Plugins whose hooks apply to every run. Every run asks for them, mostly without a settings file."""
    if "CONCERTINO_CONFIG" not in os.environ and not os.path.isfile(FILE_NAME):  # noqa: PTH113 (quicker)
        return ()
    return load_settings().always


def provider_tables(file: Path, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, ProviderSettings]:
    """The tables `[providers.<name>]` of a file, by name."""
    return {
        name: ProviderSettings(table, where=f"{file}: providers.{name}", folder=file.parent)
        for name, table in tables.items()
    }


def _names(environ: Mapping[str, str], variable: str) -> tuple[str, ...] | None:
    names = tuple(filter(None, (name.strip() for name in environ.get(variable, "").split(","))))
    # An empty variable sets nothing: CONCERTINO_PLUGINS="" must not disable every plugin.
    return names or None


def _strings(file: Path, data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = data.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{file}: {key} = {value!r}; expected a list of provider names")
    return tuple(value)


def _tables(file: Path, data: Mapping[str, Any], key: str) -> dict[str, dict[str, Any]]:
    value = data.get(key, {})
    if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
        raise UsageError(f"{file}: {key}: expected tables such as {_TABLES[key]}, got {value!r}")
    return value


def _path(file: Path, data: Mapping[str, Any], key: str) -> Path | None:
    value = data.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise UsageError(f"{file}: {key} = {value!r}; expected a path in quotes")
    return file.parent / value
