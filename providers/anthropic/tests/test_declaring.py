"""Declaring models: by name, with options, with dated prices, and never with a key."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import concertino as ct
import concertino_anthropic
import pytest
from concertino import Prices, ProviderError, SpecError
from concertino.core.settings import Settings
from concertino.plugins import PluginManager
from concertino_anthropic import concertino_models, model, set_key_source
from concertino_anthropic.client import AnthropicModel
from concertino_anthropic.options import OPTIONS, AnthropicSettings
from concertino_anthropic.presets import presets

from .asking import request
from .stand_in import KEY, stand_in

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


# -- names and prices --------------------------------------------------------------------------------------------------


def test_a_model_of_anthropic_is_known_by_its_name_alone() -> None:
    spec = ct.Pool.of(worker="anthropic/claude-opus-5-5")["anthropic/claude-opus-5-5"]
    assert isinstance(spec, ct.ModelSpec)
    assert (spec.context, spec.accepts) == (1_000_000, ("image", "file"))
    assert spec.endpoint == "https://api.anthropic.com"
    assert spec.prices == Prices(4.0, 20.0, 0.2, "2026-09-24", cache_write=5.0)


def test_the_prices_are_those_of_the_table_and_follow_the_cache() -> None:
    assert model("m", model="claude-opus-5-5", cache="1h").prices == Prices(4, 20, 0.2, "2026-09-24", cache_write=8)
    assert model("m", model="claude-opus-5-5", cache="").prices == Prices(4, 20, 0.2, "2026-09-24")
    dated = model("m", model="claude-haiku-4-5-20251001").prices
    assert dated is not None
    assert (dated.input, dated.output, dated.cached, dated.cache_write) == (1, 5, 0.1, 1.25)
    haiku = model("m", model="claude-haiku-5-5").prices
    assert haiku is not None
    assert haiku.usd(100_000, 1000) == pytest.approx(0.0105)
    assert haiku.usd(100_001, 1000) == pytest.approx(0.0525005)


def test_a_model_that_is_not_in_the_table_or_elsewhere_has_no_price() -> None:
    assert model("claude-opus-9").prices is None
    assert model("m", model="claude-opus-5-5", base_url="https://gateway.example").prices is None
    assert model("m", model="claude-opus-5-5", prices=None).prices is None
    assert model("m", model="claude-opus-9", prices=Prices(1, 2)).prices == Prices(1, 2)


def test_every_price_has_a_date_and_a_public_source() -> None:
    assert len(presets()) >= 8
    for name, preset in presets().items():
        assert preset.prices is not None
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", preset.prices.as_of), name
        assert "platform.claude.com/docs" in preset.source, name
        assert preset.prices.cached is not None
        assert preset.prices.cache_write is not None
        assert preset.cache_write_1h is not None
        # By the vendor's page, writing costs 1.25 times the input for five minutes, twice the input for an hour.
        assert preset.prices.cached < preset.prices.input < preset.prices.cache_write < preset.cache_write_1h, name
        assert preset.prices.cache_write == pytest.approx(1.25 * preset.prices.input)
        assert preset.cache_write_1h == pytest.approx(2 * preset.prices.input)


def test_the_readme_shows_every_price() -> None:
    for name, preset in presets().items():
        prices = preset.prices
        assert prices is not None
        numbers = " | ".join(f"{n:g}" for n in (prices.input, prices.output, prices.cached, prices.cache_write) if n)
        assert f"| `{name}` | {numbers} | {preset.cache_write_1h:g} | {prices.as_of} |" in README


def test_priced_models_are_published_where_the_key_is_and_at_anthropics_own_address_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert [spec.name for spec in concertino_models()] == [*presets()]
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gateway.example")
    assert concertino_models() == []
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    assert concertino_models() == []


def test_a_pool_file_declares_a_model_with_its_options(tmp_path: Path) -> None:
    path = tmp_path / "pool.toml"
    path.write_text(
        '[models."anthropic/lead"]\nmodel = "claude-opus-5-5"\neffort = "low"\nthinking = "adaptive"\ncache = "1h"\n'
        '[prices."anthropic/lead"]\ninput = 3.0\noutput = 15.0\ncache_write = 6.0\n'
        '[roles]\norchestrator = "anthropic/lead"\n'
    )
    pool = ct.Pool.load(path)
    spec = pool.model("orchestrator")
    assert spec.options == {"model": "claude-opus-5-5", "effort": "low", "thinking": "adaptive", "cache": "1h"}
    assert spec.prices == Prices(3.0, 15.0, cache_write=6.0)


# -- options -----------------------------------------------------------------------------------------------------------


def test_the_readme_lists_every_option() -> None:
    listed = README.partition("<!-- --8<-- [start:options] -->")[2].partition("<!-- --8<-- [end:options] -->")[0]
    for name, option in OPTIONS.items():
        assert f"| `{name}` | {option.type} | {option.default} | {option.about} |" in listed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modle": "x"}, "unknown option 'modle'; did you mean 'model'"),
        ({"api_key": "x"}, "a key never stands among options"),
        (
            {"timeout": 3},
            r"'timeout' is not an option of the provider; in a pool file it belongs in the table \[overrides",
        ),
        ({"temperature": 0}, "the API takes no sampling parameters"),
        ({"thinking": "much"}, "thinking = 'much'; expected one of adaptive, between_tools, disabled, or a number of"),
        ({"thinking": 100}, "expected one of adaptive, between_tools, disabled, or a number of tokens >= 1024"),
        ({"thinking": True}, "expected one of adaptive"),
        ({"effort": "some"}, "expected one of low, medium, high, xhigh, max"),
        ({"cache": "2h"}, "cache = '2h'; expected one of 5m, 1h, ''"),
        ({"display": "all"}, "expected one of summarized, omitted"),
        ({"max_output": 0}, "expected a whole number of tokens > 0"),
        ({"idle_timeout": 0}, "expected a number of seconds > 0"),
        ({"stream": "yes"}, "expected true or false"),
        ({"accepts": ["audio"]}, "expected a list of image, file"),
        ({"base_url": "https://api.anthropic.com/v1"}, "without /v1, which the SDK puts behind it"),
        ({"base_url": "ftp://x"}, "expected an address such as https://api.anthropic.com"),
        ({"base_url": "https://u:p@x"}, r"\(not shown\); expected .* without user name and password"),
        ({"key_env": KEY}, r"key_env = \(not shown\); expected the NAME of an environment variable"),
        ({"headers": {"x-api-key": "v"}}, "no key in 'x-api-key'; name its environment variable in key_env"),
        ({"headers": {"x": f"Bearer {KEY}"}}, "no key in 'x'"),
        ({"extra_body": {"messages": []}}, "no 'messages': that field is written by concertino"),
        ({"model": ""}, "model = ''; expected a text that is not empty"),
    ],
)
def test_a_wrong_option_says_what_was_given_and_what_is_expected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message) as raised:
        concertino_anthropic.concertino_declare_model("claude-opus-5-5", options)
    assert "model 'claude-opus-5-5'" in str(raised.value)
    assert KEY not in str(raised.value)


def test_a_model_without_a_name_is_refused() -> None:
    with pytest.raises(SpecError, match="the option 'model' is missing"):
        AnthropicModel()


def test_the_address_of_the_environment_is_used_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gateway.example/anthropic/")
    assert model("claude-opus-5-5").endpoint == "https://gateway.example/anthropic"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "gateway")
    with pytest.raises(SpecError, match="the address in ANTHROPIC_BASE_URL: expected an address"):
        model("claude-opus-5-5")


# -- keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("elsewhere", "options", "key_env"),
    [
        ("", {}, "ANTHROPIC_API_KEY"),
        ("", {"base_url": "https://other.example"}, ""),
        ("", {"base_url": "https://other.example", "key_env": "OTHER_KEY"}, "OTHER_KEY"),
        ("https://gateway.example", {}, "ANTHROPIC_API_KEY"),
        ("https://gateway.example", {"base_url": "https://other.example"}, ""),
        ("", {"key_env": ""}, ""),
    ],
)
def test_the_key_goes_to_its_own_server_only(
    elsewhere: str, options: dict[str, Any], key_env: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if elsewhere:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", elsewhere)
    assert AnthropicSettings.of(options, "test", "claude-opus-5-5").key_env == key_env


async def test_both_variables_together_name_a_server_and_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stand_in() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.address)
        asked = AnthropicModel(model="claude-opus-5-5")
        assert (await asked.chat(request("?"))).text
        await asked.close()
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("value", ["", "käse", "a\nb"])
async def test_a_key_that_is_missing_or_cannot_be_sent_says_which_variable(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", value)
    asked = AnthropicModel(model="claude-opus-5-5")
    with pytest.raises(ProviderError, match=r"the key ANTHROPIC_API_KEY .*set_key_source") as raised:
        await asked.chat(request("?"))
    await asked.close()
    assert raised.value.failure == "caller"


async def test_a_key_may_come_from_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    set_key_source({"MY_KEY": KEY}.get)
    async with stand_in() as server:
        asked = AnthropicModel(model="claude-opus-5-5", base_url=server.address, key_env="MY_KEY")
        assert (await asked.chat(request("?"))).text
        await asked.close()
    assert KEY not in repr(asked)


# -- the package -------------------------------------------------------------------------------------------------------


def test_the_package_names_its_provider() -> None:
    assert PluginManager(Settings()).load("anthropic").distribution == "concertino-anthropic"


def test_a_declared_model_does_not_import_the_sdk() -> None:
    code = "import sys, concertino_anthropic as a; a.model('claude-opus-5-5'); sys.exit('anthropic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
