"""What the models say to the programs of `docs/examples/migration/`, the same in every framework."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tree import ROOT

sys.path.append(str(ROOT / "benchmarks" / "frameworks"))

from scripted_server import Heard, ScriptedServer, Turn, answering, calling, saying

GUIDE = "gpt-5.5"


def server() -> ScriptedServer:
    """A server of the script, not yet running."""
    return ScriptedServer(script)


def script(heard: Heard) -> Turn:
    """What a model says to a request."""
    if heard.model == GUIDE:
        return answering("The Forum.")
    for question, said in SAID.items():
        if question in heard.question:
            return said(heard)
    raise LookupError(f"{heard.question!r} to {heard.model}")


def once(name: str, arguments: dict[str, Any], answer: Any) -> Callable[[Heard], Turn]:
    """One call, and then an answer."""

    def said(heard: Heard) -> Turn:
        return answering(answer) if name in heard.called else calling((name, arguments))

    return said


def _compare(heard: Heard) -> Turn:
    if "weather" not in heard.called:
        return calling(("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"}))
    read = str(heard.results)
    return answering("It is warmer in Rome." if "4 degrees" in read and "18 degrees" in read else "I do not know.")


def _named(heard: Heard) -> Turn:
    return answering("Ada." if "My name is Ada." in str(heard.body) else "I do not know.")


def _booked(heard: Heard) -> Turn:
    if "book" not in heard.called:
        return calling(("book", {"city": "Rome", "nights": 2}))
    return answering("It is booked." if "booked 2 nights in Rome" in str(heard.results) else "It is not booked.")


def _greeted(heard: Heard) -> Turn:
    if "user_name" not in heard.called:
        return calling(("user_name", {}))
    return answering("Hello, Ada." if "Ada" in str(heard.results) else "Hello, whoever you are.")


def _toured(heard: Heard) -> Turn:
    if "ask_guide" not in heard.called:
        tools = [tool.get("function", tool) for tool in heard.body.get("tools") or ()]
        offered = [tool["parameters"]["properties"] for tool in tools if tool.get("name") == "ask_guide"]
        argument = next(iter(offered[0])) if offered else "task"
        return calling(("ask_guide", {argument: "What is to be seen in Rome?"}))
    return answering("See the Forum." if "The Forum." in str(heard.results) else "I do not know.")


def _computed(heard: Heard) -> Turn:
    if heard.form == "code":
        return saying("Thought: I compute it.\n<code>\nfinal_answer(2**100)\n</code>")
    if "python" not in heard.called:
        return calling(("python", {"code": "print(2**100)"}))
    return answering(str(2**100) if str(2**100) in str(heard.results) else "I do not know.")


SAID: dict[str, Callable[[Heard], Turn]] = {
    "Is it warmer in Oslo or in Rome?": _compare,
    "How warm is it in Rome?": once("weather", {"city": "Rome"}, {"city": "Rome", "celsius": 18.0}),
    "My name is Ada.": lambda heard: answering("Hello, Ada."),
    "What is my name?": _named,
    "Greet me.": _greeted,
    "Book two nights in Rome.": _booked,
    "Tell me about Rome.": lambda heard: answering("Rome was not built in a day."),
    "What should I see in Rome?": _toured,
    "What is 2 to the power of 100?": _computed,
}
"""By question. An answer is made of what was called and heard, so what did not reach the model shows."""

MIGRATION = ROOT / "docs" / "examples" / "migration"
ALL = ("tool", "typed", "conversation", "deps", "approval", "later", "streaming", "another")
OURS = {"in_concertino": ALL, "graph_in_concertino": ("graph",), "code_in_concertino": ("checked", "code")}
"""Our programs, and their parts in order."""
THEIRS = {
    "in_pydantic_ai": ALL,
    "in_openai_agents": ALL,
    "in_langgraph": tuple(part for part in ALL if part != "later"),
    "graph_in_langgraph": ("graph",),
    "in_smolagents": ("tool", "conversation", "checked", "streaming", "another", "code"),
}
"""The same of other frameworks."""
PRINTED = {
    "tool": "It is warmer in Rome.",
    "typed": "city='Rome' celsius=18.0",
    "conversation": "Ada.",
    "deps": "Hello, Ada.",
    "approval": "may it book {'city': 'Rome', 'nights': 2}\nIt is booked.",
    "later": "It is booked.",
    "streaming": "Rome was not built in a day.",
    "another": "See the Forum.",
    "checked": "It is warmer in Rome.",
    "code": "1267650600228229401496703205376",
    "graph": "warmer in Rome",
}
"""What each part of a program prints, in every framework."""


def expected(parts: tuple[str, ...]) -> str:
    """What a program of these parts prints."""
    return "".join(f"{PRINTED[part]}\n" for part in parts)
