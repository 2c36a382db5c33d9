"""The policy of a training on a vLLM server: token ids in, token ids and log-probabilities out, weights that change.

A change of weights is one step for everyone who looks: requests that came before it are answered by the old version,
those that come during it wait and are answered by the new one, and a failed change leaves the old version. vLLM itself
keeps the prefix cache of the old weights across a reload without a warning; here it is emptied and checked each time.
An adapter is loaded under a name that was never used, so nothing of the cache can be of another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import shutil
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from concertino import ModelSpec, ProviderError, Sampling, UsageError

from concertino_vllm.declaration import server as server_behind
from concertino_vllm.errors import NotSupported, SwapError, VllmServerError
from concertino_vllm.loop_end import at_loop_end
from concertino_vllm.serving.client import VllmClient, load_folder
from concertino_vllm.serving.metrics import ServerMetrics
from concertino_vllm.serving.server import ServerLease, VllmServer
from concertino_vllm.serving.state import ServerAddress, ServerHealth, StartProgress

from .generation import PolicyGeneration, completion_body, read_completion
from .weights import absolute, check_adapter, check_weights, folder_of, is_same, is_tied, write_state

PROBE_TOKENS = 320
"""Ids of the prompt that is asked after each change: more than two blocks of the cache on any device."""
_NO_CONTROL = "{}: the server has no such endpoint; start it with {}=1, on a loopback address"
KEPT = 2
"""Versions of an adapter that stay loaded."""


class PolicyServer:
    """A model that is being trained, on the server of a declared model.

        spec = concertino_vllm.model("policy", model="checkpoints/0", training=True)
        async with PolicyServer(spec) as policy:
            sampled = await policy.generate_ids(prompt_ids, Sampling(max_tokens=256))
            await policy.load_weights("checkpoints/1", version=1)

    Args:
        spec: what `concertino_vllm.model` or a pool file declared, with `training = true` or `attach`. Members of the
            pool with the same server answer with the same weights.
        adapter: the plain name of the LoRA adapter that `load_adapter` changes.
        trust_network: allow a server that others can reach; whoever does can change its weights without a key.

    Raises:
        UsageError: the server was not declared for training, or is open to the network.
    """

    def __init__(self, spec: ModelSpec, *, adapter: str = "policy", trust_network: bool = False) -> None:
        self.spec = spec
        self.server: VllmServer = server_behind(spec)
        self.adapter = adapter
        settings = self.server.settings
        if not settings.training and not settings.attach:
            raise UsageError(
                f"model {spec.name!r}: a policy server needs training = true, which opens what changes weights"
            )
        if not settings.local and not trust_network:
            raise UsageError(
                f"model {spec.name!r}: {settings.attach} can be reached by others, and its control endpoints ask for "
                "no key; use a tunnel to a loopback address, or trust_network=True if the network is yours alone"
            )
        self._lease: ServerLease | None = None
        self._wires: list[VllmClient] = []  # at most one, with the server as it is now
        self._probed: set[str] = set()
        self._asleep = 0
        self._broken_before_sleep = ""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self, on_progress: Callable[[StartProgress], None] | None = None) -> None:
        """Start the server, if it does not run.

        Raises:
            VllmServerError: it could not be started.
        """
        await self._take()
        endpoint = await self.server.start(on_progress)
        # Somebody else's server may have been given weights before, and its versions go on from there.
        if self.server.settings.attach and not self.server.served.version:
            with contextlib.suppress(ProviderError, ValueError):  # it may be no server for training
                stated = await (await self._at(endpoint)).get("/weight_info")
                self.server.served.version = int(stated["weight_version"])

    async def close(self) -> None:
        """Close the connections; the server is stopped unless somebody else needs it."""
        await _close_all(self._wires)
        lease, self._lease = self._lease, None
        if lease is not None:
            await lease.released()

    @property
    def version(self) -> int:
        """Which version answers: that of the adapter once one was loaded, else that of the weights."""
        served = self.server.served
        name = served.current.get(self.adapter)
        return served.adapters[name][1] if name else served.version

    async def health(self) -> ServerHealth:
        """How the server is."""
        return await self.server.health()

    async def metrics(self) -> ServerMetrics:
        """The server's counters, now."""
        return await self.server.metrics()

    # -- sampling ----------------------------------------------------------------------------------------------

    async def generate_ids(
        self, prompt_ids: Sequence[int], sampling: Sampling | None = None, *, salt: str = ""
    ) -> PolicyGeneration:
        """Sample a continuation.

        Nothing comes from the model's own generation settings: what `sampling` leaves open is temperature 1 over the
        whole vocabulary, as importance ratios assume.

        Args:
            prompt_ids: the prompt.
            sampling: how to sample; without `max_tokens`, up to the end of the context.
            salt: requests of different salts share no prefix cache.

        Raises:
            VllmServerError: the server could not be started, or ended.
            ProviderError: it refused the request, or gave ids that do not fit.
        """
        await self._take()
        async with self.server.asked() as endpoint:
            adapters = {*self.server.served.current, *dict(self.server.settings.adapters)}
            adapter = self.adapter if self.adapter in adapters else ""
            name, version = self.server.name_of(adapter, endpoint)
            with self.server.in_use(name):
                body = completion_body(name, prompt_ids, sampling or Sampling(), salt)
                wire = await self._at(endpoint)
                answer = await wire.post("/v1/completions", body)
        return read_completion(answer, tuple(prompt_ids), version)

    # -- pausing -----------------------------------------------------------------------------------------------

    async def pause(self, mode: Literal["wait", "abort", "keep"] = "wait") -> None:
        """Let the server begin nothing new, after the requests under way were answered (or cut off, or frozen)."""
        await (await self._control()).post(f"/pause?mode={mode}")

    async def resume(self) -> None:
        """End the pause."""
        await (await self._control()).post("/resume")

    async def paused(self) -> bool:
        """Whether it is paused."""
        return bool((await (await self._control()).get("/is_paused"))["is_paused"])

    async def reset_cache(self) -> None:
        """Empty the prefix cache.

        Raises:
            ProviderError: blocks of it are held by requests under way.
        """
        await self._reset(await self._control())

    # -- weights -----------------------------------------------------------------------------------------------

    async def load_weights(self, source: str | Path | Mapping[str, Any], version: int) -> None:
        """Put new weights into the running server, in one step for everyone.

        Requests under way are answered first; those that come meanwhile wait. If it fails, the version before answers
        again. Cancelling the caller does not stop the change in the middle.

        Args:
            source: a folder as `save_pretrained` writes it, or a state dict.
            version: its number, above that of the last one.

        Raises:
            UsageError: the folder cannot be what the server loads; nothing has been touched.
            SwapError: it failed; it says which version answers.
        """
        await self._take()
        served = self.server.served
        self._check_version(version, served.version)
        endpoint = await self.server.ready()
        before = served.weights or folder_of(endpoint.root)
        if isinstance(source, Mapping):
            folder = await asyncio.to_thread(self.server.new_state)
            await asyncio.to_thread(write_state, source, before, folder)
        else:
            folder = absolute(source)
        # Before the gate closes: files that cannot be loaded should make nobody wait.
        await asyncio.to_thread(check_weights, folder, before)
        async with self.server.gate.alone():
            if self._asleep:
                raise UsageError("the server sleeps; wake() it before load_weights()")
            # It may have died meanwhile, and be at another port.
            endpoint = await self.server.ready()
            wire = await self._at(endpoint)
            await self._refuse_stale_output(wire, folder)
            # Before the pause, during which the server answers nothing.
            await self._probe_first(wire, endpoint.model)
            try:
                await wire.post("/pause?mode=wait")
            # The server may have paused all the same, although the caller was cancelled or got no answer.
            except BaseException as error:
                if isinstance(error, ProviderError) and error.status == 404:
                    raise NotSupported(_NO_CONTROL.format(error, "VLLM_SERVER_DEV_MODE")) from error
                await _to_the_end(self._let_go(wire))
                raise
            await _to_the_end(self._swap(wire, endpoint.model, folder, before, version))

    async def _swap(self, wire: VllmClient, model: str, folder: Path, before: Path | None, version: int) -> None:
        """With the server paused: the change, or the way back."""
        served = self.server.served
        # A trainer that saves into the served folder leaves no old weights to go back to.
        overwritten = before is not None and is_same(before, folder)
        try:
            await self._exchange(wire, model, folder, version)
        except (ProviderError, OSError) as error:
            reason = await self.server.explained(error) if isinstance(error, ProviderError) else error
            await self._go_back(before, overwritten, reason)
            raise SwapError(
                f"{folder} is not in use: {reason}; version {served.version} answers again", served.version
            ) from error
        served.version, served.weights, served.broken = version, folder, ""
        self._tidy(folder)

    async def _exchange(self, wire: VllmClient, model: str, folder: Path, version: int) -> None:
        """Load, empty the cache, resume, check; with the server paused, and paused still if loading fails."""
        await load_folder(wire, folder, extended=self.server.settings.extended)
        # vLLM keeps the prefix cache of the old weights across a reload, and says nothing of it.
        await self._reset(wire)
        await wire.post("/update_weight_version", {"new_version": str(version)})
        stated = (await wire.get("/weight_info"))["weight_version"]
        if stated != str(version):
            raise ProviderError(f"the server says that it has version {stated!r}, not {version}")
        # The gate is still closed, so the check below is answered before any request.
        await wire.post("/resume")
        await self._check(wire, model)

    async def _go_back(self, before: Path | None, overwritten: bool, reason: Exception) -> None:
        """After a failed change: the weights that were there before; if need be, by a new start of the server.

        Raises:
            SwapError: there is no way back.
        """
        server, version, died = self.server, self.server.served.version, await self._died()
        # A server that died is started with its old weights, from the hub too; a living one needs a folder to load.
        if overwritten or (before is None and not died):
            why = "its files were overwritten" if overwritten else "it came from the hub, not from a folder"
            server.served.broken = (
                f"nothing answers: the weights in the server may be half old and half new, since loading failed "
                f"({reason}), and version {version} cannot be loaded again because {why}; load_weights() a good folder"
            )
            raise SwapError(server.served.broken, None) from reason
        try:
            if not died:
                assert before is not None
                endpoint = await server.ready()
                wire = await self._at(endpoint)
                await wire.post("/pause?mode=wait")
                await self._exchange(wire, endpoint.model, before, version)
                return
        except ProviderError as failure:
            if server.settings.attach:
                server.served.broken = (
                    f"nothing answers: loading failed ({reason}), and so did the way back to version {version} "
                    f"({failure}); the server may be paused with weights that nobody knows: load_weights() a good "
                    "folder, or restart it"
                )
                raise SwapError(server.served.broken, None) from failure
            await server.stopped()
        try:
            await server.ready()  # a start gives it the weights that it had
        except VllmServerError as failure:
            server.served.broken = f"nothing answers: the server ended while it loaded weights, and {failure}"
            raise SwapError(server.served.broken, None) from failure

    async def _refuse_stale_output(self, wire: VllmClient, folder: Path) -> None:
        """On CPU, vLLM keeps using the old output layer of a tied model; only our extension prepares it again."""
        if not self.server.settings.extended and await asyncio.to_thread(is_tied, folder):
            config = (await wire.get("/server_info?config_format=json", seconds=60))["vllm_config"]
            if config["device_config"]["device"] == "cpu":
                raise NotSupported(
                    "on CPU, a vLLM without concertino's extension keeps the old output layer of a model with "
                    "tie_word_embeddings, and answers with half of the old weights; let concertino start the server "
                    "(training = true, without attach and --worker-extension-cls)"
                )

    async def _let_go(self, wire: VllmClient) -> None:
        with contextlib.suppress(ProviderError):
            await wire.post("/resume", seconds=30)

    async def _died(self) -> bool:
        health = await self.server.health()
        return not self.server.settings.attach and health.state != "ready"

    async def _reset(self, wire: VllmClient) -> None:
        # vLLM frees the blocks of a request shortly after its answer.
        for wait in (0.0, 0.05, 0.2, 0.5):
            await asyncio.sleep(wait)
            if (await wire.post("/reset_prefix_cache", seconds=60))["success"]:
                return
        raise ProviderError("the prefix cache cannot be emptied while requests hold blocks of it; pause() first")

    # -- checking ----------------------------------------------------------------------------------------------

    async def _probe_first(self, wire: VllmClient, model: str) -> None:
        """Have the probe in the cache, so that a cache which outlives the change shows."""
        if wire.base not in self._probed:
            self._probed.add(wire.base)
            await self._probe(wire, model)

    async def _check(self, wire: VllmClient, model: str) -> None:
        """The first answer of new weights: with numbers that are numbers, and nothing out of the old cache."""
        answer = await self._probe(wire, model)
        if not all(math.isfinite(value) for value in answer.logprobs):
            raise ProviderError(f"the new weights answer with log-probabilities that are no numbers: {answer.logprobs}")
        if answer.cached_tokens:
            raise ProviderError(f"{answer.cached_tokens} ids of a prompt still come from the cache of the old weights")

    async def _probe(self, wire: VllmClient, model: str) -> PolicyGeneration:
        listed = (await wire.get("/v1/models"))["data"]
        longest = (
            next((card.get("max_model_len") for card in listed if card.get("max_model_len")), None) or PROBE_TOKENS
        )
        # Ids so low are in every vocabulary.
        ids = tuple(1 + number % 50 for number in range(min(PROBE_TOKENS, longest - 4)))
        return read_completion(
            await wire.post("/v1/completions", completion_body(model, ids, Sampling(temperature=0, max_tokens=2), "")),
            ids,
            0,
        )

    # -- adapters ----------------------------------------------------------------------------------------------

    async def load_adapter(self, folder: str | Path, version: int) -> str:
        """Load a LoRA adapter and let it answer from now on. Requests under way stay with the version they have.

        Args:
            folder: the adapter, in the format of PEFT.
            version: its number, above that of the last one.

        Returns:
            The name that the server knows it by, `policy@v3`.

        Raises:
            UsageError: the server does not take this adapter; nothing has been changed.
            SwapError: it failed; it says which version answers.
        """
        await self._take()
        served, was = self.server.served, self.version
        self._check_version(version, was if self.adapter in served.current else -1)
        path = absolute(folder)
        await asyncio.to_thread(check_adapter, path, self._rank())
        # vLLM keys its prefix cache by this name: a name used before would get the old adapter's blocks.
        name = f"{self.adapter}@v{version}"
        async with self.server.asked() as endpoint:
            wire = await self._at(endpoint)
            try:
                await wire.post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(path)})
                if self.server.settings.attach and self.adapter not in served.current:
                    await self._reset_if_free(wire)  # who knows which adapter had this name before
                answer = await self._probe(wire, name)
                if answer.model != name or not all(math.isfinite(value) for value in answer.logprobs):
                    raise ProviderError(f"{name} answers as {answer.model} with log-probabilities {answer.logprobs}")
            except ProviderError as error:
                if error.status == 404 and '"detail"' in str(error):  # the path itself is unknown
                    raise NotSupported(_NO_CONTROL.format(error, "VLLM_ALLOW_RUNTIME_LORA_UPDATING")) from error
                reason = await self.server.explained(error)
                with contextlib.suppress(ProviderError):
                    await wire.post("/v1/unload_lora_adapter", {"lora_name": name}, seconds=30)
                raise SwapError(f"{path} is not in use: {reason}; version {was} answers as before", was) from error
            served.adapters[name] = (path, version)
            served.current[self.adapter] = name
            await self._unload(wire, KEPT)
        return name

    async def unload_adapter(self) -> None:
        """Unload all versions of the adapter that no request uses; the model itself answers again."""
        await self._take()
        served = self.server.served
        if served.current.pop(self.adapter, None) is not None:
            async with self.server.asked() as endpoint:
                await self._unload(await self._at(endpoint), keep=0)

    async def _reset_if_free(self, wire: VllmClient) -> None:
        await wire.post("/pause?mode=wait")
        try:
            await self._reset(wire)
        finally:
            await wire.post("/resume", seconds=30)

    async def _unload(self, wire: VllmClient, keep: int) -> None:
        """All but the newest, and but those that a request still uses; these go the next time."""
        served = self.server.served
        mine = sorted(
            (n for n in served.adapters if n.startswith(f"{self.adapter}@v")), key=lambda n: served.adapters[n][1]
        )
        for name in mine[: len(mine) - keep]:
            if not self.server.using[name]:
                with contextlib.suppress(ProviderError):
                    await wire.post("/v1/unload_lora_adapter", {"lora_name": name}, seconds=30)
                del served.adapters[name]

    def _rank(self) -> int:
        settings = self.server.settings
        given = any(argument.partition("=")[0] == "--max-lora-rank" for argument in settings.args)
        return 0 if settings.attach or given else settings.max_lora_rank

    # -- memory ------------------------------------------------------------------------------------------------

    async def sleep(self, level: Literal[1, 2] = 1) -> None:
        """Free the device's memory: the weights go to the host (1) or away (2), the cache goes away.

        Until `wake`, and after level 2 until `load_weights`, nothing is answered.

        Raises:
            NotSupported: the server would say yes and free nothing.
        """
        wire = await self._control()
        config = (await wire.get("/server_info?config_format=json", seconds=60))["vllm_config"]
        if config["device_config"]["device"] == "cpu":
            raise NotSupported("sleep is not supported on this platform: on CPU, vLLM answers 200 and frees nothing")
        if not config["model_config"]["enable_sleep_mode"]:
            raise NotSupported("sleep is not enabled: vLLM would free nothing; give --enable-sleep-mode in args")
        async with self.server.gate.alone():
            await wire.post(f"/sleep?level={level}&mode=wait")
            if not self._asleep:
                self._broken_before_sleep = self.server.served.broken
            self._asleep = level
            self.server.served.broken = "the server sleeps; wake() it first"

    async def wake(self) -> None:
        """Take the memory back."""
        if self._asleep:
            await (await self._control()).post("/wake_up")
            discarded, self._asleep = self._asleep == 2, 0
            text = "nothing answers: sleep(2) has discarded the weights; load_weights() first"
            self.server.served.broken = text if discarded else self._broken_before_sleep

    # -- connections -------------------------------------------------------------------------------------------

    async def _take(self) -> None:
        if self._lease is None:
            self._lease = self.server.lease()
            # The list alone: a reference to self would keep a forgotten policy alive.
            await at_loop_end(self, PolicyServer.close, partial(_close_all, self._wires))

    async def _at(self, endpoint: ServerAddress) -> VllmClient:
        if not self._wires or self._wires[0].base != endpoint.url:
            old, self._wires[:] = list(self._wires), [VllmClient(endpoint.url, self.server.settings.key())]
            await _close_all(old)
        return self._wires[0]

    async def _control(self) -> VllmClient:
        await self._take()
        return await self._at(await self.server.ready())

    def _check_version(self, version: int, last: int) -> None:
        if type(version) is not int or version <= last:
            raise UsageError(
                f"version = {version!r}; expected a whole number above {last}, the version that answers now"
            )

    def _tidy(self, current: Path) -> None:
        """Of the states that were written for the server, only the one in use is kept."""
        states = self.server.served.states
        for folder in states.iterdir() if states is not None else ():
            if folder != current:
                shutil.rmtree(folder, ignore_errors=True)


async def _close_all(wires: list[VllmClient]) -> None:
    while wires:
        await wires.pop().close()


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Await something that must not be left half done: a cancellation waits for its end."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            # Retrieved, or asyncio would log it as an exception that nobody took.
            task.exception()
        raise
