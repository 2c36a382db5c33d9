"""The distribution: what it publishes, that it conforms, and that its agents work in a run with other members."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import concertino as ct
import concertino_reasoning
import pytest
from concertino.core.settings import load_settings
from concertino.plugins import PluginManager
from concertino.testing import AgentConformance, ScriptedModel, check_package
from concertino_reasoning import agents, final_answer
from concertino_reasoning.examples import concertino_examples

from .helpers import EACH_AGENT, REQUESTS, ROUND_TRIPS, Worker

EXAMPLE = Path(__file__).parents[1] / "examples" / "agents.toml"
README = Path(__file__).parents[1] / "README.md"
NAMES = [
    "cot",
    "self_consistency",
    "debate",
    "reflexion",
    "standard_reasoner",
    "critical_reviewer",
    "ensemble_solver",
    "conclude",
    "extract",
]


# -- what it publishes -------------------------------------------------------------------------------------------------


def test_the_hook_publishes_every_agent() -> None:
    assert [spec.name for spec in concertino_reasoning.concertino_agents(ct.ProviderSettings())] == NAMES
    assert set(concertino_examples) == set(NAMES)


def test_an_installed_pool_finds_them_by_their_names() -> None:
    pool = ct.Pool.installed("reasoning/*")
    assert [member.name for member in pool.members] == [f"reasoning/{name}" for name in NAMES]


def test_importing_the_plugin_imports_nothing_heavy() -> None:
    code = "import sys, concertino_reasoning; print(*{'aiohttp', 'numpy', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def test_the_readme_tells_parameters_units_and_requests_as_they_are() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    told = {row[0].strip("`"): row for row in rows if len(row) == 8}
    assert list(told) == NAMES
    for name, (_, parameters, _, asks, requests, trips, units, _) in told.items():
        spec = EACH_AGENT[name]
        assert re.findall(r"`(\w+)`", parameters) == list(spec.input_schema["properties"])
        assert re.findall(r"\*\*`(\w+)`\*\*", parameters) == spec.input_schema.get("required", [])
        assert re.findall(r"`(\w+)`", asks) == list(spec.models)
        assert float(units) == spec.cost.units
        most = {"debate": "5 × roles + 1", "reflexion": "2 to 11", "ensemble_solver": "4, or 5"}
        assert requests == most.get(name, str(REQUESTS[name]))
        assert trips.split(" to ")[-1] == ("1, or 2" if name == "ensemble_solver" else str(ROUND_TRIPS[name]))


def test_the_readme_declares_agents_that_load(tmp_path: Path) -> None:
    text = README.read_text(encoding="utf-8").partition("```toml\n[agents.")[2].partition("```")[0]
    file = tmp_path / "agents.toml"
    file.write_text(f"[agents.{text}", encoding="utf-8")
    assert [spec.name for spec in concertino_reasoning.load_agents(file)] == ["straw_poll", "two_drafts"]


def test_every_public_name_is_there() -> None:
    for name in concertino_reasoning.__all__:
        assert getattr(concertino_reasoning, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        concertino_reasoning.nothing  # noqa: B018


def test_the_agents_of_a_file_are_published_beside_the_others(tmp_path: Path) -> None:
    file = tmp_path / "pool.toml"
    file.write_text(f'members = ["reasoning/*"]\n[providers.reasoning]\nagents = "{EXAMPLE}"\n')
    names = [spec.name for spec in ct.Pool.load(file).members]
    assert names == [
        f"reasoning/{name}" for name in [*NAMES, "plain_words", "straw_poll", "proof_reader", "two_drafts"]
    ]


def test_a_wrong_file_is_a_broken_plugin_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    file.write_text("[agents.mine]\nkind = 'singel'\n")
    settings = ct.ProviderSettings({"agents": file.name}, where="pool.toml: providers.reasoning", folder=tmp_path)
    info = PluginManager(replace(load_settings({}), providers={"reasoning": settings})).load("reasoning")
    assert info.state == "failed"
    assert "pool.toml: providers.reasoning: " in info.reason
    assert str(file) in info.reason
    assert "did you mean 'single'?" in info.reason


def test_a_pool_of_everything_can_be_led_in_rounds() -> None:
    pool = ct.Pool.installed("reasoning/*")
    assert "final_answer" not in [visible for visible, _ in pool.actions]
    run = ct.Orchestrator(ScriptedModel([("final_answer", {})], "<answer>1</answer>")).run_sync("?", pool=pool)
    assert run.answer == "1"


def test_the_agent_final_answer_clashes_with_rounds_unless_it_has_an_alias() -> None:
    assert (final_answer.name, final_answer.cost, final_answer.models) == (
        "final_answer",
        ct.Cost(units=1),
        ("summariser",),
    )
    pool = ct.Pool.of(final_answer)
    with pytest.raises(ct.UsageError, match="give it an alias"):
        ct.Orchestrator(ScriptedModel("<answer>1</answer>")).run_sync("?", pool=pool)
    model = ScriptedModel("<answer>1</answer>")
    assert ct.Orchestrator(model).run_sync("?", pool=pool.alias({"final_answer": "draft_answer"})).answer == "1"


# -- conformance -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_installed_package_conforms() -> None:
    report = check_package("concertino-reasoning")
    failed = [row for row in report.rows if not row.ok and row.check != "importing_its_module_is_quick"]
    assert failed == []
    assert {row.subject for row in report.rows} >= {f"reasoning/{name}" for name in NAMES}


class _Conforming(AgentConformance):
    """What every agent here gives: a model that always answers 42, and waits where it is told to."""

    name: ClassVar[str]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        known = concertino_examples[cls.name]
        cls.spec = EACH_AGENT[cls.name]
        cls.examples, cls.rejected = known["examples"], known["rejected"]
        cls.failing, cls.slow = known["failing"], known.get("slow")
        cls.question = known.get("question", "")

    def make_pool(self) -> ct.Pool:
        return concertino_reasoning.examples.make_pool()

    def make_models(self) -> Mapping[str, ct.Model]:
        return {"default": Worker(seconds=0)}


class TestCot(_Conforming):
    name = "cot"


class TestSelfConsistency(_Conforming):
    name = "self_consistency"


class TestDebate(_Conforming):
    name = "debate"


class TestReflexion(_Conforming):
    name = "reflexion"


class TestStandardReasoner(_Conforming):
    name = "standard_reasoner"


class TestCriticalReviewer(_Conforming):
    name = "critical_reviewer"


class TestEnsembleSolver(_Conforming):
    name = "ensemble_solver"


class TestConclude(_Conforming):
    name = "conclude"


class TestExtract(_Conforming):
    name = "extract"


# -- a run with simulated models ---------------------------------------------------------------------------------------


async def test_every_agent_works_in_a_run_with_simulated_models() -> None:
    models = pytest.importorskip(
        "concertino_toy.simulated.models", reason="concertino-toy is not installed; `make setup` adds it"
    )
    writer = pytest.importorskip("concertino_toy.problems.writer")
    question, [answer] = writer.make_question(Random(3), 1, depth=4)
    specs = [spec.with_(name=f"toy/{spec.name}") for spec in models.solver_specs()]
    pool = ct.Pool.of(*agents.AGENTS, *specs, default="toy/sage")
    debate = {"subtask": question, "roles": ["accountant", "sceptic"]}
    rounds = [
        [("cot", {"subtask": question}), ("self_consistency", {}), ("ensemble_solver", {}), ("standard_reasoner", {})],
        [
            ("debate", debate),
            ("reflexion", {"model": "steady"}),
            ("critical_reviewer", {}),
            ("cot", {"model": "stedy"}),
        ],
        [("conclude", {}), ("extract", {"text": f"So it is.\nAnswer: {answer}"})],
        [("final_answer", {})],
    ]
    with ScriptedModel(*rounds, f"<answer>\\boxed{{{answer}}}</answer>") as leader:
        run = await ct.Orchestrator(leader).run(question, pool=pool)
    assert run.answer == f"\\boxed{{{answer}}}"
    made = [(seen.name, seen) for done in run.rounds for seen in done.observations]
    *others, wrong = [seen for name, seen in made if seen.error is not None] or [None]
    assert others == []
    assert wrong is not None
    assert "model: the pool has no 'stedy'; did you mean steady?" in str(wrong.error and wrong.error.message)
    right = {name for name, seen in made if f"\\boxed{{{answer}}}" in str(seen.content)}
    assert right >= {
        "cot",
        "self_consistency",
        "ensemble_solver",
        "standard_reasoner",
        "debate",
        "reflexion",
        "extract",
    }
    assert run.usage.units == 1 + 5 + 4 + 1 + 7 + 2 + 1 + 1 + 1 + 1
