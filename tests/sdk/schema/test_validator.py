"""Validators: verdicts, violations in our own words, coercion, and what is imported for them."""

import json
import random
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, Literal

import pytest
from concertino.schema import (
    InstanceRefused,
    SchemaRefused,
    Validator,
    Violation,
    compile_schema,
    explain,
)
from concertino.schema.errors import BackendMissing

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "units": {"enum": ["celsius", "fahrenheit"]},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 3},
        "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
    },
    "required": ["city"],
    "additionalProperties": False,
}
GOOD = {"city": "Oslo", "days": 3, "units": "celsius", "tags": ["a", "b"], "when": "2024-02-29"}


@pytest.fixture(params=["auto", "python"])
def weather(request: pytest.FixtureRequest) -> Validator:
    return compile_schema(WEATHER, backend=request.param)


def test_a_valid_value_has_no_violations(weather: Validator) -> None:
    assert weather.is_valid(GOOD)
    assert weather.check(GOOD) == ()
    assert explain((), weather) == ""


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ({"days": "many"}, ['/days: expected integer, got "many"']),
        ({"days": 15}, ["/days: expected a number <= 14, got 15"]),
        ({"days": True}, ["/days: expected integer, got true"]),
        ({"city": "A"}, ['/city: expected at least 2 characters, got "A" (1 character)']),
        ({"units": "Celsius "}, ['/units: expected one of "celsius", "fahrenheit", got "Celsius "']),
        ({"units": "kelvin"}, ['/units: expected one of "celsius", "fahrenheit", got "kelvin"']),
        (
            {"tags": ["a", "b", "a"]},
            ["/tags: expected items that are all different, got equal items at 0 and 2"],
        ),
        (
            {"tags": ["a", 1, "b", "c"]},
            ["/tags: expected at most 3 items, got an array of 4 items", "/tags/1: expected string, got 1"],
        ),
        ({"tags": "a"}, ['/tags: expected array of string, got "a"']),
        ({"when": "2023-02-29"}, ['/when: expected date such as 2024-05-31, got "2023-02-29"']),
        ({"when": 5}, ["/when: expected string (date) or null, got 5"]),
        (
            {"unit": "celsius"},
            ["(root): expected only the properties 'city', 'days', 'units', 'tags', 'when', got 'unit'"],
        ),
        ({"city": None}, ["/city: expected string, got null"]),
    ],
)
def test_each_violation_reads_as_one_line(weather: Validator, change: dict[str, Any], lines: list[str]) -> None:
    assert [str(each) for each in weather.check({**GOOD, **change})] == lines


def test_a_misspelt_property_is_named_from_both_sides(weather: Validator) -> None:
    assert [str(each) for each in weather.check({"citty": "Oslo"})] == [
        "(root): expected only known properties (did you mean 'city'?), got 'citty'",
        "(root): expected required property 'city' (string), got 'citty': rename it?",
    ]


def test_a_violation_is_a_value(weather: Validator) -> None:
    (violation,) = weather.check({"city": 5})
    assert violation == Violation("/city", "type", "string", "5")
    assert hash(violation) == hash(Violation("/city", "type", "string", "5"))
    with pytest.raises(AttributeError):
        violation.pointer = "x"  # type: ignore[misc]


def test_at_most_five_violations_are_reported_in_order() -> None:
    validator = compile_schema({"items": {"type": "integer"}})
    found = validator.check(["x"] * 1000)
    assert [each.pointer for each in found] == ["/0", "/1", "/10", "/11", "/12"]


def test_phrases_stay_short_whatever_the_value() -> None:
    validator = compile_schema(
        {
            "properties": {"a" * 300: {"const": "y" * 500}},
            "additionalProperties": {"type": ["integer", "null"]},
        }
    )
    for violation in validator.check({"a" * 300: "x" * 100_000, "b": {"c" * 1000: 1}, "d": [0] * 1000}):
        assert len(violation.expected) <= 80
        assert len(violation.got) <= 80
        assert len(str(violation)) <= 500


