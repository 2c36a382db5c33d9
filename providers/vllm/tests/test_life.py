"""A server's life with real processes: one start for all, one end whatever happens, errors that help."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import concertino_vllm
import pytest
from concertino import Call, ChatRequest, Context, Executor, FailureClass, Message, ModelSpec, Pool, agent
from concertino_vllm import VllmServerError
from concertino_vllm.serving.state import StartProgress

from .conftest import until

Declare = Callable[..., ModelSpec]
HELLO = ChatRequest([Message("user", "Hello.")])


async def ask(spec: ModelSpec) -> str:
    model = spec.factory()
    try:
        return (await model.chat(HELLO)).text
    finally:
        await model.close()


async def is_idle(spec: ModelSpec) -> bool:
    """Whether the model's server is known to have ended."""
    return (await concertino_vllm.server(spec).health()).state == "idle"


def sockets_in(folder: str) -> int | None:
    """How many there are, None without the folder."""
    return sum(path.is_socket() for path in Path(folder).iterdir()) if Path(folder).is_dir() else None


def text_of(file: str) -> str:
    return Path(file).read_text()


def append(file: str, text: str) -> None:
    with Path(file).open("a") as end:
        end.write(text)


# -- starting ------------------------------------------------------------------------------------------------


async def test_nothing_is_started_before_the_first_request_and_nothing_is_left_after_close(
    declare: Declare, system: Any
) -> None:
    spec = declare()
    model = spec.factory()
    assert system.servers() == []
    reply = await model.chat(HELLO)
    assert reply.text.startswith("pid ")
    assert reply.usage.input_tokens == 3
    assert len(system.servers()) >= 3  # the guard, the server, its engine
    await model.close()
    assert system.left() == set()
    await model.close()


