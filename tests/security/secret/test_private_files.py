"""What is kept of runs is for its user alone, from the moment it is there, under every umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import concertino as ct
import pytest
from click.testing import CliRunner
from concertino.cli import doctor, seen
from concertino.cli.traces import traces
from concertino.core.private_files import make_private_folder, open_private, too_open, write_private
from concertino.testing import Recorder, ScriptedModel, fake_tool
from concertino.traces.index import index_of, keep_facts
from concertino.traces.journal import Journal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="rights of files are those of POSIX")

CALL = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
FINAL = '<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
ANSWER = "<answer>done</answer>"


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o027], ids=lambda mask: f"umask {mask:03o}", autouse=True)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def made_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def rights(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


async def _run(folder: Path) -> None:
    tool = fake_tool("look", returns="word " * 40_000, max_chars=300_000)
    leader = ct.Orchestrator(ScriptedModel(CALL, FINAL, ANSWER))
    await leader.run("?", pool=ct.Pool.of(tool), trace=folder / "deep" / "traces")


async def _attachment(folder: Path) -> None:
    tool = fake_tool("look", returns=lambda _: ct.File(b"abc", name="a.txt"))
    leader = ct.Orchestrator(ScriptedModel(CALL, FINAL, ANSWER))
    await leader.run("?", pool=ct.Pool.of(tool), trace=folder / "traces")


async def _session(folder: Path) -> None:
    session = ct.Session("ada", folder / "sessions")
    leader = ct.Orchestrator(ScriptedModel(CALL, FINAL, ANSWER))
    await leader.run("?", pool=ct.Pool.of(fake_tool("look", returns=1)), history=session)
    session.fork("ada-2")


async def _recording(folder: Path) -> None:
    recording = Recorder(folder / "recordings" / "run.jsonl", "record")
    leader = ct.Orchestrator(recording.model(ScriptedModel(CALL, FINAL, ANSWER), "leader"), **recording.hooks)
    await leader.run("?", pool=ct.Pool.of(fake_tool("look", returns=1)))


async def _damaged(folder: Path) -> None:
    make_private_folder(folder / "traces")
    path = folder / "traces" / "a.trace.jsonl"
    with Journal.create(path, {"t": "header", "v": 1}) as journal:
        journal.append({"t": "x"})
    fd = open_private(path, os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"broken\nlines\n")
    os.close(fd)
    journal, _ = Journal.resume(path)
    journal.close()
    assert journal.damage is not None
    assert journal.damage.saved is not None


async def _saved(folder: Path) -> None:
    leader = ct.Orchestrator(ScriptedModel(CALL, FINAL, ANSWER))
    run = await leader.run("?", pool=ct.Pool.of(fake_tool("look", returns=1)))
    run.trace.save(folder / "saved" / "a.trace.jsonl")


async def _exported(folder: Path) -> None:
    await _saved(folder)
    saved, out = str(folder / "saved" / "a.trace.jsonl"), folder / "saved"
    assert CliRunner().invoke(traces, ["export", saved, "-o", str(out / "a.json")]).exit_code == 0
    assert CliRunner().invoke(traces, ["redact", saved, "-o", str(out / "b.trace.jsonl")]).exit_code == 0


async def _indexed(folder: Path) -> None:
    await _saved(folder)
    path = folder / "saved" / "a.trace.jsonl"
    keep_facts(path, path.stat(), {"summary": {}})
    assert index_of(path).is_file()


async def _seen(folder: Path) -> None:
    seen._write(folder / "cache" / "concertino" / "seen.json", {"a": 1})


WRITERS: dict[str, Callable[[Path], Awaitable[None]]] = {
    "a trace and its side files": _run,
    "an attachment": _attachment,
    "a session and its fork": _session,
    "a recording": _recording,
    "what was cut off a damaged trace": _damaged,
    "a saved trace": _saved,
    "an export and a copy": _exported,
    "an index": _indexed,
    "the cache of the command line": _seen,
}


@pytest.mark.parametrize("writer", WRITERS)
async def test_only_its_user_may_read(writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concertino.traces.index.FROM_BYTES", 10)
    await WRITERS[writer](tmp_path)
    made = made_in(tmp_path)
    assert made
    for path in made:
        assert rights(path) == (0o700 if path.is_dir() else 0o600), path
    assert too_open(made) == []


def test_a_link_in_a_folder_where_others_may_write_is_not_followed(tmp_path: Path) -> None:
    shared, other = tmp_path / "shared", tmp_path / "other"
    shared.mkdir()
    shared.chmod(0o1777)
    other.write_text("of somebody else")
    (shared / "run.jsonl").symlink_to(other)
    for flags in (os.O_APPEND, os.O_TRUNC, os.O_EXCL):
        with pytest.raises(OSError, match=r"symbolic links|exists"):
            open_private(shared / "run.jsonl", os.O_WRONLY | os.O_CREAT | flags)
    write_private(shared / "run.jsonl", b"mine")
    assert not (shared / "run.jsonl").is_symlink()
    assert other.read_text() == "of somebody else"


def test_a_link_in_a_folder_of_the_user_is_the_users_own_matter(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    make_private_folder(folder)
    (folder / "link").symlink_to(tmp_path / "real")
    os.close(open_private(folder / "link", os.O_WRONLY | os.O_CREAT))
    assert rights(tmp_path / "real") == 0o600


def test_rights_of_what_was_there_already_are_reported_and_not_changed(tmp_path: Path) -> None:
    folder, file = tmp_path / "open", tmp_path / "open" / "old.trace.jsonl"
    folder.mkdir()
    folder.chmod(0o755)
    file.write_text("x")
    file.chmod(0o644)
    make_private_folder(folder)
    os.close(open_private(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    assert (rights(folder), rights(file)) == (0o755, 0o644)
    assert too_open([folder, file, tmp_path / "missing"]) == [folder, file]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    write_private(path, b"old")

    def fails(self: Path, target: Path) -> None:
        raise OSError("no")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="no"):
        write_private(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_something_else_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    with pytest.raises(OSError, match=r"exists|directory"):
        make_private_folder(tmp_path / "a")
    with pytest.raises(OSError, match=r"exists|directory"):
        make_private_folder(tmp_path / "a" / "b")


def test_the_doctor_names_traces_that_others_can_read(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    old, new = tmp_path / "old.trace.jsonl", tmp_path / "new.trace.jsonl"
    old.write_text("x")
    old.chmod(0o644)
    os.close(open_private(new, os.O_WRONLY | os.O_CREAT))
    found = [finding for finding in doctor._traces(tmp_path) if finding.level == "warning"]
    assert [(each.text, each.step) for each in found] == [
        (f"other users of this machine may read 1 file in {tmp_path}", f"chmod -R go-rwx {tmp_path}")
    ]
    assert rights(old) == 0o644
    tmp_path.chmod(0o700)
    assert [finding.level for finding in doctor._traces(tmp_path)] == ["ok"]
