"""Sending: nothing is lost while a receiver is away, nothing is sent where it was not meant to go."""

import threading
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino_otel import command, exporting
from concertino_otel.command import send_trace
from concertino_otel.options import Options
from concertino_otel.positions import read_position, waiting
from concertino_otel.sending import Away, sender

from .five_strategies import run_of
from .otlp_receiver import assert_one_tree, receiving

CALLS = 10_000


def long_trace(folder: Path, calls: int) -> Path:
    """A run of so many calls."""
    records: list[dict[str, Any]] = [{"t": "run", "run": "long", "question": "q", "setup": {}, "at": 1.8e9}]
    for number in range(calls):
        at = number / 100
        name = {"id": f"1.{number}", "name": "p/tool"}
        records.append({"t": "intent", **name, "kind": "tool", "at": at, "key": "0" * 32, "arguments": {}})
        seen = {"status": "OK", "content": "x" * 40, "attempts": 1, "started": at, "ended": at + 0.005}
        records.append({"t": "result", **name, **seen})
    records.append({"t": "end", "answer": "a", "stop": "answered", "detail": "", "usage": {}, "at": calls / 100})
    return ct.Trace(records).save(folder / "long.trace.jsonl")


@pytest.mark.slow
def test_a_receiver_that_is_away_again_and_again_loses_none_of_ten_thousand_spans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "BATCH_BYTES", 100_000)
    path = long_trace(tmp_path, CALLS)
    with receiving() as receiver:
        receiver.away = True
        back = threading.Timer(2.0, setattr, (receiver, "away", False))
        receiver.answers = [503, 200, 429, 200, 200, 503, 503]
        back.start()
        done = send_trace(path, Options(receiver.url), wait=60)
        back.join()
        spans = receiver.spans()
    assert done.sent == len(spans) == CALLS + 1
    assert len(receiver.bodies) > 10
    assert_one_tree(spans)


def test_what_a_process_could_not_send_the_next_one_sends_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "BATCH_BYTES", 10_000)
    path = long_trace(tmp_path, 200)
    with receiving() as receiver:
        options = Options(receiver.url)
        receiver.answers = [200, 200] + [503] * 50
        with pytest.raises(ct.UsageError, match="spans were taken"):
            send_trace(path, options, wait=0)
        taken = len(receiver.spans())
        assert 0 < taken < 201
        assert 0 < read_position(path, options.receiver).record < len(ct.Trace.load(path).records)
        assert waiting(tmp_path, options.receiver) == [path]
        receiver.answers = []
        assert send_trace(path, options).sent == 201 - taken
        assert waiting(tmp_path, options.receiver) == []
        assert_one_tree(receiver.spans())


def test_a_receiver_that_was_slow_to_fail_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = long_trace(tmp_path, 3)
    clock = [0.0]
    monkeypatch.setattr(command.time, "monotonic", lambda: clock[0])
    tries = []

    def slow(signal: str, body: bytes) -> int:
        tries.append(len(body))
        if len(tries) == 1:
            clock[0] += 60  # as long as a request may take, and longer than the wait
            raise Away("timed out")
        return 0

    assert send_trace(path, Options("http://127.0.0.1:1"), wait=10, send=slow).sent == 4
    assert len(tries) == 2


def test_nothing_is_read_ahead_while_a_receiver_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "BATCH_BYTES", 10_000)
    asked = []

    def away(signal: str, body: bytes) -> int:
        asked.append(len(body))
        raise Away("away")

    export = exporting.TraceExport(long_trace(tmp_path, 2000), Options("http://127.0.0.1:1"), send=away)
    for _ in range(5):
        with pytest.raises(Away):
            export.send_news()
    assert len(set(asked)) == 1, "it is the same batch each time"
    assert max(asked) < 20_000