async def test_a_log_in_a_temporary_folder_does_not_fill_the_disk(
    declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concertino_vllm.serving.process.LOG_BYTES", 200_000)
    spec = declare(log="")
    model = spec.factory()
    await model.chat(HELLO)
    log = (await concertino_vllm.server(spec).health()).log
    append(log, "old\n" * 100_000 + "the last line\n")
    await model.chat(HELLO)
    assert len(text_of(log)) < 70_000
    assert "the last line\n" in text_of(log)
    await model.close()


async def test_a_log_that_the_settings_name_is_never_cut(
    declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concertino_vllm.serving.process.LOG_BYTES", 100)
    log = tmp_path / "mine.log"
    log.write_text("mine\n" * 100)
    model = declare(log=log).factory()
    await model.chat(HELLO)
    assert log.read_text().count("mine\n") == 100
    await model.close()


async def test_members_with_equal_settings_share_one_server_which_outlives_the_first_of_them(declare: Declare) -> None:
    one, other = declare().factory(), declare().factory()
    pids = {(await one.chat(HELLO)).text, (await other.chat(HELLO)).text}
    assert len(pids) == 1
    await one.close()
    assert (await other.chat(HELLO)).text in pids
    await other.close()


async def test_members_with_other_settings_have_another_server(declare: Declare) -> None:
    one, other = declare().factory(), declare(args=["--max-model-len", "128"]).factory()
    assert (await one.chat(HELLO)).text != (await other.chat(HELLO)).text
    await one.close()
    await other.close()


async def test_many_first_requests_at_once_start_one_server(declare: Declare, tmp_path: Path) -> None:
    spec = declare({"counter": str(tmp_path / "starts"), "delay": 0.3})
    model = spec.factory()
    replies = await asyncio.gather(*(model.chat(HELLO) for _ in range(20)))
    assert len({reply.text for reply in replies}) == 1
    assert len((tmp_path / "starts").read_text().split()) == 1
    await model.close()


async def test_a_cancelled_first_request_does_not_cancel_the_start_for_the_others(
    declare: Declare, tmp_path: Path
) -> None:
    model = declare({"delay": 0.5, "counter": str(tmp_path / "starts")}).factory()
    first, second = (asyncio.create_task(model.chat(HELLO)) for _ in range(2))
    await until((tmp_path / "starts").exists)
    first.cancel()
    assert (await second).text.startswith("pid ")
    assert len((tmp_path / "starts").read_text().split()) == 1
    await model.close()


@pytest.mark.slow
async def test_a_start_tells_how_far_it_has_come_with_the_last_line_of_the_log(declare: Declare) -> None:
    seen: list[StartProgress] = []
    spec = declare({"delay": 2.5, "say": ["(APIServer pid=7) INFO 01-02 03:04:05 [a.py:6] Loading weights: 40 %"]})
    await concertino_vllm.server(spec).start(seen.append)
    assert len(seen) >= 2
    assert seen[0].seconds < seen[-1].seconds < seen[-1].limit == 600
    assert str(seen[1]).startswith("starting vLLM with someone/some-model: ")
    assert "pid=7" not in str(seen[1])


async def test_a_free_port_is_taken_again_when_another_program_was_faster(declare: Declare, tmp_path: Path) -> None:
    spec = declare({"taken": 2, "counter": str(tmp_path / "starts")})
    assert (await ask(spec)).startswith("pid ")
    assert len((tmp_path / "starts").read_text().split()) == 3


async def test_two_servers_started_at_once_have_ports_of_their_own(declare: Declare) -> None:
    specs = [declare(env={"NUMBER": str(number)}) for number in range(4)]
    endpoints = await asyncio.gather(*(concertino_vllm.server(spec).ready() for spec in specs))
    assert len({endpoint.url for endpoint in endpoints}) == 4


async def test_a_port_that_another_program_has_is_named(declare: Declare) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(VllmServerError, match=f"port = {port}: another program has it"):
            await ask(declare(port=port))


async def test_a_given_port_is_used(declare: Declare) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    server = concertino_vllm.server(declare(port=port))
    assert (await server.ready()).url == f"http://127.0.0.1:{port}"


async def test_the_server_gets_its_environment_and_a_scratch_folder_that_disappears(declare: Declare) -> None:
    import aiohttp

    server = concertino_vllm.server(declare(env={"HF_HUB_OFFLINE": "1"}, log=None))
    url = (await server.ready()).url
    async with aiohttp.ClientSession() as session, session.get(f"{url}/environment") as response:
        env = json.loads(await response.text())
    assert env["HF_HUB_OFFLINE"] == "1"
    assert env["VLLM_NO_USAGE_STATS"] == "1"
    assert os.environ.get("HF_HUB_OFFLINE") == env["HF_HUB_OFFLINE"] or "HF_HUB_OFFLINE" not in os.environ
    assert sockets_in(env["TMPDIR"]) == 1
    await server.stopped()
    assert sockets_in(env["TMPDIR"]) is None
    assert sockets_in(f"{env['TMPDIR']}/..") is None


# -- what can be wrong ---------------------------------------------------------------------------------------


async def test_a_server_that_dies_while_starting_is_told_at_once_with_cause_log_and_its_end(declare: Declare) -> None:
    wish = {"say": ["loading", "ValueError: No available memory for the cache blocks. Try increasing it."], "die": 1}
    with pytest.raises(VllmServerError) as failure:
        await ask(declare(wish))
    text = str(failure.value)
    assert text.startswith("vLLM did not start: the model leaves no memory for the KV cache; give it less to hold")
    assert f"Its log: {failure.value.log}" in text
    assert "No available memory for the cache blocks" in text_of(failure.value.log)
    assert failure.value.failure is FailureClass.CALLER


async def test_a_failed_start_is_remembered_for_the_requests_that_follow(declare: Declare, tmp_path: Path) -> None:
    spec = declare({"die": 1, "counter": str(tmp_path / "starts")})
    for _ in range(3):
        with pytest.raises(VllmServerError, match="vLLM did not start"):
            await ask(spec)
    assert len((tmp_path / "starts").read_text().split()) == 1


async def test_a_start_that_takes_too_long_is_ended(declare: Declare, system: Any) -> None:
    with pytest.raises(VllmServerError, match=r"not ready after 1 s; if it was only slow, raise startup_seconds"):
        await ask(declare({"delay": 30}, startup_seconds=1))
    assert system.servers() == []


async def test_a_missing_command_is_explained(declare: Declare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONCERTINO_VLLM", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        VllmServerError, match=r"(?s)No `vllm` command\..*pip install vllm.*executable = .*On CPU.*attach = "
    ):
        await ask(declare(executable=None))


async def test_a_missing_model_folder_is_named(declare: Declare, tmp_path: Path) -> None:
    with pytest.raises(VllmServerError, match=rf"there is no {tmp_path}/nowhere; correct the folder"):
        await ask(declare(model=str(tmp_path / "nowhere")))


async def test_a_folder_that_holds_no_adapter_is_named(declare: Declare, tmp_path: Path) -> None:
    with pytest.raises(VllmServerError, match=r"adapters: policy = .* holds no adapter_config\.json"):
        await ask(declare(adapters={"policy": tmp_path}))


async def test_a_command_that_cannot_be_executed_is_named(declare: Declare, tmp_path: Path) -> None:
    command = tmp_path / "vllm"
    command.write_text("#!/no/such/interpreter\n")
    command.chmod(0o755)
    with pytest.raises(VllmServerError, match=r"cannot execute .*vllm"):
        await ask(declare(executable=command))


async def test_an_attached_server_that_is_not_there_is_named() -> None:
    spec = concertino_vllm.model("far", attach="http://127.0.0.1:9")
    with pytest.raises(VllmServerError, match=r"attach = 'http://127\.0\.0\.1:9': no vLLM answers there"):
        await ask(spec)


async def test_an_attached_server_is_used_and_left_running(declare: Declare) -> None:
    server = concertino_vllm.server(declare())
    endpoint = await server.ready()
    spec = concertino_vllm.model("far", attach=endpoint.url)
    assert (await ask(spec)).startswith("pid ")
    assert (await server.health()).ok


# -- ending while it is used ---------------------------------------------------------------------------------


async def test_a_server_that_died_is_started_again_by_the_next_request(declare: Declare) -> None:
    spec = declare()
    model = spec.factory()
    pid = int((await model.chat(HELLO)).text.split()[1])
    os.kill(pid, signal.SIGKILL)
    await until(lambda: is_idle(spec))
    again = int((await model.chat(HELLO)).text.split()[1])
    assert again != pid
    await model.close()


async def test_a_request_whose_server_is_killed_says_so(declare: Declare, tmp_path: Path) -> None:
    spec = declare()
    model = spec.factory()
    pid = int((await model.chat(HELLO)).text.split()[1])
    slow = concertino_vllm.model(
        "slow", of=spec, extra_body={"extra_seconds": 30, "arrived": str(tmp_path / "arrived")}
    ).factory()
    asked = asyncio.create_task(slow.chat(HELLO))
    await until((tmp_path / "arrived").exists)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(VllmServerError, match="vLLM ended while it answered: it was killed, most likely") as failure:
        await asked
    assert failure.value.failure is FailureClass.MAYBE_EXECUTED
    await slow.close()
    await model.close()


@pytest.mark.slow
async def test_a_server_that_keeps_dying_is_not_started_for_ever(declare: Declare, tmp_path: Path) -> None:
    spec = declare({"die_after": 0.7, "counter": str(tmp_path / "starts")})
    server = concertino_vllm.server(spec)
    for _ in range(3):
        await server.ready()
        await until(lambda: is_idle(spec))
    with pytest.raises(VllmServerError, match="ended 3 times within 10 minutes"):
        await server.ready()
    assert len((tmp_path / "starts").read_text().split()) == 3


async def test_the_executor_gets_an_answer_although_the_server_was_killed_between_two_requests(
    declare: Declare,
) -> None:
    @agent
    async def repeat(ctx: Context) -> str:
        """Ask, kill, ask."""
        first = (await ctx.model("coder").chat("Hello.")).text
        os.kill(int(first.split()[1]), signal.SIGKILL)
        return f"{first} {(await ctx.model('coder').chat('Hello.')).text}"

    async with Executor() as executor:
        [observation] = await executor.run([Call("repeat", {})], Pool([repeat, declare()]))
    first, second = str(observation.content).split()[1::2]
    assert observation.ok
    assert first != second


async def test_an_idle_server_is_stopped_and_started_again_by_the_next_request(declare: Declare, system: Any) -> None:
    model = declare(idle_seconds=0.5).factory()
    first = (await model.chat(HELLO)).text
    await until(lambda: not system.servers())
    assert (await model.chat(HELLO)).text != first
    await model.close()


async def test_a_closed_model_can_be_asked_again_and_is_not_closed_by_what_it_was_before(
    declare: Declare, system: Any
) -> None:
    model = declare().factory()
    await model.chat(HELLO)
    await model.close()
    assert system.servers() == []
    again = (await model.chat(HELLO)).text
    gc.collect()
    await asyncio.sleep(0.2)
    assert (await model.chat(HELLO)).text == again
    await model.close()


async def test_a_forgotten_model_releases_its_server(declare: Declare, system: Any) -> None:
    model = declare().factory()
    await model.chat(HELLO)
    del model
    await until(lambda: gc.collect() >= 0 and not system.servers())


async def test_a_kept_server_outlives_its_models_and_even_its_event_loop(declare: Declare) -> None:
    spec = declare(keep=True)
    first = await ask(spec)
    assert await asyncio.to_thread(lambda: asyncio.run(ask(spec))) == first


async def test_health_and_metrics_are_typed(declare: Declare) -> None:
    server = concertino_vllm.server(declare())
    assert (await server.health()).state == "idle"
    await server.ready()
    health = await server.health()
    assert (health.ok, health.state, health.message) == (True, "ready", "")
    assert health.pid > 1
    assert "Application startup complete." in text_of(health.log)
    assert (await server.metrics()).running == 0
