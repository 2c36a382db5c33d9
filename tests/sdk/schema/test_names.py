"""Near names: what counts as near, in which order, and at what cost."""

import pytest
from concertino.schema import near_names
from linear import assert_linear


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("cout", ["count", "limit", "amount"], ["count"]),
        ("getWeather", ["get_weather", "get_news"], ["get_weather"]),
        ("GET-WEATHER", ["get_weather"], ["get_weather"]),
        ("search", ["web/search", "local/search", "web/fetch"], ["local/search", "web/search"]),
        ("web.search", ["web/search", "local/search"], ["web/search"]),
        ("acme/serch", ["web/search"], ["web/search"]),
        ("weather", ["get_weather_forecast", "get_news"], ["get_weather_forecast"]),
        ("Straße", ["STRASSE"], ["STRASSE"]),
        ("zzz", ["count", "limit"], []),
        ("", ["count"], []),
        ("///", ["count"], []),
        ("count", [], []),
    ],
)
def test_near_names_are_found_whatever_case_and_separators(name: str, known: list[str], near: list[str]) -> None:
    assert near_names(name, known)[: len(near) or None] == near


def test_the_limit_is_kept_and_the_order_is_stable() -> None:
    known = ["tool_b", "tool_a", "tool_c", "tool_d"]
    assert near_names("tool_x", known, 2) == near_names("tool_x", known[::-1], 2) == ["tool_a", "tool_b"]
    assert near_names("tool_a", known, 1) == ["tool_a"]
    assert near_names("tool_a", known, 0) == []


def test_a_thousand_names_are_searched_in_linear_time() -> None:
    known = [f"provider{number % 7}/tool_name_{number}" for number in range(1000)]
    assert near_names("Tool-Name-517", known, 1) == ["provider6/tool_name_517"]
    assert_linear(lambda: near_names("Tool-Name-517", known, 1), sum(map(len, known)))
    assert near_names("x" * 1_000_000, known) == []
    assert_linear(lambda: near_names("x" * 1_000_000, known), 1_000_000)
