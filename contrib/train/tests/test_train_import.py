"""The module is light, and every public name is there when asked for."""

from __future__ import annotations

import subprocess
import sys

import concertino_train
import pytest
from concertino.plugins import PluginManager
from concertino.testing import check_package
from concertino_train.rewards import PRESETS, TERMS, installed_rewards

LIGHT = """
import sys, concertino_train
loaded = [name for name in sys.modules if name.startswith("concertino_train.")]
assert loaded == [], loaded
assert not {"numpy", "torch", "click", "yaml"} & set(sys.modules)
"""
NO_TORCH = """
import sys
import concertino_train.episodes, concertino_train.rewards, concertino_train.groups, concertino_train.audit
assert not {"torch", "transformers", "trl", "yaml"} & set(sys.modules)
"""


@pytest.mark.parametrize("program", [LIGHT, NO_TORCH], ids=["the package", "its parts"])
def test_importing_imports_nothing_heavy(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", concertino_train.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(concertino_train, name) is not None
    assert name in dir(concertino_train)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'unknown'"):
        _ = concertino_train.unknown


def test_the_hook_offers_all_terms_and_rewards_by_name() -> None:
    found = installed_rewards(PluginManager())
    assert found.terms == TERMS
    assert found.presets == PRESETS


def test_two_rewards_of_one_name_are_said_and_the_first_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    manager = PluginManager(installed=False)
    manager.register(concertino_train, "one")
    manager.register(_again(), "two")
    found = installed_rewards(manager)
    assert found.presets["gap"] is PRESETS["gap"]
    assert "two distributions offer the reward 'gap'" in caplog.text
    assert "expected a subclass of Term" in caplog.text


def _again() -> object:
    from concertino import hookimpl

    class Plugin:
        @hookimpl
        def concertino_rewards(self) -> list[object]:
            return [PRESETS["gap"], "nonsense"]

    return Plugin()


def test_the_distribution_conforms() -> None:
    assert check_package("concertino-train").ok
