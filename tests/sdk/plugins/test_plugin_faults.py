"""Broken plugins: each fault is a row that says what and where, and every other plugin works."""

from __future__ import annotations

import sys
import textwrap

import pytest
from concertino.core.errors import PluginError, PoolError
from concertino.core.settings import Settings
from concertino.plugins import PluginManager
from concertino.pool.pool import Pool

# What is wrong, and what the row must say of it.
FAULTS = {
    "an import of a missing module": (
        "import acme_missing_dependency",
        ["ModuleNotFoundError: No module named 'acme_missing_dependency'", "acme_bad.py:"],
    ),
    "an error at import": ("def fail():\n    1 / 0\nfail()", ["ZeroDivisionError", "acme_bad.py:12"]),
    "a syntax error": ("def (:", ["SyntaxError", "acme_bad.py:11"]),
    "exit at import": ("import sys; sys.exit(3)", ["SystemExit: 3"]),
    "Ctrl-C raised by the plugin": ("raise KeyboardInterrupt", ["KeyboardInterrupt"]),
    "a pool that is asked for at import": (
        "from concertino.pool.pool import Pool\nPool.installed().members",
        ["PluginError: a plugin asks for plugins while it is being loaded", "acme_bad.py:12"],
    ),
    "an error whose text cannot be shown": (
        "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd",
        ["Odd: its text cannot be shown"],
    ),
    "no hook at all": ("", ["module acme_bad holds no hook", "@concertino.hookimpl"]),
    "a hook without its decorator": (
        "def concertino_tools(): return []",
        ["concertino_tools is not decorated", "@concertino.hookimpl"],
    ),
    "a misspelt hook": (
        "@hookimpl\ndef concertino_toolz(): return []",
        ["concertino_toolz is not a hook", "did you mean concertino_tools?"],
    ),
    "a wrong argument": (
        "@hookimpl\ndef concertino_before_call(spec, args): return None",
        ["concertino_before_call(spec, args)", "never given 'args'", "spec, arguments, call_id"],
    ),
    "a wrapper": (
        "@hookimpl(wrapper=True)\ndef concertino_after_call(spec):\n    return (yield)",
        ["concertino_after_call is a wrapper"],
    ),
    "a hook that returns a dict": (
        "@hookimpl\ndef concertino_tools(): return {'a': 1}",
        ["concertino_tools() returned dict {'a': 1}; expected a list"],
    ),
    "a hook that returns nothing": (
        "@hookimpl\ndef concertino_models(): pass",
        ["concertino_models() returned NoneType None; expected a list"],
    ),
    "a hook that yields for ever": (
        "@hookimpl\ndef concertino_tools():\n    while True: yield tool('x')",
        ["concertino_tools() returned generator", "expected a list"],
    ),
    "an async list hook": (
        "@hookimpl\nasync def concertino_tools(): return []",
        ["concertino_tools is an async function"],
    ),
    "a plain function for a tool": (
        "@hookimpl\ndef concertino_tools(): return [tool('a'), len]",
        ["concertino_tools()[1] is builtin_function_or_method", "expected ToolSpec, made with @concertino.tool"],
    ),
    "a tool for an agent": (
        "@hookimpl\ndef concertino_agents(): return [tool('a')]",
        ["concertino_agents()[0] is ToolSpec", "expected AgentSpec"],
    ),
    "a hook that raises": (
        "@hookimpl\ndef concertino_tools():\n    raise KeyError('tools')",
        ["KeyError: 'tools'", "acme_bad.py:13"],
    ),
    "a hook that exits": ("@hookimpl\ndef concertino_tools(): exit(1)", ["SystemExit: 1"]),
    "the name of another provider": (
        "@hookimpl\ndef concertino_tools(): return [tool('good/echo')]",
        ["'good/echo'", "'good' is another provider", "'bad/echo'"],
    ),
    "one name twice": (
        "@hookimpl\ndef concertino_tools(): return [tool('a'), tool('bad/a')]",
        ["publishes 'bad/a' twice"],
    ),
    "a schema that is refused": (
        "@hookimpl\ndef concertino_tools():\n"
        "    return [specs.ToolSpec('a', 'A.', {'type': 'object', 'properties': {'x': {'type': 'strnig'}}}, print)]",
        ["SpecError: tool 'bad/a': its input_schema was refused"],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_plugin_is_a_row_with_its_reason_and_the_others_work(install, manager, fault) -> None:
    source, expected = FAULTS[fault]
    install("good")
    install("bad", source)
    install("zeta")
    assert [spec.name for spec in manager.specs()] == ["good/echo", "zeta/echo"]
    row = manager.load("bad")
    assert row.state == "failed"
    for part in expected:
        assert part in row.reason
    assert (row.distribution, row.version, row.members) == ("acme-bad", "1.0", ())
    with pytest.raises(PluginError) as raised:
        manager.specs(["bad/*"])
    assert row.reason in str(raised.value)
    assert "acme-bad 1.0" in str(raised.value)
    assert "concertino doctor" in str(raised.value)


@pytest.mark.parametrize("place", ["at import", "in a hook"])
def test_a_plugin_that_never_ends_costs_its_time_limit_and_no_more(install, endless, place) -> None:
    install("good")
    in_a_hook = "@hookimpl\ndef concertino_tools():\n" + textwrap.indent(endless, "    ")
    install("bad", endless if place == "at import" else in_a_hook)
    manager = PluginManager(Settings(), seconds=0.3)
    assert [spec.name for spec in manager.specs()] == ["good/echo"]
    assert "took longer than 0.3 s" in manager.load("bad").reason


def test_ctrl_c_of_the_user_passes_while_a_plugin_is_imported(install, endless) -> None:
    press = "import signal, threading\nsignal.pthread_kill(threading.main_thread().ident, signal.SIGINT)\n"
    install("slow", press + endless)
    manager = PluginManager(Settings(), seconds=20)
    with pytest.raises(KeyboardInterrupt):
        manager.specs(["slow/*"])


def test_two_distributions_with_one_provider_name_are_one_row_that_names_both(install, manager) -> None:
    first = install("words", distribution="acme-words")
    second = install("words", distribution="acme-vocabulary", version="2.0")
    install("good")
    assert [spec.name for spec in manager.specs()] == ["good/echo"]
    row = next(info for info in manager.plugins() if info.name == "words")
    assert row.state == "clash"
    assert "acme-vocabulary 2.0 and acme-words 1.0" in row.reason
    with pytest.raises(PoolError, match=r"acme-vocabulary 2\.0 and acme-words 1\.0"):
        manager.specs(["words/echo"])
    assert not {first, second} & set(sys.modules)


def test_a_short_name_that_only_a_broken_plugin_may_have_says_who_was_left_out(install, manager) -> None:
    install("bad", "raise ValueError")
    install("good")
    with pytest.raises(PoolError, match=r"no installed member matches 'search'.*left out as broken: bad"):
        manager.specs(["search"])


def test_damaged_entry_points_hide_no_other_plugin(install, manager, tmp_path) -> None:
    install("good")
    install("bad")
    (tmp_path / "site" / "acme_bad-1.0.dist-info" / "entry_points.txt").write_text("[concertino]\nno equals sign\n")
    binary = tmp_path / "site" / "acme_binary-1.0.dist-info"
    binary.mkdir()
    (binary / "entry_points.txt").write_bytes(b"\xff\xfe\x00[concertino]")
    assert [spec.name for spec in manager.specs()] == ["good/echo"]
    row = next(info for info in manager.plugins() if info.distribution == "acme-bad")
    assert row.state == "failed"
    assert "entry_points.txt" in row.reason


def test_an_entry_point_with_an_impossible_name_is_failed(install, manager) -> None:
    install("two words", distribution="acme-two")
    row = next(info for info in manager.plugins() if info.distribution == "acme-two")
    assert row.state == "failed"
    assert "'two words'" in row.reason


def test_a_fault_in_a_later_hook_takes_the_plugin_out(install, manager) -> None:
    install(
        "bad",
        """
        @hookimpl
        def concertino_tools(): return [tool("echo")]
        @hookimpl
        def concertino_before_call(): return 1
        @hookimpl
        def concertino_strategies(): return ["serial"]
        """,
    )
    install("good")
    assert [spec.name for spec in manager.specs()] == ["bad/echo", "good/echo"], manager.plugins()
    assert manager.strategies() == {}
    assert "concertino_strategies()[0] is str 'serial'" in manager.load("bad").reason
    assert [spec.name for spec in manager.specs()] == ["good/echo"]
    assert manager.before_call_hooks() == []


async def test_a_hook_that_raises_during_a_call_is_attributed_to_its_plugin(install, manager) -> None:
    install(
        "bad",
        """
        @hookimpl
        def concertino_after_call(spec): raise ValueError("no such spec")
        @hookimpl
        async def concertino_describe(): raise SystemExit(2)
        """,
    )
    manager.specs()
    with pytest.raises(
        PluginError, match=r"'bad' \(acme-bad 1\.0\): concertino_after_call raised ValueError.*acme_bad"
    ):
        manager.after_call_hooks()[0](spec=None, observation=None)
    with pytest.raises(PluginError, match="concertino_describe raised SystemExit: 2"):
        await manager.describe_hooks()[0](spec=None)


def test_a_refusal_before_a_call_passes_as_it_is(install, manager) -> None:
    install("guard", "@hookimpl\ndef concertino_before_call(): raise PermissionError('not today')")
    manager.specs()
    with pytest.raises(PermissionError, match="not today"):
        manager.before_call_hooks()[0](spec=None, arguments={}, call_id="1")


def test_a_pool_of_everything_installed_leaves_a_broken_plugin_out(install, manager) -> None:
    install("bad", "raise ValueError")
    install("good")
    assert [member.name for member in Pool.installed(manager=manager).members] == ["good/echo"]
