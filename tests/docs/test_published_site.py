"""The folder of all versions of the site: each version stays, `latest` is the newest, the selector's list is true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from publish_site import publish


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("first", encoding="utf-8")
    return folder


def listed(folder: Path) -> Any:
    return json.loads((folder / "versions.json").read_text(encoding="utf-8"))


def test_a_second_version_becomes_the_latest_and_the_first_one_stays(site: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    publish(site, pages, "0.9.0")
    (site / "index.html").write_text("second", encoding="utf-8")
    assert publish(site, pages, "0.10.1") == ["0.10", "0.9"]
    assert [(pages / name / "index.html").read_text() for name in ("0.9", "0.10", "latest")] == [
        "first",
        "second",
        "second",
    ]
    assert listed(pages) == [
        {"version": "0.10", "title": "0.10.1", "aliases": ["latest"]},
        {"version": "0.9", "title": "0.9.0", "aliases": []},
    ]
    assert "latest/" in (pages / "index.html").read_text()


def test_a_fix_of_an_older_version_replaces_its_folder_and_not_the_latest(site: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    publish(site, pages, "0.1.0")
    publish(site, pages, "0.2.0")
    (site / "index.html").write_text("mended", encoding="utf-8")
    (site / "new.html").touch()
    publish(site, pages, "0.1.1")
    assert (pages / "0.1" / "index.html").read_text() == "mended"
    assert (pages / "latest" / "index.html").read_text() == "first"
    assert [row["title"] for row in listed(pages)] == ["0.2.0", "0.1.1"]


def test_a_version_whose_folder_was_removed_is_no_longer_listed(site: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    publish(site, pages, "0.1.0")
    (pages / "0.1" / "index.html").unlink()
    (pages / "0.1").rmdir()
    assert publish(site, pages, "0.2.0") == ["0.2"]
