"""The folder of a synthesised domain: every artefact a file of its own, written whole or not at all.

    settings.json   what was asked for       schema.json, subjects.json, tools.json, intents.json
    entries/        a file for each batch    tasks/, evolved/, judged/   a file for each task
    domain.json     the finished domain      tasks.jsonl, report.json    its tasks and how they came about

The invariant: a file that is there is finished. So a run that was cut off continues with the first one that is missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from concertino_bench.tasks.task import DataError, Task
from concertino_bench.toolkits.replaying import Operated
from concertino_bench.toolkits.toolkit import Database

from .rows import TaskRow, make_task
from .sandboxed import SandboxedToolkit, ToolCode, installed_runner
from .schemas import Schema


class Folder:
    """A folder of artefacts.

    Args:
        path: of the folder; made at the first write.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def load(self, name: str) -> Any:
        """An artefact, None if it is not there.

        Raises:
            DataError: it is there and is not JSON.
        """
        file = self.path / f"{name}.json"
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise DataError(f"{file} cannot be read: {why}; remove it to have it made again") from error

    def save(self, name: str, data: Any) -> None:
        """Write an artefact, whole or not at all.

        Raises:
            DataError: it cannot be written.
        """
        self.write(f"{name}.json", json.dumps(data, indent=1, ensure_ascii=False) + "\n")

    def write(self, name: str, text: str) -> None:
        """Write a file, whole or not at all.

        Raises:
            DataError: it cannot be written.
        """
        file = self.path / name
        # Written aside and moved: a file that is there is finished, which is what continuing rests on.
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(text, encoding="utf-8")
            beside.replace(file)
        except OSError as error:
            raise DataError(f"{file} cannot be written: {error.strerror}") from error
        finally:
            with suppress(OSError):  # on a read-only disk, even what is not there cannot be removed
                beside.unlink(missing_ok=True)

    def write_rows(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write JSON Lines."""
        self.write(name, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


# Every task of a folder asks for its toolkit; runs act in `fresh()` copies of it.
@lru_cache(maxsize=8)
def open_domain(path: str) -> SandboxedToolkit:
    """The toolkit of a finished folder; its functions run with the installed tool `code/python`.

    Raises:
        DataError: the folder has no finished domain.
        PoolError: there is no sandbox installed.
    """
    data = Folder(path).load("domain")
    if data is None:
        raise DataError(
            f"{Path(path) / 'domain.json'} is not there; `concertino bench synthesise --out {path}` "
            "continues the folder"
        )
    try:
        schema = Schema.from_json(data["schema"])
        tools = [ToolCode.from_json(tool) for tool in data["tools"]]
        database, policy = Database(data["database"]), str(data["schema"]["policy"])
    except (KeyError, TypeError) as error:
        raise DataError(f"{Path(path) / 'domain.json'} is not a domain: {error!r}") from error
    return SandboxedToolkit(database, tools, installed_runner(), instructions=policy, schema=schema)


def folder_tasks(path: str | Path) -> Iterator[Task]:
    """The tasks of a finished folder.

    Raises:
        DataError: the folder is not finished, or a row is wrong.
    """
    folder = Path(path).resolve()
    file = folder / "tasks.jsonl"
    data = Folder(folder).load("domain")
    if data is None or not file.is_file():
        raise DataError(f"{folder} has no finished tasks; `concertino bench synthesise --out {folder}` continues it")
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            given = json.loads(line)
            operations, policy = Operated.from_json(given["operations"]).to_json(), data["schema"]["policy"]
            row, where = TaskRow.from_json(given), {"folder": str(folder)}
            yield make_task(data["name"], row, given["digest"], operations, policy, split="train", folder=where)
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{file}:{number}: {error}; expected a row that `synthesise` has written") from error
