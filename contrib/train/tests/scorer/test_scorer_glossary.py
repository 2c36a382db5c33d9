"""The glossary: it is whole, it can be left out, and its words stand near each other."""

from __future__ import annotations

from concertino_train.scorer import load_topics
from concertino_train.scorer.glossary import load_glossary


def test_every_entry_has_names_and_words_enough_to_tell_it() -> None:
    entries = load_glossary()
    assert len(entries) > 1000
    for entry in entries:
        assert len(entry.names) >= 3, entry
        assert len(entry.words) >= 30, entry
        assert all(text.strip() == text != "" for text in (*entry.names, *entry.words)), entry


def test_entries_that_share_a_name_with_given_topics_are_left_out() -> None:
    names = {name.lower() for topic in load_topics("development") for name in (topic.name, *topic.names)}
    kept = load_glossary(names)
    assert 0 < len(kept) < len(load_glossary())
    assert not names & {name.lower() for entry in kept for name in entry.names}
