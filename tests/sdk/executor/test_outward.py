"""Members of a pool as functions, and as tools of frameworks; the frameworks themselves are in `tests/foreign`."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import concertino as ct
import pytest
from concertino.testing import ScriptedModel

PNG = b"\x89PNG\r\n\x1a\n" + b"cat"


@ct.tool
async def pay(amount: float, to: str = "Ada", *, ctx: ct.Context[dict[str, float]]) -> dict[str, float]:
    """Pay somebody.

    Args:
        amount: how much,
            in euros
    """
    ctx.deps[to] = ctx.deps.get(to, 0.0) + amount
    return ctx.deps


@ct.tool(approval=True)
async def erase(name: str) -> str:
    """Erase a file."""
    return f"erased {name}"


@ct.tool(approval=lambda arguments: arguments["amount"] > 10)
def lend(amount: int) -> int:
    """Lend."""
    return amount


@ct.tool(max_chars=20)
def long() -> str:
    """Say much."""
    return "x" * 100


@ct.tool
def draw() -> list[Any]:
    """Draw."""
    return ["a cat", ct.Image(PNG, name="cat.png")]


@ct.tool
def fail(content: bool = False) -> str:
    """Fail."""
    raise ct.CallFailed.because("out of money", code="broke", content={"left": 0} if content else None)


@ct.tool
def key(*, ctx: ct.Context) -> str:
    """The idempotency key."""
    return ctx.idempotency_key


@ct.agent(models=("worker",))
async def ask(question: str, *, ctx: ct.Context) -> str:
    """Ask a model, and erase what it says."""
    said = (await ctx.model("worker").chat(question)).text
    seen = await ctx.call("erase", {"name": said})
    return str(seen.content if seen.ok else seen.error and seen.error.message)


def pool(*replies: str) -> ct.Pool:
    model = ct.ModelSpec("m", lambda: ScriptedModel(*replies, strict=False))
    named = pay.with_(name="bank/pay")
    return ct.Pool.of(named, erase, lend, long, draw, fail, key, ask, model, worker="m")


# -- functions ---------------------------------------------------------------------------------------------------------


async def test_a_function_has_the_name_the_text_and_the_parameters_of_its_member() -> None:
    function = ct.as_function(pool(), "bank/pay", deps={})
    assert (function.__name__, function.__qualname__) == ("pay", "pay")
    assert str(inspect.signature(function)) == "(amount: float, to: str = 'Ada') -> Any"
    assert function.__annotations__ == {"amount": float, "to": str, "return": Any}
    assert function.__doc__ == "Pay somebody.\n\nArgs:\n    amount: how much, in euros"
    assert inspect.iscoroutinefunction(function)


async def test_it_is_called_as_any_function_and_gives_the_result() -> None:
    bank: dict[str, float] = {}
    function = ct.as_function(pool(), "pay", deps=bank)
    assert await function(3) == {"Ada": 3}
    assert await function(amount=2, to="Bob") == {"Ada": 3, "Bob": 2}
    assert bank == {"Ada": 3, "Bob": 2}


async def test_arguments_are_validated_as_in_a_run_and_a_failure_carries_its_observation() -> None:
    function = ct.as_function(pool(), "pay", deps={})
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"amount": "much"}, "/amount"),
        ({"amont": 3}, "amount"),
        ({}, "amount"),
    ]
    for arguments, said in wrong:
        with pytest.raises(ct.CallFailed, match=said) as raised:
            await function(**arguments)
        seen = raised.value.observation
        assert (seen.status, seen.name, seen.attempts) == (ct.Status.PARSE_ERR, "bank/pay", 0)
    with pytest.raises(TypeError, match=r"pay\(\) takes 2 positional arguments but 3 were given"):
        await function(1, 2, 3)
    with pytest.raises(ct.CallFailed, match="fail: out of money") as raised:
        await ct.as_function(pool(), "fail")(content=True)
    assert raised.value.observation.error is not None
    assert (raised.value.observation.error.code, raised.value.observation.content) == ("broke", {"left": 0})


async def test_a_result_is_whole_and_an_attachment_itself() -> None:
    assert await ct.as_function(pool(), "long")() == "x" * 100
    assert await ct.as_function(pool(), "draw")() == ["a cat", ct.Image(PNG)]


async def test_an_agent_calls_its_models_and_members_within_the_budget() -> None:
    function = ct.as_function(pool("old.txt"), "ask", approve=lambda request: request.name == "erase")
    assert await function("Which file?") == "erased old.txt"
    short = ct.as_function(pool("old.txt"), "ask", approve=lambda request: True, budget=ct.Budget(calls=1))
    assert "budget" in await short("Which file?")


async def test_each_call_has_a_key_of_its_own() -> None:
    function = ct.as_function(pool(), "key")
    assert await function() != await function()


async def test_a_member_that_needs_approval_is_refused_where_nobody_can_be_asked() -> None:
    for name in ("erase", "lend"):
        with pytest.raises(
            ct.UsageError, match=f"tool '{name}' needs approval, and nobody can be asked here: give app"
        ):
            ct.as_function(pool(), name)
    # An agent is told, and goes on.
    assert "nobody can be asked here" in await ct.as_function(pool("x"), "ask")("Which?")


async def test_a_handler_decides() -> None:
    asked: list[Mapping[str, Any]] = []

    async def decide(request: ct.ApprovalRequest) -> ct.Approve | ct.Deny:
        asked.append(request.arguments)
        return ct.Approve({"name": "b"}) if request.arguments["name"] == "a" else ct.Deny("not that")

    function = ct.as_function(pool(), "erase", approve=decide)
    assert await function("a") == "erased b"
    with pytest.raises(ct.CallFailed, match="not that"):
        await function("c")
    assert asked == [{"name": "a"}, {"name": "c"}]


async def test_events_are_told_and_an_executor_can_be_shared() -> None:
    seen: list[str] = []
    async with ct.Executor() as executor:
        function = ct.as_function(
            pool(), "long", executor=executor, on_event=lambda each: seen.append(type(each).__name__)
        )
        await asyncio.gather(function(), function())
    assert seen.count("CallEnded") == 2


async def test_of_a_live_pool_each_call_takes_the_current_one() -> None:
    live = ct.LivePool(pool())
    function = ct.as_function(live, "long")
    live.update(lambda now: now.replace("long", ct.tool(name="long", description="Say little.")(lambda: "short")))
    assert await function() == "short"
    live.update(lambda now: now.without("long"))
    with pytest.raises(ct.CallFailed, match="no tool or agent is called 'long'"):
        await function()


async def test_a_function_goes_back_into_a_pool() -> None:
    again = ct.Pool.of(ct.as_function(pool(), "bank/pay", deps={}))
    async with ct.Executor() as executor:
        good, bad = await executor.run([ct.Call("pay", {"amount": 1}), ct.Call("pay", {"amount": "x"})], again)
    assert (good.content, bad.status) == ({"Ada": 1}, ct.Status.PARSE_ERR)


@pytest.mark.parametrize("make", [ct.as_function, ct.as_langchain_tool, ct.as_openai_agents_tool])
def test_what_is_no_tool_or_agent_of_the_pool_is_refused(make: Any) -> None:
    with pytest.raises(ct.PoolError, match="no member 'bank/pai'; did you mean 'bank/pay'"):
        make(pool(), "bank/pai")
    with pytest.raises(ct.UsageError, match=r"'m' is a model; offer it as an agent with pool.offering\('m'\)"):
        make(pool(), "m")


@pytest.mark.parametrize("name", ["a-b.c", "class", "2nd"])
def test_a_name_that_is_none_in_python_is_made_one(name: str) -> None:
    function = ct.as_function(ct.Pool.of(long.with_(name=name)), name)
    assert function.__name__.isidentifier()


@pytest.mark.parametrize(
    ("make", "package"),
    [(ct.as_langchain_tool, "langchain-core"), (ct.as_openai_agents_tool, "openai-agents")],
)
def test_a_framework_that_is_not_installed_names_its_package(
    make: Any, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("langchain_core", "langchain_core.tools", "agents", "agents.tool"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ct.UsageError, match=f"{package} is not installed .*; pip install {package}"):
        make(pool(), "long")


# -- LangChain ---------------------------------------------------------------------------------------------------------


class ToolException(Exception):
    """As LangChain calls it."""


@pytest.fixture
def langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for the part of `langchain_core.tools` that is used."""
    tools = SimpleNamespace(StructuredTool=lambda **fields: SimpleNamespace(**fields), ToolException=ToolException)
    monkeypatch.setitem(sys.modules, "langchain_core", SimpleNamespace(tools=tools))
    monkeypatch.setitem(sys.modules, "langchain_core.tools", tools)


