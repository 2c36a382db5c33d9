"""Models, routers and offers that a pool file or `concertino.toml` declares: made by their provider, saved, loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from concertino.core.errors import PluginError, PoolError, UsageError
from concertino.core.settings import load_settings
from concertino.core.usage import Prices
from concertino.members.model_agent import ModelAgent
from concertino.members.routing import router
from concertino.plugins import PluginManager
from concertino.pool.file import load_pool, save_pool
from concertino.pool.pool import Pool

from .conftest import Install

MAKER = """
from concertino.core.errors import SpecError

@hookimpl
def concertino_models():
    return [specs.ModelSpec("built-in", Model, "Comes with it.", Prices(1, 2))]

@hookimpl
def concertino_declare_model(name, options):
    for key in options:
        if key not in ("url", "temperature"):
            raise SpecError(f"unknown option {key!r}; expected url, temperature")
    if not str(options.get("url", "")).startswith("http"):
        raise ValueError(f"url={options.get('url')!r}; expected the address of a server")
    return specs.ModelSpec(name, lambda: Model(), f"Lives at {options['url']}.")
"""
FILE = """
members = ["maker/built-in", "search/*"]
offer = ["maker/*"]

[roles]
worker = "maker/fast"

[models."maker/fast"]
url = "http://127.0.0.1:1/v1"
temperature = 0.5

[models."maker/slow"]
url = "http://127.0.0.1:2/v1"

[routers.careful]
models = ["maker/fast", "maker/slow"]
policy = "lowest-cost"
cooldown = 5

[prices."maker/fast"]
input = 0.1
output = 0.2

