"""Agent Skills as tools: the description first, the instructions by a call, files and scripts as they are asked for."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.plugins.manager import PluginManager
from concertino.testing import run_call
from concertino_code.sandbox.limits import ScriptLimits
from concertino_code.settings import CodeSettings
from concertino_code.skills.finding import DEPTH, find_skills
from concertino_code.skills.member import skill_tool
from concertino_code.skills.skill import read_skill

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
"""Nine lines of YAML that are a thousand million values."""
SETTINGS = CodeSettings(limits=ScriptLimits(wall=20))
ADD = """\
import json, sys
from pathlib import Path
from table import FACTOR

numbers = [int(word) for word in sys.argv[1:]] or json.load(sys.stdin)
Path("sum.txt").write_text(str(sum(numbers) * FACTOR))
print(sum(numbers) * FACTOR, Path(sys.argv[0]).name, sorted(path.name for path in Path().iterdir()))
"""


def write(folder: Path, text: str, **files: str | bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(text)
    for name, content in files.items():
        path = folder / name.replace("__", "/", 1)
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content)
    return folder


def front(
    name: str = "adding", description: str = "Adds numbers. Use for sums.", more: str = "", body: str = ""
) -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{body or '# Adding up'}\n"


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """A skill with scripts, a reference and an image."""
    folder = write(tmp_path / "adding", front(more="compatibility: Requires Python\nlicense: MIT\n"))
    (folder / "scripts").mkdir()
    (folder / "scripts" / "add.py").write_text(ADD)
    (folder / "scripts" / "table.py").write_text("FACTOR = 2\n")
    (folder / "scripts" / "count.sh").write_text('echo "$# of $1"\ncat\nexit 3\n')
    (folder / "references").mkdir()
    (folder / "references" / "RULES.md").write_text("Add from the left.")
    (folder / "logo.png").write_bytes(PNG)
    (folder / "blob.bin").write_bytes(b"\xff\xfe\x00")
    (folder / ".hidden").write_text("no")
    return folder


async def call(folder: Path, settings: CodeSettings = SETTINGS, **arguments: Any) -> ct.Observation:
    return await run_call(skill_tool(read_skill(folder), settings), arguments)


def code(seen: ct.Observation) -> str:
    return seen.error.code if seen.error else ""


def said(seen: ct.Observation) -> str:
    return seen.error.message if seen.error else ""


# -- the card ----------------------------------------------------------------------------------------------------------


def test_the_orchestrator_reads_the_description_and_nothing_of_the_instructions(skill: Path) -> None:
    spec = skill_tool(read_skill(skill), SETTINGS)
    assert spec.name == "adding"
    assert spec.description == "Adds numbers. Use for sums.\nA skill: call it without arguments for its instructions."
    assert list(spec.input_schema["properties"]) == ["read", "run", "arguments", "stdin", "files", "artefacts"]


def test_a_skill_without_files_or_scripts_has_no_arguments_for_them(tmp_path: Path) -> None:
    plain = skill_tool(read_skill(write(tmp_path / "a", front("a"))), SETTINGS)
    readable = skill_tool(read_skill(write(tmp_path / "b", front("b"), references__x="text")), SETTINGS)
    assert plain.input_schema["properties"] == {}
    assert list(readable.input_schema["properties"]) == ["read"]


async def test_a_pool_takes_a_folder_of_skills_by_its_path(skill: Path) -> None:
    write(skill.parent / "deep" / "er" / "other", front("other", "Does other things."))
    write(skill / "inner", front("inner"))  # part of the skill around it
    pool = ct.Pool.of(skill.parent)
    assert [member.name for member in pool] == ["code/adding", "code/other"]
    assert list(pool.visible_names.values()) == ["adding", "other"]
    for source in (skill, skill / "SKILL.md"):
        assert [member.name for member in ct.Pool.of(source)] == ["code/adding"]
    async with ct.Executor() as executor:
        (seen,) = await executor.run([ct.Call("other")], pool)
    assert seen.content == "# Adding up"


def test_a_pool_file_names_a_folder_of_skills_and_the_settings_of_its_sandbox(skill: Path) -> None:
    file = skill.parent / "pool.toml"
    file.write_text('members = []\nsources = ["adding"]\n[providers.code]\nwall = 3\n')
    pool = ct.Pool.load(file, manager=PluginManager())
    (member,) = pool.members
    assert (member.name, member.timeout) == ("code/adding", 23.0)
    pool.save(skill.parent / "again.toml")
    assert ct.Pool.load(skill.parent / "again.toml", manager=PluginManager()) == pool


# -- calls -------------------------------------------------------------------------------------------------------------


async def test_a_call_without_arguments_gives_the_instructions_as_they_are_now(skill: Path) -> None:
    first = (await call(skill)).content
    assert first == (
        "# Adding up\n\nIt needs: Requires Python\n\n"
        "Files of this skill: blob.bin, logo.png, references/RULES.md, scripts/add.py, scripts/count.sh, "
        "scripts/table.py."
    )
    spec = skill_tool(read_skill(skill), SETTINGS)
    (skill / "SKILL.md").write_text(front(body="Changed."))
    assert "Changed." in (await run_call(spec, {})).content


async def test_files_are_read_as_text_or_as_attachments(skill: Path) -> None:
    assert (await call(skill, read="references/RULES.md")).content == "Add from the left."
    image = (await call(skill, read="logo.png")).content
    assert image.startswith("[image logo.png ")
    seen = await call(skill, read="blob.bin")
    assert (code(seen), "blob.bin is no text (3 bytes)" in said(seen)) == ("binary_file", True)


@pytest.mark.parametrize(
    "name", ["../secret.txt", "references/../../secret.txt", "/etc/passwd", "link", "a\0b", "loop"]
)
async def test_no_path_leads_out_of_the_folder(skill: Path, name: str) -> None:
    (skill.parent / "secret.txt").write_text("secret")
    (skill / "link").symlink_to(skill.parent / "secret.txt")
    (skill / "loop").symlink_to(skill / "loop")
    for key in ("read", "run"):
        seen = await run_call(skill_tool(read_skill(skill), SETTINGS), {key: name})
        assert (seen.status, seen.content) != (ct.Status.OK, "secret")
        assert code(seen) == "no_file"
    assert "link" not in (await call(skill)).content


async def test_an_unknown_file_names_the_near_ones(skill: Path) -> None:
    assert "did you mean references/RULES.md?" in said(await call(skill, read="reference/RULES.md"))
    assert "did you mean scripts/add.py?" in said(await call(skill, run="scripts/ad.py"))


@pytest.mark.usefixtures("namespaces")
async def test_a_script_runs_in_the_sandbox_with_the_skill_as_its_folder(skill: Path) -> None:
    seen = await call(skill, run="scripts/add.py", arguments=["1", "2"], artefacts=["sum.txt"])
    assert seen.ok, seen.error
    assert seen.content["stdout"].startswith("6 add.py ['SKILL.md', 'blob.bin', 'logo.png', 'references', 'scripts'")
    assert seen.content["artefacts"] == {"sum.txt": {"text": "6"}}
    assert not (skill / "sum.txt").exists()
    assert (await call(skill, run="scripts/add.py", stdin="[4]")).content["stdout"].startswith("8 ")


@pytest.mark.usefixtures("namespaces")
async def test_a_shell_script_and_its_exit_status_are_passed_on(skill: Path) -> None:
    seen = await call(skill, run="scripts/count.sh", arguments=["a b", "c"], stdin="input")
    assert (seen.status, code(seen)) == (ct.Status.EXEC_ERR, "script_error")
    assert seen.content == {"stdout": "2 of a b\ninput", "exit_code": 3}


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize(
    ("first", "printed"),
    [
        ("#!/usr/bin/env python3", "ran ['a']\n"),
        ("#!/usr/bin/env -S python3 -u", "ran ['a']\n"),
        ("#!/usr/bin/nonesuch", "the sandbox has no nonesuch, which run-me needs\n"),
    ],
)
async def test_a_script_without_a_suffix_is_run_by_what_its_first_line_names(
    tmp_path: Path, first: str, printed: str
) -> None:
    folder = write(tmp_path / "x", front("x"), **{"run-me": f"{first}\nimport sys\nprint('ran', sys.argv[1:])\n"})
    content = (await call(folder, run="run-me", arguments=["a"])).content
    assert printed in (content["stdout"], content.get("stderr"))


@pytest.mark.usefixtures("namespaces")
async def test_a_script_is_given_files_beside_those_of_the_skill_and_never_instead(skill: Path) -> None:
    (skill / "scripts" / "show.py").write_text("print(open('in/data.txt').read())")
    assert (await call(skill, run="scripts/show.py", files={"in/data.txt": "given"})).content["stdout"] == "given\n"
    for name in ("scripts/add.py", "scripts", "logo.png/x", "../x"):
        seen = await call(skill, run="scripts/show.py", files={name: "other"})
        assert code(seen) == "bad_call", name


@pytest.mark.usefixtures("namespaces")
async def test_files_that_find_no_room_are_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "big", front("big"), **{"go.py": "import os\nprint(sorted(os.listdir()))"})
    (folder / "large.bin").write_bytes(bytes(700_000))
    (folder / ("x" * 210)).write_text("long name")
    small = CodeSettings(limits=ScriptLimits(wall=20, disk_mb=1))
    content = (await call(folder, small, run="go.py")).content
    assert content["stdout"] == "['SKILL.md', 'go.py']\n"
    assert sorted(content["left_out"]) == ["large.bin", "x" * 210]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"read": "logo.png", "run": "scripts/add.py"}, "give either `read` or `run`"),
        ({"stdin": "x"}, "stdin without `run`; name the script"),
    ],
)
async def test_a_call_that_means_nothing_says_so(skill: Path, arguments: dict[str, Any], expected: str) -> None:
    seen = await call(skill, **arguments)
    assert (code(seen), said(seen).endswith(expected)) == ("bad_call", True)


async def test_arguments_of_a_wrong_type_are_refused_before_anything_is_read(skill: Path) -> None:
    seen = await call(skill, read=["logo.png"])
    assert (seen.status, code(seen)) == (ct.Status.PARSE_ERR, "invalid_arguments")


# -- what is not as it should be ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# No front matter", "expected front matter first"),
        ("---\nname: x\n", "expected front matter first"),
        ("---\nname: x\n---\n", "description is missing; expected a text"),
        ("---\nname: x\ndescription: ''\n---\n", "description is empty; expected a text"),
        ("---\n- a\n- b\n---\n", "expected `key: value` lines"),
        ("---\n[\n---\n", "its front matter is invalid YAML"),
        (f"---\n{BOMB}description: *i\n---\n", "description is a list; expected a text"),
        ("---\n" + "[" * 5000 + "\n---\n", "its front matter is invalid YAML"),
    ],
)
def test_a_skill_that_cannot_be_read_names_its_file_and_what_was_expected(
    tmp_path: Path, text: str, expected: str
) -> None:
    folder = write(tmp_path / "x", text)
    with pytest.raises(ct.UsageError, match=rf"x/SKILL\.md: {expected}"):
        ct.Pool.of(folder)


def test_what_differs_from_the_format_and_does_no_harm_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "colon", "---\nname: colon\ndescription: Use when: there is a colon\n---\nBody")
    write(tmp_path / "folder", "---\nname: Äpfel zählen!\ndescription: Counts.\n---\n")
    write(tmp_path / "nameless", "---\ndescription: Has no name.\n---\n")
    write(tmp_path / "broken", "nothing")
    with caplog.at_level(logging.WARNING, "concertino.code"):
        skills = find_skills(tmp_path)
    assert skills is not None
    assert [(each.member_name, each.description) for each in skills] == [
        ("colon", "Use when: there is a colon"),
        ("pfel-z-hlen", "Counts."),
        ("nameless", "Has no name."),
    ]
    for text in (
        "a skill is left out: ",
        "read line by line",
        "should be the same",
        "called 'nameless' like its folder",
    ):
        assert text in caplog.text


def test_two_skills_of_one_name_are_refused_with_both_folders(tmp_path: Path) -> None:
    write(tmp_path / "a", front("same"))
    write(tmp_path / "b", front("same"))
    with pytest.raises(ct.UsageError, match=r"two skills are called 'same': .*/a and .*/b"):
        ct.Pool.of(tmp_path)


def test_a_skill_that_models_must_not_call_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "mine", front("mine", more="disable-model-invocation: true\n"))
    write(tmp_path / "theirs", front("theirs"))
    assert [member.name for member in ct.Pool.of(tmp_path)] == ["code/theirs"]


def test_the_search_is_bounded_and_enters_no_hidden_folder(tmp_path: Path) -> None:
    write(tmp_path / ".git" / "x", front("hidden"))
    write(tmp_path.joinpath(*["d"] * (DEPTH + 1)), front("too-deep"))
    (tmp_path / "circle").symlink_to(tmp_path)
    assert find_skills(tmp_path) is None
    with pytest.raises(ct.PoolError, match="no installed plugin makes members of"):
        ct.Pool.of(tmp_path)
