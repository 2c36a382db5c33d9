"""From a typed function to the schema that the model sees."""

import inspect
import json
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import concertino as ct
import pydantic
import pytest
from concertino.members.signature import (
    _parse_docstring,
    _plain_object,
    _read_google,
    _through_pydantic,
    _with_models,
    read_signature,
)
from pydantic import Field

PLAIN_FORMS: list[Any] = [
    str,
    int,
    float,
    bool,
    type(None),
    Any,
    list,
    dict,
    list[str],
    list[list[int]],
    dict[str, float],
    dict[str, Any],
    dict[str, list[bool]],
    Literal["a", "b"],
    Literal["only"],
    Literal[1, 2, 3],
    int | None,
    str | int | None,
    list[int | None],
    dict[str, int | str],
    list[str] | None,
    int | str,
]
EMPTY = inspect.Parameter.empty
DEFAULTS: list[Any] = [inspect.Parameter.empty, None, "text", 3, 2.5, True]


@pytest.mark.parametrize("annotation", PLAIN_FORMS, ids=str)
@pytest.mark.parametrize("default", DEFAULTS, ids=repr)
def test_the_direct_schema_of_a_plain_annotation_is_the_one_pydantic_gives(annotation: Any, default: Any) -> None:
    fields = {"x": (annotation, default)}
    direct = _plain_object(fields)
    through_pydantic, _ = _through_pydantic("f", fields)
    assert direct == through_pydantic


@pytest.mark.parametrize("annotation", [bytes, date, set[int], tuple[int, str], Literal["a", 1], "Color"], ids=str)
def test_an_annotation_that_is_not_plain_is_left_to_pydantic(annotation: Any) -> None:
    assert _plain_object({"x": (annotation, inspect.Parameter.empty)}) is None


class Color(Enum):
    RED = "red"


class Person(pydantic.BaseModel):
    name: str
    born: date


async def test_pydantic_types_are_described_and_arrive_as_python_values() -> None:
    @ct.tool
    async def age(person: Person, on: date, shade: Color = Color.RED) -> str:
        """How old a person is on a day."""
        assert isinstance(person, Person)
        assert isinstance(on, date)
        assert shade is Color.RED
        return str((on - person.born).days)

    assert age.input_schema["properties"]["on"] == {"type": "string", "format": "date"}
    async with ct.Executor() as executor:
        arguments = {"person": {"name": "Ada", "born": "2000-01-01"}, "on": "2000-01-11"}
        [seen] = await executor.run([ct.Call("age", arguments)], ct.Pool.of(age))
    assert (seen.status, seen.content) == ("OK", "10")


class Address(pydantic.BaseModel):
    """Where somebody lives."""

    street: str
    number: Annotated[int, pydantic.Field(ge=1, description="of the house")] = 1


