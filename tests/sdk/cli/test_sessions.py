"""Conversations on the command line, and what a question is asked with: attachments, instructions, a schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

VOICE = '''
import json
import concertino
from concertino.strategies.parallel_rounds.format import write_round


class Voice(concertino.Model):
    """Ends at once, and answers with what it was told."""

    async def chat(self, request):
        last = request.messages[-1].text
        if "JSON value now" in last:
            return concertino.Reply('{"city": "Oslo", "celsius": 12}')
        if "<answer>" not in last:
            return concertino.Reply(write_round("Enough.", [("final_answer", {})]))
        told = request.messages[0].text.partition("# Instructions")[2].strip()
        asked = [m.text for m in request.messages if m.role == "user"][:-1]
        kinds = [each.kind for m in request.messages for each in m.attachments]
        if told == "as JSON":
            return concertino.Reply("<answer>Twelve degrees in Oslo.</answer>")
        answer = json.dumps({"told": told, "asked": asked, "kinds": kinds})
        return concertino.Reply("<answer>" + answer + "</answer>")


@concertino.tool
def note(text: str) -> str:
    """Note a text."""
    return text


@concertino.hookimpl
def concertino_tools():
    return [note]


@concertino.hookimpl
def concertino_models():
    prices = concertino.Prices(1.0, 1.0)
    deaf = concertino.ModelSpec("deaf", Voice, "Takes texts alone.", prices, accepts=())
    return [concertino.ModelSpec("voice", Voice, "Answers.", prices), deaf]
'''
LEAD = ("--only", "choir/*", "--model", "choir/voice")
PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 20


@pytest.fixture(autouse=True)
def choir(install: Any) -> None:
    install("choir", VOICE)


def answer(done: Any) -> Any:
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def ask(cli: Any, question: str, *options: str) -> Any:
    return answer(cli("run", question, *LEAD, "--quiet", *options))


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_a_session_is_continued_listed_shown_forked_and_deleted(cli: Any) -> None:
    assert ask(cli, "How warm?", "--session", "ada")["asked"] == ["How warm?"]
    assert ask(cli, "And tomorrow?", "--session", "ada")["asked"] == ["How warm?", "And tomorrow?"]

    (line,) = json.loads(cli("sessions", "list", "--json").stdout)
    assert (line["name"], line["turns"], line["question"]) == ("ada", 2, "And tomorrow?")
    assert cli("sessions", "list").stdout.splitlines()[1].split()[:2] == ["ada", "2"]

    shown = json.loads(cli("sessions", "show", "ada", "--json").stdout)
    assert [turn["question"] for turn in shown["turns"]] == ["How warm?", "And tomorrow?"]
    assert Path("runs", f"{shown['turns'][1]['run_id']}.trace.jsonl").is_file()
    assert cli("sessions", "show", "ada").stdout.startswith("1. How warm?\n")

    assert json.loads(cli("sessions", "fork", "ada", "eve", "--json").stdout)["turns"] == 2
    assert len(ask(cli, "And Rome?", "--session", "eve")["asked"]) == 3
    assert len(json.loads(cli("sessions", "show", "ada", "--json").stdout)["turns"]) == 2

    assert cli("sessions", "delete", "ada").exit_code == 0
    assert [each["name"] for each in json.loads(cli("sessions", "list", "--json").stdout)] == ["eve"]
    assert len(list(Path("runs").glob("*.trace.jsonl"))) == 3
    assert cli("sessions", "delete", "eve", "--traces").exit_code == 0
    assert list(Path("runs").glob("*.trace.jsonl")) == []


def test_the_summary_names_the_session_and_the_turn(cli: Any) -> None:
    ask(cli, "One", "--session", "ada")
    assert "session  ada, turn 2\n" in cli("run", "Two", *LEAD, "--session", "ada").stdout


def test_no_session_is_no_error_and_says_what_begins_one(cli: Any) -> None:
    done = cli("sessions", "list")
    assert done.exit_code == 0
    assert "--session NAME begins one" in done.stdout


def test_a_misspelt_session_is_answered_with_a_near_name(cli: Any) -> None:
    ask(cli, "One", "--session", "ada")
    for command in (("show", "adda"), ("fork", "adda", "x"), ("delete", "adda")):
        done = cli("sessions", *command)
        assert done.exit_code == 2
        assert "there is no session 'adda' in runs; did you mean 'ada'?" in done.stderr
    done = cli("sessions", "fork", "ada", "ada")
    assert (done.exit_code, done.stderr) == (2, "Error: a session 'ada' exists in runs; choose another name\n")


def test_a_session_that_another_run_holds_is_refused_and_not_waited_for(cli: Any) -> None:
    from concertino.runs.session import Session, SessionHold

    with SessionHold(Session("ada", "runs")):
        done = cli("run", "One", *LEAD, "--session", "ada")
        assert done.exit_code == 1
        assert "session 'ada': another run works on it; wait for it, or fork the session" in done.stderr
        assert cli("sessions", "delete", "ada").exit_code == 1


def test_a_damaged_session_is_a_line_of_the_list(cli: Any) -> None:
    ask(cli, "One", "--session", "ada")
    Path("runs/ada.session.jsonl").write_bytes(b"rubbish")
    (line,) = json.loads(cli("sessions", "list", "--json").stdout)
    assert "error" in line
    assert "unreadable" in cli("sessions", "list").stdout
    assert cli("sessions", "show", "ada").exit_code == 1


def test_a_suspended_turn_is_resumed_and_then_counts(cli: Any) -> None:
    Path("guarded.toml").write_text('members = ["band/*"]\n[overrides."band/add"]\napproval = true\n')
    lead = ("--pool", "guarded.toml", "--model", "band/lead", "--session", "ada")
    assert cli("run", "add", *lead).exit_code == 1
    assert json.loads(cli("sessions", "list", "--json").stdout)[0]["turns"] == 0
    done = cli("run", "--resume", "last", "--approve", "1.1", "--pool", "guarded.toml")
    assert done.exit_code == 0, done.stderr
    assert json.loads(cli("sessions", "list", "--json").stdout)[0]["turns"] == 1


# -- what a question is asked with -------------------------------------------------------------------------------------


def test_attachments_are_images_sounds_or_files_by_what_they_hold(cli: Any) -> None:
    Path("cat.bin").write_bytes(PNG)
    Path("song.mp3").write_bytes(b"ID3" + b"x" * 20)
    Path("report.pdf").write_bytes(b"%PDF-1.7")
    Path("notes.txt").write_text("notes", encoding="utf-8")
    names = ("cat.bin", "song.mp3", "report.pdf", "notes.txt")
    found = ask(cli, "What is this?", *(word for name in names for word in ("--attach", name)))
    assert found["kinds"] == ["image", "audio", "file", "file"]
    assert [name in found["asked"][0] for name in names] == [True] * 4


def test_an_address_is_passed_on_and_not_opened(cli: Any) -> None:
    found = ask(cli, "What is this?", "--attach", "https://cats.invalid/tom.png")
    assert found["kinds"] == ["image"]


def test_what_the_model_does_not_take_is_refused_before_anything_runs(cli: Any) -> None:
    Path("cat.png").write_bytes(PNG)
    done = cli("run", "What is this?", "--only", "choir/*", "--model", "choir/deaf", "--attach", "cat.png")
    assert done.exit_code == 2
    assert "lead with another model, or give the content as text" in done.stderr
    assert not Path("runs").exists()


def test_a_later_turn_of_a_session_still_sees_the_image(cli: Any) -> None:
    Path("cat.png").write_bytes(PNG)
    ask(cli, "What is this?", "--attach", "cat.png", "--session", "ada")
    Path("cat.png").unlink()
    assert ask(cli, "And the colour?", "--session", "ada")["kinds"] == ["image"]


def test_instructions_are_a_text_or_a_file(cli: Any) -> None:
    Path("style.txt").write_text("\ufeffIn French.\n", encoding="utf-8")
    assert ask(cli, "Hello", "--instructions", "In German.")["told"] == "In German."
    assert ask(cli, "Hello", "--instructions", "@style.txt")["told"] == "In French."


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "celsius": {"type": "number"}}}


def test_an_answer_schema_gives_validated_json(cli: Any) -> None:
    Path("schema.json").write_text(json.dumps({**SCHEMA, "required": ["city", "celsius"]}), encoding="utf-8")
    typed = ("--instructions", "as JSON", "--answer-schema", "schema.json")
    assert ask(cli, "How warm?", *typed) == {"city": "Oslo", "celsius": 12}
    whole = answer(cli("run", "How warm?", *LEAD, *typed, "--json"))
    assert whole["output"] == {"city": "Oslo", "celsius": 12}
    shown = cli("run", "How warm?", *LEAD, *typed).stdout
    assert '\n{\n  "city": "Oslo",\n  "celsius": 12\n}\n' in shown
    assert "Twelve degrees" not in shown


def test_a_schema_that_no_answer_satisfies_fails_and_prints_nothing_unvalidated(cli: Any) -> None:
    Path("schema.json").write_text('{"type": "array"}', encoding="utf-8")
    done = cli("run", "How warm?", *LEAD, "--instructions", "as JSON", "--answer-schema", "schema.json", "--quiet")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "the run ended without an answer: format" in done.stderr
    assert done.stderr.count("\n") == 1


# -- text as it is written, without a terminal -------------------------------------------------------------------------


def test_a_pipe_gets_no_pieces_unless_it_asks_for_them(cli: Any) -> None:
    kinds = [json.loads(line)["t"] for line in cli("run", "Hello", *LEAD, "--events").stdout.splitlines()]
    assert "text" not in kinds
    streamed = [json.loads(line) for line in cli("run", "Hello", *LEAD, "--events", "--stream").stdout.splitlines()]
    pieces = [record["text"] for record in streamed if record["t"] == "text" and record["kind"] == "answer"]
    assert "".join(pieces) == streamed[-1]["answer"]
    done = cli("run", "Hello", *LEAD, "--stream")
    assert done.stdout.count('"asked"') == 1
