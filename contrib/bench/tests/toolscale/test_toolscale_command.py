"""`concertino bench synthesise`, by its command object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from click.testing import CliRunner, Result
from concertino_bench.cli import synthesise as synthesise_module
from concertino_bench.cli.synthesise import synthesise_command as command
from toolscale_script import SCHEMA, Writer, library


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Writer:
    """A writer in place of the pool that the options name."""
    scripted = Writer()
    monkeypatch.setattr(synthesise_module, "_pool", lambda *options: library(scripted))
    return scripted


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(command, [*arguments])


def small(out: Path, *more: str) -> list[str]:
    return [
        "--domain",
        "a town library",
        "--out",
        str(out),
        "--subjects",
        "1",
        "--intents",
        "1",
        "--evolve",
        "0",
        "--attempts",
        "1",
        "--repairs",
        "0",
        "--no-review",
        "--concurrency",
        "1",
        *more,
    ]


@pytest.mark.slow
def test_it_fills_a_folder_with_progress_on_stderr_and_a_summary_on_stdout(writer: Writer, tmp_path: Path) -> None:
    result = invoke(*small(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert "tasks/001: 7 requests, 0 rejected" in result.stderr
    assert "2 tables, 5 entries, 3 tools, 1 intents" in result.stdout
    assert "1 tasks: 1 of level 0" in result.stdout
    again = invoke(*small(tmp_path / "out"))
    assert "0 requests, 8 artefacts were known" in again.stdout


def test_json_gives_the_report_and_nothing_else(writer: Writer, tmp_path: Path) -> None:
    result = invoke(*small(tmp_path, "--json"))
    report = json.loads(result.stdout)
    assert (report["tasks"], report["reasons"], report["asked"]) == ({"0": 1}, {}, 8)
    assert result.stderr == ""


def test_a_dry_run_asks_nothing_and_writes_nothing(writer: Writer, tmp_path: Path) -> None:
    out = tmp_path / "out"
    plan = json.loads(invoke(*small(out, "--dry-run", "--json")).stdout)
    assert (plan["writer"], plan["solver"], plan["finished"]) == ("writer", "solver", [])
    assert plan["requests"] == {
        "schema": 1,
        "subjects": 1,
        "entries": 6,
        "tools": 1,
        "intents": 1,
        "tasks": 1,
        "evolved": 0,
        "judged": 2,
    }
    assert writer.asked == []
    assert not out.exists()
    invoke(*small(out))
    assert "out: 11 artefacts are there" in invoke(*small(out, "--dry-run")).stdout


def test_nothing_usable_ends_with_status_1_and_says_why(writer: Writer, tmp_path: Path) -> None:
    writer.steps["task"] = [{"request": "x", "calls": [{"name": "steal", "arguments": {}}], "required": []}]
    result = invoke(*small(tmp_path / "a"))
    assert result.exit_code == 1
    assert "rejected: 1 task_invalid" in result.stdout
    writer.steps["schema"] = [{**SCHEMA, "tables": SCHEMA["tables"][:1]}]
    refused = invoke(*small(tmp_path / "b"))
    assert refused.exit_code == 1
    assert "Error: schema: nothing of it could be used" in refused.stderr


def test_a_folder_of_another_domain_is_an_error_that_names_what_differs(writer: Writer, tmp_path: Path) -> None:
    invoke(*small(tmp_path))
    other = small(tmp_path)
    other[1] = "a zoo"
    result = invoke(*other)
    assert result.exit_code == 1
    assert "begun with domain='a town library'" in result.stderr


def test_the_pool_comes_from_the_options_with_the_sandbox_added(monkeypatch: pytest.MonkeyPatch) -> None:
    models: Any = [ct.ModelSpec(f"acme/{name}", ct.Model) for name in ("big", "small")]
    sandbox = ct.Pool.installed("code/python")
    monkeypatch.setattr(ct.Pool, "load", staticmethod(lambda path: ct.Pool(models)))
    monkeypatch.setattr(ct.Pool, "installed", staticmethod(lambda *patterns: sandbox))
    pool = synthesise_module._pool(Path("pool.toml"), "acme/big", "acme/small")
    assert (pool.model("writer").name, pool.model("solver").name) == ("acme/big", "acme/small")
    assert "code/python" in pool
    assert synthesise_module._pool(Path("pool.toml"), "acme/big", None).model("solver").name == "acme/big"
    with pytest.raises(ct.PoolError):
        synthesise_module._pool(Path("pool.toml"), None, None)
