"""Prove what a release would publish: build it, read it, install it, use it.

    python scripts/release_check.py [--final]

Every distribution is built (an sdist, and the wheel from it), and all that a package index would get is examined: the
metadata, the README as the index renders it, the contents. Then every wheel is installed alone into a fresh
environment, all of them together into another, and `concertino[openai]` into a third, in which the ten lines of the
README ask a stand-in for a model server. One row is printed for each check.

The invariant: nothing is taken from the tree but what was built. Packages of others come from the index, under the
constraints of the tree, which name a build of torch for CPUs. `--final` also refuses what only a release must not have:
addresses that stand in for real ones, and a version that the changelog calls unreleased.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.parser import HeaderParser
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from environment import PIP, WORK, SetupFailed, create, exclusive, pip
from tree import ROOT, Member, members, sdk
from wheels import DIST, WHENCE, build, refuse_gaps, wheel_of

LOG = WORK / "release.log"
AT_ONCE = 2
"""Environments that are made at the same time."""

STAND_IN = "concertino.example"
"""The host in all addresses as long as the project has no public one."""

LINKS = """
import json, sys, re
from readme_renderer.markdown import render
for file in sys.argv[1:]:
    html = render(open(file, encoding="utf-8").read())
    print(json.dumps(html and re.findall(r'(?:href|src)="([^"]*)"', html)))
