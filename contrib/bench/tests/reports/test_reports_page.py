"""The report itself: what it says, that nothing in results can attack its reader, and that a browser shows it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from concertino import Usage, UsageError
from concertino_bench import Item, Key, MemberUse, Verdict
from concertino_bench.metrics import Preference
from concertino_bench.reports import Results, build
from concertino_bench.reports.content import compute

Make = Callable[..., Results]
PLOTS = ["pareto-usd", "pareto-seconds", "curves", "tools", "models", "statuses", "times", "latency"]
ATTACKS = [
    "<script>window.hit = 1</script>",
    "</title></style></script><img src=x onerror='window.hit=2'>",
    '" onmouseover="window.hit=3" x="',
    "javascript:window.hit=4",
    "$\\frac{1}{$ _under_ `code` | pipe [a](javascript:window.hit=5) ![p](https://example.com/p.png)",
    "https://example.com/ <https://example.com/>",
    "nul\x00 and \u202e turned \ud800 lone",
    "漢字 العربية 🙂",
    "_hidden",
    "",
]


@pytest.fixture(scope="module")
def attacked() -> Results:
    """Results in which every text is an attack."""
    items = []
    for i, text in enumerate(ATTACKS):
        for task in range(4):
            members = {text: MemberUse("tool", 2, {text: 2}, Usage(2), (0.1, 0.2))}
            item = Item(
                Key(f"{text}{i}", f"{text}{task}"),
                text,
                Verdict.RIGHT if task < 2 else Verdict.WRONG,
                text or "r",
                values={text: 0.5},
                axis=text or "axis",
                level=1 + task % 2,
                stop=text,
                detail=text,
                seconds=1.0 + i,
                statuses={text: 2, "OK": 1},
                calls=3,
                members=members,
                pool=text,
                trace=text,
                answer=text,
                error=text if task == 3 else "",
            )
            items.append(item)
    systems = [
        {"name": f"{t}{i}", "strategy": {"name": t, "o": t}, "model": t, "summary": t} for i, t in enumerate(ATTACKS)
    ]
    header = {"title": ATTACKS[0], "systems": systems, "sets": [{"name": ATTACKS[1]}], ATTACKS[0]: ATTACKS[1]}
    return Results(header, items, tuple(ATTACKS), tuple(ATTACKS))


class Reader(HTMLParser):
    """Which elements, attributes and addresses a page has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.ids: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]


@pytest.mark.slow
def test_no_text_of_results_becomes_an_element_or_an_attribute(attacked: Results) -> None:
    page = Reader(build(attacked, resamples=20).html())
    assert page.elements.count("script") == 1
    assert not {"img", "iframe", "object", "image", "foreignobject", "base", "form"} & set(page.elements)
    assert [name for name, _ in page.attributes if name.startswith("on")] == []
    addresses = [value for name, value in page.attributes if name in ("href", "src", "xlink:href")]
    assert {value.partition(":")[0] if value[:1] != "#" else "#" for value in addresses} == {"data", "#"}


@pytest.mark.slow
def test_the_page_names_no_other_host_and_has_no_identifier_twice(make_results: Make) -> None:
    page = build(make_results(40, samples=2), resamples=20).html()
    found = set(re.findall(r"https?://[\w.]+", page))
    assert found <= {"http://www.w3.org"}  # the names of SVG's name spaces, which nothing fetches
    ids = Reader(page).ids
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', page))
    assert {a or b for a, b in used} <= set(ids)


def test_markdown_has_no_html_no_link_and_no_picture_of_results(attacked: Results) -> None:
    text = build(attacked, resamples=20).markdown()
    assert "<" not in re.sub(r"&lt;|\\<", "", text)
    assert not re.search(r"(?<!\\)\]\(", text)
    assert "https://" not in text
    columns = [line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("| ")]
    assert all(columns)
    assert "\x00" not in text
    text.encode("utf-8")


def test_markdown_tables_are_rectangular(attacked: Results, make_results: Make) -> None:
    for results in (attacked, make_results(20)):
        blocks = re.findall(r"(?:^\|.*\n)+", build(results, resamples=20).markdown(), re.M)
        assert len(blocks) >= 6
        for block in blocks:
            assert len({line.replace("\\|", "").count("|") for line in block.splitlines()}) == 1, block[:300]


@pytest.mark.slow
def test_the_same_results_give_the_same_bytes(make_results: Make) -> None:
    first, second = (build(make_results(30), resamples=50) for _ in range(2))
    assert first.html() == second.html()
    assert first.markdown() == second.markdown()
    assert json.dumps(first.to_json()) == json.dumps(second.to_json())


@pytest.mark.slow
def test_the_page_stays_small(make_results: Make) -> None:
    assert len(build(make_results(200), resamples=100).html().encode()) < 5_000_000


