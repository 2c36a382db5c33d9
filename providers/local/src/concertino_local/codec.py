"""Between messages and token ids: the tokenizer, the chat template, and a conversation's earlier turns.

A prompt is rendered with the model's chat template and encoded. Two things differ from plain rendering. Special tokens
that stand in the text of users and tools are encoded as ordinary text, so that no tool result can end a turn. And where
an assistant's turn is the model's own, and the template writes it as it was sampled, its sampled token ids are used and
not a new encoding of its text, so that the next turn's prompt begins with what the model has really read and written.

`Codec` is not bound to a thread: encoding and decoding only read.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concertino import Message, ProviderError, Reply

from .dialects import guess_format
from .errors import caller_error
from .settings import LocalSettings

MARK = "\ufdd0"
"""Cuts a special token in untrusted text into two ordinary ones. A noncharacter: it has no meaning in any text."""
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_TOOLS = """You may call the functions below. To call one, write on a line of its own:
<tool_call>{{"name": "function name", "arguments": {{...}}}}</tool_call>
Functions, one JSON object each:
{tools}"""
_SCHEMA = """Answer with one JSON value that satisfies this JSON schema, and with nothing else:
{schema}"""


def clean(text: str) -> str:
    """The text without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if not text.isascii() else text


def digest(turn: Message | Reply) -> str:
    """A short hash of what a turn says."""
    said = [turn.text, turn.reasoning, [[call.name, call.arguments] for call in turn.tool_calls]]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


class Vocabulary:
    """Texts to token ids and back, without special tokens added.

    Args:
        tokenizer: one of transformers, or a `tokenizers.Tokenizer`.
    """

    def __init__(self, tokenizer: Any) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None) or tokenizer
        self._lock = threading.Lock()
        self.encode: Callable[[str], list[int]]
        self.decode: Callable[[Sequence[int]], str]
        self.identity: Callable[[], str]
        if type(backend).__module__.partition(".")[0] == "tokenizers":
            backend.no_truncation()
            backend.no_padding()
            self.encode = lambda text: list(backend.encode(text, add_special_tokens=False).ids)
            self.decode = lambda ids: str(backend.decode(list(ids), skip_special_tokens=False))
            self.identity = lambda: str(backend.to_str())
        else:
            self.encode = lambda text: self._locked(lambda: list(tokenizer.encode(text, add_special_tokens=False)))
            self.decode = lambda ids: self._locked(lambda: str(tokenizer.decode(list(ids), skip_special_tokens=False)))
            self.identity = lambda: json.dumps(tokenizer.get_vocab(), sort_keys=True)

    def _locked(self, work: Callable[[], Any]) -> Any:
        with self._lock:  # tokenizers in Python keep state
            return work()

    @classmethod
    def of_folder(cls, folder: Path) -> Vocabulary | None:
        """The vocabulary of a `tokenizer.json`, quickly read; None without such a file."""
        file = folder / "tokenizer.json"
        if not file.is_file():
            return None
        from tokenizers import Tokenizer

        return cls(Tokenizer.from_file(str(file)))


@dataclass(frozen=True)
class Prompt:
    """What the model is shown.

    Attributes:
        ids: the token ids.
        thinking: the prompt ends inside a `<think>` block that the template has opened.
        kept: how many assistant turns stand in it with their sampled ids.
    """

    ids: list[int]
    thinking: bool = False
    kept: int = 0


class Codec:
    """The tokenizer and chat template of one model.

    Args:
        tokenizer: one of transformers.
        settings: of the model.
        ends: ids that end a reply, as the model's generation config says.
    """

    def __init__(self, tokenizer: Any, settings: LocalSettings, ends: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._settings = settings
        self.vocabulary = Vocabulary(tokenizer)
        self.template = self._read_template()
        format_ = settings.reply_format
        self.reply_format = guess_format(self.template) if format_ == "auto" else format_
        self.ends = frozenset(ends) | ({tokenizer.eos_token_id} - {None})
        special = {int(i) for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        special |= {int(i) for i in tokenizer.all_special_ids}
        texts = {i: self.vocabulary.decode([i]) for i in special}
        self.hidden = frozenset(i for i, text in texts.items() if not self._is_format_mark(text))
        self._untrusted = sorted((text for text in texts.values() if len(text) > 1), key=len, reverse=True)
        whole = hashlib.sha256((self.vocabulary.identity() + self.template).encode("utf-8", "replace"))
        self.identity = f"local:{whole.hexdigest()[:16]}"

    def visible(self, ids: Sequence[int]) -> str:
        """Text of sampled ids, without special tokens that mean nothing in the reply format."""
        return self.vocabulary.decode([i for i in ids if i not in self.hidden])

    def prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None
    ) -> Prompt:
        """The token ids of a conversation, up to the beginning of the assistant's next turn.

        Raises:
            ProviderError: there is no chat template, or it refuses the conversation.
        """
        if not self.template:
            raise caller_error(
                f"{self._settings.path} has no chat template; give one with template='file.jinja', or use generate_ids"
            )
        return _Rendering(self, messages, tools, schema).prompt()

    def render(self, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]]) -> str:
        """The text of a conversation, with the beginning of the assistant's next turn."""
        try:
            text = self._tokenizer.apply_chat_template(
                messages,
                tools=[dict(tool) for tool in tools] or None,
                chat_template=self.template,
                add_generation_prompt=True,
                tokenize=False,
                **self._settings.template_options,
            )
        except Exception as error:  # a template is code of its own, and raises what it likes
            raise caller_error(
                f"the chat template of {self._settings.path} refused the conversation "
                f"({', '.join(message['role'] for message in messages) or 'no messages'}): {error}"
            ) from error
        return str(text)

    def encode(self, text: str) -> list[int]:
        """Ids of a rendered text; a `MARK` is a place where two tokens meet."""
        if MARK not in text:
            return self.vocabulary.encode(text)
        return [i for part in text.split(MARK) if part for i in self.vocabulary.encode(part)]

    def defuse(self, text: str) -> str:
        """An untrusted text, in which special tokens are cut by `MARK`."""
        text = clean(text).replace(MARK, "\ufffd")
        for token in self._untrusted:
            if token in text:
                text = text.replace(token, f"{token[0]}{MARK}{token[1:]}")
        return text

    def _read_template(self) -> str:
        if self._settings.template is not None:
            return Path(self._settings.template).expanduser().read_text(encoding="utf-8")
        template = self._tokenizer.chat_template
        if isinstance(template, dict):
            template = template.get("tool_use") or template.get("default")
        return str(template or "")

    def _is_format_mark(self, text: str) -> bool:
        marks = {
            "hermes": ("<think>", "</think>", "<tool_call>", "</tool_call>"),
            "harmony": (
                "<|start|>",
                "<|channel|>",
                "<|message|>",
                "<|end|>",
                "<|return|>",
                "<|call|>",
                "<|constrain|>",
            ),
            "llama": ("<|python_tag|>",),
            "plain": (),
        }
        return text in marks[self.reply_format]


