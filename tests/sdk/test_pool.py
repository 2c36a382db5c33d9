"""The pool is a value: filtered, bound, replaced, hashed, compared and sampled without changing the one at hand."""

import hashlib
import json
import random
import subprocess
import sys
from typing import Any

import concertino as ct
import pytest


def make(name: str, **options: object) -> ct.ToolSpec:
    async def run(x: int) -> int:
        return x

    return ct.tool(name=name, description=f"Does {name}.", **options)(run)  # type: ignore[arg-type]


def model(name: str, **options: object) -> ct.ModelSpec:
    return ct.ModelSpec(name, ct.Model, **options)  # type: ignore[arg-type]


POOL = ct.Pool(
    [make("a/search"), make("b/search"), make("a/sum"), model("m/small"), model("m/large")],
    roles={"worker": "m/small"},
)


def test_members_keep_their_order_and_short_names_are_visible_where_they_are_unique() -> None:
    assert [member.visible_name for member in POOL.actions] == ["a__search", "b__search", "sum"]


@pytest.mark.parametrize(("name", "found"), [("sum", "a/sum"), ("a/sum", "a/sum"), ("a__search", "a/search")])
def test_a_member_is_found_by_visible_full_or_unique_short_name(name: str, found: str) -> None:
    spec = POOL.find(name)
    assert spec is not None
    assert spec.name == found


def test_a_pool_is_gone_through_member_by_member_and_holds_each_by_itself_and_by_name() -> None:
    assert list(POOL) == [POOL[name] for name in ("a/search", "b/search", "a/sum", "m/small", "m/large")]
    assert len(list(POOL)) == len(POOL)
    assert all(member in POOL and member.name in POOL for member in POOL)
    assert make("a/search") not in POOL
    assert "sum" not in POOL


def test_an_ambiguous_short_name_finds_nothing() -> None:
    assert POOL.find("search") is None


def test_only_keeps_what_matches_and_the_models_of_roles() -> None:
    assert [m.name for m in POOL.only("a/*").members] == ["a/search", "a/sum", "m/small"]


def test_without_leaves_out_what_matches() -> None:
    assert [m.name for m in POOL.without("b/*", "m/large").members] == ["a/search", "a/sum", "m/small"]


def test_members_can_be_arranged_for_a_question_and_the_others_are_left_out() -> None:
    arranged = POOL.alias({"a/sum": "plus"}).arranged(["plus", "a/search"])
    assert [name for name, _ in arranged.actions] == ["plus", "search"]
    assert arranged.roles == POOL.roles
    assert {model.name for model in arranged.models} == {model.name for model in POOL.models}
    assert POOL.arranged([]).actions == ()
    for wrong in (["a/sum", "a/sum"], ["m/small"]):
        with pytest.raises(ct.PoolError, match="is a model or stands twice; name each member once"):
            POOL.arranged(wrong)
    with pytest.raises(ct.PoolError, match="did you mean 'a/search'"):
        POOL.arranged(["a/serch"])


def test_a_card_is_what_the_orchestrator_reads() -> None:
    pool = POOL.offering("m/small").describe({"m/small": "Quick."})
    assert [pool.card(spec) for _, spec in pool.actions] == [
        tool["function"]["description"] for tool in pool.to_openai()
    ]
    assert "Quick." in pool.card(pool.actions[-1].spec)


def test_a_pattern_that_matches_nothing_names_near_members() -> None:
    with pytest.raises(ct.PoolError, match=r"no member 'a/serch'; did you mean 'a/search'"):
        POOL.only("a/serch")


def test_two_members_of_one_name_are_refused() -> None:
    with pytest.raises(ct.PoolError, match="two members are called 'a/sum'"):
        ct.Pool.of(make("a/sum"), make("a/sum"))


def test_a_role_needs_a_model_that_is_there() -> None:
    with pytest.raises(ct.PoolError, match=r"role 'worker': the pool has no model 'm/smal'; did you mean 'm/small'"):
        POOL.bind(worker="m/smal")


