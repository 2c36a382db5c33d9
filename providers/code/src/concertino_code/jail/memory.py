# Where rights change from call to call, each call is one system call: no pathlib.
# ruff: noqa: PTH123, PTH208
"""How much memory a tree of processes holds: private pages and shared memory of all of them together.

First the cheap figure, which counts pages that several processes share once for each, and so is never too low; only
where that exceeds the limit, the exact one. File pages do not count: the kernel takes them back when it wants.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

_MOST_PROCESSES = 4096


class Tree:
    """The processes that have come from some roots.

    Args:
        processes: an open handle of the host's /proc, because the jail's shows the jail.
    """

    def __init__(self, processes: int) -> None:
        self._processes = processes

    def exceeds(self, roots: Iterable[int], limit: int) -> tuple[bool, int]:
        """Whether the tree holds more than `limit` bytes, and how many it holds (at most)."""
        members = self.members(roots)
        held = sum(self._resident(pid) for pid in members)
        if held > limit:
            # The cheap figure counts a shared page once for each process; the kernel walks all pages for the exact one.
            held = sum(self._proportional(pid) for pid in members)
        return held > limit, held

    def members(self, roots: Iterable[int]) -> list[int]:
        """The roots and everything below them."""
        found: list[int] = []
        waiting = list(roots)
        while waiting and len(found) < _MOST_PROCESSES:
            pid = waiting.pop()
            found.append(pid)
            waiting += self.children(pid)
        return found

    def children(self, pid: int) -> list[int]:
        """The children of all threads of a process."""
        found: list[int] = []
        try:
            tasks = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._processes)
        except OSError:
            return found
        try:
            for task in os.listdir(tasks):
                found += [int(word) for word in self._read(f"{pid}/task/{task}/children").split()]
        finally:
            os.close(tasks)
        return found

    def _resident(self, pid: int) -> int:
        held = 0
        for line in self._read(f"{pid}/status").splitlines():
            if line.startswith((b"RssAnon:", b"RssShmem:")):
                held += int(line.split()[1]) << 10
        return held

    def _proportional(self, pid: int) -> int:
        text = self._read(f"{pid}/smaps_rollup")
        if not text:
            return self._resident(pid)
        lines = [line.split() for line in text.splitlines() if line.startswith((b"Pss_Anon:", b"Pss_Shmem:"))]
        return sum(int(words[1]) << 10 for words in lines) if lines else self._resident(pid)

    def _read(self, path: str) -> bytes:
        try:
            handle = os.open(path, os.O_RDONLY, dir_fd=self._processes)
        except OSError:
            return b""
        try:
            return os.read(handle, 1 << 16)
        except OSError:
            return b""  # it ended meanwhile
        finally:
            os.close(handle)


def address_space() -> int:
    """Bytes of address space of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
