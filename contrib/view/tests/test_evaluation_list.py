"""Two evaluations compared: the items that flipped, each with its runs; strangers' lines lead nowhere."""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser
from concertino import UsageError
from concertino_view.evaluation_list import MOST, EvaluationList
from concertino_view.view_server import ViewServer
from hostile_traces import write_trace
from made_traces import records_of
from page_attacks import PAGE_ATTACKS

Line = dict[str, Any]


def item(task: str, right: bool, system: str = "s", **more: Any) -> Line:
    return {"t": "item", "key": [system, task, 0], "verdict": "right" if right else "wrong", "reason": "r", **more}


def results(path: Path, lines: list[Any]) -> Path:
    texts = [each if isinstance(each, str) else json.dumps(each) for each in ({"t": "bench", "version": 1}, *lines)]
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def with_traces(path: Path, lines: list[Line]) -> Path:
    """A results file whose items have traces beside it, as `concertino bench run` writes them."""
    folder = path.with_suffix(".traces")
    folder.mkdir()
    for line in lines:
        name = f"{path.stem}-{line['key'][1]}"
        text = f"{line['verdict']} {path.stem}"
        line["trace"] = f"{folder.name}/{write_trace(folder / f'{name}.trace.jsonl', records_of(1, 1, text)).name}"
    return results(path, lines)


def test_every_item_that_flipped_is_listed_and_no_other(tmp_path: Path) -> None:
    chance = random.Random(1)
    before = {f"q{number}": chance.random() < 0.5 for number in range(300)}
    flipped = set(chance.sample(sorted(before), 40))
    after = {name: right != (name in flipped) for name, right in before.items()}
    files = [
        results(tmp_path / f"{n}.jsonl", [item(*each) for each in arm.items()]) for n, arm in enumerate((before, after))
    ]
    found = EvaluationList(files).flips(0, 1)
    assert found is not None
    assert {row[0] for row in found["items"]} == flipped
    only = sum(before[name] for name in flipped)
    assert (found["both"], found["only"], found["alone"]) == (300, [only, 40 - only], [0, 0])


def test_systems_of_one_file_are_compared_as_well(tmp_path: Path) -> None:
    lines = [item("q", True, "a"), item("q", False, "b"), item("r", True, "b")]
    evaluations = EvaluationList([results(tmp_path / "x.jsonl", lines)])
    assert evaluations.arms() == {"arms": [["x.jsonl", "a", 1, 1], ["x.jsonl", "b", 2, 1]], "unread": 0}
    found = evaluations.flips(0, 1)
    assert found is not None
    assert found["items"] == [["q", ["right", "", "r", ""], ["wrong", "", "r", ""]]]
    assert found["alone"] == [0, 1]


def test_a_file_that_grows_is_read_again_and_a_torn_line_is_counted(tmp_path: Path) -> None:
    path = results(tmp_path / "x.jsonl", [item("q", True)])
    evaluations = EvaluationList([path])
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(item("r", True)) + '\n{"t": "item", "key": ["s", ')
    assert evaluations.arms() == {"arms": [["x.jsonl", "s", 2, 2]], "unread": 1}


@pytest.mark.parametrize("text", ["", "hello\n", '{"t": "other"}\n', "[1]\n", '{"t": "header", "v": 1}\n'])
def test_a_file_of_another_kind_is_an_error_that_says_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match="not a results file; expected one that `concertino bench run` wrote"):
        EvaluationList([path])


@pytest.mark.parametrize(
    "line",
    [
        "null",
        "[]",
        "[" * 5000,
        {"t": "item"},
        {"t": "item", "key": [1, 2, 3]},
        {"t": "item", "key": ["s", "q"]},
        "\x00",
    ],
)
def test_a_line_that_is_no_item_is_left_out_and_counted(tmp_path: Path, line: Any) -> None:
    evaluations = EvaluationList([results(tmp_path / "x.jsonl", [line, item("q", True)])])
    assert evaluations.arms() == {"arms": [["x.jsonl", "s", 1, 1]], "unread": 1}


@pytest.mark.parametrize("wrong", [None, 3, [], {}, "x" * 50_000, True])
@pytest.mark.parametrize("name", ["verdict", "answer", "reason", "trace", "error"])
def test_wrong_values_of_an_item_are_no_error(tmp_path: Path, name: str, wrong: Any) -> None:
    lines = [{**item("q", True, "a"), name: wrong}, item("q", False, "b"), item("q", True, "c")]
    evaluations = EvaluationList([results(tmp_path / "x.jsonl", lines)])
    for other in (1, 2):
        assert len(json.dumps(evaluations.flips(0, other))) < 2_000


