"""Casts that a scorer of members learns from: true to their shares, without a hint outside the cards."""

from __future__ import annotations

import re
import statistics
from random import Random

import pytest
from concertino_train.scorer import HELD_OUT, Cast, CastSettings, Voice, author_names, draw_cast, load_topics
from concertino_train.scorer.sentences import KINDS, LEVELS, _numbers_of, with_ordinal

WRITERS = [name for name in author_names() if name != "figures"]


@pytest.mark.parametrize("author", WRITERS)
def test_every_sentence_of_an_author_has_its_slots_filled(author: str) -> None:
    voice, rng = Voice(author), Random(author)
    for kind in KINDS:
        for share in (0.0, 0.02, *LEVELS, 0.985, 1.0):
            for _ in range(40):
                text, spoken = voice.about_share(kind, share, "knots and ropes", "bilo", rng)
                assert not re.search(r"[{}]", text), text
                assert spoken == ("knots and ropes" in text.lower()) or text.lower().startswith("knots")
    for what in ("weak_topic", "strong_topic", "purpose"):
        assert "{" not in voice.about_topic(what, "knots", "bilo", rng)
    assert "{" not in voice.neutral("knots", "bilo", rng)


def test_an_author_of_levels_has_all_of_them_in_all_kinds_that_it_writes() -> None:
    for author in WRITERS:
        voice = Voice(author)
        for families in voice._families:
            for kind, levels in families.levelled.items():
                assert set(levels) == set(LEVELS), (author, kind)
                assert all(len(set(texts)) >= 8 for texts in levels.values()), (author, kind)


@pytest.mark.parametrize("form", ["percent_right", "percent_wrong", "right_of"])
def test_numbers_say_the_share(form: str) -> None:
    for share in (0.1, 0.4, 0.9):
        numbers = _numbers_of(share, form, Random(1), 0.5)
        assert numbers["percent"] == pytest.approx(100 * (1 - share if form == "percent_wrong" else share), abs=0.5)
        assert numbers["right"] == round(share * int(str(numbers["total"])))
        assert int(str(numbers["right"])) + int(str(numbers["wrong"])) == numbers["total"]


@pytest.mark.parametrize("scale", [0.0, 0.4, 0.6, 0.99])
def test_ratings_grow_and_rates_of_errors_fall_on_every_scale(scale: float) -> None:
    numbers = [_numbers_of(share, "rating", Random(1), scale) for share in LEVELS]
    ratings = [float(str(each["rating"])) for each in numbers]
    rates = [float(str(each["rate"])) for each in numbers]
    assert ratings == sorted(set(ratings))
    assert rates == sorted(set(rates), reverse=True)


def test_ordinals_are_english() -> None:
    assert [with_ordinal(number) for number in (1, 2, 3, 4, 11, 21)] == ["1st", "2nd", "3rd", "4th", "11th", "21st"]
    assert [with_ordinal(number) for number in (12, 13, 102, 111)] == ["12th", "13th", "102nd", "111th"]


def casts(count: int, settings: CastSettings | None = None) -> list[Cast]:
    voices, rng = [Voice(name) for name in WRITERS if name not in HELD_OUT], Random(3)
    topics = load_topics()
    return [draw_cast(voices, topics, rng, settings or CastSettings()) for _ in range(count)]


def test_equal_chance_draws_equal_casts() -> None:
    assert casts(20) == casts(20)


def test_held_out_topics_are_apart_and_stay_the_same() -> None:
    known, *held_out = (load_topics(part) for part in ("training", "development", "test"))
    assert not {topic.name for topic in known} & {topic.name for topic in held_out[0]}
    for topics in held_out:
        assert not {question for topic in known for question in topic.questions} & {
            question for topic in topics for question in topic.questions
        }
        assert len(topics) >= 25
    assert held_out[0] == load_topics("development")


def test_order_price_and_name_tell_nothing_of_the_share() -> None:
    drawn = casts(1500, CastSettings(sizes=(4,), modes=("general",)))
    for place in range(4):
        assert statistics.mean(cast.cards[place].share for cast in drawn) == pytest.approx(0.5, abs=0.04)
    cards = [card for cast in drawn for card in cast.cards]
    assert abs(statistics.correlation([card.price for card in cards], [card.share for card in cards])) < 0.05
    assert abs(statistics.correlation([len(card.name) for card in cards], [card.share for card in cards])) < 0.05


def test_lying_and_silent_cards_come_in_their_shares() -> None:
    cards = [card for cast in casts(800, CastSettings(modes=("general",))) for card in cast.cards]
    counts = {honesty: sum(card.honesty == honesty for card in cards) / len(cards) for honesty in ("lying", "silent")}
    assert counts == {"lying": pytest.approx(0.1, abs=0.02), "silent": pytest.approx(0.2, abs=0.03)}


def test_one_member_fits_where_skills_are_complementary() -> None:
    for cast in casts(200, CastSettings(sizes=(4,), modes=("complementary",))):
        assert sum(card.share > 0.5 for card in cast.cards) == 1


def test_specialists_know_their_own_topic_alone() -> None:
    """Who knows another topic is hardly ever right, however well its card speaks of it."""
    good, elsewhere = 0, 0
    for cast in casts(150, CastSettings(sizes=(6,), modes=("specialists",))):
        names = {name.lower() for topic in load_topics() if topic.name == cast.topic for name in topic.names}
        for card in cast.cards:
            fits = any(name in card.text.lower() for name in names)
            good += fits and card.share > 0.5
            elsewhere += not fits and card.share > 0.21
    assert good > 50
    assert elsewhere == 0


def test_a_card_of_several_skills_names_them_all() -> None:
    for cast in casts(40, CastSettings(sizes=(3,), modes=("several",))):
        for card in cast.cards:
            said = sum(any(name.lower() in card.text.lower() for name in topic.names) for topic in load_topics())
            assert said >= 2, card.text
