"""The control tokens of model families: what their chat templates write, and nobody else may.

A list as data, with the published tokenizer that each part was taken from; `foreign_text` breaks them. Most tokens have
one of a few shapes (`<|…|>`, `<｜…｜>`, `<…|>`), which are recognised as shapes, so that a token of tomorrow is broken
too. The words of `ANGLE_WORDS` and `BRACKET_WORDS` have no shape of their own and are recognised by name.

Invariant: every token of `FAMILIES` is one that `foreign_text` breaks; a test holds that.
"""

from __future__ import annotations

FAMILIES: dict[str, tuple[str, ...]] = {
    # Qwen/Qwen3-8B, Qwen/Qwen2.5-Coder-7B: tokenizer_config.json; other ChatML models use the first three.
    "qwen": (
        *("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"),
        *("<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|object_ref_start|>", "<|box_start|>", "<|quad_start|>"),
        *("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"),
    ),
    # meta-llama/Llama-3.1-8B-Instruct, Llama-4-Scout: tokenizer_config.json; Llama-2-7b-chat: tokenization code.
    "llama": (
        *("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        *("<|eom_id|>", "<|python_tag|>", "<|finetune_right_pad_id|>", "<|reserved_special_token_7|>", "<|image|>"),
        *("<|header_start|>", "<|header_end|>", "<|eot|>", "<s>", "</s>", "<unk>", "<<SYS>>", "<</SYS>>"),
    ),
    # mistralai/Mistral-Small-3.2-24B-Instruct-2506, Magistral-Small-2509: tekken.json
    "mistral": (
        *("<s>", "</s>", "<pad>", "<unk>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
        *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[TOOL_CONTENT]", "[IMG]", "[IMG_BREAK]", "[IMG_END]"),
        *("[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[CALL_ID]", "[ARGS]"),
        *("[THINK]", "[/THINK]", "[AUDIO]", "[BEGIN_AUDIO]"),
    ),
    # google/gemma-3-4b-it, google/gemma-4-E4B-it: tokenizer_config.json
    "gemma": (
        *("<bos>", "<eos>", "<pad>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>"),
        *("<end_of_image>", "<image_soft_token>", "<unused99>", "<|turn>", "<turn|>", "<|tool>", "<tool|>"),
        *("<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", "<|channel>", "<channel|>"),
        *("<|think|>", '<|"|>', "<|image|>"),
    ),
    # deepseek-ai/DeepSeek-V3.2, DeepSeek-R1: tokenizer.json; full-width bars, and U+2581 for blanks.
    "deepseek": (
        *("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>", "<｜User｜>", "<｜Assistant｜>"),
        *("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),
        *("<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
        *("<｜tool▁sep｜>", "<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>", "<|EOT|>"),
        *("<｜DSML｜function_calls>", "</｜DSML｜function_calls>", "<｜DSML｜invoke"),
    ),
    # microsoft/Phi-4, Phi-4-mini-instruct: tokenizer_config.json
    "phi": (
        *("<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|im_sep|>", "<|tool|>", "<|/tool|>"),
        *("<|tool_call|>", "<|/tool_call|>", "<|tool_response|>", "<|dummy_85|>", "<|endofprompt|>"),
    ),
    # zai-org/GLM-4.6: tokenizer_config.json
    "glm": (
        *("[gMASK]", "[sMASK]", "[MASK]", "<sop>", "<eop>", "<|system|>", "<|user|>", "<|assistant|>"),
        *("<|observation|>", "<|begin_of_image|>", "<|end_of_image|>", "<|code_prefix|>", "/nothink"),
    ),
    # openai/gpt-oss-20b: the harmony format
    "harmony": (
        *("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>"),
        *("<|startoftext|>", "<|endofprompt|>", "<|reserved_200000|>"),
    ),
    # moonshotai/Kimi-K2-Instruct: tokenizer_config.json
    "kimi": (
        *("[BOS]", "[EOS]", "[PAD]", "[UNK]", "<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>"),
        *("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_end|>"),
        *("<|tool_call_argument_begin|>", "[EOT]", "[start_header_id]", "[end_header_id]", "[EXTRA_ID_0]"),
    ),
    # CohereLabs/c4ai-command-a-03-2025: tokenizer_config.json
    "cohere": (
        *("<BOS_TOKEN>", "<EOS_TOKEN>", "<PAD>", "<UNK>", "<CLS>", "<SEP>", "<MASK_TOKEN>", "<EOP_TOKEN>"),
        *("<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>"),
        *("<|SYSTEM_TOKEN|>", "<|START_THINKING|>", "<|END_THINKING|>", "<|START_ACTION|>", "<|END_ACTION|>"),
        *("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>"),
    ),
    # NousResearch/Hermes-3-Llama-3.1-8B: chat template; these are tags that strategies write, too.
    "hermes": ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<tools>", "</tools>"),
    # Tags of thoughts, and the switches of Qwen3, GLM and Nemotron: written by strategies or by an application, too.
    "thoughts": ("<think>", "</think>", "/think", "/no_think", "/nothink"),
    # MiniMaxAI/MiniMax-M2: tokenizer_config.json
    "minimax": (
        *("]~b]", "]~!b[", "[e~[", "]!p~[", "]!d~[", "]<]minimax[>[", "]<]image[>[", "<minimax:tool_call>"),
        *("</minimax:tool_call>", "<fim_prefix>", "<filename>", "<reponame>", "<code_interpreter>"),
    ),
    # ibm-granite/granite-3.3-8b-instruct: tokenizer_config.json
    "granite": (
        *("<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>", "<|start_of_cite|>", "<|end_of_plugin|>"),
        *("<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<reponame>", "<|end_of_text|>"),
    ),
    # LGAI-EXAONE/EXAONE-4.0-32B, ByteDance-Seed/Seed-OSS-36B-Instruct, baichuan-inc, google/t5: tokenizer files
    "others": (
        *("[|system|]", "[|user|]", "[|assistant|]", "[|endofturn|]", "[|tool|]", "[BOS]", "[EOS]", "[PAD]"),
        *("<seed:bos>", "<seed:eos>", "<seed:think>", "</seed:think>", "<seed:tool_call>", "<reserved_106>"),
        *("<extra_id_0>", "[CLS]", "[SEP]", "[UNUSED_TOKEN_145]"),
    ),
}
"""Tokens by family."""

WRITTEN_BY_STRATEGIES = frozenset((*FAMILIES["hermes"], *FAMILIES["thoughts"]))
"""Tokens that are also part of what strategies write, or of what an application may say to its model."""

ANGLE_WORDS = (
    *("s", "bos", "eos", "pad", "unk", "mask", "cls", "sep", "PAD", "UNK", "CLS", "SEP", "sop", "eop"),
    *("BOS_TOKEN", "EOS_TOKEN", "EOP_TOKEN", "MASK_TOKEN", r"(?:start|end)_of_(?:turn|image|audio|utterance)"),
    *("image_soft_token", r"fim_\w+", "filename", "reponame", "repo_name", "file_sep", "code_interpreter"),
    *(r"unused\d+", r"reserved_\d+", r"extra_id_\d+", r"seed:\w+", r"minimax:\w+"),
)
"""Tokens `<word>` and `</word>`, as patterns."""

BRACKET_WORDS = (
    *("INST", "AVAILABLE_TOOLS", "TOOL_RESULTS", "TOOL_CALLS", "TOOL_CONTENT", "SYSTEM_PROMPT", "THINK", "ARGS"),
    *("CALL_ID", "IMG", "IMG_BREAK", "IMG_END", "AUDIO", "BEGIN_AUDIO", "PREFIX", "MIDDLE", "SUFFIX"),
    *("gMASK", "sMASK", "MASK", "BOS", "EOS", "PAD", "UNK", "CLS", "SEP", "EOT", "start_header_id", "end_header_id"),
    *(r"EXTRA_ID_\d+", r"UNUSED_TOKEN_\d+", r"MODEL_SETTINGS"),
)
"""Tokens `[WORD]` and `[/WORD]`, as patterns."""

IN_ANGLES = "|".join(
    (
        # <|im_end|>, <|/tool|>, <|turn>, <｜User｜>, </｜DSML｜…; none has a blank, so `a <| b |> c` is code.
        r"/?[|｜][^\s<>|｜]{1,80}(?:[|｜]|[|｜]?>)",
        r"[A-Za-z_]{1,40}\|>",
        rf"/?(?:{'|'.join(ANGLE_WORDS)})>",
        r"</?SYS>>",
    )
)
"""What follows the `<` of a control token, as a pattern."""

IN_BRACKETS = rf"/?(?:{'|'.join(BRACKET_WORDS)})\]|\|[a-z]{{1,20}}\|\]|e~\["
"""What follows the `[` of a control token, as a pattern."""

BEHIND_BRACKETS = r"~!?b[\[\]]|![a-z]~\[|<\][a-z_]{1,20}\[>\["
"""What follows the `]` of a control token of MiniMax, as a pattern."""
