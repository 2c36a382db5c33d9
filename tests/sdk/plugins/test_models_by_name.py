"""A model that nobody declared is named `provider/name` wherever a model goes."""

from __future__ import annotations

from typing import Any

import concertino as ct
import pytest
from concertino.plugins.manager import PluginManager
from concertino.testing import ScriptedModel


class Maker:
    """A provider that makes a model of any name but `none`."""

    @ct.hookimpl
    def concertino_models(self) -> list[ct.ModelSpec]:
        return [ct.ModelSpec("listed", lambda: ScriptedModel("<answer>listed</answer>", strict=False))]

    @ct.hookimpl
    def concertino_declare_model(self, name: str, options: dict[str, Any]) -> ct.ModelSpec:
        if name == "none":
            raise ct.SpecError("no model is called none")
        return ct.ModelSpec(name, lambda: ScriptedModel(f"<answer>{name}</answer>", strict=False))


@ct.tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> PluginManager:
    manager = PluginManager(installed=False)
    manager.register(Maker(), "maker")
    monkeypatch.setattr("concertino.plugins.manager.default_manager", lambda: manager)
    return manager


@pytest.mark.parametrize("name", ["maker/listed", "maker/new", "maker/org/model-7b:free", "maker/maker/auto"])
def test_an_orchestrator_is_led_by_a_model_that_is_in_no_pool(maker: PluginManager, name: str) -> None:
    run = ct.Orchestrator(name).run_sync("q", pool=ct.Pool.of(add))
    assert run.answer == name.removeprefix("maker/")


def test_roles_offers_and_patterns_take_such_names(maker: PluginManager) -> None:
    pool = ct.Pool.of(add, worker="maker/org/w:1")
    assert pool.model("worker").name == "maker/org/w:1"
    assert pool.model("worker").short_name == "org/w:1"
    bound = pool.bind(orchestrator="maker/lead").offering("maker/extra")
    assert [model.name for model in bound.models] == ["maker/org/w:1", "maker/lead", "maker/extra"]
    assert "ask_extra" in bound.visible_names.values()
    installed = ct.Pool.installed("maker/listed", "maker/by-pattern", manager=maker)
    assert [model.name for model in installed.models] == ["maker/listed", "maker/by-pattern"]
    assert ct.Pool.installed(manager=maker).bind(x="maker/late").model("x").name == "maker/late"


def test_the_same_name_gives_the_same_model_so_that_it_is_opened_once(maker: PluginManager) -> None:
    one, two = ct.Pool.of(add, worker="maker/w"), ct.Pool.of(worker="maker/w")
    assert one.model("worker") is two.model("worker")


def test_a_pool_file_names_such_models_in_roles(maker: PluginManager, tmp_path: Any) -> None:
    path = tmp_path / "pool.toml"
    path.write_text('members = []\n[roles]\nworker = "maker/org/w:1"\nold = "maker:w2"\n')
    pool = ct.Pool.load(path, manager=maker)
    assert pool.roles == {"worker": "maker/org/w:1", "old": "maker/w2"}
    pool.save(tmp_path / "again.toml")
    assert ct.Pool.load(tmp_path / "again.toml", manager=maker) == pool


def test_a_model_that_a_role_needs_is_not_made_again_after_it_was_left_out(maker: PluginManager) -> None:
    with pytest.raises(ct.PoolError, match="role 'worker'"):
        ct.Pool.of(add, worker="maker/w").without("maker/w")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("maker/none", "no model is called none"),
        ("makr/x", "no installed provider is called 'makr'; did you mean 'maker'?"),
        ("groq/x", r"install it: pip install 'concertino\[groq\]', and set GROQ_API_KEY"),
        ("llama.cpp/x", r"install it: pip install 'concertino\[llama-cpp\]'"),
    ],
)
def test_what_is_missing_is_named_with_the_next_step(maker: PluginManager, name: str, said: str) -> None:
    with pytest.raises(ct.PoolError, match=said):
        ct.Orchestrator(name).run_sync("q", pool=ct.Pool.of(add))
    with pytest.raises(ct.PoolError, match=f"role 'worker': .*{said}"):
        ct.Pool.of(add, worker=name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gpt-5", "give the name in full, 'provider/name', such as 'openai/gpt-5'"),
        ("", "give the name in full, 'provider/name', such as 'openai/gpt-5.4-mini'"),
        ("openai:gpt-5", "write 'openai/gpt-5'"),
        ("critic", r"bind it with pool.bind\(critic='provider/model'\)"),
    ],
)
def test_a_name_that_no_model_has_comes_with_one_that_works(maker: PluginManager, name: str, said: str) -> None:
    with pytest.raises(ct.PoolError, match=f"no model or role {name!r}; there are none; {said}$"):
        ct.Orchestrator(name).run_sync("q")


@pytest.mark.parametrize("name", ["gpt-5", "openai:gpt-5", "gpt-5.4-mini", "maker/x"])
def test_a_name_that_can_be_no_role_never_leads_to_another_model(maker: PluginManager, name: str) -> None:
    pool = ct.Pool.of(add, default="maker/w")
    with pytest.raises(ct.PoolError, match=f"no model or role {name!r}; there are maker/w, default; "):
        pool.model(name)
    assert pool.model("critic").name == "maker/w"


def test_an_agent_that_asks_a_model_of_no_pool_reads_where_to_name_it(maker: PluginManager) -> None:
    pool = ct.Pool.of(worker="maker/w")
    said = r"pool.bind\(worker='maker/x'\); an agent names it in models=\('maker/x',\)"
    with pytest.raises(ct.PoolError, match=said):
        pool.model("maker/x")


def test_a_model_of_no_pool_is_priced_by_its_full_name_so_that_a_budget_in_usd_holds(maker: PluginManager) -> None:
    budget, leader = ct.Budget(usd=1), ct.Orchestrator("maker/new")
    with pytest.raises(ct.BudgetError, match="the price of maker/new is unknown") as caught:
        leader.run_sync("q", pool=ct.Pool.of(add), budget=budget)
    assert "pool.price(" in str(caught.value)
    pool = ct.Pool.of(add).price({"maker/new": ct.Prices(input=1, output=2)})
    assert leader.run_sync("q", pool=pool, budget=budget).answer == "new"
    with pytest.raises(ct.PoolError, match=r"price: the pool has no model 'makr/x'.*did you mean 'maker'"):
        pool.price({"makr/x": ct.Prices(input=1, output=2)})


def test_a_pool_file_prices_a_model_that_may_lead_though_it_is_no_member(maker: PluginManager, tmp_path: Any) -> None:
    path = tmp_path / "pool.toml"
    path.write_text('[prices."maker/new"]\ninput = 1\noutput = 2\n', encoding="utf-8")
    pool = ct.Pool.load(path)
    assert pool.model("maker/new").prices == ct.Prices(input=1, output=2)
    path.write_text('[prices."nobody/new"]\ninput = 1\noutput = 2\n', encoding="utf-8")
    with pytest.raises(ct.PoolError, match="no installed provider is called 'nobody'"):
        ct.Pool.load(path)
