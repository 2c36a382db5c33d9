"""Members that were written for something else: plain functions, and tools of other frameworks.

    ct.Pool.of(my_function, account.balance, langchain_tool, toolset, ({"type": "function", ...}, call))

Whatever can be called with JSON arguments becomes a `ToolSpec`: a function or bound method, an OpenAI function object
with the function that does it, and tools of LangChain, openai-agents, pydantic-ai (toolsets too), smolagents,
LlamaIndex and DSPy. An object is known by the package that its class comes from, so none of these is imported here, and
none has to be installed. What is none of these is shown to plugins, by whoever calls `as_specs`.

Invariant: arguments are validated against the schema that the model sees before the foreign code runs, as for any tool.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from concertino.core.errors import SpecError
from concertino.core.observation import CallFailed

from .specs import ModelSpec, Spec, ToolSpec, tool

_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")


def as_specs(member: Any, made_from: Callable[[Any], Sequence[Spec] | None]) -> list[Spec]:
    """What a pool takes a member as; several for a toolset, a folder or a file.

    Args:
        made_from: what plugins make of an object; None where none of them knows it.

    Raises:
        SpecError: nobody knows how to call it; says what is expected.
    """
    if isinstance(member, (ToolSpec, ModelSpec)):
        return [member]
    if isinstance(member, tuple) and len(member) == 2 and isinstance(member[0], Mapping) and callable(member[1]):
        return [_openai_function(*member)]
    if inspect.isroutine(member):
        return [tool(member)]
    for kind in type(member).__mro__:
        reader = _FRAMEWORKS.get(kind.__module__.partition(".")[0])
        if reader is not None:
            try:
                return list(reader(member))
            except (AttributeError, TypeError, ImportError) as error:
                raise SpecError(
                    f"{_shown(member)} of {kind.__module__} cannot be read as a tool ({error}); give its function, or "
                    "ToolSpec.from_schema(name, description, input_schema, function)"
                ) from error
    # A text is a name that was given instead of the member, and no plugin has to be imported to say so.
    made = None if isinstance(member, str) else made_from(member)
    if made is not None:
        return list(made)
    if isinstance(member, str) and Path(member).exists():
        raise SpecError(f"{member!r} cannot be a member of a pool; of a file or folder, give Path({member!r})")
    raise SpecError(
        f"{_shown(member)} cannot be a member of a pool; give a spec (@tool, @agent, ModelSpec), a typed function, a "
        "tool of LangChain, openai-agents, pydantic-ai, smolagents, LlamaIndex or DSPy, a pair of an OpenAI "
        "function object and its function, or the Path of a folder of Agent Skills or of a server.json"
    )


def _made(
    name: str, description: str | None, schema: Mapping[str, Any], function: Callable[..., Any], **options: Any
) -> ToolSpec:
    """A spec with a name that may be a member's."""
    fitting = _UNFIT.sub("_", name).strip("_.-")[:64] or "tool"
    return ToolSpec.from_schema(fitting, description or fitting, {"type": "object", **schema}, function, **options)


def _openai_function(declared: Mapping[str, Any], function: Callable[..., Any]) -> ToolSpec:
    inner = declared.get("function", declared)
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise SpecError(f"{_shown(declared)}: expected an OpenAI function object with a name")
    schema = inner.get("parameters") or {"type": "object", "properties": {}}

    def call(arguments: dict[str, Any]) -> Any:
        return function(**arguments)

    async def acall(arguments: dict[str, Any]) -> Any:
        return await function(**arguments)

    return _made(
        inner["name"], inner.get("description"), schema, acall if inspect.iscoroutinefunction(function) else call
    )


# -- frameworks --------------------------------------------------------------------------------------------------------


def _langchain(found: Any) -> Iterable[ToolSpec]:
    """`langchain_core.tools.BaseTool`."""
    if found.args_schema is None:  # a `Tool`, whose only argument is a text
        required = [name for name, each in found.args.items() if "default" not in each]
        schema = {"properties": dict(found.args), "required": required, "additionalProperties": False}
    else:
        declared = found.tool_call_schema
        schema = declared if isinstance(declared, dict) else declared.model_json_schema()

    async def call(arguments: dict[str, Any], *, ctx: Any) -> Any:
        if not found.handle_tool_error:
            return await found.ainvoke(arguments)
        # It turns its failures into texts, and only a message says which of them is one.
        given = {"type": "tool_call", "id": ctx.call_id, "name": found.name, "args": arguments}
        message = await found.ainvoke(given)
        if getattr(message, "status", "success") == "error":
            raise CallFailed.because(str(message.content))
        return getattr(message, "content", message)

    yield _made(found.name, found.description, schema, call, context="ctx")


