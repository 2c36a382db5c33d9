"""What a mirrored journal writes is elsewhere before a call begins; what is refused there is not begun."""

from __future__ import annotations

import asyncio
from pathlib import Path

import concertino as ct
from concertino.rollouts import RunOrder
from concertino.traces.fence import JournalFenced
from concertino.traces.journal import Journal
from concertino.traces.mirror import mirrored
from rollout_work import Leader, PaidRuns, billed

HEADER = {"t": "header", "v": 1}


class Elsewhere:
    """Another machine: it has what was settled, or refuses it."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.files: dict[str, bytes] = {}
        self.settled: dict[str, bytes] = {}
        self._refuses = refuses

    def write(self, path: Path, offset: int, data: bytes) -> None:
        before = self.files.get(path.name, b"")
        assert offset <= len(before)
        self.files[path.name] = before[:offset] + data

    def keep(self, path: Path, data: bytes) -> None:
        self.files[f"{path.parent.name}/{path.name}"] = data

    async def settle(self) -> None:
        if self._refuses:
            raise JournalFenced("another worker has it")
        await asyncio.sleep(0)
        self.settled = dict(self.files)


def test_a_mirror_gets_every_byte_of_the_journal_and_its_side_files(tmp_path: Path) -> None:
    path, other = tmp_path / "r.trace.jsonl", Elsewhere()
    with mirrored(other), Journal.create(path, HEADER) as journal:
        journal.append({"t": "a", "big": "x" * 100}, limit=50)
        assert journal.must_flush
    with mirrored(other):
        path.write_bytes(path.read_bytes() + b"torn")
        journal, _ = Journal.resume(path)
        with journal:
            journal.append({"t": "b"})
    (side,) = (tmp_path / "r.trace.jsonl.blobs").iterdir()
    assert other.files == {path.name: path.read_bytes(), f"{side.parent.name}/{side.name}": side.read_bytes()}


def test_without_a_mirror_nothing_is_waited_for(tmp_path: Path) -> None:
    with Journal.create(tmp_path / "r.trace.jsonl", HEADER) as journal:
        assert not journal.must_flush


def test_a_call_begins_when_the_mirror_has_its_record_and_is_seen_when_it_has_the_result(tmp_path: Path) -> None:
    other = Elsewhere()
    known: list[tuple[bool, int]] = []

    async def note(n: int, ctx: ct.Context) -> int:
        records = [line for line in other.settled.get("r.trace.jsonl", b"").split(b"\n") if b'"t":"' in line]
        begun = any(b'"t":"intent"' in line and ctx.call_id.encode() in line for line in records)
        known.append((begun, sum(b'"t":"result"' in line for line in records)))
        return n

    @ct.tool
    async def keyed(n: int, *, ctx: ct.Context) -> int:
        """A paid call."""
        return await note(n, ctx)

    @ct.tool
    async def once(n: int, *, ctx: ct.Context) -> int:
        """Another one, beside it."""
        return await note(n, ctx)

    async def main() -> ct.Run:
        pool = ct.Pool.of(keyed, once, ct.ModelSpec("paid/leader", Leader), orchestrator="paid/leader")
        with mirrored(other):
            return await ct.Orchestrator().run("q", pool=pool, trace=tmp_path / "r.trace.jsonl")

    assert asyncio.run(main()).stop == "answered"
    assert all(begun for begun, _ in known)
    assert [results // 2 for _, results in known] == [0, 0, 1, 1, 2, 2]
    copy = tmp_path / "copy.trace.jsonl"
    copy.write_bytes(other.files["r.trace.jsonl"])
    assert ct.Trace.load(copy).finished


def test_a_call_whose_record_the_mirror_refuses_is_not_made(tmp_path: Path) -> None:
    async def main() -> str:
        with mirrored(Elsewhere(refuses=True)):
            return (await PaidRuns(tmp_path / "log").perform(RunOrder("Do it.", folder=str(tmp_path)))).stop

    assert asyncio.run(main()) == "model"
    assert not billed(tmp_path / "log")
