"""The simulated user: dialogues end, each side sees only what it may see, and a bad user is nobody's wrong answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.testing import ScriptedModel, make_pool
from concertino_bench import Grader, Item, System, Task, TaskSet
from concertino_bench.graders import FinalState, JudgedState
from concertino_bench.runner import Evaluation, Selection, evaluate
from concertino_bench.toolkits import Domain, Toolkit, reads, writes
from concertino_bench.toolkits.tau2 import TELECOM

TALK = "talk_to_user"


class Lamp(Toolkit):
    """A lamp that the customer has, and a note that the agent keeps."""

    @writes(by="user")
    def flip_switch(self) -> str:
        """Flip the switch."""
        self.db["lamp"]["on"] = True
        return "the lamp is on"

    @writes
    def note(self, text: str) -> str:
        """Keep a note.

        Args:
            text: what is noted
        """
        self.db["notes"]["last"] = text
        return "noted"

    @reads(by="nobody")
    def assert_on(self) -> bool:
        """Whether it is on."""
        return bool(self.db["lamp"]["on"])


LAMP = Domain("own/lamp", Lamp)


def task_of(tmp_path: Path, *, turns: int = 30, user: str = "customer", **criteria: Any) -> Task:
    criteria = criteria or {
        "actions": [{"name": "flip_switch", "arguments": {}, "requestor": "user"}],
        "env_assertions": [{"env_type": "user", "func_name": "assert_on", "arguments": {}, "assert_value": True}],
        "reward_basis": ["ENV_ASSERTION"],
    }
    scenario = {
        "persona": "impatient",
        "instructions": {"reason_for_call": "The lamp is dark.", "known_info": "SECRET"},
    }
    rows = [{"id": "dark", "user_scenario": scenario, "evaluation_criteria": criteria}]
    (tmp_path / "db.json").write_text(json.dumps({"lamp": {"on": False}, "notes": {}}))
    (tmp_path / "tasks.json").write_text(json.dumps(rows))
    (task,) = LAMP.tasks(tmp_path, user=user, turns=turns)
    return task


def run(
    task: Task,
    domain: Domain,
    agent: Sequence[Any],
    user: Sequence[Any],
    out: Path,
    judge: Sequence[Any] = (),
    **models: Any,
) -> tuple[Item, ScriptedModel, ScriptedModel]:
    leader, customer = ScriptedModel(*agent), ScriptedModel(*user, native=True)
    pool = make_pool(orchestrator=leader, customer=customer, judge=ScriptedModel(*judge), **models)
    home = TaskSet("one", "One task.", lambda: iter([task]), domain.task_set().world)
    graders: list[Grader] = [FinalState(), JudgedState()]
    evaluation = Evaluation([Selection(home)], [System("agent")])
    outcome = asyncio.run(evaluate(evaluation, pool, out, graders=graders))
    (item,) = outcome.items
    return item, leader, customer


def read_by(model: ScriptedModel) -> str:
    """All that a model has read and written."""
    return "\n".join(message.text for request in model.requests for message in request.messages)


def say(text: str) -> list[tuple[str, dict[str, Any]]]:
    return [(TALK, {"message": text})]


def golden_dialogue(task: Task) -> tuple[list[Any], list[Any]]:
    """What agent and user do, turn by turn, to carry out a task's golden calls."""
    functions = TELECOM.toolkit_of(task).functions()
    agent: list[Any] = [say("How can I help?")]
    user: list[Any] = ["My phone does not work."]
    over = [each for each in task.metadata["actions"] if each["name"] == "transfer_to_human_agents"]
    for call in (*task.metadata["golden"], *over):
        if functions[call["name"]].by == "agent":
            agent.append([(call["name"], call["arguments"])])
        else:
            agent.append(say(f"Please do this: {call['name']}"))
            user += [[(call["name"], call["arguments"])], "I have done it."]
    agent += [say("Is that all?"), "<answer>solved</answer>"]
    return agent, [*user, "###TRANSFER###" if over else "Thank you. ###STOP###"]


def test_a_user_driven_by_a_script_finishes_ten_dialogues(shared_data: Path, tmp_path: Path) -> None:
    tasks = list(TELECOM.tasks(shared_data / "tau2_bench" / "telecom", user="customer"))
    chosen = sorted(tasks, key=lambda task: -len(task.metadata["golden"]) - 9 * bool(task.metadata["actions"]))[:10]
    for number, task in enumerate(chosen):
        item, leader, customer = run(task, TELECOM, *golden_dialogue(task), tmp_path / f"{number}.jsonl")
        assert (item.error, item.stop, item.verdict, item.reason) == (
            "",
            "answered",
            "right",
            "the final state is right",
        )
        leader.assert_done()
        customer.assert_done()


def test_each_side_sees_only_what_it_may_see(tmp_path: Path) -> None:
    agent = [say("Hello"), [("note", {"text": "dark"})], say("Try the switch"), "<answer>on</answer>"]
    user = ["It is dark.", [("flip_switch", {})], "Now it is light. ###STOP###"]
    item, leader, customer = run(task_of(tmp_path), LAMP, agent, user, tmp_path / "r.jsonl")
    assert item.verdict == "right"
    seen = read_by(leader)
    assert "It is dark." in seen
    assert "The conversation is over" in seen
    assert not any(hidden in seen for hidden in ("SECRET", "impatient", "STOP###", "the lamp is on", "flip_switch"))
    last = customer.requests[-1]
    heard = "\n".join(message.text for message in last.messages)
    assert "SECRET" in heard
    assert "the lamp is on" in heard
    assert "noted" not in heard
    assert [tool["function"]["name"] for tool in last.tools] == ["flip_switch"]
    assert [message.role for message in last.messages] == ["system", "user", "assistant", "user", "assistant", "tool"]