@pytest.mark.slow
def test_an_unknown_price_is_said_and_the_system_is_not_drawn_at_zero(make_results: Make) -> None:
    report = build(make_results(40, unpriced="serial"), resamples=50)
    assert report.values["serial"]["usd"].value is None
    page, text = report.html(), report.markdown()
    assert "What it costs is not known of serial." in page
    assert "Not shown, because the value is not known: serial." in page
    assert re.search(r"\| serial \|.*unknown \(no price for \d+ items\)", text)


def test_without_matplotlib_the_page_names_the_extra_and_markdown_works(
    monkeypatch: pytest.MonkeyPatch, make_results: Make
) -> None:
    report = build(make_results(5), resamples=20)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'concertino-bench\[report\]'"):
        report.html()
    assert report.markdown().startswith("# Five systems")


def test_the_settings_of_matplotlib_are_put_back(make_results: Make) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    build(make_results(5), resamples=20).html()
    assert dict(mpl.rcParams) == before


def test_systems_that_could_not_begin_are_said_first(make_results: Make) -> None:
    results = make_results(20)
    broken = [replace(item, error="UsageError: no such strategy") for item in results.items[:3]]
    text = build(replace(results, items=[*broken, *results.items[3:]]), resamples=20).markdown()
    assert "items could not begin; the first says: UsageError: no such strategy." in text


def test_one_system_and_one_task_are_a_report_too(make_results: Make) -> None:
    results = make_results(1)
    only = replace(results, items=results.items[:1], header={})
    report = build(only, resamples=20)
    assert report.comparisons == []
    assert "Pairs" not in report.html()
    assert report.title == "Evaluation"


def test_many_systems_are_compared_with_the_best_one(make_results: Make) -> None:
    results = make_results(10)
    items = [replace(i, key=i.key._replace(system=f"{i.key.system}-{n}")) for n in range(2) for i in results.items]
    report = build(replace(results, items=items, header={}), resamples=20)
    assert len(report.comparisons) == 9
    assert len({each.a for each in report.comparisons}) == 1


def test_samples_bring_stability_and_a_judge_brings_its_measures(make_results: Make) -> None:
    def shown(results: Results) -> set[str]:
        content = compute(results, preference=None, level=0.95, resamples=20, seed=0)
        return {metric.name for metric in content.metrics}

    once, often = make_results(5), make_results(5, samples=4)
    stable = {"g-pass@4:0.5", "g-pass@4:0.75", "g-pass@4:1", "mg-pass@4"}
    assert stable <= shown(often)
    judged = {"calibration_error", "accuracy_attempted", "attempts_f1"}
    assert not (judged | stable) & shown(once)
    sure = [replace(item, values={"confidence": 0.5, "attempted": 1.0}) for item in once.items]
    assert judged <= shown(replace(once, items=sure))


def test_a_preference_of_the_header_is_reported(make_results: Make) -> None:
    results = make_results(10)
    wish = {"members": {"search/*": 1.0}, "usd": 1.0}
    report = build(replace(results, header={**results.header, "preference": wish}), resamples=20)
    assert report.preference == Preference({"search/*": 1.0}, usd=1.0)
    assert "preference adherence" in report.markdown()
    assert "preference adherence" not in build(results, resamples=20).markdown()


@pytest.mark.slow
def test_failures_show_broken_systems_once_and_then_what_others_solved(make_results: Make) -> None:
    found = build(make_results(200), resamples=20).failures
    of = [each for each in found if each.item.key.system == "single"]
    assert 0 < len(of) <= 5
    assert len([each for each in of if each.item.error]) <= 1
    rest = [each.solved for each in of if not each.item.error]
    assert rest == sorted(rest, reverse=True)
    assert all(not each.item.right for each in found)


def test_systems_of_several_agents_are_told_from_single_ones(make_results: Make) -> None:
    report = build(make_results(100), resamples=20)
    assert report.several == {"serial", "parallel", "graph"}
    assert set(report.gains) == {(axis, level) for axis in report.curves for level in (2, 4, 6, 8)}


@pytest.mark.parametrize(
    ("strategy", "several"),
    [
        ("single-model", False),
        ("self-refine", False),
        ("single-with-tools", False),
        ("agent-graph", True),
        ("parallel-rounds", True),
        ("majority-vote", True),
        ("of-another-plugin", False),
        ("", False),
    ],
)
def test_a_system_is_single_or_several_by_what_it_may_do(strategy: str, several: bool) -> None:
    lone = {"lead": MemberUse("model", 1, {"OK": 1}, Usage(1))}
    items = [
        Item(Key(name, f"t{n}"), "number", Verdict.RIGHT, "r", axis="depth", level=2, members=lone)
        for name in ("alone", "other")
        for n in range(4)
    ]
    systems = [{"name": "alone", "strategy": "single-model"}, {"name": "other", "strategy": {"name": strategy}}]
    report = build(Results({"systems": systems}, items), resamples=20)
    assert report.several == ({"other"} if several else set())
    assert bool(report.gains) is several


