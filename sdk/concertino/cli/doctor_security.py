"""What this installation leaves open: `concertino doctor --security`.

It looks at files, at the environment and at the metadata of plugins. It imports no plugin but the sandbox, which tests
its own levels. Invariant: it starts no server, makes no member, asks nobody over the network, and shows no secret.
"""

from __future__ import annotations

import importlib.metadata
import ipaddress
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from concertino.core.documents import read_document
from concertino.core.errors import UsageError
from concertino.core.known_secrets import HIDDEN
from concertino.core.redaction import DisplayRedactor, is_secret_name

if TYPE_CHECKING:
    from concertino.core.settings import Settings
    from concertino.plugins.manager import PluginManager

Severity = Literal["high", "medium", "low", "ok"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "ok")

_SANDBOX = "code"
_LEAST_KEY = 16
"""Characters of a key for traces, at least."""
_FILES = 2_000
"""Files of one folder that are looked at."""
_ADDRESSES = ("host", "bind", "listen", "address")
_URLS = ("base_url", "url", "endpoint")
_NOT_SECRET = ("_env", "_from", "_variable", "_file")
"""Ends of names of settings that only say where a secret is."""


class SecurityFinding(NamedTuple):
    """One thing that was looked at.

    Attributes:
        severity: `high` lets others act or read in your name, `medium` does so together with something else, `low` is
            worth to know, `ok` says what was looked at.
        subject: what it is about.
        text: what was seen.
        step: what to do; empty where nothing is to be done.
    """

    severity: Severity
    subject: str
    text: str
    step: str = ""


def inspect_security(manager: PluginManager, environ: Mapping[str, str] | None = None) -> list[SecurityFinding]:
    """Look at everything, what is most severe first."""
    environ = os.environ if environ is None else environ
    settings = manager.settings
    found = [
        *_user(),
        *_trust(settings, environ),
        *_folders(settings),
        *_trace_key(environ),
        *_documents(settings),
        *_key_files(),
        *_plugins(manager),
        *_isolation(manager),
    ]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def _user() -> Iterator[SecurityFinding]:
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        step = "run it as a user of its own"
        yield SecurityFinding("medium", "user", "this process is root: a tool or plugin may do anything here", step)
    else:
        yield SecurityFinding("ok", "user", "this process is an ordinary user")


# -- folders and settings ----------------------------------------------------------------------------------------------


def _trust(settings: Settings, environ: Mapping[str, str]) -> Iterator[SecurityFinding]:
    if environ.get("CONCERTINO_TRUST"):
        given = f"CONCERTINO_TRUST={environ['CONCERTINO_TRUST']}"
        text = f"{given}: the settings of any folder may start commands and load modules"
        yield SecurityFinding("medium", "trust", text, "unset it where you work in folders of others")
    if settings.file is None:
        yield SecurityFinding("ok", "settings", "no settings file is in force")
        return
    if others := _who_writes(settings.file):
        text = f"{settings.file} can be changed by {others}; it names commands, modules and servers"
        yield SecurityFinding("high", "settings", text, f"chmod go-w {settings.file} {settings.file.parent}")
    else:
        yield SecurityFinding("ok", "settings", f"{settings.file} is in force, and you alone can change it")
    if settings.always:
        yield SecurityFinding("ok", "settings", f"loaded in every run: {', '.join(settings.always)}")


def _folders(settings: Settings) -> Iterator[SecurityFinding]:
    folder = settings.trace_folder
    if not folder.is_dir():
        yield SecurityFinding("ok", "traces", f"{folder} is not there yet")
        return
    # A folder that nobody else may enter protects what is in it.
    opened = _mode(folder) & 0o077
    files = list(_inside(folder)) if opened else []
    readable = [file for file in files if _mode(file) & 0o044]
    if opened and readable:
        text = f"{folder}: others can read {len(readable)} of the first {len(files)} traces, sessions and side files"
        yield SecurityFinding("medium", "traces", text, f"chmod -R go-rwx {folder}")
    elif opened:
        text = f"{folder}: others can enter the folder, and see when and how often you ran something"
        yield SecurityFinding("low", "traces", text, f"chmod go-rwx {folder}")
    else:
        yield SecurityFinding("ok", "traces", f"{folder} is private")
    if links := [file.name for file in _inside(folder) if file.is_symlink()]:
        text = f"{folder}: {links[0][:80]!r} is a link and leads out of the folder"
        yield SecurityFinding("low", "traces", text, "remove links that you did not make")


