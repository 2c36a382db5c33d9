"""With the real vLLM on CPU: overload, cancellation, changes of weights, token ids, crashes, and what is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import concertino_vllm
import pytest
from concertino import Call, ChatRequest, Context, Executor, Message, ModelSpec, Plan, Pool, Sampling, agent
from concertino.core.events import Event, Retried
from concertino_vllm import NotSupported, PolicyGeneration, PolicyServer, SwapError, TokenDrift, TokenTrajectory
from launch import lower_priority

pytestmark = pytest.mark.server

Figure = Callable[[str], None]
GREEDY = Sampling(temperature=0, max_tokens=16)
PROMPT = tuple(3 + 7 * number % 400 for number in range(140))
"""Ids that no test but those of the cache use; 128 of them fit into whole blocks."""
COUNT = [Message("user", "Count without end.")]


@pytest.fixture
async def policy(
    vllm_policy: ModelSpec, cold_values: dict[str, float], tiny_model: Path
) -> AsyncIterator[PolicyServer]:
    """The shared server, with the weights that it started with and an empty cache."""
    async with PolicyServer(vllm_policy) as policy:
        lower_priority((await policy.server.health()).pid)
        served = policy.server.served
        await policy.unload_adapter()
        if served.weights not in (None, tiny_model):
            await policy.load_weights(tiny_model, served.version + 1)
        await policy.reset_cache()
        yield policy


def total(generation: PolicyGeneration) -> float:
    return sum(generation.logprobs)


async def cold(policy: PolicyServer, prompt: tuple[int, ...] = PROMPT) -> float:
    """The value that no cache has touched: no other request has this salt."""
    generation = await policy.generate_ids(prompt, GREEDY, salt=f"{random.random()}")
    assert generation.cached_tokens == 0
    return total(generation)


# -- overload ------------------------------------------------------------------------------------------------


@agent
async def count(ctx: Context, number: int) -> str:
    """Have the model count for twenty tokens."""
    sampling = Sampling(temperature=0, max_tokens=20)
    return (await ctx.model("policy").chat([*COUNT, Message("user", f"<budget>{number}")], sampling=sampling)).text


async def _late() -> float:
    """The longest that this process was not let run, in seconds, until it is cancelled: a busy machine does that."""
    longest, last = 0.0, time.monotonic()
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            await asyncio.sleep(0.01)
            longest, last = max(longest, time.monotonic() - last - 0.01), time.monotonic()
    return longest


async def _flood(spec: ModelSpec, seconds: float | None) -> tuple[Counter[str], Counter[int], int, float]:
    """64 calls at once: statuses, requests by number of attempts, retries, seconds."""
    retried: list[Retried] = []

    def listen(event: Event) -> None:
        if isinstance(event, Retried):
            retried.append(event)

    flooder = count.with_(timeout=seconds)
    async with Executor() as executor:
        plan = Plan([Call("count", {"number": number}, id=str(number)) for number in range(64)])
        began = time.monotonic()
        observations = await executor.run(plan, Pool([flooder, spec]), listeners=[listen])
        took = time.monotonic() - began
    attempts = Counter(Counter(event.call_id for event in retried).values())
    return Counter(observation.status.value for observation in observations), attempts, len(retried), took


async def test_64_calls_through_a_queue_of_eight_are_all_answered(
    vllm_policy: ModelSpec, policy: PolicyServer, figure: Figure
) -> None:
    statuses, attempts, retries, took = await _flood(vllm_policy, None)
    again = {number + 1: times for number, times in sorted(attempts.items())}
    figure(f"queue of 8, 64 calls: {dict(statuses)}, {retries} retries ({again} calls by attempts), {took:.2f} s")
    assert statuses == {"OK": 64}


async def test_64_calls_with_a_second_each_are_answered_or_timed_out_in_time(
    vllm_policy: ModelSpec, policy: PolicyServer, figure: Figure
) -> None:
    late = asyncio.create_task(_late())
    await asyncio.sleep(0)
    statuses, _, retries, took = await _flood(vllm_policy, 1.0)
    late.cancel()
    stood = await late
    figure(
        f"queue of 8, 64 calls with 1 s each: {dict(statuses)}, {retries} retries, {took:.2f} s "
        f"(of which this process stood still for {stood:.2f} s at most)"
    )
    assert set(statuses) <= {"OK", "TIMEOUT"}
    assert took <= 1.5 + stood


# -- cancellation --------------------------------------------------------------------------------------------


async def _stream(spec: ModelSpec) -> None:
    model = spec.factory()
    async for _ in model.stream(ChatRequest(COUNT, sampling=Sampling(temperature=0, max_tokens=900))):
        pass


async def _chat(spec: ModelSpec) -> None:
    await spec.factory().chat(ChatRequest(COUNT, sampling=Sampling(temperature=0, max_tokens=900)))


async def _generate(spec: ModelSpec) -> None:
    shown = await spec.factory().chat(ChatRequest(COUNT, sampling=Sampling(max_tokens=1, logprobs=True)))
    async with PolicyServer(spec) as policy:
        await policy.generate_ids(shown.prompt_token_ids or (), Sampling(temperature=0, max_tokens=900))


@pytest.mark.parametrize("ask", [_stream, _chat, _generate], ids=["stream", "chat", "generate_ids"])
async def test_a_cancelled_generation_of_900_tokens_stops_in_the_server(
    vllm_policy: ModelSpec, policy: PolicyServer, figure: Figure, ask: Callable[[ModelSpec], Any]
) -> None:
    # Half a second, or less where all 900 are there by then: machines differ, and some stand still for seconds.
    for seconds in (0.5, 0.25, *[0.12] * 10):
        after, tokens, took = await _cancelled_after(seconds, ask(vllm_policy), policy)
        figure(
            f"cancelled after {after:.2f} s ({ask.__name__}): {tokens} of 900 tokens, nothing runs after {took:.2f} s"
        )
        if tokens < 900:
            break
    assert took < 2
    assert tokens < 900


async def _cancelled_after(
    seconds: float, asking: Coroutine[Any, Any, None], policy: PolicyServer
) -> tuple[float, int, float]:
    """When it was cancelled, how many tokens were generated, and for how many seconds the server was still at it."""
    before = (await policy.metrics()).generation_tokens
    task, began = asyncio.create_task(asking), time.monotonic()
    await asyncio.sleep(seconds)
    task.cancel()
    cancelled = time.monotonic()
    for pause in (0.0, *[0.02] * 100):
        await asyncio.sleep(pause)
        if not (await policy.metrics()).running:
            break
    took = time.monotonic() - cancelled
    await asyncio.sleep(0.3)
    return cancelled - began, (await policy.metrics()).generation_tokens - before, took


# -- weights -------------------------------------------------------------------------------------------------


class Careless(PolicyServer):
    """Once, does not empty the cache: neither by itself, nor through the pause, which empties it too."""

    careless = True

    async def _reset(self, wire: Any) -> None:
        if not self.careless:
            await super()._reset(wire)
        self.careless = False

    async def load_weights(self, source: Any, version: int) -> None:
        wire = await self._control()
        post = wire.post

        async def keeping(path: str, *args: Any, **options: Any) -> Any:
            keep = self.careless and path.startswith("/pause")
            return await post(path + "&clear_cache=false" if keep else path, *args, **options)

        wire.post = keeping  # type: ignore[method-assign]
        await super().load_weights(source, version)


class Blind(Careless):
    """Does not look at the cache afterwards either."""

    async def _check(self, wire: Any, model: str) -> None:
        """Nothing."""


@pytest.fixture(scope="session")
def cold_values(vllm_policy: ModelSpec, real_options: dict[str, Any], tiny_model: Path) -> dict[str, float]:
    """What another server says, which was started with the changed weights and never had others.

    The shared server comes up meanwhile: each takes forty seconds, on one processor.
    """
    spec = concertino_vllm.model(
        "cold",
        model=tiny_model.parent / "tiny-changed",
        training=True,
        lora_rank=8,
        adapters={"two": tiny_model.parent / "lora-2"},
        **real_options,
    )

    async def ask() -> dict[str, float]:
        async with PolicyServer(spec) as policy, PolicyServer(spec, adapter="two") as adapter:
            changed = total(await policy.generate_ids(PROMPT, GREEDY))
            return {"changed": changed, "changed, lora-2": total(await adapter.generate_ids(PROMPT, GREEDY))}

    async def start_shared() -> None:
        async with PolicyServer(vllm_policy):
            pass  # it is kept

    async def both() -> dict[str, float]:
        values, _ = await asyncio.gather(ask(), start_shared())
        return values

    return asyncio.run(both())


async def test_after_a_change_of_weights_a_cached_prompt_is_answered_as_by_a_cold_server(
    policy: PolicyServer, cold_values: dict[str, float], tiny_model: Path, figure: Figure
) -> None:
    version = policy.version
    await policy.generate_ids(PROMPT, GREEDY)
    old = await policy.generate_ids(PROMPT, GREEDY)
    assert old.cached_tokens == 128
    began = time.monotonic()
    await policy.load_weights(tiny_model.parent / "tiny-changed", version + 1)
    took = time.monotonic() - began
    new = await policy.generate_ids(PROMPT, GREEDY)
    await policy.load_weights(tiny_model, version + 2)
    back = await policy.generate_ids(PROMPT, GREEDY)
    difference = abs(total(new) - cold_values["changed"])
    figure(
        f"weights: {total(old):.6f} before, {total(new):.6f} after, {cold_values['changed']:.6f} on a cold server "
        f"(difference {difference:.1e}); the change took {took:.3f} s"
    )
    assert difference < 1e-6
    assert abs(total(back) - total(old)) < 1e-6
    assert abs(total(new) - total(old)) > 1e-3
    assert (old.version, new.version, back.version) == (version, version + 1, version + 2)
    assert new.cached_tokens == 0


async def test_without_the_reset_a_cached_prompt_is_answered_wrongly_and_nobody_would_see(
    policy: PolicyServer, vllm_policy: ModelSpec, cold_values: dict[str, float], tiny_model: Path, figure: Figure
) -> None:
    version = policy.version
    await policy.generate_ids(PROMPT, GREEDY)
    async with Blind(vllm_policy) as blind:
        await blind.load_weights(tiny_model.parent / "tiny-changed", version + 1)
        stale = await blind.generate_ids(PROMPT, GREEDY)
    await policy.load_weights(tiny_model, version + 2)
    difference = abs(total(stale) - cold_values["changed"])
    figure(
        f"weights without the reset: {total(stale):.6f}, wrong by {difference:.1e} ({stale.cached_tokens} ids cached)"
    )
    assert stale.cached_tokens == 128
    assert difference > 1e-3


async def test_a_cache_that_outlives_the_change_is_found_and_the_change_undone(
    policy: PolicyServer, vllm_policy: ModelSpec, tiny_model: Path
) -> None:
    version, before = policy.version, await cold(policy)
    await policy.generate_ids(PROMPT, GREEDY)
    async with Careless(vllm_policy) as careless:
        with pytest.raises(SwapError, match=rf"still come from the cache.*version {version} answers again"):
            await careless.load_weights(tiny_model.parent / "tiny-changed", version + 1)
    assert policy.version == version
    assert abs(total(await policy.generate_ids(PROMPT, GREEDY)) - before) < 1e-6
    assert abs(await cold(policy) - before) < 1e-6
    await policy.load_weights(tiny_model, version + 1)


async def test_requests_during_a_change_wait_and_each_names_the_version_that_answered_it(
    policy: PolicyServer, tiny_model: Path, figure: Figure
) -> None:
    folders = [tiny_model, tiny_model.parent / "tiny-changed"]
    first = policy.version
    truth: dict[int, float] = {first % 2: await cold(policy)}
    await policy.load_weights(folders[1], first + 1)
    truth[(first + 1) % 2] = await cold(policy)
    answers: list[PolicyGeneration] = []

    async def ask() -> None:
        answers.extend([await policy.generate_ids(PROMPT, GREEDY) for _ in range(25)])

    async def change() -> None:
        for number in range(2, 8):
            await asyncio.sleep(0.1)
            await policy.load_weights(folders[number % 2], first + number)

    await asyncio.gather(change(), *(ask() for _ in range(4)))
    wrong = [answer for answer in answers if abs(total(answer) - truth[answer.version % 2]) > 1e-4]
    versions = Counter(answer.version for answer in answers)
    figure(f"{len(answers)} requests across 6 changes of weights: {len(wrong)} with a wrong version; {dict(versions)}")
    assert wrong == []
    assert len(versions) >= 3
    await policy.load_weights(tiny_model, first + 8)


async def test_a_state_dict_is_loaded_like_a_folder(policy: PolicyServer, tiny_model: Path) -> None:
    load_file = pytest.importorskip("safetensors.torch").load_file
    version = policy.version
    state = load_file(tiny_model.parent / "tiny-changed" / "model.safetensors")
    await policy.load_weights(state, version + 1)
    loaded = total(await policy.generate_ids(PROMPT, GREEDY))
    await policy.load_weights(tiny_model.parent / "tiny-changed", version + 2)
    assert abs(loaded - total(await policy.generate_ids(PROMPT, GREEDY))) < 1e-6
    await policy.load_weights(tiny_model, version + 3)


async def test_weights_that_are_no_numbers_are_undone(policy: PolicyServer, tiny_model: Path) -> None:
    load_file = pytest.importorskip("safetensors.torch").load_file
    version, before = policy.version, await cold(policy)
    state = load_file(tiny_model / "model.safetensors")
    state = {name: tensor * float("nan") if "norm" in name else tensor for name, tensor in state.items()}
    with pytest.raises(SwapError, match=f"version {version} answers again"):
        await policy.load_weights(state, version + 1)
    assert policy.version == version
    assert abs(await cold(policy) - before) < 1e-6


# -- adapters ------------------------------------------------------------------------------------------------


async def test_adapters_are_loaded_under_fresh_names_and_answer_as_on_a_cold_server(
    policy: PolicyServer, vllm_policy: ModelSpec, cold_values: dict[str, float], tiny_model: Path, figure: Figure
) -> None:
    version = policy.version
    await policy.load_weights(tiny_model.parent / "tiny-changed", version + 1)
    for number, folder in enumerate(["lora-1", "lora-2", "lora-1", "lora-2"], 11):
        name = await policy.load_adapter(tiny_model.parent / folder, number)
        await policy.generate_ids(PROMPT, GREEDY)
        answer = await policy.generate_ids(PROMPT, GREEDY)
        assert (answer.model, answer.version, answer.cached_tokens) == (name, number, 128)
    difference = abs(total(answer) - cold_values["changed, lora-2"])
    figure(f"adapter {name}: {total(answer):.6f} from the cache, wrong by {difference:.1e} against a cold server")
    assert difference < 1e-6
    assert sorted(policy.server.served.adapters) == ["policy@v13", "policy@v14"]
    member = concertino_vllm.model("tuned", of=vllm_policy, adapter="policy").factory()
    reply = await member.chat(ChatRequest([Message("user", "Say ping.")], sampling=GREEDY))
    assert reply.extra["vllm"] == {"model": "policy@v14", "version": 14}
    await member.close()


async def test_an_adapter_reloaded_under_its_old_name_is_answered_from_the_old_cache(
    policy: PolicyServer, tiny_model: Path, tmp_path: Path, figure: Figure
) -> None:
    folder = tmp_path / "adapter"
    wire = await policy._control()
    values = []
    for source in ("lora-1", "lora-2"):
        folder.mkdir(exist_ok=True)
        for file in (tiny_model.parent / source).iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        await wire.post("/v1/load_lora_adapter", {"lora_name": "same", "lora_path": str(folder), "load_inplace": True})
        policy.server.served.current["same"] = "same"
        policy.adapter = "same"
        served = total(await policy.generate_ids(PROMPT, GREEDY))
        values.append((served, await cold(policy)))
    await wire.post("/v1/unload_lora_adapter", {"lora_name": "same"})
    del policy.server.served.current["same"]
    figure(f"adapter under its old name: {values[1][0]:.6f} served, {values[1][1]:.6f} true")
    assert abs(values[0][0] - values[0][1]) < 1e-6
    assert abs(values[1][0] - values[1][1]) > 1e-3


async def test_an_adapter_that_the_server_refuses_changes_nothing(
    policy: PolicyServer, tiny_model: Path, tmp_path: Path
) -> None:
    before, names = policy.version, dict(policy.server.served.current)
    for file in (tiny_model.parent / "lora-1").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = tmp_path / "adapter_config.json"
    config.write_text(config.read_text().replace('"LORA"', '"PREFIX_TUNING"').replace('"r"', '"no_r"'))
    with pytest.raises(SwapError, match=f"version {before} answers as before"):
        await policy.load_adapter(tmp_path, 1_000)
    assert policy.server.served.current == names
    assert (await policy.health()).ok


# -- token ids -----------------------------------------------------------------------------------------------


async def test_200_sampled_turns_keep_the_ids_that_the_server_sampled(vllm_server: Any, figure: Figure) -> None:
    """200 conversations of two turns; the second prompt is made of ids, and also of the text, as chat clients do.

    The server scores the ids that were kept: each must have the log-probability with which it was sampled.
    """
    spec = concertino_vllm.model("attached", attach=vllm_server.base_url)
    async with PolicyServer(spec) as policy:
        model, limit = spec.factory(), asyncio.Semaphore(8)

        async def one(number: int) -> tuple[PolicyGeneration, float, str]:
            async with limit:
                return await _converse(model, policy, number)

        results = await asyncio.gather(*(one(number) for number in range(200)))
        worst = max(difference for _, difference, _ in results)
        refused = [reason for _, _, reason in results if reason]
        last = results[-1][0]
        forged = replace(last, token_ids=(*last.token_ids[:-1], (last.token_ids[-1] + 1) % 400))
        assert await _difference(policy, forged) > 1e-2, "an id that was not sampled shows"
        await model.close()
    figure(f"400 sampled turns: every id kept has the server's own log-probability (largest difference {worst:.1e})")
    example = next(iter(refused), "none")
    figure(f"200 second turns: by ids all continue; by text {200 - len(refused)} do, the rest is refused: {example}")
    assert worst < 1e-3
    assert all("its prompt differs at id" in reason for reason in refused)


async def _converse(model: Any, policy: PolicyServer, number: int) -> tuple[PolicyGeneration, float, str]:
    """The second turn, the largest difference of a log-probability, and why the turn by text was refused, if it was."""
    sampling = Sampling(temperature=1.6, max_tokens=24, seed=number, logprobs=True)
    question = Message("user", f"Say ping. <budget>{number}")
    reply = await model.chat(ChatRequest([question], sampling=sampling))
    first = _as_turn(reply)
    by_ids, by_text = TokenTrajectory(), TokenTrajectory()
    by_ids.add(first)
    second = await policy.generate_ids((*by_ids.ids, *first.prompt_ids[-8:]), sampling)
    by_ids.add(second)
    difference = max([await _difference(policy, turn) for turn in (first, second)])
    by_text.add(first)
    history = [question, Message.of(reply), Message("user", "Go on.")]
    try:
        by_text.add(_as_turn(await model.chat(ChatRequest(history, sampling=sampling))))
    except TokenDrift as drift:
        return second, difference, str(drift)
    return second, difference, ""


async def _difference(policy: PolicyServer, turn: PolicyGeneration) -> float:
    """The largest difference between what a turn's ids were sampled with and what the server gives them now."""
    scores = await _scores(policy, turn)
    return max(abs(one - other) for one, other in zip(scores, turn.logprobs, strict=True))


