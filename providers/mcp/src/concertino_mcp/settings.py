"""A declared server: how to reach it, which of its tools are wanted, and what bounds it. Plain data, hashable.

One table `[providers.mcp.servers.<name>]`, or the keyword arguments of `concertino_mcp.server(...)`, make one
`McpServerSettings`. Two equal declarations mean the same server: a process starts it once.

Invariant: no secret stands in a declaration. `env_from` and `headers_env` name environment variables, which are read
when the server is started.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args
from urllib.parse import urlsplit

from concertino import UsageError

KEYS = (
    "command",
    "args",
    "env",
    "env_from",
    "cwd",
    "url",
    "headers",
    "headers_env",
    "as",
    "role",
    "include",
    "exclude",
    "prefix",
    "writes",
    "timeout",
    "start_timeout",
    "idle_timeout",
    "concurrency",
    "binary",
)
"""The keys of a server's table."""
REGISTRY_KEYS = ("use", "inputs")
"""Further keys of a server that is described by a file."""

Binary = Literal["attach", "describe", "data"]
"""What becomes of the binary parts of an answer."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_PREFIX = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,31})?")
_STDIO_ONLY = ("command", "args", "env", "env_from", "cwd")
_HTTP_ONLY = ("url", "headers", "headers_env")
PLACE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""Where the value of an environment variable goes in a header."""


