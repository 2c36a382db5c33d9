"""Pool files and locks: what is written comes back equal, and a mistake names file, key and what was
expected.
"""

from __future__ import annotations

import pytest
from concertino.core.errors import PluginError, PoolError
from concertino.core.settings import Settings
from concertino.core.usage import Cost, Prices
from concertino.members.specs import ToolSpec
from concertino.plugins import PluginManager
from concertino.pool.file import load_pool, save_pool
from concertino.pool.lock import check_lock, lock_pool
from concertino.pool.pool import Pool

SIM = """
@hookimpl
def concertino_models():
    return [specs.ModelSpec("steady", Model, "Slow.", Prices(1, 2)), specs.ModelSpec("swift", Model)]
"""
SEARCH = """
@hookimpl
def concertino_tools():
    return [tool("web"), tool("offline"), tool("fetch")]
"""


@pytest.fixture
def two(install, manager) -> PluginManager:
    install("sim", SIM)
    install("search", SEARCH)
    return manager


def written(tmp_path, text: str, name: str = "pool.toml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", [".toml", ".yaml", ".yml"])
def test_a_changed_pool_comes_back_equal(two, tmp_path, suffix) -> None:
    pool = (
        Pool.installed("search/*", "sim/*", manager=two)
        .without("search/offline")
        .bind(worker="sim/steady", default="sim/swift")
        .alias({"search/web": "look_up"})
        .describe({"search/fetch": 'Fetches a "page" ünïcode.', "sim/steady": ""})
        .price({"sim/swift": Prices(0.1, 0.4, 0.05, "2026-01-31", 0.125, 10**5, 0.2, 0.6), "sim/steady": None})
    )
    fetch = pool["search/fetch"].with_(timeout=None, concurrency=2, isolation="thread", cost=Cost(units=2, usd=0.5))
    pool = pool.replace("search/fetch", fetch)
    path = tmp_path / f"pool{suffix}"
    save_pool(pool, path, two)
    again = load_pool(path, PluginManager(Settings()))
    assert again.to_json() == pool.to_json()
    assert again == pool
    assert [member.name for member in again.members] == [member.name for member in pool.members]
    assert not list(tmp_path.glob(".pool*"))


def test_an_empty_pool_comes_back_empty(manager, tmp_path) -> None:
    save_pool(Pool(), tmp_path / "pool.toml", manager)
    assert len(load_pool(tmp_path / "pool.toml", manager)) == 0


def test_patterns_give_members_in_the_order_of_the_file_and_bound_models_last(two, tmp_path) -> None:
    path = written(
        tmp_path,
        'members = ["search/w*", "*/offline", "search/*"]\nwithout = ["fetch"]\n[roles]\nworker = "sim:steady"\n',
    )
    pool = load_pool(path, two)
    assert [member.name for member in pool.members] == ["search/web", "search/offline", "sim/steady"]
    assert pool.model("worker").name == "sim/steady"


def test_a_file_without_members_holds_everything_installed(two, tmp_path) -> None:
    assert len(load_pool(written(tmp_path, "\ufeff# all of it\n"), two)) == 5
    assert len(load_pool(written(tmp_path, "", "pool.yaml"), two)) == 5


def test_yaml_may_lift_a_limit_with_null(two, tmp_path) -> None:
    text = "members: [search/web]\noverrides:\n  search/web: {timeout: null, max_chars: 100, cost: {units: 3}}\n"
    spec = load_pool(written(tmp_path, text, "pool.yml"), two)["search/web"]
    assert isinstance(spec, ToolSpec)
    assert (spec.timeout, spec.max_chars, spec.cost.units) == (None, 100, 3)


