"""Schemas of real tools are admitted, or refused for a stated reason; their examples are valid."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from concertino.schema import SchemaRefused, compile_schema

from .suite import data_root

ROOT = data_root()
pytestmark = pytest.mark.skipif(
    not (ROOT / "mcp_tools").is_dir(),
    reason="no tool schemas: set CONCERTINO_TEST_DATA to the shared test data",
)


def rows(pattern: str) -> Iterator[Any]:
    for file in sorted(ROOT.glob(pattern)):
        for line in file.read_text().splitlines():
            yield json.loads(line)


def schemas(source: str) -> list[dict[str, Any]]:
    """The different schemas of a source."""
    if source == "mcp_tools":
        found = [row["inputSchema"] for row in rows("mcp_tools/tools.jsonl")]
    elif source == "schemastore":
        found = [row["schema"] for row in rows("schemastore/*.jsonl")]
    elif source == "acebench":
        found = [
            tool.get("arguments") or tool["parameters"] for row in rows("acebench/*.jsonl") for tool in row["function"]
        ]
    elif source == "toolorchestra":
        found = [tool["function"]["parameters"] for tool in json.loads((ROOT / "toolorchestra/tools.json").read_text())]
    else:
        found = [tool["parameters"] for row in rows("bfcl/*.jsonl") for tool in row.get("function", ())]
    return list({json.dumps(schema): schema for schema in found}.values())


REFUSED = {
    "mcp_tools": {"keyword_shape"},  # one draft-4 exclusiveMinimum: true without its `$schema`
    "schemastore": {"pattern_not_linear"},  # look-ahead
    "acebench": {"keyword_shape"},  # type: dict
    "toolorchestra": set(),
    "bfcl": {"keyword_shape"},  # Python's type names throughout
}
LEAST_ADMITTED = {"mcp_tools": 0.99, "schemastore": 0.85, "acebench": 0.85, "toolorchestra": 1.0, "bfcl": 0.0}


@pytest.mark.parametrize("source", REFUSED)
def test_real_schemas_are_admitted_or_refused_for_a_known_reason(source: str) -> None:
    found = schemas(source)
    reasons: Counter[str] = Counter()
    for schema in found:
        try:
            validator = compile_schema(schema)
        except SchemaRefused as refusal:
            reasons[refusal.reason] += 1
            continue
        assert validator.is_valid(validator.example()), schema
    assert found
    assert set(reasons) == REFUSED[source]
    assert 1 - reasons.total() / len(found) >= LEAST_ADMITTED[source]


def test_pythons_type_names_are_refused_with_the_right_name() -> None:
    with pytest.raises(SchemaRefused, match="did you mean 'object'"):
        compile_schema(schemas("bfcl")[0])


@pytest.mark.parametrize("backend", ["auto", "python"])
def test_instances_of_published_schemas_get_the_published_verdict(backend: str) -> None:
    checked = 0
    for row in rows("schemastore/*.jsonl"):
        try:
            validator = compile_schema(row["schema"], backend=backend)  # type: ignore[arg-type]
        except SchemaRefused:
            continue
        for instance in row["instances"]:
            checked += 1
            assert validator.is_valid(instance["data"]) is instance["valid"], (row["name"], instance["file"])
    assert checked > 50
