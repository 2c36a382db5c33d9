"""The page of every issue that a strategy's reader can find, each with a text that causes it, read by that very reader.

The texts are in `docs/examples/strategies/issues.toml`. Invariant: what the page says of a text is computed from it;
a code without a text, or a text of an unknown code, is an error.
"""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from concertino import Reply
from concertino.core.format_issue import FormatIssue
from concertino.strategies import Act, TaskContext
from concertino.strategies.agent_graph import format as graphs
from concertino.strategies.base.format_issues import report
from concertino.strategies.dependency_plan import format as turns
from concertino.strategies.dependency_plan.strategy import resolve_call_tags
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.parallel_rounds import format as rounds
from concertino.strategies.role_workflow import document as documents
from concertino.strategies.role_workflow import format as roles
from concertino.strategies.serial_calls import format as serial
from concertino.strategies.serial_calls.choices import choices_by_tool
from tree import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "strategies" / "issues.toml"


@dataclass(frozen=True)
class Example:
    """A text that causes an issue.

    Attributes:
        reader: a key of `READERS`.
        code: what it is to cause.
        text: what the model wrote.
        shown: the same, with "…" for what repeats.
        times: how often something is repeated in it, 1 if nothing is.
        also: codes of issues that such a text cannot be without.
        options: of the reader.
    """

    reader: str
    code: str
    text: str
    shown: str
    times: int = 1
    also: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def issues(self) -> tuple[FormatIssue, ...]:
        """What the reader says of the text."""
        return READERS[self.reader].read(self.text, **self.options)

    def issue(self) -> FormatIssue:
        """The issue that it is an example of.

        Raises:
            LookupError: the reader finds no such issue.
        """
        found = self.issues()
        for issue in found:
            if issue.code == self.code:
                return issue
        codes = [issue.code for issue in found]
        raise LookupError(f"{EXAMPLES.name}: the text of [{self.reader}.{self.code}] has the issues {codes}")


def examples() -> list[Example]:
    """All examples, in the order of the file."""
    tables = _tables()
    return [
        _example(reader, code, table)
        for reader in tables
        if reader != "members"
        for code, table in tables[reader].items()
    ]


def _tables() -> dict[str, Any]:
    return tomllib.loads(EXAMPLES.read_text(encoding="utf-8"))


def _example(reader: str, code: str, table: Mapping[str, Any]) -> Example:
    options = dict(table)
    text = options.pop("text").removesuffix("\n")
    repeated, times = options.pop("repeated", ""), options.pop("times", 1)
    also = tuple(options.pop("also", ()))
    pieces = [repeated.replace("{n}", str(number)) for number in range(1, times + 1)]
    gap = "…\n" if repeated.endswith("\n") else "…"
    ends = "".join([pieces[0], gap, pieces[-1]]).removesuffix("\n")
    whole = "".join(pieces).removesuffix("\n")
    return Example(
        reader, code, text.replace("{repeated}", whole), text.replace("{repeated}", ends), times, also, options
    )