@dataclass(frozen=True)
class McpServerSettings:
    """One server.

    Attributes:
        name: stands before the names of its tools.
        command: program and arguments of a server over stdio; empty for one over HTTP.
        env: literal environment variables, as pairs.
        env_from: names of environment variables that are passed on.
        cwd: the server's working directory; empty for that of this process.
        url: address of a server over streamable HTTP; empty for one over stdio.
        headers: HTTP headers and their values, in which `${NAME}` stands for the environment variable.
        headers_env: HTTP headers and the environment variables that hold their values.
        kind: `tools`: each of its tools is a tool of the pool; `agent`: the server is one agent.
        role: the model role that the agent asks for.
        include, exclude: patterns of the tools that are taken, by their own names.
        prefix: stands before the names of its tools; None for the server's name and a dot.
        writes: pairs of a pattern and whether such tools write, over what the server says; the first that fits counts.
        timeout: seconds for one call.
        start_timeout: seconds from the start until its tools are listed.
        idle_timeout: seconds without a call after which the session is closed; None for never.
        concurrency: calls of it at once; None for no limit.
        binary: what becomes of images, audio and binary resources: `attach` them, so that models see them; `describe`
            them by type and size; or keep their `data` in the content.
    """

    name: str
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    env_from: tuple[str, ...] = ()
    cwd: str = ""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    headers_env: tuple[tuple[str, str], ...] = ()
    kind: Literal["tools", "agent"] = "tools"
    role: str = "default"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    prefix: str | None = None
    writes: tuple[tuple[str, bool], ...] = ()
    timeout: float = 60.0
    start_timeout: float = 8.0
    idle_timeout: float | None = 600.0
    concurrency: int | None = None
    binary: Binary = "attach"

    @property
    def transport(self) -> str:
        """`stdio` or `http`."""
        return "http" if self.url else "stdio"

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that it needs."""
        placed = (variable for _, text in self.headers for variable in PLACE.findall(text))
        return (*self.env_from, *(variable for _, variable in self.headers_env), *placed)

    def takes(self, tool: str) -> bool:
        """Whether a tool of this name is wanted."""
        wanted = not self.include or any(fnmatchcase(tool, pattern) for pattern in self.include)
        return wanted and not any(fnmatchcase(tool, pattern) for pattern in self.exclude)

    def says_writes(self, tool: str) -> bool | None:
        """Whether a tool writes, as it was declared; None where nothing was said."""
        return next((writes for pattern, writes in self.writes if fnmatchcase(tool, pattern)), None)


def declarations(settings: Mapping[str, Any] | None) -> list[McpServerSettings]:
    """The servers of a table `[providers.mcp]`, in its order.

    Raises:
        UsageError: a key or a value cannot be; says which, where, and what is expected.
    """
    if not settings:
        return []
    where = str(getattr(settings, "where", "[providers.mcp]"))
    _refuse_unknown(settings, ("servers", "allow", "registry"), where)
    servers, registry = settings.get("servers", {}), settings.get("registry", {})
    if not isinstance(servers, Mapping):
        raise UsageError(f"{where}: servers = {servers!r}; expected tables such as [providers.mcp.servers.files]")
    if not isinstance(registry, Mapping) or not all(isinstance(table, Mapping) for table in registry.values()):
        raise UsageError(f'{where}: registry = {registry!r}; expected tables such as [providers.mcp.registry."io.x/y"]')
    for name, table in registry.items():
        _refuse_unknown(table, (*KEYS, *REGISTRY_KEYS), f"{where}: registry {name!r}")
    folder = getattr(settings, "folder", None)
    return [declare(name, table, folder=folder, where=where) for name, table in servers.items()]


def declare(
    name: str, table: Mapping[str, Any], *, folder: Path | None = None, where: str = "server(...)"
) -> McpServerSettings:
    """One server, checked.

    Args:
        name: letters, digits, '_' and '-', at most 32.
        table: keys of `KEYS`.
        folder: what relative paths count from; the server works there unless `cwd` says otherwise.
        where: for error messages.

    Raises:
        UsageError: a key or a value cannot be.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"{where}: {name!r} is not a valid server name; expected letters, digits, '_', '-', at most 32"
        )
    where = f"{where}: server {name!r}"
    if not isinstance(table, Mapping):
        raise UsageError(f"{where} is {table!r}; expected a table with `command` or `url`")
    _refuse_unknown(table, KEYS, where)
    read = _TableReader(where, table)
    command = read.command()
    url = read.url()
    if bool(command) == bool(url):
        given = "both `command` and `url` are given" if command else "neither `command` nor `url` is given"
        read.fail(f"{given}; give either `command` (a server that is started here) or `url` (one over HTTP)")
    for key in _HTTP_ONLY if command else _STDIO_ONLY:
        if key in table:
            read.fail(f"{key} belongs to a server with {'url' if command else 'command'}")
    folder = folder.absolute() if folder is not None else None
    return McpServerSettings(
        name=name,
        command=_placed(command, folder),
        env=read.pairs("env", _VARIABLE, "an environment variable"),
        env_from=read.texts("env_from", _VARIABLE, "the name of an environment variable"),
        cwd=read.folder("cwd", folder) if command else "",
        url=url,
        headers=read.headers(),
        headers_env=read.headers_env(),
        kind=read.choice("as", ("tools", "agent")),
        role=read.text("role", "default"),
        include=read.texts("include"),
        exclude=read.texts("exclude"),
        prefix=read.prefix(),
        writes=read.writes(),
        timeout=read.seconds("timeout", 60.0) or 60.0,
        start_timeout=read.seconds("start_timeout", 8.0) or 8.0,
        idle_timeout=read.seconds("idle_timeout", 600.0, endless=True),
        concurrency=read.places("concurrency"),
        binary=read.choice("binary", get_args(Binary)),
    )


