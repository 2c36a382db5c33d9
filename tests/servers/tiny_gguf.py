"""Write the tiny test model as a GGUF file for llama.cpp: the same weights, tokenizer and template.

    PYTHON tests/servers/tiny_gguf.py MODEL_FOLDER FILE.gguf

PYTHON is the one that has llama_cpp; beside it this needs only `gguf` and numpy, no torch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_OUTSIDE = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}


def write(model: Path, file: Path) -> None:
    """Write the model of a folder into a file."""
    import gguf

    writer = gguf.GGUFWriter(str(file), "qwen3")
    _write_shape(writer, json.loads((model / "config.json").read_text(encoding="utf-8")))
    _write_tokenizer(writer, model)
    for name, values in _tensors(model / "model.safetensors"):
        writer.add_tensor(_renamed(name), values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_shape(writer: Any, config: dict[str, Any]) -> None:
    writer.add_name("tiny")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])


def _write_tokenizer(writer: Any, model: Path) -> None:
    import gguf

    read = json.loads((model / "tokenizer.json").read_text(encoding="utf-8"))
    tokens = {index: token for token, index in read["model"]["vocab"].items()}
    kinds = dict.fromkeys(tokens, gguf.TokenType.NORMAL)
    for added in read["added_tokens"]:
        tokens[added["id"]] = added["content"]
        kinds[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    ids = {token: index for index, token in tokens.items()}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([tokens[index] for index in range(len(tokens))])
    writer.add_token_types([kinds[index] for index in range(len(tokens))])
    writer.add_token_merges([" ".join(pair) for pair in read["model"]["merges"]])
    writer.add_eos_token_id(ids["<|im_end|>"])
    writer.add_pad_token_id(ids["<|endoftext|>"])
    writer.add_add_bos_token(False)
    writer.add_chat_template((model / "chat_template.jinja").read_text(encoding="utf-8"))


def _tensors(file: Path) -> list[tuple[str, Any]]:
    """Names and values of a safetensors file of float32."""
    import numpy as np

    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    body = memoryview(data)[8 + size :]
    found = []
    for name, about in header.items():
        if name != "__metadata__":
            begin, end = about["data_offsets"]
            found.append((name, np.frombuffer(body[begin:end], dtype="<f4").reshape(about["shape"])))
    return found


def _renamed(name: str) -> str:
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    number, _, part = name.removeprefix("model.layers.").partition(".")
    return f"blk.{number}.{_LAYER[part.removesuffix('.weight')]}.weight"


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
