"""A run in a notebook: what it shows, that no text in it is alive, that it stays small, and seen on any background."""

from __future__ import annotations

import re
import sys
import time
import types
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

import concertino as ct
import pytest
from concertino.core.html import COLOURS, MOST_CHARACTERS
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.testing import ScriptedModel
from concertino.testing.hostile_texts import HOSTILE_TEXTS, MEGABYTE_PIECES
from concertino.traces.board import board_of
from concertino.traces.run_graph import MOST_ROUNDS, RunGraph, plans_of
from pydantic import BaseModel

Calls = Sequence[tuple[str, dict[str, Any]]]
FINAL: Calls = [("final_answer", {})]
GRAPH = """<think>x</think><graph>
<node id="a">echo({"text": "1"})</node><node id="b">echo({"text": "2"})</node>
<node id="c" depends="a,b">echo({"text": "{a}{b}"})</node><node id="d" depends="c">fail({})</node>
</graph>"""


@ct.tool(cost=ct.Cost(units=1, usd=0.002))
async def echo(text: str) -> str:
    """Give a text back."""
    return text


@ct.tool
async def fail(text: str = "") -> str:
    """Fail."""
    raise ct.CallFailed.because(f"no use: {text}", code="no_use")


@ct.agent
async def boss(ctx: ct.Context, text: str) -> str:
    """Have a tool called."""
    return str((await ctx.call("echo", {"text": text})).content)


POOL = ct.Pool.of(echo, fail, boss)


async def finished(*rounds: Calls | str, answer: str = "3", **options: Any) -> ct.Run:
    leader = ScriptedModel(*rounds, FINAL, f"<answer>{answer}</answer>", strict=False)
    return await ct.Orchestrator(leader, **options).run("How many?", pool=POOL)


class Page(HTMLParser):
    """What a browser would make of it: the text, and every element with its attributes."""

    VOID = ("br", "img", "input", "meta", "link")

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(markup)
        self.close()
        assert self.open == [], "an element is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


SHOWN = frozenset(
    [
        "div",
        "style",
        "p",
        "b",
        "span",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "pre",
        "svg",
        "title",
        "g",
        "rect",
        "path",
        "text",
    ]
)
"""Elements that a display is made of."""


def is_inert(page: Page) -> bool:
    """Whether nothing in it runs, loads or leads anywhere."""
    known = all(tag in SHOWN for tag, _ in page.elements)
    names = {name for _, attributes in page.elements for name in attributes}
    # The name space of SVG is an address that nobody visits.
    elsewhere = [
        value for _, given in page.elements for key, value in given.items() if key != "xmlns" and "://" in (value or "")
    ]
    return (
        known and not any(name.startswith("on") or name in ("href", "src", "style") for name in names) and not elsewhere
    )


