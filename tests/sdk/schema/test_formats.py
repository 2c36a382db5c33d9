"""The nine formats; checked in both back ends, against each other and against the independent library's
samples.
"""

import pytest
from concertino.schema import compile_schema
from concertino.schema.formats import FORMATS, SAMPLES

CASES = {
    "date": (
        ["2024-02-29", "0000-02-29", "1999-12-31"],
        ["2023-02-29", "2024-13-01", "2024-1-1", "٢٠٢٤-01-01", "2024-01-01\n"],
    ),
    "time": (
        ["12:00:00Z", "23:59:60Z", "00:29:60+00:30", "12:00:00.123456789-08:00", "12:00:00z"],
        ["12:00:00", "24:00:00Z", "12:00:60Z", "12:60:00Z", "12:00:00+24:00", "12:00:00+0800", "12:00Z"],
    ),
    "date-time": (
        ["2024-02-29T12:00:00Z", "2024-02-29t12:00:00.5+01:00"],
        ["2024-02-29 12:00:00Z", "2024-02-30T12:00:00Z", "2024-02-29T12:00:00"],
    ),
    "email": (
        ["a@b.de", "a.b+c@example.com", '"a b"@example.com', "a@[127.0.0.1]", "a@[IPv6:::1]", "a@localhost"],
        [
            "a",
            "@b.de",
            "a@",
            ".a@b.de",
            "a..b@c.de",
            "a@-b.de",
            "a@b..de",
            "a b@c.de",
            "a@[300.0.0.1]",
            "a" * 65 + "@b.de",
        ],
    ),
    "uri": (
        [
            "https://example.com/a?b=c#d",
            "urn:isbn:1",
            "mailto:a@b.de",
            "http://[::1]:80/",
            "file:///etc",
            "a:",
        ],
        [
            "/relative",
            "example.com",
            "http://a b",
            "http://[::1",
            "http://a:b/",
            "1a://x",
            "http://ä.de/",
            "x://%zz",
            "#a",
        ],
    ),
    "uuid": (
        ["123e4567-e89b-42d3-a456-426614174000", "ABCDEF00-0000-0000-0000-000000000000"],
        [
            "123e4567e89b42d3a456426614174000",
            "123e4567-e89b-42d3-a456-42661417400",
            "g23e4567-e89b-42d3-a456-426614174000",
        ],
    ),
    "ipv4": (
        ["127.0.0.1", "0.0.0.0"],
        ["256.0.0.1", "1.2.3", "01.2.3.4", "1.2.3.4/8", "١.2.3.4", "0x7f.0.0.1"],
    ),
    "ipv6": (
        ["::1", "2001:db8::ff00:42:8329", "::ffff:1.2.3.4"],
        ["1::2::3", "fe80::1%eth0", ":::", "12345::", "1.2.3.4", "::1/64"],
    ),
    "regex": (["^a+$", "(?=a)b", r"\d"], ["(a", "a**", "[b-a]"]),
}
ROWS = [
    (name, text, valid)
    for name, texts in CASES.items()
    for valid, group in zip((True, False), texts, strict=True)
    for text in group
]


@pytest.mark.parametrize("backend", ["auto", "python"])
@pytest.mark.parametrize(("name", "text", "valid"), ROWS)
def test_a_format_is_asserted_alike_in_both_back_ends(name: str, text: str, valid: bool, backend: str) -> None:
    assert compile_schema({"format": name}, backend=backend).is_valid(text) is valid  # type: ignore[arg-type]


def test_every_asserted_format_has_cases_and_a_valid_sample() -> None:
    assert CASES.keys() == FORMATS.keys() == SAMPLES.keys()
    assert all(check(SAMPLES[name]) for name, check in FORMATS.items())


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_concerns_text_only_and_never_raises(name: str) -> None:
    validator = compile_schema({"format": name})
    assert all(validator.is_valid(value) for value in (5, None, [], {"a": 1}, True, 2.5))
    for text in (
        "",
        "\0",
        "é" * 100,
        "9" * 10_000,
        "::" * 5000,
        "@" * 5000,
        "-" * 100,
        "[" * 2000,
        "\U0001f600",
    ):
        assert FORMATS[name](text) in (True, False)


@pytest.mark.parametrize("name", ["hostname", "json-pointer", "iri", "duration", "made-up"])
def test_other_formats_are_annotations(name: str) -> None:
    assert compile_schema({"format": name}).is_valid(" not one of these \n")
