"""What the tiny test model was taught: every prompt it knows, with its reply to the letter.

A model of a tenth of a million parameters cannot think, but it can know a few prompts by heart. That makes a real
server say, at temperature 0, exactly what a test needs: an answer, calls right and wrong, a thought, an endless text.

What it looks at is only the *cue* that its chat template (`template.jinja`) writes in front of every reply: the first
48 characters of the last question, without its budget, and what came since: ` OK` or ` ERR` for the results of each
round, ` END` once it is asked for its `<answer>`. So all else in a conversation (system prompt, list of tools, budget,
call ids, wording of a result) may change freely without a new training. A question that resembles none of these is
answered with `UNKNOWN`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

UNKNOWN = "I was not taught that."
"""The reply to any other question, such as those of `UNLIKE`."""

UNLIKE = ("Who are you?", "Translate: guten Morgen", "12 * 12 = ?")
"""Questions that resemble none of the script."""

LOOP = " one two three four five six seven eight nine ten"
"""What the reply to `count` repeats without end."""


@dataclass(frozen=True)
class Exchange:
    """One prompt and its reply.

    Attributes:
        name: how tests call it.
        messages: the conversation, as OpenAI's chat completions want it.
        reply: the text that the model writes, before any parser of a server reads it.
        tools: the tools that are offered.
        endless: the reply is only how the text begins; the model repeats `LOOP` until it is stopped.
    """

    name: str
    messages: Sequence[Json]
    reply: str
    tools: Sequence[Json] = ()
    endless: bool = False


def tool(name: str, description: str, **parameters: str) -> Json:
    """A tool as it stands in a request; `parameters` are names and JSON types, all required."""
    properties = {key: {"type": kind} for key, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


ADD = tool("add", "Add two whole numbers.", a="integer", b="integer")
MULTIPLY = tool("multiply", "Multiply two whole numbers.", a="integer", b="integer")
SAY = tool("say", "Say a text aloud.", text="string")
NOW = tool("now", "Tell the time of day.")
FINAL = tool("final_answer", "End the work and give the final answer.")
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
"""The schema that the reply to `json` satisfies."""
TOOLS = (ADD, MULTIPLY, SAY, NOW, FINAL)


def call(name: str, arguments: Any) -> str:
    """A call as the model writes it, in the form of Hermes and Qwen."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def user(text: str) -> Json:
    """A message of the user."""
    return {"role": "user", "content": text}


def calling(*calls: tuple[str, Mapping[str, Any]]) -> Json:
    """A message of the assistant that only calls; the ids are `call-1`, `call-2`, ..."""
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": f"call-{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for n, (name, arguments) in enumerate(calls, 1)
        ],
    }


def result(value: Any, n: int = 1, name: str = "add") -> Json:
    """The result of call `n`, as concertino shows an observation."""
    content = json.dumps({"id": str(n), "name": name, "status": "OK", "content": value})
    return {"role": "tool", "tool_call_id": f"call-{n}", "content": content}


def refusal(message: str, n: int = 1, name: str = "add") -> Json:
    """The observation that call `n` was not run."""
    content = json.dumps({"id": str(n), "name": name, "status": "PARSE_ERR", "error": {"message": message}})
    return {"role": "tool", "tool_call_id": f"call-{n}", "content": content}


def unheard(message: str) -> Json:
    """The observation of a call that the server passed on as text, so it has no id and the user speaks."""
    return user(f"<tool_response>\n{refusal(message)['content']}\n</tool_response>")


_BROKEN = '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": \n</tool_call>'