async def _scores(policy: PolicyServer, turn: PolicyGeneration) -> list[float]:
    """The log-probabilities that the server gives the ids of a turn when it is shown them."""
    wire = await policy._control()
    prompt = [*turn.prompt_ids, *turn.token_ids]
    body = {"model": turn.model, "prompt": prompt, "max_tokens": 1, "prompt_logprobs": 0}
    answer = await wire.post("/v1/completions", body)
    scores = answer["choices"][0]["prompt_logprobs"][len(turn.prompt_ids) :]
    return [score[str(token)]["logprob"] for score, token in zip(scores, turn.token_ids, strict=True)]


def _as_turn(reply: Any) -> PolicyGeneration:
    return PolicyGeneration(
        reply.prompt_token_ids,
        reply.token_ids,
        reply.logprobs,
        reply.text,
        reply.finish_reason,
        reply.extra["vllm"]["version"],
        reply.extra["vllm"]["model"],
    )


# -- pausing, sleeping, breaking -----------------------------------------------------------------------------


async def test_a_paused_server_answers_after_it_was_resumed(policy: PolicyServer) -> None:
    await policy.pause()
    assert await policy.paused()
    asked = asyncio.create_task(policy.generate_ids(PROMPT, GREEDY))
    await asyncio.sleep(0.3)
    assert not asked.done()
    await policy.resume()
    assert len((await asked).token_ids) > 0


