"""`concertino train inspect-template`: what a chat template makes of a conversation, and what of it is trained."""

from __future__ import annotations

from typing import Any

import click

from concertino_train.running.quiet import set_quiet_environment

from .options import common_options
from .settings import write, write_json


@click.command("inspect-template")
@click.argument("model")
@click.option(
    "--template",
    default="",
    metavar="FILE|NAME",
    help="Instead of the tokenizer's own: a file, 'family' for one with its marks, or 'training' for TRL's variant.",
)
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="A variable of the template.")
@common_options
def template_command(model: str, template: str, options: tuple[str, ...], as_json: bool) -> None:
    """Show a conversation of two turns as MODEL reads it, with marks around what would be trained.

    MODEL is a folder with a tokenizer, or a name in the local Hugging Face cache. A template that cannot be trained
    with is an error that says why and what to do.

    JSON: {"template", "fingerprint", "end_ids", "end", "pad_id", "tokens", "trained", "native_calls", "text"}
    """
    set_quiet_environment()
    from concertino import Message
    from concertino_local.codec import ChatCodec

    codec = ChatCodec.load(model, template or None, **dict(_option(text) for text in options))
    talk = [
        Message("system", "You lead others."),
        Message("user", "First question."),
        Message("assistant", "First turn."),
        Message("user", "What came back."),
        Message("assistant", "Second turn."),
    ]
    ids, mask = codec.encode_conversation(talk)
    data: dict[str, Any] = {
        "template": template or "the tokenizer's own",
        "fingerprint": codec.fingerprint,
        "end_ids": list(codec.end_ids),
        "end": codec.end_text,
        "pad_id": codec.pad_id,
        "tokens": len(ids),
        "trained": sum(mask),
        "native_calls": codec.problem or "yes",
        "text": _marked(codec, ids, mask),
    }
    if as_json:
        write_json(data)
        return
    text = data.pop("text")
    write(*(f"{name:<13}{value}" for name, value in data.items()), "", text)


def _marked(codec: Any, ids: Any, mask: Any) -> str:
    """The text with `[[` and `]]` around trained tokens."""
    parts: list[str] = []
    start = 0
    for end in range(1, len(ids) + 1):
        if end == len(ids) or mask[end] != mask[start]:
            text = codec.decode(ids[start:end])
            parts.append(f"[[{text}]]" if mask[start] else text)
            start = end
    return "".join(parts)


def _option(text: str) -> tuple[str, Any]:
    import yaml

    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.UsageError(f"--option {text!r}: expected KEY=VALUE")
    return key, yaml.safe_load(value)
