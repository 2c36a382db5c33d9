"""What `concertino check concertino-code` may call: small scripts, and the agent with a model that writes one."""

from __future__ import annotations

from typing import Any

from concertino import ChatRequest, Model, ModelSpec, Pool, Reply, Usage

from .settings import read_settings
from .tool import published

_SCRIPT = "<reasoning>\nAdd them up.\n</reasoning>\n<code>\nprint('total', sum(range(11)))\n</code>"
_WAITING = "<code>\nimport time\ntime.sleep(30)\n</code>"
_WAIT = "wait for half a minute"


class ScriptWriter(Model):
    """Writes a script that adds 0 to 10, or one that waits, where the task asks for that."""

    async def chat(self, request: ChatRequest) -> Reply:
        """One of two scripts."""
        waits = any(_WAIT in message.text for message in request.messages)
        return Reply(_WAITING if waits else _SCRIPT, usage=Usage(input_tokens=20, output_tokens=20))


def make_pool() -> Pool:
    """A pool with the tool in its default sandbox and the model as `coder`."""
    return Pool([published(read_settings()), ModelSpec("writing", ScriptWriter)], roles={"coder": "writing"})


concertino_examples: dict[str, Any] = {
    "python": {
        "examples": [
            ({"code": "print(sum(range(101)))"}, {"stdout": "5050\n"}),
            ({"code": "```python\nprint('fenced')\n```"}, {"stdout": "fenced\n"}),
        ],
        "rejected": [{}, {"code": 3}, {"code": "print(1)", "artefacts": "a.txt"}],
        "failing": [{"code": "print(1 / 0)"}, {"code": "import os; os.kill(os.getpid(), 9)"}],
        "slow": {"code": "import time; time.sleep(30)"},
    },
    "code_reasoner": {
        "examples": [({"subtask": "Add 0 to 10."}, lambda text: "total 55" in text)],
        "rejected": [{"subtask": 3}, {"task": "count"}],
        "failing": [{"subtask": "Add 0 to 10.", "model_id": "nobody"}],
        "slow": {"subtask": _WAIT},
        "make_pool": make_pool,
    },
}
"""By member."""
