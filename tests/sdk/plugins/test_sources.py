"""Files, folders and objects that a plugin makes members of, in `Pool.of`, in `adding` and in pool files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.plugins.manager import PluginManager


class Box:
    """An object that only a plugin knows."""


def speaker(name: str, text: str) -> ct.ToolSpec:
    return ct.ToolSpec.from_schema(name, f"Says {text}.", {"type": "object"}, lambda arguments: text)


class Reader:
    """Makes one tool of each line of a `.lines` file, and one of a `Box`."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    @ct.hookimpl
    def concertino_members_from(self, source: Any, settings: ct.ProviderSettings) -> list[ct.ToolSpec] | None:
        self.asked.append(source)
        if isinstance(source, Box):
            return [speaker("box", "box")]
        if not isinstance(source, Path) or source.suffix != ".lines":
            return None
        lines = source.read_text().split()
        if not lines:
            raise ct.UsageError(f"{source}: expected a line")
        return [speaker(line, settings.get("text", line)) for line in lines]


class Broken:
    @ct.hookimpl
    def concertino_members_from(self, source: Any) -> Any:
        if isinstance(source, Path):
            return [3]
        raise RuntimeError("it fell over")


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def manager(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> PluginManager:
    manager = PluginManager(installed=False)
    manager.register(reader, "reader")
    monkeypatch.setattr("concertino.plugins.manager.default_manager", lambda: manager)
    return manager


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    file = tmp_path / "two.lines"
    file.write_text("one\ntwo\n")
    return file


async def content(pool: ct.Pool, name: str) -> Any:
    async with ct.Executor() as executor:
        return (await executor.run([ct.Call(name)], pool))[0].content


@pytest.mark.usefixtures("manager")
async def test_a_plugin_makes_members_of_a_path_and_of_an_object(lines: Path) -> None:
    pool = ct.Pool.of(lines).adding(Box())
    assert [member.name for member in pool] == ["reader/one", "reader/two", "reader/box"]
    assert await content(pool, "two") == "two"
    assert await content(pool, "box") == "box"
    assert [member.source for member in pool if isinstance(member, ct.ToolSpec)] == [str(lines), str(lines), ""]


@pytest.mark.usefixtures("manager")
def test_no_plugin_is_asked_about_what_the_pool_knows_or_a_text(reader: Reader) -> None:
    def known(x: int) -> int:
        """Known."""
        return x

    with pytest.raises(ct.SpecError, match="'reader/one' cannot be a member of a pool; give a spec"):
        ct.Pool.of(known, speaker("a", "a"), "reader/one")
    assert reader.asked == []


@pytest.mark.usefixtures("manager")
def test_a_text_that_is_a_path_is_told_so(lines: Path) -> None:
    with pytest.raises(ct.SpecError, match=r"of a file or folder, give Path\('.*two\.lines'\)"):
        ct.Pool.of(str(lines))


@pytest.mark.usefixtures("manager")
def test_what_no_plugin_knows_says_what_would_help(tmp_path: Path) -> None:
    skills, registry, other = tmp_path / "skills", tmp_path / "server.json", tmp_path / "other.bin"
    (skills / "one").mkdir(parents=True)
    (skills / "one" / "SKILL.md").touch()
    registry.touch()
    other.touch()
    for source, said in [
        (skills, r"skills; pip install 'concertino\[code\]'"),
        (registry, r"server.json; pip install 'concertino\[mcp\]'"),
        (other, r"concertino\[code\] reads folders of Agent Skills"),
        (tmp_path / "nowhere", "nowhere: file not found"),
    ]:
        with pytest.raises(ct.PoolError, match=said):
            ct.Pool.of(source)
    with pytest.raises(ct.SpecError, match="cannot be a member of a pool"):
        ct.Pool.of(object())


def test_the_first_provider_by_name_that_knows_it_counts(manager: PluginManager, lines: Path) -> None:
    first, last = Reader(), Reader()
    manager.register(last, "zeta")
    manager.register(first, "alpha")
    assert [member.provider for member in ct.Pool.of(lines)] == ["alpha", "alpha"]
    assert last.asked == []


@pytest.mark.usefixtures("manager")
def test_a_file_that_is_wrong_is_the_user_s_mistake_in_the_plugin_s_words(tmp_path: Path) -> None:
    (tmp_path / "none.lines").touch()
    with pytest.raises(ct.UsageError, match=r"none\.lines: expected a line$"):
        ct.Pool.of(tmp_path / "none.lines")


def test_a_broken_hook_names_its_plugin(manager: PluginManager, lines: Path) -> None:
    manager.register(Broken(), "broken")
    with pytest.raises(ct.PluginError, match=r"'broken' .* cannot read .*two\.lines: .*\[0\] is int 3; expected"):
        ct.Pool.of(lines)
    with pytest.raises(ct.PluginError, match=r"plugin 'broken' .* cannot read Box .*RuntimeError: it fell over"):
        ct.Pool.of(Box())


def test_a_member_of_another_provider_is_refused(manager: PluginManager, lines: Path) -> None:
    class Thief:
        @ct.hookimpl
        def concertino_members_from(self, source: Any) -> list[ct.ToolSpec]:
            return [speaker("reader/one", "stolen")]

    manager.register(Thief(), "a-thief")
    with pytest.raises(ct.PluginError, match="'reader' is another provider"):
        ct.Pool.of(lines)


# -- pool files --------------------------------------------------------------------------------------------------------


async def test_a_pool_file_names_sources_from_its_own_folder(manager: PluginManager, lines: Path) -> None:
    file = lines.parent / "pool.toml"
    file.write_text(
        'members = []\nsources = ["two.lines"]\nwithout = ["reader/one"]\n[descriptions]\n"reader/two" = "Two!"\n'
        '[providers.reader]\ntext = "set"\n'
    )
    pool = ct.Pool.load(file, manager=manager)
    assert [(member.name, member.description) for member in pool] == [("reader/two", "Two!")]
    assert await content(pool, "two") == "set"


def test_saving_keeps_sources_and_what_was_left_out_of_them(manager: PluginManager, lines: Path) -> None:
    pool = ct.Pool.of(lines).without("reader/two").describe({"reader/one": "The one."})
    file = lines.parent / "saved.toml"
    pool.save(file)
    text = file.read_text()
    assert 'sources = [\n    "two.lines",\n]' in text
    assert ct.Pool.load(file, manager=manager) == pool
    lines.parent.joinpath("elsewhere").mkdir()
    pool.save(lines.parent / "elsewhere" / "saved.yaml")
    assert ct.Pool.load(lines.parent / "elsewhere" / "saved.yaml", manager=manager) == pool


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('"two.lines"', r"pool\.toml: sources: expected a list of paths such as \['skills'\], got 'two\.lines'"),
        ('["gone.lines"]', r"pool\.toml: sources: .*gone\.lines"),
        ('["none.lines"]', r"pool\.toml: sources: .*none\.lines: expected a line"),
        ('["other.bin"]', r"pool\.toml: sources: no installed plugin makes members of .*other\.bin"),
    ],
)
def test_a_wrong_source_is_named_with_file_and_key(
    manager: PluginManager, tmp_path: Path, written: str, said: str
) -> None:
    (tmp_path / "none.lines").touch()
    (tmp_path / "other.bin").touch()
    (tmp_path / "pool.toml").write_text(f"sources = {written}\n")
    with pytest.raises((ct.PoolError, ct.PluginError), match=said):
        ct.Pool.load(tmp_path / "pool.toml", manager=manager)
