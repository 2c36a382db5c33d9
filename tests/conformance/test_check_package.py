"""`check_package`: an installed distribution is loaded and held to conformance, and the report says what was seen."""

from __future__ import annotations

import importlib.metadata
import json
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from concertino import UsageError
from concertino.core.settings import Settings
from concertino.plugins import PluginManager
from concertino.testing import CheckRow, ConformanceReport, check_package

HEADER = """
from concertino import Cost, Message, Model, ModelSpec, Reply, Usage, agent, hookimpl, tool
"""
METADATA = "Summary: A plugin.\nRequires-Python: >=3.11\nRequires-Dist: concertino>=0.1\n"
GOOD = '''
@tool(timeout=5)
def count_letter(text: str, letter: str) -> int:
    """Count how often one letter occurs in a text.

    Args:
        text: Where to look.
        letter: What to look for.
    """
    return text.count(letter)

@hookimpl
def concertino_tools():
    return [count_letter]
'''
MODEL = """
class Ten(Model):
    async def chat(self, request):
        return Reply("one two three four five six seven", usage=Usage(input_tokens=3, output_tokens=7))

@hookimpl
def concertino_models():
    return [ModelSpec("ten", Ten, "Counts to seven in English words.")]
"""
Install = Callable[[str, str], PluginManager]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """`install(entry, source)`: a distribution acme-ENTRY for this test; gives a manager that sees only such."""
    everywhere = importlib.metadata.distributions
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: everywhere(path=[str(tmp_path)]))
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(entry: str, source: str) -> PluginManager:
        (tmp_path / f"acme_{entry}.py").write_text(HEADER + textwrap.dedent(source))
        info = tmp_path / f"acme_{entry}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-{entry}\nVersion: 1.0\n{METADATA}")
        (info / "entry_points.txt").write_text(f"[concertino]\n{entry} = acme_{entry}\n")
        return PluginManager(Settings(), seconds=10)

    yield install
    for module in [name for name in sys.modules if name.startswith("acme_")]:
        del sys.modules[module]


def rows(report: ConformanceReport, outcome: str) -> dict[str, str]:
    return {row.check: row.detail for row in report.rows if row.outcome == outcome}


@pytest.mark.parametrize("name", ["acme-words", "acme_words", "ACME.Words", "words"])
def test_a_package_is_found_by_any_of_its_names(install: Install, name: str) -> None:
    report = check_package(name, manager=install("words", GOOD))
    assert report.ok
    assert {row.subject for row in report.rows} == {"plugin words", "words/count_letter"}


def test_without_examples_nothing_is_run_and_the_report_says_so(install: Install) -> None:
    tripwire = GOOD.replace("return text.count(letter)", "raise SystemExit('it was run')")
    report = check_package("words", manager=install("words", tripwire))
    assert report.ok
    assert rows(report, "missing")["examples_give_the_expected_results"] == "no `examples` are given"
    assert "its_examples_can_be_read" not in rows(report, "ok")


def test_declared_examples_are_run(install: Install) -> None:
    examples = 'concertino_examples = {"count_letter": [({"text": "banana", "letter": "a"}, %d)]}'
    assert check_package("good", manager=install("good", GOOD + examples % 3)).ok
    report = check_package("bad", manager=install("bad", GOOD + examples % 4))
    assert not report.ok
    assert "gave 3; expected 4" in rows(report, "failed")["examples_give_the_expected_results"]


