"""What a template and a tokenizer must do for training, checked before anything is trained on what they write.

The policy continues after its own token ids, and what others said is rendered alone; so a template must write a
message the same whatever follows it. A turn must end with one token, which is trained, or the policy never learns to
stop. Where that is not so, the error names the way out.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from concertino import Message, ToolCall, UsageError

from .contract import Ids
from .families import FAMILY, family_of, family_template
from .template import SHIPPED, TRAINING, ChatTemplate, training_variant
from .turns import ANSWER, QUESTION, Turns, different
from .vocabulary import Vocabulary, end_of, without_marks

_WRITTEN = [
    *("think", "reasoning", "tool_call", "function", "parameter", "arg_key", "arg_value", "plan", "search"),
    *("observation", "reflection", "answer", "graph", "node", "agent", "edge"),
]
# The most telling name first.
_PAD_NAMES = ("pad", "reserved", "unused", "unk", "extra", "endoftext", "mask")

_TALK = (
    Message("system", "Be brief."),
    Message("user", "How far is it?"),
    Message("assistant", "Ten miles: 10 mi."),
    Message("user", "And back?"),
    Message("assistant", "The same.\n\nNo, less."),
    Message("user", "Thanks."),
)
_TWICE = (
    Message("user", "How far is it?"),
    Message("user", "By the short way."),
    Message("assistant", "Ten miles."),
    Message("user", "And back?"),
    Message("user", "Answer now."),
)
"""A workflow asks once more where the rounds are over."""
_THOUGHT = (
    Message("user", "How far?"),
    Message("assistant", "<think>\nI look it up.\n</think>\n\nTen miles."),
    Message("user", "And back?"),
    Message("assistant", "<think>\nAs far.\n</think>\n\nThe same."),
)
_TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Look something up.",
        "parameters": {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
    },
}
_CALLS = (
    Message("system", "Be brief."),
    Message("user", "How far is it?"),
    Message("assistant", "", (ToolCall("look_up", {"what": "there"}, "call00001"),)),
    Message("tool", "10 mi", call_id="call00001"),
    Message(
        "assistant",
        "Both ways:",
        (ToolCall("look_up", {"what": "a"}, "call00002"), ToolCall("look_up", {"what": "b"}, "call00003")),
    ),
    Message("tool", "7 mi", call_id="call00002"),
    Message("tool", "8 mi", call_id="call00003"),
    Message("assistant", "Fifteen miles."),
    Message("user", "Thanks."),
)


def check_template(tokenizer: Any, template: ChatTemplate) -> Turns:
    """Refuse a template that cannot be trained with.

    Returns:
        How it writes turns.

    Raises:
        UsageError: it cannot be trained with; the message says why, and what to do.
    """
    _check_tags(template.vocabulary)
    try:
        return _check(tokenizer, template)
    except UsageError as error:
        raise UsageError(f"{error}; {_way_out(tokenizer, template)}") from error


def tools_problem(turns: Turns) -> str:
    """Why native tool calls cannot be trained with a template; empty if they can."""
    if not turns.template.shows_tools:
        return "the chat template does not show tools"
    try:
        _check_talk(turns, _CALLS, (_TOOL,))
    except UsageError as error:
        return str(error)
    return ""


def _check(tokenizer: Any, template: ChatTemplate) -> Turns:
    turns = _find_end(template)
    _check_marked(turns)
    # Some templates write a system message of their own where none is given.
    _check_talk(turns, _TALK[1:], ())
    _check_talk(turns, _TALK, ())
    _check_talk(turns, _TWICE, ())
    if "</think>" in template.render([QUESTION], opens=True):
        return turns  # it has the policy write without thoughts
    try:
        _check_talk(turns, _THOUGHT, ())
    except UsageError as error:
        raise UsageError(f"the chat template drops or changes what was thought in earlier turns: {error}") from error
    return turns


def _way_out(tokenizer: Any, template: ChatTemplate) -> str:
    """What to do about a template: others that were tried and can be trained with."""

    def works(text: str) -> bool:
        if text == template.text:
            return False
        with contextlib.suppress(UsageError):
            _check(tokenizer, ChatTemplate(tokenizer, text, template.options, template.vocabulary))
            return True
        return False

    family = family_of(set(template.vocabulary.special.values()))
    ours = SHIPPED if family == SHIPPED else FAMILY
    known = bool(family) and works(family_template(family))
    variant = training_variant(tokenizer) if template.text == tokenizer.chat_template else None
    if variant is not None and works(variant):
        return f"give template={TRAINING!r}, TRL's variant of it for training" + f", or template={ours!r}" * known
    if known:
        return f"give another template, such as template={ours!r}"
    return "give a tokenizer that has <|im_start|> and <|im_end|> as special tokens, or a file of Jinja"


def _find_end(template: ChatTemplate) -> Turns:
    """How turns end: with which token, and with what behind it."""
    vocabulary, answer = template.vocabulary, ANSWER["content"]
    asked = template.render([QUESTION], opens=True)
    last = template.render([QUESTION, ANSWER], opens=False)
    followed = template.render([QUESTION, ANSWER, QUESTION], opens=True)
    if not last.startswith(asked):
        raise UsageError(
            f"the chat template does not begin an assistant's turn as it asks for one: {different(asked, last)}; so "
            "turns cannot be located, and nothing could be trained"
        )
    if answer not in last[len(asked) :]:
        raise UsageError(f"the chat template changes what the assistant said: {last[len(asked) :]!r}")
    rest = last.rpartition(answer)[2]
    before, end = end_of(vocabulary.encode_rendered(rest), vocabulary)
    if end is None:
        middle = followed.partition(answer)[2][:24]
        raise UsageError(
            f"the chat template writes no token at the end of an assistant's turn but {rest!r} (and {middle!r} where "
            "something follows), so a policy would never learn to stop; a turn needs one special token at its end, "
            "such as <|im_end|>"
        )
    end_text = vocabulary.special[end]
    closing = f"{vocabulary.decode(before)}{end_text}"
    if not rest.startswith(closing):
        raise UsageError(
            f"the tokenizer reads {rest!r}, the end of a turn, as {closing!r}; use a tokenizer that gives back what it "
            "was given"
        )
    if followed.partition(answer)[2][: len(closing)] != closing:
        raise UsageError(
            f"the chat template ends the last turn with {closing!r}, and others with "
            f"{followed.partition(answer)[2][: len(closing)]!r}, so a conversation would not continue after what the "
            "policy wrote"
        )
    return Turns(template, end, end_text, rest[len(closing) :])


def _check_talk(turns: Turns, talk: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> None:
    """That a conversation is the sum of its pieces, at each of its lengths, and that turns are encoded as they are."""
    for last, message in enumerate(talk):
        if message.role in ("user", "tool"):
            turns.pieces(talk[: last + 1], tools)
    vocabulary = turns.template.vocabulary
    for piece in turns.pieces(talk, tools):
        if piece.message is None:
            continue
        ids = vocabulary.encode_behind(turns.end, piece.text)
        if ids[-1:] != [turns.end] or turns.end in ids[:-1]:
            raise UsageError(f"{turns.end_text!r} is not the one token that ends the turn {piece.text!r}")
        if vocabulary.decode(ids).lstrip(" ") != without_marks(piece.text).lstrip(" "):
            raise UsageError(
                f"the tokenizer does not give back what it was given: {piece.text!r} became "
                f"{vocabulary.decode(ids)!r}; use one that does, such as a byte-level BPE"
            )


def _check_marked(turns: Turns) -> None:
    """That the part which a template itself marks as the assistant's, for others who train with it, has the end."""
    template = turns.template
    if not re.search(r"{%-?\s*generation", template.text):
        return
    if not any(turns.end_text in span for span in template.marked([QUESTION, ANSWER, QUESTION])):
        raise UsageError(
            f"the chat template's generation block ends before {turns.end_text}, so whoever trains by it would never "
            f"teach a policy to stop; move {{% endgeneration %}} behind {turns.end_text}"
        )


