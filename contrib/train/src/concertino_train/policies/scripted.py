"""A policy that follows a script: for tests of everything around a policy, without weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from concertino_local.codec import ByteCodec, Codec, Ids

from .policy import Policy, Prompt, Sample

Script = Callable[[str, Prompt], str | Ids]
"""From the text of the context to what is written: a text, or token ids as they are to be sampled."""


class ScriptedPolicy(Policy):
    """Writes what a function says.

    Args:
        script: given the decoded context and the prompt; a text is encoded and ended, ids are taken as they are.
        codec: bytes by default.
        logprob: log-probability of every token.
    """

    def __init__(self, script: Script, codec: Codec | None = None, *, logprob: float = -0.1) -> None:
        self.codec = codec or ByteCodec()
        self.script = script
        self.logprob = logprob
        self.batches: list[int] = []
        """Size of each batch so far."""

    def generate(self, prompts: Sequence[Prompt]) -> list[Sample]:
        """See `Policy.generate`."""
        self.batches.append(len(prompts))
        return [self._sample(prompt) for prompt in prompts]

    def _sample(self, prompt: Prompt) -> Sample:
        from concertino import Message

        said = self.script(self.codec.decode(prompt.ids), prompt)
        ids = self.codec.turn(Message("assistant", said)) if isinstance(said, str) else said
        cut = ids[: prompt.most]
        return Sample(cut, (self.logprob,) * len(cut), "stop" if self.codec.ended(cut) else "length")
