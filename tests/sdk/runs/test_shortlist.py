"""Shortlists: the members that a ranking puts first, for each question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.testing import ScriptedModel

from .conftest import FINAL, round_of
from .test_resume import cut_after


class ByWord:
    """Puts members first whose description holds words of the question; keeps what it was shown."""

    name = "by-word"

    def __init__(self) -> None:
        self.seen: list[ct.RankingEntry] = []

    def order(self, question: str, entries: Sequence[ct.RankingEntry]) -> list[str]:
        self.seen = list(entries)
        words = set(question.lower().replace("?", "").split())
        return [e.name for e in sorted(entries, key=lambda e: -len(words & set(e.card.lower().split())))]


def member(name: str, description: str, **options: Any) -> ct.ToolSpec:
    def answer(text: str) -> str:
        return f"{name} says {text}"

    return ct.tool(answer, name=name, description=description, **options)


POOL = ct.Pool.of(
    member("ash", "knows the toll", cost=ct.Cost(units=2, usd=0.5)),
    member("elm", "knows the tide"),
    member("fir", "knows the crop and the toll"),
)


def visible(pool: ct.Pool) -> list[str]:
    return [name for name, _ in pool.actions]


def sources(pool: ct.Pool) -> list[str]:
    return [spec.name for _, spec in pool.actions]


@pytest.mark.parametrize("best", ["first", "last"])
def test_the_members_that_a_ranking_puts_first_are_listed(best: Any) -> None:
    listed = visible(ct.Shortlist(ByWord(), most=2, best=best)("What crop and toll?", POOL))
    assert listed == (["fir", "ash"] if best == "first" else ["ash", "fir"])


def test_names_and_order_of_the_pool_do_not_change_who_is_listed() -> None:
    other = POOL.arranged(["elm", "fir", "ash"]).alias({"fir": "x1", "ash": "x2"})
    assert sources(ct.Shortlist(ByWord(), most=1)("The tide?", other)) == ["elm"]


def test_each_part_of_a_question_has_members_of_its_own() -> None:
    shortlist = ct.Shortlist(ByWord(), most=1, parts=True)
    assert sources(shortlist("1. The tide?\n\n2. The crop?", POOL)) == ["elm", "fir"]
    assert sources(shortlist("1. The tide?\n\n2. The tide of what?", POOL)) == ["elm", "ash"]


def test_parts_choose_in_turn_so_that_none_takes_the_best_one_of_another() -> None:
    shortlist = ct.Shortlist(ByWord(), most=2, parts=True)
    assert sources(shortlist("The toll and the crop?\n\nThe tide?", POOL)) == ["fir", "ash", "elm"]
    assert sources(ct.Shortlist(ByWord(), most=3, parts=True)("The toll?\n\nThe tide?", POOL)) == ["ash", "fir", "elm"]


def test_handles_say_part_and_rank() -> None:
    shortlist = ct.Shortlist(ByWord(), most=2, parts=True, handles=True)
    pool = shortlist("The tide?\n\nThe crop?", POOL)
    assert dict(zip(visible(pool), sources(pool), strict=True)) == {"a1": "elm", "a2": "ash", "b1": "fir"}


def test_handles_of_a_long_question_stay_different() -> None:
    pool = ct.Pool([member(f"m{number}", f"knows n{number}") for number in range(40)])
    question = "\n\n".join(f"n{number} ?" for number in range(40))
    names = visible(ct.Shortlist(ByWord(), most=1, parts=True, handles=True)(question, pool))
    assert len(set(names)) == 40
    assert names[:2] == ["a1", "b1"]


def test_a_ranking_reads_cards_and_prices() -> None:
    ranking = ByWord()
    ct.Shortlist(ranking)("?", POOL)
    assert ranking.seen[0] == ct.RankingEntry("ash", "knows the toll", 0.5, 2)
    priced = ct.ModelSpec("clever", lambda: ScriptedModel([]), prices=ct.Prices(input=1, output=4))
    ct.Shortlist(ranking)("?", ct.Pool.of(priced, priced.with_(name="unpriced", prices=None)).offering("*"))
    assert [each.usd for each in ranking.seen] == [pytest.approx(0.003), None]


async def test_a_run_calls_members_by_their_handles_and_resumes_with_them(tmp_path: Path) -> None:
    leader = ct.ModelSpec("leader", lambda: ScriptedModel([]))
    shortlist = ct.Shortlist(ByWord(), most=2, handles=True)
    turns = round_of(("a2", {"text": "toll"})), FINAL, "<answer>\\boxed{6}</answer>"
    pool = ct.Pool.of(leader, *POOL.members)
    run = await ct.Orchestrator(ScriptedModel(*turns), arrange=shortlist).run(
        "What crop and toll?", pool=pool, trace=tmp_path
    )
    assert [seen.content for seen in run.observations] == ["ash says toll"]
    assert run.path is not None
    cut = cut_after(run.path, "result")
    # Without its shortlist, too: what was listed is known from the trace.
    resumed = await ct.Orchestrator(ScriptedModel(*turns)).resume(cut, pool=pool)
    assert resumed.answer == "\\boxed{6}"
    assert resumed.trace.setup["aliases"] == {"fir": "a1", "ash": "a2"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a/b", ct.Shortlist("a/b")),
        ("a/b, most=2, parts=true", ct.Shortlist("a/b", most=2, parts=True)),
        ({"ranking": "a/b", "best": "last"}, ct.Shortlist("a/b", best="last")),
    ],
)
def test_a_shortlist_is_read_from_the_command_line_and_from_tables(given: Any, expected: ct.Shortlist) -> None:
    assert ct.Shortlist.parse(given) == expected
    assert ct.Shortlist.parse(expected.to_json()) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("best", r"ranking='best'\): expected a ranking of an installed plugin as 'provider/name', such as"),
        ({"most": 2}, r"no ranking; give the name of an installed one"),
        ("a/b,most=0", r"most=0\): expected 1 or more members"),
        ("a/b,most=two", r"most='two'\): expected 1 or more"),
        ("a/b,best=middle", r"best='middle'\): expected 'first' or 'last'"),
        ("a/b,parts=yes", r"parts='yes'\): expected true or false"),
        ("a/b,mots=1", r"unknown key 'mots'; did you mean 'most'"),
    ],
)
def test_what_is_no_shortlist_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ct.UsageError, match=message):
        ct.Shortlist.parse(given)


def test_a_ranking_that_is_not_installed_names_those_that_are() -> None:
    with pytest.raises(ct.PoolError, match="nobody"):
        ct.Shortlist("nobody/best")("?", POOL)
