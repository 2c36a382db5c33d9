"""Every check passes what meets its requirement and fails what breaks it, with a text that says what to do."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.testing import (
    agent_checks as _agent_checks,
)
from concertino.testing import (
    declaration_checks as _declaration_checks,
)
from concertino.testing import fake_tool
from concertino.testing import (
    leftovers as _leftovers,
)
from concertino.testing.agent_checks import AGENT_CHECKS
from concertino.testing.call_checks import CALL_CHECKS
from concertino.testing.check import Check, MemberSubject, ModelSubject, perform, requirement_of
from concertino.testing.declaration_checks import DECLARATION_CHECKS, MODEL_DECLARATION_CHECKS
from concertino.testing.model_checks import MODEL_CHECKS

for name in ("good_members", "bad_members"):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
good, bad = sys.modules["good_members"], sys.modules["bad_members"]

ALL = {check.__name__: check for check in (*AGENT_CHECKS, *MODEL_DECLARATION_CHECKS, *MODEL_CHECKS)}
BAD = [
    pytest.param(ALL[name], subject, text, id=f"{name}-{number}")
    for name, subjects in bad.BAD.items()
    for number, (subject, text) in enumerate(subjects)
]


@pytest.fixture(scope="module", autouse=True)
def end_what_is_left_behind() -> Iterator[None]:
    yield
    bad.END.set()
    time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("check", "subject", "text"), BAD)
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_bad_member_fails_with_a_direction(
    monkeypatch: pytest.MonkeyPatch, check: Check, subject: Any, text: str
) -> None:
    monkeypatch.setattr(_leftovers, "PATIENCE", 0.4)
    monkeypatch.setattr(_agent_checks, "LONGEST", 0.5)
    row = perform(check, subject)
    assert row.outcome == "failed", row
    assert text in row.detail


def test_every_check_has_a_member_that_fails_it() -> None:
    elsewhere = {"importing_its_module_is_quick"}  # below: it needs a module that another process can import
    assert set(bad.BAD) == set(ALL)
    assert {name for name, subjects in bad.BAD.items() if not subjects} == elsewhere


@pytest.mark.parametrize("check", [*DECLARATION_CHECKS, *CALL_CHECKS], ids=lambda check: check.__name__)
def test_a_good_tool_passes_every_check_of_tools(check: Check) -> None:
    row = perform(check, good.GOOD_TOOL)
    assert (row.outcome, row.detail) == ("ok", "") or check.__name__ == "importing_its_module_is_quick"


MISSING_FOR_THE_AGENT = {"a_failure_is_explained"}


@pytest.mark.parametrize("check", AGENT_CHECKS, ids=lambda check: check.__name__)
def test_a_good_agent_passes_every_check_of_agents(check: Check) -> None:
    row = perform(check, good.GOOD_AGENT)
    if check.__name__ != "importing_its_module_is_quick":
        assert row.outcome == ("missing" if check.__name__ in MISSING_FOR_THE_AGENT else "ok"), row.detail


@pytest.mark.parametrize("check", MODEL_CHECKS, ids=lambda check: check.__name__)
def test_a_good_model_passes_every_check_of_models(check: Check) -> None:
    assert perform(check, good.GOOD_MODEL).outcome == "ok"


@pytest.mark.parametrize("check", ALL.values(), ids=lambda check: check.__name__)
def test_every_requirement_is_a_sentence(check: Check) -> None:
    assert requirement_of(check)[0].isupper()
    assert requirement_of(check).endswith(".")


def test_what_is_not_given_is_missing_and_named() -> None:
    bare = MemberSubject(fake_tool())
    rows = {check.__name__: perform(check, bare) for check in CALL_CHECKS}
    assert {row.outcome for name, row in rows.items()} == {"missing"}
    assert rows["a_deadline_is_honoured"].detail == "no `slow` arguments are given"
    assert bare.spec.calls == []


def test_what_cannot_be_given_is_skipped_with_the_author_s_reason() -> None:
    bare = MemberSubject(fake_tool(), without={"slow": "it only counts"})
    row = perform(ALL["a_deadline_is_honoured"], bare)
    assert (row.outcome, row.detail) == ("skipped", "no `slow`: it only counts")


def test_a_member_that_reads_the_run_s_question_is_given_one() -> None:
    @ct.agent
    async def reads(ctx: ct.Context) -> str:
        """Tell the question of the run."""
        return ctx.question

    row = perform(ALL["examples_give_the_expected_results"], MemberSubject(reads, [({}, "why?")], question="why?"))
    assert row.outcome == "ok", row.detail


def test_a_feature_that_is_not_declared_is_skipped() -> None:
    bare = ModelSubject("counting", good.Counting)
    skipped = {check.__name__ for check in MODEL_CHECKS if perform(check, bare).outcome == "skipped"}
    assert skipped == {
        "max_tokens_is_honoured",
        "stop_is_honoured",
        "offered_tools_are_called_natively",
        "log_probabilities_belong_to_the_tokens",
    }


def test_streaming_is_checked_where_it_is_overridden() -> None:
    class Plain(ct.Model):
        async def chat(self, request):
            return ct.Reply("hi")

    row = perform(ALL["a_stream_ends_with_its_reply"], ModelSubject("plain", Plain))
    assert (row.outcome, row.detail) == ("skipped", "it does not override `stream`")


def test_a_reason_for_being_nondeterministic_is_shown() -> None:
    subject = replace(bad.acting(lambda: 1), nondeterministic="it rolls dice")
    row = perform(ALL["the_same_arguments_give_the_same_result"], subject)
    assert (row.outcome, row.detail) == ("skipped", "declared as not deterministic: it rolls dice")


def test_a_writing_member_is_not_held_to_determinism() -> None:
    subject = MemberSubject(fake_tool(sequence=range(9), writes=True), examples=[({}, 0)])
    assert perform(ALL["the_same_arguments_give_the_same_result"], subject).outcome == "skipped"


def test_refused_calls_never_reach_the_function() -> None:
    tool = fake_tool(schema={"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False})
    subject = MemberSubject(tool, rejected=[{"n": "x"}, {"m": 1}])
    for check in DECLARATION_CHECKS:
        perform(check, subject)
    assert tool.calls == []


def test_a_schema_that_takes_further_arguments_on_purpose_is_not_blamed() -> None:
    row = perform(ALL["an_unknown_argument_is_refused"], MemberSubject(fake_tool()))
    assert row.outcome == "skipped"


def test_a_description_behind_a_reference_counts() -> None:
    schema = {
        "type": "object",
        "properties": {"place": {"$ref": "#/$defs/Place"}},
        "$defs": {"Place": {"type": "string", "description": "A city or a country."}},
    }
    row = perform(ALL["every_parameter_is_described"], MemberSubject(fake_tool(schema=schema)))
    assert row.outcome == "ok"


def test_a_library_s_own_thread_that_is_started_once_is_no_leftover() -> None:
    started: list[int] = []

    async def work() -> None:
        if not started:
            started.append(1)
            await bad.leaves("thread")()

    assert perform(ALL["a_finished_call_leaves_nothing_behind"], bad.acting(work)).outcome == "ok"


class InThreads(ct.Model):
    """Answers after some work in several threads of the event loop."""

    seconds = 0.0

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(None, time.sleep, self.seconds) for _ in range(3)))
        return ct.Reply("hi")


def test_a_thread_of_the_event_loop_that_works_no_longer_is_no_leftover() -> None:
    row = perform(ALL["a_cancelled_request_leaves_nothing_behind"], ModelSubject("threads", InThreads))
    assert row.outcome == "ok", row


def test_a_thread_of_the_event_loop_that_works_on_is_a_leftover(monkeypatch: pytest.MonkeyPatch) -> None:
    class WorksOn(InThreads):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            self.seconds = 0.7 if "Slowly" in request.messages[0].text else 0.0
            return await super().chat(request)

    monkeypatch.setattr(_leftovers, "PATIENCE", 0.2)
    row = perform(ALL["a_cancelled_request_leaves_nothing_behind"], ModelSubject("threads", WorksOn))
    assert row.outcome == "failed"
    assert "there still run: sleep in a thread" in row.detail


SLOW_IMPORT = "import time\ntime.sleep(0.4)\n"
FUNCTION = "def function(text: str) -> str:\n    return text\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "outcome", "text"),
    [
        (FUNCTION, "ok", ""),
        (SLOW_IMPORT + FUNCTION, "failed", "import heavy libraries inside functions"),
        (f"import sys\nassert hasattr(sys, 'acme_here')\n{FUNCTION}", "failed", "cannot be imported in a process"),
    ],
)
def test_a_slow_import_is_measured_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, outcome: str, text: str
) -> None:
    (tmp_path / "acme_module.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "acme_here", True, raising=False)
    monkeypatch.delitem(sys.modules, "acme_module", raising=False)
    module = importlib.import_module("acme_module")
    row = perform(ALL["importing_its_module_is_quick"], MemberSubject(fake_tool().with_(function=module.function)))
    assert (row.outcome, text in row.detail) == (outcome, True)
    del sys.modules["acme_module"]


def test_a_quick_module_is_measured_once_for_its_members_and_again_when_it_was_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []
    seconds = [0.1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]

    def import_seconds(module: str) -> float:
        measured.append(module)
        return seconds[len(measured) - 1]

    monkeypatch.setattr(_declaration_checks, "import_seconds", import_seconds)
    file = tmp_path / "acme_members.py"
    file.write_text(FUNCTION)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("acme_members")
    members = [MemberSubject(fake_tool(name).with_(function=module.function)) for name in ("one", "two")]
    check = ALL["importing_its_module_is_quick"]
    assert [perform(check, member).outcome for member in members] == ["ok", "ok"]
    assert len(measured) == 1
    os.utime(file, ns=(0, 0))
    assert [perform(check, member).outcome for member in members] == ["failed", "failed"]
    assert len(measured) == 7, "a slow one has three tries for each member"
    del sys.modules["acme_members"]


def test_a_member_of_a_test_is_not_measured() -> None:
    row = perform(ALL["importing_its_module_is_quick"], MemberSubject(ct.ToolSpec("t", "d", {}, _local)))
    assert row.outcome == "skipped"


def _local() -> None:
    """Lives in no module that another process can import."""


_local.__module__ = "__main__"
