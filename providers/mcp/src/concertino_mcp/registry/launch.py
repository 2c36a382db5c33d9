"""A package of a `server.json` as a command, and a remote as an address: tables like `[providers.mcp.servers.NAME]`.

| `registryType` | command |
|---|---|
| `npm` | `npx -y IDENTIFIER@VERSION` |
| `pypi` | `uvx IDENTIFIER==VERSION` |
| `oci` | `docker run -i --rm -e VARIABLE … IDENTIFIER` |

`runtimeArguments` stand before the package, `packageArguments` behind it. A named argument is two words, its name and
its value, as most programs take it.

A package works in the user's home folder: what lies beside a stranger's file, such as an `.npmrc`, has no say in what
is fetched.

Invariant: no shell reads a command, and no part of a file becomes an option where a name was expected.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .document import Entry
from .inputs import Inputs

START_SECONDS = 60.0
"""For the start of a package, which may have to be fetched first."""
_RUNTIMES = {"npm": ("npx", "bunx"), "pypi": ("uvx",), "oci": ("docker", "podman")}
"""Programs that run a type of package; the first is the usual one."""
_HOMES = {"npm": "https://registry.npmjs.org", "pypi": "https://pypi.org"}
_IDENTIFIERS = {
    "npm": re.compile(r"(@[\w.~-]+/)?[A-Za-z0-9][\w.~-]*"),
    "pypi": re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*"),
    "oci": re.compile(r"[a-z0-9][A-Za-z0-9._:@/-]*"),
}
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]*")


class NotOffered(Exception):
    """A package or remote cannot be used here; the text says why."""


def package_table(package: Entry, inputs: Inputs) -> tuple[dict[str, Any], str]:
    """The table of a package, and what would be started in the notation of a shell, with the variables that it gets.

    Raises:
        NotOffered: it is of a kind that is not offered.
        UsageError: a value cannot be.
    """
    kind = package.text("registryType")
    transport = package.part("transport").text("type") or "stdio"
    if kind not in _RUNTIMES:
        raise NotOffered(f"packages of {kind or 'no type'} are not offered, only {', '.join(_RUNTIMES)}")
    if transport != "stdio":
        raise NotOffered(f"its transport is {transport}; of packages only stdio is offered")
    if package.text("fileSha256"):
        raise NotOffered("it gives a fileSha256, which cannot be checked here")
    program = package.text("runtimeHint") or _RUNTIMES[kind][0]
    if program not in _RUNTIMES[kind]:
        package.fail(f"runtimeHint = {program!r}; expected {' or '.join(_RUNTIMES[kind])}")
    home = package.text("registryBaseUrl").rstrip("/")
    if home not in ("", _HOMES.get(kind, home)):
        raise NotOffered(f"it lies in {home}; only {_HOMES[kind]} is offered")
    env, env_from, shown = _environment(package, inputs)
    before = [*_arguments(package, "runtimeArguments", inputs)]
    after = [*_arguments(package, "packageArguments", inputs)]
    if kind == "oci":
        passed = [word for name in (*env, *env_from) for word in ("-e", name)]
        before = [*([] if before[:1] == ["run"] else ["run", "-i", "--rm"]), *before, *passed]
    elif program == "npx" and "-y" not in before and "--yes" not in before:
        before = ["-y", *before]
    command = [program, *before, _named(package, kind), *after]
    table = {"command": command, "env": env, "env_from": env_from, "cwd": str(Path.home())}
    text = " ".join([*shown, shlex.join(command)])
    return {**{key: value for key, value in table.items() if value}, "start_timeout": START_SECONDS}, text


def remote_table(remote: Entry, inputs: Inputs) -> dict[str, Any]:
    """The table of a remote. Raises as `package_table` does."""
    kind = remote.text("type")
    if kind != "streamable-http":
        raise NotOffered(f"its type is {kind or 'not given'}; only streamable-http is offered")
    headers: dict[str, str] = {}
    headers_env: dict[str, str] = {}
    for header in remote.parts("headers"):
        name = header.text("name")
        variable = inputs.variable(name)
        if not header.text("value") and inputs.from_environment(header, variable):
            headers_env[name] = variable
        else:
            headers[name] = inputs.header(header, "value" if header.text("value") else "default")
    headers = {name: text for name, text in headers.items() if text}
    table: dict[str, Any] = {"url": inputs.filled(remote, "url"), "headers": headers, "headers_env": headers_env}
    return {key: value for key, value in table.items() if value}


def _named(package: Entry, kind: str) -> str:
    """The package, with its version."""
    identifier, version = package.text("identifier"), package.text("version")
    if not _IDENTIFIERS[kind].fullmatch(identifier):
        package.fail(f"identifier = {identifier!r}; expected the name of a package of {kind}")
    if not version:
        return identifier
    if not _VERSION.fullmatch(version):
        package.fail(f"version = {version!r}; expected a version")
    if kind == "oci":
        return identifier if ":" in identifier.rpartition("/")[2] else f"{identifier}:{version}"
    return f"{identifier}{'==' if kind == 'pypi' else '@'}{version}"


def _environment(package: Entry, inputs: Inputs) -> tuple[dict[str, str], list[str], list[str]]:
    """Literal variables, names of those that are passed on, and all of them in the notation of a shell."""
    env: dict[str, str] = {}
    env_from: list[str] = []
    shown: list[str] = []
    for entry in package.parts("environmentVariables"):
        name, default = entry.text("name"), entry.text("default")
        variables = entry.named_parts("variables").values()
        if entry.text("value") and not any(part.flag("isSecret") for part in variables):
            env[name] = inputs.filled(entry, "value")
            shown.append(f"{name}={shlex.quote(env[name])}")
            continue
        # Shown whether it is set or not, so that the same file is always the same command.
        shown.append(f"{name}=${{{name}:-{shlex.quote(default)}}}" if default else f"{name}=${name}")
        if inputs.from_environment(entry, name, required=any(part.flag("isRequired") for part in variables)):
            env_from.append(name)
        elif default:
            env[name] = default
    return env, env_from, shown


def _arguments(package: Entry, key: str, inputs: Inputs) -> Iterator[str]:
    for entry in package.parts(key):
        kind = entry.text("type")
        if kind == "positional":
            yield from inputs.values(entry, _hint(entry))
        elif kind == "named":
            yield from _named_argument(entry, inputs)
        else:
            entry.fail(f"type = {kind!r}; expected 'positional' or 'named'")


def _hint(entry: Entry) -> str:
    name = entry.text("valueHint")
    if not name and not entry.text("value"):
        entry.fail("expected a value, or a valueHint that names the input")
    return name


def _named_argument(entry: Entry, inputs: Inputs) -> Iterator[str]:
    name = entry.text("name")
    if not name:
        entry.fail("expected a name such as '--port'")
    asks = any(key in entry.data for key in ("value", "default", "description", "format", "choices", "valueHint"))
    if not asks:
        yield name  # a flag
        return
    for value in inputs.values(entry, name.lstrip("-")):
        yield name
        yield value