@pytest.mark.usefixtures("langchain")
async def test_a_langchain_tool_has_our_schema_and_gives_content_and_observation() -> None:
    tool = ct.as_langchain_tool(pool(), "bank/pay", deps={})
    assert (tool.name, tool.description) == ("pay", "Pay somebody.")
    assert tool.args_schema == pay.input_schema
    assert (tool.response_format, tool.handle_tool_error) == ("content_and_artifact", True)
    content, seen = await tool.coroutine(amount=3)
    assert (content, seen.status) == ({"Ada": 3}, ct.Status.OK)
    assert await asyncio.to_thread(lambda: tool.func(amount=1)[0]) == {"Ada": 4}
    assert tool.func(amount=1)[0] == {"Ada": 5}  # where a loop runs already


@pytest.mark.usefixtures("langchain")
async def test_a_failure_is_a_tool_exception_with_what_the_model_reads() -> None:
    tool = ct.as_langchain_tool(pool(), "fail")
    with pytest.raises(ToolException, match="PARSE_ERR invalid_arguments: /content: expected boolean"):
        await tool.coroutine(content=3)
    with pytest.raises(ToolException) as raised:
        await tool.coroutine(content=True)
    assert str(raised.value) == 'EXEC_ERR broke: out of money\n{"left": 0}'
    assert isinstance(raised.value.__cause__, ct.CallFailed)


