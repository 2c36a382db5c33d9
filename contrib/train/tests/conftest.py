"""Episodes for tests: made by hand, and drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from concertino_bench.metrics import Preference
from concertino_train.episodes import Called, Episode, EpisodeRound, RoleTurn, Totals
from hypothesis import strategies as st

MEMBERS = ("search", "code", "solve", "review")
SCORES = {"planner": ("format", "legal", "shortest"), "programmer": ("format", "runs", "potential")}
amounts = st.one_of(st.integers(0, 20), st.floats(0, 1e6, allow_nan=False).map(lambda value: round(value, 6)))
shares = st.sampled_from((0.0, 0.1, 0.25, 0.5, 1.0))


def make_episode(
    id: str = "e", right: bool = True, *, units: float = 0, usd: float = 0, seconds: float = 0, **more: Any
) -> Episode:
    spent = {"units": units, "usd": usd, "seconds": seconds, "critical_path": seconds, "call_seconds": seconds}
    totals = Totals(**{**spent, **more.pop("totals", {})})
    given = {"group": "q", "correct": float(right), "verdict": "right" if right else "wrong", "answer": "x"}
    return Episode(id, **{**given, **more}, totals=totals)


@pytest.fixture(scope="session")
def make() -> Callable[..., Episode]:
    """An episode: `make("a", True, units=2, usd=0.1, seconds=3, totals={...}, rounds=...)`."""
    return make_episode


@st.composite
def _calls(draw: st.DrawFn) -> tuple[Called, ...]:
    names = draw(st.lists(st.sampled_from((*MEMBERS, "nobody")), max_size=3))
    status = st.sampled_from(("OK", "PARSE_ERR", "EXEC_ERR", "TIMEOUT"))
    return tuple(
        Called(name, "unknown" if name == "nobody" else "tool", "PARSE_ERR" if name == "nobody" else draw(status))
        for name in names
    )


@st.composite
def _rounds(draw: st.DrawFn) -> tuple[EpisodeRound, ...]:
    kinds = draw(st.lists(st.sampled_from(("calls", "unread")), max_size=3))
    issues = st.sampled_from(((), ("no_reasoning",)))
    rounds = [
        EpisodeRound(kind, calls=draw(_calls()) if kind == "calls" else (), issues=draw(issues)) for kind in kinds
    ]
    if draw(st.booleans()):
        rounds += [EpisodeRound("final"), EpisodeRound("answer", truncated=draw(st.booleans()))]
    return tuple(rounds)


@st.composite
def _episodes(draw: st.DrawFn, number: int) -> Episode:
    right = draw(st.booleans())
    integers = st.integers(0, 50_000)
    weight = st.sampled_from((0.0, 0.25, 1.0))
    roles = draw(st.lists(st.sampled_from(sorted(SCORES)), min_size=1, max_size=2))
    return make_episode(
        f"e{number}",
        right,
        units=draw(amounts),
        usd=draw(amounts),
        seconds=draw(amounts),
        totals={
            "critical_path": draw(amounts),
            "call_seconds": draw(amounts),
            "policy_tokens": draw(integers),
            "sequence_tokens": draw(integers),
            "tokens": draw(integers),
        },
        rounds=draw(_rounds()),
        uses=draw(st.dictionaries(st.sampled_from(MEMBERS), st.integers(1, 5))),
        answered=right or draw(st.booleans()),
        answer="Paris" if right else "London",
        expected=("Paris",),
        preference=Preference(
            {name: draw(weight) for name in ("search", "co*")}, draw(weight), draw(weight), draw(weight)
        ),
        domain="plan-path",
        judged=draw(shares),
        turns=tuple(
            RoleTurn(
                turn,
                role,
                draw(shares),
                {name: draw(shares) for name in SCORES[role]},
                draw(st.booleans()),
                {"environment": draw(st.floats(-2, 2))},
            )
            for turn, role in enumerate(roles, 1)
        ),
    )


@pytest.fixture(scope="session")
def groups_of() -> Callable[..., st.SearchStrategy[list[Episode]]]:
    """A strategy for groups of episodes of one question, with everything that any term reads."""

    def strategy(least: int = 1, most: int = 4) -> st.SearchStrategy[list[Episode]]:
        sizes = st.integers(least, most)
        return sizes.flatmap(lambda size: st.tuples(*(_episodes(number) for number in range(size))).map(list))

    return strategy
