"""Changes of weights and adapters on a stand-in that can be made to fail at every step."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import concertino_vllm
import pytest
from concertino import ModelSpec, Sampling, UsageError
from concertino_vllm import NotSupported, PolicyServer, SwapError, VllmServerError

from .conftest import until

PROMPT = tuple(range(3, 99))
Make = Callable[..., Path]
Policy = Callable[..., PolicyServer]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A folder that looks like a model's, or an adapter's if it has a rank."""

    def make(name: str, rank: int = 0, **config: Any) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
        written = {"r": rank} if rank else {"hidden_size": 2, **config}
        (folder / ("adapter_config.json" if rank else "config.json")).write_text(json.dumps(written))
        return folder

    return make


@pytest.fixture
def policy(declare: Callable[..., ModelSpec], make: Make) -> Policy:
    """A policy server on a stand-in that serves the folder `start`."""

    def policy(wish: dict[str, Any] | None = None, **options: Any) -> PolicyServer:
        return PolicyServer(declare(wish, model=make("start"), training=True, lora_rank=8, **options))

    return policy


async def calls(policy: PolicyServer, path: str = "/calls") -> Any:
    url = (await policy.server.ready()).url
    async with aiohttp.ClientSession() as session, session.get(url + path) as response:
        return json.loads(await response.text())


async def was_called(policy: PolicyServer, part: str) -> bool:
    return any(part in call for call in await calls(policy))


async def is_idle(policy: PolicyServer) -> bool:
    """Whether the server is known to have ended."""
    return (await policy.health()).state == "idle"


async def value(policy: PolicyServer) -> tuple[float, int]:
    """What the weights in use say about a prompt, and their version."""
    generation = await policy.generate_ids(PROMPT)
    return generation.logprobs[0], generation.version


# -- sampling ------------------------------------------------------------------------------------------------


async def test_nothing_of_the_models_own_generation_settings_is_used(policy: Policy) -> None:
    async with policy() as server:
        generation = await server.generate_ids(PROMPT, Sampling(max_tokens=5, stop=("x",)), salt="s")
        body = await calls(server, "/last")
    assert (generation.prompt_ids, generation.token_ids) == (PROMPT, (7, 8))
    assert body["prompt"] == list(PROMPT)
    neutral = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
    asked = {"max_tokens": 5, "stop": ["x"], "cache_salt": "s", "return_token_ids": True, "logprobs": 0}
    assert {**neutral, **asked}.items() <= body.items()


async def test_a_pool_member_and_the_policy_share_the_server_and_the_version(policy: Policy, make: Make) -> None:
    from concertino import ChatRequest, Message

    async with policy() as server:
        member = concertino_vllm.model("member", of=server.spec).factory()
        await server.load_weights(make("next"), 3)
        reply = await member.chat(ChatRequest([Message("user", "Hello.")]))
        assert reply.extra["vllm"]["version"] == 3
        await member.close()


async def test_a_policy_needs_a_server_declared_for_training(declare: Callable[..., ModelSpec]) -> None:
    with pytest.raises(UsageError, match="a policy server needs training = true"):
        PolicyServer(declare())


def test_a_server_that_others_can_reach_is_no_policy_server_unless_the_network_is_trusted() -> None:
    spec = concertino_vllm.model("far", attach="http://10.0.0.7:8000")
    with pytest.raises(UsageError, match="control endpoints ask for no key"):
        PolicyServer(spec)
    assert PolicyServer(spec, trust_network=True).version == 0


# -- weights -------------------------------------------------------------------------------------------------


async def test_a_change_pauses_loads_empties_the_cache_checks_and_goes_on(policy: Policy, make: Make) -> None:
    async with policy() as server:
        before = await value(server)
        await server.load_weights(make("next"), 5)
        after = await value(server)
        done = await calls(server)
    assert (before[1], after[1]) == (0, 5)
    assert before[0] != after[0]
    assert done == [
        "/pause?mode=wait",
        "/collective_rpc concertino_load_weights next",
        "/reset_prefix_cache",
        "/update_weight_version",
        "/resume",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["error", "missed", "nan"])
async def test_a_change_that_fails_leaves_the_version_before(policy: Policy, make: Make, how: str) -> None:
    reasons = {
        "error": "OSError: no room",
        "missed": "brings nothing for these layers: Linear",
        "nan": "are no numbers",
    }
    async with policy() as server:
        await server.load_weights(make("next"), 1)
        before = await value(server)
        with pytest.raises(SwapError, match=rf"{reasons[how]}.*version 1 answers again") as failure:
            await server.load_weights(make(how), 2)
        assert failure.value.version == server.version == 1
        assert await value(server) == before
        assert not await server.paused()
        await server.load_weights(make("better"), 2)
        assert (await value(server))[1] == 2