def test_after_the_user_has_left_nothing_can_be_said_or_done(tmp_path: Path) -> None:
    agent = [say("Hello"), [("note", {"text": "late"}), *say("Still there?")], "<answer>-</answer>"]
    item, leader, customer = run(task_of(tmp_path), LAMP, agent, ["###STOP###"], tmp_path / "r.jsonl")
    assert (item.verdict, item.statuses) == ("wrong", {"OK": 2, "EXEC_ERR": 1})
    assert "assert_on() gives False" in item.reason
    assert "nothing can be called after the end of the conversation" in read_by(leader)
    assert len(customer.requests) == 1


def test_a_conversation_has_a_limit(tmp_path: Path) -> None:
    agent = [*[say("Hello")] * 3, "<answer>-</answer>"]
    item, leader, customer = run(task_of(tmp_path, turns=2), LAMP, agent, ["What?", "Why?"], tmp_path / "r.jsonl")
    assert len(customer.requests) == 2
    assert "The customer leaves after 2 messages" in read_by(leader)
    assert item.verdict == "wrong"


@pytest.mark.parametrize(
    ("user", "code"),
    [
        ([*[""] * 20], "said nothing"),
        ([*[[("flip_switch", {})]] * 20], "said nothing"),
        ([RuntimeError("away")], "away"),
    ],
)
def test_a_user_who_says_nothing_fails_the_call_with_the_reason(tmp_path: Path, user: list[Any], code: str) -> None:
    agent = [say("Hello"), "<answer>-</answer>"]
    item, leader, _ = run(task_of(tmp_path), LAMP, agent, user, tmp_path / "r.jsonl")
    assert item.stop == "answered"
    assert item.members[TALK].statuses.get("OK") is None
    assert code in read_by(leader)


def test_a_user_who_is_silent_once_is_asked_again(tmp_path: Path) -> None:
    item, *_ = run(
        task_of(tmp_path),
        LAMP,
        [say("Hello"), "<answer>-</answer>"],
        ["", [("flip_switch", {})], "###STOP###"],
        tmp_path / "r.jsonl",
    )
    assert item.verdict == "right"


def test_a_user_that_the_pool_has_not_is_said_before_anybody_is_asked(tmp_path: Path) -> None:
    leader = ScriptedModel("<answer>-</answer>")
    task = task_of(tmp_path, user="ghost")
    home = TaskSet("one", "One task.", lambda: iter([task]), LAMP.task_set().world)
    with pytest.raises(ct.UsageError, match="ghost"):
        asyncio.run(
            evaluate(
                Evaluation([Selection(home)], [System("agent")]),
                make_pool(orchestrator=leader, other=ScriptedModel("x")),
                tmp_path / "r.jsonl",
                graders=[FinalState()],
            )
        )
    assert leader.requests == []


# -- statements --------------------------------------------------------------------------------------------------------


def verdict(word: str) -> str:
    return json.dumps({"reason": f"it is {word}", "verdict": word})


STATEMENTS = {
    "actions": [{"name": "note", "arguments": {"text": "dark"}}],
    "nl_assertions": ["The agent greeted.", "The agent noted it."],
    "communicate_info": ["7 watts"],
    "reward_basis": ["DB", "NL_ASSERTION", "COMMUNICATE"],
}


@pytest.mark.parametrize(
    ("judge", "found", "reason"),
    [
        (["right", "right"], "right", "all 2 statements"),
        (["right", "wrong"], "wrong", "not true that 'The agent noted it.'"),
        (["nonsense"], "unparsable", "the judge did not answer"),
    ],
)
def test_statements_are_judged_by_a_model_of_the_pool_that_sees_the_conversation(
    tmp_path: Path, judge: list[str], found: str, reason: str
) -> None:
    task = task_of(tmp_path, **STATEMENTS)
    assert task.metadata["grader"] == "judged-state"
    agent = [say("Hello, it has 7 watts."), [("note", {"text": "dark"})], say("Noted."), "<answer>done</answer>"]
    asked = ScriptedModel(*map(verdict, judge))
    leader, customer = ScriptedModel(*agent), ScriptedModel("It is dark.", "###STOP###", native=True)
    pool = make_pool(orchestrator=leader, customer=customer, judge=asked)
    home = TaskSet("one", "One task.", lambda: iter([task]), LAMP.task_set().world)
    out = tmp_path / "r.jsonl"
    evaluation = Evaluation([Selection(home)], [System("agent")])
    (item,) = asyncio.run(evaluate(evaluation, pool, out, graders=[FinalState(), JudgedState()])).items
    assert (item.verdict, reason in item.reason) == (found, True), item.reason
    data = json.loads(asked.requests[0].messages[1].text)
    assert data["statement"] == "The agent greeted."
    assert "user: It is dark." in data["conversation"]
    assert any(call.startswith("note(") for call in data["calls"])


def test_the_judge_is_not_asked_where_the_state_is_wrong(tmp_path: Path) -> None:
    agent = [say("7 watts"), "<answer>done</answer>"]
    item, *_ = run(task_of(tmp_path, **STATEMENTS), LAMP, agent, ["###STOP###"], tmp_path / "r.jsonl")
    assert item.verdict == "wrong"
    assert "digest" in item.reason
    assert item.graded.tokens == 0