def test_examples_may_say_all_that_a_subject_knows(install: Install) -> None:
    given = """
    {"words/count_letter": {"examples": [({"text": "x", "letter": "x"}, 1)], "rejected": [{"text": "", "letter": ""}],
                            "nondeterministic": "for this test"}}
    """
    report = check_package("words", manager=install("words", f"{GOOD}concertino_examples = {given.strip()}"))
    assert "was run (OK)" in rows(report, "failed")["rejected_arguments_are_refused_with_a_reason"]
    assert "for this test" in rows(report, "skipped")["the_same_arguments_give_the_same_result"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("{'count_leter': []}", "names 'count_leter'; it publishes"),
        ("{'count_letter': {'exmples': []}}", "unknown key 'exmples'; known: examples, rejected"),
        ("{'count_letter': 5}", "expected a list of examples, or a mapping"),
        ("[{'text': 'a', 'letter': 'a'}]", "is list; expected a mapping"),
        ("{'count_letter': [{'text': 'a'}]}", "examples[0] is {'text': 'a'}; expected a pair (arguments, result)"),
        ("{'count_letter': {'rejected': ['x']}}", "rejected[0] is 'x'; expected arguments, a mapping"),
        ("{'count_letter': {'slow': 3}}", "slow is 3; expected arguments, a mapping"),
        ("[1]", "is list; expected a mapping"),
    ],
)
def test_examples_that_cannot_be_read_are_a_failed_row(install: Install, given: str, text: str) -> None:
    report = check_package("words", manager=install("words", f"{GOOD}concertino_examples = {given}"))
    assert text in rows(report, "failed")["its_examples_can_be_read"]
    assert not report.ok


def test_a_broken_plugin_is_a_failed_row_with_its_reason(install: Install) -> None:
    report = check_package("words", manager=install("words", "import nothing_of_that_name"))
    assert [row.check for row in report.rows] == ["it_loads"]
    assert "nothing_of_that_name" in report.rows[0].detail
    assert not report.ok


def test_a_model_is_only_asked_where_its_examples_say_so(install: Install) -> None:
    silent = check_package("models", manager=install("models", MODEL))
    assert {row.check for row in silent.rows if row.outcome != "missing"} == {
        "it_loads",
        "its_metadata_says_what_it_is",
        "its_description_says_what_it_does",
        "importing_its_module_is_quick",
        "its_factory_makes_a_model",
    }
    assert silent.ok
    assert not silent.complete
    asked = check_package(
        "asked", manager=install("asked", MODEL + "concertino_examples = {'ten': {'honours_max_tokens': True}}")
    )
    assert "asked for 5 tokens, it wrote 7" in rows(asked, "failed")["max_tokens_is_honoured"]
    assert "it_answers_with_a_reply_and_its_usage" in rows(asked, "ok")


STRATEGY = """
from concertino.strategies import ParsedReply, TextStrategy

class Shout(TextStrategy):
    name = "shout"

    def system_prompt(self, context):
        return "Answer."

    def read(self, text):
        return ParsedReply(answer=text)

    def write_answer(self, answer, thought="", **_):
        return (answer,)

@hookimpl
def concertino_strategies():
    return [Shout]
"""


def test_a_published_strategy_is_driven_without_examples(install: Install) -> None:
    report = check_package("shouts", manager=install("shouts", STRATEGY))
    assert report.ok
    assert {row.subject for row in report.rows} == {"plugin shouts", "shouts/shout"}
    assert "a_written_answer_ends_the_run" in rows(report, "ok")
    assert "does not write turns" in rows(report, "skipped")["a_written_turn_is_read_back"]


def test_a_strategy_that_breaks_its_contract_is_a_failed_row(install: Install) -> None:
    broken = STRATEGY.replace("answer=text", "answer=text.encode().decode()")  # a lone surrogate cannot be encoded
    report = check_package("broken", manager=install("broken", broken))
    assert not report.ok
    assert "UnicodeEncodeError" in rows(report, "failed")["any_text_is_read"]


