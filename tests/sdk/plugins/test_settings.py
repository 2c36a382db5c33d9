"""Settings: read from a file and the environment, and refused with a direction when wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from concertino.core.errors import UsageError
from concertino.core.settings import Settings, load_settings


def test_without_a_file_and_an_environment_nothing_is_set(tmp_path) -> None:
    assert load_settings() == Settings()


def test_the_file_of_the_working_directory_is_read(tmp_path) -> None:
    Path("concertino.toml").write_text('disable = ["a"]\npool = "pools/mine.toml"\n')
    settings = load_settings({"CONCERTINO_DISABLE": "b, c,", "CONCERTINO_PLUGINS": " d "})
    assert settings.disable == ("a", "b", "c")
    assert settings.only == ("d",)
    assert settings.pool == Path("pools/mine.toml")
    assert settings.traces is None


def test_paths_in_a_named_file_count_from_its_folder(tmp_path) -> None:
    file = tmp_path / "elsewhere" / "own.toml"
    file.parent.mkdir()
    file.write_text('traces = "runs"')
    assert load_settings({"CONCERTINO_CONFIG": str(file)}).traces == file.parent / "runs"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("disabel = []", "unknown key 'disabel'; did you mean 'disable'"),
        ("disable = 'a'", "disable = 'a'; expected a list of provider names"),
        ("disable = [1]", "expected a list of provider names"),
        ("pool = 3", "pool = 3; expected a path in quotes"),
        ("pool = ", "invalid TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_file_and_key(tmp_path, text, expected) -> None:
    Path("concertino.toml").write_text(text)
    with pytest.raises(UsageError) as raised:
        load_settings()
    assert str(raised.value).startswith("concertino.toml: ")
    assert expected in str(raised.value)


def test_a_named_file_that_is_missing_is_refused(tmp_path) -> None:
    with pytest.raises(UsageError, match=r"CONCERTINO_CONFIG=none\.toml: file not found"):
        load_settings({"CONCERTINO_CONFIG": "none.toml"})
