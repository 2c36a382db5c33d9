"""The strategies that come with the SDK: found by name, imported only when asked for."""

import subprocess
import sys

import concertino as ct
import pytest
from concertino import strategies
from concertino.strategies import BUILT_IN, Strategy, strategy_by_name


def test_each_strategy_is_a_class_of_its_name() -> None:
    assert all(issubclass(kind, Strategy) and kind.name == name for name, kind in BUILT_IN.items())
    assert {"parallel-rounds", "serial-calls", "agent-graph", "dependency-plan", "role-workflow"} <= set(BUILT_IN)


def test_every_strategy_has_settings_that_work_by_default() -> None:
    for kind in BUILT_IN.values():
        assert kind.from_json(kind().to_json()) == kind()


def test_a_strategy_of_a_plugin_comes_first_and_an_unknown_one_is_refused_with_the_known() -> None:
    own = BUILT_IN["serial-calls"]
    assert strategy_by_name("parallel-rounds", {"parallel-rounds": own}) is own
    with pytest.raises(
        ct.UsageError, match=r"there is no strategy 'serial'; .*there are .*role-workflow, serial-calls"
    ):
        strategy_by_name("serial")


def test_asking_for_names_imports_no_paradigm() -> None:
    program = "import sys, concertino.strategies as s\nassert 'serial-calls' in list(s.BUILT_IN)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith("concertino.strategies.")}
    assert {name.rpartition(".")[2] for name in loaded} == {"_machine", "_built_in", "_flaw"}


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Serial'"):
        strategies.Serial  # noqa: B018 - asked for its error
    assert set(strategies.__all__) <= set(dir(strategies))
