"""The `code_reasoner` agent: a model writes a script, the `python` tool runs it, the model repairs what failed.

Everything goes through the context: the model is the pool's role `coder` or any model by name, and the tool is a call
of the pool, so that budget, deadline, trace and replay hold for both. The result is the whole last attempt, reasoning,
code and output, because the one who reads it must be able to doubt it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from concertino import CallFailed, Context, Cost, Message, Observation, agent
from concertino.text import quoting

from .tool import SCRIPT_CODES, unfenced

ATTEMPTS = 3
"""Scripts per call, at most: one, and two repairs."""

_QUOTING = quoting(("code", "execution_result"))

INSTRUCTION = """You solve a task by writing one Python script. It runs at once, in an empty folder without a network, \
and all you learn of it is what it prints.

Work like this:
- First think, between <reasoning> and </reasoning>: what is asked, how you compute it, how the script can check its \
own result.
- Then write the whole script between <code> and </code>, with every import, and print each value that is asked for \
together with its name.
- Let the machine do all arithmetic, counting and text handling. Where a formula gives the result, let the script \
confirm it on small cases by brute force.
- If a script fails you are shown its output. Say in <reasoning> what was wrong, then write the whole script again."""

_REPAIR = (
    "Your script ended with {status} ({cause}). This is what it gave:\n\n{output}\n\nFind the mistake, then write \
the whole script again between <code> and </code>."
)
_NO_CODE = "There is no script in your reply. Write the whole script between <code> and </code>."
_CODE = re.compile(r"<code>(.*?)(?:</code>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[ \t]*(?:python[0-9.]*|py)?[ \t]*\r?\n(.*?)```", re.DOTALL | re.IGNORECASE)
_REASONING = re.compile(r"<reasoning>(.*?)(?:</reasoning>|<code>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_SCRIPT_FAILED = {code for _, code in SCRIPT_CODES.values()}


@agent(cost=Cost(units=1), timeout=300, retry_safe=True, models=("coder",))
async def code_reasoner(subtask: str = "", model_id: str = "", *, ctx: Context) -> str:
    """Solve a task with Python: a model writes a script, it is run, and mistakes are repaired.

    Returns the reasoning, the script and what it printed. Good for computing, counting, searching, simulating,
    processing text and data, and for checking a claim by brute force.

    Args:
        subtask: the task with everything that it needs; the question of the run if left out.
        model_id: the model that writes the script; the pool's coder if left out.
    """
    if model_id and model_id not in ctx.models:
        raise ValueError(f"the pool has no model {model_id!r}; there are {', '.join(sorted(ctx.models)) or 'none'}")
    model = ctx.model(model_id or "coder")
    task = subtask.strip() or ctx.question
    if not task:
        raise ValueError("there is no task: give `subtask`")
    messages = [Message("system", INSTRUCTION), Message("user", _QUOTING.text(task))]
    seen: Observation | None = None
    text = ""
    for _ in range(ATTEMPTS):
        reply = (await model.chat(messages)).text
        code = extract_code(reply)
        if not code:
            messages += [Message("assistant", reply), Message("user", _NO_CODE)]
            continue
        seen = await ctx.call("python", {"code": code})
        text = _account(reply, code, seen)
        if seen.ok:
            return text
        if seen.error is None or seen.error.code not in _SCRIPT_FAILED:
            raise CallFailed(seen)  # not the script's fault: no other script would do better
        output = _QUOTING.text(_output(seen.content)) or "(nothing)"
        complaint = _REPAIR.format(status=seen.status.value, cause=_QUOTING.text(seen.error.message), output=output)
        messages += [Message("assistant", reply), Message("user", complaint)]
    if seen is None:
        raise ValueError(f"the model wrote no script in {ATTEMPTS} replies; ask another model, or rephrase the task")
    raise CallFailed(Observation(seen.call_id, seen.name, seen.status, text, seen.error))


def extract_code(reply: str) -> str:
    """The script in a model's reply, empty if there is none: the last `<code>` block, or the last fenced one."""
    reply = _THOUGHT.sub("", reply)
    found = _CODE.findall(reply) or _FENCE.findall(reply)
    return unfenced(found[-1]).strip("\r\n") if found and found[-1].strip() else ""


def _account(reply: str, code: str, seen: Observation) -> str:
    """The last attempt, as its reader sees it."""
    reasoning = "\n".join(part.strip() for part in _REASONING.findall(_THOUGHT.sub("", reply)))
    parts = [f"<reasoning>\n{reasoning}\n</reasoning>"] if reasoning else []
    parts.append(f"<code>\n{code}\n</code>")
    parts.append(f"<execution_result>\n{_output(seen.content)}\n</execution_result>")
    return "\n".join(parts)


def _output(content: Any) -> str:
    """What a script gave, as text."""
    if not isinstance(content, dict):
        return "" if content is None else str(content)
    parts = [str(content.get("stdout", "")).rstrip("\n")]
    for name, value in content.items():
        if name != "stdout":
            parts.append(f"[{name}] {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    return "\n".join(filter(None, parts))
