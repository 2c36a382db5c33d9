"""Settings of a provider: read by its hooks alone, refused where they stand, and kept apart pool by pool."""

from __future__ import annotations

from pathlib import Path

import pytest
from concertino.cli.doctor import diagnose
from concertino.core.errors import PluginError, PoolError, UsageError
from concertino.core.provider_settings import ProviderSettings
from concertino.core.settings import load_settings
from concertino.plugins import PluginManager
from concertino.pool.file import load_pool, save_pool

from .conftest import Install

GREETER = '''
from concertino.cli.doctor import Finding

asked = []

@hookimpl
def concertino_tools(settings):
    settings.check(["word", "file"])
    if settings.get("word") == "":
        raise ValueError("word = ''; expected a greeting")
    asked.append(settings.get("word"))
    return [specs.tool(make(settings.get("word", "hello")), name="greet", timeout=5)]

def make(word):
    def greet() -> str:
        """Greet."""
        return word
    return greet

@hookimpl
def concertino_before_call(spec, arguments, call_id):
    return None

@hookimpl
def concertino_doctor(settings):
    return [Finding("warning", "greeter", f"says {settings.get('word', 'hello')}", "listen")]
'''


def manager() -> PluginManager:
    return PluginManager(load_settings(), seconds=5)


def words(pool_text: str, manager: PluginManager, name: str = "pool.toml") -> str:
    Path(name).write_text(pool_text)
    found: str = load_pool(Path(name), manager)["greeter/greet"].function()
    return found


@pytest.fixture(autouse=True)
def greeter(install: Install) -> str:
    return install("greeter", GREETER)


def test_a_provider_without_a_table_is_given_an_empty_one() -> None:
    assert manager().specs(["greeter/*"])[0].function() == "hello"


def test_the_table_of_the_settings_file_is_given_to_the_provider_s_hooks() -> None:
    Path("concertino.toml").write_text('[providers.greeter]\nword = "salut"\n')
    made = manager()
    assert made.specs()[0].function() == "salut"
    assert [f.text for f in diagnose(made) if f.subject == "greeter"] == ["says salut"]


def test_a_pool_file_s_table_takes_the_place_of_that_one_for_this_pool_alone() -> None:
    Path("concertino.toml").write_text('[providers.greeter]\nword = "salut"\n')
    made = manager()
    assert words('[providers.greeter]\nword = "ciao"\n', made) == "ciao"
    assert words("", made, "plain.toml") == "salut"
    assert words("[providers.greeter]\n", made, "empty.toml") == "hello"


def test_the_same_table_is_asked_for_once_and_hooks_around_calls_are_there_once(greeter: str) -> None:
    made = manager()
    first = words('[providers.greeter]\nword = "ciao"\n', made)
    assert words('[providers.greeter]\nword = "ciao"\n', made) == first
    assert made.specs()[0].function() == "hello"
    module = __import__(greeter)
    assert module.asked == ["ciao", None]
    assert len(made.before_call_hooks()) == 1


def test_a_saved_pool_keeps_its_settings_of_providers() -> None:
    made = manager()
    Path("pool.toml").write_text('[providers.greeter]\nword = "ciao"\n')
    save_pool(load_pool(Path("pool.toml"), made), Path("copy.toml"))
    again = load_pool(Path("copy.toml"), made)
    assert again["greeter/greet"].function() == "ciao"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("wrod = 'x'", "providers.greeter: unknown key 'wrod'; did you mean 'word'?"),
        ("word = ''", "providers.greeter: word = ''; expected a greeting"),
    ],
)
def test_a_wrong_setting_is_refused_with_file_table_and_key(table: str, expected: str) -> None:
    Path("pool.toml").write_text(f'members = ["greeter/*"]\n[providers.greeter]\n{table}\n')
    with pytest.raises(PluginError) as raised:
        load_pool(Path("pool.toml"), manager())
    assert f"pool.toml: {expected}" in str(raised.value)
    Path("concertino.toml").write_text(f"[providers.greeter]\n{table}\n")
    row = manager().load("greeter")
    assert row.reason == f"concertino.toml: {expected}"


def test_a_table_for_nobody_and_one_that_nobody_reads_are_errors(install: Install) -> None:
    install("words")
    Path("pool.toml").write_text("[providers.greter]\nword = 'x'\n")
    with pytest.raises(PoolError, match=r"pool\.toml: providers\.greter: no installed provider .* 'greeter'"):
        load_pool(Path("pool.toml"), manager())
    Path("pool.toml").write_text("members = ['words/*']\n[providers.words]\nword = 'x'\n")
    with pytest.raises(PluginError, match=r"providers\.words: it takes no settings; remove the table"):
        load_pool(Path("pool.toml"), manager())
    Path("pool.toml").write_text("providers = 3\n")
    with pytest.raises(PoolError, match=r"pool\.toml: providers: expected a table"):
        load_pool(Path("pool.toml"), manager())
    Path("concertino.toml").write_text("[providers.greter]\n")
    with pytest.raises(PoolError, match=r"concertino\.toml: providers\.greter: no installed provider"):
        manager().specs()
    Path("concertino.toml").write_text("[providers]\ngreeter = 1\n")
    with pytest.raises(UsageError, match=r"expected tables such as \[providers\.search\]"):
        load_settings()


@pytest.mark.slow
def test_a_doctor_that_raises_or_returns_nonsense_is_a_finding(install: Install) -> None:
    install("ill", GREETER.replace("return [Finding(", "raise OSError('no disk')\n    return [Finding("))
    install("shy", GREETER.replace('Finding("warning"', 'Finding("bad level"'))
    install("odd", GREETER.replace('return [Finding("warning"', "return 3\n    return [Finding('warning'"))
    errors = {f.subject: f.text for f in diagnose(manager()) if f.level == "error"}
    assert "no disk" in errors["plugin ill"]
    assert "'bad level'" in errors["plugin shy"]
    assert "concertino_doctor() returned" in errors["plugin odd"]


def test_paths_count_from_the_folder_of_their_file(tmp_path: Path) -> None:
    settings = ProviderSettings({"file": "a/b", "home": "~/c", "bad": 3}, where="x.toml: providers.x", folder=tmp_path)
    assert settings.path("file") == tmp_path / "a" / "b"
    assert settings.path("none") is None
    assert str(settings.path("home")).startswith(str(Path.home()))
    with pytest.raises(UsageError, match=r"x\.toml: providers\.x: bad = 3; expected a path in quotes"):
        settings.path("bad")
