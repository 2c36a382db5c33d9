"""Content leaves the machine only where it was asked for; metrics and log records say what spans say."""

import json
from pathlib import Path

import concertino as ct
import pytest
from concertino.testing import ScriptedModel
from concertino_otel.command import send_trace
from concertino_otel.conventions import METRICS
from concertino_otel.options import Options

from .five_strategies import CANARY, NAMES, run_of
from .otlp_receiver import plain, receiving, values


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("name", NAMES)
async def test_without_content_no_byte_of_prompts_and_results_is_sent(name: str, fails: bool, tmp_path: Path) -> None:
    path = await run_of(name, tmp_path, fails=fails)
    assert CANARY.encode() in path.read_bytes()
    with receiving() as receiver:
        options = Options.of({"signals": ["traces", "metrics", "logs"]}, {}).to(receiver.url)
        send_trace(path, options)
        assert {to for to, _ in receiver.bodies} == {"/v1/traces", "/v1/metrics"}
        assert CANARY.encode() not in b"".join(body for _, body in receiver.bodies)


async def test_content_in_spans_is_in_the_form_of_the_conventions(tmp_path: Path) -> None:
    path = await run_of("parallel-rounds", tmp_path)
    with receiving() as receiver:
        send_trace(path, Options.of({"content": "spans"}, {}).to(receiver.url))
        spans = {values(span).get("concertino.call.id", span.name): values(span) for span in receiver.spans()}
    asked = json.loads(spans["ask.1"]["gen_ai.input.messages"])
    assert asked == [{"role": "user", "parts": [{"type": "text", "content": f"question {CANARY}"}]}]
    assert spans["ask.1"]["gen_ai.system_instructions"].startswith('[{"type": "text"')
    assert json.loads(spans["1.1"]["gen_ai.tool.call.arguments"]) == {"text": CANARY}
    assert spans["1.1"]["gen_ai.tool.call.result"] == f"worked on {CANARY}"
    answer = json.loads(spans["invoke_agent concertino"]["gen_ai.output.messages"])
    assert answer[0]["parts"][0]["content"] == CANARY
    [said] = json.loads(spans["1.2/1"]["gen_ai.output.messages"])
    assert (said["role"], said["parts"][0]["content"]) == ("assistant", f"said {CANARY}")


async def test_content_in_events_is_in_log_records_of_the_spans_and_in_no_span(tmp_path: Path) -> None:
    path = await run_of("parallel-rounds", tmp_path)
    with receiving() as receiver:
        send_trace(path, Options.of({"content": "events"}, {}).to(receiver.url))
        assert CANARY.encode() not in b"".join(body for to, body in receiver.bodies if to == "/v1/traces")
        chats = {span.span_id for span in receiver.spans() if span.name.startswith("chat ")}
        records = [
            record
            for request in receiver.requests("/v1/logs")
            for record in request.resource_logs[0].scope_logs[0].log_records
        ]
    assert {record.span_id for record in records} == chats
    assert {record.event_name for record in records} == {"gen_ai.client.inference.operation.details"}
    told = {pair.key: plain(pair.value) for pair in records[0].attributes}
    assert told["gen_ai.output.messages"][0]["role"] == "assistant"


async def test_a_long_text_is_cut_and_a_key_in_it_is_hidden(tmp_path: Path) -> None:
    key = "sk-proj-" + "a1B2" * 12
    question = f"{key} and {'long ' * 5000}"
    leader = ct.Orchestrator(ScriptedModel("Yes."), "direct-answer")
    run = await leader.run(question, trace=tmp_path)
    with receiving() as receiver:
        send_trace(Path(str(run.path)), Options.of({"content": "spans"}, {}).to(receiver.url))
        sent = b"".join(body for _, body in receiver.bodies)
    assert key.encode() not in sent
    assert b"characters in the trace]" in sent
    assert len(sent) < 40_000


@pytest.mark.parametrize("dialect", ["1.41", "genai-0.1"])
async def test_metrics_count_each_span_once_however_often_it_is_sent(dialect: str, tmp_path: Path) -> None:
    path = await run_of("parallel-rounds", tmp_path)
    with receiving() as receiver:
        options = Options.of({"semconv": dialect, "signals": ["traces", "metrics"]}, {}).to(receiver.url)
        send_trace(path, options)
        send_trace(path, options)
        spans = receiver.spans()
        [request] = receiver.requests("/v1/metrics")
    found = {metric.name: metric for metric in request.resource_metrics[0].scope_metrics[0].metrics}
    assert found.keys() == {each.called(options.semconv) for each in METRICS} - {""}
    seconds = next(each.called(options.semconv) for each in METRICS if each.field == "seconds" and "chat" in each.spans)
    points = found[seconds].histogram.data_points
    chats = [span for span in spans[: len(spans) // 2] if span.name.startswith("chat ")]
    assert sum(point.count for point in points) == len(chats)
    assert all(len(point.bucket_counts) == len(point.explicit_bounds) + 1 for point in points)
    assert all(sum(point.bucket_counts) == point.count for point in points)