def test_of_a_plugin_with_members_and_strategies_one_can_be_chosen(install: Install) -> None:
    manager = install("both", GOOD + STRATEGY)
    assert {row.subject for row in check_package("both", manager=manager, only="shout").rows} == {
        "plugin both",
        "both/shout",
    }
    with pytest.raises(UsageError, match=r"publishes no 'whisper'; there are both/count_letter, both/shout"):
        check_package("both", manager=manager, only="whisper")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("{'shot': {}}", "names 'shot'; it publishes"),
        ("{'shout': {'question': 'x'}}", "unknown key 'question'; known: strategy, tools, questions"),
        ("{'shout': []}", "concertino_examples['shout'] is []; expected a mapping with strategy, tools"),
    ],
)
def test_what_is_said_of_a_strategy_in_an_unknown_form_is_a_failed_row(install: Install, given: str, text: str) -> None:
    report = check_package("words", manager=install("words", f"{STRATEGY}\nconcertino_examples = {given}"))
    assert text in rows(report, "failed")["its_examples_can_be_read"]


def test_a_strategy_without_default_settings_is_checked_with_those_that_are_given(install: Install) -> None:
    needy = STRATEGY.replace(
        'name = "shout"', 'name = "shout"\n    def __init__(self, *, loud):\n        super().__init__()'
    )
    bare = check_package("bare", manager=install("bare", needy))
    assert "Shout() cannot be made without settings" in rows(bare, "failed")["it_can_be_made"]
    told = f"{needy}\nconcertino_examples = {{'shout': {{'strategy': Shout(loud=True)}}}}"
    assert "it_can_be_made" in rows(check_package("told", manager=install("told", told)), "ok")


def test_a_class_that_is_not_a_strategy_is_a_failed_row(install: Install) -> None:
    stranger = (
        "class Stranger:\n    name = 'stranger'\n\n@hookimpl\ndef concertino_strategies():\n    return [Stranger]"
    )
    report = check_package("odd", manager=install("odd", stranger))
    assert "not a subclass of concertino.Strategy" in rows(report, "failed")["it_can_be_made"]


def test_an_unknown_name_gives_near_ones(install: Install) -> None:
    with pytest.raises(UsageError, match=r"no installed plugin is called 'wrods'; did you mean 'words'"):
        check_package("wrods", manager=install("words", GOOD))
    with pytest.raises(UsageError, match="there are none"):
        check_package("x", manager=PluginManager(Settings(), installed=False))


def test_a_registered_object_is_checked_like_an_installed_plugin(install: Install) -> None:
    install("words", GOOD)
    manager = PluginManager(Settings(), installed=False)
    manager.register(__import__("acme_words"), "mine")
    assert check_package("mine", manager=manager).ok


REPORT = ConformanceReport(
    "acme",
    (
        CheckRow("one", "tool a", "ok", "", "It is good."),
        CheckRow("two", "tool b", "failed", "seen this;\ndo that", "It is better."),
        CheckRow("three", "tool a", "skipped", "does not apply", "It is best."),
        CheckRow("four", "tool a", "missing", "no `slow`", "It is quick."),
    ),
)


def test_a_report_renders_a_block_per_subject_with_what_to_do_and_why_something_was_skipped() -> None:
    assert REPORT.render().splitlines() == [
        "tool a",
        "  ok    It is good.",
        "  skip  1 of 3: does not apply",
        "  give  1 of 3: no `slow`",
        "tool b",
        "  FAIL  It is better.",
        "        seen this;",
        "        do that",
        "acme does not conform: 1 ok, 1 failed, 1 missing, 1 skipped",
    ]


def test_a_report_is_json_with_the_requirement_of_each_row() -> None:
    data = json.loads(json.dumps(REPORT.to_json()))
    assert (data["package"], data["ok"], data["complete"]) == ("acme", False, False)
    assert data["counts"] == {"ok": 1, "failed": 1, "missing": 1, "skipped": 1}
    assert data["rows"][1] == {
        "check": "two",
        "subject": "tool b",
        "outcome": "failed",
        "detail": "seen this;\ndo that",
        "requirement": "It is better.",
    }


def test_a_report_of_nothing_is_not_ok() -> None:
    assert not ConformanceReport("acme", ()).ok
