"""The official test suite, required tests of draft 7 and 2020-12 (bar J3).

Below admission: Rust's library with the suite's remote documents must be right in every
case. Through admission: both back ends must be right in every case whose schema is admitted. Not admitted, by
design, are schemas that need another document (`remote_ref`), an inner `$id` (`embedded_id`) or a metaschema
of their own (`unknown_dialect`). Not comparable are nine cases of 2020-12 that want formats not to be
asserted.
"""

from collections import Counter

import pytest
from concertino.schema import SchemaRefused, compile_schema
from concertino.schema.formats import FORMATS

from .suite import DIALECTS, cases, data_root, remotes

pytestmark = pytest.mark.skipif(
    not (data_root() / "json_schema_test_suite" / "tests").is_dir(),
    reason="no official suite: set CONCERTINO_TEST_DATA to the shared test data",
)
TOTALS = {"draft7": 927, "draft2020-12": 1299}
ADMITTED = {"draft7": 876, "draft2020-12": 1176}
DRAFTS = {"draft7": "Draft7", "draft2020-12": "Draft202012"}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("backend", ["auto", "python"])
def test_every_case_with_an_admitted_schema_is_right(dialect: str, backend: str) -> None:
    refused: Counter[str] = Counter()
    wrong, right = [], 0
    for case in cases(dialect):
        if "only an annotation" in case.test and case.schema["format"] in FORMATS:
            refused["formats are asserted here"] += 1
            continue
        schema = case.schema if type(case.schema) is dict else {"$schema": DIALECTS[dialect], "allOf": [case.schema]}
        try:
            valid = compile_schema(schema, backend=backend).is_valid(case.data)  # type: ignore[arg-type]
        except SchemaRefused as refusal:
            refused[refusal.reason] += 1
            continue
        right += valid is case.valid
        if valid is not case.valid:
            wrong.append((case.file, case.group, case.test))
    assert wrong == []
    assert set(refused) <= {"remote_ref", "embedded_id", "unknown_dialect", "formats are asserted here"}
    assert right >= ADMITTED[dialect]
    assert right + refused.total() == TOTALS[dialect]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_rust_below_admission_is_right_in_every_case(dialect: str) -> None:
    library = pytest.importorskip("jsonschema_rs")
    registry = library.Registry(list(remotes(dialect).items()), draft=getattr(library, DRAFTS[dialect]))
    wrong = []
    total = 0
    for case in cases(dialect):
        total += 1
        compiled = library.validator_for(
            case.schema, offline=True, registry=registry, pattern_options=library.RegexOptions()
        )
        if compiled.is_valid(case.data) is not case.valid:
            wrong.append((case.file, case.group, case.test))
    assert total == TOTALS[dialect]
    assert wrong == []
