"""A chat template: Jinja that writes a conversation as one text, and messages in the form that templates know."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from concertino import Message, ToolCall, UsageError

from .families import FAMILY, family_of, family_template
from .vocabulary import Vocabulary, clean

Form = dict[str, Any]
SHIPPED = "chatml"
TRAINING = "training"
_ERROR_CHARS = 400
"""Characters that are shown of what a template raises."""
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")


class ChatTemplate:
    """A template with the tokenizer whose marks it writes.

    Args:
        tokenizer: of transformers.
        text: the Jinja of the template.
        options: values that the template reads, such as `enable_thinking`.
        vocabulary: of the tokenizer.
    """

    def __init__(self, tokenizer: Any, text: str, options: Mapping[str, Any], vocabulary: Vocabulary) -> None:
        self.text = text
        self.options = dict(options)
        self.vocabulary = vocabulary
        self._tokenizer = tokenizer
        self._thoughts = [key for key in _THOUGHTS if key in text]

    @property
    def shows_tools(self) -> bool:
        """Whether it writes the tools that it is given."""
        return "tools" in self.text

    @cached_property
    def alternates(self) -> bool:
        """Whether it refuses two messages of the user in a row, as Gemma's and Mistral's do."""
        return not self._accepts("user", "user")

    @cached_property
    def knows_system(self) -> bool:
        """Whether it takes a message of the system."""
        return self._accepts("system", "user")

    @property
    def knows_thoughts(self) -> bool:
        """Whether it reads the reasoning of a message."""
        return bool(self._thoughts)

    def render(self, forms: Sequence[Form], tools: Sequence[Mapping[str, Any]] = (), *, opens: bool) -> str:
        """The text of a conversation.

        Where the template refuses them, a message of the system, or one of the user behind another one, joins its
        neighbour, an empty line between.

        Args:
            forms: the messages.
            tools: function objects.
            opens: write the beginning of the assistant's next turn, too.

        Raises:
            UsageError: the template refuses the conversation.
        """
        forms = self._joined(forms)
        # Templates ask whether there are tools by `if tools`, and some write a heading for an empty list.
        shown = self.vocabulary.defuse([dict(tool) for tool in tools]) or None
        return self._rendered(forms, tools=shown, add_generation_prompt=opens)[0]

    def marked(self, forms: Sequence[Form]) -> list[str]:
        """What the template itself marks as written by the assistant, in its `generation` blocks.

        Raises:
            UsageError: the template refuses the conversation.
        """
        return self._rendered(forms)[1]

    def _rendered(self, forms: Sequence[Form], **values: Any) -> tuple[str, list[str]]:
        # Imported at the first rendering, as Jinja is.
        from .bounded_template import compiled

        values = {**self._tokenizer.special_tokens_map, **self.options, **values}
        try:
            return compiled(self.text).spans(forms, **values)
        except Exception as error:  # a template is code of its own, and raises what it likes
            roles = ", ".join(form["role"] for form in forms)[:_ERROR_CHARS] or "no messages"
            why = " ".join(str(error).split())[:_ERROR_CHARS]
            raise UsageError(f"the chat template refused a conversation of {roles}: {why}") from error

    def _joined(self, forms: Sequence[Form]) -> Sequence[Form]:
        """The messages as the template takes them."""
        if any(form["role"] == "system" for form in forms) and not self.knows_system:
            forms = [{**form, "role": "user"} if form["role"] == "system" else form for form in forms]
        if not any(one["role"] == other["role"] == "user" for one, other in pairwise(forms)) or not self.alternates:
            return forms
        joined: list[Form] = []
        for form in forms:
            if joined and form["role"] == joined[-1]["role"] == "user":
                joined[-1] = {**joined[-1], "content": f"{joined[-1]['content']}\n\n{form['content']}"}
            else:
                joined.append(form)
        return joined

    def _accepts(self, *roles: str) -> bool:
        """Whether it writes a conversation of these roles."""
        stand_ins: list[Form] = [{"role": role, "content": f"a stand-in of {role}"} for role in roles]
        try:
            self._rendered(stand_ins, tools=None, add_generation_prompt=True)
        except UsageError:
            return False
        return True

    def form(self, message: Message, *, trusted: bool = False, inline_thoughts: bool = True, name: str = "") -> Form:
        """A message as templates know it.

        Args:
            message: of any role.
            trusted: special tokens in its text keep their meaning; else they are cut.
            inline_thoughts: write its reasoning into the text where the template reads none.
            name: of the function that a tool message comes from.
        """
        text = message.text
        if message.reasoning and inline_thoughts and not self._thoughts:
            text = f"<think>\n{message.reasoning}\n</think>\n\n{text}"
        form: Form = {"content": text}
        if message.role == "tool" and message.call_id:
            form["tool_call_id"] = message.call_id
            if name:
                form["name"] = name
        if message.reasoning:
            form.update(dict.fromkeys(self._thoughts, message.reasoning))
        if trusted:
            form = {key: clean(value) for key, value in form.items()}
        if message.tool_calls:
            form["tool_calls"] = [_call(call) for call in message.tool_calls]
        return {"role": message.role, **(form if trusted else self.vocabulary.defuse(form))}


def _call(call: ToolCall) -> Form:
    arguments: Any = call.arguments
    if isinstance(arguments, str):
        with contextlib.suppress(ValueError):  # templates write a text as it is
            arguments = json.loads(arguments)
    return {"type": "function", "id": call.id, "function": {"name": call.name, "arguments": arguments}}


def template_text(tokenizer: Any, template: str | Path | None) -> str:
    """The Jinja of a template that somebody named.

    Args:
        tokenizer: of transformers.
        template: None for the tokenizer's own; `chatml` for the one that is shipped here; `family` for one of ours with
            the marks of the tokenizer's family; `training` for the variant of the tokenizer's own that TRL has for
            training; else a file, or the template itself.

    Raises:
        UsageError: the template does not exist.
    """
    if template is None:
        if own := own_template(tokenizer):
            return own
        ours = FAMILY if family_of(set(Vocabulary(tokenizer).special.values())) not in ("", SHIPPED) else SHIPPED
        raise UsageError(f"the tokenizer has no chat template; give one, such as template={ours!r}")
    if template == SHIPPED:
        return shipped()
    if template == FAMILY:
        return _of_family(tokenizer)
    if template == TRAINING:
        variant = training_variant(tokenizer)
        if variant is None:
            raise UsageError(
                f"template={TRAINING!r}: TRL has no training variant of this tokenizer's template; give a file, or "
                f"template={FAMILY!r}"
            )
        return variant
    if isinstance(template, str) and ("{%" in template or "{{" in template):
        return template
    try:
        return Path(template).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"template={str(template)!r}: {error.strerror or error}; expected {SHIPPED!r}, {FAMILY!r}, {TRAINING!r}, a "
            "file of Jinja, or the template itself"
        ) from error


def shipped() -> str:
    """The template that comes with this package."""
    return family_template(SHIPPED)


def _of_family(tokenizer: Any) -> str:
    name = family_of(set(Vocabulary(tokenizer).special.values()))
    if not name:
        raise UsageError(
            f"template={FAMILY!r}: the tokenizer has the marks of no family that is known here; give a file of Jinja, "
            "or a tokenizer that has <|im_start|> and <|im_end|> as special tokens"
        )
    return family_template(name)


def own_template(tokenizer: Any) -> str:
    """The tokenizer's own template; empty if it has none."""
    own = tokenizer.chat_template
    if isinstance(own, dict):
        own = own.get("tool_use") or own.get("default")
    return str(own or "")


def training_variant(tokenizer: Any) -> str | None:
    """TRL's variant for training of the tokenizer's own template, None where it has none.

    TRL keeps each template that it knows in a file, and its variant in another beside it; TRL itself is not imported.
    """
    found = importlib.util.find_spec("trl")
    if found is None or found.origin is None or not isinstance(tokenizer.chat_template, str):
        return None
    for file in sorted(Path(found.origin).with_name("chat_templates").glob("*_training.jinja")):
        known = file.with_name(file.name.replace("_training", ""))
        # By the very text, as TRL itself chooses it.
        if known.is_file() and known.read_text(encoding="utf-8") == tokenizer.chat_template:
            return file.read_text(encoding="utf-8")
    return None
