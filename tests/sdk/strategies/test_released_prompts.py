"""The bytes of Orchestrator-8B's prompts, as snapshots, and how they are cut."""

import json
import os
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import Ask, TaskContext
from concertino.strategies.serial_calls import Notebook, SerialCalls, token_cutter
from concertino.strategies.serial_calls.choices import choices_by_tool, read_choices
from concertino.strategies.serial_calls.notebook import Attempt, CodeRun
from concertino.strategies.serial_calls.released_prompts import (
    VARIANTS,
    Variant,
    estimating_cutter,
    offered_tools,
    released_prompt,
)
from hypothesis import given, settings
from hypothesis import strategies as st

SNAPSHOTS = Path(__file__).parent / "prompts"
SAMPLES = Path(os.environ.get("CONCERTINO_TEST_DATA", Path(__file__).parents[4] / "shared" / "data"))
DATA = SAMPLES / "toolorchestra" / "tools.json"
FULL = Notebook(
    ("Paris is the capital of France.", "Île-de-France has 12 million people."),
    (CodeRun("print(6 * 7)", "42\n"),),
    (Attempt("answer-2", "41"), Attempt("answer-1", "")),
)
NOTEBOOKS = {"empty": Notebook(), "documents": Notebook(FULL.documents), "full": FULL}


class Pairs:
    """A tokenizer of which each token is two bytes."""

    def __call__(self, text: str) -> dict[str, list[bytes]]:
        data = text.encode()
        return {"input_ids": [data[i : i + 2] for i in range(0, len(data), 2)]}

    def batch_decode(self, sequences: Any, skip_special_tokens: bool = False) -> list[str]:
        return [b"".join(sequence).decode("utf-8", "replace") for sequence in sequences]


@pytest.mark.parametrize("state", NOTEBOOKS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_prompt_has_the_released_bytes(variant: Variant, state: str) -> None:
    messages = released_prompt(variant, "How many?", NOTEBOOKS[state])
    snapshot = SNAPSHOTS / f"orchestrator-8b-{variant}-{state}.json"
    assert [[message.role, message.text] for message in messages] == json.loads(snapshot.read_text(encoding="utf-8"))


def test_the_mistakes_of_the_release_are_kept() -> None:
    train, hle, frames = (released_prompt(variant, "q", Notebook()) for variant in ("train", "hle", "frames"))
    assert train[0].text == "You are good at using tools. "
    assert train[1].text == "Problem: q\n\n\n\nChoose an approriate tool."
    assert hle[1].text == "Problem: q\n\n\n\nChoose an appropriate tool.'"
    assert frames[1].text == "Problem: q\n\n\npython code and execution outputs:\n\n\nChoose an appropriate tool."


def test_a_document_is_shown_up_to_its_limit() -> None:
    book = Notebook(("x" * 5_000,))
    assert released_prompt("hle", "q", book)[1].text.count("x") == 1_200
    assert released_prompt("frames", "q", book)[1].text.count("x") == 4_000 + 1  # "execution" has one


def test_only_frames_hides_search_once_documents_are_there() -> None:
    tools = [{"function": {"name": name}} for name in ("search", "answer")]
    for variant, count in (("train", 2), ("hle", 2), ("frames", 1)):
        assert len(offered_tools(variant, tools, FULL, ("search",))) == count  # type: ignore[arg-type]
        assert len(offered_tools(variant, tools, Notebook(), ("search",))) == 2  # type: ignore[arg-type]


def test_what_is_too_long_loses_its_left_end() -> None:
    book = Notebook(tuple(f"{i} " + "w" * 3_990 for i in range(40)), (CodeRun("print(1)", "1"),))
    text = released_prompt("frames", "q", book)[1].text
    assert "Doc 1:" not in text
    assert "Doc 40:" in text
    assert "print(1)" in text
    assert len(text) <= 24_000 * 3 + 200


def test_code_that_fills_the_whole_context_stands_alone() -> None:
    text = released_prompt("train", "q", Notebook(("doc",), (CodeRun("c" * 200_000, "1"),)))[1].text
    assert text.startswith("Problem: q\n\n```\nc")
    assert "Doc" not in text


def test_attempts_that_were_cut_say_so() -> None:
    text = released_prompt("train", "q", Notebook((), (), (Attempt("a", "y" * 50_000),)))[1].text
    assert text.startswith("Problem: q\n\n```\nAttempt answer: y")


def test_the_released_cutter_decodes_token_by_token() -> None:
    cut = token_cutter(Pairs())
    assert cut("abcdef", 2) == (3, "cdef")
    assert cut("", 2) == (0, "")
    assert cut("漢", 10).text == "\ufffd\ufffd"


@settings(deadline=None)
@given(st.text(), st.integers(0, 40))
def test_the_estimating_cutter_keeps_whole_characters_of_the_end(text: str, limit: int) -> None:
    tokens, end = estimating_cutter(text, limit)
    assert text.endswith(end)
    assert len(end.encode("utf-8", "surrogatepass")) <= limit * 3
    assert (tokens <= limit) == (end == text)


@pytest.mark.skipif(not DATA.exists(), reason=f"no released tools at {DATA}; set CONCERTINO_TEST_DATA")
def test_the_released_tools_are_read_for_aliases_and_prices() -> None:
    tools = json.loads(DATA.read_text(encoding="utf-8"))
    offered = choices_by_tool(tools)
    assert offered["search"]["model"] == ("search-1", "search-2", "search-3")
    assert len(offered["answer"]["model"]) == 6
    schema = tools[1]["function"]["parameters"]["properties"]["model"]
    assert [choice.seconds for choice in read_choices(schema)] == [96, 27, 15, 11, 13, 9]
    assert all(choice.prices is not None for choice in read_choices(schema))


@pytest.mark.skipif(not DATA.exists(), reason=f"no released tools at {DATA}; set CONCERTINO_TEST_DATA")
def test_a_pool_of_the_released_tools_shows_them_with_their_own_bytes() -> None:
    tools = json.loads(DATA.read_text(encoding="utf-8"))
    functions = [tool["function"] for tool in tools]
    pool = ct.Pool(
        ct.ToolSpec.from_schema(each["name"], each["description"], each["parameters"], str) for each in functions
    )
    assert json.dumps(pool.to_openai()) == json.dumps(tools)
    machine = SerialCalls(form="qa").begin(TaskContext("Who?", pool.to_openai()))
    step = machine.step()
    assert isinstance(step, Ask)
    assert json.dumps(step.tools) == json.dumps(tools)
