"""What messages say of missing packages: every provider of the tree, its extra, and the key of its preset."""

from __future__ import annotations

import importlib
import re
import tomllib
from typing import Any

import pytest
from concertino.cli.group import OF_PLUGINS
from concertino.core.services import LOCAL_SERVERS, SERVICE_KEYS
from concertino.plugins.packages import _KEYS, install_provider
from concertino_openai.dialects import PRESETS
from concertino_openai.services import Service
from tree import ROOT


def project(path: str) -> Any:
    return tomllib.loads((ROOT / path / "pyproject.toml").read_text())["project"]


EXTRAS = project(".")["optional-dependencies"]
SERVICES = project("providers/openai")["entry-points"]["concertino"]


@pytest.mark.parametrize("name", sorted(_KEYS))
def test_the_extra_that_a_message_names_exists_and_brings_a_package_of_the_tree(name: str) -> None:
    extra = name.replace(".", "-")
    assert f"pip install 'concertino[{extra}]'" in install_provider(name)
    (requirement,) = EXTRAS[extra]
    package = requirement.split(">")[0].removeprefix("concertino-")
    assert (ROOT / "providers" / package).is_dir()
    assert package == name or name in SERVICES


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_the_message_of_a_service_names_the_key_and_the_variables_of_its_preset(name: str) -> None:
    from concertino_openai.options import PLACEHOLDER

    preset = PRESETS[name]
    for variable in filter(None, [preset.key_env, *PLACEHOLDER.findall(preset.base_url)]):
        assert variable in install_provider(name)


def test_the_key_of_anthropic_is_that_of_its_package() -> None:
    from concertino_anthropic.options import KEY_ENV

    assert SERVICE_KEYS["anthropic"] == (KEY_ENV,)
    assert KEY_ENV in install_provider("anthropic")


@pytest.mark.parametrize("name", sorted({*SERVICE_KEYS} - {"anthropic"}))
def test_the_variables_of_a_service_are_those_of_its_preset(name: str) -> None:
    from concertino_openai.options import PLACEHOLDER

    preset = PRESETS[name]
    assert (preset.key_env, *PLACEHOLDER.findall(preset.base_url)) == SERVICE_KEYS[name]


@pytest.mark.parametrize("name", sorted(LOCAL_SERVERS))
def test_the_address_of_a_local_server_is_that_of_its_preset(name: str) -> None:
    assert (PRESETS[name].base_url, PRESETS[name].key_env) == (LOCAL_SERVERS[name], "")


@pytest.mark.parametrize("name", sorted(OF_PLUGINS))
def test_the_help_of_a_command_of_a_member_is_what_the_member_says(name: str) -> None:
    module = importlib.import_module(OF_PLUGINS[name].module)
    command = next(command for command in module.concertino_cli() if command.name == name)
    # The table leaves words out where the sentence explains an argument; it has no others.
    assert set(_words(OF_PLUGINS[name].help)) <= set(_words(command.help.partition("\n\n")[0]))


def _words(text: str) -> list[str]:
    return re.findall(r"[\w.-]+\w", text)


def test_every_entry_point_of_a_service_is_the_service_of_that_name() -> None:
    from concertino_openai import services

    for name, target in SERVICES.items():
        if ":" in target:
            found = getattr(services, target.partition(":")[2])
            assert isinstance(found, Service)
            assert found.name == name
