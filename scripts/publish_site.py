"""Put the site that `make docs` built into a folder of all versions, which a web server serves as it is.

    python scripts/publish_site.py FOLDER

The folder gets `0.1/` (the minor version of the SDK), `latest/` (the same, if no newer one is there), `versions.json`,
which the version selector of every page reads, and an `index.html` that leads to `latest/`. Other versions stay as they
are. The invariant: `versions.json` names exactly the versions whose folders are there, the newest first.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from tree import ROOT, sdk

REDIRECT = (
    '<!doctype html><meta charset="utf-8"><title>concertino</title><meta http-equiv="refresh" content="0; url=latest/">'
)


def publish(site: Path, folder: Path, version: str) -> list[str]:
    """Add a built site as `version`, such as 0.1.0; returns the versions that are there, the newest first."""
    minor = ".".join(version.split(".")[:2])
    folder.mkdir(parents=True, exist_ok=True)
    listed = _listed(folder)
    titles = {minor: version} | {each["version"]: each["title"] for each in listed if each["version"] != minor}
    ordered = sorted(titles, key=_number, reverse=True)
    _copy(site, folder / minor)
    if ordered[0] == minor:
        _copy(site, folder / "latest")
    rows = [
        {"version": each, "title": titles[each], "aliases": ["latest"] if each == ordered[0] else []}
        for each in ordered
    ]
    (folder / "versions.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(REDIRECT + "\n", encoding="utf-8")
    return ordered


def _listed(folder: Path) -> list[dict[str, str]]:
    file = folder / "versions.json"
    rows: list[dict[str, str]] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    return [row for row in rows if (folder / row["version"]).is_dir()]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _copy(site: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(site, target)


def main() -> None:
    """Publish `site/` into the folder of the command line."""
    if len(sys.argv) != 2:
        sys.exit("expected one argument: the folder of all versions, such as ../pages")
    site = ROOT / "site"
    if not (site / "index.html").is_file():
        sys.exit("site/ is not built; run: make docs")
    print("versions:", *publish(site, Path(sys.argv[1]), sdk().pyproject["project"]["version"]))


if __name__ == "__main__":
    main()
