"""The texts that an orchestrator in rounds is shown: its role, the tools, the request for an answer.

The words are concertino's own. Tools are listed one JSON object per line inside `<tools>`, the form on which
tool-calling models are trained; observations come back one `<tool_response>` each, in the order of the calls. A brief
prompt leaves out what a model trained on this format knows: all but the numbers, the members and how to quote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from concertino.strategies.base.brief_prompt import PromptForm, member_list
from concertino.strategies.base.members import Offers, function_lines
from concertino.text.foreign_text import FOREIGN, Quoting

RECORD = Quoting(("conversation_history", "user_query"), only=True)
"""How the orchestrator's conversation is quoted for a summariser: its own tags belong to the record."""

FINAL = "final_answer"
"""The name of the call that ends the run."""

FINAL_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": FINAL,
        "description": "End the work and give the final answer. Call it alone, once the results are verified.",
        # No argument: the answer is written afterwards, by the summariser or on request, as in the paper.
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
    },
}

_ROLE = """You lead a group of tools and agents to answer the user's question. You do not solve the question yourself: \
you split it, hand the parts out, check what comes back, and end the work.

How to work
- A part that you hand out must stand alone: the receiver sees neither the question nor the other parts.
- Parts that do not need each other's results go out together, in one round: at most {parallel} calls.
- Results can be wrong. Compare independent results for what matters; let a different agent or model check it.
- Every result has a status. OK: use it. PARSE_ERR: your call was not run; correct it as its error says. \
EXEC_ERR: it did not succeed; try another way. TIMEOUT: it took too long; try a faster way or a smaller part.
- Stay inside the budget that is shown. You have {rounds} rounds."""

_TEXT_FORMAT = """
Format of every round
<reasoning>
### State Analysis
What is known, what is missing, what failed.
### Strategy Planning and Tool Selection
What you do next, and why.
</reasoning>
<tool_call>{{"name": "...", "arguments": {{...}}}}</tool_call>
<tool_call>{{"name": "...", "arguments": {{...}}}}</tool_call>

The arguments are strict JSON; write a backslash as \\\\. {end}

<tools>
{tools}
</tools>"""

_NATIVE_FORMAT = """
Before each round write what is known and what you do next, then call. {end}"""

_END_BY_CALL = f"When the work is done, call {FINAL} alone, with {{}}."
_END_BY_TEXT = "When the work is done, or there is nothing to call for, write <answer>...</answer> in place of calls."

_REFERENCES = """
- In an argument or in the answer, ${question} stands for the user's whole question, ${question.2} for its second \
paragraph, and ${1.2} for the content of the result with the id 1.2: quote long texts, do not copy them. Write $${ for \
the characters ${."""

_BRIEF = "Answer by calls, at most {parallel} a round, {rounds} rounds; end with {final}."
_BRIEF_REFERENCES = (
    "Arguments and answer can quote ${question}, its paragraph ${question.2}, result ${1.2}; $${ is a plain ${."
)

BOXES = " Put each value that was asked for in \\boxed{}, in the order of the question."
"""What graders of mathematics and of several answers look for."""

_ANSWER_REQUEST = (
    "Write the final answer to the question now, between <answer> and </answer>, from the verified results above."
)
_BRIEF_ANSWER_REQUEST = "Write the <answer>, each value in \\boxed{}."

_SUMMARISER = """You write the final answer to a question from the record of a group's work on it. The record may hold \
errors: check that the results agree, and prefer what was verified. Write your reasoning between <reasoning> and \
</reasoning>, then the answer between <answer> and </answer>."""

_NO_CALL = (
    "PARSE_ERR: your text holds no call. Write <reasoning>...</reasoning>, then at least one "
    '<tool_call>{"name": "...", "arguments": {...}}</tool_call>; to end the work, '
)
UNCLOSED = "PARSE_ERR: your text ends inside the reasoning, so it holds no call. Reason more briefly, then call."


def system_prompt(
    tools: Sequence[Mapping[str, Any]],
    rounds: int,
    parallel: int,
    native: bool,
    prompt: PromptForm = "full",
    references: bool = False,
    direct: bool = False,
    boxed: bool = False,
) -> str:
    """The system message; `direct`: the work ends with the answer itself, not with a call."""
    if prompt == "brief":
        brief = [
            _BRIEF.format(rounds=rounds, parallel=parallel, final=FINAL),
            *([_BRIEF_REFERENCES] if references else []),
        ]
        return "\n".join([*brief, *([] if native else [member_list(Offers(tools).values(), quoting=FOREIGN)])])
    # Joined after `format`, because the references hold braces of their own.
    role = _ROLE.format(rounds=rounds, parallel=parallel) + (_REFERENCES if references else "")
    end = _END_BY_TEXT + (BOXES if boxed else "") if direct else _END_BY_CALL
    if native:
        return role + "\n" + _NATIVE_FORMAT.format(end=end)
    offered = tools if direct else (*tools, FINAL_TOOL)
    return role + "\n" + _TEXT_FORMAT.format(end=end, tools=function_lines(offered, FOREIGN))


def answer_request(prompt: PromptForm, boxed: bool) -> str:
    """The request for the answer, once no calls are left or the work was ended by a call."""
    return _BRIEF_ANSWER_REQUEST if prompt == "brief" else _ANSWER_REQUEST + (BOXES if boxed else "")


def summariser_prompt(boxed: bool) -> str:
    """The system message of a model that writes the answer from the record."""
    return _SUMMARISER + (BOXES if boxed else "")


def no_call(direct: bool) -> str:
    """What a model reads after a text without a call."""
    return _NO_CALL + ("write <answer>...</answer>." if direct else f"call {FINAL}.")
