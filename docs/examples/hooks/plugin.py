"""The same hooks, published by a plugin. Its pool members bring it in, or `always` in `concertino.toml`."""

from typing import Any

import around_calls
import concertino as ct


@ct.hookimpl(tryfirst=True)
def concertino_before_call(spec: ct.ToolSpec, arguments: dict[str, Any], call_id: str) -> ct.Observation | None:
    return around_calls.answer_from_cache(spec, arguments, call_id)


@ct.hookimpl
def concertino_after_call(spec: ct.ToolSpec, observation: ct.Observation) -> ct.Observation | None:
    return around_calls.redact(spec, observation)