def test_a_system_of_an_unknown_strategy_is_told_by_what_it_used() -> None:
    members = {"m": MemberUse("model", 1, {"OK": 1}, Usage(1)), "ask_n": MemberUse("agent", 1, {"OK": 1}, Usage(1))}
    item = Item(Key("other", "t"), "number", Verdict.RIGHT, "r", members=members)
    assert build(Results({"systems": [{"name": "other", "strategy": "of-another"}]}, [item])).several == {"other"}
    assert build(Results({"systems": [{"name": "other", "strategy": "self-refine"}]}, [item])).several == frozenset()
    assert build(Results({}, [item])).several == {"other"}


# -- in a browser ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.alone
def test_a_browser_shows_the_page_without_an_error_or_a_request(
    browser: Any, make_results: Make, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    file.write_text(build(make_results(200)).html(), encoding="utf-8")
    browser.open(file)
    requests = [each["request"]["url"] for each in browser.told("Network.requestWillBeSent")]
    assert [url for url in requests if not url.startswith("data:")] == [file.as_uri()]
    assert browser.told("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded") == []
    sizes = browser.value(
        "Object.fromEntries([...document.querySelectorAll('figure')].map(f => [f.id.slice(5), "
        "(r => [r.width, r.height])(f.querySelector('svg').getBoundingClientRect())]))"
    )
    assert list(sizes) == PLOTS
    assert all(width > 600 and height > 100 for width, height in sizes.values()), sizes
    assert browser.value("document.querySelectorAll('svg title').length") > len(PLOTS)
    names = browser.value(
        "[...document.querySelectorAll('svg')].map(s => document.getElementById(s.getAttribute("
        "'aria-labelledby').split(' ')[0]).textContent)"
    )
    assert all(names)
    for dark in (False, True):
        picture = tmp_path / f"{dark}.png"
        browser.screenshot(picture, dark=dark)
        assert picture.stat().st_size > 100_000
    colours = browser.value("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    assert colours == ["rgb(20, 23, 29)", "rgb(230, 233, 239)"]


@pytest.mark.slow
@pytest.mark.alone
def test_a_narrow_screen_scrolls_tables_and_plots_but_not_the_page(
    browser: Any, make_results: Make, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    file.write_text(build(make_results(50, samples=2), resamples=20).html(), encoding="utf-8")
    browser.open(file)
    browser.screenshot(tmp_path / "narrow.png", width=390)
    assert browser.value("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
@pytest.mark.alone
def test_a_click_on_a_heading_sorts_the_table(browser: Any, make_results: Make, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(build(make_results(100), resamples=20).html(), encoding="utf-8")
    browser.open(file)
    click = "document.querySelector('#systems table th:nth-child(3) button').click()"
    column = (
        "[...document.querySelectorAll('#systems table tbody tr')].slice(0, 5).map(r => Number(r.cells[2].dataset.v))"
    )
    first = browser.value(column)
    browser.value(click)
    rising = browser.value(column)
    browser.value(click)
    assert rising == sorted(first)
    assert browser.value(column) == sorted(first, reverse=True)
    state = browser.value("document.querySelector('#systems table th:nth-child(3)').getAttribute('aria-sort')")
    assert state == "descending"


@pytest.mark.slow
def test_no_attack_runs_in_a_browser(browser: Any, attacked: Results, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(build(attacked, resamples=20).html(), encoding="utf-8")
    browser.open(file)
    assert browser.value("window.hit === undefined")
    assert browser.value("document.title") == ATTACKS[0]
    assert browser.told("Runtime.exceptionThrown", "Log.entryAdded") == []
    requests = [each["request"]["url"] for each in browser.told("Network.requestWillBeSent")]
    assert [url for url in requests if not url.startswith("data:")] == [file.as_uri()]


def _said(*systems: tuple[str, range, int]) -> str:
    """The text of a report of systems, each with its tasks and how many of them it has right."""
    items = [
        Item(Key(name, f"t{task}"), "number", Verdict.RIGHT if place < right else Verdict.WRONG, "r", answer="1")
        for name, tasks, right in systems
        for place, task in enumerate(tasks)
    ]
    return build(Results({"t": "bench"}, items), resamples=50).markdown()


def test_the_lines_at_the_top_say_no_more_than_the_results() -> None:
    assert "a, b are right equally often: " in _said(("a", range(4), 2), ("b", range(4), 2))
    assert "a is right: " in _said(("a", range(4), 2))
    apart = _said(("a", range(4), 2), ("b", range(4, 8), 4))
    assert "share no task" in apart
    assert "most often:" not in apart
    assert "Not all systems have the same tasks" in _said(("a", range(4), 4), ("b", range(2, 6), 1))
