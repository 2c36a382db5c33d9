"""Agents from a file: what each kind does, and what a wrong file is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.testing import ScriptedModel, run_call
from concertino_reasoning import load_agents

from .helpers import TASK, Worker, answer_of, notes_of, pool_of, run_virtually, solution, well_formed

EXAMPLE = Path(__file__).parents[1] / "examples" / "agents.toml"
QUESTION = "What is the question?"
DOUBT = "<feedback>Step 2 is wrong.</feedback><verdict>wrong</verdict>"
CERTAIN = "<feedback>It holds.</feedback><verdict>correct</verdict>"


def declare(folder: Path, text: str) -> ct.AgentSpec:
    """The only agent of a file."""
    [spec] = load_agents(written(folder, text))
    return spec


def written(folder: Path, text: str) -> Path:
    file = folder / "agents.toml"
    file.write_text(text, encoding="utf-8")
    return file


def of_kind(kind: str, more: str = "") -> str:
    first = '[[agents.mine.steps]]\nname = "plan"\nprompt = "Plan {{subtask}}"\n'
    steps = first + '[[agents.mine.steps]]\nprompt = "Do {{plan}}"'
    prompt = 'prompt = "Solve {{subtask}} of {{question}}"' if kind != "pipeline" else ""
    text = f'[agents.mine]\nkind = "{kind}"\ndescription = "Solve a task in my own way."\n{prompt}\n{more}\n'
    return text + (steps if kind == "pipeline" else "")


# -- what they do ------------------------------------------------------------------------------------------------------


async def test_a_single_agent_fills_its_prompt_once_and_asks_once(tmp_path: Path) -> None:
    spec = declare(tmp_path, of_kind("single", 'temperature = 0.25\n[agents.mine.parameters]\nstyle = "The style."'))
    with ScriptedModel(solution("42")) as model:
        given = {"subtask": "{{style}} \\boxed{x}", "style": "terse"}
        seen = await run_call(spec, given, pool=pool_of(model), question=QUESTION)
    [request] = model.requests
    assert request.messages[1].text == f"Solve {{{{style}}}} \\boxed{{x}} of {QUESTION}"
    assert "<answer>" in request.messages[0].text
    assert request.sampling.temperature == 0.25
    assert answer_of(seen) == "\\boxed{42}"


async def test_an_own_system_text_replaces_the_built_in_one(tmp_path: Path) -> None:
    spec = declare(tmp_path, of_kind("single", 'system = "Be {{subtask}}."\noutput = "text"'))
    model = ScriptedModel("It is \\boxed{4}, they say.\nOr 5.")
    seen = await run_call(spec, {"subtask": "brief"}, pool=pool_of(model))
    assert model.requests[0].messages[0].text == "Be brief."
    assert answer_of(seen) == "It is \\boxed{4}, they say.\nOr 5."


async def test_samples_are_made_at_once_and_voted_on(tmp_path: Path) -> None:
    spec = declare(tmp_path, of_kind("samples", "samples = 3"))
    model = ScriptedModel(*map(solution, ["1", "2", "2"]))
    seen = await run_call(spec, TASK, pool=pool_of(model))
    assert answer_of(seen) == "\\boxed{2}"
    assert notes_of(seen) == "- 3 of 3 samples voted: 2 (2), 1 (1)"


async def test_a_critique_uses_its_own_texts_and_models(tmp_path: Path) -> None:
    texts = 'critic = "Judge."\nrevise = "Do better."\nrounds = 1\ncritic_model = "judge"\nmodel = "writer"'
    spec = declare(tmp_path, of_kind("critique", texts))
    assert spec.models == ("writer", "judge")
    worker, writer, judge = Worker(), ScriptedModel(solution("1"), solution("2")), ScriptedModel(DOUBT)
    with writer, judge:
        seen = await run_call(spec, TASK, pool=pool_of(worker, writer=writer, judge=judge))
    assert judge.requests[0].messages[0].text == "Judge."
    assert writer.requests[1].messages[0].text == "Do better."
    assert answer_of(seen) == "\\boxed{2}"
    assert worker.requests == []


async def test_a_certain_critic_ends_a_critique(tmp_path: Path) -> None:
    with ScriptedModel(solution("1"), CERTAIN) as model:
        seen = await run_call(declare(tmp_path, of_kind("critique")), TASK, pool=pool_of(model))
    assert "certain of attempt 1 of at most 6" in notes_of(seen)


async def test_a_pipeline_hands_each_result_to_the_later_steps(tmp_path: Path) -> None:
    spec = declare(tmp_path, of_kind("pipeline"))
    with ScriptedModel("<reasoning>hm</reasoning><answer>first {{subtask}}</answer>", solution("42")) as model:
        seen = await run_call(spec, TASK, pool=pool_of(model))
    assert [r.messages[-1].text for r in model.requests] == [f"Plan {TASK['subtask']}", "Do first {{subtask}}"]
    assert [len(r.messages) for r in model.requests] == [1, 2], "only the last step is told the form of an answer"
    assert answer_of(seen) == "\\boxed{42}"


async def test_a_pipeline_ends_with_the_cause_of_a_failed_step(tmp_path: Path) -> None:
    refused = ct.ProviderError("bad request", failure=ct.FailureClass.CALLER)
    seen = await run_call(declare(tmp_path, of_kind("pipeline")), TASK, pool=pool_of(ScriptedModel("plan", refused)))
    assert seen.error is not None
    assert seen.error.code == "rejected"


async def test_a_caller_may_choose_the_model_of_a_declared_agent(tmp_path: Path) -> None:
    spec = declare(tmp_path, of_kind("single", 'model = "writer"'))
    writer, other = Worker(seconds=0), Worker(seconds=0)
    pool = pool_of(Worker(), writer=writer, other=other)
    await run_call(spec, TASK, pool=pool)
    await run_call(spec, {**TASK, "model": "other"}, pool=pool)
    assert (len(writer.requests), len(other.requests)) == (1, 1)


async def test_a_declared_model_that_the_pool_lacks_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    text = of_kind("pipeline").replace('prompt = "Do', 'model = "writr"\nprompt = "Do')
    worker = Worker()
    seen = await run_call(declare(tmp_path, text), TASK, pool=pool_of(worker, writer=worker))
    assert seen.error is not None
    assert "model: the pool has no 'writr'; did you mean writer" in seen.error.message
    assert worker.requests == []


@pytest.mark.parametrize(
    ("kind", "units", "trips"), [("single", 1, 1), ("samples", 5, 1), ("critique", 2, 11), ("pipeline", 2, 2)]
)
def test_defaults_of_cost_requests_and_time(tmp_path: Path, kind: str, units: float, trips: int) -> None:
    spec = declare(tmp_path, of_kind(kind))
    worker = Worker()
    seen = run_virtually(run_call(spec, TASK, pool=pool_of(worker)))
    assert spec.cost.units == units
    assert seen.ended - seen.started == pytest.approx(trips, abs=1e-3)
    assert spec.timeout == (300 if kind in ("single", "samples") else 900)


@pytest.mark.parametrize("kind", ["single", "samples", "critique", "pipeline"])
@pytest.mark.parametrize("limit", [0, 40, 80, 120, 160, 240, 400, 1000])
def test_a_declared_agent_overspends_nothing(tmp_path: Path, kind: str, limit: int) -> None:
    spec = declare(tmp_path, of_kind(kind))
    seen = run_virtually(run_call(spec, TASK, pool=pool_of(Worker()), budget=ct.Budget(tokens=limit)))
    assert well_formed(seen)
    assert seen.usage.tokens <= limit
    seen = run_virtually(run_call(spec, TASK, pool=pool_of(Worker()), budget=ct.Budget(seconds=limit / 100 + 0.1)))
    assert well_formed(seen)
    assert seen.ended - seen.started <= limit / 100 + 0.101


async def test_the_example_file_declares_every_kind_and_each_runs() -> None:
    specs = load_agents(EXAMPLE)
    assert [spec.name for spec in specs] == ["plain_words", "straw_poll", "proof_reader", "two_drafts"]
    for spec in specs:
        given = {**TASK, **({"audience": "a child of ten"} if spec.name == "plain_words" else {})}
        seen = await run_call(spec, given, pool=pool_of(Worker(seconds=0)))
        assert seen.ok, seen.error


# -- what a wrong file is told -----------------------------------------------------------------------------------------

GOOD = 'description = "Solve a task."\nprompt = "{{subtask}}"\n'
PIPELINE = '[agents.a]\nkind = "pipeline"\ndescription = "Solve a task."\n'


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[agents.a", ["is not valid TOML"]),
        ("", ["agents is missing; expected a table, [agents]"]),
        ("agents = 3", ["agents = 3; expected a table, [agents]"]),
        (f"[agent.a]\n{GOOD}", ["unknown key 'agent'; did you mean 'agents'?"]),
        ("[agents]\na = 3", ["[agents] a = 3; expected a table, [agents.a]"]),
        (f'[agents."a b"]\n{GOOD}', ["[agents.a b]", "the name 'a b' cannot be used"]),
        (f"[agents.cot]\n{GOOD}", ["'cot' is an agent of concertino-reasoning itself"]),
        (f"[agents.final_answer]\n{GOOD}", ["'final_answer' is the call that ends a run"]),
        (f'[agents.a]\nkind = "pipline"\n{GOOD}', ["[agents.a] kind = 'pipline'", "did you mean 'pipeline'?"]),
        ('[agents.a]\nprompt = "x"', ["[agents.a] description is missing; expected a text in quotes"]),
        ('[agents.a]\ndescription = " "\nprompt = "x"', ["description = ' '; expected a text that is not empty"]),
        ('[agents.a]\ndescription = "Solve."', ["[agents.a] prompt is missing"]),
        ('[agents.a]\ndescription = "Solve."\nprompt = 3', ["prompt = 3; expected a text in quotes"]),
        (f"[agents.a]\n{GOOD}promt = 1", ["unknown key 'promt'; did you mean 'prompt'?"]),
        (f"[agents.a]\n{GOOD}samples = 3", ["unknown key 'samples' for kind = 'single' (it belongs to 'samples')"]),
        (f'[agents.a]\nkind = "samples"\n{GOOD}samples = 1', ["samples = 1; expected a whole number from 2 to 64"]),
        (f'[agents.a]\nkind = "samples"\n{GOOD}samples = true', ["samples = True; expected a whole number"]),
        (f'[agents.a]\nkind = "critique"\n{GOOD}rounds = 1.5', ["rounds = 1.5; expected a whole number from 1 to 20"]),
        (f'[agents.a]\nkind = "samples"\n{GOOD}output = "text"', ["output = 'text' does not go with kind = 'samples'"]),
        (f'[agents.a]\n{GOOD}output = "txt"', ["output = 'txt'; expected one of answer, text; did you mean 'text'?"]),
        (f"[agents.a]\n{GOOD}units = -1", ["units = -1; expected a number >= 0"]),
        (f"[agents.a]\n{GOOD}timeout = 0", ["timeout = 0; expected a number > 0"]),
        (f"[agents.a]\n{GOOD}timeout = inf", ["timeout = inf; expected a number > 0"]),
        (f'[agents.a]\n{GOOD}temperature = "hot"', ["temperature = 'hot'; expected a number >= 0"]),
        (f"[agents.a]\n{GOOD}parameters = 3", ["parameters = 3; expected a table, [agents.a.parameters]"]),
        (
            f'[agents.a]\n{GOOD}[agents.a.parameters]\nmodel = "x"',
            ["[agents.a.parameters] 'model' cannot be a parameter"],
        ),
        (
            '[agents.a]\ndescription = "Solve."\nprompt = "{{sub_task}}"',
            ["[agents.a] prompt holds {{sub_task}}, which is unknown here; did you mean subtask?"],
        ),
        (
            f'[agents.a]\nkind = "critique"\n{GOOD}critic = "{{{{subtask}}}}"',
            ["critic holds {{subtask}}", "the task and the solutions are shown by themselves"],
        ),
        (PIPELINE, ["[agents.a] steps is missing; expected one or more tables [[agents.a.steps]]"]),
        (f"{PIPELINE}steps = []", ["steps holds 0 items; expected 1 to 20"]),
        (f"{PIPELINE}steps = [1]", ["steps holds 1 items; expected 1 to 20 tables"]),
        (f'{PIPELINE}prompt = "x"', ["unknown key 'prompt' for kind = 'pipeline'"]),
        (f'{PIPELINE}[[agents.a.steps]]\nname = "x"', ["[agents.a.steps, step 1] prompt is missing"]),
        (
            f'{PIPELINE}[[agents.a.steps]]\nname = "subtask"\nprompt = "x"',
            ["[agents.a.steps, step 1] name = 'subtask'; expected a name"],
        ),
        (
            f'{PIPELINE}[[agents.a.steps]]\nname = "x"\nprompt = "a"\n[[agents.a.steps]]\nname = "x"\nprompt = "b"',
            ["[agents.a.steps, step 2] name = 'x'"],
        ),
        (
            f'{PIPELINE}[[agents.a.steps]]\nprompt = "{{{{two}}}}"\n[[agents.a.steps]]\nname = "two"\nprompt = "b"',
            ["[agents.a.steps, step 1] prompt holds {{two}}, which is unknown here"],
        ),
        (
            f'{PIPELINE}[[agents.a.steps]]\nprompt = "a"\nsamples = 3',
            ["[agents.a.steps, step 1] unknown key 'samples'"],
        ),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, parts: list[str]) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ct.SpecError) as refused:
        load_agents(file)
    for part in (str(file), *parts):
        assert part in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ct.SpecError, match=r"none\.toml: cannot be read: No such file"):
        load_agents(tmp_path / "none.toml")


def test_a_caller_must_give_what_the_file_declares(tmp_path: Path) -> None:
    spec = declare(tmp_path, of_kind("single", '[agents.mine.parameters]\nstyle = "The style."'))
    schema: dict[str, Any] = spec.input_schema
    assert schema["required"] == ["style"]
    assert spec.validator.check({"subtask": "x"})
    assert not spec.validator.check({"style": "terse"})
