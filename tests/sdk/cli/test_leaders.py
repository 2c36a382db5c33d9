"""Who can lead: what `doctor` says of it, and that a run which nobody could lead is refused before it begins."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from concertino.cli import leaders as _leaders

KEYED = """
import os
import concertino


def lacking():
    return "" if os.environ.get("KEYED_API_KEY") else "the key KEYED_API_KEY is not set; set the variable"


def broken():
    raise RuntimeError("no idea")


@concertino.hookimpl
def concertino_declare_model(name, options):
    return concertino.ModelSpec(name, concertino.Model, endpoint=options.get("base_url", ""), lacks=lacking)


@concertino.hookimpl
def concertino_models():
    return [
        concertino.ModelSpec("deep", concertino.Model, "Deep.", lacks=lacking),
        concertino.ModelSpec("odd", concertino.Model, "Odd.", lacks=broken),
    ]
"""


@pytest.fixture
def keyed(install: Any) -> None:
    install("keyed", KEYED)


@pytest.fixture
def server() -> Iterator[str]:
    """A model server that lists `llama` and `qwen:7b`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"data": [{"id": "llama"}, {"id": "qwen:7b"}]}).encode())

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/v1"
        running.shutdown()


def examine(cli: Any, *options: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The report as JSON, and of its findings on each subject the first one, as `level: text`."""
    report = json.loads(cli("doctor", "--json", *options).stdout)
    found: dict[str, str] = {}
    for each in report["findings"]:
        found.setdefault(each["subject"], f"{each['level']}: {each['text']}")
    return report, found


# -- doctor ------------------------------------------------------------------------------------------------------------


def test_the_doctor_says_which_models_can_lead(cli: Any) -> None:
    report, found = examine(cli)
    assert found["leader"] == "ok: no model is bound to the role 'orchestrator'; band/lead and band/parrot can lead"
    assert report["leader"] is None
    assert [(each["name"], each["can_lead"]) for each in report["models"]] == [
        ("band/lead", True),
        ("band/parrot", True),
    ]
    text = cli("doctor").stdout
    assert "         -> give `concertino run --model NAME`, or bind one: `concertino init`" in text


@pytest.mark.usefixtures("keyed")
def test_the_doctor_says_which_models_cannot_lead_and_why(cli: Any) -> None:
    report, found = examine(cli)
    assert found["model keyed/deep"] == "warning: cannot lead: the key KEYED_API_KEY is not set"
    assert found["model keyed/odd"] == (
        "warning: cannot lead: its plugin cannot say what it lacks (RuntimeError: no idea)"
    )
    deep = next(each for each in report["models"] if each["name"] == "keyed/deep")
    assert deep == {
        "name": "keyed/deep",
        "can_lead": False,
        "why": "the key KEYED_API_KEY is not set",
        "step": "set the variable",
    }
    assert report["ok"]


def test_the_doctor_says_that_no_model_can_lead(cli: Any, install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCERTINO_DISABLE", "band")
    _, found = examine(cli)
    assert found["leader"] == "warning: no model can lead: the pool has none"
    assert "set the key of a service, start a model server, or install" in cli("doctor").stdout


@pytest.mark.slow
@pytest.mark.usefixtures("keyed")
def test_a_leader_that_cannot_lead_is_an_error_until_its_key_is_set(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("pool.toml").write_text('members = ["band/*"]\n[roles]\norchestrator = "keyed/deep"\n', encoding="utf-8")
    done = cli("doctor", "--pool", "pool.toml", "--json")
    report = json.loads(done.stdout)
    assert (done.exit_code, report["ok"], report["leader"]) == (1, False, "keyed/deep")
    _, found = examine(cli, "--pool", "pool.toml")
    assert found["leader"] == (
        "error: keyed/deep, bound to the role 'orchestrator', cannot lead: the key KEYED_API_KEY is not set"
    )
    monkeypatch.setenv("KEYED_API_KEY", "x")
    report, found = examine(cli, "--pool", "pool.toml")
    assert found["leader"] == "ok: keyed/deep, bound to the role 'orchestrator', can lead"
    assert report["ok"]


@pytest.mark.slow
@pytest.mark.usefixtures("keyed")
def test_a_router_can_lead_if_one_of_its_models_can(cli: Any) -> None:
    text = (
        'members = ["band/*"]\n[routers.both]\nmodels = ["keyed/deep", "band/lead"]\n[roles]\norchestrator = "both"\n'
    )
    Path("pool.toml").write_text(text, encoding="utf-8")
    _, found = examine(cli, "--pool", "pool.toml")
    assert found["leader"] == "ok: both, bound to the role 'orchestrator', can lead"
    Path("pool.toml").write_text(text.replace("band/lead", "keyed/odd"), encoding="utf-8")
    _, found = examine(cli, "--pool", "pool.toml")
    assert "both, bound to the role 'orchestrator', cannot lead: none of its models can" in found["leader"]


def test_services_and_packages_that_are_missing_are_named(cli: Any) -> None:
    _, found = examine(cli)
    assert found["not installed"].startswith("ok: models of openai, ")
    assert "pip install 'concertino[openai]'" in cli("doctor").stdout


@pytest.mark.slow
@pytest.mark.usefixtures("keyed")
def test_servers_are_asked_only_where_it_is_asked_for(cli: Any, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYED_API_KEY", "x")
    monkeypatch.setattr("concertino.cli.doctor_leaders.LOCAL_SERVERS", {})
    gone = "http://127.0.0.1:9/v1"
    tables = {"llama": server, "other": server, "away": gone, "web": "https://models.invalid/v1"}
    lines = [f'[models."keyed/{name}"]\nbase_url = "{address}"' for name, address in tables.items()]
    Path("pool.toml").write_text("\n".join(['members = ["band/add"]', *lines]), encoding="utf-8")

    report, _ = examine(cli, "--pool", "pool.toml")
    assert all(each["can_lead"] for each in report["models"])

    report, found = examine(cli, "--pool", "pool.toml", "--probe")
    why = {each["name"]: each["why"] for each in report["models"]}
    assert why == {
        "keyed/llama": "",
        "keyed/other": f"its server {server} lists no 'other', but llama and qwen:7b",
        "keyed/away": f"its server {gone} does not answer",
        "keyed/web": "",
    }
    assert found[f"server {server}"] == "ok: answers, with llama and qwen:7b"


def test_a_server_at_a_default_address_is_found(cli: Any, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concertino.cli.doctor_leaders.LOCAL_SERVERS", {"ollama": server})
    _, found = examine(cli, "--probe")
    assert found["server ollama"] == f"ok: answers at {server}, with llama and qwen:7b"
    assert "--model ollama/llama" in cli("doctor", "--probe").stdout


@pytest.mark.parametrize("text", [b"", b"no JSON", b"[]", b'{"data": 3}', b'{"data": [3]}', b'{"data": [{"id": 1}]}'])
def test_a_server_that_lists_nonsense_answers_all_the_same(text: bytes) -> None:
    assert _leaders._names_in(text) in ([], ["1"])


# -- runs --------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("keyed")
def test_a_run_that_lacks_a_key_is_refused_before_it_begins(cli: Any) -> None:
    done = cli("run", "add", "--model", "keyed/deep", "--only", "band/*")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "Error: keyed/deep cannot lead: the key KEYED_API_KEY is not set; set the variable\n"
    assert not Path("runs").exists()


@pytest.mark.usefixtures("keyed")
def test_a_replay_needs_no_key(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lead = ("--model", "band/lead", "--bind", "default=band/parrot")
    done = cli("run", "add", *lead, "--no-trace", "--record", "rec.jsonl")
    assert done.exit_code == 0, done.stderr
    text = Path("rec.jsonl").read_text(encoding="utf-8")
    assert text.count("\n") > 2
    monkeypatch.setattr("concertino.cli.leaders.leader_of", lambda spec, pool: _leaders.Leader(spec.name, "no key"))
    assert cli("run", "add", *lead, "--no-trace").exit_code == 2
    assert cli("run", "add", *lead, "--no-trace", "--replay", "rec.jsonl").exit_code == 0


@pytest.mark.parametrize(
    ("openai", "step"),
    [
        (False, "none is installed: pip install 'concertino[openai]'"),
        (True, "set the key of a service, such as OPENAI"),
    ],
)
def test_where_no_model_is_known_the_message_says_what_to_install_or_to_set(
    cli: Any, install: Any, monkeypatch: pytest.MonkeyPatch, openai: bool, step: str
) -> None:
    install("tools", "import concertino\n@concertino.hookimpl\ndef concertino_tools(): return []")
    if openai:
        pytest.importorskip("concertino_openai")
        install("openai", "from concertino_openai import concertino_models")
    monkeypatch.setenv("CONCERTINO_DISABLE", "band")
    done = cli("run", "add")
    assert done.exit_code == 2
    assert step in done.stderr


@pytest.mark.parametrize("key", ["", "sk-0123456789"])
def test_a_model_of_a_service_says_whether_its_key_is_set(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    openai = pytest.importorskip("concertino_openai")
    monkeypatch.setenv("OPENAI_API_KEY", key)
    spec = openai.model("fast", model="gpt-5.4-mini")
    assert spec.lacks().partition("; ")[0] == ("" if key else "the key OPENAI_API_KEY is not set")
    assert "lacks" not in spec.to_json()
    assert os.environ["OPENAI_API_KEY"] == key
