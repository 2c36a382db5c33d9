"""The pattern dialect: what is read, what is refused, and that matching is right and bounded."""

import random
import re
import time
from contextlib import suppress

import pytest
from concertino.schema import InstanceRefused, SchemaRefused, compile_schema
from concertino.schema.patterns import Pattern
from linear import assert_linear


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        ("a$", "a\n", False),
        (r"^\d$", "٣", False),
        (r"^\w$", "é", False),
        (r"^\s$", "\ufeff", True),
        (r"^\s$", "\x85", False),
        ("^.$", "\u2028", False),
        ("^.$", "\U0001f600", True),
        (r"^[^\S\n]$", "\t", True),
        (r"^\u{1F600}$", "\U0001f600", True),
        (r"^\ud83d\ude00$", "\U0001f600", True),
        (r"^\x41\u0042\cA\t\0$", "AB\x01\t\0", True),
        (r"^[\b]$", "\b", True),
        (r"\bfoo\b", "a foo!", True),
        (r"\bfoo\b", "afoo", False),
        (r"^é\Bà", "éà", True),
        (r"^\p{Lu}\P{Lu}+$", "Éa1", True),
        (r"^\p{General_Category=Decimal_Number}$", "٣", True),
        ("^a{,2}$", "a{,2}", True),
        ("^${{x}}$", "${{x}}", False),
        (r"^\$\{\{x}}$", "${{x}}", True),
        ("^[a-]+$", "a-", True),
        (r"^[-\d]+$", "1-", True),
        (r"^[\w-]+$", "a-", True),
        (r"^[\]\-]+$", "]-", True),
        ("^[&&~~[]+$", "&[~", True),
        ("^(?<year>[0-9]{4})(?:-(?P<month>[0-9]{2}))?$", "2024-05", True),
        ("^a+?b*?$", "aab", True),
        ("^(|a)+$", "aaa", True),
        ("", "", True),
    ],
)
@pytest.mark.parametrize("backend", ["auto", "python"])
def test_a_pattern_means_the_same_in_both_back_ends(pattern: str, text: str, matches: bool, backend: str) -> None:
    assert compile_schema({"pattern": pattern}, backend=backend).is_valid(text) is matches  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?=a)", "pattern_not_linear"),
        ("(?<!a)", "pattern_not_linear"),
        (r"(a)\1", "pattern_not_linear"),
        (r"\k<a>", "pattern_not_linear"),
        ("(?i)a", "pattern_unsupported"),
        (r"\Aa", "pattern_unsupported"),
        (r"a\Z", "pattern_unsupported"),
        ("[]", "pattern_unsupported"),
        ("x" * 5000, "pattern_unsupported"),
        ("(a", "pattern_syntax"),
        ("a)", "pattern_syntax"),
        ("*a", "pattern_syntax"),
        ("a**", "pattern_syntax"),
        ("a{2,1}", "pattern_syntax"),
        ("^*", "pattern_syntax"),
        ("[b-a]", "pattern_syntax"),
        (r"[a-\d]", "pattern_syntax"),
        (r"[+-\d]", "pattern_syntax"),
        (r"[\w-z]", "pattern_syntax"),
        (r"\ud800", "pattern_syntax"),
        (r"\u00", "pattern_syntax"),
        ("\\", "pattern_syntax"),
    ],
)
@pytest.mark.parametrize("backend", ["auto", "python"])
def test_a_pattern_outside_the_dialect_is_refused_with_a_reason(pattern: str, reason: str, backend: str) -> None:
    for schema in ({"pattern": pattern}, {"patternProperties": {pattern: {}}}):
        with pytest.raises(SchemaRefused) as caught:
            compile_schema(schema, backend=backend)  # type: ignore[arg-type] # a text of parametrize
        assert caught.value.reason == reason


def random_pattern(rng: random.Random, depth: int = 0) -> str:
    if depth > 3 or rng.random() < 0.4:
        return rng.choice(["a", "b", "c", "[ab]", "[^a]", ".", "^", "$", r"\b", r"\B", r"\d", r"\W"])
    kind = rng.randrange(4)
    inner = random_pattern(rng, depth + 1)
    if kind == 0:
        return f"(?:{inner}|{random_pattern(rng, depth + 1)})"
    if kind == 1:
        return f"(?:{inner}){rng.choice(['*', '+', '?', '{2}', '{1,3}', '{0,}'])}"
    return inner + random_pattern(rng, depth + 1)


@pytest.mark.parametrize("backend", ["auto", "python"])
def test_both_back_ends_agree_with_pythons_engine_on_random_patterns(backend: str) -> None:
    rng = random.Random(5)
    for _ in range(500):
        pattern = random_pattern(rng)
        validator = compile_schema({"pattern": pattern}, backend=backend)  # type: ignore[arg-type] # as above
        # Python's `$` also matches before a final line end, its classes are not ASCII by default, and before
        # 3.14 its `\\B` fails on the empty text
        python = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
        for _ in range(6):
            text = "".join(rng.choice("abc1 -") for _ in range(rng.randrange(1, 7)))
            assert validator.is_valid(text) is (python.search(text) is not None), (pattern, text)


def test_samples_match_their_patterns() -> None:
    rng = random.Random(6)
    found = 0
    for _ in range(400):
        pattern = random_pattern(rng)
        sample = Pattern.read(pattern).sample
        found += sample is not None and compile_schema({"pattern": pattern}).is_valid(sample)
    assert found > 200


EXPLOSIVE = ["^(a+)+$", "^(a|a|ab)*$", "^(a*)*b$", "a*a*a*a*b", "^((a|b)*a){9}$", "^(.*)*x$"]


@pytest.mark.parametrize("pattern", EXPLOSIVE)
def test_matching_is_linear_where_backtracking_would_explode(pattern: str) -> None:
    validator = compile_schema({"pattern": pattern}, backend="rust")
    assert_linear(lambda: validator.is_valid("a" * 1_000_000 + "!"), 1_000_000)


@pytest.mark.parametrize("pattern", EXPLOSIVE)
def test_matching_by_backtracking_is_given_up_in_time(pattern: str) -> None:
    validator = compile_schema({"items": {"pattern": pattern}}, backend="python")
    started = time.thread_time()
    with suppress(InstanceRefused):
        assert not validator.is_valid(["a" * 5_000 + "!"] * 100)
    assert time.thread_time() - started < 5
