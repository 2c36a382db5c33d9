"""Prompts of any chat template, for a model that is served.

A conversation is rendered with the chat template and encoded. Two things differ from plain rendering. Special tokens in
the text of users and tools are encoded as ordinary text, so that no tool result can end a turn. And where an
assistant's turn is the model's own, and the template writes it as it was sampled, its sampled token ids are used and
not a new encoding of its text; so the next turn's prompt begins with what the model has really read and written.

A `TemplateCodec` may be used from several threads: encoding and decoding only read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from concertino import Message, Reply, UsageError
from concertino.text import Quoting

from .contract import Ids, Tools
from .dialects import FORMAT_MARKS, guess_format
from .template import ChatTemplate
from .vocabulary import Vocabulary

_QUOTED = Quoting().json
_TOOLS = """You may call the functions below. To call one, write on a line of its own:
<tool_call>{{"name": "function name", "arguments": {{...}}}}</tool_call>
Functions, one JSON object each:
{tools}"""
_SCHEMA = """Answer with one JSON value that satisfies this JSON schema, and with nothing else:
{schema}"""


def digest(turn: Message | Reply) -> str:
    """A short hash of what a turn says."""
    said = [turn.text, turn.reasoning, [[call.name, call.arguments] for call in turn.tool_calls]]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class RenderedPrompt:
    """What the model is shown.

    Attributes:
        ids: the token ids.
        thinking: the prompt ends inside a `<think>` block that the template has opened.
        kept: how many of the assistant's turns have their sampled ids.
    """

    ids: list[int]
    thinking: bool = False
    kept: int = 0


class TemplateCodec:
    """The codec of a model with a tokenizer and any chat template.

    Args:
        tokenizer: of transformers.
        template: the Jinja of the template; empty if there is none, then nothing can be rendered.
        options: values that the template reads, such as `enable_thinking`.
        end_ids: tokens that end a reply, beside the tokenizer's own.
        reply_format: how replies are written; "auto" guesses it from the template.

    Attributes:
        vocabulary: of the tokenizer.
        reply_format: one of `dialects.FORMAT_MARKS`.
        end_ids: tokens that end a reply.
        hidden: special tokens that mean nothing in the reply format, and are left out of a reply's text.
    """

    end_ids: Ids

    def __init__(
        self,
        tokenizer: Any,
        template: str,
        *,
        options: Mapping[str, Any] | None = None,
        end_ids: Iterable[int] = (),
        reply_format: str = "auto",
    ) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self.vocabulary = Vocabulary(tokenizer)
        self.end_ids = tuple(sorted({*end_ids, tokenizer.eos_token_id} - {None}))
        self.reply_format = guess_format(template) if reply_format == "auto" else reply_format
        self._form = ChatTemplate(tokenizer, template, options or {}, self.vocabulary)

    @cached_property
    def hidden(self) -> frozenset[int]:
        """See the class."""
        return frozenset(
            i for i, text in self.vocabulary.special.items() if text not in FORMAT_MARKS[self.reply_format]
        )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the vocabulary, the template, its options and the ends of turns."""
        parts = [self.vocabulary.identity, self.template, self._form.options, self.end_ids]
        text = json.dumps(parts, sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of any ids, special tokens shown; for people and tests."""
        return self.vocabulary.decode(ids)

    def render_prompt(
        self,
        messages: Sequence[Message],
        tools: Tools = (),
        schema: Mapping[str, Any] | None = None,
        *,
        keep_sampled: bool = True,
    ) -> RenderedPrompt:
        """The token ids of a conversation, up to the beginning of the assistant's next turn.

        Args:
            messages: of all roles.
            tools: function objects; a template that shows no tools gets them in the system message.
            schema: what the reply must satisfy; it is asked for in the system message.
            keep_sampled: use the sampled ids of the model's own turns where the template allows it.

        Raises:
            UsageError: the template refuses the conversation.
        """
        shown = tools if self._form.shows_tools else ()
        extra = [] if shown or not tools else [_with_tools(tools)]
        if schema is not None:
            extra.append(_SCHEMA.format(schema=json.dumps(schema, ensure_ascii=False)))
        told = _with_system([m for m in messages if m.role != "system" or m.text.strip()], extra)
        sampled = [self._sampled_ids(message) if keep_sampled else [] for message in told]
        return _Rendering(self, self._form, told, sampled, shown).prompt()

    def _sampled_ids(self, message: Message) -> list[int]:
        """The ids of a turn that this model has sampled, if the message still says what they said."""
        extra = message.extra
        # Ids of another tokenizer or template mean something else here.
        if message.role != "assistant" or extra.get("endpoint") != self.endpoint:
            return []
        ids = extra.get("token_ids")
        # A turn that somebody has edited still carries the ids of what was said before.
        return list(ids) if isinstance(ids, (list, tuple)) and extra.get("digest") == digest(message) else []

    @property
    def endpoint(self) -> str:
        """Marks the replies whose sampled ids this codec understands."""
        return f"local:{self.fingerprint}"


class _Rendering:
    """One conversation on its way into token ids.

    Args:
        codec, template: of the model.
        messages: what is said.
        sampled: for each message its sampled ids, empty where it has none.
        tools: that the template shows.
    """

    def __init__(
        self,
        codec: TemplateCodec,
        template: ChatTemplate,
        messages: Sequence[Message],
        sampled: Sequence[Sequence[int]],
        tools: Tools,
    ) -> None:
        self._codec, self._template = codec, template
        self._messages, self._sampled, self._tools = messages, sampled, tools
        names = {call.id: call.name for message in messages for call in message.tool_calls if call.id}
        self._forms = [
            template.form(
                message,
                # The author of the system message decides about marks; users and tools do not.
                trusted=message.role == "system" or bool(ids),
                inline_thoughts=False,
                name=names.get(message.call_id or "", ""),
            )
            for message, ids in zip(messages, sampled, strict=True)
        ]

    def prompt(self) -> RenderedPrompt:
        text = self._render(len(self._forms))
        encode = self._codec.vocabulary.encode_rendered
        ids: list[int] = []
        done = kept = 0
        for place, sampled in enumerate(self._sampled):
            if not sampled:
                continue
            text, begin, end = self._locate(place, sampled, text, done)
            if done <= begin < end:
                ids += [*encode(text[done:begin]), *sampled]
                done, kept = end, kept + 1
        ids += encode(text[done:])
        return RenderedPrompt(ids, text.rstrip().endswith("<think>"), kept)

    def _locate(self, place: int, sampled: Sequence[int], text: str, done: int) -> tuple[str, int, int]:
        """The whole text, and where in it a turn stands exactly as it was sampled; 0, 0 if nowhere.

        The first `done` characters of the text are fixed already.
        """
        before = self._render(place)
        turn = self._codec.decode(sampled)
        if text.startswith(before + turn):
            return text, len(before), len(before) + len(turn)
        if not self._thoughts_left_out(self._messages[place], text):
            # The template writes the parsed turn in another way: give it the raw text as content instead.
            unended = sampled[:-1] if sampled[-1] in self._codec.end_ids else sampled
            usual, content = self._forms[place], self._codec.decode(unended)
            self._forms[place] = {"role": "assistant", "content": content}
            try:
                other = self._render(len(self._forms))
            except UsageError:
                other = ""  # some templates want a call before its result
            if other.startswith(before + turn) and other[:done] == text[:done]:
                return other, len(before), len(before) + len(turn)
            self._forms[place] = usual
        return text, 0, 0

    def _thoughts_left_out(self, message: Message, text: str) -> bool:
        """Whether the template knows of thoughts and shows none of this turn, as it does with older ones on purpose."""
        return bool(message.reasoning) and self._template.knows_thoughts and message.reasoning not in text

    def _render(self, count: int) -> str:
        return self._template.render(self._forms[:count], self._tools, opens=True)


def _with_tools(tools: Tools) -> str:
    return _TOOLS.format(tools="\n".join(_QUOTED(json.dumps(dict(tool))) for tool in tools))


def _with_system(messages: list[Message], extra: list[str]) -> list[Message]:
    """The conversation with texts added to its system message."""
    if not extra:
        return messages
    if messages and messages[0].role == "system":
        return [Message("system", "\n\n".join([messages[0].text, *extra])), *messages[1:]]
    return [Message("system", "\n\n".join(extra)), *messages]