def _refuse_unknown(table: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    from concertino.schema import suggestion

    known = tuple(known)
    for key in table:
        if key not in known:
            hint = suggestion(str(key), known)
            raise UsageError(f"{where}: unknown key {key!r}; {hint}")


def _placed(command: tuple[str, ...], folder: Path | None) -> tuple[str, ...]:
    """A program that is given as a relative path counts from the folder; a bare name is looked up in PATH."""
    if not command or folder is None or "/" not in command[0] or Path(command[0]).is_absolute():
        return command
    return (str(folder / command[0]), *command[1:])


class _TableReader:
    """The values of one table, each checked for its form."""

    def __init__(self, where: str, table: Mapping[str, Any]) -> None:
        self.where = where
        self.table = table

    def fail(self, text: str) -> NoReturn:
        raise UsageError(f"{self.where}: {text}")

    def wrong(self, key: str, expected: str) -> NoReturn:
        self.fail(f"{key} = {self.table[key]!r}; expected {expected}")

    def text(self, key: str, default: str = "") -> str:
        value = self.table.get(key, default)
        if not isinstance(value, str) or (key in self.table and not value.strip()) or "\0" in value:
            self.wrong(key, "a text")
        return value

    def texts(self, key: str, pattern: re.Pattern[str] | None = None, what: str = "a text") -> tuple[str, ...]:
        value = self.table.get(key, [])
        fits = isinstance(value, (list, tuple)) and all(
            isinstance(item, str) and item and "\0" not in item and (pattern is None or pattern.fullmatch(item))
            for item in value
        )
        if not fits:
            self.wrong(key, f"a list, each item {what}")
        return tuple(value)

    def command(self) -> tuple[str, ...]:
        given = self.table.get("command")
        if given is None:
            if "args" in self.table:
                self.fail("args is given without command; give the program as `command`")
            return ()
        if isinstance(given, str) and given.strip():
            # No shell reads it, so a blank would be part of the program's name.
            if " " in given.strip() and "args" not in self.table:
                self.wrong("command", f"a list: {given.split()!r}")
            program: tuple[str, ...] = (given,)
        else:
            program = self.texts("command")
        if not program:
            self.wrong("command", 'a program and its arguments, such as ["npx", "-y", "some-server"]')
        rest = self.table.get("args", [])
        if not isinstance(rest, (list, tuple)) or not all(isinstance(item, str) and "\0" not in item for item in rest):
            self.wrong("args", "a list of texts")
        return (*program, *rest)

    def url(self) -> str:
        url = self.text("url")
        if url:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                self.wrong("url", "an address such as https://example.org/mcp")
            if parts.username or parts.password:
                self.fail("url holds a user or password; put the header into an environment variable: `headers_env`")
        return url

    def pairs(self, key: str, pattern: re.Pattern[str], what: str) -> tuple[tuple[str, str], ...]:
        value = self.table.get(key, {})
        if not isinstance(value, Mapping) or not all(
            isinstance(name, str) and pattern.fullmatch(name) and isinstance(text, str) and "\0" not in text
            for name, text in value.items()
        ):
            self.wrong(key, f"a table of texts, each key {what}")
        return tuple(value.items())

    def headers(self) -> tuple[tuple[str, str], ...]:
        pairs = self.pairs("headers", _HEADER, "a header")
        for header, text in pairs:
            if "\n" in text or "\r" in text or not text.strip():
                self.fail(f"headers.{header} = {text!r}; expected one line of text")
        return pairs

    def headers_env(self) -> tuple[tuple[str, str], ...]:
        pairs = self.pairs("headers_env", _HEADER, "a header")
        for header, variable in pairs:
            if not _VARIABLE.fullmatch(variable):
                self.fail(
                    f"headers_env.{header} is not the name of an environment variable; put the value into one, and "
                    "give its name"
                )
        return pairs

    def folder(self, key: str, folder: Path | None) -> str:
        given = self.text(key)
        if not given:
            return str(folder) if folder is not None else ""
        return str((folder or Path()) / Path(given).expanduser())

    def choice(self, key: str, known: tuple[str, ...]) -> Any:
        value = self.table.get(key, known[0])
        if value not in known:
            self.wrong(key, " or ".join(map(repr, known)))
        return value

    def prefix(self) -> str | None:
        value = self.table.get("prefix")
        if value is not None and (not isinstance(value, str) or not _PREFIX.fullmatch(value)):
            self.wrong("prefix", "letters, digits, '_', '-' and '.', at most 32, beginning with a letter or digit")
        return value

    def writes(self) -> tuple[tuple[str, bool], ...]:
        value = self.table.get("writes", {})
        if isinstance(value, bool):
            return (("*", value),)
        if not isinstance(value, Mapping) or not all(isinstance(flag, bool) for flag in value.values()):
            self.wrong("writes", 'true, false, or a table such as {"read_*" = false}')
        return tuple((str(pattern), flag) for pattern, flag in value.items())

    def seconds(self, key: str, default: float, *, endless: bool = False) -> float | None:
        value = self.table.get(key, default)
        if endless and value in (0, None):
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
            self.wrong(key, "seconds, a number > 0" + (", or 0 for never" if endless else ""))
        return float(value)

    def places(self, key: str) -> int | None:
        value = self.table.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            self.wrong(key, "a whole number >= 1")
        return value