class Family(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(title="All of them")
    home: Address
    members: list[Person]
    parents: "Family | None" = None


class Tree(pydantic.BaseModel):
    branches: "list[Tree]" = []


def another_address() -> type[pydantic.BaseModel]:
    class Address(pydantic.BaseModel):
        line: str

    return Address


@pytest.mark.parametrize(
    ("fields", "direct"),
    [
        ({"home": (Address, EMPTY)}, True),
        (
            {"who": (Person, EMPTY), "times": (int, 3), "tags": (list[str], EMPTY), "how": (Literal["a", "b"], "a")},
            True,
        ),
        ({"family": (Family, EMPTY), "home": (Address, EMPTY), "note": (str | None, None)}, True),
        ({"tree": (Tree, EMPTY), "more": (dict[str, int], EMPTY)}, True),
        ({"home": (Address, EMPTY), "other": (another_address(), EMPTY)}, False),
        ({"home": (Address, Address(street="Elm"))}, False),
        ({"homes": (list[Address], EMPTY)}, False),
        ({"when": (date, EMPTY), "home": (Address, EMPTY)}, False),
    ],
)
def test_a_signature_with_models_is_described_as_pydantic_describes_the_whole(
    fields: dict[str, tuple[Any, Any]], direct: bool
) -> None:
    read = _with_models(fields)
    assert (read is not None) is direct
    whole, _ = _through_pydantic("whole", fields)
    assert read is None or json.dumps(read[0]) == json.dumps(whole)


def test_annotated_constraints_reach_the_schema() -> None:
    @ct.tool
    def pick(letter: Annotated[str, Field(max_length=1, description="One letter.")]) -> str:
        """Pick."""
        return letter

    assert pick.input_schema["properties"]["letter"] == {
        "type": "string",
        "maxLength": 1,
        "description": "One letter.",
    }


def test_the_docstring_gives_the_description_and_a_text_per_parameter() -> None:
    @ct.tool
    def search(query: str, top_k: int = 3) -> list[str]:
        """Search the archive.

        It is an archive of letters.

        Args:
            query: what to look for
            top_k: how many results
        """
        return []

    assert search.description == "Search the archive.\n\nIt is an archive of letters."
    assert search.input_schema["properties"]["query"] == {"type": "string", "description": "what to look for"}
    assert search.input_schema["properties"]["top_k"]["description"] == "how many results"
    assert search.input_schema["required"] == ["query"]


def test_the_context_is_recognised_by_annotation_and_never_reaches_the_schema() -> None:
    async def agent(question: str, *, anything: ct.Context) -> str:
        """Answer."""
        return question

    read = read_signature(agent, ct.Context)
    assert read.context == "anything"
    assert list(read.schema["properties"]) == ["question"]


def test_a_parameter_without_annotation_is_refused_by_name() -> None:
    with pytest.raises(ct.SpecError, match="parameter 'b' has no annotation; the model needs its type"):

        @ct.tool
        def f(a: int, b) -> int:  # type: ignore[no-untyped-def]
            """F."""
            return a


def test_star_arguments_are_refused() -> None:
    with pytest.raises(ct.SpecError, match="'args' is variadic"):

        @ct.tool
        def f(*args: int) -> int:
            """F."""
            return 0


def test_no_parameter_at_all_gives_an_empty_object() -> None:
    @ct.tool
    def now() -> str:
        """What time it is."""
        return ""

    assert now.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("text", "direct"),
    [
        ("Search.\n\nArgs:\n    query: what to look for\n    top_k: how many, at most", True),
        ("Search.\n\nIt is an archive\nof letters.\n\nAnd more.\n\nArgs:\n    query: a: b, c", True),
        ("Search\nall.\n\nArgs:\n    query: x", False),
        ("Search.\n\nArgs:\n    query: long\n        and longer", False),
        ("Search.\n\nArgs:\n    query (str): typed", False),
        ("Search.\n\nArgs:\n    query: x\n\nReturns:\n    a list", False),
        ("Search.\n\nNote:\n    be quick\n\nArgs:\n    query: x", False),
        ("Search.\n\n:param query: what", False),
        ("Search.\n\nParameters\n----------\nquery : str\n    what", False),
    ],
)
def test_a_docstring_that_is_read_directly_says_what_the_library_would_say(text: str, direct: bool) -> None:
    read = _read_google(text)
    assert (read is not None) is direct
    assert read is None or read == _parse_docstring(text)


def test_a_method_that_is_decorated_in_its_class_says_how_a_method_becomes_a_tool() -> None:
    with pytest.raises(ct.SpecError, match=r"parameter 'self' has no annotation; .*Pool.of\(account.pay\)"):
        ct.tool(lambda self: self)


def test_a_context_without_an_annotation_says_which_it_needs() -> None:
    with pytest.raises(ct.SpecError, match=r"parameter 'ctx' has no annotation; annotate it as concertino\.Context"):
        ct.tool(lambda ctx: ctx)


def test_a_class_that_no_schema_can_be_made_of_is_refused_in_one_line() -> None:
    class Own:
        pass

    def look(at: Own) -> int:
        return 1

    with pytest.raises(ct.SpecError, match="no JSON schema can be made from its parameters") as caught:
        ct.tool(look)
    assert "Own" in str(caught.value)
    assert "\n" not in str(caught.value)
