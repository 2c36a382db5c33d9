"""Word vectors from WordNet: words that explain each other are near, opposites differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from concertino import UsageError
from concertino_train.scorer.wordnet import DEBIAN, WordNet, meaning, polarity, vocabulary


def test_synsets_are_read_with_their_words_pointers_and_glosses(small: WordNet) -> None:
    assert len(small.synsets) == 6
    expert = small.synsets["adj", "00000002"]
    assert expert.words == ("adept", "expert")
    assert expert.gloss == 'having skill; "an adept juggler"'
    assert [pointer.kind for pointer in small.synsets["adj", "00000001"].pointers] == ["&", "!", "+"]


@pytest.mark.parametrize(
    ("word", "base"), [("skills", "skill"), ("jugglres", "juggler"), ("expertly", "expert"), ("zzz", "zzz")]
)
def test_a_word_has_its_base_form(small: WordNet, word: str, base: str) -> None:
    assert small.lemma(word) == base


def test_polarity_reaches_what_is_similar_or_derived_and_turns_at_an_antonym(small: WordNet) -> None:
    words = ["skilful", "adept", "expert", "clumsy", "skill", "performer"]
    found = dict(zip(words, polarity(small, words, {"adept": 0.9}).tolist(), strict=True))
    assert found["adept"] == pytest.approx([0.9, 1.0])
    assert found["expert"][0] > 0
    assert found["skill"][0] > 0
    assert found["clumsy"][0] < 0
    assert found["performer"] == [0.0, 0.0]
    assert 0 < found["clumsy"][1] < found["skilful"][1] < 1


def test_vectors_have_length_one_and_equal_seeds_give_equal_ones(small: WordNet) -> None:
    words = vocabulary(small, 100)
    assert {"skilful", "adept", "clumsy"} <= set(words)
    vectors = meaning(small, words, 3)
    assert vectors.shape == (len(words), 3)
    assert np.array_equal(vectors, meaning(small, words, 3))


def test_a_folder_without_wordnet_is_refused_with_the_package_to_install(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="wordnet-base"):
        WordNet(tmp_path)


@pytest.mark.soak
@pytest.mark.skipif(not (DEBIAN / "data.noun").is_file(), reason="WordNet is not installed: wordnet-base of Debian")
def test_words_near_each_other_mean_alike_in_wordnet_itself() -> None:
    net = WordNet()
    words = vocabulary(net, 45_000)
    vectors = meaning(net, words, 64)
    for word, like, unlike in (("fraction", "denominator", "parliament"), ("terrible", "dreadful", "kidney")):
        one, near, far = (vectors[words.index(each)] for each in (word, like, unlike))
        assert one @ near > one @ far + 0.3
    tone = dict(zip(words, polarity(net, words, {"good": 0.8, "bad": -0.8}).tolist(), strict=True))
    assert tone["superb"][0] > 0 > tone["awful"][0]
