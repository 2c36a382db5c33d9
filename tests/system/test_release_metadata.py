"""What every distribution says of itself on a package index, and the files about the project that hosts look for."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml
from tree import ROOT, Member, members, sdk

ROOT_PROJECT: dict[str, Any] = sdk().pyproject["project"]
EACH = pytest.mark.parametrize("member", [sdk(), *members()], ids=lambda member: member.name)
SITE, SOURCE = ROOT_PROJECT["urls"]["Documentation"], ROOT_PROJECT["urls"]["Repository"]


@EACH
def test_a_distribution_says_where_it_comes_from_who_wrote_it_and_what_it_is(member: Member) -> None:
    project = member.pyproject["project"]
    assert project["urls"] == ROOT_PROJECT["urls"]
    assert set(project["urls"]) >= {"Homepage", "Documentation", "Repository", "Issues", "Changelog"}
    assert project["authors"] == ROOT_PROJECT["authors"]
    assert project["version"] == ROOT_PROJECT["version"]
    assert {"agents", "llm"} <= set(project["keywords"])
    assert set(project["classifiers"]) <= set(ROOT_PROJECT["classifiers"])
    assert {"Typing :: Typed", "Programming Language :: Python :: 3.11"} <= set(project["classifiers"])


@EACH
def test_a_distribution_brings_its_licence(member: Member) -> None:
    assert member.pyproject["project"]["license"] == "Apache-2.0"
    assert member.pyproject["project"]["license-files"] == ["LICENSE"]
    assert (member.path / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@EACH
def test_relative_links_of_a_readme_are_absolute_in_the_package(member: Member) -> None:
    """The substitutions of the build, on each kind of link; `make release-check` reads the README that was built."""
    up = "" if member.path == ROOT else "../../"
    given = {
        f"[a]({up}docs/how-to/watch-a-run.md#from-python)": f"[a]({SITE}how-to/watch-a-run/#from-python)",
        f"[a]({up}docs/tutorial/index.md)": f"[a]({SITE}tutorial/)",
        f"[a]({up}CHANGELOG.md)": f"[a]({SOURCE}/blob/main/CHANGELOG.md)",
        "[a](https://example.org/x.md)": "[a](https://example.org/x.md)",
        "[a](#here)": "[a](#here)",
    }
    if up:
        given["[a](src/a.py)"] = f"[a]({SOURCE}/blob/main/{member.relative}/src/a.py)"
    hook = member.pyproject["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for text, expected in given.items():
        for substitution in hook["substitutions"]:
            text = re.sub(substitution["pattern"], substitution["replacement"], text)
        assert text == expected


def test_the_package_s_readme_does_not_say_that_there_is_no_release() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    hook = sdk().pyproject["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for substitution in hook["substitutions"]:
        text = re.sub(substitution["pattern"], substitution["replacement"], text)
    assert "$ pip install 'concertino[openai]'" in text
    assert "--find-links" not in text.partition("## ")[0]


def test_every_distribution_is_an_extra_of_the_sdk() -> None:
    extras = ROOT_PROJECT["optional-dependencies"]
    names = {member.name.removeprefix("concertino-") for member in members()}
    assert names <= set(extras)
    assert {re.split(r"[>\[]", requirement)[0] for name in names for requirement in extras[name]} == {
        member.name for member in members()
    }


def test_the_readme_names_every_extra() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Packages")[2].partition("## ")[0]
    assert set(ROOT_PROJECT["optional-dependencies"]) == set(re.findall(r"`([\w-]+)`", text))


def test_site_changelog_and_citation_name_the_version_and_the_addresses_of_the_packages() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == ROOT_PROJECT["version"]
    assert (citation["url"], citation["repository-code"]) == (ROOT_PROJECT["urls"]["Homepage"], SOURCE)
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert f"site_url: {SITE}\n" in settings
    assert f"repo_url: {SOURCE}\n" in settings
    assert f"copyright: concertino {ROOT_PROJECT['version']}," in settings
    assert f"## [{ROOT_PROJECT['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "file",
    [
        "CITATION.cff",
        "LICENSE",
        ".github/SECURITY.md",
        ".github/CODE_OF_CONDUCT.md",
        ".github/PULL_REQUEST_TEMPLATE.md",
        ".github/ISSUE_TEMPLATE/config.yml",
    ],
)
def test_a_file_that_hosts_look_for_is_there(file: str) -> None:
    assert (ROOT / file).read_text(encoding="utf-8").strip()


@pytest.mark.parametrize(
    "form", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda form: form.stem
)
def test_a_form_for_issues_has_what_hosts_require(form: Any) -> None:
    data = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(data)
    for part in data["body"]:
        assert part["type"] in ("input", "textarea", "markdown", "dropdown", "checkboxes")
        assert part["attributes"]["label"]


def test_build_requirements_are_pinned_for_the_tree() -> None:
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    required = {name for member in [sdk(), *members()] for name in member.pyproject["build-system"]["requires"]}
    assert all(re.search(rf"^{re.escape(re.split('[>=<]', name)[0])}==", pins, re.M) for name in required)
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["release"]