def test_the_meant_alternative_is_followed() -> None:
    shapes = [
        {
            "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
            "required": ["kind", "radius"],
        },
        {
            "properties": {"kind": {"const": "square"}, "side": {"type": "number"}},
            "required": ["kind", "side"],
        },
    ]
    validator = compile_schema({"properties": {"shape": {"oneOf": shapes}}})
    assert [str(each) for each in validator.check({"shape": {"kind": "square", "side": "big"}})] == [
        '/shape/side: expected number, got "big"'
    ]
    assert [str(each) for each in validator.check({"shape": {"kind": "blob"}})] == [
        "/shape: expected object with 'kind', 'radius' or object with 'kind', 'side', got an object with 'kind'"
    ]


@pytest.mark.parametrize(
    ("schema", "value", "line"),
    [
        (
            {"oneOf": [{"type": "integer"}, {"minimum": 0}]},
            5,
            "(root): expected exactly one of: integer or any value, got 5, which fits more than one of them",
        ),
        ({"not": {"type": "null"}}, None, "(root): expected anything but null, got null"),
        ({"properties": {"a": False}}, {"a": 1}, "/a: expected no value here; leave it out, got 1"),
        ({"multipleOf": 5}, 7, "(root): expected a multiple of 5, got 7"),
        ({"exclusiveMinimum": 0}, 0, "(root): expected a number > 0, got 0"),
        ({"pattern": "^a"}, "b", '(root): expected text that matches ^a, got "b"'),
        ({"const": {"a": 1}}, 1, "(root): expected an object with 'a', got 1"),
        (
            {"contains": {"type": "null"}, "minContains": 2},
            [None, 1],
            "(root): expected at least 2 items being null, got an array of 2 items",
        ),
        (
            {"prefixItems": [{}], "items": False},
            [1, 2],
            "(root): expected at most 1 item, got an array of 2 items",
        ),
        ({"minProperties": 2}, {"a": 1}, "(root): expected at least 2 properties, got 1 property"),
        (
            {"propertyNames": {"pattern": "^a"}},
            {"b": 1},
            "(root): expected property names that are text that matches ^a, got 'b'",
        ),
        (
            {"dependentRequired": {"a": ["b"]}},
            {"a": 1},
            "(root): expected property 'b', needed with 'a', got an object with 'a'",
        ),
        (
            {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
            {"a": 1},
            "(root): expected required property 'b', got an object with 'a'",
        ),
        (
            {"type": "object", "unevaluatedProperties": False},
            {"a": 1},
            "(root): expected no further property, got 'a'",
        ),
    ],
)
def test_every_kind_of_keyword_is_put_into_words(schema: dict[str, Any], value: Any, line: str) -> None:
    assert [str(each) for each in compile_schema(schema).check(value)] == [line]


def test_words_do_not_depend_on_the_back_end_or_the_hash_seed() -> None:
    program = (
        "import json,sys; from concertino.schema import *; s,v=json.load(sys.stdin);"
        "a=[compile_schema(s,backend=b) for b in ('auto','python')];"
        "print(*(explain(x.check(v),x,limit=1024) for x in a),sep='\\n=\\n')"
    )
    given = json.dumps([WEATHER, {"citty": 1, "tag": 2, "units": [1], "x": None, "when": {}}])
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            input=given,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    (text,) = texts
    first, second = text.rstrip("\n").split("\n=\n")
    assert first == second


def test_explanations_keep_their_limit_and_count_what_they_leave_out(weather: Validator) -> None:
    violations = weather.check({"citty": 1, "days": "x", "units": "y", "tags": 5})
    assert len(violations) == 5
    short = explain(violations, weather)
    assert len(short) <= 200
    assert short.endswith("more)")
    long = explain(violations, weather, limit=1024)
    assert long.endswith('\nexample: {"city": "text"}')
    assert all(str(each) in long for each in violations)
    assert len(explain(violations, weather, limit=20)) <= 20


@pytest.mark.parametrize(
    ("schema", "given", "repaired", "names"),
    [
        ({"type": "integer"}, "5", 5, ("coerced ",)),
        (
            {"properties": {"n": {"type": "integer"}}},
            {"n": "-12", "m": "3"},
            {"n": -12, "m": "3"},
            ("coerced /n",),
        ),
        ({"properties": {"n": {"type": "number"}}}, {"n": "2.5e1"}, {"n": 25.0}, ("coerced /n",)),
        (
            {"items": {"type": "boolean"}},
            ["true", "false", "yes"],
            [True, False, "yes"],
            ("coerced /0", "coerced /1"),
        ),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": ["integer"]}}}, "7", 7, ("coerced ",)),
        ({"allOf": [{"type": "integer"}, {"type": "integer", "minimum": 1}]}, "7", 7, ("coerced ",)),
        ({"additionalProperties": {"type": "integer"}}, {"a": "1"}, {"a": 1}, ("coerced /a",)),
        ({"prefixItems": [{"type": "string"}, {"type": "integer"}]}, ["1", "1"], ["1", 1], ("coerced /1",)),
        ({"type": "string"}, 5, 5, ()),
        ({"type": ["integer", "string"]}, "5", "5", ()),
        ({"type": ["integer", "boolean"]}, "5", "5", ()),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "5", "5", ()),
        ({"type": "integer"}, "5.0", "5.0", ()),
        ({"type": "integer"}, " 5", " 5", ()),
        ({"type": "integer"}, "05", "05", ()),
        ({"type": "integer"}, "1_000", "1_000", ()),
        ({"type": "integer"}, "٣", "٣", ()),
        ({"type": "integer"}, "9" * 50, "9" * 50, ()),
        ({"type": "number"}, "1e999", "1e999", ()),
        ({"type": "number"}, "NaN", "NaN", ()),
        ({"type": "boolean"}, "1", "1", ()),
        ({}, "5", "5", ()),
    ],
)
def test_coercion_reads_text_only_where_one_thing_can_be_meant(
    schema: dict[str, Any], given: Any, repaired: Any, names: tuple[str, ...]
) -> None:
    before = json.dumps(given)
    value, repairs = compile_schema(schema).coerce(given)
    assert (value, repairs) == (repaired, names)
    assert type(value) is type(repaired)
    assert json.dumps(given) == before
    if not names:
        assert value is given