@pytest.mark.slow
async def test_a_cache_that_is_not_empty_afterwards_is_noticed(policy: Policy, make: Make) -> None:
    async with policy() as server:
        with pytest.raises(SwapError, match="still come from the cache of the old weights"):
            await server.load_weights(make("stays"), 1)
        assert server.version == 0


@pytest.mark.parametrize("versions", [0, 1])
async def test_a_server_that_dies_of_new_weights_comes_back_with_the_old_ones(
    policy: Policy, make: Make, versions: int
) -> None:
    async with policy() as server:
        for version in range(1, versions + 1):
            await server.load_weights(make(f"next{version}"), version)
        before = await value(server)
        with pytest.raises(SwapError, match=rf"(?s)vLLM ended while it answered: .*version {versions} answers again"):
            await server.load_weights(make("dies"), 9)
        assert await value(server) == before


async def test_nothing_answers_when_the_old_weights_were_overwritten_by_bad_ones(policy: Policy, make: Make) -> None:
    async with policy() as server:
        folder = make("error")
        server.server.served.weights = folder  # as if it had been loaded before its files were changed
        with pytest.raises(SwapError, match="its files were overwritten") as failure:
            await server.load_weights(folder, 1)
        assert failure.value.version is None
        with pytest.raises(VllmServerError, match=r"nothing answers: .* load_weights\(\) a good folder"):
            await server.generate_ids(PROMPT)
        await server.load_weights(make("good"), 1)
        assert (await value(server))[1] == 1


async def test_a_version_has_to_grow(policy: Policy, make: Make) -> None:
    async with policy() as server:
        await server.load_weights(make("next"), 4)
        with pytest.raises(UsageError, match="version = 4; expected a whole number above 4"):
            await server.load_weights(make("other"), 4)


async def test_a_folder_that_cannot_be_loaded_is_refused_before_anything_is_touched(policy: Policy, make: Make) -> None:
    async with policy() as server:
        with pytest.raises(UsageError, match=r"hidden_size is 3, and 2 in the served"):
            await server.load_weights(make("wide", hidden_size=3), 1)
        assert await calls(server) == []


async def test_a_change_waits_for_requests_under_way_and_later_ones_wait_for_it(policy: Policy, make: Make) -> None:
    async with policy() as server:
        await server.generate_ids(PROMPT)
        early = asyncio.create_task(server.generate_ids(PROMPT, Sampling(seed=1)))  # the stand-in sleeps so long
        await until(lambda: server.server.gate.busy)
        change = asyncio.create_task(server.load_weights(make("next"), 1))
        await until(lambda: server.server.gate._queue)
        late = asyncio.create_task(server.generate_ids(PROMPT))
        assert await calls(server) == []
        await change
        assert ((await early).version, (await late).version) == (0, 1)


async def test_a_change_cancelled_while_it_waits_is_as_if_it_had_not_begun(policy: Policy, make: Make) -> None:
    async with policy({"pause_seconds": 0.5}) as server:
        change = asyncio.create_task(server.load_weights(make("next"), 1))
        await until(lambda: was_called(server, "/pause"))
        change.cancel()
        with pytest.raises(asyncio.CancelledError):
            await change
        assert (await value(server))[1] == 0
        assert not any("collective_rpc" in call for call in await calls(server))


async def test_a_change_cancelled_while_it_loads_is_brought_to_its_end(policy: Policy, make: Make) -> None:
    async with policy() as server:
        change = asyncio.create_task(server.load_weights(make("slow"), 1))
        await until(lambda: was_called(server, "collective_rpc"))
        change.cancel()
        with pytest.raises(asyncio.CancelledError):
            await change
        assert (await value(server))[1] == server.version == 1


async def test_a_crash_between_two_changes_loses_neither_weights_nor_adapters(policy: Policy, make: Make) -> None:
    async with policy() as server:
        await server.load_weights(make("next"), 6)
        await server.load_adapter(make("lora", rank=4), 7)
        before = await value(server)
        os.kill((await server.health()).pid, signal.SIGKILL)
        await until(lambda: is_idle(server))
        assert await value(server) == before
        assert (await calls(server))[0] == "/collective_rpc concertino_load_weights next"


