"""`ChatCodec`: between messages and the token ids of a model with a chat template."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from concertino import Message, Reply, Usage, UsageError

from .calls import SampledText, cut_calls, cut_channels, cut_thoughts
from .checks import check_template, find_pad, tools_problem
from .contract import Codec, Ids, Tools
from .dialects import FORMAT_MARKS
from .serving import TemplateCodec
from .template import template_text
from .turns import Piece

_TOKENIZERS = ("tokenizer*", "vocab*", "*.model", "*.tiktoken", "tekken.json")


class EncodedConversation(NamedTuple):
    """A conversation to learn from.

    Attributes:
        ids: token ids up to the end of the last turn of the assistant; shape (T,).
        mask: 1 for tokens that are trained, else 0; shape (T,).
    """

    ids: Ids
    mask: tuple[int, ...]


class ChatCodec(TemplateCodec, Codec):
    """The codec of a model with a Hugging Face tokenizer and a chat template.

        codec = ChatCodec.load("checkpoints/0")
        ids, mask = codec.encode_conversation(messages, train=[False, True, False, True])

    Args:
        tokenizer: of transformers; a copy is used.
        template: the Jinja of the template.
        options: values that the template reads, such as `enable_thinking`.
        thoughts: read a `<think>` block in front of a text as the reasoning of the reply. By default where the template
            opens the block itself; else it stays in the text, where strategies read it.

    Attributes:
        tokenizer: with the template and the pad token that are used here; what `save` writes.
        template: the Jinja.
        end_text: text of the token that ends a turn.
        problem: why native tool calls cannot be used with this template; empty if they can.

    Raises:
        UsageError: nothing can be trained with this tokenizer and template; it says why and what to do.
    """

    def __init__(
        self,
        tokenizer: Any,
        template: str,
        *,
        options: Mapping[str, Any] | None = None,
        thoughts: bool | None = None,
    ) -> None:
        # A copy: template and padding are set on it, and the caller's must stay as it is.
        super().__init__(copy.deepcopy(tokenizer), template, options=options)
        self._turns = check_template(self.tokenizer, self._form)
        self.problem = tools_problem(self._turns)
        self.end_text = self._turns.end_text
        eos = self.tokenizer.eos_token_id
        other = eos is not None and eos != self._turns.end
        # Models of chat stop at the end of a turn, base models at the end of a text; either ends a reply.
        self.end_ids = (self._turns.end, *((int(eos),) if other else ()))
        self.pad_id = find_pad(self.tokenizer, self._turns, self.end_ids)
        self.size = self.vocabulary.size
        self._begun = self._turns.beginning([Message("user", "")]).rstrip().endswith("<think>")
        self._thoughts = self._begun if thoughts is None else thoughts
        self.tokenizer.chat_template = template
        self.tokenizer.pad_token = self.vocabulary.special.get(self.pad_id) or self.vocabulary.decode([self.pad_id])

    @classmethod
    def load(cls, source: Any, template: str | Path | None = None, **options: Any) -> Self:
        """Of a folder or a tokenizer.

        Args:
            source: a folder as `save_pretrained` writes it, or a tokenizer of transformers.
            template: None for the tokenizer's own; `chatml` for the one that comes with this package; `family` for one
                of ours with the marks of the tokenizer's family; `training` for TRL's variant of the tokenizer's own;
                else a file, or the template itself.
            options: `thoughts`, and values that the template reads, such as `enable_thinking=False`.

        Raises:
            UsageError: the folder does not exist, or nothing can be trained with it; it says why and what to do.
        """
        tokenizer = _open(source) if isinstance(source, (str, Path)) else source
        thoughts = options.pop("thoughts", None)
        return cls(tokenizer, template_text(tokenizer, template), options=options, thoughts=thoughts)

    def save(self, folder: str | Path) -> None:
        """Write the tokenizer with this template, so that the model is served as it was trained."""
        self.tokenizer.save_pretrained(folder)

    # -- to token ids ----------------------------------------------------------------------------------------------

    def prompt(self, messages: Sequence[Message], tools: Tools = ()) -> Ids:
        """See `Codec.prompt`.

        Raises:
            UsageError: the template refuses the conversation, or does not write it turn by turn.
        """
        self._refuse_tools(messages, tools)
        return self._join(self._turns.pieces(messages, tools))[0]

    def onward(self, fresh: Sequence[Message], ended: bool, tools: Tools = ()) -> Ids:
        """See `Codec.onward`.

        Raises:
            UsageError: the template refuses the messages, or a message is the assistant's.
        """
        # Encoded here, it would stand among sampled ids as if the policy had written it.
        self._refuse_tools(fresh, tools)
        if any(message.role == "assistant" for message in fresh):
            raise UsageError("onward() got a message of the assistant; its turns are sampled, or stand in prompt()")
        closing = () if ended else (self._turns.end,)
        return (*closing, *self._encode(Piece(self._turns.between(fresh, tools)), first=False))

    def turn(self, message: Message) -> Ids:
        """See `Codec.turn`.

        Raises:
            UsageError: it is not the assistant's, or the template cannot write it.
        """
        if message.role != "assistant":
            raise UsageError(f"turn() got a message of role {message.role!r}; expected 'assistant'")
        self._refuse_tools([message], ())
        return self._encode(Piece(self._turns.turn(message), message), first=False)

    def encode_conversation(
        self, messages: Sequence[Message], train: Sequence[bool] | None = None, tools: Tools = ()
    ) -> EncodedConversation:
        """A conversation to learn from, up to the end of the assistant's last turn; what follows that trains nothing.

        Args:
            messages: of all roles.
            train: for each message, whether it is trained: true for turns of the assistant only; by default all of
                these are.
            tools: function objects that were offered.

        Returns:
            Token ids, and a mask that is 1 exactly on the tokens of trained turns, the end of each included.

        Raises:
            UsageError: the flags do not fit, no turn is the assistant's, or the template refuses the conversation.
        """
        flags = [message.role == "assistant" for message in messages] if train is None else list(train)
        if len(flags) != len(messages):
            raise UsageError(f"encode_conversation: {len(flags)} flags for {len(messages)} messages; expected one each")
        for place, (message, flag) in enumerate(zip(messages, flags, strict=True)):
            if flag and message.role != "assistant":
                raise UsageError(f"message {place} is to be trained and is of {message.role!r}; expected 'assistant'")
        if not any(message.role == "assistant" for message in messages):
            raise UsageError("encode_conversation: no message is the assistant's, so there is nothing to learn")
        self._refuse_tools(messages, tools)
        ids, lengths = self._join(self._turns.pieces(messages, tools, opens=False))
        spoken = [flag for message, flag in zip(messages, flags, strict=True) if message.role == "assistant"]
        mask: list[int] = []
        for number, length in enumerate(lengths):  # pieces alternate: what is read, and a turn
            mask += [int(number % 2 == 1 and spoken[number // 2])] * length
        return EncodedConversation(ids, tuple(mask))

    # -- from token ids --------------------------------------------------------------------------------------------

    def read(self, ids: Sequence[int], tools: Tools = ()) -> Reply:
        """See `Codec.read`; thoughts go to `Reply.reasoning` where `thoughts` says so, those of a channel always."""
        if self.reply_format == "harmony":
            thought = cut_channels(self.vocabulary.marked(ids, FORMAT_MARKS["harmony"]), tools)
        elif self._thoughts:
            thought = cut_thoughts(self.vocabulary.words(ids), self._begun)
        else:
            thought = SampledText(self.vocabulary.words(ids))
        said = cut_calls(thought.text) if tools and not thought.calls else thought
        return Reply(said.text, said.calls, Usage(output_tokens=len(ids)), reasoning=thought.thoughts)

    # -- pieces ----------------------------------------------------------------------------------------------------

    def _join(self, pieces: Sequence[Piece]) -> tuple[Ids, list[int]]:
        """Ids of pieces, and how many each has."""
        parts = [self._encode(piece, first=number == 0) for number, piece in enumerate(pieces)]
        return tuple(i for part in parts for i in part), [len(part) for part in parts]

    def _encode(self, piece: Piece, *, first: bool) -> Ids:
        if first:
            return tuple(self.vocabulary.encode_rendered(piece.text))
        return tuple(self.vocabulary.encode_behind(self._turns.end, piece.text))

    def _refuse_tools(self, messages: Sequence[Message], tools: Tools) -> None:
        used = tools or any(message.role == "tool" or message.tool_calls for message in messages)
        if used and self.problem:
            raise UsageError(
                f"native tool calls cannot be used: {self.problem}; use a strategy whose calls are text (native=False) "
                "or template='family'"
            )


def _open(folder: str | Path) -> Any:
    """The tokenizer of a folder."""
    from transformers import AutoTokenizer

    there = Path(folder)
    # Of the configuration of a model alone, transformers makes a tokenizer that knows no words.
    if there.is_dir() and not any(file for name in _TOKENIZERS for file in there.glob(name)):
        raise UsageError(f"{folder}: no tokenizer; expected a folder as tokenizer.save_pretrained writes it")
    try:
        return AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{folder}: no tokenizer ({error}); expected a folder as tokenizer.save_pretrained writes it"
        ) from error
