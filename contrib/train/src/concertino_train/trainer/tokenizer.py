"""A tokenizer in name only, for policies whose codec has none: TRL asks for the padding and the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concertino_local.codec import Codec
    from transformers import PreTrainedTokenizerBase


def codec_tokenizer(codec: Codec) -> PreTrainedTokenizerBase:
    """A tokenizer whose tokens are numbers, with the codec's padding and end."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = {f"<{number}>": number for number in range(codec.size)}
    plain = Tokenizer(models.WordLevel(words, unk_token=f"<{codec.pad_id}>"))
    make: Any = PreTrainedTokenizerFast  # its constructor has no annotations
    tokenizer: PreTrainedTokenizerBase = make(
        tokenizer_object=plain, pad_token=f"<{codec.pad_id}>", eos_token=f"<{codec.end_ids[0]}>"
    )
    return tokenizer