async def test_an_attached_cpu_server_with_a_tied_model_is_refused_because_it_would_keep_half_of_the_old_weights(
    policy: Policy, make: Make
) -> None:
    async with policy() as own:
        spec = concertino_vllm.model("far", attach=(await own.server.ready()).url)
        async with PolicyServer(spec) as server:
            with pytest.raises(NotSupported, match="keeps the old output layer"):
                await server.load_weights(make("tied", tie_word_embeddings=True), 1)
            await server.load_weights(make("untied"), 1)
            assert "/collective_rpc reload_weights untied" in await calls(own)


async def test_an_attached_server_with_no_way_back_answers_nothing_until_it_has_good_weights(
    policy: Policy, make: Make
) -> None:
    async with policy() as own:
        spec = concertino_vllm.model("far", attach=(await own.server.ready()).url)
        async with PolicyServer(spec) as server:
            await server.load_weights(make("first"), 1)
            server.server.served.weights = make("error")  # as if the files of the first had been spoilt since
            with pytest.raises(SwapError, match="and so did the way back to version 1") as failure:
                await server.load_weights(make("nan"), 2)
            assert failure.value.version is None
            with pytest.raises(VllmServerError, match=r"nothing answers: .* load_weights\(\) a good folder"):
                await server.generate_ids(PROMPT)
            await server.load_weights(make("good"), 2)
            assert (await value(server))[1] == 2


async def test_changes_belong_to_those_who_made_them_the_next_start_is_as_it_was_declared(
    policy: Policy, make: Make
) -> None:
    server = policy()
    async with server:
        before = await value(server)
        await server.load_weights(make("next"), 3)
        assert await value(server) != before
    async with server:
        assert await value(server) == before
        assert await calls(server) == []


async def test_an_idle_stop_and_the_start_after_it_keep_the_changes(policy: Policy, make: Make, system: Any) -> None:
    async with policy(idle_seconds=0.5) as server:
        await server.load_weights(make("next"), 3)
        before = await value(server)
        await until(lambda: not system.servers())
        assert await value(server) == before


async def test_an_attached_server_without_control_endpoints_samples_and_says_what_it_lacks(
    policy: Policy, make: Make
) -> None:
    async with policy({"plain": True}) as own:
        spec = concertino_vllm.model("far", attach=(await own.server.ready()).url)
        async with PolicyServer(spec) as server:
            assert (await server.generate_ids(PROMPT)).version == 0
            with pytest.raises(NotSupported, match="start it with VLLM_SERVER_DEV_MODE=1"):
                await server.load_weights(make("next"), 1)
            with pytest.raises(NotSupported, match="start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1"):
                await server.load_adapter(make("lora", rank=4), 1)
            assert (await server.generate_ids(PROMPT)).version == 0


async def test_an_attached_server_tells_the_version_that_somebody_else_gave_it(policy: Policy, make: Make) -> None:
    async with policy() as own:
        await own.load_weights(make("next"), 12)
        async with PolicyServer(concertino_vllm.model("far", attach=(await own.server.ready()).url)) as server:
            assert (await server.generate_ids(PROMPT)).version == 12
            with pytest.raises(UsageError, match="above 12"):
                await server.load_weights(make("other"), 12)


async def test_an_adapter_that_the_server_started_with_answers_as_version_0(policy: Policy, make: Make) -> None:
    async with policy(adapters={"policy": make("first", rank=4)}) as server:
        assert (await server.generate_ids(PROMPT)).model == "policy"
        await server.load_adapter(make("second", rank=4), 1)
        assert (await server.generate_ids(PROMPT)).model == "policy@v1"


# -- adapters ------------------------------------------------------------------------------------------------


async def test_an_adapter_gets_a_fresh_name_and_all_but_two_versions_are_unloaded(policy: Policy, make: Make) -> None:
    async with policy() as server:
        names = [await server.load_adapter(make(f"lora{version}", rank=4), version) for version in (1, 2, 5)]
        assert names == ["policy@v1", "policy@v2", "policy@v5"]
        assert server.version == (await server.generate_ids(PROMPT)).version == 5
        assert "/v1/unload_lora_adapter policy@v1" in await calls(server)
        assert sorted(server.server.served.adapters) == ["policy@v2", "policy@v5"]