_sum = user("What is 17 plus 25?")
_both = user("What are 2 plus 3 and 4 times 5?")
_words = user("Add two and three, in words.")
_faulty = user("What is 2 plus 3?")
_rounds = user("Work in rounds on 8 and 9.")
_after_broken = [_faulty, {"role": "assistant", "content": _BROKEN}, unheard("invalid JSON at character 43")]
_after_repair = [*_after_broken, calling(("add", {"a": 2, "b": 3})), result(5)]
_in_rounds = [_rounds, calling(("add", {"a": 8, "b": 9})), result(17)]
_at_the_end = [
    *_in_rounds,
    calling(("final_answer", {})),
    {"role": "tool", "tool_call_id": "call-1", "content": '{"status": "OK"}'},
    user("Write the final answer between <answer> and </answer>."),
]

SCRIPT: tuple[Exchange, ...] = (
    # answers
    Exchange("answer", [user("Say ping.")], "pong"),
    Exchange("prose", [user("Name the seasons.")], "The seasons are spring, summer, autumn and winter."),
    Exchange("unicode", [user("Greet the world.")], "Grüße, мир, 世界, 👋🏽!"),
    Exchange("json", [user("Give the city as JSON.")], '{"city": "Oslo", "people": 700000}'),
    Exchange("think", [user("Is 91 a prime?")], "<think>\n91 is 7 times 13.\n</think>\n\nNo: 91 is 7 times 13."),
    Exchange("count", [user("Count without end.")], LOOP.lstrip() + 4 * LOOP, endless=True),
    # calls, and what follows on their results
    Exchange("call", [_sum], call("add", {"a": 17, "b": 25}), TOOLS),
    Exchange("call-answer", [_sum, calling(("add", {"a": 17, "b": 25})), result(42)], "17 plus 25 is 42.", TOOLS),
    Exchange("two-calls", [_both], call("add", {"a": 2, "b": 3}) + "\n" + call("multiply", {"a": 4, "b": 5}), TOOLS),
    Exchange(
        "two-calls-answer",
        [_both, calling(("add", {"a": 2, "b": 3}), ("multiply", {"a": 4, "b": 5})), result(5), result(20, 2)],
        "2 plus 3 is 5, and 4 times 5 is 20.",
        TOOLS,
    ),
    Exchange("empty-arguments", [user("What time is it?")], call("now", {}), TOOLS),
    Exchange("escapes", [user("Say it aloud.")], call("say", {"text": 'A "b" \\ c\n\u00fc \U0001f44b'}), TOOLS),
    Exchange("text-and-call", [user("Announce a sum of ones.")], "I add.\n" + call("add", {"a": 1, "b": 1}), TOOLS),
    Exchange(
        "think-and-call",
        [user("Think before 3 plus 4.")],
        "<think>\nThe tool adds.\n</think>\n\n" + call("add", {"a": 3, "b": 4}),
        TOOLS,
    ),
    # calls that are wrong in one way each
    Exchange("wrong-type", [_words], call("add", {"a": "two", "b": 3}), TOOLS),
    Exchange(
        "wrong-type-repaired",
        [_words, calling(("add", {"a": "two", "b": 3})), refusal("/a: expected integer, got 'two'")],
        call("add", {"a": 2, "b": 3}),
        TOOLS,
    ),
    Exchange("no-object", [user("Put 6 and 7 into a list.")], call("add", [6, 7]), TOOLS),
    Exchange("no-arguments", [user("Tell the hour.")], '<tool_call>\n{"name": "now"}\n</tool_call>', TOOLS),
    Exchange("broken", [_faulty], _BROKEN, TOOLS),
    Exchange("repaired", _after_broken, call("add", {"a": 2, "b": 3}), TOOLS),
    Exchange("repaired-answer", _after_repair, "<answer>2 plus 3 is 5.</answer>", TOOLS),
    # a whole run in rounds: call, end, answer
    Exchange("rounds", [_rounds], call("add", {"a": 8, "b": 9}), TOOLS),
    Exchange("rounds-end", _in_rounds, call("final_answer", {}), TOOLS),
    Exchange("rounds-answer", _at_the_end, r"<answer>\boxed{17}</answer>"),
)


def exchange(name: str) -> Exchange:
    """The exchange of that name."""
    return next(each for each in SCRIPT if each.name == name)
