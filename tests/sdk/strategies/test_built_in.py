"""The strategies that come with the SDK are found by name."""

import concertino as ct
import pytest
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
