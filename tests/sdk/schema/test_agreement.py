"""The back ends agree, with each other and with an independent library, on random schemas and values (bar
J3).

2,000 pairs by default; CONCERTINO_FUZZ raises the number.
"""

import os
import random
from dataclasses import replace

import pytest
from concertino.schema import SchemaRefused, compile_schema, explain
from concertino.schema._admission import admission_of
from concertino.schema._backends import rust_verdict
from concertino.schema._wording import MAX_PHRASE

from .generators import random_schema, random_value

PAIRS = int(os.environ.get("CONCERTINO_FUZZ", "2000"))


@pytest.mark.timeout(600)
def test_the_back_ends_agree_on_random_pairs_and_every_no_is_explained() -> None:
    pytest.importorskip("jsonschema_rs", reason="one back end alone has nothing to agree with")
    rng = random.Random(20)
    pairs = verdicts = 0
    while pairs < PAIRS:
        schema = random_schema(rng)
        try:
            python = compile_schema(schema, backend="python")
        except SchemaRefused:
            continue
        # small values: Rust can be asked about recursive schemas too, which `compile_schema` would not do
        rust = rust_verdict(replace(admission_of(schema), multiplies=False))
        for _ in range(10):
            pairs += 1
            value = random_value(rng)
            valid = python.is_valid(value)
            verdicts += valid
            assert valid is rust(value), (schema, value)
            violations = python.check(value)
            assert valid is (violations == ())
            assert len(violations) <= 5
            assert all(len(each.expected) <= MAX_PHRASE and len(each.got) <= MAX_PHRASE for each in violations)
            assert list(violations) == sorted(violations, key=lambda each: (each.pointer, each.keyword))
            assert len(explain(violations, python)) <= 200
    assert 0.2 < verdicts / pairs < 0.8, "both verdicts must be frequent for the agreement to mean something"


def test_the_evaluator_agrees_with_an_independent_python_library() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    rng = random.Random(21)
    pairs = 0
    while pairs < min(PAIRS, 2000):
        schema = random_schema(rng)
        text = repr(schema)
        if "pattern" in text or "format" in text or "multipleOf" in text or "e+20" in text or "e-07" in text:
            continue  # there, the library's reading is known to differ (Python's re, its formats, float remainders)
        try:
            ours = compile_schema(schema, backend="python")
        except SchemaRefused:
            continue
        cls = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        for _ in range(10):
            pairs += 1
            value = random_value(rng)
            assert ours.is_valid(value) is cls(schema).is_valid(value), (schema, value)
