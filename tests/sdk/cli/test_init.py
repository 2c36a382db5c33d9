"""`concertino init`: what it finds, what it writes, and that what it wrote runs as it stands."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from concertino.plugins import default_manager
from stand_in import StandIn

FILES = ["app.py", "concertino.toml", "pool.toml"]


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """All installed plugins count, not only those of the test."""
    real = importlib.metadata.MetadataPathFinder.find_distributions
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: real())
    default_manager.cache_clear()


@pytest.fixture(autouse=True)
def nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What listens on this machine does not count."""
    monkeypatch.setattr("concertino.cli.surroundings.listed", lambda address: None)


def init(cli: Any, *options: str) -> dict[str, Any]:
    done = cli("init", "new", "--json", *options)
    assert done.exit_code == 0, done.stderr
    written: dict[str, Any] = json.loads(done.stdout)
    return written


def pool_file() -> dict[str, Any]:
    return tomllib.loads(Path("new/pool.toml").read_text(encoding="utf-8"))


def run_app(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python app.py` in the folder that was written."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CONCERTINO_")}
    command = [sys.executable, "-W", "error", "app.py", *arguments]
    return subprocess.run(
        command, cwd="new", env={**kept, **environment}, capture_output=True, text=True, timeout=110, check=False
    )


# -- what is written ---------------------------------------------------------------------------------------------------


def test_a_settings_file_a_pool_file_and_a_program_are_written(cli: Any) -> None:
    written = init(cli, "--model", "band/lead")
    assert sorted(Path(file).name for file in written["files"]) == FILES
    assert (written["model"], written["members"], written["lacks"]) == ("band/lead", ["band/*"], "")
    assert written["next"] == ["cd new", "python app.py"]
    assert tomllib.loads(Path("new/concertino.toml").read_text(encoding="utf-8")) == {"pool": "pool.toml"}
    assert pool_file() == {"members": ["band/*"], "roles": {"orchestrator": "band/lead", "default": "band/lead"}}
    compile(Path("new/app.py").read_text(encoding="utf-8"), "app.py", "exec")


def test_the_commands_take_the_pool_that_was_written(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    init(cli, "--model", "band/lead", "--member", "band/add")
    monkeypatch.chdir("new")
    default_manager.cache_clear()
    shown = json.loads(cli("pool", "show", "--json").stdout)
    assert [member["name"] for member in shown["members"]] == ["band/add", "band/lead"]
    assert shown["roles"]["orchestrator"] == "band/lead"
    assert json.loads(cli("doctor", "--json").stdout)["leader"] == "band/lead"
    done = cli("run", "add")
    assert done.exit_code == 0, done.stderr


def test_files_that_are_there_are_never_replaced_without_force(cli: Any) -> None:
    Path("new").mkdir()
    Path("new/pool.toml").write_text("mine", encoding="utf-8")
    done = cli("init", "new", "--yes", "--model", "band/lead")
    assert done.exit_code == 2
    assert done.stderr == ("Error: new/pool.toml is there already; --force replaces them, or choose another FOLDER\n")
    assert [file.name for file in Path("new").iterdir()] == ["pool.toml"]
    assert Path("new/pool.toml").read_text(encoding="utf-8") == "mine"
    init(cli, "--model", "band/lead", "--force")
    assert pool_file()["roles"]["orchestrator"] == "band/lead"


def test_nothing_is_written_where_something_cannot_be(cli: Any) -> None:
    for options, said in (
        (("--model", "band/leed"), "did you mean 'band/lead'"),
        (("--model", "zzz/lead"), "no installed provider is called 'zzz'"),
        (("--model", "band/lead", "--member", "band/harp"), "'band/harp'"),
        (("--model", "lead"), "expected provider/name"),
    ):
        done = cli("init", "new", "--yes", *options)
        assert done.exit_code == 2
        assert said in done.stderr
    assert not Path("new").exists()


def test_without_a_model_the_message_says_what_would_give_one(cli: Any) -> None:
    done = cli("init", "new", "--yes")
    assert done.exit_code == 2
    assert "no model was found that can lead; give --model NAME, or set the key of a service" in done.stderr


def test_nothing_but_the_programs_own_tool_may_be_called(cli: Any) -> None:
    init(cli, "--model", "band/lead", "--member", "none")
    assert pool_file()["members"] == []


# -- what is found -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("everything")
def test_a_key_in_the_environment_gives_a_model_of_that_service(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("concertino_openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    written = init(cli)
    assert written["model"].startswith("openai/gpt-")
    assert "sk-0123456789" not in "".join(file.read_text(encoding="utf-8") for file in Path("new").iterdir())
    assert "toy/*" not in written["members"]


@pytest.mark.usefixtures("everything")
def test_a_missing_key_is_said_and_the_files_are_written(cli: Any) -> None:
    pytest.importorskip("concertino_openai")
    written = init(cli, "--model", "openai/gpt-5.4-mini")
    assert written["lacks"].startswith("the key OPENAI_API_KEY is not set; set the environment variable")
    done = cli("init", "new", "--yes", "--force", "--model", "openai/gpt-5.4-mini")
    assert "openai/gpt-5.4-mini cannot lead yet: the key OPENAI_API_KEY is not set" in done.stdout


@pytest.mark.usefixtures("everything")
def test_a_server_on_this_machine_leads_by_its_name(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("concertino_openai")
    answers = {"http://127.0.0.1:11434/v1": ["llama3.2:3b"]}
    monkeypatch.setattr("concertino.cli.surroundings.listed", answers.get)
    assert init(cli)["model"] == "ollama/llama3.2:3b"
    assert pool_file()["roles"]["orchestrator"] == "ollama/llama3.2:3b"


@pytest.mark.usefixtures("everything")
def test_a_running_vllm_server_is_declared_with_its_address(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("concertino_openai")
    pytest.importorskip("concertino_vllm")
    answers = {"http://127.0.0.1:8000/v1": ["Qwen/Qwen3-8B"]}
    monkeypatch.setattr("concertino.cli.surroundings.listed", answers.get)
    assert init(cli)["model"] == "openai/Qwen3-8B"
    assert pool_file()["models"] == {
        "openai/Qwen3-8B": {"server": "vllm", "base_url": "http://127.0.0.1:8000/v1", "model": "Qwen/Qwen3-8B"}
    }


def test_a_server_whose_package_is_missing_is_named(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concertino.cli.surroundings.listed", {"http://127.0.0.1:11434/v1": ["llama"]}.get)
    done = cli("init", "new", "--yes")
    assert done.exit_code == 2
    assert "a server answers at http://127.0.0.1:11434/v1: pip install 'concertino[ollama]'" in done.stderr


def test_no_probe_asks_no_server(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(address: str) -> None:
        pytest.fail(f"{address} was asked")

    monkeypatch.setattr("concertino.cli.surroundings.listed", listed)
    init(cli, "--model", "band/lead", "--no-probe")


# -- the program -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("everything")
def test_the_program_runs_behind_a_model_server(cli: Any) -> None:
    pytest.importorskip("concertino_openai")
    init(cli, "--model", "openai/gpt-5.4-mini", "--member", "none")
    call = '<tool_call>{"name": "count_letter", "arguments": {"text": "strawberry", "letter": "r"}}</tool_call>'
    end = '<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
    replies = (
        f"<reasoning>Count.</reasoning>\n{call}",
        f"<reasoning>Done.</reasoning>\n{end}",
        "<answer>Three.</answer>",
    )
    with StandIn(*replies) as server:
        done = run_app("How many r's are in strawberry?", **server.environment)
    assert (done.returncode, done.stdout) == (0, "Three.\n"), done.stderr
    assert done.stderr.startswith("calls: 1, seconds: ")
    assert len(server.requests) == 3
    assert all(request["stream"] for request in server.requests)
    assert "How many r's are in strawberry?" in server.requests[0]["messages"][1]["content"]
    assert len(list(Path("new/.concertino/traces").glob("*.trace.jsonl"))) == 1


@pytest.mark.usefixtures("everything")
def test_the_program_runs_with_the_toy_which_is_proposed_where_nothing_else_is_there(cli: Any) -> None:
    demo = pytest.importorskip("concertino_toy.demo")
    written = init(cli)
    assert (written["model"], written["members"]) == ("toy/leader", ["toy/*"])
    done = run_app()
    assert done.returncode == 0, done.stderr
    assert [f"\\boxed{{{answer}}}" for answer in demo.demo_question()[1]] == done.stdout.split()


@pytest.mark.usefixtures("everything")
def test_a_program_without_an_answer_says_why_and_fails(cli: Any) -> None:
    pytest.importorskip("concertino_openai")
    init(cli, "--model", "openai/gpt-5.4-mini", "--member", "none")
    done = run_app(OPENAI_API_KEY="")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no answer: model: " in done.stderr
    assert "OPENAI_API_KEY is not set" in done.stderr
