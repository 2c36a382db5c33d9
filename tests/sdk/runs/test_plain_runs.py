"""A run that is given its question alone pays for nothing that it could have been given."""

from __future__ import annotations

import json
import subprocess
import sys

import concertino as ct

PLAIN = """
import json, sys
import concertino as ct

@ct.tool
def double(x: int) -> int:
    "Double a number."
    return 2 * x

class Leader(ct.Model):
    async def chat(self, request):
        call = '<tool_call>{"name": "double", "arguments": {"x": 21}}</tool_call>'
        return ct.Reply("<answer>42</answer>" if "42" in request.messages[-1].text else call)

run = ct.Orchestrator(Leader()).run_sync("21 + 21?", pool=ct.Pool.of(double))
assert run.answer == "42", run.detail
print(json.dumps(sorted(name for name in sys.modules if name.startswith("concertino."))))
"""
UNUSED = {
    "concertino.executor.guarding",
    "concertino.executor.text_teller",
    "concertino.members.foreign",
    "concertino.members.value_type",
    "concertino.pool.orchestrator_agent",
    "concertino.runs.answer_type",
    "concertino.runs.guards",
    "concertino.runs.history",
    "concertino.runs.registry",
    "concertino.runs.run_log",
    "concertino.runs.session",
    "concertino.strategies.base.answer_reader",
    "concertino.traces.journal",
}
"""What belongs to instructions, histories, types, guards, streams, logs, sessions and foreign tools."""


def test_a_plain_run_imports_nothing_of_what_it_does_not_use() -> None:
    done = subprocess.run([sys.executable, "-c", PLAIN], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    imported = set(json.loads(done.stdout))
    assert "concertino.runs.loop" in imported
    assert not imported & UNUSED


def test_the_modules_that_it_must_not_import_exist() -> None:
    # Otherwise a module that was renamed would make the test above say nothing.
    import importlib

    for name in UNUSED:
        importlib.import_module(name)


def test_a_copied_request_differs_in_what_was_to_change_alone() -> None:
    from dataclasses import fields, replace

    request = ct.ChatRequest([ct.Message("user", "q")], (), ct.Sampling(seed=1), "key", {"type": "object"})
    # Copies are written out field by field, which a field that comes later must not escape.
    assert all(getattr(request, field.name) != field.default for field in fields(request) if field.name != "tools")
    assert request.keyed("other") == replace(request, idempotency_key="other")
    assert request.sampled(ct.Sampling(seed=2)) == replace(request, sampling=ct.Sampling(seed=2))
    with_tools = ct.ChatRequest([ct.Message("user", "q")], ({"type": "function"},))
    assert with_tools.keyed("k").tools == with_tools.sampled(ct.Sampling()).tools == with_tools.tools
