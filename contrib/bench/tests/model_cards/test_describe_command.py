"""`pool describe`: what it shows, keeps and saves, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

TASKS = [
    {"question": "Say blue.", "answer": "blue", "kind": "echo", "grader": "contains"},
    {"question": "Say green.", "answer": "green", "kind": "echo", "grader": "contains"},
    {"question": "What is 2 + 2?", "answer": 4, "kind": "sums"},
]
CLERK = '''
"""A model that counts its requests in a file, a slow one, one that fails, and one that writes."""
import asyncio, json
from pathlib import Path
import concertino


class Clerk(concertino.Model):
    async def chat(self, request):
        with Path("asked.txt").open("a") as file:
            file.write("clerk\\n")
        usage = concertino.Usage(input_tokens=10, output_tokens=5)
        return concertino.Reply(request.messages[-1].text.replace("Say", "Answer:").split(".")[0], usage=usage)


class Slow(Clerk):
    async def chat(self, request):
        if "2 + 2" in request.messages[-1].text and not Path("quick").exists():
            await asyncio.sleep(60)
        return await super().chat(request)


class Down(concertino.Model):
    async def chat(self, request):
        raise concertino.ProviderError.from_http(401, "the key is refused \\x1b[31m")


class Author(concertino.Model):
    async def chat(self, request):
        said = [{"text": text, "kinds": ["echo"]} for text in ("It repeats what it is told.", "It is right in 99 %.")]
        return concertino.Reply(json.dumps({"strengths": said, "weaknesses": []}))


@concertino.hookimpl
def concertino_models():
    prices = concertino.Prices(input=1.0, output=2.0)
    models = {"clerk": Clerk, "slow": Slow, "down": Down, "author": Author}
    return [concertino.ModelSpec(name, model, f"The {name}.", prices) for name, model in models.items()]
'''


@pytest.fixture(autouse=True)
def office(here: None, install: Any) -> None:
    """The plugin `office`, and a task file."""
    install("office", CLERK)
    Path("tasks.jsonl").write_text("\n".join(map(json.dumps, TASKS)), encoding="utf-8")


def asked() -> int:
    return len(Path("asked.txt").read_text().splitlines()) if Path("asked.txt").exists() else 0


DESCRIBE = ("pool", "describe", "--tasks", "tasks.jsonl", "--only", "office/clerk")


def test_figures_and_texts_are_shown_and_progress_goes_to_stderr(cli: Any) -> None:
    done = cli(*DESCRIBE)
    assert done.exit_code == 0, done.stderr
    head, row, _, name, text = done.stdout.splitlines()
    assert re.split(r"  +", head) == ["MODEL", "CORRECT", "95 %", "TASKS", "TOKENS IN + OUT", "SECONDS", "$ PER TASK"]
    assert row.split()[:7] == ["office/clerk", "67", "%", "21-94", "%", "3", "10"]
    assert row.endswith("$0.000020")
    assert name == "office/clerk"
    assert text.startswith("Measured on 3 tasks: 67 % correct (95 % interval 21 to 94 %).")
    assert done.stderr.splitlines()[-1] == "3 of 3 answers"


def test_a_second_time_nobody_is_asked(cli: Any) -> None:
    first, again = cli(*DESCRIBE), cli(*DESCRIBE)
    assert (asked(), again.stdout, again.stderr) == (3, first.stdout, "")
    cli(*DESCRIBE, "--refresh")
    assert asked() == 6
    cli(*DESCRIBE, "--cache", "elsewhere")
    assert asked() == 9
    assert Path("elsewhere/answers").is_dir()


def test_json_holds_descriptions_and_what_was_asked(cli: Any) -> None:
    done = cli(*DESCRIBE, "--json")
    data = json.loads(done.stdout)
    assert done.stderr == ""
    assert data["descriptions"][0]["profile"]["by_kind"]["echo"]["accuracy"] == 1
    assert (data["asked"], data["known"], data["saved"]) == ({"office/clerk": 3}, {"office/clerk": 0}, None)


def test_the_help_names_every_key_of_the_json(cli: Any) -> None:
    text = cli("pool", "describe", "--help").stdout
    data = json.loads(cli(*DESCRIBE, "--json").stdout)
    for key in (*data, *data["descriptions"][0]):
        assert f'"{key}"' in text


def test_the_described_pool_is_saved_with_its_texts(cli: Any) -> None:
    done = cli(*DESCRIBE, "--save", "described.toml")
    assert done.stdout.splitlines()[-1].startswith("described.toml: pool ")
    shown = json.loads(cli("models", "show", "office/clerk", "--pool", "described.toml", "--json").stdout)
    assert shown["description"].startswith("Measured on 3 tasks: 67 % correct")
    assert "Measured on 3 tasks" in Path("described.toml").read_text().partition("[descriptions]")[2]


def test_the_writer_is_named_and_need_not_be_among_the_members_that_are_kept(cli: Any) -> None:
    done = cli(*DESCRIBE, "--writer", "author", "--save", "described.toml")
    assert "office/clerk (written by office/author)\nStrong: It repeats what it is told. Measured on" in done.stdout
    assert "office/clerk: left out of what office/author wrote: a figure (1)" in done.stderr
    assert "author" not in Path("described.toml").read_text()


def test_a_bound_writer_writes_unless_told_not_to(cli: Any) -> None:
    bound = (*DESCRIBE, "--models", "clerk", "--bind", "writer=author")
    assert "(written by office/author)" in cli(*bound).stdout
    assert "(written by" not in cli(*bound, "--no-writer").stdout


def test_others_of_the_pool_keep_their_texts(cli: Any) -> None:
    done = cli("pool", "describe", "--tasks", "tasks.jsonl", "--models", "clerk", "--save", "all.toml", "--sample", "2")
    assert done.exit_code == 0
    described = json.loads(cli("models", "--pool", "all.toml", "--json").stdout)
    assert [model["name"] for model in described if "Measured on 2 tasks" in model["description"]] == ["office/clerk"]
    assert "office/down" in [model["name"] for model in described]


def test_a_model_that_cannot_be_described_is_named_and_the_others_are_saved(cli: Any) -> None:
    done = cli("pool", "describe", "--tasks", "tasks.jsonl", "--only", "office/[cd]*", "--save", "described.toml")
    assert done.exit_code == 1
    assert "1 not described" in done.stderr
    assert "office/down: 0 of 3 answers are there, then rejected: the key is refused" in done.stderr
    assert "\x1b" not in done.output
    assert "Measured on 3 tasks" in Path("described.toml").read_text()


def test_a_damaged_answer_is_named(cli: Any) -> None:
    cli(*DESCRIBE)
    file = next(Path(".concertino/descriptions/answers").rglob("*.json"))
    file.write_text("half of it")
    done = cli(*DESCRIBE)
    assert f"damaged: {file}: it is not an entry of this cache; it is made again" in done.stderr
    assert asked() == 4


def test_the_requests_are_recorded_where_a_folder_is_named(cli: Any) -> None:
    cli(*DESCRIBE, "--trace", "recorded")
    listed = json.loads(cli("traces", "list", "--folder", "recorded", "--json").stdout)
    assert [(trace["question"], trace["calls"]) for trace in listed] == [("describe office/clerk", 3)]
    assert "office/clerk" in cli("traces", "show", "--folder", "recorded").stdout
    refused = cli("traces", "replay", "--folder", "recorded")
    assert (refused.exit_code, "no strategy 'model-cards'" in refused.stderr) == (2, True)


WRONG = {
    "a missing file": (("--tasks", "none.jsonl"), "none.jsonl: cannot be read"),
    "too large a sample": (("--sample", "9"), "expected 1 to 3"),
    "both": (("--writer", "author", "--no-writer"), "exclude each other"),
    "an unknown writer": (("--writer", "autor"), "did you mean"),
    "an unknown model": (("--models", "nobody"), "no model of the pool matches 'nobody'"),
    "a wrong budget": (("--budget", "money=1"), "budget part 'money=1'"),
    "a file of no known kind": (("--save", "pool.json"), "Error: pool.json: unsupported extension '.json'"),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_said_before_anybody_is_asked(cli: Any, options: tuple[str, ...], message: str) -> None:
    done = cli(*DESCRIBE, *options)
    assert done.exit_code == 2
    assert message in done.stderr
    assert asked() == 0


def test_after_ctrl_c_the_same_command_goes_on(site: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(site), "CONCERTINO_PLUGINS": "office,bench"}
    command = [
        sys.executable,
        "-m",
        "concertino",
        "pool",
        "describe",
        "--tasks",
        "tasks.jsonl",
        "--only",
        "office/slow",
    ]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 30
    while asked() < 2 and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.splitlines()[-1].startswith("cancelled; what was answered is kept in .concertino/descriptions")
    Path("quick").touch()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert "Measured on 3 tasks" in done.stdout
    assert asked() == 3
