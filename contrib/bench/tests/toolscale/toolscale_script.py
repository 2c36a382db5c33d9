"""A small domain as a model would write it, step by step, for a scripted writer and a scripted solver."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import concertino as ct
from concertino.testing import ScriptedModel

_CODE = {
    "get_book": """
def get_book(db, book_id):
    if book_id not in db["books"]:
        raise ToolError("no such book")
    return db["books"][book_id]
""",
    "lend": """
def lend(db, book_id, member_id):
    if book_id not in db["books"] or member_id not in db["members"]:
        raise ToolError("no such book or member")
    book = db["books"][book_id]
    if book["lent_to"]:
        raise ToolError("the book is lent")
    book["lent_to"] = member_id
    return "lent until 24 June"
""",
    "give_back": """
def give_back(db, book_id):
    if book_id not in db["books"]:
        raise ToolError("no such book")
    db["books"][book_id]["lent_to"] = ""
    return "thanks"
""",
}


def one_string(*names: str) -> dict[str, Any]:
    """A schema of required texts."""
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": [*names],
        "additionalProperties": False,
    }


def entry(**types: str) -> dict[str, Any]:
    """A schema of an entry."""
    return {**one_string(*types), "properties": {name: {"type": kind} for name, kind in types.items()}}


def tool(name: str, writes: bool, *parameters: str, code: str = "") -> dict[str, Any]:
    """A tool of the domain."""
    return {
        "name": name,
        "description": f"Does {name}.",
        "writes": writes,
        "parameters": one_string(*parameters),
        "code": code or _CODE[name],
    }


SCHEMA: dict[str, Any] = {
    "policy": "1. Today is 10 June. A book is lent once.",
    "tables": [
        {"name": "members", "key": "member_id", "entry": entry(member_id="string", name="string")},
        {
            "name": "books",
            "key": "book_id",
            "entry": entry(book_id="string", title="string", lent_to="string"),
            "references": {},
        },
    ],
}
MEMBERS = {"entries": [{"member_id": "m1", "name": "Ada"}, {"member_id": "m2", "name": "Ben"}]}
BOOKS = {"entries": [{"book_id": f"b{n}", "title": f"Book {n}", "lent_to": "m2" if n == 3 else ""} for n in (1, 2, 3)]}
TOOLS = {
    "tools": [
        tool("get_book", False, "book_id"),
        tool("lend", True, "book_id", "member_id"),
        tool("give_back", True, "book_id"),
    ]
}
NOTHING = {"problems": []}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A golden call."""
    return {"name": name, "arguments": arguments}


def task(request: str, *calls: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """A task as the writer gives it."""
    return {"request": request, "calls": [*calls], "required": [*required]}


LEND = task("Lend b1 to me, m1.", call("lend", book_id="b1", member_id="m1"), required=("24 June",))
LEND_TWO = task(
    "Lend b1 and b2 to me, m1.",
    call("lend", book_id="b1", member_id="m1"),
    call("lend", book_id="b2", member_id="m1"),
    required=("24 June",),
)
LOOK = task("Who has b3?", call("get_book", book_id="b3"), required=("m2",))


class Writer:
    """Answers each step with what was given for it, in order; the last one again and again."""

    def __init__(self, **steps: Any) -> None:
        base: dict[str, Any] = {
            "schema": SCHEMA,
            "subjects": {"subjects": ["regulars"]},
            "members": MEMBERS,
            "books": BOOKS,
            "review": NOTHING,
            "tools": TOOLS,
            "intents": {"intents": ["borrow a book"]},
            "task": LEND,
            "evolve": LEND_TWO,
        }
        self.steps = {name: value if isinstance(value, list) else [value] for name, value in {**base, **steps}.items()}
        self.asked: list[str] = []
        self.prompts: list[str] = []
        self.model = ScriptedModel(self.answer, strict=False)

    def answer(self, request: ct.ChatRequest) -> str | BaseException:
        """The next answer of the step that is asked for."""
        first, last = request.messages[1].text, request.messages[-1].text
        step = _step(first)
        self.asked.append(step)
        self.prompts.append(last)
        given = self.steps[step]
        found = given.pop(0) if len(given) > 1 else given[0]
        return found if isinstance(found, (str, BaseException)) else json.dumps(found)


def _step(prompt: str) -> str:
    signs = {
        "Design its database": "schema",
        "subjects that its database": "subjects",
        "of the table 'members'": "members",
        "of the table 'books'": "books",
        "Name each entry": "review",
        "Write about": "tools",
        "things that customers": "intents",
        "Make a harder task": "evolve",
        "Write a task for the intent": "task",
    }
    return next(step for sign, step in signs.items() if sign in prompt)


Solver = Callable[[ct.ChatRequest], Any]


def solving(request: ct.ChatRequest) -> Any:
    """A solver that does what these tasks ask for."""
    text = "\n".join(message.text for message in request.messages)
    wanted = text.rpartition("The customer writes:\n")[2]
    if "You have no tools" in text:
        return "I do not know."
    if "24 June" in wanted or "'m2'" in wanted or '"m2"' in wanted:
        return "<answer>lent until 24 June; m2 has it</answer>"
    if "Lend b1 and b2" in wanted:
        return [("lend", {"book_id": "b1", "member_id": "m1"}), ("lend", {"book_id": "b2", "member_id": "m1"})]
    if "Lend b1" in wanted:
        return [("lend", {"book_id": "b1", "member_id": "m1"})]
    return [("get_book", {"book_id": "b3"})]


def library(writer: Writer, solver: Solver = solving) -> ct.Pool:
    """A pool with the writer, the solver and the real sandbox."""
    sandbox = ct.Pool.installed("code/python")["code/python"]
    models = (
        ct.ModelSpec("writer", lambda: writer.model),
        ct.ModelSpec("solver", lambda: ScriptedModel(solver, strict=False)),
    )
    return ct.Pool.of(sandbox, *models, writer="writer", solver="solver")
