"""The plugin manager over healthy plugins: what is found, when it is imported, which members there are."""

from __future__ import annotations

import sys
import types

import pytest
from concertino.core.errors import PluginError, PoolError, UsageError
from concertino.core.settings import Settings
from concertino.members.specs import ToolSpec
from concertino.plugins import PluginManager
from concertino.plugins.hookspecs import hookimpl
from concertino.pool.pool import Pool


def names(manager: PluginManager, *patterns: str) -> list[str]:
    return [spec.name for spec in manager.specs(patterns or None)]


def row(manager: PluginManager, name: str):
    return next(info for info in manager.plugins() if info.name == name)


def test_listing_plugins_reads_metadata_and_imports_none_of_them(install, manager) -> None:
    module = install("alpha", "raise RuntimeError('imported')", version="2.5")
    info = row(manager, "alpha")
    assert (info.state, info.distribution, info.version, info.target) == (
        "installed",
        "acme-alpha",
        "2.5",
        module,
    )
    assert module not in sys.modules


def test_only_the_plugins_that_a_pattern_may_concern_are_imported(install, manager) -> None:
    wanted, unwanted = install("alpha"), install("beta")
    assert names(manager, "alpha/*") == ["alpha/echo"]
    assert names(manager, "alp*") == ["alpha/echo"]
    assert wanted in sys.modules
    assert unwanted not in sys.modules
    assert row(manager, "beta").state == "installed"


def test_an_installed_pool_imports_nothing_until_its_members_are_asked_for(install, manager) -> None:
    module = install("alpha")
    pool = Pool.installed("alpha/*", manager=manager)
    assert module not in sys.modules
    assert [member.name for member in pool.members] == ["alpha/echo"]


@pytest.mark.parametrize("pattern", ["echo", "*/echo", "*", "alpha/ec?o"])
def test_patterns_without_a_provider_are_asked_of_everybody(install, manager, pattern) -> None:
    install("alpha")
    install("beta", "@hookimpl\ndef concertino_tools(): return [tool('other')]")
    assert "alpha/echo" in names(manager, pattern)


def test_members_come_by_provider_and_then_in_the_order_of_the_plugin(install, manager) -> None:
    install("beta", "@hookimpl\ndef concertino_tools(): return [tool('z'), tool('beta/a')]")
    install("alpha")
    assert names(manager, "beta/*") == ["beta/z", "beta/a"]
    assert names(manager) == ["alpha/echo", "beta/z", "beta/a"]


def test_tools_agents_and_models_of_one_plugin_are_all_members(install, manager) -> None:
    install(
        "alpha",
        """
        @hookimpl
        def concertino_models(): return [specs.ModelSpec("small", Model)]
        @hookimpl
        def concertino_agents(): return [specs.AgentSpec("solve", "Solves.", {"type": "object"}, print)]
        @hookimpl
        def concertino_tools(): return (tool("count"),)
        """,
    )
    info = manager.load("alpha")
    assert info.state == "loaded"
    assert info.members == ("alpha/count", "alpha/solve", "alpha/small")
    assert info.hooks == ("concertino_agents", "concertino_models", "concertino_tools")
    assert info.import_seconds is not None
    assert [spec.kind for spec in manager.specs()] == ["tool", "agent", "model"]


def test_an_entry_point_may_name_an_object_in_a_module(install, manager) -> None:
    install(
        "alpha",
        """
        class Plugin:
            @hookimpl
            def concertino_tools(self): return [tool("echo")]
        plugin = Plugin()
        """,
        target="acme_alpha:plugin",
    )
    assert names(manager) == ["alpha/echo"]


def test_list_hooks_are_called_once(install, manager) -> None:
    module = install(
        "alpha",
        """
        calls = []
        @hookimpl
        def concertino_tools():
            calls.append("tools")
            return []
        @hookimpl
        def concertino_tasks():
            calls.append("tasks")
            return ["a task"]
        """,
    )
    for _ in range(3):
        manager.specs()
        assert manager.named("concertino_tasks") == ["a task"]
    assert sys.modules[module].calls == ["tools", "tasks"]


def test_an_unknown_provider_or_member_is_answered_with_near_names(install, manager) -> None:
    install("alpha")
    with pytest.raises(PoolError, match="'alhpa'; did you mean 'alpha'"):
        manager.specs(["alhpa/echo"])
    with pytest.raises(PoolError, match="'alpha/ecko'; did you mean 'alpha/echo'"):
        manager.specs(["alpha/ecko"])
    with pytest.raises(PoolError, match=r"nothing|no installed member matches '\*/none'"):
        manager.specs(["*/none"])
    with pytest.raises(PoolError, match="'alhpa'; did you mean 'alpha'"):
        manager.load("alhpa")


def test_a_disabled_plugin_is_not_imported_and_says_which_setting_it_is(install) -> None:
    module = install("alpha")
    install("beta")
    manager = PluginManager(Settings(disable=("alpha",)))
    assert names(manager) == ["beta/echo"]
    assert row(manager, "alpha").state == "disabled"
    with pytest.raises(PluginError, match=r"alpha.*acme-alpha 1\.0.*CONCERTINO_DISABLE"):
        manager.specs(["alpha/*"])
    assert module not in sys.modules