async def test_sleep_is_refused_where_it_would_do_nothing(policy: PolicyServer) -> None:
    with pytest.raises(NotSupported, match="on CPU, vLLM answers 200 and frees nothing"):
        await policy.sleep()
    assert (await policy.generate_ids(PROMPT, GREEDY)).token_ids


@pytest.mark.soak
@pytest.mark.usefixtures("real_owner")  # a later test's; its server comes up while this one comes back
async def test_a_killed_server_comes_back_with_weights_version_and_adapters(
    policy: PolicyServer, tiny_model: Path, figure: Figure
) -> None:
    served = policy.server.served
    weights = served.version + 1
    await policy.load_weights(tiny_model.parent / "tiny-changed", weights)
    await policy.load_adapter(tiny_model.parent / "lora-1", 2_001)
    before = await policy.generate_ids(PROMPT, GREEDY)
    os.kill((await policy.health()).pid, signal.SIGKILL)
    began = time.monotonic()
    await asyncio.sleep(1.0)
    after = await policy.generate_ids(PROMPT, GREEDY)
    figure(f"killed and back with weights {served.version} and {after.model} after {time.monotonic() - began:.0f} s")
    assert (after.version, after.model) == (before.version, before.model)
    assert abs(total(after) - total(before)) < 1e-6
    assert served.version == weights