NODE = {"type": "object", "properties": {"n": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}}


@pytest.mark.parametrize(
    ("schema", "given", "changed"),
    [
        ({"type": "integer"}, 3.0, 3),
        ({"type": "number"}, 3.0, 3.0),
        ({"properties": {"n": {"type": "integer"}, "x": {"type": "number"}}}, {"n": 2.0, "x": 2.0}, {"n": 2, "x": 2.0}),
        ({"items": {"properties": {"n": {"type": "integer"}}}}, [{"n": 1}, {"n": 1.0}], [{"n": 1}, {"n": 1}]),
        ({"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}, {"a": 7.0}, {"a": 7}),
        (
            {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
            {"next": {"next": {"n": 1.0}}},
            {"next": {"next": {"n": 1}}},
        ),
        ({"additionalProperties": {"type": "integer"}}, {"a": 1.0}, {"a": 1}),
        ({"patternProperties": {"^n": {"type": "integer"}}}, {"n": 1.0, "x": 1.0}, {"n": 1, "x": 1.0}),
        ({"prefixItems": [{"type": "integer"}]}, [1.0, 1.0], [1, 1.0]),
        ({"allOf": [{"type": "integer"}]}, 1.0, 1),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, 1.0, 1.0),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}]}, [1.0, 1.0], [1, 1.0]),
    ],
)
def test_a_whole_float_becomes_an_integer_only_where_the_schema_asks_for_one(
    schema: dict[str, Any], given: Any, changed: Any
) -> None:
    validator = compile_schema(schema)
    before = json.dumps(given)
    assert json.dumps(validator.with_integers(given)) == json.dumps(changed)
    assert json.dumps(given) == before
    assert validator.with_integers(changed) is changed