def _trace_key(environ: Mapping[str, str]) -> Iterator[SecurityFinding]:
    key = environ.get("CONCERTINO_TRACE_KEY", "")
    if not key:
        text = "traces are not encrypted at rest: anyone who has the disk can read questions, results and answers"
        yield SecurityFinding("low", "trace key", text, "set CONCERTINO_TRACE_KEY, from a store of secrets")
    elif len(key) < _LEAST_KEY:
        text = f"CONCERTINO_TRACE_KEY has {len(key)} characters and can be guessed"
        yield SecurityFinding("high", "trace key", text, "make one with: openssl rand -base64 32")
    else:
        yield SecurityFinding("ok", "trace key", "traces are encrypted at rest")


def _documents(settings: Settings) -> Iterator[SecurityFinding]:
    """Keys and addresses in the settings and in the pool file that they name."""
    for file in dict.fromkeys(file for file in (settings.file, settings.pool) if file is not None):
        try:
            data = read_document(file, error=UsageError)
        except UsageError as error:
            yield SecurityFinding("low", "settings", str(error), "correct the file")
            continue
        for place, name, value in _texts(data):
            yield from _setting(file, place, name, value)


def _setting(file: Path, place: str, name: str, value: str) -> Iterator[SecurityFinding]:
    where = f"{file}: {place}"
    if (is_secret_name(name) and not name.endswith(_NOT_SECRET)) or HIDDEN in DisplayRedactor().text(value):
        severity: Severity = "high" if _mode(file) & 0o044 else "medium"
        readers = ", which others can read" if severity == "high" else ""
        step = "put it into an environment variable, and make a new one if the file was ever shared"
        yield SecurityFinding(severity, "keys", f"{where} holds a key{readers}", step)
    if name in _ADDRESSES and not _is_loopback(value):
        text = f"{where} = {value!r}: the server answers other machines"
        yield SecurityFinding(
            "high", "server", text, f'set {name} = "127.0.0.1", or put it behind a proxy with a login'
        )
    if name in _URLS and value.startswith("http://") and not _is_loopback(urlsplit(value).hostname or ""):
        text = f"{where}: prompts, results and the key go unencrypted to another machine"
        yield SecurityFinding("medium", "server", text, "use https://, or a tunnel")