def _check_tags(vocabulary: Vocabulary) -> None:
    """Check that tags which a policy writes are not special tokens, which decoders drop."""
    texts = set(vocabulary.special.values())
    wrong = [tag for name in _WRITTEN for tag in (f"<{name}>", f"</{name}>") if tag in texts]
    if wrong:
        raise UsageError(
            f"{', '.join(wrong)}: special tokens, which decoders drop, so no reward would see what the policy wrote; "
            f"call tokenizer.add_tokens([AddedToken({wrong[0]!r}, special=False)]) for each, and save the tokenizer"
        )


def find_pad(tokenizer: Any, turns: Turns, ends: Ids) -> int:
    """A token to fill rows with that ends no turn.

    Raises:
        UsageError: the tokenizer has none.
    """
    if tokenizer.pad_token_id is not None and tokenizer.pad_token_id not in ends:
        return int(tokenizer.pad_token_id)
    usual = {tokenizer.bos_token_id, *ends}
    free = [
        (rank, i)
        for i, text in turns.template.vocabulary.special.items()
        # A token that the template writes would be masked as padding in the middle of a conversation.
        if i not in usual and text not in turns.template.text
        for rank, name in enumerate(_PAD_NAMES)
        if name in text.lower()
    ]
    if not free:
        own = "none" if tokenizer.pad_token_id is None else f"{tokenizer.pad_token!r}, which also ends turns"
        raise UsageError(
            f"the tokenizer has no token to pad with (its pad_token is {own}); give it one of its own: "
            'tokenizer.add_special_tokens({"pad_token": "<|pad|>"}), and model.resize_token_embeddings(len(tokenizer))'
        )
    return min(free)[1]