def members() -> list[dict[str, Any]]:
    """The members that the texts are read with, as function objects; every argument is needed."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": "",
                "parameters": {
                    "type": "object",
                    "properties": properties,
                    "required": list(properties),
                    "additionalProperties": False,
                },
            },
        }
        for name, properties in _tables()["members"].items()
    ]


# -- the readers ---------------------------------------------------------------------------------------------------


def _read_round(text: str) -> tuple[FormatIssue, ...]:
    machine = ParallelRounds().begin(TaskContext("What is 3*4?", members()))
    machine.on_reply(Reply(text))
    step = machine.step()
    return step.issues if isinstance(step, Act) else rounds.check_round(text)


def _read_graph(text: str, finish_reason: str = "stop", **options: Any) -> tuple[FormatIssue, ...]:
    return graphs.read_graph(text, members(), cut_off=finish_reason == "length", **options).issues


def _read_plan(text: str, **options: Any) -> tuple[FormatIssue, ...]:
    offered = members()
    return turns.read_turn(text, resolve_call_tags(offered, ()), offered, **options).issues


def _read_turn(text: str, finish_reason: str = "stop") -> tuple[FormatIssue, ...]:
    offered = members()
    names = [tool["function"]["name"] for tool in offered]
    reply = Reply(text, finish_reason=finish_reason)
    return serial.read_turn(reply, tools=names, choices=choices_by_tool(offered)).issues


def _read_role(text: str, reads: roles.Form, finish_reason: str = "stop") -> tuple[FormatIssue, ...]:
    return roles.read_role_text(Reply(text, finish_reason=finish_reason), reads).issues


def _read_document(text: str, kind: Literal["toml", "json"] = "toml") -> tuple[FormatIssue, ...]:
    return documents.read_document_text(text, kind).issues


class Reader(NamedTuple):
    """A reader, and what the page says of it.

    Attributes:
        read: the issues of a text.
        codes: its table of codes.
        title: heading of its section.
        told: who reads of its issues, and where.
    """

    read: Callable[..., tuple[FormatIssue, ...]]
    codes: Mapping[str, str]
    title: str
    told: str


READERS: dict[str, Reader] = {
    "parallel-rounds": Reader(
        _read_round,
        rounds.CODES,
        "`parallel-rounds`",
        "`Run.rounds[i].issues` lists the format issues of a round. Readable calls run. A call that cannot be read, or "
        "is one too many, is observed as `PARSE_ERR`. A text without any call is returned to the model.",
    ),
    "agent-graph": Reader(
        _read_graph,
        graphs.CODES,
        "`agent-graph`",
        "After a fault nothing runs: the model gets all faults, a line each, as below.",
    ),
    "dependency-plan": Reader(
        _read_plan,
        turns.CODES,
        "`dependency-plan`",
        "After a fault of the turn nothing runs: the model gets all faults, a line each, as below. A fault of one "
        "call is observed as its `PARSE_ERR`, and the other calls run.",
    ),
    "serial-calls": Reader(
        _read_turn,
        serial.CODES,
        "`serial-calls`",
        "A fault of a call is the message of its `PARSE_ERR`. A text without a call is returned to the model with the "
        "messages.",
    ),
    "role-workflow": Reader(
        _read_role,
        roles.CODES,
        "`role-workflow`",
        "A text that cannot be read is handed back to its role with the messages. `reads` is what the role's text is "
        "read as; that of roles with `calls` has the codes of [`serial-calls`](#serial-calls).",
    ),
    "role-workflow-document": Reader(
        _read_document,
        documents.CODES,
        "Workflow documents",
        "A [workflow of roles](../explanation/strategies.md) in a TOML or JSON file. Whoever loads it is told all "
        "faults at once, each with its line; nothing is repaired.",
    ),
}
"""The readers by the name of their strategy."""


# -- the page ------------------------------------------------------------------------------------------------------

PAGE = """\
# Strategy issues

The format issues of each strategy, each with a text that causes it. `make reference` makes this page by reading these
texts. Below each text are the code, the line and the message of its issue.

*Repaired* means that the text is unambiguous and was repaired; if a strategy has `strict`, `strict=True` refuses it.
Every other issue is a fault. The statuses and codes of calls are on the page [observation](observation.md).

The texts are read with these members; every argument is needed:

```toml
--8<-- "docs/examples/strategies/issues.toml:members"
```
"""


def issues_page() -> str:
    """`strategy-issues.md`: every code of every reader.

    Raises:
        LookupError: a code has no example, or an example no code.
    """
    found = {(example.reader, example.code): example for example in examples()}
    wanted = {(name, code) for name, reader in READERS.items() for code in reader.codes}
    if odd := sorted(wanted ^ set(found)):
        raise LookupError(f"{EXAMPLES.name}: codes without a text, or texts without a code: {odd}")
    parts = [PAGE]
    for name, reader in READERS.items():
        parts.append(f"## {reader.title} {{ #{name} }}\n\n{_filled(reader.told)}\n")
        parts += [_section(found[name, code], meaning) for code, meaning in reader.codes.items()]
    return "\n".join(parts)


def _section(example: Example, meaning: str) -> str:
    issue = example.issue()
    told = report(example.text, [issue]).removeprefix("- ")
    repaired = " *Repaired.*" if issue.repaired and "repaired" not in meaning else ""
    parts = [
        f"### `{example.code}` {{ #{example.reader}-{example.code} }}\n",
        _filled(_sentence(meaning) + repaired) + "\n",
        _fenced(example.shown),
    ]
    if example.times > 1:
        parts.append(f"`…` stands for more of the same, {example.times:,} in all.\n")
    if example.options:
        options = ", ".join(f"`{key} = {json.dumps(value)}`" for key, value in example.options.items())
        parts.append(f"Read with {options}.\n")
    return "\n".join([*parts, _fenced(told)])


def _sentence(meaning: str) -> str:
    """A meaning as a sentence, with tags and braces as code."""
    text = meaning if "`" in meaning else re.sub(r"</?\w+>(?:\.\.\.</\w+>)?", r"`\g<0>`", meaning)
    return f"{text[0].upper()}{text[1:].removesuffix('.')}."


def _fenced(text: str) -> str:
    """A block that holds the text, whatever fences stand in it."""
    longest = max((len(fence) for fence in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}\n"


def _filled(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)