def _texts(data: Any, place: str = "", name: str = "") -> Iterator[tuple[str, str, str]]:
    """Texts in a table, with their place and the name that they stand under."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _texts(value, f"{place}.{key}" if place else str(key), str(key))
    elif isinstance(data, list):
        for value in data:
            yield from _texts(value, place, name)
    elif isinstance(data, str) and data:
        yield place, name, data


def _key_files() -> Iterator[SecurityFinding]:
    """Files of variables in the working folder, and files of keys at home, that others can read."""
    home = Path.home()
    places = [Path(".env"), *Path().glob("*.env"), home / ".netrc", home / ".config" / "concertino"]
    for file in dict.fromkeys(places):
        if file.exists() and _mode(file) & 0o044 and (file.is_file() or any(file.iterdir())):
            text = f"{file} usually holds keys, and others can read it"
            yield SecurityFinding("high", "keys", text, f"chmod -R go-rwx {file}")


# -- plugins and isolation ---------------------------------------------------------------------------------------------


def _plugins(manager: PluginManager) -> Iterator[SecurityFinding]:
    rows = manager.plugins()
    installed = {row.name for row in rows if row.state not in ("disabled", "clash", "failed")}
    for name in manager.settings.always:
        if name not in installed:
            text = f"{name!r} is to be loaded in every run and is not usable: its hooks check no call"
            yield SecurityFinding("high", "plugins", text, f"install it: pip install concertino-{name}")
    local = []
    for row in rows:
        for distribution in filter(None, row.distribution.split(", ")):
            origin, folder = _origin(distribution)
            if folder is not None and (others := _who_writes(folder)):
                text = f"{row.name}: {folder} can be changed by {others}; its code runs with your rights"
                yield SecurityFinding("high", "plugins", text, f"chmod -R go-w {folder}")
            if origin:
                local.append(f"{row.name} ({origin})")
    if local:
        text = f"not from a package index, so without a published version to compare with: {', '.join(local)}"
        yield SecurityFinding("low", "plugins", text, "install releases where you do not develop")
    yield SecurityFinding("ok", "plugins", f"{len(rows)} installed; each runs in this process, with your rights")


def _origin(distribution: str) -> tuple[str, Path | None]:
    """Whence a distribution was installed, empty for an index, and the folder of its code, if that is elsewhere."""
    try:
        text = importlib.metadata.distribution(distribution).read_text("direct_url.json")
        data = json.loads(text) if text else {}
        url, editable = str(data.get("url", "")), bool(data.get("dir_info", {}).get("editable"))
    except (importlib.metadata.PackageNotFoundError, OSError, ValueError, AttributeError):
        return "", None
    folder = Path(urlsplit(url).path) if url.startswith("file:") else None
    if folder is not None and not folder.is_dir():
        folder = None
    kind = "editable" if editable else "a version control system" if "vcs_info" in data else "a file"
    return (kind if url else ""), (folder if editable else None)


def _isolation(manager: PluginManager) -> Iterator[SecurityFinding]:
    row = next((row for row in manager.plugins() if row.name == _SANDBOX), None)
    if row is None or row.state == "disabled":
        text = "the sandbox for programs of models is not installed: no level of isolation is there"
        yield SecurityFinding("low", "sandbox", text, "pip install concertino-code")
        return
    row = manager.load(_SANDBOX)
    if row.state != "loaded":
        yield SecurityFinding("high", "sandbox", f"it cannot be loaded: {row.reason}", "concertino doctor")
        return
    severities: dict[str, Severity] = {"error": "high", "warning": "medium", "ok": "ok"}
    for finding in manager.findings(_SANDBOX):
        yield SecurityFinding(severities[finding.level], "sandbox", finding.text, finding.step)


# -- files -------------------------------------------------------------------------------------------------------------


def _mode(path: Path) -> int:
    """The permissions of a file; 0 where they say nothing."""
    try:
        return stat.S_IMODE(path.stat().st_mode) if os.name == "posix" else 0
    except OSError:
        return 0


def _who_writes(path: Path) -> str:
    """Who else can change a file or its folder, in words; empty if nobody can."""
    for place in (path, path.absolute().parent):
        mode = _mode(place)
        # In a folder such as /tmp nobody can replace a file of another user.
        if mode & 0o002 and not mode & stat.S_ISVTX:
            return "everybody"
        if mode & 0o020 and not mode & stat.S_ISVTX and place.stat().st_gid != os.getgid():
            return "another group"
        if os.name == "posix" and place.exists() and place.stat().st_uid not in (0, os.geteuid()):
            return "another user"
    return ""


def _inside(folder: Path) -> Iterator[Path]:
    """The first files of a folder and of its folders."""
    try:
        for number, file in enumerate(folder.rglob("*")):
            if number >= _FILES:
                return
            yield file
    except OSError:
        return


def _is_loopback(host: str) -> bool:
    name = urlsplit(host).hostname if "://" in host else host.rpartition(":")[0] if host.count(":") == 1 else host
    try:
        return ipaddress.ip_address((name or "").strip("[]")).is_loopback
    except ValueError:
        return name in ("localhost", "") or (name or "").endswith(".localhost")
