"""Codecs of real models, made of a Hugging Face tokenizer and a chat template.

_codec       `ChatCodec`: the contract of `concertino_train.codec`, and encoding of examples to learn from
_vocabulary  texts to token ids and back; special tokens in what others wrote are ordinary text
_template    a chat template, and messages as templates know them
_turns       a conversation in pieces: its beginning, the assistant's turns, what stands between them
_checks      what a template and a tokenizer must do for training, and what to do where they do not
_calls       native tool calls and thoughts in a text
"""

from ._checks import check_template
from ._codec import ChatCodec, Encoded

__all__ = ["ChatCodec", "Encoded", "check_template"]
