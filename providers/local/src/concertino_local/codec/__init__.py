"""One codec between messages and token ids, for serving and for training.

contract    `Codec`, what training needs of any codec, and `ByteCodec`
vocabulary  texts to token ids and back; special tokens in what others wrote are ordinary text
template    a chat template, and messages in the form that templates know
serving     `TemplateCodec`: prompts of any template, with the sampled ids of earlier turns
turns       a conversation in pieces: its beginning, the assistant's turns, what stands between them
checks      what a template and a tokenizer must do for training
chat        `ChatCodec`: a `TemplateCodec` that encodes turn by turn, for training
dialects    reasoning and tool calls in a reply that is still being generated
calls       reasoning and tool calls in a sampled turn
text        from sampled tokens to text, piece by piece
"""

from .chat import ChatCodec, EncodedConversation
from .contract import ByteCodec, Codec, Ids, Tools
from .serving import TemplateCodec

__all__ = [
    "ByteCodec",
    "ChatCodec",
    "Codec",
    "EncodedConversation",
    "Ids",
    "TemplateCodec",
    "Tools",
]