def test_a_batch_that_is_too_large_for_the_receiver_is_sent_in_parts(tmp_path: Path) -> None:
    path = long_trace(tmp_path, 300)
    with receiving() as receiver:
        receiver.largest = 8_000
        assert send_trace(path, Options(receiver.url)).sent == 301
        assert len(receiver.bodies) > 4
        assert_one_tree(receiver.spans())


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (401, "OTEL_EXPORTER_OTLP_HEADERS"),
        (404, "check the address"),
        (302, "answered 302"),
        (400, "check the address"),
    ],
)
def test_a_refusal_says_what_to_do_and_keeps_the_position(tmp_path: Path, status: int, told: str) -> None:
    path = long_trace(tmp_path, 3)
    with receiving() as receiver:
        receiver.answers = [status]
        with pytest.raises(ct.UsageError, match=told):
            send_trace(path, Options(receiver.url))
        assert receiver.asked == 1, "a redirect is not followed"
        assert read_position(path, receiver.url).record == 0
        assert send_trace(path, Options(receiver.url)).sent == 4


def test_headers_come_from_the_environment_and_no_error_shows_them(tmp_path: Path) -> None:
    environ = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20hush-hush,x-team=blue"}
    options = Options.of({"url": "http://127.0.0.1:9"}, environ)
    assert "hush" not in repr(options)
    with pytest.raises(Away) as error:
        sender(options)("traces", b"")
    assert "hush" not in str(error.value)
    with receiving() as receiver:
        send_trace(long_trace(tmp_path, 1), options.to(receiver.url))
        sent = {name.lower(): value for name, value in receiver.headers[0].items()}
    assert (sent["authorization"], sent["x-team"]) == ("Bearer hush-hush", "blue")


@pytest.mark.parametrize("url", ["ftp://host", "localhost:4318", "http://", "file:///etc/passwd", "http://host:x"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ct.UsageError, match=r"--otlp: .* is no http address; expected such as http://127.0.0.1:4318"):
        Options().to(url)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"urls": "http://x"}, "url"),
        ({"semconv": "1.30"}, "expected one of 1.41, genai-0.1"),
        ({"content": True}, "expected one of none, spans, events, both"),
        ({"signals": "traces"}, "expected a list of traces, metrics, logs"),
        ({"exit_seconds": -1}, "expected seconds"),
    ],
)
def test_a_wrong_setting_is_refused(table: dict[str, Any], told: str) -> None:
    with pytest.raises(ct.UsageError, match=told):
        Options.of(table, {})


def test_the_variables_of_opentelemetry_count_and_the_table_wins() -> None:
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1/",
        "OTEL_SERVICE_NAME": "shop",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        "OTEL_SEMCONV_STABILITY_OPT_IN": "http,gen_ai_latest_experimental",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "EVENT_ONLY",
    }
    options = Options.of({}, environ)
    assert (options.semconv, options.content, options.signals) == ("genai-0.1", "events", ("traces", "logs"))
    assert options.resource == {"deployment.environment.name": "test", "service.name": "shop"}
    assert options.address("traces") == "http://127.0.0.1:1/v1/traces"
    mine = Options.of({"url": "http://127.0.0.1:2/v1/traces", "semconv": "1.41", "content": "none"}, environ)
    assert (mine.semconv, mine.content, mine.address("logs")) == ("1.41", "none", "http://127.0.0.1:2/v1/logs")


async def test_deleting_a_run_deletes_how_far_it_was_sent(tmp_path: Path) -> None:
    path = await run_of("parallel-rounds", tmp_path)
    with receiving() as receiver:
        send_trace(path, Options(receiver.url))
    assert files_in(tmp_path) == {path.name, f"{path.name}.otlp"}
    ct.TraceStore(tmp_path).delete(ct.Trace.load(path).run_id)
    assert files_in(tmp_path) == set()


def files_in(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_a_key_in_a_header_is_a_secret_from_then_on() -> None:
    options = Options.of({}, {"OTEL_EXPORTER_OTLP_HEADERS": "x-api-key=canary-4711-canary,accept=text"})
    assert options.headers["x-api-key"] == "canary-4711-canary"
    assert "canary" not in ct.without_secrets("sent with canary-4711-canary")