MISTAKES = {
    'member = ["sim/*"]': ["unknown key 'member'", "did you mean 'members'"],
    "members = [,": ["invalid TOML", "line 1"],
    'members = "sim/*"': ["members: expected a list of patterns", "'sim/*'"],
    "members = [1]": ["members: expected a list of patterns"],
    'members = ["smi/*"]': ["members: ", "'smi'", "did you mean 'sim'"],
    'members = ["search/wep"]': ["members: ", "'search/wep'", "did you mean 'search/web'"],
    'without = ["search/none"]': ["without: 'search/none' matches no member"],
    "roles = 3": ["roles: expected a table", "3"],
    "[roles]\nworker = 3": ["roles: 'worker' = 3; expected a text"],
    '[roles]\nworker = "search/web"': ["roles: ", "'worker'", "no model 'search/web'"],
    '[roles]\nworker = "gpt-5"': ["roles: no installed member matches 'gpt-5'", "named in full, 'provider/name'"],
    '[roles]\nworker = "sim/steddy"': ["roles: ", "did you mean 'sim/steady'"],
    '[aliases]\n"search/wep" = "x"': ["aliases: unknown key 'search/wep'", "did you mean 'search/web'"],
    '[aliases]\n"search/web" = "x"\n"search/fetch" = "x"': ["aliases: ", "visible as 'x'"],
    '[descriptions]\n"sim/steady" = 1': ["descriptions: 'sim/steady' = 1; expected a text"],
    '[descriptions]\n"search/web" = ""': ["descriptions: ", "no description"],
    '[prices]\n"sim/steady" = "free"': ["prices.'sim/steady' = 'free'; expected a table"],
    '[prices]\n"search/web" = "unknown"': ["prices: ", "'search/web' is a tool"],
    '[prices."sim/steady"]\ninput = 1': ["prices.'sim/steady'", "expected at least 'input' and 'output'"],
    '[prices."sim/steady"]\ninput = "1"\noutput = 2': ["prices.'sim/steady'.input = '1'; expected a number"],
    '[prices."sim/steady"]\ninput = -1\noutput = 2': ["prices.'sim/steady'", "a number >= 0"],
    '[prices."sim/steady"]\ninptu = 1\noutput = 2': ["unknown key 'inptu'", "did you mean 'input'"],
    '[overrides."search/web"]\ntimout = 1': ["overrides.'search/web'", "'timout'", "did you mean 'timeout'"],
    '[overrides."search/web"]\ntimeout = "1"': ["overrides.'search/web'.timeout = '1'; expected a number"],
    '[overrides."search/web"]\ntimeout = -1': ["overrides.'search/web'", "timeout=-1"],
    '[overrides."search/web"]\nconcurrency = true': ["concurrency = True; expected int"],
    '[overrides."search/web"]\nwrites = 1': ["writes = 1; expected bool"],
    '[overrides."search/web"]\nisolation = "moon"': ["isolation='moon'", "'process'"],
    '[overrides."sim/steady"]\nwrites = true': ["unknown key 'writes'"],
    "[overrides]\n'search/web' = 3": ["overrides.'search/web' = 3; expected a table"],
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_a_pool_file_names_the_file_the_key_and_what_was_expected(two, tmp_path, text) -> None:
    path = written(tmp_path, text)
    with pytest.raises(PoolError) as raised:
        load_pool(path, two)
    assert str(raised.value).startswith(f"{path}: ")
    for part in MISTAKES[text]:
        assert part in str(raised.value)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("pool.json", b"{}", "unsupported extension '.json'; expected .toml, .yaml or .yml"),
        ("pool", b"", "unsupported extension ''"),
        ("pool.toml", b"\xff\xfe", "cannot be read"),
        ("pool.yaml", b"a: [1", "invalid YAML"),
        ("pool.yaml", b"\n\n a: b: c", "line 3"),
        ("pool.yaml", b"- a", "expected `key: value` lines"),
        ("pool.yaml", b"1: a", "names as keys"),
    ],
)
def test_a_file_that_is_no_document_is_refused(manager, tmp_path, name, content, expected) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(PoolError) as raised:
        load_pool(path, manager)
    assert str(raised.value).startswith(f"{path}: ")
    assert expected in str(raised.value)


