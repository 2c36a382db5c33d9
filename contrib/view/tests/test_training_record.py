"""What a training wrote beside a trace: rewards, groups, advantages, and the tokens of replies."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser
from concertino_view.run_file import RunFile
from concertino_view.run_page import page_of
from concertino_view.training_record import MOST_ROLLOUTS
from hostile_traces import write_trace
from made_traces import records_of

Line = dict[str, Any]


def line(name: str, total: float, advantage: float, left_out: str = "", group: str = "q@1") -> Line:
    rows = [{"role": "lead", "turns": [1, 2, 3], "advantage": advantage, "left_out": left_out}]
    return {"id": name, "group": group, "total": total, "components": {"correct": total}, "rows": rows}


def stepped(folder: Path, lines: list[Any], **reply: Any) -> Path:
    """The trace of a rollout `own`, and what a training wrote beside it."""
    records = records_of(rounds=2, width=1)
    for record in records:
        if record["t"] == "reply":
            sampled: Line = {"token_ids": [7, 8, 9], "logprobs": [-0.1, -2.5, -0.3], "prompt_token_ids": [1] * 40}
            record["reply"] |= {**sampled, **reply}
    texts = [each if isinstance(each, str) else json.dumps(each) for each in lines]
    (folder / "rewards.jsonl").write_text("\n".join(texts), encoding="utf-8")
    return write_trace(folder / "own.trace.jsonl", records)


def training(trace: Path) -> Any:
    return RunFile(trace).patch()["head"]["training"]


def tokens(trace: Path) -> Any:
    return next(section[3] for section in RunFile(trace).bodies(0, 1)[0] if len(section) > 3)


def test_a_rollout_shows_its_reward_and_its_group_with_the_best_first(tmp_path: Path) -> None:
    others = [line("b", 0.0, -0.7, "too-long"), line("c", 1.0, 0.7), line("d", 9.0, 0.0, group="r@1")]
    found = training(stepped(tmp_path, [*others, line("own", 0.5, 0.25)]))
    assert found["group"] == "q@1"
    assert found["components"] == [["correct", 0.5]]
    assert found["rollouts"] == [
        ["c", 1.0, 0.7, "", False, False],
        ["own", 0.5, 0.25, "", True, True],
        ["b", 0.0, -0.7, "too-long", False, False],
    ]
    assert found["rows"] == [[[1, 2, 3], 0.25, "", [[], [], []]]]


def test_of_a_large_group_this_run_is_among_those_that_are_listed(tmp_path: Path) -> None:
    found = training(stepped(tmp_path, [*(line(f"r{n}", n, 0.0) for n in range(1, 200)), line("own", 0, 0.0)]))
    assert len(found["rollouts"]) == MOST_ROLLOUTS
    assert found["of"] == 200
    assert found["rollouts"][-1][0] == "own"


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["{"],
        [[1]],
        ["null", "\x00"],
        [{"id": 3}],
        [{"id": "other"}],
    ],
)
def test_a_run_without_a_line_of_its_own_shows_nothing_of_a_training(tmp_path: Path, lines: list[Any]) -> None:
    assert training(stepped(tmp_path, lines)) is None


@pytest.mark.parametrize("wrong", [None, [], {}, "x", 1e400, math.nan, [[1]], [{"turns": "x"}], [{"turns": [None]}]])
@pytest.mark.parametrize("name", ["total", "components", "group", "rows"])
def test_a_line_with_wrong_values_is_no_error(tmp_path: Path, name: str, wrong: Any) -> None:
    found = training(stepped(tmp_path, [{**line("own", 1.0, 0.5), name: wrong}, line("b", 2.0, 0.1)]))
    assert any(each[4] for each in found["rollouts"])
    json.dumps(found, allow_nan=False)


def drifted(trace: Path, *lines: Any) -> Any:
    trace.with_name("drift.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return training(trace)["rows"][0][3]


def test_the_drift_of_tokens_belongs_to_their_turn(tmp_path: Path) -> None:
    trace = stepped(tmp_path, [line("own", 0.5, 0.25)])
    other = {"id": "b", "turns": {"1": [9]}}
    assert drifted(trace, other, {"id": "own", "turns": {"1": [0.5, -1], "3": [2]}}) == [[0.5, -1.0], [], [2.0]]


@pytest.mark.parametrize("wrong", [None, [], "x", {"1": None}, {"1": "x"}, {"1": [None, "x"]}, {"x": [1]}])
def test_drift_with_wrong_values_is_no_error(tmp_path: Path, wrong: Any) -> None:
    found = drifted(stepped(tmp_path, [line("own", 0.5, 0.25)]), {"id": "own", "turns": wrong})
    assert {value for values in found for value in values} <= {0.0}


def test_a_name_of_a_rollout_leads_to_no_other_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write_trace(tmp_path / "secret.trace.jsonl", records_of(rounds=1))
    found = training(stepped(tmp_path / "a", [line("own", 1.0, 0.0), line("../secret", 0.0, 0.0)]))
    assert [each[5] for each in found["rollouts"]] == [True, False]


def test_tokens_of_a_reply_come_with_their_log_probabilities(tmp_path: Path) -> None:
    assert tokens(stepped(tmp_path, [])) == {"read": 40, "logprobs": [-0.1, -2.5, -0.3], "ids": [7, 8, 9]}


@pytest.mark.parametrize("name", ["text", "reasoning", "tool_calls"])
def test_ids_of_tokens_are_hidden_where_a_part_of_the_text_is(tmp_path: Path, name: str) -> None:
    secret = f"the key is sk-proj-{'Ab3' * 16}"
    value = [{"name": "add", "arguments": {"a": secret}, "id": "x"}] if name == "tool_calls" else secret
    assert tokens(stepped(tmp_path, [], **{name: value}))["ids"] == []


@pytest.mark.slow
def test_the_page_shows_the_group_and_the_tokens_and_moves_through_them_with_keys(
    browser: Browser, tmp_path: Path
) -> None:
    trace = stepped(tmp_path, [line("own", 0.5, 0.25), line("b", 0.0, -0.7, "too-long")])
    (tmp_path / "drift.jsonl").write_text(json.dumps({"id": "own", "turns": {"1": [0.001, -0.4, 0.2]}}))
    page = tmp_path / "page.html"
    page.write_text("".join(page_of(RunFile(trace))), encoding="utf-8")
    browser.show(width=390)
    browser.open(page)
    browser.until("document.querySelector('.training') !== null")
    assert browser.value("document.querySelector('.training summary').textContent").startswith(
        "reward 0.5, advantage +0.250"
    )
    browser.value("document.querySelector('.training').open = true")
    assert browser.value("document.querySelector('.training tbody').textContent").count("left out: too-long") == 1
    browser.value("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'c', bubbles: true}))")
    browser.until("document.querySelector('.detail [role=status]') !== null")
    said = "document.querySelector('.detail [role=status]').textContent"
    assert browser.value(said).startswith("token 1 of 3 · id 7 · log-probability -0.1000")
    facts = browser.value("document.querySelector('canvas.tokens').parentElement.previousElementSibling.textContent")
    assert "40 tokens read (mask 0)" in facts
    assert "3 tokens sampled (mask 1)" in facts
    assert "advantage +0.250" in facts
    assert "drift: mean 0.2003, most −0.400" in facts
    assert browser.value(said).endswith("drift +0.00100")
    for key, place in (("n", 2), ("End", 3), ("ArrowLeft", 2), ("Home", 1)):
        press = f"new KeyboardEvent('keydown', {{key: '{key}'}})"
        browser.value(f"document.querySelector('canvas.tokens').dispatchEvent({press})")
        assert browser.value(said).startswith(f"token {place} of 3"), key
    assert browser.value("document.documentElement.scrollWidth") <= 390
    assert browser.told("Runtime.exceptionThrown") == []
