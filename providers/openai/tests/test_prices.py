"""Prices: dated, with a source, overridable; what is unknown stays unknown."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from concertino import SpecError
from concertino_openai import concertino_models, find_price, model, prices, services
from concertino_openai.dialects import PRESETS
from concertino_openai.prices import price_table

FILE = """
[[openai]]
model = "gpt-own"
input = 1.5
output = 3
as_of = 2026-01-31

[[openai]]
model = "gpt-4.1"
input = 9.0
output = 9.0
cached = 0.5
as_of = 2026-01-31
source = "a contract"
"""


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for preset in PRESETS.values():
        if preset.key_env:
            monkeypatch.delenv(preset.key_env, raising=False)
    monkeypatch.delenv(prices.PRICE_FILE_ENV, raising=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(FILE)
    return path


def test_every_packaged_price_has_a_date_a_source_and_a_known_server() -> None:
    table = price_table()
    assert len(table) >= 10
    for (server, name), entry in table.items():
        assert server in PRESETS
        assert (entry.server, entry.model) == (server, name)
        assert entry.prices.input > 0
        assert entry.prices.output > 0
        assert entry.prices.cached is None or 0 < entry.prices.cached < entry.prices.input
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", entry.prices.as_of)
        assert entry.source


def test_the_readme_shows_every_packaged_price() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    for entry in prices._packaged().values():
        known = entry.prices
        numbers = " | ".join(map(shown, (known.input, known.output, known.cached, known.cache_write)))
        long = (
            f"{shown(known.long_input)} / {shown(known.long_output)} from {known.long_from:,}"
            if known.long_from
            else "-"
        )
        assert f"| {entry.server} | `{entry.model}` | {numbers} | {long} | {known.as_of} |" in readme


def shown(price: float | None) -> str:
    return "-" if price is None else f"{price:g}"


def test_a_long_prompt_and_the_cache_have_the_prices_of_the_table() -> None:
    prices = model("m", model="gpt-6.1-sol").prices
    assert prices is not None
    assert prices.usd(272_000, 1000) == pytest.approx((272_000 * 2 + 1000 * 10) / 1e6)
    assert prices.usd(272_001, 1000) == pytest.approx((272_001 * 4 + 1000 * 15) / 1e6)
    assert prices.usd(1000, 0, 400, 500) == pytest.approx((100 * 2 + 400 * 0.1 + 500 * 2.5) / 1e6)


def test_a_declared_model_of_a_known_server_has_its_price_and_any_other_has_none() -> None:
    known = model("m", model="gpt-4.1")
    assert known.prices is not None
    assert (known.prices.input, known.prices.output, known.prices.as_of) == (2.0, 8.0, "2026-09-29")
    assert model("m", model="gpt-4.1-2025-04-14").prices == known.prices
    assert model("m", model="gpt-4.1-turbo").prices is None
    assert model("m", model="gpt-4.1", base_url="http://127.0.0.1:8000/v1").prices is None
    assert model("m", server="vllm", model="gpt-4.1").prices is None
    assert model("m", model="gpt-4.1", prices=None).prices is None


def test_a_file_comes_before_the_package(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = find_price("openai", "gpt-4.1", file)
    assert entry is not None
    assert (entry.prices.input, entry.prices.cached, entry.source) == (9.0, 0.5, "a contract")
    own = model("m", model="gpt-own", price_file=str(file)).prices
    assert own is not None
    assert (own.input, own.output, own.cached, own.as_of) == (1.5, 3, None, "2026-01-31")
    monkeypatch.setenv(prices.PRICE_FILE_ENV, str(file))
    assert model("m", model="gpt-own").prices == own


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[openai]]\nmodel = 'x'\ninput = 1\n", "'output' is missing"),
        ("[[openai]]\nmodel = 'x'\ninput = 1\noutput = 2\nas_of = '2026'\n", "expected a date such as 2026-01-31"),
        ("[[openai]]\nmodel = 'x'\ninput = '1'\noutput = 2\nas_of = 2026-01-31\n", "input = '1'; expected"),
        ("[[openai]]\nmodel = 'x'\ninput = -1\noutput = 2\nas_of = 2026-01-31\n", "a number >= 0"),
        ("[[openai]]\nmodel = 'x'\ninptu = 1\noutput = 2\nas_of = 2026-01-31\n", "unknown key 'inptu'"),
        ("[openai]\nmodel = 'x'\n", r"expected \[\[openai\]\] tables"),
        ("model", "not TOML"),
    ],
)
def test_a_wrong_price_file_says_where(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(SpecError, match=message):
        model("m", model="x", price_file=str(path))


def test_a_price_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"none\.toml: No such file"):
        model("m", price_file=str(tmp_path / "none.toml"))


def test_an_offer_ends_on_its_last_day(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = next(entry for entry in prices._packaged().values() if entry.until is not None)
    assert entry.until is not None

    class Day(date):
        now = entry.until

        @classmethod
        def today(cls) -> date:  # type: ignore[override]
            return cls.now

    monkeypatch.setattr(prices, "date", Day)
    assert find_price(entry.server, entry.model) is not None
    Day.now = date(entry.until.year + 1, 1, 1)
    assert find_price(entry.server, entry.model) is None


def test_without_a_key_nothing_is_published() -> None:
    assert concertino_models() == []


def test_with_a_key_the_priced_models_of_that_server_are_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    specs = {spec.name: spec for spec in concertino_models()}
    assert set(specs) == {name for server, name in price_table() if server == "openai"}
    assert all(spec.prices is not None for spec in specs.values())
    monkeypatch.setenv("DEEPSEEK_API_KEY", "x")
    monkeypatch.setenv("GEMINI_API_KEY", "x")
    assert len(concertino_models()) == len(specs)
    assert [spec.name for spec in services.google.concertino_models()] == [
        name for server, name in price_table() if server == "google"
    ]
    flash = services.deepseek.concertino_models()[0]
    assert (flash.name, dict(flash.options or {})) == ("deepseek-flash", {"model": "deepseek-flash"})
    assert "peak hours" in flash.description


def test_at_another_address_no_priced_model_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9000/v1")
    assert concertino_models() == []
    assert model("gpt-4.1").prices is None