"""
"""Run in the environment of the tools: the links of each README as an index renders it, null where it does not."""

UNWANTED = re.compile(
    r"(^|/)(__pycache__|tests?|\.git|\.venv|\.make|\.hypothesis|\.concertino)/|\.(pyc|trace\.jsonl|log)$"
)
MACHINE = re.compile(rb"(?<![\w.~$}-])/(?:home|Users|root|work)/(?!user\b|name\b)[\w.-]+")


class Refused(Exception):
    """A check found something; each argument is one line about it."""


@dataclass
class Release:
    """What is examined, and where."""

    folder: Path
    final: bool
    distributions: list[Member] = field(default_factory=lambda: [sdk(), *members()])

    @cached_property
    def version(self) -> str:
        return str(self.distributions[0].pyproject["project"]["version"])

    @cached_property
    def tools(self) -> Path:
        """An environment with twine and the renderer of the index."""
        venv = self.folder / "tools"
        create(venv, LOG)
        pip(venv, "install", PIP, log=LOG)
        pip(venv, "install", "--group", "release", log=LOG)
        return venv

    def sdist(self, member: Member) -> Path:
        """The sdist of a distribution."""
        (found,) = DIST.glob(f"{member.import_name}-{self.version}.tar.gz")
        return found

    def artefacts(self) -> Iterator[tuple[str, str, bytes]]:
        """Every file that would be published: archive, name, content."""
        for member in self.distributions:
            with tarfile.open(self.sdist(member)) as tar:
                for entry in tar:
                    if entry.isfile() and (stream := tar.extractfile(entry)):
                        yield self.sdist(member).name, entry.name, stream.read()
            with zipfile.ZipFile(wheel_of(member)) as wheel:
                for name in wheel.namelist():
                    yield wheel_of(member).name, name, wheel.read(name)

    def metadata(self, member: Member) -> tuple[dict[str, list[str]], str]:
        """Header fields and README of a wheel."""
        with zipfile.ZipFile(wheel_of(member)) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            message = HeaderParser().parsestr(wheel.read(name).decode())
        fields: dict[str, list[str]] = {}
        for key, value in message.items():
            fields.setdefault(key, []).append(value)
        return fields, str(message.get_payload())


# -- the checks, in their order: what each returns stands in its row --------------------------------------------------


def built(release: Release) -> str:
    """Every distribution is built, and no file of the source is missing from its wheel."""
    try:
        build(release.distributions, release.folder / "dist")
        refuse_gaps(release.distributions)
    except SystemExit as failure:
        raise Refused(*str(failure).splitlines()) from None
    size = sum(file.stat().st_size for file in DIST.iterdir())
    return f"{len(release.distributions)} sdists and wheels, {size / 1e6:.1f} MB"


def described(release: Release) -> str:
    """`twine check --strict`, and what it does not ask for: URLs, classifiers, keywords, an author, a licence file."""
    files = [str(file) for member in release.distributions for file in (release.sdist(member), wheel_of(member))]
    _succeeds([str(release.tools / "bin" / "twine"), "--no-color", "check", "--strict", *files])
    wanted = ("Project-URL", "Classifier", "Keywords", "Author", "License-Expression", "License-File", "Summary")
    lacks = [
        f"{member.name} has no {key}"
        for member in release.distributions
        for key in wanted
        if key not in release.metadata(member)[0]
    ]
    if lacks:
        raise Refused(*lacks)
    return f"{len(files)} files pass twine"


def rendered(release: Release) -> str:
    """Every README is rendered as the index does; its links are absolute, and lead to pages and files that exist."""
    files = []
    for member in release.distributions:
        files.append(release.folder / f"{member.name}.md")
        files[-1].write_text(release.metadata(member)[1], encoding="utf-8")
    lines = _succeeds([str(release.tools / "bin" / "python"), "-c", LINKS, *map(str, files)]).splitlines()
    urls = release.distributions[0].pyproject["project"]["urls"]
    wrong, count = [], 0
    for member, line in zip(release.distributions, lines, strict=True):
        links = json.loads(line)
        if links is None:
            wrong.append(f"{member.name}: the README is not rendered")
            continue
        count += len(links)
        wrong += [f"{member.name}: {link}: {reason}" for link in links if (reason := wrong_with(link, urls))]
    if wrong:
        raise Refused(*wrong)
    return f"{len(files)} pages, {count} links"


def wrong_with(link: str, urls: dict[str, str]) -> str:
    """What is wrong with a link of a README: not absolute, or to a page or file of ours that does not exist."""
    if not link.startswith(("#", "https://")):
        return "not an absolute https address"
    path = link.partition("#")[0]
    if path.startswith(site := urls["Documentation"]):
        name = path.removeprefix(site).strip("/") or "index"
        pages = (ROOT / "docs" / f"{name}.md", ROOT / "docs" / name / "index.md")
        return "" if any(page.is_file() for page in pages) else "no such page in docs/"
    if path.startswith(files := f"{urls['Repository']}/blob/main/"):
        return "" if (ROOT / path.removeprefix(files)).exists() else "no such file in the repository"
    return ""


def clean(release: Release) -> str:
    """No cache, no test, no path of this machine in any archive."""
    wrong, count = [], 0
    for archive, name, content in release.artefacts():
        count += 1
        if UNWANTED.search(name.partition("/")[2] if archive.endswith(".gz") else name):
            wrong.append(f"{archive}: {name} does not belong there")
        places = [place.decode() for place in MACHINE.findall(content)] if not _is_binary(content) else []
        wrong += [f"{archive}: {name} names {place}" for place in [*places, str(ROOT)] if place.encode() in content]
    if wrong:
        raise Refused(*wrong)
    return f"{count} files"


def _is_binary(content: bytes) -> bool:
    return b"\0" in content[:8000]


def agreed(release: Release) -> str:
    """Versions of all distributions, the requirements between them, the changelog, CITATION.cff and the site agree."""
    version, wrong = release.version, []
    for member in release.distributions:
        project = member.pyproject["project"]
        if project["version"] != version:
            wrong.append(f"{member.relative}/pyproject.toml: version {project['version']}; the SDK has {version}")
        wrong += [
            f"{member.name} requires {text}; expected {_range(version)}"
            for text in _siblings(project)
            if not text.endswith(_range(version))
        ]
    heading = re.search(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    if heading is None or heading[1] != version:
        wrong.append(f"CHANGELOG.md opens with {heading and heading[1]}; expected {version}")
    if citation["version"] != version:
        wrong.append(f"CITATION.cff: version {citation['version']}; expected {version}")
    if f"copyright: concertino {version}," not in site:
        wrong.append(f"mkdocs.yml: `copyright` does not say concertino {version}")
    if wrong:
        raise Refused(*wrong)
    return f"{version}, {heading[2] if heading else ''}"


def _range(version: str) -> str:
    major, minor, *_ = version.split(".")
    return f">={major}.{minor},<{major}.{int(minor) + 1}"


def _siblings(project: dict[str, Any]) -> list[str]:
    groups = [project.get("dependencies", []), *project.get("optional-dependencies", {}).values()]
    return [text for group in groups for text in group if re.match(r"concertino\b", text)]


def alone(release: Release) -> str:
    """Each wheel is installed alone into a fresh environment; every package of it is imported, and no plugin fails."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(
            pool.map(lambda member: _installed(release, member.name, [member.name], [member]), release.distributions)
        )
    wrong = [line for lines in found for line in lines]
    if wrong:
        raise Refused(*wrong)
    return f"{len(found)} environments"


def together(release: Release) -> str:
    """All wheels are installed into one environment, and every package is imported."""
    names = [member.name for member in release.distributions]
    if wrong := _installed(release, "together", names, release.distributions):
        raise Refused(*wrong)
    return f"{len(names)} distributions"