def _openai_agents(found: Any) -> Iterable[ToolSpec]:
    """`agents.FunctionTool`."""

    async def call(arguments: dict[str, Any], *, ctx: Any) -> Any:
        text = json.dumps(arguments)
        about = {"tool_name": found.name, "tool_call_id": ctx.call_id, "tool_arguments": text}
        given = import_module("agents.tool_context").ToolContext(context=_deps(ctx), **about)
        return await found.on_invoke_tool(given, text)

    yield _made(found.name, found.description, found.params_json_schema, call, context="ctx")


def _pydantic_ai(found: Any) -> Iterable[ToolSpec]:
    """`pydantic_ai.Tool`, or a `FunctionToolset` of them."""
    tools = getattr(found, "tools", None)
    if isinstance(tools, Mapping):
        for each in tools.values():
            yield from _pydantic_ai(each)
        return
    schema = found.function_schema

    async def call(arguments: dict[str, Any], *, ctx: Any) -> Any:
        usage = import_module("pydantic_ai.usage").RunUsage()
        given = import_module("pydantic_ai").RunContext(
            deps=_deps(ctx), model=None, usage=usage, tool_call_id=ctx.call_id, tool_name=found.name
        )
        return await schema.call(schema.validator.validate_python(arguments), given)

    yield _made(
        found.name,
        found.description,
        schema.json_schema,
        call,
        context="ctx",
        approval=bool(getattr(found, "requires_approval", False)),
    )


def _smolagents(found: Any) -> Iterable[ToolSpec]:
    """`smolagents.Tool`."""
    properties: dict[str, Any] = {}
    for name, declared in found.inputs.items():
        kind = declared.get("type", "any")
        schema = {} if kind == "any" else {"type": "string" if kind in ("image", "audio") else kind}
        properties[name] = {**schema, "description": declared.get("description", "")}
    required = [name for name, declared in found.inputs.items() if not declared.get("nullable")]

    def call(arguments: dict[str, Any]) -> Any:
        return found(**arguments)

    schema = {"properties": properties, "required": required, "additionalProperties": False}
    yield _made(found.name, found.description, schema, call, isolation="thread")


def _llama_index(found: Any) -> Iterable[ToolSpec]:
    """`llama_index.core.tools.AsyncBaseTool`."""
    metadata = found.metadata

    async def call(arguments: dict[str, Any]) -> Any:
        output = await found.acall(**arguments)
        if output.is_error:
            raise CallFailed.because(str(output.content))
        return output.content

    yield _made(metadata.get_name(), metadata.description, metadata.get_parameters_dict(), call)


def _dspy(found: Any) -> Iterable[ToolSpec]:
    """`dspy.Tool`."""
    properties = dict(found.args or {})
    required = [name for name, schema in properties.items() if "default" not in schema]

    async def call(arguments: dict[str, Any]) -> Any:
        return await found.acall(**arguments)

    def blocking(arguments: dict[str, Any]) -> Any:
        return found(**arguments)

    schema = {"properties": properties, "required": required, "additionalProperties": False}
    is_async = inspect.iscoroutinefunction(found.func)
    options: dict[str, Any] = {} if is_async else {"isolation": "thread"}
    yield _made(found.name, found.desc, schema, call if is_async else blocking, **options)


def _deps(ctx: Any) -> Any:
    """The dependencies of the run, None without any: a foreign tool may do without."""
    try:
        return ctx.deps
    except SpecError:
        return None


def _shown(member: Any) -> str:
    text = repr(member)
    return text if len(text) <= 80 else f"{text[:77]}..."


_FRAMEWORKS: dict[str, Callable[[Any], Iterable[ToolSpec]]] = {
    "langchain_core": _langchain,
    "agents": _openai_agents,
    "pydantic_ai": _pydantic_ai,
    "smolagents": _smolagents,
    "llama_index": _llama_index,
    "dspy": _dspy,
}
"""Readers of foreign tools, by the package of their classes."""
