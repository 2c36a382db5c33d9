"""What may be declared, and what a wrong declaration says."""

from typing import Any

import concertino as ct
import pytest


@ct.tool(cost=ct.Cost(units=1), timeout=5)
def count_letter(text: str, letter: str) -> int:
    """Count how often one letter occurs in a text."""
    return text.count(letter)


def test_a_decorated_function_is_a_spec_that_can_still_be_called() -> None:
    assert isinstance(count_letter, ct.ToolSpec)
    assert count_letter("banana", "a") == 3
    assert (count_letter.name, count_letter.kind, count_letter.cost.units) == ("count_letter", "tool", 1)


def test_an_agent_is_a_tool_of_another_kind() -> None:
    @ct.agent
    async def solve(subtask: str, *, ctx: ct.Context) -> str:
        """Solve."""
        return subtask

    assert isinstance(solve, ct.ToolSpec)
    assert (solve.kind, solve.timeout) == ("agent", 120.0)


async def test_a_json_only_tool_takes_its_arguments_as_one_dict() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    spec = ct.ToolSpec.from_schema("double", "Twice a number.", schema, lambda arguments: arguments["n"] * 2)
    async with ct.Executor() as executor:
        seen = await executor.run([ct.Call("double", '{"n": 4}'), ct.Call("double", "{}")], ct.Pool.of(spec))
    assert [s.content for s in seen] == [8, None]
    assert seen[1].status is ct.Status.PARSE_ERR


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, r"timeout=0; expected a number > 0"),
        ({"timeout": float("inf")}, "timeout=inf"),
        ({"concurrency": -1}, "concurrency=-1"),
        ({"isolation": "vm"}, "isolation='vm'; expected 'loop', 'thread' or 'process'"),
        ({"name": "with blank"}, "name 'with blank': expected letters"),
        ({"colour": "red"}, "unknown option 'colour'; known: name, description"),
        ({"input_schema": {"type": "array"}}, "input_schema must be a JSON schema of type object"),
        ({"description": "  "}, "it has no description"),
    ],
)
def test_a_wrong_option_is_refused_with_what_was_expected(options: dict[str, object], message: str) -> None:
    with pytest.raises(ct.SpecError, match=message):

        @ct.tool(**options)  # type: ignore[arg-type]
        def f(x: int) -> int:
            """F."""
            return x


def test_a_negative_cost_is_refused() -> None:
    with pytest.raises(ct.SpecError, match=r"Cost\(usd=-1\): expected a number >= 0"):
        ct.Cost(usd=-1)


def test_a_remote_reference_in_a_schema_is_refused_when_the_pool_is_built() -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/x.json"}}}
    spec = ct.ToolSpec.from_schema("remote", "Remote.", schema, dict)
    with pytest.raises(ct.SpecError, match="tool 'remote': its input_schema was refused"):
        ct.Pool.of(spec)


def test_control_characters_and_text_direction_marks_do_not_reach_the_model() -> None:
    spec = count_letter.with_(description="Harmless\x1b[2K\u202e text" + "x" * 5000)
    assert spec.description.startswith("Harmless[2K text")
    assert len(spec.description) == 2048


def test_a_process_tool_cannot_ask_for_a_context() -> None:
    with pytest.raises(ct.SpecError, match="cannot receive a Context"):

        @ct.agent(isolation="process")
        async def f(x: int, *, ctx: ct.Context) -> int:
            """F."""
            return x


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"toolbox": (len,)}, "expected tools made with @tool"),
        ({"toolbox": ["length"]}, "expected tools made with @tool"),
        ({"models": "worker"}, "expected names of roles"),
        ({"models": (1,)}, "expected names of roles"),
    ],
)
def test_an_agent_s_toolbox_and_roles_are_checked_where_it_is_declared(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(ct.SpecError, match=expected):

        @ct.agent(**options)
        async def work(ctx: ct.Context) -> str:
            """Work."""
            return ""


def test_a_cost_that_is_a_number_is_refused_with_the_line_to_write() -> None:
    cost: Any = 3
    with pytest.raises(ct.SpecError, match=r"cost=3; expected a Cost, such as Cost\(units=3\)"):
        ct.tool(name="a", description="A.", cost=cost)(lambda: 1)


def test_a_misspelt_field_of_a_copy_is_refused_with_the_one_that_was_meant() -> None:
    @ct.tool
    def pay(amount: float) -> float:
        """Pay."""
        return amount

    with pytest.raises(ct.SpecError, match="tool 'pay': unknown option 'aproval'; did you mean 'approval'"):
        pay.with_(aproval=True)
    with pytest.raises(ct.SpecError, match="tool 'pay': unknown option 'timeot'; did you mean 'timeout'"):
        ct.Pool.of(pay).adjust("pay", timeot=5)
