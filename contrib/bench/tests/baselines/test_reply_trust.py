"""A reply of a cheap model is believed as far as graded replies teach."""

import json
from pathlib import Path
from random import Random
from typing import Any

import concertino as ct
import pytest
from concertino_bench.baselines import Cascade, ReplyTrust, SingleModel
from concertino_bench.baselines.trust import written_sums


def rows(count: int = 120, *, seed: int = 0, told: bool = True) -> list[dict[str, Any]]:
    """Sums whose wrong answers contradict themselves; `told=False` grades them at random."""
    draw, found = Random(seed), []
    for _ in range(count):
        a, b = draw.randrange(2, 90), draw.randrange(2, 90)
        right = draw.random() < 0.6
        said = a + b if right else a + b + draw.randrange(1, 9)
        found.append(
            {
                "question": f"Ann has {a} pens and {b} more. How many has she?",
                "reply": f"{a} + {b} = {said}\nThe answer is {said}",
                "correct": right if told else draw.random() < 0.6,
            }
        )
    return found


def test_replies_are_believed_where_their_sums_hold() -> None:
    trust = ReplyTrust.fit(rows())
    unseen = rows(200, seed=1)
    believed = [row for row in unseen if trust.believes(row["question"], row["reply"])]
    assert len(believed) > 90
    assert all(row["correct"] for row in believed)


def test_where_nothing_tells_right_from_wrong_nothing_is_believed() -> None:
    trust = ReplyTrust.fit(rows(told=False))
    unseen = rows(200, seed=1, told=False)
    assert sum(trust.believes(row["question"], row["reply"]) for row in unseen) < 10
    assert trust.share < 0.1


def test_more_is_believed_where_the_stronger_model_is_wrong_too() -> None:
    graded = rows(told=False)
    doubted = ReplyTrust.fit([{**row, "stronger": row["correct"] or place % 3 > 0} for place, row in enumerate(graded)])
    believed = ReplyTrust.fit([{**row, "stronger": row["correct"]} for row in graded])
    assert believed.share > doubted.share


def test_a_reply_without_an_answer_is_never_believed() -> None:
    trust = ReplyTrust.fit(rows(), most_loss=1.0)
    assert trust.believes("What is 2 + 2?", "2 + 2 = 4")
    assert not trust.believes("What is 2 + 2?", "I do not know.")


def test_equal_rows_give_equal_weights_and_a_file_keeps_them(tmp_path: Path) -> None:
    trust, again = ReplyTrust.fit(rows()), ReplyTrust.fit(rows())
    trust.save(tmp_path / "trust.json")
    assert trust == again == ReplyTrust.load(tmp_path / "trust.json")
    assert trust.digest == ReplyTrust.load(tmp_path / "trust.json").digest
    assert trust.digest != ReplyTrust.fit(rows(seed=3)).digest


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("3 * 4 = 12 and 2 x 5 = 11", [True, False]),
        ("10% * 50 = 5", [True]),
        ("$7 / 3 = $2.33", [True]),
        ("(2 + 3) * 4 = 20", [True]),
        ("007 + 1 = 8", [True]),
        ("9**9**9**9 = 1", []),
        ("1 / 0 = 3", []),
        ("((((((((((1 = 1", []),
        ("n = 4", []),
    ],
)
def test_written_sums_are_checked_and_nothing_else_is_computed(text: str, held: list[bool]) -> None:
    assert written_sums(text) == held


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (rows(10), r"10 replies, .*expected at least 40"),
        ([{**row, "correct": True} for row in rows()], r"right ones and wrong ones"),
        ([{"question": "q", "reply": 3, "correct": True}], r"row 1: .*expected texts"),
        ([{"question": "q", "reply": "r", "correct": "yes"}], r"row 1: .*'correct'"),
        ([{"question": "q", "reply": "r", "correct": True, "others": "r"}], r"row 1: .*list 'others'"),
    ],
)
def test_rows_that_cannot_be_used_are_named(given: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ct.UsageError, match=message):
        ReplyTrust.fit(given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "file not found; make one"),
        ("{", "cannot be read"),
        ("[]", "expected format"),
        ('{"format": "concertino-reply-trust/1"}', "expected format"),
    ],
)
def test_a_file_that_is_something_else_says_what_to_do(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "trust.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ct.UsageError, match=message):
        ReplyTrust.load(path)


def test_a_file_that_lacks_a_key_says_which(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    ReplyTrust.fit(rows()).save(path)
    data = json.loads(path.read_text(encoding="utf-8"))
    del data["bound"]
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ct.UsageError, match="bound"):
        ReplyTrust.load(path)


# -- in a cascade ----------------------------------------------------------------------------------------------------

QUESTION = "Ann has 20 pens and 30 more. How many has she?"


class Says(ct.Model):
    """Always the same."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        return ct.Reply(self.text)


async def run(strategy: Cascade, **texts: str) -> ct.Run:
    """One run over models that say these texts; the last one is the strongest."""
    specs = [ct.ModelSpec(name, lambda text=text: Says(text), f"The model {name}.") for name, text in texts.items()]
    pool = ct.Pool(specs, roles={"orchestrator": specs[-1].name}).offering("*")
    return await ct.Orchestrator("orchestrator", strategy).run(QUESTION, pool=pool)


async def test_a_cascade_stops_at_a_believed_reply_and_else_asks_the_stronger_one() -> None:
    trust = ReplyTrust.fit(rows())
    believed = await run(Cascade(first=1, trusting=trust), small="20 + 30 = 50\nThe answer is 50", large="51")
    assert believed.answer == "20 + 30 = 50\nThe answer is 50"
    assert "small is believed" in believed.detail
    doubted = await run(Cascade(first=1, trusting=trust), small="20 + 30 = 55\nThe answer is 55", large="51")
    assert doubted.answer == "51"


async def test_two_that_agree_do_not_end_a_cascade_that_trusts() -> None:
    wrong = "20 + 30 = 55\nThe answer is 55"
    done = await run(Cascade(trusting=ReplyTrust.fit(rows())), small=wrong, middle=wrong, large="50")
    assert done.answer == "50"


async def test_a_trust_is_read_from_a_file_and_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    ReplyTrust.fit(rows()).save(path)
    strategy = Cascade(first=1, trust=str(path))
    assert strategy.digest == ReplyTrust.load(path).digest
    texts = {"small": "20 + 30 = 50\nThe answer is 50", "large": "51"}
    assert (await run(strategy, **texts)).answer == texts["small"]
    ReplyTrust.fit(rows(seed=3)).save(path)
    with pytest.raises(ct.UsageError, match="it has changed since"):
        await run(strategy, **texts)


def test_a_trust_that_is_something_else_is_refused() -> None:
    wrong: Any = SingleModel()
    with pytest.raises(ct.UsageError, match="a ReplyTrust"):
        Cascade(trusting=wrong)
