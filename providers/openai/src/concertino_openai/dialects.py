"""A dialect: what one kind of server expects and what it sends back, as plain data.

All OpenAI-compatible servers share one protocol and differ in names, in what they enforce and in what they refuse. Each
difference is one field here, and each field is also an option of a model, so an unknown server needs
no code. A preset says how it is known: `exercised` against the real server, or only from its `documentation`.

Invariant: nothing here depends on the *model*; what does is an option of the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

Evidence = Literal["exercised", "documentation"]
SchemaStyle = Literal["json_schema", "structured_outputs", "json_object_schema", "json_object", "format", "instruction"]
ThinkStyle = Literal["tags", "open", "off"]

SCHEMA_STYLES: tuple[str, ...] = get_args(SchemaStyle)
THINK_STYLES: tuple[str, ...] = get_args(ThinkStyle)


@dataclass(frozen=True, slots=True)
class ServerDialect:
    """The dialect of one kind of server.

    Attributes:
        name: name of the preset.
        evidence: how the preset is known.
        base_url: where the server is, up to and including `/v1`, if that is the same for everyone. `{NAME}` in it
            stands for an environment variable.
        key_env: name of the environment variable that holds the key, `""` for a server without keys.
        key_header: the header that carries the key; `Authorization` carries `Bearer KEY`, any other the bare key.
        stream: the server can stream. It is then always streamed from, because a cancelled stream ends the work on
            every server, and a cancelled plain request does not.
        stream_usage: the server knows `stream_options: {"include_usage": true}`.
        max_tokens_field: the name of the bound on generated tokens.
        schema_style: how a schema for the reply is sent; `instruction` puts it into a system message.
        logprobs: the server knows `logprobs`.
        token_ids: the server knows `return_token_ids`.
        seed: the server knows `seed`.
        think: how thoughts are marked in the text of servers that do not separate them: between `<think>` and
            `</think>` (`tags`), up to `</think>` because the prompt has opened them (`open`), or not at all (`off`).
        reasoning_field: the name under which an assistant message carries its thoughts back, `""` for never.
        null_content: an assistant message that only calls has `content: null`, else `""`.
        keeps_stop: the server leaves the text that stopped it at the end of the reply; it is taken away here.
        call_errors: the server answers with an error where the model's call cannot be read.
        mute_errors: the server ends a stream before its first event where it refuses the request.
        concurrency: how many requests the server answers at once, if that is a fixed number.
        accepts: kinds of attachments that the server's form has a place for; whether its model reads them is the
            model's matter.
    """

    name: str
    evidence: Evidence = "documentation"
    base_url: str = ""
    key_env: str = ""
    key_header: str = "Authorization"
    stream: bool = True
    stream_usage: bool = True
    max_tokens_field: str = "max_tokens"
    schema_style: SchemaStyle = "json_schema"
    logprobs: bool = True
    token_ids: bool = False
    seed: bool = True
    think: ThinkStyle = "tags"
    reasoning_field: str = ""
    null_content: bool = True
    keeps_stop: bool = False
    call_errors: bool = False
    mute_errors: bool = False
    concurrency: int | None = None
    accepts: tuple[str, ...] = ("image",)

    def with_(self, **changes: Any) -> ServerDialect:
        """A copy with some fields changed."""
        return replace(self, **changes)

    @property
    def base_url_env(self) -> str:
        """The environment variable that holds another address than the preset's, such as `OPENAI_BASE_URL`."""
        return f"{re.sub('[^A-Z0-9]', '_', self.name.upper())}_BASE_URL"

    def options(self, base: ServerDialect | None = None) -> dict[str, Any]:
        """The fields that are options of a model and differ from those of `base`, by default a plain dialect."""
        base = base or ServerDialect("")
        found = {name: value for name in DIALECT_OPTIONS if (value := getattr(self, name)) != getattr(base, name)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


_OF_THE_PRESET = ("name", "evidence", "base_url", "key_env", "concurrency")
DIALECT_OPTIONS = tuple(field.name for field in fields(ServerDialect) if field.name not in _OF_THE_PRESET)
"""Fields of a dialect that a model's options may change."""

PRESETS: Mapping[str, ServerDialect] = MappingProxyType(
    {
        preset.name: preset
        for preset in (
            ServerDialect(
                "openai",
                base_url="https://api.openai.com/v1",
                key_env="OPENAI_API_KEY",
                max_tokens_field="max_completion_tokens",
                think="off",
                accepts=("image", "audio", "file"),
            ),
            ServerDialect(
                "vllm", "exercised", base_url="http://127.0.0.1:8000/v1", token_ids=True, accepts=("image", "audio")
            ),
            ServerDialect("sglang", base_url="http://127.0.0.1:30000/v1"),
            ServerDialect("llama.cpp", base_url="http://127.0.0.1:8080/v1"),
            ServerDialect(
                "llama-cpp-python",
                "exercised",
                base_url="http://127.0.0.1:8000/v1",
                stream_usage=False,
                # It answers 500 to `json_schema`.
                schema_style="json_object_schema",
                null_content=False,
                mute_errors=True,
                concurrency=1,  # a second request ends the first one's stream, unless interrupt_requests is off
            ),
            ServerDialect(
                "transformers",
                "exercised",
                base_url="http://127.0.0.1:8000/v1",
                stream_usage=False,
                # It ignores every field that holds a schema, and answers 200.
                schema_style="instruction",
                logprobs=False,
                keeps_stop=True,
                call_errors=True,
            ),
            ServerDialect("ollama", base_url="http://127.0.0.1:11434/v1"),
            ServerDialect("lmstudio", base_url="http://127.0.0.1:1234/v1"),
            ServerDialect(
                "azure",
                base_url="{AZURE_OPENAI_ENDPOINT}/openai/v1",
                key_env="AZURE_OPENAI_API_KEY",
                key_header="api-key",
                max_tokens_field="max_completion_tokens",
                think="off",
                accepts=("image", "audio", "file"),
            ),
            ServerDialect(
                "bedrock",
                base_url="https://bedrock-mantle.{AWS_REGION}.api.aws/v1",
                key_env="AWS_BEARER_TOKEN_BEDROCK",
                max_tokens_field="max_completion_tokens",
            ),
            ServerDialect(
                "groq",
                base_url="https://api.groq.com/openai/v1",
                key_env="GROQ_API_KEY",
                max_tokens_field="max_completion_tokens",
                logprobs=False,
            ),
            ServerDialect(
                "mistral",
                base_url="https://api.mistral.ai/v1",
                key_env="MISTRAL_API_KEY",
                # The last chunk has the usage anyway, and unknown fields are refused; its seed is `random_seed`.
                stream_usage=False,
                logprobs=False,
                seed=False,
            ),
            ServerDialect("together", base_url="https://api.together.xyz/v1", key_env="TOGETHER_API_KEY"),
            ServerDialect(
                "openrouter",
                base_url="https://openrouter.ai/api/v1",
                key_env="OPENROUTER_API_KEY",
                accepts=("image", "audio", "file"),
            ),
            ServerDialect(
                "google",
                base_url="https://generativelanguage.googleapis.com/v1beta/openai",
                key_env="GEMINI_API_KEY",
                accepts=("image", "audio"),
                logprobs=False,
                seed=False,
                think="off",
            ),
            ServerDialect(
                "deepseek",
                base_url="https://api.deepseek.com",
                key_env="DEEPSEEK_API_KEY",
                accepts=(),
                # It promises JSON, and has no field for a schema.
                schema_style="json_object",
                seed=False,
            ),
        )
    }
)
"""The servers with a name, and their dialects."""