async def test_a_failed_load_that_ends_the_engine_brings_the_old_weights_back(
    policy: PolicyServer, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM ends when it cannot load weights, so a folder is checked before; here the check is left out."""
    version, before = policy.server.served.version, await policy.generate_ids(PROMPT, GREEDY)
    monkeypatch.setattr("concertino_vllm.policy.policy_server.check_weights", lambda *_: None)
    with pytest.raises(SwapError, match=f"version {version} answers again") as failure:
        await policy.load_weights(tmp_path / "nowhere", version + 1)
    assert failure.value.version == version
    after = await policy.generate_ids(PROMPT, GREEDY)
    assert abs(total(after) - total(before)) < 1e-6


# -- exposure and leftovers ----------------------------------------------------------------------------------


async def test_every_port_of_the_server_is_on_the_loopback_interface(policy: PolicyServer, figure: Figure) -> None:
    pid = (await policy.health()).pid
    group = [pid, *_below(pid)]
    addresses = _listening(group)
    figure(f"listening sockets of the dev-mode server: {len(addresses)}, all on the loopback interface")
    assert addresses
    assert all(address == loopback for address, loopback in addresses)


def _listening(pids: list[int]) -> list[tuple[str, str]]:
    """Addresses that processes listen on, each with the loopback address of its kind, as the kernel writes them."""
    inodes = {str(link.readlink()) for pid in pids for link in Path(f"/proc/{pid}/fd").iterdir()}
    addresses = []
    for table, loopback in (("tcp", "0100007F"), ("tcp6", "00000000000000000000000001000000")):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                addresses.append((fields[1].partition(":")[0], loopback))
    return addresses


def _below(pid: int) -> list[int]:
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return children + [deeper for child in children for deeper in _below(child)]


@pytest.mark.soak
def test_nothing_of_the_real_server_is_left_when_its_owner_is_killed(
    real_owner: tuple[Any, Any], figure: Figure
) -> None:
    owner, system = real_owner
    assert system.alive(owner.pid)
    memory = system.look()
    processes = len(system.servers())
    owner.process.kill()
    owner.process.wait(15)
    took = system.settle()
    figure(f"owner killed: {processes} processes and {len(memory)} shared memory objects gone after {took:.1f} s")
    assert len(memory) >= 2
    assert system.left() == set()
