"""The back ends agree on random schemas and values (bar J3).

1,000 pairs by default; CONCERTINO_FUZZ raises the number.
"""

import os
import random
from collections import Counter

import pytest
from concertino.schema import InstanceRefused, SchemaRefused, Validator, compile_schema, explain
from concertino.schema.wording import MAX_PHRASE

from .generators import random_schema, random_value

PAIRS = int(os.environ.get("CONCERTINO_FUZZ", "1000"))


def verdict(validator: Validator, value: object) -> bool | str:
    try:
        return validator.is_valid(value)
    except InstanceRefused as refusal:
        return refusal.reason


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_back_ends_agree_on_random_pairs_and_every_no_is_explained() -> None:
    pytest.importorskip("jsonschema_rs", reason="one back end alone has nothing to agree with")
    rng = random.Random(20)
    reasons: Counter[str] = Counter()
    pairs = verdicts = same = 0
    while pairs < PAIRS:
        schema = random_schema(rng)
        try:
            rust = compile_schema(schema, backend="rust")
            python = compile_schema(schema, backend="python")
        except SchemaRefused as refusal:
            reasons[refusal.reason] += 1
            continue
        for _ in range(10):
            pairs += 1
            value = random_value(rng)
            valid = verdict(rust, value)
            verdicts += valid is True
            assert valid is verdict(python, value), (schema, value)
            found = [each.check(value) for each in (rust, python)]
            same += found[0] == found[1]
            for violations in found:
                assert valid is (violations == ())
                assert len(violations) <= 5
                assert all(len(each.expected) <= MAX_PHRASE and len(each.got) <= MAX_PHRASE for each in violations)
                assert list(violations) == sorted(violations, key=lambda each: (each.pointer, each.keyword))
                assert len(explain(violations, python)) <= 200
    # a cycle, or what only jsonschema cannot bound: a repetition beside unevaluatedProperties
    assert set(reasons) == {"ref_cycle", "pattern_not_linear"}
    assert 0.2 < verdicts / pairs < 0.8, "both verdicts must be frequent for the agreement to mean something"
    assert same / pairs > 0.95, "both report the same places and keywords, so the words agree nearly always"
