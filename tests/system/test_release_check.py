"""`make release-check` refuses what it should: each check that needs no environment, on archives that are made here."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import release_check
import wheels
from release_check import Refused, Release, addressed, agreed, clean, wrong_with
from tree import ROOT, Member, sdk

NAME = "concertino_example-0.1.0"
URLS = sdk().pyproject["project"]["urls"]


def release(folder: Path, *, final: bool = False, **project: Any) -> Release:
    """A release of one distribution, `concertino-example`."""
    data = {"name": "concertino-example", "version": "0.1.0", "dependencies": [], "urls": URLS, **project}
    return Release(folder, final, [Member(folder, {"project": data})])


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that packs files into the sdist and the wheel of that distribution."""
    monkeypatch.setattr(release_check, "DIST", tmp_path)
    monkeypatch.setattr(wheels, "DIST", tmp_path)

    def pack(sdist: Mapping[str, bytes], wheel: Mapping[str, bytes]) -> Release:
        with tarfile.open(tmp_path / f"{NAME}.tar.gz", "w:gz") as tar:
            for name, content in sdist.items():
                entry = tarfile.TarInfo(f"{NAME}/{name}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        with zipfile.ZipFile(tmp_path / f"{NAME}-py3-none-any.whl", "w") as archive:
            for name, content in wheel.items():
                archive.writestr(name, content)
        return release(tmp_path)

    return pack


def test_archives_of_source_alone_are_clean(packed: Any) -> None:
    assert clean(packed({"src/a.py": b"x = 1\n", "README.md": b"#"}, {"a.py": b"x = 1\n"})) == "3 files"


@pytest.mark.parametrize(
    "name", ["tests/test_a.py", "src/__pycache__/a.pyc", "src/a.pyc", ".make/setup.log", "runs/1.trace.jsonl"]
)
def test_caches_tests_and_traces_are_refused_in_both_archives(packed: Any, name: str) -> None:
    with pytest.raises(Refused, match="does not belong"):
        clean(packed({name: b"x"}, {"a.py": b""}))
    with pytest.raises(Refused, match="does not belong"):
        clean(packed({"a.py": b""}, {name: b"x"}))


def test_a_path_of_this_machine_is_refused_and_named(packed: Any) -> None:
    place = "/".join(["", "home", "ada", "secret"])
    with pytest.raises(Refused, match="names"):
        clean(packed({"src/a.py": f"path = '{place}'\n".encode()}, {"a.py": b""}))
    with pytest.raises(Refused, match="names"):
        clean(packed({"src/a.py": b""}, {"a.bin": b"\0" + str(ROOT).encode()}))


@pytest.mark.parametrize(
    ("link", "wrong"),
    [
        ("docs/index.md", "absolute"),
        ("http://example.org", "absolute"),
        (f"{URLS['Documentation']}how-to/no-such-page/", "no such page"),
        (f"{URLS['Repository']}/blob/main/NOTHING.md", "no such file"),
        (f"{URLS['Documentation']}how-to/watch-a-run/#in-a-terminal", ""),
        (f"{URLS['Documentation']}tutorial/", ""),
        (URLS["Documentation"], ""),
        (f"{URLS['Repository']}/blob/main/CHANGELOG.md", ""),
        ("https://example.org/latest/", ""),
        ("#here", ""),
    ],
)
def test_a_link_is_absolute_and_leads_to_something(link: str, wrong: str) -> None:
    found = wrong_with(link, URLS)
    assert wrong in found
    assert bool(wrong) == bool(found)


def test_versions_of_the_tree_agree() -> None:
    assert agreed(Release(ROOT, False)).startswith(sdk().pyproject["project"]["version"])


def test_another_version_and_a_narrow_requirement_are_refused(tmp_path: Path) -> None:
    other = release(tmp_path, version="0.2.0", dependencies=["concertino>=0.1,<0.2"])
    with pytest.raises(Refused) as refused:
        agreed(other)
    text = "\n".join(refused.value.args)
    assert "concertino-example requires concertino>=0.1,<0.2; expected >=0.2,<0.3" in text
    assert "CHANGELOG.md opens with" in text
    assert "CITATION.cff" in text


def test_addresses_that_stand_in_are_reported_and_refused_at_the_end_only(tmp_path: Path) -> None:
    urls = {"Homepage": "https://concertino.example"}
    assert "stand in" in addressed(release(tmp_path, urls=urls))
    with pytest.raises(Refused, match="stand in"):
        addressed(release(tmp_path, final=True, urls=urls))