def test_a_restriction_leaves_only_the_named_plugins(install, monkeypatch) -> None:
    install("alpha")
    install("beta")
    monkeypatch.setenv("CONCERTINO_PLUGINS", "beta")
    manager = PluginManager()
    assert names(manager) == ["beta/echo"]
    assert "CONCERTINO_PLUGINS=beta" in row(manager, "alpha").reason


def test_two_hundred_plugins_are_listed_without_importing_one(install, manager) -> None:
    for number in range(200):
        install(f"dummy{number:03}", "raise RuntimeError")
    listed = [info for info in manager.plugins() if info.name.startswith("dummy")]
    assert len(listed) == 200
    assert {info.version for info in listed} == {"1.0"}
    assert not [module for module in sys.modules if module.startswith("acme_dummy")]


def test_a_distribution_found_twice_on_the_path_counts_once(install, manager, tmp_path, monkeypatch) -> None:
    install("alpha")
    second = tmp_path / "second" / "Acme.Alpha-0.9.dist-info"
    second.mkdir(parents=True)
    (second / "METADATA").write_text("Metadata-Version: 2.1\nName: Acme.Alpha\nVersion: 0.9\n")
    (second / "entry_points.txt").write_text("[concertino]\nalpha = acme_alpha\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(second.parent)])
    assert row(manager, "alpha").version == "1.0"
    assert row(manager, "alpha").state == "installed"


def test_an_object_of_this_process_can_be_registered_as_a_provider() -> None:
    manager = PluginManager(Settings(), installed=False)
    plugin = types.ModuleType("mine")
    plugin.concertino_tools = hookimpl(
        lambda: [ToolSpec("count", "Counts.", {"type": "object"}, print)], specname="concertino_tools"
    )
    info = manager.register(plugin, "mine", "mine-dist", "3.0")
    assert (info.state, info.distribution, info.version) == ("loaded", "mine-dist", "3.0")
    assert names(manager) == ["mine/count"]
    with pytest.raises(PoolError, match=r"'mine' \(mine-dist 3\.0\) is there already"):
        manager.register(plugin, "mine")


def test_strategies_have_their_short_name_where_one_plugin_has_it(install, manager) -> None:
    source = """
        class {first}: name = "shared"
        class {second}: name = "{own}"
        @hookimpl
        def concertino_strategies(): return [{first}, {second}]
        """
    install("alpha", source.format(first="A", second="B", own="mine"))
    install("beta", source.format(first="C", second="D", own="yours"))
    found = {name: cls.__name__ for name, cls in manager.strategies().items()}
    assert found == {
        "alpha/shared": "A",
        "alpha/mine": "B",
        "beta/shared": "C",
        "beta/yours": "D",
        "mine": "B",
        "yours": "D",
    }
    assert "beta" in row(manager, "alpha").reason
    assert row(manager, "alpha").state == "loaded"


def test_commands_of_one_name_from_two_plugins_are_both_left_out(install, manager) -> None:
    source = """
        import click
        @hookimpl
        def concertino_cli(): return [click.Command("{}"), click.Command("same")]
        """
    install("alpha", source.format("one"))
    install("beta", source.format("two"))
    assert [command.name for command in manager.commands()] == ["one", "two"]
    assert "'same'" in row(manager, "beta").reason


def test_a_command_asks_no_plugin_for_its_members(install, manager) -> None:
    source = """
        import click
        asked = []
        @hookimpl
        def concertino_cli(): return [click.Command("one")]
        @hookimpl
        def concertino_tools(): asked.append(1); raise RuntimeError("a server that does not start")
        """
    module = install("alpha", source)
    assert [command.name for command in manager.commands()] == ["one"]
    assert sys.modules[module].asked == []
    assert row(manager, "alpha").state == "loaded"
    with pytest.raises(PluginError, match="a server that does not start"):
        manager.specs(["alpha/*"])


def test_an_unknown_list_hook_is_a_mistake_of_the_caller(manager) -> None:
    with pytest.raises(UsageError, match="did you mean 'concertino_tasks'"):
        manager.named("concertino_task")


async def test_hooks_around_calls_come_in_order_and_get_only_what_they_take(install, manager) -> None:
    install("beta", "@hookimpl\ndef concertino_before_call(call_id): return ['beta', call_id]")
    install("alpha", "@hookimpl(trylast=True)\ndef concertino_before_call(): return ['alpha']")
    install("gamma", "@hookimpl(tryfirst=True)\nasync def concertino_before_call(spec, arguments): return ['gamma']")
    assert manager.before_call_hooks() == []
    manager.specs()
    hooks = manager.before_call_hooks()
    results = [hook(spec=None, arguments={}, call_id="7") for hook in hooks]
    assert await results[0] == ["gamma"]
    assert results[1:] == [["beta", "7"], ["alpha"]]


async def test_an_awaitable_hook_is_awaited_by_the_caller(install, manager) -> None:
    install("alpha", "@hookimpl\nasync def concertino_describe(spec): return f'about {spec}'")
    manager.specs()
    (hook,) = manager.describe_hooks()
    assert await hook(spec="x") == "about x"