class _Rendering:
    """One conversation on its way into token ids."""

    def __init__(
        self,
        codec: Codec,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        schema: Mapping[str, Any] | None,
    ) -> None:
        self._codec = codec
        self._names = {call.id: call.name for message in messages for call in message.tool_calls if call.id}
        self._tools = tools if "tools" in codec.template else ()
        extra = [] if self._tools or not tools else [_TOOLS.format(tools="\n".join(json.dumps(t) for t in tools))]
        if schema is not None:
            extra.append(_SCHEMA.format(schema=json.dumps(schema, ensure_ascii=False)))
        self._messages = _with_system([m for m in messages if m.role != "system" or m.text.strip()], extra)
        self._forms = [self._form(message) for message in self._messages]

    def prompt(self) -> Prompt:
        text = self._render(len(self._forms))
        ids: list[int] = []
        done = kept = 0
        for place, message in enumerate(self._messages):
            sampled = self._sampled_ids(message)
            if not sampled:
                continue
            text, begin, end = self._locate(place, sampled, text, done)
            if done <= begin < end:
                ids += [*self._codec.encode(text[done:begin]), *sampled]
                done, kept = end, kept + 1
        ids += self._codec.encode(text[done:])
        return Prompt(ids, text.rstrip().endswith("<think>"), kept)

    def _locate(self, place: int, sampled: Sequence[int], text: str, done: int) -> tuple[str, int, int]:
        """The whole text, and where in it stands a turn exactly as it was sampled; 0, 0 if it does not.

        Of the text, `done` characters are fixed already.
        """
        before = self._render(place)
        turn = self._codec.vocabulary.decode(sampled)
        if text.startswith(before + turn):
            return text, len(before), len(before) + len(turn)
        if not self._thoughts_left_out(self._messages[place], text):
            usual, content = self._forms[place], self._codec.vocabulary.decode(self._without_end(sampled))
            self._forms[place] = {"role": "assistant", "content": content}
            try:
                other = self._render(len(self._forms))
            except ProviderError:
                other = ""  # some templates want a call before its result
            if other.startswith(before + turn) and other[:done] == text[:done]:
                return other, len(before), len(before) + len(turn)
            self._forms[place] = usual
        return text, 0, 0

    def _thoughts_left_out(self, message: Message, text: str) -> bool:
        """Whether the template knows of thoughts and shows none of this turn, as it does with older ones on purpose."""
        known = any(key in self._codec.template for key in _THOUGHTS)
        return bool(message.reasoning) and known and message.reasoning not in text

    def _render(self, count: int) -> str:
        return self._codec.render(self._forms[:count], self._tools)

    def _sampled_ids(self, message: Message) -> list[int]:
        """The ids of a turn that this model has sampled, if the message still says what they said."""
        extra = message.extra
        if message.role != "assistant" or self._codec._settings.history != "sampled":
            return []
        if extra.get("endpoint") != self._codec.identity or extra.get("digest") != digest(message):
            return []
        ids = extra.get("token_ids")
        return list(ids) if isinstance(ids, (list, tuple)) else []

    def _without_end(self, ids: Sequence[int]) -> Sequence[int]:
        return ids[:-1] if ids[-1] in self._codec.ends else ids

    def _form(self, message: Message) -> dict[str, Any]:
        """A message as chat templates know it."""
        own = message.role == "system" or bool(self._sampled_ids(message))
        safe = clean if own else self._codec.defuse
        form: dict[str, Any] = {"role": message.role, "content": safe(message.text)}
        if message.role == "tool" and message.call_id:
            form["tool_call_id"] = message.call_id
            if message.call_id in self._names:
                form["name"] = self._names[message.call_id]
        if message.reasoning:
            form.update({key: safe(message.reasoning) for key in _THOUGHTS if key in self._codec.template})
        if message.tool_calls:
            form["tool_calls"] = [
                {"type": "function", "id": call.id, "function": {"name": call.name, "arguments": _data(call.arguments)}}
                for call in message.tool_calls
            ]
        return form


def _with_system(messages: list[Message], extra: list[str]) -> list[Message]:
    """The conversation with texts added to its system message."""
    if not extra:
        return messages
    if messages and messages[0].role == "system":
        return [Message("system", "\n\n".join([messages[0].text, *extra])), *messages[1:]]
    return [Message("system", "\n\n".join(extra)), *messages]


def _data(arguments: str | dict[str, Any]) -> Any:
    """Arguments as data, which chat templates expect; as text if they are no JSON."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