@pytest.mark.usefixtures("langchain")
async def test_images_are_content_blocks_and_other_lists_are_text() -> None:
    content, _ = await ct.as_langchain_tool(pool(), "draw").coroutine()
    image = ct.Image(PNG, name="cat.png")
    assert content == [
        {"type": "text", "text": json.dumps(["a cat", image.mark])},
        {"type": "image", "mime_type": "image/png", "base64": image.base64},
    ]
    listing = ct.Pool.of(ct.tool(name="several", description="S.")(lambda: ["a", "b"]))
    assert (await ct.as_langchain_tool(listing, "several").coroutine())[0] == '["a", "b"]'


@pytest.mark.usefixtures("langchain")
async def test_a_blocking_call_cannot_use_a_shared_executor() -> None:
    async with ct.Executor() as executor:
        tool = ct.as_langchain_tool(pool(), "long", executor=executor)
        with pytest.raises(ct.UsageError, match=r"long\.invoke cannot use a shared executor.*use ainvoke"):
            tool.func()
    with pytest.raises(ct.UsageError, match="'erase' needs approval"):
        ct.as_langchain_tool(pool(), "erase")


# -- openai-agents -----------------------------------------------------------------------------------------------------


@pytest.fixture
def agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for the part of `agents.tool` that is used."""

    def kind(name: str) -> Any:
        return lambda **fields: SimpleNamespace(kind=name, **fields)

    names = ("FunctionTool", "ToolOutputText", "ToolOutputImage", "ToolOutputFileContent")
    tools = SimpleNamespace(**{name: kind(name) for name in names})
    monkeypatch.setitem(sys.modules, "agents", SimpleNamespace(tool=tools))
    monkeypatch.setitem(sys.modules, "agents.tool", tools)


def context(deps: Any = None) -> Any:
    return SimpleNamespace(context=deps)


@pytest.mark.usefixtures("agents")
async def test_an_openai_agents_tool_is_strict_and_null_stands_for_what_is_left_out() -> None:
    tool = ct.as_openai_agents_tool(pool(), "bank/pay")
    assert tool.strict_json_schema is True
    assert tool.params_json_schema == {
        "type": "object",
        "properties": {
            "amount": {"type": "number", "description": "how much,\nin euros"},
            "to": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["amount", "to"],
        "additionalProperties": False,
    }
    bank: dict[str, float] = {}
    assert json.loads(await tool.on_invoke_tool(context(bank), '{"amount": 3, "to": null}')) == {"Ada": 3}
    assert bank == {"Ada": 3}
    own: dict[str, float] = {"Ada": 1}
    given = ct.as_openai_agents_tool(pool(), "bank/pay", deps=own)
    assert json.loads(await given.on_invoke_tool(context(bank), '{"amount": 1, "to": "Ada"}')) == {"Ada": 2}


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("text", ["", "[3]", "{bad", '{"amount": "much", "to": null}'])
async def test_wrong_arguments_are_an_answer_to_the_model(text: str) -> None:
    said = await ct.as_openai_agents_tool(pool(), "pay", deps={}).on_invoke_tool(context(), text)
    assert said.startswith("PARSE_ERR ")


OPEN = {"type": "object", "additionalProperties": True}
CITY = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.mark.parametrize(
    ("properties", "strict"),
    [
        ({"a": {"type": "array", "items": {"enum": ["x"]}}}, True),
        ({"a": {"$ref": "#/$defs/city"}}, True),
        ({"a": {"anyOf": [CITY, {"type": "null"}]}}, True),
        ({"a": OPEN}, False),
        ({"a": {**CITY, "required": []}}, False),
        ({"a": {}}, False),
        ({"a": {"type": "array"}}, False),
        ({"a": {"type": "string", "minLength": 1}}, False),
        ({"a": {"allOf": [CITY]}}, False),
    ],
)
@pytest.mark.usefixtures("agents")
def test_a_schema_is_strict_where_that_changes_no_meaning(properties: dict[str, Any], strict: bool) -> None:
    schema = {"type": "object", "properties": properties, "required": ["a"], "$defs": {"city": CITY}}
    spec = ct.ToolSpec.from_schema("x", "X.", schema, lambda arguments: "")
    tool = ct.as_openai_agents_tool(ct.Pool.of(spec), "x")
    assert tool.strict_json_schema is strict
    if not strict:
        assert tool.params_json_schema == schema


@pytest.mark.usefixtures("agents")
async def test_images_and_files_are_outputs_of_their_kind() -> None:
    text, image = await ct.as_openai_agents_tool(pool(), "draw").on_invoke_tool(context(), "{}")
    assert (text.kind, image.kind) == ("ToolOutputText", "ToolOutputImage")
    assert image.image_url == ct.Image(PNG).data_url
    both = ct.Pool.of(
        ct.tool(name="both", description="B.")(lambda: [ct.File(b"%PDF-1", name="a.pdf"), ct.Audio(b"ID3x")])
    )
    (text, file) = await ct.as_openai_agents_tool(both, "both").on_invoke_tool(context(), "{}")
    assert (file.kind, file.filename) == ("ToolOutputFileContent", "a.pdf")
    assert "[audio " in text.text


@pytest.mark.usefixtures("agents")
async def test_approval_is_asked_for_in_the_framework_s_way_or_by_the_handler() -> None:
    tool = ct.as_openai_agents_tool(pool(), "erase")
    assert tool.needs_approval is True
    assert await tool.on_invoke_tool(context(), '{"name": "a"}') == "erased a"
    rule = ct.as_openai_agents_tool(pool(), "lend").needs_approval
    assert [await rule(None, arguments, "1") for arguments in ({"amount": 5}, {"amount": 50}, {})] == [
        False,
        True,
        True,
    ]
    handled = ct.as_openai_agents_tool(pool(), "erase", approve=lambda request: ct.Deny("no"))
    assert handled.needs_approval is False
    assert await handled.on_invoke_tool(context(), '{"name": "a"}') == "EXEC_ERR denied: refused: no"


@pytest.mark.usefixtures("agents")
async def test_what_the_framework_did_not_ask_about_is_not_approved_by_it() -> None:
    @ct.tool(approval=lambda arguments: arguments.get("amount") == 50)
    def transfer(amount: int) -> int:
        """Transfer."""
        return amount

    tool = ct.as_openai_agents_tool(ct.Pool.of(transfer), "transfer")
    # As a text, the amount is none that the rule knows; as a number, which it is repaired to, it is.
    assert await tool.needs_approval(None, {"amount": "50"}, "1") is False
    assert "nobody can be asked here" in await tool.on_invoke_tool(context(), '{"amount": "50"}')
    assert "nobody can be asked here" in await tool.on_invoke_tool(context(), '{"amount": 50,}')
    assert await tool.on_invoke_tool(context(), '{"amount": 50}') == "50"
    assert await tool.on_invoke_tool(context(), '{"amount": 5}') == "5"


@pytest.mark.usefixtures("agents")
async def test_a_decision_about_a_call_is_none_about_the_calls_in_it() -> None:
    guarded = pool("x").adjust("ask", approval=True)
    said = await ct.as_openai_agents_tool(guarded, "ask").on_invoke_tool(context(), '{"question": "Which?"}')
    assert "nobody can be asked here" in said
