"""The API tests of the official client, from a snapshot of its repository, against our server.

    CONCERTINO_OPENAI_SNAPSHOT=/path/to/openai-python    a work tree; nothing of it is kept here
    python scripts/servers.py openai-tests               what its tests need

They are written for a server that answers whatever is asked with an example. Ours runs something, so what it does not
serve fails, and each failure is explained below.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from concertino_serve.serve_settings import ServeSettings
from servers import OPENAI_TESTS, Absent

from .serving_here import Scripted, calls_then, served, settings_of

SUITES = (
    *("test_models.py", "chat/test_completions.py", "test_responses.py"),
    *("responses/test_input_items.py", "responses/test_input_tokens.py"),
)
WHY = {
    r"test_completions.*_(retrieve|update|list|delete)": "chat completions are not kept under their ids; responses are",
    r"test_models.*_delete": "presets stand in the settings file; no client deletes them",
    r"input_tokens": "tokens are not counted before a run: which models it asks is not known",
    r"test_responses.*_compact": "a conversation is not compacted for a client",
    r"_create_with_all_params": "what would be ignored is refused: audio, log-probabilities, tools that a service runs",
    r"test_responses.*_create_overload": "it names no model and asks nothing",
}
"""Why a test fails, by what its name matches; the first counts."""


def settings_for(snapshot: Path, folder: Path) -> ServeSettings:
    """Each model that the tests name is a preset."""
    made = settings_of(folder, Scripted(calls_then("It costs $4.")))
    text = "".join((snapshot / "tests" / "api_resources" / each).read_text() for each in SUITES)
    names = set(re.findall(r'model="([^"]+)"', text)) | set(re.findall(r'retrieve\(\s*"(gpt[^"]+)"', text))
    preset = made.presets["helper"]
    return replace(made, presets={name: replace(preset, name=name) for name in sorted(names)})


def outcomes(report: Path) -> dict[str, str]:
    """Of each test: why it failed, or nothing."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        failed = [child for child in case if child.tag in ("failure", "error")]
        name = f"{case.get('classname')}.{case.get('name')}"
        found[name] = " ".join(f"{child.get('message')}" for child in failed)
    return found


@pytest.mark.soak
@pytest.mark.timeout(1200)
async def test_the_tests_of_the_official_client_pass_or_are_explained(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    place = os.environ.get("CONCERTINO_OPENAI_SNAPSHOT", "")
    if not place:
        pytest.skip("CONCERTINO_OPENAI_SNAPSHOT names no work tree of the official client's repository")
    try:
        python = OPENAI_TESTS.python()
    except Absent as absent:
        pytest.skip(str(absent))
    snapshot, traces, report = Path(place), tmp_path / "traces", tmp_path / "report.xml"
    text = "".join((snapshot / "tests" / "api_resources" / each).read_text() for each in SUITES)
    ids = sorted(set(re.findall(r'"(resp_[0-9a-f]+|response_id)"', text)))
    settings = settings_for(snapshot, traces)
    async with served(settings) as here:
        async with here.client() as client:
            made = await client.responses.create(model=next(iter(settings.presets)), input="string")
        (tmp_path / "made").write_bytes((traces / f"{made.id}.trace.jsonl").read_bytes())
        (tmp_path / "made.request").write_bytes((traces / f"{made.id}.trace.jsonl.request").read_bytes())
        suites = [str(snapshot / "tests" / "api_resources" / each) for each in SUITES]
        options = ["-q", "-o", "addopts=", "-p", "seeded_runs", f"--junitxml={report}", "-p", "no:cacheprovider"]
        given = {
            **os.environ,
            "PYTHONPATH": f"{snapshot / 'src'}:{Path(__file__).parent}",
            "TEST_API_BASE_URL": f"{here.url}/v1",
            "SEEDED_RUN": str(tmp_path / "made"),
            "SERVED_TRACES": str(traces),
            "SEEDED_IDS": " ".join(ids),
        }
        command = [str(python), "-m", "pytest", *options, *suites]
        done = await asyncio.to_thread(
            subprocess.run, command, cwd=snapshot, env=given, capture_output=True, text=True, timeout=1100, check=False
        )
    assert report.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    found = outcomes(report)
    reasons = {name: next((why for ends, why in WHY.items() if re.search(ends, name)), "") for name in found}
    failed = {name: said for name, said in found.items() if said}
    record_property("passed", f"{len(found) - len(failed)} of {len(found)}")
    record_property("failed", dict(Counter(reasons[name] for name in failed)))
    assert not {name: said[:300] for name, said in failed.items() if not reasons[name]}
