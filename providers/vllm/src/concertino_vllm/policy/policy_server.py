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
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from concertino import ModelSpec, ProviderError, Sampling, UsageError

from concertino_vllm.declaration import server as server_behind
from concertino_vllm.errors import NotSupported, SwapError
from concertino_vllm.gpu_choice import usable
from concertino_vllm.loop_end import at_loop_end
from concertino_vllm.serving.client import VllmClient
from concertino_vllm.serving.metrics import ServerMetrics
from concertino_vllm.serving.server import ServerLease, VllmServer
from concertino_vllm.serving.state import ServerAddress, ServerHealth, StartProgress
from concertino_vllm.settings import TRANSFER_FLAG

from .cuda_ipc import IpcTransfer
from .first_answer import check_first_answer, empty_cache, probe
from .generation import PolicyGeneration, completion_body, read_completion
from .nccl_group import NcclTransfer
from .transfer import FolderTransfer, WeightTransfer, offered_by
from .weight_change import NO_CONTROL, WeightChange
from .weights import absolute, check_adapter, check_weights, folder_of, is_tied, outgoing, write_state

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
        self._sender: IpcTransfer | NcclTransfer | None = None
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

    async def check_version(self) -> None:
        """See that a server that somebody else runs still has the weights that it was given.

        One that was restarted has those of its start, and says so. Its answers since the last such look are then of
        unknown weights, and nothing answers until a change of weights succeeds. A server that was started here gets its
        weights back with every start, so it is not asked.

        Raises:
            SwapError: it has others.
            ProviderError: it does not answer.
        """
        served, attached = self.server.served, self.server.settings.attach
        if not attached or not served.version:
            return
        stated = await (await self._control()).get("/weight_info")
        number = stated.get("weight_version") if isinstance(stated, Mapping) else None
        # What this process gave is known exactly; what another one of the training gives goes up.
        given = served.weights is not None or served.sent
        if number == str(served.version):
            return
        if not given and str(number).isdecimal() and int(str(number)) > served.version:
            served.version = int(str(number))
            return
        served.broken = (
            f"nothing answers: {attached} was given weights of version {served.version}, and says that it has "
            f"{str(number)[:100]!r}; it was restarted, or somebody else changes its weights; load_weights() again, "
            "or resume the training, which does"
        )
        self.server.attach_again()
        raise SwapError(served.broken, None)

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

        Requests under way are answered first; those that come meanwhile wait. If a folder cannot be loaded, the version
        before answers again; if tensors did not arrive over ipc or nccl, nothing answers until a later change succeeds.
        Cancelling the caller does not stop the change in the middle. A server that sleeps is woken: first its weights,
        and its cache when they are there.

        Args:
            source: a folder as `save_pretrained` writes it, or a state dict.
            version: its number, above that of the last one.

        Raises:
            UsageError: the source cannot be what the server loads; nothing has been touched.
            SwapError: it failed; it says which version answers.
        """
        await self._take()
        served = self.server.served
        self._check_version(version, served.version)
        endpoint = await self.server.ready()
        before = served.weights or folder_of(endpoint.root)
        # Before the gate closes: what cannot be loaded should make nobody wait.
        transfer = await self._transfer_of(source, endpoint, before)
        async with self.server.gate.alone():
            # It may have died meanwhile, and be at another port.
            endpoint = await self.server.ready()
            if isinstance(transfer, FolderTransfer):
                await self._refuse_stale_output(await self._at(endpoint), transfer.folder)
            # Before the pause, during which the server answers nothing.
            if not self._asleep:
                await self._probe_first(await self._at(endpoint), endpoint.model)
            asleep, self._asleep = bool(self._asleep), 0
            change = WeightChange(
                self.server, transfer, version, before, self._at, self._reset, self._check, asleep=asleep
            )
            await change.make(endpoint)
        await asyncio.to_thread(self._tidy, served.weights)

    async def _transfer_of(
        self, source: str | Path | Mapping[str, Any], endpoint: ServerAddress, before: Path | None
    ) -> WeightTransfer:
        """How a source gets into the server. What is wrong with it is found here.

        Raises:
            UsageError: it cannot be loaded, or not in the way that the settings ask for.
        """
        extended = self.server.settings.extended
        if not isinstance(source, Mapping):
            folder = absolute(source)
            await asyncio.to_thread(check_weights, folder, before)
            return FolderTransfer(folder, extended=extended)
        try:
            offered, dtype = await offered_by(await self._at(endpoint))
        except ProviderError as error:
            raise NotSupported(NO_CONTROL.format(error, "VLLM_SERVER_DEV_MODE")) from error
        state = outgoing(source, before, dtype)
        assert before is not None
        if (way := self._way(offered)) == "folder":
            folder = await asyncio.to_thread(self.server.new_state)
            await asyncio.to_thread(write_state, state, before, folder)
            return FolderTransfer(folder, extended=extended)
        # Kept from change to change: a group of NCCL is made once for every start of a server.
        if self._sender is None:
            self._sender = IpcTransfer(extended=extended) if way == "ipc" else NcclTransfer()
        self._sender.state = state
        return self._sender

    def _way(self, offered: str) -> str:
        wanted = self.server.settings.weights
        if wanted == "auto":
            return offered if offered and usable(offered) else "folder"
        if wanted not in ("folder", offered):
            raise UsageError(
                f"weights = {wanted!r}, and the server takes {offered or 'folders'} only; start it with "
                f"{TRANSFER_FLAG} '{{\"backend\": \"{wanted}\"}}', or set weights = 'auto'"
            )
        if not usable(wanted):
            raise UsageError(
                f"weights = {wanted!r} needs a GPU that torch sees in this process"
                f"{', and vLLM beside it' if wanted == 'nccl' else ''}; set weights = 'folder'"
            )
        return wanted

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

    async def _reset(self, wire: VllmClient) -> None:
        await empty_cache(wire)

    # -- checking ----------------------------------------------------------------------------------------------

    async def _probe_first(self, wire: VllmClient, model: str) -> None:
        """Have the probe in the cache, so that a cache which outlives the change shows."""
        if wire.base in self._probed or (self.server.settings.attach and await self._left_paused(wire)):
            return
        self._probed.add(wire.base)
        await probe(wire, model, self.server.settings.transfer_seconds)

    async def _left_paused(self, wire: VllmClient) -> bool:
        """Whether a training that was killed has left the server paused, in which it would let a request wait."""
        try:
            said = await wire.get("/is_paused")
        except ProviderError as error:
            if error.status is None:
                raise
            return False  # it has no such endpoint; the pause says so
        return isinstance(said, Mapping) and bool(said.get("is_paused"))

    async def _check(self, wire: VllmClient, model: str) -> None:
        await check_first_answer(wire, model, self.server.settings.transfer_seconds)

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
                answer = await probe(wire, name)
                if answer.model != name or not all(math.isfinite(value) for value in answer.logprobs):
                    raise ProviderError(f"{name} answers as {answer.model} with log-probabilities {answer.logprobs}")
            except ProviderError as error:
                if error.status == 404 and '"detail"' in str(error):  # the path itself is unknown
                    raise NotSupported(NO_CONTROL.format(error, "VLLM_ALLOW_RUNTIME_LORA_UPDATING")) from error
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

    def _tidy(self, current: Path | None) -> None:
        """Of the states that were written for the server, only the one in use is kept."""
        states = self.server.served.states
        for folder in states.iterdir() if states is not None else ():
            if folder != current:
                shutil.rmtree(folder, ignore_errors=True)


async def _close_all(wires: list[VllmClient]) -> None:
    while wires:
        await wires.pop().close()
