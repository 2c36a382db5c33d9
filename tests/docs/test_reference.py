"""The reference is complete: whatever the package has, a page explains, and no page explains what it has not."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import concertino
import pytest
from concertino import CODES, STOP_REASONS, FailureClass
from concertino.cli import command_line
from concertino.core import events
from concertino.core import settings as _settings
from concertino.core.observation import FREE_CODES
from concertino.executor.retry import ATTEMPTS
from concertino.plugins import hookspecs
from concertino.plugins.hooks import HOOK_ARGUMENTS
from concertino.pool import file as _poolfile
from reference_pages import MADE
from tree import ROOT

from .documents import DOCS

REFERENCE = DOCS / "reference"


def sections(page: str, level: int = 2) -> dict[str, str]:
    """The sections of a page by their headings."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    parts = re.split(rf"^{'#' * level} (.+)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(text: str) -> list[list[str]]:
    """The rows of all tables of a text, without headings."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for i, row in enumerate(cells) if not _is_head(cells, i)]


def _is_head(cells: list[list[str]], i: int) -> bool:
    def rule(row: list[str]) -> bool:
        return all(re.fullmatch(r":?-+:?", cell) for cell in row)

    return rule(cells[i]) or (i + 1 < len(cells) and rule(cells[i + 1]))


def names_in(text: str) -> set[str]:
    """The names in the first cells of the tables of a text."""
    return {row[0].strip("`") for row in rows(text)}


# -- hooks -----------------------------------------------------------------------------------------------------


def test_every_hook_is_explained_with_exactly_its_arguments() -> None:
    wanted = {f"`{name}({', '.join(arguments)})`" for name, arguments in HOOK_ARGUMENTS.items()}
    assert set(sections("hooks.md")) == wanted


@pytest.mark.parametrize("hook", HOOK_ARGUMENTS)
def test_a_hook_has_an_example_of_its_own(hook: str) -> None:
    heading = f"`{hook}({', '.join(HOOK_ARGUMENTS[hook])})`"
    assert f'--8<-- "docs/examples/hooks/every_hook.py:{hook}"' in sections("hooks.md")[heading]


def test_the_examples_of_hooks_are_accepted_by_the_plugin_manager() -> None:
    import importlib.util

    from concertino.plugins import PluginManager

    file = DOCS / "examples" / "hooks" / "every_hook.py"
    spec = importlib.util.spec_from_file_location("every_hook", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    row = PluginManager(_settings.Settings(), installed=False).register(module, "every-hook")
    assert (row.state, row.reason) == ("loaded", "")
    assert set(row.hooks) == set(HOOK_ARGUMENTS)


def test_hooks_that_may_return_an_awaitable_say_so() -> None:
    for name, arguments in HOOK_ARGUMENTS.items():
        waits = "Awaitable" in str(inspect.signature(getattr(hookspecs, name)).return_annotation)
        text = " ".join(sections("hooks.md")[f"`{name}({', '.join(arguments)})`"].split())
        assert ("may be a coroutine" in text) == waits, name


# -- pages made from code ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", MADE)
def test_a_page_made_from_code_is_what_the_code_says(page: str) -> None:
    assert (REFERENCE / page).read_text(encoding="utf-8") == MADE[page](), "run: make reference"


# -- command line ----------------------------------------------------------------------------------------------


def commands(group: click.Group = command_line, path: str = "concertino") -> Iterator[tuple[str, click.Command]]:
    """Every command with its words."""
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, f"{path} {name} is in the table and cannot be imported"
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


def test_every_command_has_a_section() -> None:
    assert set(sections("cli.md")) >= {f"`{path}`" for path, _ in commands()}


def test_no_section_is_about_a_command_that_is_not_there() -> None:
    documented = {heading for heading in sections("cli.md") if heading.startswith("`")}
    assert documented == {f"`{path}`" for path, _ in commands()}


@pytest.mark.parametrize(("path", "command"), [*commands()], ids=lambda value: value if isinstance(value, str) else "")
def test_every_option_of_a_command_is_explained(path: str, command: click.Command) -> None:
    common = {"--json", "--debug", "--help"}
    options = {
        opts
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for opts in [*parameter.opts, *parameter.secondary_opts]
        if opts not in common
    }
    arguments = {
        (parameter.metavar or parameter.name or "").upper()
        for parameter in command.params
        if isinstance(parameter, click.Argument)
    }
    section = sections("cli.md")[f"`{path}`"]
    documented = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", " ".join(row[0] for row in rows(section))))
    assert documented == options, path
    assert all(argument in section for argument in arguments), f"{path}: {arguments}"


# -- settings, pool files --------------------------------------------------------------------------------------


def test_every_setting_is_explained() -> None:
    assert names_in(sections("settings.md")["The file `concertino.toml`"]) == set(_settings._KEYS)


def test_every_environment_variable_is_explained() -> None:
    pattern = re.compile(r"_?CONCERTINO_[A-Z_]+")
    source = [file.read_text(encoding="utf-8") for file in (ROOT / "sdk").rglob("*.py")]
    read = {name for text in source for name in pattern.findall(text)}
    assert names_in(sections("settings.md")["Environment variables"]) == read


def test_every_key_of_a_pool_file_is_explained() -> None:
    assert names_in(sections("pool-file.md")["Keys"]) == set(_poolfile.KEYS)


@pytest.mark.parametrize(
    ("heading", "fields"),
    [("Overrides of tools and agents", _poolfile._ACTION_FIELDS), ("Overrides of models", _poolfile._MODEL_FIELDS)],
)
def test_every_field_that_a_pool_file_may_override_is_explained(heading: str, fields: dict[str, object]) -> None:
    assert names_in(sections("pool-file.md")[heading]) == set(fields)


# -- observations, events, traces ------------------------------------------------------------------------------


def test_every_code_is_explained_as_the_package_explains_it() -> None:
    documented = {row[0].strip("`"): (row[1], row[2], row[3]) for row in rows(sections("observation.md")["Codes"])}
    wanted = {}
    for code, text in CODES.items():
        status, _, meaning = text.partition(": ")
        wanted[code] = (status, meaning, "no" if code in FREE_CODES else "yes")
    assert documented == wanted


def test_every_stop_reason_is_explained() -> None:
    documented = {row[0].strip("`"): row[1] for row in rows(sections("events.md")["Why a run ends"])}
    assert documented == STOP_REASONS


def test_every_event_is_listed_with_its_record() -> None:
    listed = {row[0].strip("`"): row[1].strip("`") for row in rows(sections("events.md")["Kinds"])}
    assert listed == {event.__name__: _kind(event) for event in get_args(events.Event)}


def _kind(event: type) -> str:
    found = re.search(r'"t": "(\w+)"', inspect.getsource(event.to_json))  # type: ignore[attr-defined]
    assert found is not None
    return found.group(1)


@pytest.mark.parametrize("event", get_args(events.Event), ids=lambda event: _kind(event))
def test_every_field_of_a_record_is_explained(event: type) -> None:
    written = set(re.findall(r'(?:data\[|[{ ])"(\w+)"(?:: |\] = )', inspect.getsource(event.to_json)))  # type: ignore[attr-defined]
    section = sections("trace-format.md", level=3)[f"`{_kind(event)}`"]
    assert names_in(section) == written, event.__name__


def test_every_failure_class_is_in_the_table_of_retries() -> None:
    documented = {row[0].strip("`"): int(row[2]) for row in rows(sections("errors.md")["How failures are repeated"])}
    assert documented == {failure.value: ATTEMPTS[failure] for failure in FailureClass}


# -- names -----------------------------------------------------------------------------------------------------

SUBPACKAGES = ("events", "executor", "plugins", "rollouts", "schema", "strategies", "testing", "text", "traces")
THROUGH_THE_ROOT = {"concertino.core", "concertino.members", "concertino.pool", "concertino.runs"}
"""Packages whose names users import from `concertino`."""
PUBLIC = ["concertino", *(f"concertino.{name}" for name in SUBPACKAGES)]


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_module_has_a_page_made_from_its_docstrings(module: str) -> None:
    pages = [path.read_text(encoding="utf-8") for path in (REFERENCE / "api").glob("*.md")]
    assert any(re.search(rf"^::: {re.escape(module)}$", page, re.M) for page in pages)


def test_the_page_of_the_root_lists_every_public_name_once() -> None:
    page = (REFERENCE / "api" / "concertino.md").read_text(encoding="utf-8")
    listed = re.findall(r"^        - (\w+)$", page, re.M)
    assert sorted(listed) == sorted(set(concertino.__all__) - {"events"})
    named = [name for row in rows(page) for name in re.findall(r"`(\w+)`", row[1])]
    assert sorted(named) == sorted(concertino.__all__)


def test_the_glossary_defines_every_term_once() -> None:
    terms = re.findall(r"^\| \*\*(.+?)\*\* \|", (REFERENCE / "glossary.md").read_text(encoding="utf-8"), re.M)
    assert len(terms) > 80
    assert [term for term, times in Counter(terms).items() if times > 1] == []


def test_the_source_of_every_public_module_is_in_the_list() -> None:
    package = Path(ROOT / "sdk" / "concertino")
    found = {f"concertino.{folder.parent.name}" for folder in package.glob("*/__init__.py")}
    assert found - set(PUBLIC) == {"concertino.cli", *THROUGH_THE_ROOT}
    assert set(PUBLIC) - found == {"concertino", "concertino.events"}
