"""The official JSON-Schema-Test-Suite, as it is laid out in the shared test data."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

DIALECTS = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}


class Case(NamedTuple):
    """One value of one group, and whether it is valid."""

    dialect: str
    file: str
    group: str
    schema: Any
    test: str
    data: Any
    valid: bool


def data_root() -> Path:
    """Where the shared test data lies."""
    named = os.environ.get("CONCERTINO_TEST_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[4] / "shared" / "data"


def cases(dialect: str) -> Iterator[Case]:
    """Every required case of a dialect."""
    for file in sorted((data_root() / "json_schema_test_suite" / "tests" / dialect).glob("*.json")):
        for group in json.loads(file.read_text()):
            schema = group["schema"]
            if type(schema) is dict and "$schema" not in schema:
                schema = {"$schema": DIALECTS[dialect], **schema}
            for test in group["tests"]:
                yield Case(
                    dialect,
                    file.name,
                    group["description"],
                    schema,
                    test["description"],
                    test["data"],
                    test["valid"],
                )


def remotes(dialect: str) -> dict[str, Any]:
    """The documents that the cases of a dialect expect at http://localhost:1234/."""
    root = data_root() / "json_schema_test_suite" / "remotes"
    names = {file: file.relative_to(root).as_posix() for file in sorted(root.rglob("*.json"))}
    wanted = {
        file: name for file, name in names.items() if name.startswith(dialect) or not name.startswith(("draft", "v1"))
    }
    return {f"http://localhost:1234/{name}": json.loads(file.read_text()) for file, name in wanted.items()}
