"""Declared servers: every key, every wrong value with the place and the direction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from concertino import ProviderSettings, UsageError
from concertino_mcp.settings import KEYS, McpServerSettings, declarations, declare


def test_a_table_with_every_key_is_read(tmp_path: Path) -> None:
    stdio = {
        "command": ["./serve"],
        "args": ["--x"],
        "env": {"A": "1"},
        "env_from": ["B"],
        "cwd": "work",
        "as": "agent",
        "role": "worker",
        "include": ["a*"],
        "exclude": ["ab"],
        "prefix": "",
        "writes": {"a*": True},
        "timeout": 3,
        "start_timeout": 4,
        "idle_timeout": 0,
        "concurrency": 2,
        "binary": "data",
    }
    remote = {"url": "https://example.org/mcp", "headers_env": {"X-Key": "K"}, "headers": {"X-Team": "blue ${T}"}}
    settings = ProviderSettings(
        {"servers": {"one": stdio, "two": remote}},
        where="pool.toml: providers.mcp",
        folder=tmp_path,
    )
    one, two = declarations(settings)
    assert one == McpServerSettings(
        "one",
        (str(tmp_path / "serve"), "--x"),
        (("A", "1"),),
        ("B",),
        str(tmp_path / "work"),
        kind="agent",
        role="worker",
        include=("a*",),
        exclude=("ab",),
        prefix="",
        writes=(("a*", True),),
        timeout=3.0,
        start_timeout=4.0,
        idle_timeout=None,
        concurrency=2,
        binary="data",
    )
    assert (two.url, two.headers_env, two.transport) == ("https://example.org/mcp", (("X-Key", "K"),), "http")
    assert two.headers == (("X-Team", "blue ${T}"),)
    assert two.variables == ("K", "T")
    assert {*stdio, *remote} == set(KEYS)
    assert hash(one) != hash(two)


def test_a_server_works_in_the_folder_of_its_file(tmp_path: Path) -> None:
    (one,) = declarations(ProviderSettings({"servers": {"a": {"command": ["serve", "x.py"]}}}, folder=tmp_path))
    assert (one.command, one.cwd) == (("serve", "x.py"), str(tmp_path))


def test_patterns_choose_tools_and_say_what_writes() -> None:
    one = declare("a", {"command": ["x"], "include": ["read_*", "list"], "exclude": ["read_all"], "writes": False})
    assert [one.takes(tool) for tool in ("read_one", "list", "read_all", "write")] == [True, True, False, False]
    assert one.says_writes("anything") is False
    assert declare("a", {"command": ["x"]}).says_writes("anything") is None


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"comand": ["x"]}, "unknown key 'comand'; did you mean 'command'?"),
        ({"command": ["x"], "zzz": 1}, "unknown key 'zzz'; there are command, args"),
        ({}, "neither `command` nor `url` is given; give either `command`"),
        ({"command": ["x"], "url": "http://h/"}, "both `command` and `url` are given"),
        ({"args": ["x"]}, "args is given without command; give the program as `command`"),
        ({"command": []}, "a program and its arguments"),
        ({"command": "npx -y server"}, r"a list: \['npx', '-y', 'server'\]"),
        ({"command": ["x"], "args": [3]}, r"args = \[3\]; expected a list of texts"),
        ({"command": ["x"], "env": {"A": 1}}, "env = .*; expected a table of texts"),
        ({"command": ["x"], "env_from": ["A B"]}, "the name of an environment variable"),
        ({"command": ["x"], "headers_env": {"A": "B"}}, "headers_env belongs to a server with url"),
        ({"url": "http://h/", "cwd": "."}, "cwd belongs to a server with command"),
        ({"url": "ftp://h/"}, "an address such as"),
        ({"url": "http://me:pw@h/"}, "put the header into an environment variable"),
        (
            {"url": "http://h/", "headers_env": {"Authorization": "Bearer abc"}},
            "is not the name of an environment variable",
        ),
        ({"command": ["x"], "as": "tool"}, "'tools' or 'agent'"),
        ({"command": ["x"], "timeout": 0}, "timeout = 0; expected seconds"),
        ({"command": ["x"], "idle_timeout": -1}, "or 0 for never"),
        ({"command": ["x"], "timeout": True}, "timeout = True"),
        ({"command": ["x"], "concurrency": 1.5}, "a whole number >= 1"),
        ({"command": ["x"], "prefix": "a b"}, "prefix = 'a b'"),
        ({"command": ["x"], "writes": {"a": "no"}}, "true, false, or a table"),
        ({"command": ["x"], "include": "read"}, "include = 'read'; expected a list"),
        ("x", "expected a table"),
    ],
)
def test_a_wrong_table_is_refused_with_the_place(table: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        declarations(ProviderSettings({"servers": {"files": table}}, where="pool.toml: providers.mcp"))
    assert str(caught.value).startswith("pool.toml: providers.mcp: server 'files'")
    assert "Bearer abc" not in str(caught.value), "what may be a secret is not repeated"


def test_wrong_settings_around_the_tables_are_refused() -> None:
    with pytest.raises(UsageError, match="unknown key 'server'; did you mean 'servers'"):
        declarations(ProviderSettings({"server": {}}))
    with pytest.raises(UsageError, match="expected tables such as"):
        declarations(ProviderSettings({"servers": ["a"]}))
    with pytest.raises(UsageError, match=r"'a\.b' is not a valid server name"):
        declarations(ProviderSettings({"servers": {"a.b": {"command": ["x"]}}}))
    assert declarations(None) == declarations(ProviderSettings()) == []
