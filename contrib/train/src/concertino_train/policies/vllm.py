"""`VLLMPolicy`: a vLLM server that follows the weights of a training.

Token ids go in, token ids and log-probabilities come out, many requests at a time. `update` changes the server's
weights in one step: it pauses, loads, empties the prefix cache and resumes (`concertino_vllm.PolicyServer`), and then
asks one fixed prompt and compares the numbers with those of the model in this process. The invariants: after a
successful `update` every sample comes from the new weights; after a failed one, or when the server was restarted by
others, nothing is sampled until another has succeeded; and a log-probability is that of the temperature of sampling, or
the server is refused.

`version` counts the updates of the training, as with every policy. The server has a number of its own, which continues
when a training is resumed or another one begins.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
import zlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from concertino import FailureClass, ModelSpec, ProviderError, Sampling, UsageError
from concertino.core.logs import logger_of
from concertino_local.codec import Codec

from concertino_train.loop_thread import LoopThread

from .policy import Policy, Prompt, Sample

if TYPE_CHECKING:
    import torch
    from concertino_vllm import PolicyGeneration as Generation
    from concertino_vllm import PolicyServer

    Reference = torch.nn.Module | Callable[[], torch.nn.Module]

PROBE, PROBED = 320, 16
"""Tokens of the prompt that is compared after each change, more than two blocks of the cache, and of its answer."""
# vLLM samples greedily below this, and then scores as at temperature 1.
GREEDY = 1e-5
_FLAG = "--logprobs-mode"
# A second request of these classes would fail as the first did.
_FINAL = frozenset((FailureClass.CALLER, FailureClass.AUTH, FailureClass.BUG))
_log = logger_of("train.vllm")
T = TypeVar("T")


class VLLMPolicy(Policy):
    """A model that is served by vLLM, as the policy of a training.

        policy = VLLMPolicy("http://127.0.0.1:8000", codec, reference=model)
        policy.update("checkpoints/1")

    Args:
        server: the address of a server that was started for training (`VLLM_SERVER_DEV_MODE=1`); or a model declared
            with `concertino_vllm.model(..., training=True)`, whose server is started at the first use and stopped by
            `close`. A temperature other than 1 needs `args=["--logprobs-mode", "processed_logprobs"]`.
        codec: between messages and its token ids.
        temperature: with which it samples; 0 takes the most probable token.
        top_p: share of probability that is sampled from.
        reference: the model in this process, or a function that gives it; what the server says is compared with it
            after each `update`.
        tolerance: how far log-probabilities of both may be apart on average. Equal weights in bfloat16 differ by some
            hundredths, in float32 by less than a thousandth.
        adapter: plain name of the LoRA adapter that `update` loads from a folder of PEFT; one name for each role that
            shares a server.
        concurrent: requests under way at once.
        attempts: how often a request is made that fails for reasons that pass.
        patience: seconds that a request is repeated while the server says that it is too busy; that is not counted as a
            failure.
        context: tokens that a prompt and its continuation may have together, if less than the server says.
        trust_network: allow a server that others can reach, and change.
        sleep: have the server give its memory back between sampling and the next `update`, for a server on the GPU of
            the training; it needs `args=["--enable-sleep-mode"]`.

    Raises:
        UsageError: concertino-vllm is not installed, or the server was not declared for training.
    """

    def __init__(
        self,
        server: str | ModelSpec,
        codec: Codec,
        *,
        temperature: float = 1.0,
        top_p: float = 1.0,
        reference: Reference | None = None,
        tolerance: float = 0.05,
        adapter: str = "policy",
        concurrent: int = 256,
        attempts: int = 6,
        patience: float = 600.0,
        context: int | None = None,
        trust_network: bool = False,
        sleep: bool = False,
    ) -> None:
        if temperature < 0 or not 0 < top_p <= 1 or concurrent < 1 or attempts < 1:
            raise UsageError(
                f"VLLMPolicy(temperature={temperature}, top_p={top_p}, concurrent={concurrent}, attempts={attempts}): "
                "expected 0 or more, a share above 0 and up to 1, and 1 or more of both others"
            )
        self.codec = codec
        self.temperature, self.top_p = temperature, top_p
        self.concurrent, self.attempts, self.patience = concurrent, attempts, patience
        self.tolerance = tolerance
        self._reference = reference
        self._context = context
        self._server = _policy_server(server, adapter, trust_network)
        self._sleep, self._tuned = sleep, False
        self._compared: set[tuple[float, float]] = set()
        self._warned = self._asked = False
        self._broken = ""
        self._loop: LoopThread | None = None

    apart = True

    def generate(self, prompts: Sequence[Prompt]) -> list[Sample]:
        """See `Policy.generate`. A prompt that leaves no room in the context gets an empty sample of `length`.

        Raises:
            UsageError: the server's log-probabilities are not those of sampling, or it ends turns where the codec does
                not.
            ProviderError: it could not be started, or a request failed permanently.
            SwapError: the last `update` failed, or the server is another one now: nobody knows which weights answer.
        """
        for prompt in prompts:
            if not prompt.ids or prompt.most < 1:
                raise UsageError(f"Prompt({len(prompt.ids)} ids, most={prompt.most}): expected one of each or more")
        self._refuse_unknown()
        self._run(self._start())
        self._check_numbers()
        return self._run(self._sampled(prompts))

    def update(self, source: str | Path | Mapping[str, Any]) -> float | None:
        """Have the server answer with other weights; `version` goes up by 1.

        Args:
            source: a folder as `save_pretrained` writes it, an adapter's as PEFT writes it, or a state dict.

        Returns:
            How far the server's log-probabilities are from the reference's on average; None without a reference.

        Raises:
            UsageError: the folder cannot be what the server loads; nothing has been touched.
            SwapError: the server could not load it, or its numbers are not those of the reference. Nothing is sampled
                until an `update` succeeds.
        """
        folder = None if isinstance(source, Mapping) else Path(source).expanduser()
        tuned = folder is not None and (folder / "adapter_config.json").is_file()
        if self._sleep:
            _free_memory()  # before the server takes its own back
        try:
            self._run(self._change(source if folder is None else folder, tuned))
        except UsageError:
            raise
        except BaseException as error:
            self._broken = (
                f"the last update failed, so nothing is sampled: {error}; mend what it says, and update() again"
            )
            raise
        self._compared.clear()
        self._broken = ""
        return self._compare()

    def rest(self) -> None:
        """See `Policy.rest`. Without an adapter the server discards its weights, which the next `update` sends."""
        if self._sleep:
            self._run(self._server.sleep(1 if self._tuned else 2))

    def close(self) -> None:
        """Close connections; a server that was started here is stopped."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.run(self._server.close())
            loop.close()

    # -- sampling --------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        await self._server.start()
        if not self._asked:
            bounds = [bound for bound in (self._context, await _context_of(self._server)) if bound is not None]
            self._context, self._asked = min(bounds, default=None), True

    async def _sampled(self, prompts: Sequence[Prompt]) -> list[Sample]:
        samples = await self._sample_all(prompts)
        # Behind the samples: a server that was restarted meanwhile has answered the requests that were made again.
        await self._server.check_version()
        return samples

    async def _sample_all(self, prompts: Sequence[Prompt]) -> list[Sample]:
        gate = asyncio.Semaphore(self.concurrent)
        tasks = [asyncio.create_task(self._sample(prompt, gate)) for prompt in prompts]
        try:
            return await asyncio.gather(*tasks)
        # gather leaves the others running when one fails.
        finally:
            for task in tasks:
                task.cancel()

    async def _sample(self, prompt: Prompt, gate: asyncio.Semaphore) -> Sample:
        room = prompt.most if self._context is None else min(prompt.most, self._context - len(prompt.ids))
        if room < 1:
            return Sample((), (), "length")
        async with gate:
            return self._read(await self._ask(prompt.ids, room, prompt.seed))

    async def _ask(self, ids: Sequence[int], most: int, seed: int) -> Generation:
        """One request, made again where its failure may pass: sampling changes nothing."""
        # The prompt counts, so that turns of one rollout with one seed do not draw alike.
        # 2^32 divided by the golden ratio: seeds that follow each other end far apart.
        drawn = (seed * 0x9E3779B1 + zlib.crc32(repr(tuple(ids)).encode())) % 2**63
        sampling = Sampling(temperature=self.temperature, top_p=self.top_p, max_tokens=most, seed=drawn)
        began, failed = time.monotonic(), 0
        for number in itertools.count():
            try:
                return await self._server.generate_ids(ids, sampling)
            except ProviderError as error:
                busy = error.failure is FailureClass.THROTTLED and time.monotonic() - began < self.patience
                # Waiting for a busy server is no failure, up to `patience`.
                failed += not busy
                if error.failure in _FINAL or failed >= self.attempts:
                    raise
            # Random, so that requests that failed together do not come back together; 3.2 s at most.
            await asyncio.sleep(random.uniform(0.0, 0.1 * 2 ** min(number, 5)))
        raise AssertionError("unreachable")

    def _read(self, generation: Generation) -> Sample:
        ids, logprobs = generation.token_ids, generation.logprobs
        end = next((place for place, token in enumerate(ids) if token in self.codec.end_ids), None)
        if end is None:
            if generation.finish_reason == "stop":
                last = self.codec.decode(ids[-1:])
                raise UsageError(
                    f"the server ended a turn behind {last!r}, which ends none for the codec "
                    f"({self.codec.decode(self.codec.end_ids)!r} does); serve the model with the codec's tokenizer "
                    "and with its end as eos_token_id in generation_config.json"
                )
            return Sample(ids, logprobs, "length")
        if end + 1 < len(ids) and not self._warned:
            self._warned = True
            _log.warning(
                "the server continues after token %d (%r), which ends a turn; what follows is discarded: put it as "
                "eos_token_id into the generation_config.json of the model",
                ids[end],
                self.codec.decode(ids[end : end + 1]),
            )
        return Sample(ids[: end + 1], logprobs[: end + 1], "stop")

    # -- weights ---------------------------------------------------------------------------------------------------

    async def _change(self, source: Any, tuned: bool) -> None:
        await self._start()
        self._tuned = tuned
        if tuned:
            await self._server.wake()  # nothing of its own weights is sent
        else:
            await self._server.unload_adapter()  # else it would stay active on top of the new weights
        load = self._server.load_adapter if tuned else self._server.load_weights
        await load(source, self._server.version + 1)
        self.version += 1

    def _compare(self) -> float | None:
        """Ask a fixed prompt, and compare with the model in this process."""
        if self._reference is None:
            return None
        import torch

        from .transformers import score

        model = self._reference if isinstance(self._reference, torch.nn.Module) else self._reference()
        longest = PROBE if self._context is None else min(PROBE, self._context - PROBED)
        ids = tuple((7 + 31 * place + place * place) % self.codec.size for place in range(longest))
        answer = self._run(self._ask(ids, PROBED, 0))
        known = score(model, ids, answer.token_ids, self.temperature)
        apart = sum(abs(one - other) for one, other in zip(answer.logprobs, known, strict=True)) / len(known)
        # This way round NaN is refused, too.
        if not apart <= self.tolerance:
            self._broken = (
                f"the server says other log-probabilities than the model in this process, {apart:.3g} apart on average "
                f"(tolerance {self.tolerance:g}) at temperature {self.temperature:g} and top_p {self.top_p:g}: it has "
                "other weights or another dtype, or it was not started with --logprobs-mode processed_logprobs; "
                "update() it with the right folder, or raise the tolerance if its dtype is the reason"
            )
            self._refuse_unknown()
        self._compared.add((self.temperature, self.top_p))
        return apart

    def _refuse_unknown(self) -> None:
        if self._broken:
            from concertino_vllm import SwapError

            raise SwapError(self._broken, None)

    def _check_numbers(self) -> None:
        """Refuse log-probabilities that are not those of sampling."""
        # Raw log-probabilities are those of sampling only at temperature 1, and for greedy sampling.
        unscaled = self.temperature == 1.0 or self.temperature <= GREEDY
        if unscaled and self.top_p == 1.0:
            return
        settings = self._server.server.settings
        if settings.attach:
            # What the arguments of an attached server were is not known, so only a comparison can tell.
            if (self.temperature, self.top_p) in self._compared:
                return
            if self._reference is None:
                raise UsageError(
                    f"temperature {self.temperature:g} and top_p {self.top_p:g}: nobody can tell which "
                    f"log-probabilities {settings.attach} gives; give the model as reference=, which is compared with "
                    "it, or sample at temperature 1 and top_p 1"
                )
            self._compare()
        elif _logprobs_mode(settings.args).startswith("processed"):
            if self.top_p < 1.0:
                raise UsageError(
                    f"top_p {self.top_p:g}: a server with {_FLAG} processed_logprobs gives log-probabilities among the "
                    "tokens that are left; training needs them among all: use top_p 1, or temperature 1 without it"
                )
        elif not unscaled:
            raise UsageError(
                f"temperature {self.temperature:g}: the server gives log-probabilities at temperature 1; declare it "
                f'with args=["{_FLAG}", "processed_logprobs"], or sample at temperature 1'
            )

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            self._loop = LoopThread("concertino-vllm-policy")
        return self._loop.run(work)


