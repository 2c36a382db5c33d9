"""A package of a `server.json` as a command, and a remote as an address: tables like `[providers.mcp.servers.NAME]`.

| `registryType` | command |
|---|---|
| `npm` | `npx -y IDENTIFIER@VERSION` |
| `pypi` | `uvx IDENTIFIER==VERSION` |
| `oci` | `docker run -i --rm -e VARIABLE … IDENTIFIER` |

`runtimeArguments` stand before the package, `packageArguments` behind it. A named argument is two words, its name and
its value, as most programs take it; of a boolean, its name alone where it is true.

A `registryBaseUrl` becomes the variable by which the program knows its registry. The person who allows the command sees
where the package is fetched. Without one, the user's own settings decide.

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
_REGISTRIES = {
    "npx": ("NPM_CONFIG_REGISTRY", "{}"),
    "bunx": ("BUN_CONFIG_REGISTRY", "{}"),
    "uvx": ("UV_DEFAULT_INDEX", "{}/simple"),
}
"""By program, the variable that names its registry, and the address there; an image names its registry itself."""
_IDENTIFIERS = {
    "npm": re.compile(r"(@[\w.~-]+/)?[A-Za-z0-9][\w.~-]*"),
    "pypi": re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*"),
    "oci": re.compile(r"[a-z0-9][A-Za-z0-9._:@/-]*"),
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
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
    variables = _Variables(inputs)
    home = package.text("registryBaseUrl").rstrip("/")
    if home and program in _REGISTRIES:
        if not home.startswith("https://"):
            package.fail(f"registryBaseUrl = {home!r}; expected an address that begins with https://")
        variable, address = _REGISTRIES[program]
        variables.set(variable, address.format(home))
    for entry in package.parts("environmentVariables"):
        variables.add(entry, entry.text("name"))
    image = package.text("identifier") if kind == "oci" else ""
    before = [*_arguments(package, "runtimeArguments", inputs, variables if image else None, image)]
    after = [*_arguments(package, "packageArguments", inputs)]
    if image:
        before = _docker_words(before, variables)
    elif program == "npx" and "-y" not in before and "--yes" not in before:
        before = ["-y", *before]
    command = [program, *before, _named(package, kind), *after]
    table = {"command": command, "env": variables.env, "env_from": variables.env_from, "cwd": str(Path.home())}
    text = " ".join([*variables.shown, shlex.join(command)])
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


class _Variables:
    """The environment variables of a package.

    Attributes:
        env: literal ones.
        env_from: names of those that are passed on.
        shown: all that the file names, set or not, in the notation of a shell, so that the same file is always the same
            command.
        names: of all of them.
    """

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self.env: dict[str, str] = {}
        self.env_from: list[str] = []
        self.shown: list[str] = []
        self.names: list[str] = []

    def set(self, name: str, value: str) -> None:
        """Add one with a literal value."""
        self.env[name] = value
        self.shown.append(f"{name}={shlex.quote(value)}")

    def add(self, entry: Entry, name: str) -> None:
        """Add one; a value with a secret in it is taken whole from our environment."""
        if not _VARIABLE.fullmatch(name):
            entry.fail(f"{name!r} is not the name of an environment variable")
        default, parts = entry.text("default"), entry.named_parts("variables").values()
        self.names.append(name)
        if entry.text("value") and not any(part.flag("isSecret") for part in parts):
            self.set(name, self._inputs.filled(entry, "value"))
            return
        self.shown.append(f"{name}=${{{name}:-{shlex.quote(default)}}}" if default else f"{name}=${name}")
        if self._inputs.from_environment(entry, name, required=any(part.flag("isRequired") for part in parts)):
            self.env_from.append(name)
        elif default:
            self.env[name] = default


def _docker_words(words: list[str], variables: _Variables) -> list[str]:
    """`run` and what stands behind it. A variable that is not set is not set in the container either."""
    words = words[1:] if words[:1] == ["run"] else words
    first = ["run", *(flag for flag in ("-i", "--rm") if flag not in words)]
    return [*first, *words, *(word for name in variables.names for word in ("-e", name))]


def _arguments(
    package: Entry, key: str, inputs: Inputs, variables: _Variables | None = None, image: str = ""
) -> Iterator[str]:
    """The words of a list of arguments.

    Args:
        variables: of a container, where `-e NAME={secret}` is a variable that is passed on.
        image: of a container, which some files name among the arguments too.
    """
    for entry in package.parts(key):
        kind = entry.text("type")
        if kind == "positional":
            words = inputs.values(entry, _hint(entry))
            yield from (word for word in words if not image or word not in (image, image.rpartition(":")[0]))
        elif kind != "named":
            entry.fail(f"type = {kind!r}; expected 'positional' or 'named'")
        elif variables is not None and (name := _secret_variable(entry)):
            variables.add(entry, name)
        else:
            yield from _named_argument(entry, inputs)


def _secret_variable(entry: Entry) -> str:
    """The name in `-e NAME={secret}`; empty for any other argument."""
    secret = any(part.flag("isSecret") for part in entry.named_parts("variables").values())
    return entry.text("value").partition("=")[0] if secret and entry.text("name") in ("-e", "--env") else ""


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
        if entry.text("format") != "boolean":
            yield name
            yield value
        elif value == "true":
            yield name
