"""Nothing that others wrote can forge a control token, or a frame of a strategy, in any prompt."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from concertino.text.control_tokens import FAMILIES

from .forgery_prompts import FRAME_ATTACKS, PLACES, STRATEGIES, VARIANTS, forged, messages

Attack = tuple[str, str, str, str, str]


def attacks() -> Iterator[Attack]:
    """Strategy, place, family, and the two foreign texts: every token in every place in every variant."""
    known = [(family, token) for family, tokens in FAMILIES.items() for token in tokens]
    once = list({token: (family, token) for family, token in known}.values())
    texts = [*once, *(("hermes", text) for text in FRAME_ATTACKS)]
    for name in STRATEGIES:
        for place in PLACES:
            for family, token in texts:
                for variant in VARIANTS.values():
                    yield name, place, family, *variant(token)


ALL = Random(7).sample(list(attacks()), 40_000)
FEW = ALL[:800]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_prompt_has_only_the_frames_and_control_tokens_of_its_strategy(name: str, place: str) -> None:
    wrong = {
        (one, two): why for n, p, f, one, two in FEW if (n, p) == (name, place) and (why := forged(n, p, f, one, two))
    }
    assert wrong == {}


FIRST, *OTHERS = STRATEGIES


@pytest.mark.slow
@pytest.mark.parametrize("name", [FIRST, *(pytest.param(name, marks=pytest.mark.soak) for name in OTHERS)])
def test_of_thousands_of_forgeries_none_is_in_a_prompt(name: str) -> None:
    counts: Counter[str] = Counter()
    wrong = []
    for _, place, family, one, two in (attack for attack in ALL if attack[0] == name):
        why = forged(name, place, family, one, two)
        counts[place] += 1
        wrong += [(place, one, two, why)] if why else []
    sys.stdout.write(f"\n{name}: {sum(counts.values())} attacks {dict(counts)}, {len(wrong)} got through" + "\n")
    assert wrong[:5] == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", STRATEGIES)
def test_the_foreign_text_does_stand_in_the_prompt(name: str, place: str) -> None:
    text = "\n".join(message.text for message in messages(name, place, "zebra", "lion"))
    shown = "zebra" in text
    # The released prompt has no place for an error, and its tools go to the server; testers see no cards.
    hidden = (("serial-qa", "error"), ("serial-qa", "card"), ("roles-tests", "card"))
    assert shown == ((name, place) not in hidden)
