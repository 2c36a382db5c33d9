"""The log of a command: nothing without being asked, lines on stderr with --log-level or CONCERTINO_LOG."""

from __future__ import annotations

import logging
import re

import pytest

from .conftest import Cli, Install

ASK = ("run", "add please", "--model", "band/lead", "--only", "band/*", "--no-trace")
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (DEBUG|INFO) +concertino\.(run|call|model|plugins) ")


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if LINE.match(line)]


def test_a_run_logs_nothing_unless_it_is_asked_to(cli: Cli) -> None:
    done = cli(*ASK)
    assert done.exit_code == 0, done.output
    assert lines_of(done.stderr) == []


@pytest.mark.parametrize("by", ["option", "variable"])
def test_at_info_the_run_is_told_on_stderr_in_place_of_the_view(
    cli: Cli, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by == "variable":
        monkeypatch.setenv("CONCERTINO_LOG", "info")
    done = cli(*ASK, *(["--log-level", "INFO"] if by == "option" else []))
    assert done.exit_code == 0, done.output
    told = [line.split(" concertino.run ")[1] for line in lines_of(done.stderr) if " concertino.run " in line]
    assert [text.split()[1].rstrip(":") for text in told] == ["started", "round", "ended"]
    assert "] round 1" not in done.stderr
    assert "three" in done.stdout


def test_at_debug_calls_are_told_too_and_stdout_stays_json(cli: Cli) -> None:
    done = cli(*ASK, "--log-level", "debug", "--json")
    assert done.stdout.startswith("{")
    assert any("concertino.call" in line and " 1.1 band/add OK in " in line for line in lines_of(done.stderr))
    assert any("concertino.plugins band: imported in " in line for line in lines_of(done.stderr))


def test_what_is_typed_goes_before_the_environment(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCERTINO_LOG", "DEBUG")
    done = cli(*ASK, "--log-level", "WARNING")
    # Plugins are imported after the options were read.
    assert lines_of(done.stderr) == []


def test_a_level_that_is_none_is_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCERTINO_LOG", "loud")
    done = cli("version")
    assert done.exit_code == 2
    assert "CONCERTINO_LOG=loud: expected one of DEBUG, INFO, WARNING, ERROR" in done.stderr


def test_a_plugin_that_is_left_out_is_told(cli: Cli, install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install("broken", "raise ValueError('api_key=hunter2')")
    monkeypatch.setenv("CONCERTINO_LOG", "INFO")
    done = cli("tools", "list")
    (told,) = [line for line in lines_of(done.stderr) if "concertino.plugins" in line]
    assert "broken is left out: " in told
    assert "api_key=[key]" in told


def test_warnings_are_shown_as_plain_lines(cli: Cli, install: Install) -> None:
    install("warner", "import logging\nlogging.getLogger('concertino.warner').warning('mind the gap')")
    assert cli("tools", "list").stderr.splitlines().count("mind the gap") == 1


def test_the_loggers_are_as_before_when_the_command_is_over(cli: Cli) -> None:
    logger = logging.getLogger("concertino")
    before = (logger.level, list(logger.handlers))
    cli(*ASK, "--log-level", "DEBUG")
    cli("version")
    assert (logger.level, list(logger.handlers)) == before