def test_what_a_schema_says_about_integers_is_found_once_and_agrees_with_a_search() -> None:
    rng = random.Random(7)
    changed = 0
    for _ in range(500):
        schema, value = schema_and_value(rng, 4)
        validator = compile_schema(schema)
        assert validator.is_valid(value)
        found = json.dumps(validator.with_integers(value))
        assert found == json.dumps(validator.coerce(value)[0]), (schema, value)
        changed += found != json.dumps(value)
    assert 100 < changed < 400, "both kinds must be frequent for the agreement to mean something"


def schema_and_value(rng: random.Random, depth: int) -> tuple[dict[str, Any], Any]:
    """A schema, and a valid value in which every number is written with a fraction."""
    kind = rng.choice(["object", "open", "array", "tuple", "allOf", "leaf"]) if depth else "leaf"
    if kind == "leaf":
        return {"type": rng.choice(["integer", "number", "number"])}, float(rng.randrange(5))
    inner = [schema_and_value(rng, depth - 1) for _ in range(rng.randrange(1, 4))]
    if kind == "allOf":
        return {"allOf": [inner[0][0]]}, inner[0][1]
    if kind == "array":
        return {"type": "array", "items": inner[0][0]}, [inner[0][1]] * 2
    if kind == "tuple":
        return {"type": "array", "prefixItems": [schema for schema, _ in inner]}, [value for _, value in inner]
    if kind == "open":
        return {"type": "object", "additionalProperties": inner[0][0]}, {"x": inner[0][1]}
    properties = {f"p{place}": schema for place, (schema, _) in enumerate(inner)}
    return {"type": "object", "properties": properties}, {f"p{place}": value for place, (_, value) in enumerate(inner)}


def test_definitions_that_share_definitions_are_looked_at_once() -> None:
    # Without that, 2 ** 30 ways lead to the last one.
    defs: dict[str, Any] = {
        f"d{level}": {"properties": {side: {"$ref": f"#/$defs/d{level + 1}"} for side in "ab"}} for level in range(30)
    }
    defs["d30"] = {"type": "integer"}
    validator = compile_schema({"$ref": "#/$defs/d0", "$defs": defs})
    assert validator.with_integers({"a": {"b": {}}}) == {"a": {"b": {}}}


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"type": "integer"}, 3.0, True),
        ({"type": "number"}, 10**39, "1"),
        ({"const": 1}, 1.0, True),
        ({"enum": [[1], {"a": 0}]}, {"a": 0.0}, {"a": False}),
        ({"uniqueItems": True}, [1, True, "1", [1], [True]], [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]),
        ({"multipleOf": 0.1}, 0.3, 0.35),
        ({"multipleOf": 3}, 10**39 - 1, 10**39),
        ({"maxLength": 1}, "\U0001f600", "ab"),
        ({"format": "hostname"}, "not a host!", None),
        ({"properties": {"a": {"default": 1}}, "required": ["a"]}, {"a": 2}, {}),
    ],
)
@pytest.mark.parametrize("backend", ["auto", "python"])
def test_the_documented_semantics_hold(schema: dict[str, Any], valid: Any, invalid: Any, backend: str) -> None:
    validator = compile_schema(schema, backend=backend)  # type: ignore[arg-type]
    assert validator.is_valid(valid)
    if invalid is not None:
        assert not validator.is_valid(invalid)


