"""A domain and two tasks, synthesised with a model that was scripted; the tools run in the real sandbox."""

import asyncio
import json
import tempfile

import concertino as ct
from concertino.testing import ScriptedModel
from concertino_bench.toolscale import SynthesisSettings, folder_tasks, synthesise

TEXT = {"type": "string"}
BOOK = {
    "type": "object",
    "properties": {"book_id": TEXT, "lent_to": TEXT},
    "required": ["book_id", "lent_to"],
}
MEMBER = {"type": "object", "properties": {"member_id": TEXT}, "required": ["member_id"]}
LEND = """
def lend(db, book_id, member_id):
    if book_id not in db["books"] or db["books"][book_id]["lent_to"]:
        raise ToolError("that book is not here")
    db["books"][book_id]["lent_to"] = member_id
    return "until 24 June"
"""
BOTH = {"type": "object", "properties": {"book_id": TEXT, "member_id": TEXT}, "required": ["book_id", "member_id"]}


def lend(*books: str) -> list[dict]:
    return [{"name": "lend", "arguments": {"book_id": book, "member_id": "m1"}} for book in books]


def task(request: str, *books: str) -> dict:
    return {"request": request, "calls": lend(*books), "required": ["24 June"]}


replies = [
    {
        "policy": "A book is lent once.",
        "tables": [
            {"name": "members", "key": "member_id", "entry": MEMBER},
            {"name": "books", "key": "book_id", "entry": BOOK},
        ],
    },
    {"subjects": ["regulars"]},
    {"entries": [{"member_id": "m1"}]},
    {"entries": [{"book_id": "b1", "lent_to": ""}, {"book_id": "b2", "lent_to": ""}]},
    {"tools": [{"name": "lend", "description": "Lend a book.", "writes": True, "parameters": BOTH, "code": LEND}]},
    {"intents": ["borrow a book"]},
    task("I am m1. Lend me b7.", "b7"),  # there is no b7: the model is told so, and writes the task again
    task("I am m1. Lend me b1.", "b1"),
    task("I am m1. Lend me b1 and b2.", "b1", "b2"),
]
writer = ScriptedModel(*map(json.dumps, replies))
solver = ScriptedModel(
    [("lend", {"book_id": "b1", "member_id": "m1"})],
    "<answer>b1 is yours until 24 June.</answer>",
    *["<answer>Come back later.</answer>"] * 2,  # the second task is not solved in its two attempts
)
pool = ct.Pool.of(
    ct.Pool.installed("code/python")["code/python"],
    ct.ModelSpec("writer", lambda: writer),
    ct.ModelSpec("solver", lambda: solver),
    writer="writer",
    solver="solver",
)
settings = SynthesisSettings("a town library", subjects=1, intents=1, attempts=2, review=False)
with tempfile.TemporaryDirectory() as folder:
    report = asyncio.run(synthesise(pool, settings, folder, concurrency=1))
    for made in folder_tasks(folder):
        print(made.id, made.metadata["request"])
print(dict(report.tasks), dict(report.reasons), report.asked)
