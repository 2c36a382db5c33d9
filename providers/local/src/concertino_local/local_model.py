"""`LocalModel`: a causal LM in this process, as a `concertino.Model` and as a policy for training.

A chat request is rendered with the model's chat template, joins the batch, and comes back as a `Reply`. Token ids can
be given and taken directly with `generate_ids`, and weights be replaced while the model serves. All of it happens in
one worker thread per model; the event loop only waits.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from concertino import ChatRequest, Model, Reply, Sampling, Usage, UsageError

from .codec.dialects import PlainReader, make_reader
from .codec.serving import RenderedPrompt, digest
from .codec.vocabulary import Vocabulary, clean
from .engine import Engine
from .errors import caller_error
from .jobs import Channel, Job, LocalStats
from .settings import LocalSettings

if TYPE_CHECKING:
    from .request import RequestRow
    from .session import Session
    from .weights import Weights


@dataclass(frozen=True)
class TokenSample:
    """A continuation of given token ids.

    Attributes:
        prompt_ids: what was given.
        token_ids: what was sampled, the token that ended it included.
        logprobs: their log-probabilities under the model, at temperature 1 and without top_p.
        finish_reason: "stop" or "length".
        weights: version of the weights that sampled them.
    """

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: str
    weights: str


class LocalModel(Model):
    """A local causal LM; it is loaded at the first request."""

    def __init__(self, settings: LocalSettings) -> None:
        self.settings = settings
        self._engine = Engine(settings)
        self._vocabulary: Vocabulary | None = None
        weakref.finalize(self, self._engine.close).atexit = False  # the engine sees to that itself

    @property
    def stats(self) -> LocalStats:
        """What it has done so far."""
        return replace(self._engine.stats)

    # -- as a chat model -------------------------------------------------------------------------------------------

    async def chat(self, request: ChatRequest) -> Reply:
        """Answer a request.

        Raises:
            ProviderError: the prompt is too long, the model cannot be loaded, or memory has run out.
        """
        row = await self._ask(_chat_job(request, streams=False))
        return _reply(row, request)

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Reply]:
        """Yield pieces of the visible text as they are generated, then the reply.

        Raises:
            ProviderError: as for `chat`.
        """
        job = _chat_job(request, streams=True)
        self._engine.submit(job)
        try:
            while isinstance(event := await job.channel.next(), str):
                yield event
            yield _reply(event, request)
        finally:
            # A reader who stops early leaves the batch.
            job.channel.cancelled = True

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, by the model's own tokenizer."""
        vocabulary = self._engine.vocabulary or self._vocabulary
        if vocabulary is None:
            from .loading import find_folder, load_tokenizer, require

            require("transformers")
            folder = find_folder(self.settings.path)
            vocabulary = Vocabulary.of_folder(folder) or Vocabulary(load_tokenizer(folder, self.settings))
            self._vocabulary = vocabulary
        return len(vocabulary.encode(clean(text)))

    async def close(self) -> None:
        """End the thread and free the memory; requests under way fail. May be called twice."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        thread = self._engine.close(lambda: loop.call_soon_threadsafe(ended.set))
        if thread is not None:
            # The thread frees the memory of the model, which a new one may need at once.
            await ended.wait()
            thread.join()

    # -- as a policy -----------------------------------------------------------------------------------------------

    async def generate_ids(self, prompt_ids: Sequence[int], sampling: Sampling | None = None) -> TokenSample:
        """Continue token ids; gather several calls to have them generate side by side.

        Nothing is applied that was not asked for: without a temperature it is 1, without top_p all tokens count, and no
        chat template, generation config or default of the settings has a say, but for `max_tokens`.

        Args:
            prompt_ids: at least one token id.
            sampling: how to sample; stop texts and a seed are honoured.

        Raises:
            ProviderError: the prompt is empty or too long, the model cannot be loaded, or memory has run out.
        """
        asked = sampling or Sampling()
        prompt = [int(token) for token in prompt_ids]

        def prepare(session: Session) -> RequestRow:
            from .request import RequestRow, Transcript
            from .sampling import SamplingRule

            codec = session.loaded.codec
            temperature = 1.0 if asked.temperature is None else asked.temperature
            return RequestRow(
                prompt,
                SamplingRule(temperature, asked.top_p or 1.0),
                _seed(asked),
                limit=_room(session, prompt, asked.max_tokens),
                ends=codec.end_ids,
                channel=channel,
                transcript=Transcript(codec, PlainReader(), asked.stop) if asked.stop else None,
            )

        channel = Channel()
        row = await self._ask(Job(channel, prepare))
        return TokenSample(tuple(prompt), tuple(row.ids), tuple(row.logprobs), row.finish_reason, row.weights)

    async def load_weights(self, weights: Weights, version: str | None = None) -> str:
        """Replace the weights in memory: what was asked before ends first, what is asked later sees the new ones.

        Args:
            weights: a state dict of the causal LM, the folder of a model of the same shape, or of a LoRA adapter.
                What is given is all there is afterwards: an earlier adapter is gone.
            version: what replies call these weights; by default the number of the replacement.

        Returns:
            The version.

        Raises:
            ProviderError: the weights do not fit; nothing has changed.
        """

        def work(session: Session) -> str:
            from .weights import replace_weights

            session.replacements += 1
            return replace_weights(session, weights, version or str(session.replacements))

        loaded: str = await self._ask(Job(Channel(), alone=work))
        return loaded

    async def _ask(self, job: Job) -> Any:
        """Have a job done; if the task is cancelled meanwhile, it is not done, or ends at the next step."""
        self._engine.submit(job)
        try:
            return await job.channel.next()
        finally:
            job.channel.cancelled = True


def _chat_job(request: ChatRequest, *, streams: bool) -> Job:
    """The job of a chat request; its row is made by the worker, which has the chat template."""
    channel, asked = Channel(), request.sampling

    def prepare(session: Session) -> RequestRow:
        from .request import RequestRow, Transcript
        from .sampling import SamplingRule

        codec = session.loaded.codec
        prompt = _prompt(session, request)
        reader = make_reader(codec.reply_format, request.tools, thinking=prompt.thinking)
        temperature, top_p, top_k = session.loaded.defaults
        if asked.temperature is not None:
            temperature = asked.temperature
        if asked.top_p is not None:
            top_p = asked.top_p
        seed = _seed(asked)
        return RequestRow(
            prompt.ids,
            SamplingRule(temperature, top_p, top_k),
            seed,
            limit=_room(session, prompt.ids, asked.max_tokens),
            ends=codec.end_ids,
            channel=channel,
            transcript=Transcript(codec, reader, asked.stop),
            grammar=None if request.schema is None else session.grammars.for_schema(request.schema),
            streams=streams,
            origin={"endpoint": codec.endpoint, "seed": seed},
        )

    return Job(channel, prepare)


def _prompt(session: Session, request: ChatRequest) -> RenderedPrompt:
    """The prompt of a chat request.

    Raises:
        ProviderError: there is no chat template, or it refuses the conversation.
    """
    codec, settings = session.loaded.codec, session.settings
    if not codec.template:
        raise caller_error(
            f"{settings.path} has no chat template; give one with template='file.jinja', or use generate_ids"
        )
    keep = settings.history == "sampled"
    try:
        return codec.render_prompt(request.messages, request.tools, request.schema, keep_sampled=keep)
    except UsageError as error:
        raise caller_error(f"{settings.path}: {error}") from error


def _reply(row: RequestRow, request: ChatRequest) -> Reply:
    """The reply of a finished row."""
    assert row.transcript is not None
    reader = row.transcript.reader
    # Ids go on from those in the conversation, so that every result has one call.
    known = sum(len(message.tool_calls) for message in request.messages)
    calls = tuple(replace(call, id=f"call{number:05d}") for number, call in enumerate(reader.calls, known))
    wanted = request.sampling.logprobs
    reply = Reply(
        text=row.transcript.text,
        tool_calls=calls,
        usage=Usage(
            input_tokens=len(row.prompt),
            output_tokens=len(row.ids),
            cached_tokens=row.cached,
            reasoning_tokens=row.thought,
        ),
        finish_reason="tool_calls" if calls and row.finish_reason == "stop" else row.finish_reason,
        reasoning=reader.reasoning,
        token_ids=tuple(row.ids) if wanted else None,
        logprobs=tuple(row.logprobs) if wanted else None,
        prompt_token_ids=tuple(row.prompt) if wanted else None,
        extra={**row.origin, "weights": row.weights},
    )
    if row.transcript.stopped:
        return reply  # its ids continue past its text
    # The digest shows later whether somebody has changed the turn, whose ids then say something else.
    return replace(reply, extra={**reply.extra, "token_ids": list(row.ids), "digest": digest(reply)})


def _seed(asked: Sampling) -> int:
    return SystemRandom().getrandbits(63) if asked.seed is None else asked.seed


def _room(session: Session, prompt: Sequence[int], asked: int | None) -> int:
    """Tokens that a reply may have.

    Raises:
        ProviderError: the prompt is empty, leaves no room for a reply, or holds ids that are no tokens.
    """
    context, path = session.loaded.context, session.settings.path
    if not prompt:
        raise caller_error(f"{path}: the prompt is empty; give at least one token")
    if wrong := [token for token in prompt if not 0 <= token < session.tokens]:
        raise caller_error(
            f"{path}: the prompt has the token id {wrong[0]}; expected ids from 0 to {session.tokens - 1}"
        )
    if len(prompt) >= context:
        raise caller_error(
            f"{path}: the prompt has {len(prompt)} tokens and leaves no room for a reply in a context of {context}; "
            "shorten the conversation, or ask a model with a longer context"
        )
    return max(1, min(asked or session.settings.max_tokens, context - len(prompt)))