def test_a_missing_file_is_named(manager, tmp_path) -> None:
    with pytest.raises(PoolError, match=r"none\.toml: file not found"):
        load_pool(tmp_path / "none.toml", manager)


def test_a_pool_file_that_needs_a_broken_plugin_says_why_it_is_broken(install, manager, tmp_path) -> None:
    install("bad", "raise ValueError('no key')")
    with pytest.raises(PluginError, match=r"pool\.toml: members: .*acme-bad 1\.0.*ValueError: no key"):
        load_pool(written(tmp_path, 'members = ["bad/*"]'), manager)


def test_what_a_pool_file_cannot_hold_is_refused_when_saving(two, tmp_path) -> None:
    path = tmp_path / "pool.toml"
    pool = Pool.installed("search/*", manager=two)
    local = ToolSpec("mine", "Mine.", {"type": "object"}, print)
    with pytest.raises(PoolError, match="'mine' is a member of this process alone"):
        save_pool(pool.adding(local), path, two)
    with pytest.raises(PoolError, match=r"no installed provider is called 'searhc'; did you mean 'search'"):
        save_pool(pool.adding(local.with_(name="searhc/web")), path, two)
    changed = pool["search/web"].with_(input_schema={"type": "object", "required": ["x"]})
    with pytest.raises(PoolError, match="'search/web' differs from the installed one in input_schema"):
        save_pool(pool.replace("search/web", changed), path, two)
    with pytest.raises(PoolError, match=r"unsupported extension '\.ini'"):
        save_pool(pool, tmp_path / "pool.ini", two)
    with pytest.raises(PoolError, match="cannot be written"):
        save_pool(pool, tmp_path / "no folder" / "pool.toml", two)
    assert not path.exists()


def test_a_pool_is_equal_to_its_lock(two, tmp_path) -> None:
    pool = Pool.installed(manager=two)
    lock_pool(pool, tmp_path / "pool.lock", two)
    assert check_lock(pool, tmp_path / "pool.lock", two) == []
    assert 'distribution = "acme-sim"' in (tmp_path / "pool.lock").read_text()


def test_a_lock_says_in_words_what_differs(two, tmp_path) -> None:
    lock = tmp_path / "pool.lock"
    pool = Pool.installed(manager=two)
    lock_pool(pool, lock, two)
    lock.write_text(lock.read_text().replace('"1.0"', '"0.9"', 1).replace("acme-sim", "acme-simulator"))
    other = pool.without("search/fetch").describe({"search/web": "Other."})
    other = other.adding(ToolSpec("mine", "Mine.", {"type": "object"}, print))
    assert check_lock(other, lock, two) == [
        "provider 'search': acme-search is 1.0; locked is 0.9",
        "provider 'sim': it comes from acme-sim 1.0; locked is acme-simulator 1.0",
        "member 'search/web' has changed since it was locked",
        "member 'search/fetch' is locked but not in the pool",
        "member 'mine' is in the pool but not locked",
    ]


def test_a_lock_notices_a_missing_distribution_and_a_changed_role(two, tmp_path) -> None:
    lock = tmp_path / "pool.lock"
    pool = Pool.installed("sim/*", manager=two)
    lock_pool(pool, lock, two)
    assert check_lock(pool.bind(worker="sim/swift"), lock, two) == [
        "roles, aliases or the order of members have changed since the pool was locked"
    ]
    without_sim = PluginManager(Settings(disable=("sim",)))
    assert check_lock(Pool(), lock, without_sim)[0] == ("provider 'sim': acme-sim 1.0 is not installed, or is disabled")


@pytest.mark.parametrize("text", ["", 'pool = "x"\nproviders = 3', 'pool = "x"\n[providers.sim]\nversion = "1"'])
def test_a_file_that_is_no_lock_is_refused(two, tmp_path, text) -> None:
    with pytest.raises(PoolError, match="not a lock file of a pool"):
        check_lock(Pool(), written(tmp_path, text, "pool.lock"), two)