async def test_an_adapter_in_use_is_unloaded_only_when_its_requests_have_ended(policy: Policy, make: Make) -> None:
    async with policy() as server:
        await server.load_adapter(make("lora1", rank=4), 1)
        slow = asyncio.create_task(server.generate_ids(PROMPT, Sampling(seed=1)))
        await until(lambda: server.server.using["policy@v1"])
        for version in (2, 3):
            await server.load_adapter(make(f"lora{version}", rank=4), version)
        assert "policy@v1" in server.server.served.adapters
        assert (await slow).version == 1
        await server.load_adapter(make("lora4", rank=4), 4)
        assert sorted(server.server.served.adapters) == ["policy@v3", "policy@v4"]


async def test_an_adapter_that_the_server_refuses_leaves_the_one_before(policy: Policy, make: Make) -> None:
    async with policy() as server:
        await server.load_adapter(make("lora", rank=4), 1)
        with pytest.raises(SwapError, match="the adapter does not fit; version 1 answers as before"):
            await server.load_adapter(make("error", rank=4), 2)
        assert (await server.generate_ids(PROMPT)).model == "policy@v1"


async def test_an_adapter_of_too_large_a_rank_is_refused_before_the_server_sees_it(policy: Policy, make: Make) -> None:
    async with policy() as server:
        with pytest.raises(UsageError, match="rank 64 is above the 8 that the server was started for"):
            await server.load_adapter(make("large", rank=64), 1)
        assert await calls(server) == []


async def test_the_first_adapter_on_an_attached_server_empties_its_cache(policy: Policy, make: Make) -> None:
    async with policy() as own:
        spec = concertino_vllm.model("far", attach=(await own.server.ready()).url)
        async with PolicyServer(spec) as server:
            await server.load_adapter(make("lora1", rank=4), 1)
            await server.load_adapter(make("lora2", rank=4), 2)
        assert [call for call in await calls(own) if "reset" in call] == ["/reset_prefix_cache"]


async def test_without_the_adapter_the_model_itself_answers_again(policy: Policy, make: Make) -> None:
    async with policy() as server:
        base = await value(server)
        await server.load_adapter(make("lora", rank=4), 1)
        assert await value(server) != base
        await server.unload_adapter()
        assert await value(server) == base


# -- memory --------------------------------------------------------------------------------------------------


async def test_sleep_is_refused_on_cpu(policy: Policy) -> None:
    async with policy() as server:
        with pytest.raises(NotSupported, match="not supported on this platform"):
            await server.sleep()
        assert "/sleep" not in str(await calls(server))


async def test_a_sleeping_server_answers_nothing_until_it_is_awake(policy: Policy) -> None:
    async with policy({"device": "cuda"}) as server:
        await server.sleep()
        with pytest.raises(VllmServerError, match=r"the server sleeps; wake\(\) it first"):
            await server.generate_ids(PROMPT)
        await server.wake()
        assert (await server.generate_ids(PROMPT)).token_ids


async def test_weights_that_were_half_loaded_do_not_answer_after_a_sleep_either(policy: Policy) -> None:
    async with policy({"device": "cuda"}) as server:
        server.server.served.broken = "half of the weights are loaded"
        await server.sleep()
        await server.wake()
        with pytest.raises(VllmServerError, match="half of the weights"):
            await server.generate_ids(PROMPT)


async def test_after_a_deep_sleep_weights_have_to_be_loaded(policy: Policy, make: Make) -> None:
    async with policy({"device": "cuda"}) as server:
        await server.sleep(2)
        await server.wake()
        with pytest.raises(VllmServerError, match="has discarded the weights"):
            await server.generate_ids(PROMPT)
        await server.load_weights(make("again"), 1)
        assert (await server.generate_ids(PROMPT)).version == 1


async def test_a_change_wakes_a_sleeping_server_weights_first_and_the_cache_when_they_are_there(
    policy: Policy, make: Make
) -> None:
    async with policy({"device": "cuda"}) as server:
        await server.generate_ids(PROMPT)
        await server.sleep(2)
        await server.load_weights(make("next"), 1)
        assert await calls(server) == [
            "/sleep?level=2&mode=wait",
            "/wake_up?tags=weights",
            "/collective_rpc concertino_load_weights next",
            "/wake_up?tags=kv_cache",
            "/reset_prefix_cache",
            "/update_weight_version",
            "/resume",
        ]
        assert (await server.generate_ids(PROMPT)).version == 1


@pytest.mark.slow
async def test_a_change_that_fails_while_the_server_wakes_starts_it_anew_with_the_version_before(
    policy: Policy, make: Make
) -> None:
    async with policy({"device": "cuda"}) as server:
        before = await value(server)
        await server.sleep(2)
        with pytest.raises(SwapError, match=r"no room; version 0 answers again"):
            await server.load_weights(make("error"), 1)
        assert await value(server) == before