def drawn(run: ct.Run | ct.Trace, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What `show` sends to a notebook, by kind."""
    sent: list[dict[str, str]] = []
    ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    monkeypatch.setattr(ipython, "get_ipython", lambda: types.SimpleNamespace(kernel=object()), raising=False)
    monkeypatch.setattr(display, "display", lambda bundle, raw: sent.append(bundle), raising=False)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "IPython", ipython)
        patch.setitem(sys.modules, "IPython.display", display)
        run.show()
    (bundle,) = sent
    return bundle


async def test_a_run_shows_question_answer_end_cost_and_calls() -> None:
    run = await finished([("echo", {"text": "hi"}), ("ecko", {}), ("fail", {"text": "x"}), ("boss", {"text": "in"})])
    page = Page(run._repr_html_())
    for told in ("How many?", "3", "answered", "2 OK", "1 PARSE_ERR", "1 EXEC_ERR", run.id):
        assert told in page.text
    assert "$0.0040" in page.text
    assert "no_use: no use: x" in page.text
    assert "unknown_name" in page.text
    assert page.count("tr") == 1 + 5  # the head, four calls, and the one inside the agent
    assert [text for text in page.texts if text in COLOURS] == ["OK", "PARSE_ERR", "EXEC_ERR", "OK", "OK"]
    assert is_inert(page)


async def test_a_run_without_an_answer_says_why() -> None:
    run = await ct.Orchestrator(ScriptedModel(strict=False)).run("How many?", pool=POOL)
    page = Page(run._repr_html_())
    assert run.stop in page.text
    assert ct.STOP_REASONS[run.stop] in page.text
    assert page.count("table") == 0


async def test_a_typed_answer_is_shown_as_its_value() -> None:
    class Weather(BaseModel):
        city: str
        celsius: float

        def __repr__(self) -> str:
            if self.city == "Rome":
                raise RuntimeError("<i>no</i>")
            return f"<Weather of {self.city}>"

    paris = await finished(answer='{"city": "Paris", "celsius": 11.5}', answer_type=Weather)
    assert isinstance(paris.output, Weather)
    page = Page(paris._repr_html_())
    assert "<Weather of Paris>" in page.text
    assert '{"city": "Paris", "celsius": 11.5}' in page.text
    rome = await finished(answer='{"city": "Rome", "celsius": 11.5}', answer_type=Weather)
    assert "its repr() failed: RuntimeError: <i>no</i>" in Page(rome._repr_html_()).text


async def test_a_trace_and_a_run_under_way_look_like_the_run() -> None:
    run = await finished([("echo", {"text": "hi"})])
    assert run.trace._repr_html_() == run._repr_html_()
    leader = ScriptedModel([("echo", {"text": "hi"})], FINAL, "<answer>3</answer>")
    handle = ct.Orchestrator(leader).start("How many?", pool=POOL)
    assert "unfinished" in Page(handle._repr_html_()).text or "cancelled" in Page(handle._repr_html_()).text
    await handle
    assert "answered" in Page(handle._repr_html_()).text


@pytest.mark.parametrize("hostile", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
async def test_no_text_becomes_part_of_the_page(hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    breaking = f"\"'></title></svg></pre></style><script>alert(1)</script><img src=x onerror=y>{hostile}"
    rounds: Calls = [("echo", {"text": breaking, breaking[:60]: 1}), (breaking, {}), ("fail", {"text": breaking})]
    leader = ScriptedModel(rounds, FINAL, f"<answer>{breaking}</answer>", strict=False)
    run = await ct.Orchestrator(leader).run(breaking, pool=POOL)
    for markup in (run._repr_html_(), drawn(run, monkeypatch)["text/html"], drawn(run.trace, monkeypatch)["text/html"]):
        page = Page(markup)
        assert is_inert(page)
        assert "<script>alert(1)</script>" in page.text
        markup.encode()
    text = drawn(run, monkeypatch)["text/plain"]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e]", text)
    text.encode()


async def test_a_page_is_small_whatever_the_run_was_and_says_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = "".join(piece * (20_000 // len(piece)) for piece in MEGABYTE_PIECES)
    rounds = [[("echo", {"text": huge + str(n)})] for n in range(8)]
    many = [("echo", {"text": f"{n}"}) for n in range(150)]
    run = await finished(*rounds, many, answer=huge, strategy=ct.ParallelRounds(max_parallel=200, max_rounds=40))
    markup = run._repr_html_()
    assert len(markup) < 2 * MOST_CHARACTERS
    page = Page(markup)
    assert f"and {158 - page.count('tr') + 1} more calls" in page.text
    assert "more characters" in page.text
    svg = drawn(run, monkeypatch)["text/html"]
    assert len(svg) < MOST_CHARACTERS
    assert "and 135 more" in Page(svg).text


async def test_rounds_of_a_long_run_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = [[("echo", {"text": str(n)})] for n in range(50)]
    run = await finished(*rounds, strategy=ct.ParallelRounds(max_rounds=60))
    bundle = drawn(run, monkeypatch)
    for shown in (Page(bundle["text/html"]).text, bundle["text/plain"]):
        assert f"{50 - MOST_ROUNDS} rounds left out" in shown
        assert "50.1 echo" in re.sub(r" +", " ", shown)
        assert "25.1 echo" not in re.sub(r" +", " ", shown)


async def test_the_graph_says_each_status_in_words_and_colour_and_what_waits_for_what(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = await finished(GRAPH, "<answer>3</answer>", strategy=DependencyPlan())
    for shown in (run, run.trace):
        bundle = drawn(shown, monkeypatch)
        page = Page(bundle["text/html"])
        assert page.count("svg") == 1
        calls = [text for text in page.texts if re.match(r"1\.[a-d] ", text) and ":" not in text]
        assert calls == ["1.a echo", "1.b echo", "1.c echo", "1.d fail"]
        strokes = [given["stroke"] for tag, given in page.elements if tag == "rect" and "stroke" in given]
        assert strokes == [COLOURS["OK"]] * 3 + [COLOURS["EXEC_ERR"]]
        assert sum(text.startswith("OK ") for text in page.texts) == 3
        assert any(text.startswith("EXEC_ERR ") for text in page.texts)
        # Two lines with a point each into c, one into d.
        assert page.count("path") == 2 * 3
        assert "1.c echo: OK" in page.text  # a title, for the mouse
        lines = re.sub(r" +", " ", bundle["text/plain"]).splitlines()
        assert any(re.fullmatch(r" 1\.c echo OK [\d.]+ s after 1\.a, 1\.b", line) for line in lines)
        assert any("1.d fail EXEC_ERR" in line and "after 1.c no_use" in line for line in lines)


async def test_a_text_that_looks_like_a_reference_draws_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    run = await finished([("echo", {"text": "a"}), ("echo", {"text": "${1} and ${nobody}"})])
    assert run.statuses()[ct.Status.OK] == 2
    for shown in (run, run.trace):
        assert Page(drawn(shown, monkeypatch)["text/html"]).count("path") == 0


async def test_outside_a_notebook_the_graph_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    run = await finished([("echo", {"text": "hi"}), ("boss", {"text": "x"})])
    run.show()
    printed = re.sub(r" +", " ", capsys.readouterr().out)
    assert printed.splitlines()[0].startswith(f"run {run.id} answered after ")
    assert printed.splitlines()[1:3] == ["question: How many?", "round 1"]
    assert re.search(r"^ 1\.2 boss OK [\d.]+ s 1 inside$", printed, re.MULTILINE)
    assert printed.splitlines()[-1] == "answer: 3"


def test_the_graph_is_printed_where_the_terminal_knows_only_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    records = [{"t": "run", "run": "r1", "question": "Où ? 漢", "setup": {}, "at": 0.0}]
    ct.Trace(records).show()
    sys.stdout.flush()
    assert b"question: O? ? ?" in raw.getvalue()


async def test_a_suspended_run_shows_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    @ct.tool(approval=True)
    async def pay(amount: float) -> str:
        """Pay."""
        return "paid"

    leader = ScriptedModel([("pay", {"amount": 5}), ("echo", {"text": "x"})], strict=False)
    run = await ct.Orchestrator(leader).run("Pay.", pool=ct.Pool.of(pay, echo))
    assert run.stop == "suspended"
    assert "waits for approval" in Page(run._repr_html_()).text
    assert "waits for approval" in Page(drawn(run, monkeypatch)["text/html"]).text


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("background", ["#ffffff", "#f5f5f5", "#111111", "#1e1e1e", "#000000"])
def test_colours_are_seen_on_light_and_on_dark(background: str) -> None:
    for name, colour in COLOURS.items():
        lighter, darker = sorted((luminance(colour), luminance(background)), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 3, f"{name} on {background}"


async def test_text_takes_the_colour_of_its_page() -> None:
    run = await finished([("echo", {"text": "hi"})])
    style = re.search(r"<style>(.*?)</style>", run._repr_html_(), re.S)
    assert style is not None
    assert set(re.findall(r"(?<![-\w])(?:color|background)\s*:\s*([^;}]+)", style[1])) <= {"inherit", "none"}


# -- secrets -----------------------------------------------------------------------------------------------------------

KEY = "sk-proj-0123456789abcdefABCDEF"


class Found(BaseModel):
    note: str


@ct.tool
async def log_in(password: str, note: str) -> dict[str, Any]:
    """Log in."""
    if note == "fail":
        raise ct.CallFailed.because(f"rejected: Bearer {KEY}", code="no_use")
    return {"access_token": "plum-and-pear", "max_token": 7, "note": f"from https://ada:hunter22@host/ by {KEY}"}


async def test_no_display_of_a_run_shows_a_secret(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHARD_TOKEN", "cherry-quince")
    long = f"{'x' * 580} {KEY} {'y' * 20_000}"

    @ct.guard("answer")
    def judge(answer: str) -> ct.Deny:
        return ct.Deny(f"not with {KEY}")

    calls = [
        ("log_in", {"password": "hunter22", "note": KEY}),
        ("log_in", {"password": "hunter22", "note": "fail"}),
        ("log_in", {"password": "hunter22", "note": long}),
        ("echo", {"text": f"cherry-quince {KEY}"}),
    ]
    leader = ScriptedModel(calls, FINAL, *[f'<answer>{{"note": "{KEY}"}}</answer>'] * 5, strict=False)
    pool = ct.Pool.of(log_in, echo).adding(ct.ModelSpec("m", lambda: leader, f"Use it with {KEY}."))
    run = await ct.Orchestrator(leader, answer_type=Found, guards=[judge]).run(f"Who has {KEY}?", pool=pool)
    plain = await ct.Orchestrator(
        ScriptedModel(calls, FINAL, f'<answer>{{"note": "{KEY}"}}</answer>'), answer_type=Found
    ).run(f"Who has {KEY}?", pool=pool)
    assert plain.output == Found(note=KEY)
    run.show()
    plain.show()
    plain.trace.show()
    shown = [capsys.readouterr().out, pool._repr_html_()]
    shown += [each._repr_html_() for each in (run, plain, run.trace)]
    shown.append(RunGraph(board_of(plain.trace.records), plans_of(plain.trace.records)).to_html())
    for text in shown:
        assert "[key]" in text
        for secret in (KEY, KEY[:14], "hunter22", "plum-and-pear", "cherry-quince"):
            assert secret not in text
    assert "&quot;max_token&quot;: 7" in shown[3]
    assert run.observations[3].content == f"cherry-quince {KEY}"


async def test_hiding_secrets_in_megabytes_takes_no_time_that_a_person_would_notice() -> None:
    run = await finished([("echo", {"text": f"password={number} " * 2_000}) for number in range(100)])
    began = time.process_time()
    run._repr_html_()
    assert time.process_time() - began < 2.0