def _installed(release: Release, label: str, names: list[str], expected: list[Member]) -> list[str]:
    """What is wrong after `pip install --find-links dist NAMES` in an environment of its own, which is then removed."""
    venv = release.folder / label.replace("[", "-").replace("]", "")
    try:
        _install(venv, *names)
        imported = _succeeds([str(venv / "bin/python"), "-c", WHENCE, *(each.import_name for each in expected)], venv)
        listed = json.loads(_succeeds([str(venv / "bin/concertino"), "plugins", "--load", "--json"], venv))
    except (SetupFailed, Refused) as failure:
        return [f"{label}: {line}" for part in failure.args for line in str(part).splitlines()[-12:]]
    finally:
        shutil.rmtree(venv, ignore_errors=True)
    wrong = [f"{label}: {line} is not from its wheel" for line in imported.splitlines() if str(venv) not in line]
    return wrong + [f"{label}: plugin {row['name']}: {row['reason']}" for row in listed if row["state"] != "loaded"]


def _install(venv: Path, *names: str) -> None:
    create(venv, LOG)
    pip(venv, "install", "--no-compile", "--find-links", str(DIST), *names, log=LOG)


def extras(release: Release) -> str:
    """`concertino[openai]` runs the ten lines of the README; `[all]`, and every other extra, can be resolved."""
    venv = release.folder / "openai"
    _install(venv, "concertino[openai]")
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from stand_in import StandIn

    call = '<tool_call>{"name": "%s", "arguments": %s}</tool_call>'
    replies = [call % ("weather", '{"city": "Oslo"}'), call % ("final_answer", "{}"), "<answer>Rome.</answer>"]
    with StandIn(*replies) as server:
        said = _succeeds([str(venv / "bin/python"), str(ROOT / "docs/examples/readme.py")], venv, server.environment)
    if said != "Rome.\n":
        raise Refused(f"the ten lines of the README say {said!r}; expected 'Rome.'")
    offered = release.distributions[0].pyproject["project"]["optional-dependencies"]
    names = {tuple(requirements): name for name, requirements in offered.items()}  # services share a distribution
    for name in names.values():
        pip(venv, "install", "--dry-run", "--find-links", str(DIST), f"concertino[{name}]", log=LOG)
    return f"{len(offered)} extras, {len(names)} different ones; the ten lines ran"


def addressed(release: Release) -> str:
    """Addresses are real ones, and the changelog has a date. Only a final check insists."""
    wrong = []
    if any(STAND_IN in url for member in release.distributions for url in member.pyproject["project"]["urls"].values()):
        wrong.append(f"addresses at {STAND_IN} stand in for real ones; CONTRIBUTING.md says how to replace them")
    if "unreleased" in (re.search(r"^## \[.*$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M) or [""])[0]:
        wrong.append("CHANGELOG.md calls the version unreleased; give it a date")
    if wrong and release.final:
        raise Refused(*wrong)
    return f"to do before a release: {'; '.join(wrong)}" if wrong else "real addresses, and a date"


CHECKS: dict[str, Callable[[Release], str]] = {
    "built": built,
    "metadata": described,
    "README": rendered,
    "contents": clean,
    "versions": agreed,
    "each alone": alone,
    "all together": together,
    "extras": extras,
    "addresses": addressed,
}


def main() -> None:
    """Run every check and print a row for each; exit with 1 if one refused."""
    if set(sys.argv[1:]) - {"--final"}:
        sys.exit(f"unknown: {' '.join(sys.argv[1:])}; expected nothing, or --final")
    WORK.mkdir(exist_ok=True)
    LOG.unlink(missing_ok=True)
    started, failed = time.monotonic(), 0
    with exclusive("wheels"), tempfile.TemporaryDirectory(prefix="concertino-release-") as temporary:
        release = Release(Path(temporary), "--final" in sys.argv)
        for name, check in CHECKS.items():
            failed += not _row(name, check, release)
            if failed and name == "built":
                break
    print(f"{'all':13} {'FAILED' if failed else 'ok':7} {time.monotonic() - started:6.0f} s")
    sys.exit(bool(failed))


def _row(name: str, check: Callable[[Release], str], release: Release) -> bool:
    began = time.monotonic()
    try:
        detail, lines = check(release), []
    except (Refused, SetupFailed) as refusal:
        detail, lines = "", [line for part in refusal.args for line in str(part).splitlines()]
    print(f"{name:13} {'FAILED' if lines else 'ok':7} {time.monotonic() - began:6.0f} s  {detail}", flush=True)
    for line in lines:
        print(f"    {line}", flush=True)
    return not lines


def _succeeds(command: list[str], folder: Path | None = None, more: dict[str, str] | None = None) -> str:
    """What a command prints. Raises Refused with the end of all that it printed if it fails."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CONCERTINO_"))}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**kept, "NO_COLOR": "1", **(more or {})},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise Refused(*(done.stdout + done.stderr).splitlines()[-12:])
    return done.stdout


if __name__ == "__main__":
    main()
