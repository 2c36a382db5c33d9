"""A copy of a trace for others: what is private is taken out and counted, and what happened can still be followed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from click.testing import CliRunner, Result
from concertino.cli.traces import traces
from concertino.core.errors import UsageError
from concertino.testing import ScriptedModel, fake_tool
from concertino.traces.redacted_copy import RedactionReport, write_redacted
from concertino.traces.sealing import VARIABLE, is_sealed, new_key

# In two parts, so that this file names no folder of anybody.
HOME, USERS, ROOT_HOME = (f"/{name}/" for name in ("home", "Users", "root"))
CALL = '<tool_call>{"name": "look", "arguments": {"x": "1"}}</tool_call>'
FINAL = '<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
PICTURE = b"\x89PNG\r\n\x1a\n of ada"


async def record(folder: Path, returns: Any, question: str = "?", answer: str = "done") -> ct.Trace:
    leader = ct.Orchestrator(ScriptedModel(CALL, FINAL, f"<answer>{answer}</answer>"))
    tool = fake_tool("look", returns=returns, max_chars=1_000_000)
    run = await leader.run(question, pool=ct.Pool.of(tool), trace=folder)
    return ct.Trace.load(run.trace.path or "")


async def redact(folder: Path, returns: Any, **options: Any) -> tuple[str, RedactionReport]:
    """The whole text of a copy, side files included, and what was taken out."""
    trace = await record(folder, returns, **options)
    report = write_redacted(trace, folder / "copy" / "shared.trace.jsonl")
    return text_of(folder / "copy"), report


def text_of(folder: Path) -> str:
    return "".join(file.read_text() for file in folder.rglob("*") if file.is_file())


PRIVATE: dict[str, tuple[str, Any, str]] = {
    "a key of a service": ("sk-proj-abcdefghijkl123456", "the key is sk-proj-abcdefghijkl123456", "secrets"),
    "a bearer": ("abc.def-123", "Authorization: Bearer abc.def-123", "secrets"),
    "a password behind its name": ("hunter2-hunter2", "password=hunter2-hunter2", "secrets"),
    "a password under its name": ("correct-horse", {"login": {"password": "correct-horse"}}, "secrets"),
    "a password in an address": ("tr0ub4dor", "https://ada:tr0ub4dor@example.org/", "secrets"),
    "a key of a signed address": ("9f8e7d6c5b", "https://example.org/?sig=9f8e7d6c5b&a=1", "secrets"),
    "a private key": ("MIIEvQ", "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----", "secrets"),
    "an address of mail": ("ada.l+x@mail.example.org", "write to ada.l+x@mail.example.org!", "emails"),
    "addresses of mail in a list": ("bob@example.org", ["bob@example.org", "carol@example.org"], "emails"),
    "a home of Linux": (f"{HOME}lovelace", f"saved as {HOME}lovelace/notes.txt", "homes"),
    "a home of macOS": (f"{USERS}lovelace", f"saved as {USERS}lovelace/notes.txt", "homes"),
    "a home of Windows": ("lovelace", r"saved as C:\Users\lovelace\notes.txt", "homes"),
    "a home in a traceback": ("lovelace", f'File "{HOME}lovelace/a.py", line 3', "homes"),
    "the home of root": (f"{ROOT_HOME}", f"saved as {ROOT_HOME}notes.txt", "homes"),
    "the name of a user elsewhere": ("lovelace", f"{HOME}lovelace/a, and lovelace wrote it", "users"),
    "a large result": ("bob@example.org", "word " * 30_000 + "bob@example.org", "emails"),
    "a key of a dict": ("bob@example.org", {"bob@example.org": 1}, "emails"),
}


@pytest.mark.parametrize("what", PRIVATE)
async def test_a_copy_shows_no_longer(what: str, tmp_path: Path) -> None:
    private, returns, kind = PRIVATE[what]
    text, report = await redact(tmp_path, returns)
    assert private not in text
    assert report.taken_out[kind] > 0


async def test_a_copy_shows_no_secret_that_the_process_knows(tmp_path: Path) -> None:
    trace = await record(tmp_path, "it is 'four plain words here', in an old trace")
    ct.keep_secret("four plain words here")
    report = write_redacted(trace, tmp_path / "copy.trace.jsonl")
    assert "four plain words" not in (tmp_path / "copy.trace.jsonl").read_text()
    assert report.taken_out["secrets"] == 2  # the result, and what the model read


async def test_bytes_of_attachments_are_left_out_and_their_marks_fit_what_stands_there(tmp_path: Path) -> None:
    def two(_: Any) -> dict[str, ct.Attachment]:
        return {"a": ct.Image(PICTURE), "b": ct.File(b"ada's own words", name="b.txt")}

    trace = await record(tmp_path, two)
    old = [each.sha256 for each in trace.attachments()]
    report = write_redacted(trace, tmp_path / "copy" / "c.trace.jsonl")
    copy = ct.Trace.load(report.path)
    assert report.taken_out["attachments"] == 2
    assert [each.data for each in copy.attachments()] == [
        b"attachment 1, taken out of this copy",
        b"attachment 2, taken out of this copy",
    ]
    assert "ada's own" not in text_of(tmp_path / "copy")
    assert all(digest[:12] not in text_of(tmp_path / "copy") for digest in old)
    assert copy.attachments()[0].mark in str(copy.observations()[0].content)


async def test_ids_of_tokens_are_left_out(tmp_path: Path) -> None:
    reply = ct.Reply(CALL, token_ids=(1, 2), logprobs=(-0.5, -0.25), prompt_token_ids=(7, 8))
    leader = ct.Orchestrator(ScriptedModel(reply, FINAL, "<answer>done</answer>"))
    run = await leader.run("?", pool=ct.Pool.of(fake_tool("look", returns=1)), trace=tmp_path)
    report = write_redacted(ct.Trace.load(run.trace.path or ""), tmp_path / "copy")
    assert report.taken_out["tokens"] == 3
    assert "token_ids" not in (tmp_path / "copy").read_text()


async def test_the_copy_has_the_same_records_and_is_shown_exported_and_replayed(tmp_path: Path) -> None:
    question = f"Who is ada@example.org, whose notes are in {HOME}lovelace?"
    trace = await record(tmp_path, {"file": f"{HOME}lovelace/a", "n": [1, 2.5]}, question, "It is ada@example.org")
    report = write_redacted(trace, tmp_path / "copy.trace.jsonl")
    copy = ct.Trace.load(report.path)
    assert [record["t"] for record in copy.records] == [record["t"] for record in trace.records]
    assert copy.run_id == trace.run_id == report.run_id
    assert copy.question == "Who is [email], whose notes are in [home]?"
    assert copy.observations()[0].content == {"file": "[home]/a", "n": [1, 2.5]}
    assert ct.replay(copy).answer == "It is [email]"
    for command in ("show", "replay", "export"):
        done = CliRunner().invoke(traces, [command, str(report.path)])
        assert done.exit_code == 0, done.output
        assert "[email]" in done.output
        assert "lovelace" not in done.output


async def test_what_is_to_stay_stays(tmp_path: Path) -> None:
    trace = await record(tmp_path, f"bob@example.org in {HOME}lovelace, key sk-proj-abcdefghijkl123456")
    report = write_redacted(trace, tmp_path / "copy", keep=("emails", "homes"))
    text = (tmp_path / "copy").read_text()
    assert f"bob@example.org in {HOME}[user], key [key]" in text
    assert report.taken_out.keys() == {"secrets", "users", "attachments", "tokens"}


@pytest.mark.parametrize("kind", ["secrets", "tokens", "attachments", "mails"])
async def test_what_must_not_stay_is_refused(kind: str, tmp_path: Path) -> None:
    trace = await record(tmp_path, 1)
    with pytest.raises(UsageError, match="expected emails, homes, users"):
        write_redacted(trace, tmp_path / "copy", keep=(kind,))
    assert not (tmp_path / "copy").exists()


async def test_the_original_and_what_lies_there_are_not_touched(tmp_path: Path) -> None:
    trace = await record(tmp_path, "bob@example.org")
    assert trace.path is not None
    before = trace.path.read_bytes()
    for target in (trace.path, tmp_path / "there"):
        target.touch()
        lies = target.read_bytes()
        with pytest.raises(UsageError, match="nothing is overwritten"):
            write_redacted(trace, target)
        assert target.read_bytes() == lies
    assert trace.path.read_bytes() == before


async def test_a_copy_of_a_sealed_trace_is_readable_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cryptography", reason="sealed traces need the package cryptography")
    monkeypatch.setenv(VARIABLE, new_key())
    trace = await record(tmp_path, "word " * 30_000)
    assert is_sealed(trace.path or Path())
    report = write_redacted(trace, tmp_path / "copy.trace.jsonl")
    monkeypatch.delenv(VARIABLE)
    assert ct.Trace.load(report.path).summary().answer == "done"


async def _invoke(folder: Path, *arguments: str) -> Result:
    trace = await record(folder, "bob@example.org")
    return CliRunner().invoke(traces, ["redact", str(trace.path), "-o", str(folder / "copy"), *arguments])


async def test_the_command_says_what_it_took_out(tmp_path: Path) -> None:
    done = await _invoke(tmp_path)
    assert done.exit_code == 0
    assert [line.split()[:2] for line in done.output.splitlines()[1:4]] == [
        ["TAKEN", "OUT"],
        ["secrets", "0"],
        ["emails", "2"],
    ]


async def test_the_command_says_it_in_json(tmp_path: Path) -> None:
    data = json.loads((await _invoke(tmp_path, "--json", "--keep", "users")).output)
    assert data["taken_out"] == {"secrets": 0, "emails": 2, "homes": 0, "attachments": 0, "tokens": 0}
    assert data.keys() == {"path", "run_id", "records", "taken_out"}


@pytest.mark.parametrize("text", ["max_tokens=100", "the user wrote", "a@b", "see @ada", "/rooted-tree", "rates 3@4.5"])
async def test_plain_texts_stay_as_they_are(text: str, tmp_path: Path) -> None:
    _, report = await redact(tmp_path, text)
    assert ct.Trace.load(report.path).observations()[0].content == text