def test_a_long_list_is_bounded_and_the_rest_is_counted(tmp_path: Path) -> None:
    lines = [item(f"q{n}", system == "a", system) for system in "ab" for n in range(MOST + 7)]
    found = EvaluationList([results(tmp_path / "x.jsonl", lines)]).flips(0, 1)
    assert found is not None
    assert (len(found["items"]), found["more"]) == (MOST, 7)


@pytest.mark.parametrize(
    "named", ["../secret.trace.jsonl", "/etc/passwd", "a/secret.txt", "link.trace.jsonl", "\0.trace.jsonl"]
)
def test_a_line_leads_to_no_file_but_traces_in_the_folder_of_its_results(tmp_path: Path, named: str) -> None:
    home = tmp_path / "a"
    home.mkdir()
    write_trace(tmp_path / "secret.trace.jsonl", records_of(1))
    (home / "link.trace.jsonl").symlink_to(tmp_path / "secret.trace.jsonl")
    evaluations = EvaluationList([results(home / "x.jsonl", [item("q", True, trace=named), item("q", False, "b")])])
    found = evaluations.flips(0, 1)
    assert found is not None
    assert found["items"][0][1][3] == ""
    for name in ("secret", "link", "passwd", "../secret"):
        assert evaluations.trace(name) is None


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ViewServer]:
    """A server that shows two evaluations, whose traces lie elsewhere than its folder."""
    files = [
        with_traces(tmp_path / "before.jsonl", [item("q", True, answer="3"), item("r", True)]),
        with_traces(tmp_path / "after.jsonl", [item("q", False, answer="4"), item("r", True)]),
    ]
    (tmp_path / "traces").mkdir()
    made = ViewServer(tmp_path / "traces", results=files)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def get(server: ViewServer, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request("GET", path, headers={"Cookie": f"concertino-view-{server.server_port}={server.key}"})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_a_pair_that_flipped_leads_to_the_comparison_of_its_runs(server: ViewServer) -> None:
    status, body = get(server, "/api/flips?a=0&b=1")
    ((key, before, after),) = json.loads(body)["items"]
    assert (status, key, before, after) == (
        200,
        "q",
        ["right", "3", "r", "before-q"],
        ["wrong", "4", "r", "after-q"],
    )
    status, body = get(server, "/api/compare?a=before-q&b=after-q")
    assert (status, json.loads(body)["differences"][0]["what"]) == (200, "question")
    assert get(server, "/api/flips?a=0&b=9")[0] == 404


@pytest.mark.slow
def test_the_page_of_two_evaluations_lists_what_flipped_and_no_text_comes_alive(
    browser: Browser, tmp_path: Path
) -> None:
    lines = [item(attack, True, "a", answer=attack, reason=attack) for attack in PAGE_ATTACKS]
    lines += [item(attack, False, "b", answer=attack, reason=attack) for attack in PAGE_ATTACKS]
    lines += [item("x", True, attack) for attack in PAGE_ATTACKS[:5]]
    made = ViewServer(tmp_path, results=[results(tmp_path / "x.jsonl", lines)])
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        origin = made.address.partition("/?")[0]
        browser.open(made.address)
        browser.value("new Promise((done) => setTimeout(done, 200))")
        assert browser.value("document.querySelector('a[href=\"/evaluations\"]').parentElement.hidden") is False
        for width in (1280, 390):
            browser.show(dark=width == 390, width=width)
            browser.open(f"{origin}/evaluations")
            assert browser.value("document.querySelectorAll('.flips tbody tr').length") == len(set(PAGE_ATTACKS))
            assert browser.value("document.documentElement.scrollWidth") <= width
        assert browser.value("window.hit") is None
        assert browser.value("document.querySelectorAll('img, iframe, svg, form, object').length") == 0
        asked = [event["request"]["url"] for event in browser.told("Network.requestWillBeSent")]
        assert [url for url in asked if not url.startswith((origin, "data:application/json"))] == []
        assert browser.told("Runtime.exceptionThrown") == []
    finally:
        made.shutdown()
        made.server_close()
        thread.join()
