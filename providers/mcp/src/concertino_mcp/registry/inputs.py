"""What a `server.json` leaves open, and where it is given: by the user, by the environment, or by its default.

An *input* has a name: that of an argument or a variable. It is given in `inputs`. An environment variable of the server
is taken from our environment, and so is everything that is secret: no secret stands in a file or on a command line.

Invariants: what is required and missing is collected and told at once, with the descriptions that the file gives. No
file chooses which of our variables go to an address: those that do have names that begin with `MCP_`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from concertino import UsageError
from concertino.schema import suggestion

from concertino_mcp.settings import PLACE

from .document import Entry

_BRACES = re.compile(r"\{([A-Za-z_][\w-]*)\}")
_UNFIT = re.compile(r"[^A-Za-z0-9]+")


class Inputs:
    """The values for one server.

    Args:
        server: its short name, which stands in the names of environment variables that are asked for.
        given: inputs by name: texts, numbers, true or false, or lists of them where an argument may be repeated.
        where: the file, for messages.
    """

    def __init__(self, server: str, given: Mapping[str, Any], where: str) -> None:
        self._prefix = f"MCP_{_UNFIT.sub('_', server).strip('_').upper()}"
        self._given = given
        self._where = where
        self._known: set[str] = set()
        self._missing: dict[str, str] = {}
        self._unset: dict[str, str] = {}

    def check(self) -> None:
        """Refuse what is missing, and what was given and is not asked for.

        Raises:
            UsageError: names each, and what it is for.
        """
        steps = [
            f"{step} {', '.join(f'{name} ({text})' if text else name for name, text in names.items())}"
            for step, names in (("set in the environment:", self._unset), ("give in `inputs`:", self._missing))
            if names
        ]
        if steps:
            raise UsageError(f"{self._where}: the server needs more; {'; '.join(steps)}")
        for name in self._given:
            if name not in self._known:
                hint = suggestion(name, sorted(self._known)) if self._known else "there are none"
                raise UsageError(f"{self._where}: it has no input {name!r}; {hint}")

    def variable(self, name: str) -> str:
        """The environment variable for something of this server that has no variable of its own."""
        return f"{self._prefix}_{_UNFIT.sub('_', name).strip('_').upper()}"

    def from_environment(self, entry: Entry, variable: str, *, required: bool = False) -> bool:
        """Whether a variable is set in our environment; one that is required and has no default is noted as unset.

        Args:
            required: it is required, whatever the entry says.
        """
        if os.environ.get(variable, "").strip():
            return True
        if (required or entry.flag("isRequired")) and not entry.text("default"):
            self._unset[variable] = entry.description
        return False

    def values(self, entry: Entry, name: str) -> list[str]:
        """The values of an argument; none where it is left out.

        Args:
            name: of the input, where the file gives no value.
        """
        if entry.text("value"):
            return [self._filled(entry, entry.text("value"))]
        if entry.flag("isSecret"):
            entry.fail(
                f"{name} is a secret on a command line, where other users can read it; declare the server yourself"
            )
        return self._input(entry, name)

    def filled(self, entry: Entry, key: str) -> str:
        """A text whose `{variables}` are those of the entry."""
        return self._filled(entry, entry.text(key))

    def _filled(self, entry: Entry, text: str) -> str:
        variables = entry.named_parts("variables")
        for name, variable in variables.items():
            if f"{{{name}}}" not in text:
                continue
            if variable.flag("isSecret"):
                variable.fail("a secret has no place in an address or a command; declare the server yourself")
            value = variable.text("value") or next(iter(self._input(variable, name)), "")
            text = text.replace(f"{{{name}}}", value)
        return text

    def header(self, entry: Entry, key: str = "value") -> str:
        """A header's fixed value, in which `${NAME}` stands for an environment variable.

        It is empty where a variable is not set that need not be.
        """
        variables = entry.named_parts("variables")
        placed: list[str] = []
        empty: list[str] = []

        def put(match: re.Match[str]) -> str:
            variable = variables.get(match[1])
            if variable is None:
                return match[0]  # braces that mean themselves
            if fixed := variable.text("value"):
                return fixed
            if not variable.flag("isSecret") and (match[1] in self._given or variable.text("default")):
                return next(iter(self._input(variable, match[1])), "")
            name = self.variable(match[1])
            # Its place is kept where it is missing, too: whoever reads of that may set it before the server is asked.
            if not self.from_environment(variable, name) and not variable.flag("isRequired"):
                empty.append(name)
                return ""
            placed.append(name)
            return f"${{{name}}}"

        text = _BRACES.sub(put, entry.text(key))
        if PLACE.findall(text) != placed:  # the file's own, which would send us whatever it names
            entry.fail(f"{key} = {entry.text(key)!r}; '${{' cannot stand in a header")
        return "" if empty else text

    def _input(self, entry: Entry, name: str) -> list[str]:
        """What was given for an input, or its default."""
        self._known.add(name)
        if name in self._given:
            found = list(_as_texts(self._given[name], name, self._where))
            if len(found) > 1 and not entry.flag("isRepeated"):
                raise UsageError(f"{self._where}: inputs.{name} = {self._given[name]!r}; expected one value")
        elif entry.text("default"):
            found = [entry.text("default")]
        else:
            if entry.flag("isRequired"):
                self._missing[name] = entry.description
            return []
        if entry.text("format") == "filepath":
            # The server works elsewhere.
            found = [str(Path(value).expanduser().absolute()) for value in found]
        choices = entry.texts("choices")
        for value in found:
            if choices and value not in choices:
                raise UsageError(f"{self._where}: inputs.{name} = {value!r}; expected one of {', '.join(choices)}")
        return found


def _as_texts(value: Any, name: str, where: str) -> Iterator[str]:
    for item in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(item, bool):
            yield "true" if item else "false"
        elif isinstance(item, (str, int, float)):
            yield str(item)
        else:
            raise UsageError(f"{where}: inputs.{name} = {value!r}; expected a text, a number, true or false, or a list")
