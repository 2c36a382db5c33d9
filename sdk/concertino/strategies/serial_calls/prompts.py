"""What a serial orchestrator is shown in a chat: its part, the tools, the user's preference, the request for an answer.

The words are concertino's own; the released prompts of Orchestrator-8B stand in `released_prompts`. Observations are
shown as in parallel rounds, one `<tool_response>` each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from concertino.strategies.base.brief_prompt import PromptForm, listed_choices, member_list
from concertino.strategies.base.members import Offers, function_lines
from concertino.text.foreign_text import QUESTION_LINES, break_control_tokens, quoting

from .choices import ModelChoice, read_choices

QUOTING = quoting(("message", "preference"), QUESTION_LINES)
"""How what others wrote is quoted here."""

ROLE = """You answer a question by calling tools, agents and models, one call per turn; what comes back leads to the \
next call.

How to work
- Descriptions tell what each choice is good at, what it costs and how long it takes. Take the cheapest and fastest \
that will do; take a stronger one where a mistake would cost more.
- What you hand out must stand alone: the receiver sees neither the question nor the conversation, unless its \
description says so.
- Every result has a status. OK: use it. PARSE_ERR: the call was not run; correct it as its error says. EXEC_ERR: it \
did not succeed; choose another tool or model. TIMEOUT: it took too long; choose a faster one.
- Follow the user's preference where one is given. Stay inside the budget that is shown. You have {rounds} turns.
- End with {answer}{how}."""

_BY_ARGUMENT = ", and give the whole answer in it"
_BY_MEMBER = "; what it returns is the answer"

_REFERENCES = """
- In an argument, ${question} stands for the user's whole question, ${question.2} for its second paragraph, and ${1.1} \
for the content of the result with the id 1.1: quote long texts, do not copy them. Write $${ for the characters ${."""

_BRIEF = "Answer by calls, one a turn, {rounds} turns; end with {answer}."
_BRIEF_REFERENCES = "Arguments can quote: ${question}, its paragraph ${question.2}, result ${1.1}; $${ is a plain ${."

_TEXT_FORMAT = """
Format of every turn
<think>
what is known, what is missing, and which call is worth its price
</think>
<tool_call>
{{"name": "...", "arguments": {{...}}}}
</tool_call>

One call, in strict JSON; a second one is not run.

<tools>
{tools}
</tools>"""

_NATIVE_FORMAT = "\nMake exactly one call in each turn; a second one is not run."

_BOXES = "each value that was asked for in \\boxed{}, in the order of the question"
_LAST_ANSWER = (
    "There are no turns left. Write the final answer to the question between <answer> and </answer>, from the results "
    "above."
)
_BRIEF_LAST_ANSWER = "No turns are left: write the <answer>, each value in \\boxed{}."

UNREAD_CALL = '{"status": "PARSE_ERR", "error": {"code": "too_many_calls", "message": "one call in each turn"}}'
BRIEF_UNREAD_CALL = "PARSE_ERR too_many_calls: one call in each turn"


def last_answer(prompt: PromptForm, boxed: bool) -> str:
    """The request for the answer when no turns are left."""
    return _BRIEF_LAST_ANSWER if prompt == "brief" else _LAST_ANSWER + (f" Put {_BOXES}." if boxed else "")


def answer_tool(name: str, boxed: bool) -> dict[str, Any]:
    """The tool that ends a run with its argument, for a pool that has none of its own."""
    text = "the whole answer" + (f"; {_BOXES}" if boxed else "")
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": "End the work and give the final answer to the user.",
            "parameters": {
                "type": "object",
                "properties": {"text": {"type": "string", "minLength": 1, "description": text}},
                "required": ["text"],
                "additionalProperties": False,
            },
        },
    }


def system_prompt(
    tools: Sequence[Mapping[str, Any]],
    rounds: int,
    answer: str,
    by_member: bool,
    native: bool,
    prompt: PromptForm = "full",
    references: bool = False,
) -> str:
    """The system message of a chat."""
    if prompt == "brief":
        brief = [_BRIEF.format(rounds=rounds, answer=answer), *([_BRIEF_REFERENCES] if references else [])]
        return "\n".join(
            [*brief, *([] if native else [member_list(Offers(tools).values(), choices=_choices, quoting=QUOTING)])]
        )
    role = ROLE.format(rounds=rounds, answer=answer, how=_BY_MEMBER if by_member else _BY_ARGUMENT)
    role += _REFERENCES if references else ""
    if native:
        return role + "\n" + _NATIVE_FORMAT
    return role + "\n" + _TEXT_FORMAT.format(tools=function_lines(tools, QUOTING))


def _choices(schema: Any) -> Sequence[str]:
    """The values of an argument; models under aliases with what they cost."""
    found = read_choices(schema) if isinstance(schema, Mapping) else ()
    return [_shown(choice) for choice in found] or listed_choices(schema)


def _shown(choice: ModelChoice) -> str:
    """An alias, with its prices for a million tokens read and written, and its latency, where they are known."""
    known = [f"${choice.prices.input:g}/${choice.prices.output:g}"] if choice.prices else []
    known += [f"{choice.seconds:g}s"] if choice.seconds is not None else []
    return f"{choice.alias}({' '.join(known)})" if known else choice.alias


def user_prompt(question: str, preference: str) -> str:
    """The question, with what the user prefers."""
    question = QUOTING.text(question)
    return f"{question}\n\n<preference>\n{QUOTING.text(preference)}\n</preference>" if preference else question


def hand_back(messages: Sequence[str]) -> str:
    """The issues of a text, for the model that wrote it."""
    return "PARSE_ERR: " + break_control_tokens("; ".join(dict.fromkeys(messages)))