def _free_memory() -> None:
    """Give memory that torch keeps for later back to the GPU."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _policy_server(server: str | ModelSpec, adapter: str, trust_network: bool) -> PolicyServer:
    try:
        import concertino_vllm
    except ImportError as error:
        raise UsageError("VLLMPolicy needs the provider of vLLM servers: pip install concertino-vllm") from error
    spec = concertino_vllm.model("policy", attach=server) if isinstance(server, str) else server
    return concertino_vllm.PolicyServer(spec, adapter=adapter, trust_network=trust_network)


async def _context_of(server: PolicyServer) -> int | None:
    """Tokens that the server's model can read, None if it does not tell."""
    import aiohttp

    key = server.server.settings.key()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = (await server.health()).url
    async with aiohttp.ClientSession(headers=headers) as session, session.get(f"{url}/v1/models") as response:
        cards = (await response.json(content_type=None)).get("data", ())
    return next((int(card["max_model_len"]) for card in cards if card.get("max_model_len")), None)


def _logprobs_mode(args: Sequence[str]) -> str:
    """Which log-probabilities a server with these arguments gives."""
    for place, part in enumerate(args):
        flag, _, value = part.partition("=")
        # vLLM takes both spellings of a flag.
        if flag.replace("_", "-") == _FLAG:
            return value or (args[place + 1] if place + 1 < len(args) else "")
    return "raw_logprobs"