def test_bind_does_not_change_the_pool_it_is_called_on() -> None:
    bound = POOL.bind(worker="m/large")
    assert (POOL.model("worker").name, bound.model("worker").name) == ("m/small", "m/large")


def test_an_unbound_role_falls_back_to_default() -> None:
    assert POOL.bind(default="m/large").model("critic").name == "m/large"
    with pytest.raises(ct.PoolError, match=r"no model or role 'critic'.*bind it with pool.bind\(critic="):
        POOL.model("critic")


def test_replace_puts_another_member_in_the_same_place_and_roles() -> None:
    swapped = POOL.replace("m/small", model("n/new"))
    assert [m.name for m in swapped.members][3] == "n/new"
    assert swapped.model("worker").name == "n/new"


def test_replace_refuses_another_kind() -> None:
    with pytest.raises(ct.PoolError, match="is a model; it cannot be replaced by the tool"):
        POOL.replace("m/small", make("a/other"))


def test_equal_pools_have_equal_ids_also_in_another_process() -> None:
    program = (
        "import concertino as ct\n"
        "async def run(x: int) -> int: return x\n"
        "spec = ct.tool(name='a/sum', description='Does a/sum.')(run)\n"
        "print(ct.Pool.of(spec).id)"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == ct.Pool.of(make("a/sum")).id


def test_pools_are_equal_and_hash_by_what_they_hold() -> None:
    assert ct.Pool.of(make("a/sum")) == ct.Pool.of(make("a/sum"))
    assert len({ct.Pool.of(make("a/sum")), ct.Pool.of(make("a/sum")), POOL}) == 2
    assert POOL.id != POOL.price({"m/small": ct.Prices(1, 2)}).id
    assert POOL.id != POOL.alias({"a/sum": "add_up"}).id


def test_diff_says_what_would_change() -> None:
    other = POOL.without("b/search").adding(make("c/new")).describe({"a/sum": "Adds up."}).bind(worker="m/large")
    diff = POOL.diff(other)
    assert (diff.added, diff.removed, diff.changed) == (("c/new",), ("b/search",), ("a/sum",))
    assert diff.rebound == ("worker: m/small -> m/large",)
    assert not POOL.diff(POOL)
    assert str(diff) == "+ c/new\n- b/search\n~ a/sum\n@ worker: m/small -> m/large"


def test_an_alias_is_what_the_orchestrator_sees_and_may_call() -> None:
    pool = POOL.alias({"a/sum": "tool_7"})
    found = pool.find("tool_7")
    assert found is not None
    assert found.name == "a/sum"
    assert pool.to_openai()[2]["function"]["name"] == "tool_7"


def test_an_alias_of_an_unknown_member_is_refused_with_a_near_name() -> None:
    with pytest.raises(ct.PoolError, match=r"'a/sun'.*did you mean 'a/sum'"):
        POOL.alias({"a/sun": "plus"})


def test_a_price_that_is_none_is_refused_with_what_was_expected() -> None:
    table: Any = {"input": 1, "output": 2}
    with pytest.raises(ct.PoolError, match=r"price of 'm/small' = .*expected Prices\(input="):
        POOL.price({"m/small": table})


def test_two_equal_aliases_are_refused() -> None:
    with pytest.raises(ct.PoolError, match="would both be visible as 'same'"):
        POOL.alias({"a/sum": "same", "a/search": "same"}).actions  # noqa: B018


def test_the_rendering_is_openai_function_objects() -> None:
    rendered = POOL.to_openai()
    assert [entry["type"] for entry in rendered] == ["function"] * 3
    assert set(rendered[0]["function"]) == {"name", "description", "parameters"}
    json.dumps(rendered)


def test_context_tokens_are_counted_per_member_and_in_total() -> None:
    cost = POOL.count_context(len)
    assert set(cost.by_member) == {"a__search", "b__search", "sum"}
    assert cost.total == sum(cost.by_member.values())


def test_sampling_is_determined_by_the_random_state() -> None:
    def draw(seed: int) -> ct.Pool:
        schedules = [{"m/small": ct.Prices(1, 2)}, {"m/small": ct.Prices(3, 4)}]
        return POOL.sample(random.Random(seed), keep=0.5, rename=0.5, prices=schedules)

    assert draw(3) == draw(3)
    assert len({draw(seed).id for seed in range(30)}) > 5


def test_sampling_keeps_what_must_stay_and_at_least_one_member() -> None:
    for seed in range(50):
        kept = POOL.sample(random.Random(seed), keep=0.0, always=["a/sum"])
        assert [spec.name for _, spec in kept.actions] == ["a/sum"]
        assert len(POOL.sample(random.Random(seed), keep=0.0).actions) == 1


def test_something_that_is_no_spec_is_refused() -> None:
    with pytest.raises(ct.PoolError, match=r"a pool holds tools, agents and models; got .*print"):
        ct.Pool([print])  # type: ignore[list-item]


def test_adjust_changes_options_of_every_member_that_matches() -> None:
    adjusted = POOL.adjust("a/*", isolation="thread", timeout=5)
    changed = [m.name for m in adjusted.members if isinstance(m, ct.ToolSpec) and m.isolation == "thread"]
    assert changed == ["a/search", "a/sum"]
    with pytest.raises(ct.SpecError, match="isolation='moon'"):
        POOL.adjust("a/*", isolation="moon")


def test_the_id_is_the_hash_of_the_whole_pool_as_json() -> None:
    pool = ct.Pool.of(make("search"), ct.ModelSpec("m", ct.Model, "é"), worker="m").alias({"search": "look"})
    text = json.dumps(pool.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert pool.id == hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize("alias", ["a b", "", "x" * 65, "näme", 3])
def test_an_alias_that_no_model_could_call_is_refused(alias: object) -> None:
    with pytest.raises(ct.PoolError, match="expected letters, digits"):
        POOL.alias({"a/sum": alias})  # type: ignore[dict-item]


def test_an_unbound_role_falls_back_and_a_misspelt_full_name_does_not() -> None:
    pool = POOL.bind(default="m/large")
    assert pool.model("critic").name == "m/large"
    with pytest.raises(ct.PoolError, match="did you mean 'm/small'"):
        pool.model("m/smal")
    with pytest.raises(ct.PoolError, match="'m/other'"):
        ct.Pool.of(model("m/only")).model("m/other")


def test_a_model_that_an_agent_names_in_full_joins_the_pool_with_it() -> None:
    @ct.agent(models=("toy/leader", "worker"))
    async def helper(task: str, ctx: ct.Context) -> str:
        """Helps."""
        return (await ctx.model("toy/leader").chat(task)).text

    boss = ct.Orchestrator("toy/leader").as_agent("boss", "Leads.")
    for pool in (ct.Pool.of(helper), ct.Pool.of(boss), ct.Pool.of().adding(boss), ct.Pool.of(helper, boss)):
        assert [model.name for model in pool.models] == ["toy/leader"]
    said = r"agent 'boss' needs a model: the pool has no model 'toi/leader'.* did you mean 'toy'"
    with pytest.raises(ct.PoolError, match=said):
        ct.Pool.of(ct.Orchestrator("toi/leader").as_agent("boss", "Leads."))


def test_a_role_that_is_no_name_is_refused_with_what_was_expected() -> None:
    wrong: Any = 3
    with pytest.raises(ct.PoolError, match="role 'worker' = 3; expected the name of a model"):
        POOL.bind(worker=wrong)


def test_limits_of_another_type_are_refused() -> None:
    wrong: Any = "many"
    with pytest.raises(ct.UsageError, match=r"Limits\(calls='many'\): expected at least 1"):
        ct.Limits(calls=wrong)
    with pytest.raises(ct.UsageError, match="limits='many': expected Limits, such as"):
        ct.Executor(wrong)
