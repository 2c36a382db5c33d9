"""One run as one file: it needs nothing else, no text of a run is markup, and it weighs little."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from concertino_view.run_file import RunFile
from concertino_view.run_page import bundle, page_of, scripts, static
from hostile_traces import write_trace
from made_traces import records_of
from page_attacks import PAGE_ATTACKS


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def page(path: Path) -> str:
    return "".join(page_of(RunFile(path)))


def test_the_corpus_of_attacks_is_large_enough() -> None:
    assert len(set(PAGE_ATTACKS)) >= 60


@pytest.mark.parametrize("attack", PAGE_ATTACKS)
def test_no_text_of_a_run_adds_an_element_to_the_page(tmp_path: Path, attack: str) -> None:
    harmless = Elements(page(write_trace(tmp_path / "a.trace.jsonl", records_of(rounds=1, text="plain"))))
    attacked = page(write_trace(tmp_path / "b.trace.jsonl", records_of(rounds=1, text=attack)))
    assert Elements(attacked).found == harmless.found
    attacked.encode("utf-8")


def test_the_data_say_what_the_trace_says(tmp_path: Path) -> None:
    text = "</script><b>&amp; \u2028 漢字 🙂"
    whole = page(write_trace(tmp_path / "a.trace.jsonl", records_of(rounds=1, text=text)))
    data = re.search(r'<script type="application/json" id="run-data">(.*?)</script>', whole)
    assert data is not None
    assert json.loads(data[1])["patch"]["head"]["question"].replace("\\u2028", "\u2028") == text


def test_only_the_script_and_the_style_sheet_of_the_page_are_obeyed(trace: Path) -> None:
    whole = page(trace)
    policy = next(
        attrs["content"] or "" for tag, attrs in Elements(whole).found if tag == "meta" and "http-equiv" in attrs
    )
    (script,) = re.findall(r'<script type="module">(.*?)</script>', whole, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", whole, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    assert f"script-src 'sha256-{hashes[0]}';" in policy
    assert f"style-src 'sha256-{hashes[1]}';" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_the_page_names_no_other_file_and_no_address(trace: Path) -> None:
    whole = page(trace)
    assert re.findall(r"https?://[\w.]+", whole) == []
    assert [attrs for tag, attrs in Elements(whole).found if {"src", "href"} & attrs.keys()] == []


def test_the_pages_weigh_at_most_200_kilobytes() -> None:
    assert sum(len(static(name).encode()) for name in (*scripts(), "page.css")) <= 200_000


def test_the_modules_of_the_page_have_no_name_twice_and_no_import_is_left() -> None:
    whole = bundle()
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", whole, re.MULTILINE)
    assert len(names) == len(set(names))
    assert not re.search(r"^(import|export)\b", whole, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(scripts()))
def test_no_script_makes_markup_of_a_text(name: str) -> None:
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|srcdoc"
    assert re.findall(forbidden, static(name)) == []


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_have_the_contrast_of_wcag_aa(scheme: int) -> None:
    block = re.findall(r":root \{(.*?)\}", static("page.css"), re.DOTALL)[scheme]
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", block))
    statuses = ("ok", "parse-err", "exec-err", "timeout", "running", "waiting", "request", "critical")
    pairs = [(text, "ground") for text in (*statuses, "link")]
    pairs += [(text, ground) for text in ("text", "dim") for ground in ("ground", "raised", "chosen")]
    pairs += [(status, "chosen") for status in statuses] + [("text", "warn")]
    pairs += [("on", status) for status in statuses]
    weak = {pair: round(contrast(*(colours[name] for name in pair)), 2) for pair in pairs}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 4.5} == {}


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)