[overrides."maker/fast"]
concurrency = 4
"""


@pytest.fixture
def maker(install: Install, manager: PluginManager) -> PluginManager:
    install("maker", MAKER)
    install("search")
    return manager


def written(tmp_path: Path, text: str, name: str = "pool.toml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_pool_file_declares_models_routers_and_offers(maker: PluginManager, tmp_path: Path) -> None:
    pool = load_pool(written(tmp_path, FILE), maker)
    assert [member.name for member in pool.members] == [
        "maker/built-in",
        "search/echo",
        "maker/fast",
        "maker/slow",
        "careful",
        "maker/ask_built-in",
        "maker/ask_fast",
        "maker/ask_slow",
    ]
    fast = pool.model("worker")
    assert (fast.name, fast.description, fast.concurrency) == ("maker/fast", "Lives at http://127.0.0.1:1/v1.", 4)
    assert fast.options == {"url": "http://127.0.0.1:1/v1", "temperature": 0.5}
    assert [spec.name for spec in pool.behind("careful")] == ["maker/fast", "maker/slow"]


@pytest.mark.parametrize(
    ("text", "agents"),
    [
        ('members = ["search/*"]\noffer = ["maker/built-in"]\n', ["maker/ask_built-in"]),
        ('members = ["maker/*"]\noffer = ["*"]\n', ["maker/ask_built-in"]),
        ('offer = ["*"]\n', ["maker/ask_built-in", "other/ask_built-in"]),
        ('without = ["other/*"]\noffer = ["*"]\n', ["maker/ask_built-in"]),
        ('members = ["maker/*"]\noffer = ["*", "other/built-in"]\n', ["maker/ask_built-in", "other/ask_built-in"]),
        (
            'members = ["maker/*"]\noffer = ["*"]\n[roles]\nw = "other/built-in"\n',
            ["maker/ask_built-in", "other/ask_built-in"],
        ),
        (
            'members = ["search/*"]\noffer = ["*"]\n[models."maker/own"]\nurl = "http://x"\n',
            ["maker/ask_own"],
        ),
    ],
)
def test_a_pattern_offers_models_of_the_pool_alone(
    maker: PluginManager, install: Install, tmp_path: Path, text: str, agents: list[str]
) -> None:
    install("other", MAKER)
    pool = load_pool(written(tmp_path, text), maker)
    assert sorted(spec.name for spec in pool if isinstance(spec, ModelAgent)) == agents


@pytest.mark.parametrize("suffix", [".toml", ".yaml"])
def test_what_a_file_declares_comes_back_equal_in_the_same_order(
    maker: PluginManager, tmp_path: Path, suffix: str
) -> None:
    pool = load_pool(written(tmp_path, FILE), maker)
    pool = pool.describe({"maker/slow": "Takes its time.", "careful": "The cheaper of two."}).alias(
        {"maker/ask_slow": "professor"}
    )
    pool = pool.replace("maker/built-in", pool["maker/built-in"].with_(description="Another."))
    path = tmp_path / f"again{suffix}"
    save_pool(pool, path, maker)
    again = load_pool(path, maker)
    assert again.to_json() == pool.to_json()
    assert again.id == pool.id


def test_an_agent_whose_model_was_swapped_is_saved_with_its_new_model(maker: PluginManager, tmp_path: Path) -> None:
    pool = load_pool(written(tmp_path, FILE), maker).without("careful").bind(worker="maker/slow")
    swapped = pool.replace("maker/fast", maker.declare("maker/new", {"url": "http://x"}))
    agent = swapped["maker/ask_fast"]
    assert isinstance(agent, ModelAgent)
    assert agent.model == "maker/new"
    save_pool(swapped, tmp_path / "swapped.toml", maker)
    assert '"maker/ask_fast" = "maker/new"' in (tmp_path / "swapped.toml").read_text()
    assert load_pool(tmp_path / "swapped.toml", maker).id == swapped.id


def test_the_same_declaration_is_the_same_model_so_that_a_reloaded_file_opens_nothing_twice(
    maker: PluginManager, tmp_path: Path
) -> None:
    path = written(tmp_path, FILE)
    first, again = load_pool(path, maker), load_pool(path, maker)
    assert first.model("worker").factory is again.model("worker").factory
    path.write_text(FILE.replace("temperature = 0.5", "temperature = 0.7"))
    changed = load_pool(path, maker)
    assert changed.model("maker/slow").factory is first.model("maker/slow").factory


def test_a_declared_model_takes_the_place_of_a_published_one_of_its_name(maker: PluginManager, tmp_path: Path) -> None:
    path = written(tmp_path, '[models."maker/built-in"]\nurl = "http://here"\n')
    assert [m.description for m in load_pool(path, maker).models] == ["Lives at http://here."]


def test_a_file_without_members_holds_what_is_installed_and_what_it_declares(
    maker: PluginManager, tmp_path: Path
) -> None:
    pool = load_pool(written(tmp_path, '[models."maker/x"]\nurl = "http://x"\n'), maker)
    assert [member.name for member in pool.members] == ["maker/built-in", "search/echo", "maker/x"]


def test_the_settings_declare_models_that_are_then_installed_ones(maker: PluginManager, tmp_path: Path) -> None:
    written(tmp_path, '[models."maker/daily"]\nurl = "http://daily"\n', "concertino.toml")
    manager = PluginManager(load_settings({}), seconds=5)
    pool = Pool.installed("maker/*", manager=manager)
    assert [member.name for member in pool.members] == ["maker/built-in", "maker/daily"]
    save_pool(pool, tmp_path / "pool.toml", manager)
    assert load_pool(tmp_path / "pool.toml", manager).id == pool.id
    assert load_pool(tmp_path / "pool.toml", maker).id == pool.id  # the file stands without the settings


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (
            '[models."maker/x"]\nurl = 3\n',
            PoolError,
            "models: model 'maker/x': url=3; expected the address of a server",
        ),
        ('[models."maker/x"]\nulr = "http://x"\n', PoolError, "model 'maker/x': unknown option 'ulr'; expected url"),
        ('[models."search/x"]\n', PoolError, "provider 'search' takes no declared models; those that do: maker"),
        ('[models."makr/x"]\n', PoolError, "no installed provider is called 'makr'; did you mean 'maker'?"),
        ("[models.x]\n", PoolError, "model 'x': expected 'provider/name'"),
        ("[models]\nx = 3\n", PoolError, "expected a table"),
        ('[routers.r]\nmodels = ["maker/built-in"]\npolcy = "fallback"\n', PoolError, "unknown key 'polcy'"),
        ('[routers.r]\nmodels = "maker/built-in"\n', PoolError, "expected a list of model names"),
        ('[routers.r]\nmodels = ["maker/none"]\n', PoolError, "routers: no installed member matches 'maker/none'"),
        ('offer = ["maker/none"]\n', PoolError, "offer: no installed member matches 'maker/none'"),
        ('offer = ["search/echo"]\n', PoolError, "offer: 'search/echo' matches no model; only models can be offered"),
        ('members = ["search/*"]\noffer = ["maker/*"]\n', PoolError, "'maker/*' matches no model of the pool"),
        ('[offer]\n"a" = "search/echo"\n', PoolError, "offer: 'search/echo' is a tool; only models can be offered"),
    ],
)
def test_a_wrong_declaration_names_file_table_and_what_was_expected(
    maker: PluginManager, tmp_path: Path, text: str, error: type[Exception], said: str
) -> None:
    maker.load("maker")
    path = written(tmp_path, text)
    with pytest.raises(error) as caught:
        load_pool(path, maker)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


def test_a_wrong_declaration_in_the_settings_names_their_file(maker: PluginManager, tmp_path: Path) -> None:
    written(tmp_path, '[models."maker/daily"]\nurl = 3\n', "concertino.toml")
    with pytest.raises(PoolError, match=r"concertino\.toml: model 'maker/daily': url=3"):
        Pool.installed("maker/*", manager=PluginManager(load_settings({}), seconds=5)).members  # noqa: B018
    written(tmp_path, "models = 3\n", "concertino.toml")
    with pytest.raises(UsageError, match=r'expected tables such as \[models."openai/fast"\]'):
        load_settings({})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return None", "returned NoneType None; expected a ModelSpec"),
        ("return specs.ModelSpec('other', Model)", "a model called 'other'; expected 'x'"),
        ("raise RuntimeError('boom')", "RuntimeError: boom"),
    ],
)
def test_a_broken_hook_is_the_provider_s_fault(install: Install, manager: PluginManager, body: str, said: str) -> None:
    install("bad", f"@hookimpl\ndef concertino_declare_model(name, options):\n    {body}\n")
    with pytest.raises(PluginError) as caught:
        manager.declare("bad/x", {})
    assert said in str(caught.value)
    assert "acme-bad 1.0" in str(caught.value)


def test_a_router_and_its_prices_are_written_as_they_are(maker: PluginManager, tmp_path: Path) -> None:
    pool = Pool.installed("maker/built-in", manager=maker).adding(
        router("first", "maker/built-in", policy="round-robin", failures=2, per_model=1.5, description="Takes turns.")
    )
    pool = pool.price({"maker/built-in": Prices(3, 4)})
    save_pool(pool, tmp_path / "pool.toml", maker)
    again = load_pool(tmp_path / "pool.toml", maker)
    assert again.id == pool.id
    assert again["first"].to_json() == pool["first"].to_json()
