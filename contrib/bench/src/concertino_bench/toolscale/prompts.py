"""What a model is told in each step. The steps are those of ToolScale; the words are our own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from concertino.text import Quoting

from .schemas import MODULES

SYSTEM = (
    "You build a small simulated service: a database, tools that act on it, and tasks for the people who use it. "
    "Answer with the JSON that is asked for and nothing else."
)


def for_schema(domain: str) -> str:
    """Asks for the tables."""
    return (
        f"The domain is: {domain}.\nDesign its database: two to six tables. Of each give its name, the field that is "
        "the key of its entries (a required string), `entry`, a JSON schema of one entry (type object, with properties "
        "and required, additionalProperties false), and `references`: fields that hold the key of an entry of another "
        "table, which must come before it in the list. Prefer few, telling fields; money as whole numbers; dates as "
        "YYYY-MM-DD.\nWrite `policy` too: what the staff may do for a customer and what not, in numbered sentences, "
        "with today's date."
    )


def for_subjects(domain: str, count: int) -> str:
    """Asks for subjects, which make the entries varied."""
    return (
        f"The domain is: {domain}.\nName {count} subjects that its database should cover, each in a few words and "
        "unlike the others, such as a sort of customer, an unusual case, a season."
    )


def for_entries(
    schema: Mapping[str, Any], table: str, subject: str, count: int, known: Mapping[str, Sequence[str]]
) -> str:
    """Asks for entries of one table."""
    keys = {name: list(found) for name, found in known.items() if found}
    return (
        f"{_shown('The tables', schema['tables'])}\nWrite {count} entries of the table {table!r} on the subject: "
        f"{subject}.\nEach must fit the schema; its values must be plausible and agree with each other.\n"
        f"{_shown('Keys that exist already, to be referred to and not to be used again', keys)}"
    )


def for_review(schema: Mapping[str, Any], table: str, entries: Sequence[Any]) -> str:
    """Asks for what is wrong with entries beyond their form."""
    return (
        f"{_shown('The tables', schema['tables'])}\n{_shown(f'New entries of {table}', entries)}\n"
        "Name each entry, by its key, whose values contradict each other or are not plausible, with the problem. "
        "An empty list if there is none."
    )


def for_tools(domain: str, schema: Mapping[str, Any], sample: Mapping[str, Any], count: int) -> str:
    """Asks for the tools and their code."""
    return (
        f"The domain is: {domain}.\n{_shown('The tables', schema['tables'])}\n{_shown('Entries', sample)}\n"
        f"Policy:\n{schema['policy']}\n\nWrite about {count} tools, some that look things up and some that change "
        "them. Of each give name, description, `writes` (whether it changes anything), `parameters` (a JSON schema of "
        "type object), and `code`: Python that defines a function of that name. Its first parameter is `db`, a dict of "
        "tables, each a dict of entries by key; the others are those of `parameters`, with a default where they are "
        "not required. It returns JSON data. Where something cannot be done it does `raise ToolError('why')`, which "
        f"is defined already. It may import {', '.join(MODULES)} and nothing else. No randomness, no clock."
    )


def for_intents(domain: str, tools: Sequence[Mapping[str, Any]], count: int) -> str:
    """Asks for what people want."""
    return (
        f"The domain is: {domain}.\n{_shown('The tools', _signatures(tools))}\nName {count} things that customers "
        "want and that these tools can do, each in one sentence without names or numbers, unlike the others. Some "
        "should need several tools, and some should have to be refused under the policy."
    )


def for_task(tools: Sequence[Mapping[str, Any]], database: Mapping[str, Any], policy: str, intent: str) -> str:
    """Asks for a task."""
    return (
        f"{_shown('The tools', _signatures(tools))}\n{_shown('The database', database)}\nPolicy:\n{policy}\n\n"
        f"Write a task for the intent: {intent}\n{_TASK}"
    )


def for_evolved(
    tools: Sequence[Mapping[str, Any]], database: Mapping[str, Any], policy: str, task: Mapping[str, Any]
) -> str:
    """Asks for a harder task."""
    old = {name: task[name] for name in ("request", "golden", "required")}
    return (
        f"{_shown('The tools', _signatures(tools))}\n{_shown('The database', database)}\nPolicy:\n{policy}\n\n"
        f"{_shown('A task', old)}\nMake a harder task of it: with another condition, more entries, a catch. Its calls "
        f"or its facts must differ.\n{_TASK}"
    )


_TASK = (
    "`request` is what the customer writes: with everything that nobody could look up, and without names of tools. "
    "`calls` are the calls that solve it, in order, all of which succeed; look up only what has to be known. "
    "`required` are the facts that the customer must be told: short texts that only the tools can give, such as a "
    "price; empty if there is none."
)


def for_repair(problems: Sequence[str]) -> str:
    """Tells the model what is wrong with its reply."""
    return "That cannot be used:\n" + "\n".join(f"- {problem}" for problem in problems) + "\nWrite all of it again."


def _signatures(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: tool[name] for name in ("name", "description", "writes", "parameters")} for tool in tools]


def _shown(title: str, data: Any) -> str:
    return f"{title}:\n{Quoting().json(json.dumps(data, ensure_ascii=False))}"