@pytest.mark.parametrize("value", [{"city": {1, 2}}, {"city": 1j}, {1: 1}, {"city": "\ud800"}], ids=repr)
def test_a_value_that_is_no_json_is_invalid_or_refused_and_never_crashes(weather: Validator, value: Any) -> None:
    for ask in (weather.is_valid, weather.check):
        try:
            answer = ask(value)
        except InstanceRefused as refusal:
            answer = refusal
        assert answer is not True
        assert answer != ()


@pytest.mark.parametrize("backend", ["auto", "python"])
def test_recursive_schemas_are_decided_and_explained(backend: Literal["auto", "python"]) -> None:
    tree = {
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "n": {"type": "integer"}},
    }
    validator = compile_schema(tree, backend=backend)
    assert validator.check({"left": {"right": {"n": "x"}}})[0].pointer == "/left/right/n"


def test_rust_decides_deep_trees_of_many_kinds_of_nodes() -> None:
    kinds = [
        {"properties": {"children": {"items": {"$ref": "#/$defs/node"}}, "kind": {"const": f"k{number}"}}}
        for number in range(20)
    ]
    validator = compile_schema(
        {"$ref": "#/$defs/node", "$defs": {"node": {"oneOf": kinds, "required": ["kind"]}}}, backend="rust"
    )
    tree: dict[str, Any] = {"kind": "k19"}
    for _ in range(20):
        tree = {"kind": "k7", "children": [tree]}
    assert validator.is_valid(tree)
    tree["children"].append({"kind": "k20"})
    (violation,) = validator.check(tree)
    assert violation.pointer == ""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["auto", "python"])
def test_a_huge_value_full_of_errors_is_explained_in_bounded_time(backend: Literal["auto", "python"]) -> None:
    wrong = ["x"] * 300_000
    for schema in ({"items": {"type": "integer"}}, {"anyOf": [{"items": {"type": "integer"}}, {"items": False}]}):
        validator = compile_schema(schema, backend=backend)
        started = time.thread_time()
        with suppress(InstanceRefused):  # jsonschema gives up
            assert 1 <= len(validator.check(wrong)) <= 5
        assert time.thread_time() - started < 10


@pytest.mark.parametrize("backend", ["auto", "python"])
@pytest.mark.parametrize("value", [{"": "x"}, {"a": {"": {"b": "y"}}}])
def test_a_violation_below_an_empty_key_is_reported(value: Any, backend: Literal["auto", "python"]) -> None:
    number = {"type": "integer"}
    schema = {"properties": {"": number, "a": {"properties": {"": {"properties": {"b": number}}}}}, "type": "object"}
    validator = compile_schema(schema, backend=backend)
    assert explain(validator.check(value), validator).startswith("(root): expected " if backend == "auto" else "/")


def test_schemas_that_compare_items_say_how_many_to_guard_for() -> None:
    assert compile_schema({"uniqueItems": True}).max_items == 10_000
    assert compile_schema({"properties": {"a": {"contains": {}}}}).max_items == 10_000
    assert compile_schema({"items": {}}).max_items is None


def test_an_unfit_schema_is_not_compiled() -> None:
    with pytest.raises(SchemaRefused):
        compile_schema({"$ref": "https://example.com/"})


def test_without_rust_jsonschema_decides_and_asking_for_rust_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    monkeypatch.delitem(sys.modules, "concertino.schema.rust", raising=False)
    validator = compile_schema(WEATHER)
    assert validator.backend == "python"
    assert validator.is_valid(GOOD)
    with pytest.raises(BackendMissing, match="pip install jsonschema-rs"):
        compile_schema(WEATHER, backend="rust")


def test_importing_loads_no_validation_library_and_rust_never_loads_python_s() -> None:
    program = (
        "import sys; from concertino.schema import compile_schema; print('jsonschema_rs' in sys.modules, end=' ');"
        "compile_schema({'type': 'object'}).check([]); print('jsonschema' in sys.modules, 'referencing' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "False"]
