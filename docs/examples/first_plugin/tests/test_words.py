"""The tool called as a function, called as an orchestrator calls it, and checked against the contract."""

from concertino.testing import ToolConformance, call
from concertino_words import count_words


def test_case_does_not_count():
    assert count_words("A rose is a rose") == {"a": 2, "rose": 2, "is": 1}


def test_rare_words_are_left_out():
    seen = call(count_words, {"text": "a rose is a rose", "at_least": 2})
    assert seen.status == "OK"
    assert seen.content == {"a": 2, "rose": 2}


class TestCountWords(ToolConformance):
    spec = count_words
    examples = (({"text": "to be or not to be", "at_least": 2}, {"to": 2, "be": 2}),)
    rejected = ({"text": 3}, {"text": "to be", "at_least": 0})
