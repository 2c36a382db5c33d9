"""Services and servers whose models may be named without a declaration: the variables with their keys, and addresses.

Messages, `concertino doctor`, `concertino init` and completion read these tables; the provider itself has its own, and
a test holds the two together. A service of anybody else's package is unknown here, and loses nothing by it.
"""

from __future__ import annotations

from collections.abc import Mapping

SERVICE_KEYS: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "azure": ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"),
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION"),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "google": ("GEMINI_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "together": ("TOGETHER_API_KEY",),
}
"""Services on the web, and the environment variables that each needs."""

LOCAL_SERVERS: Mapping[str, str] = {
    "ollama": "http://127.0.0.1:11434/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
    "vllm": "http://127.0.0.1:8000/v1",
    "sglang": "http://127.0.0.1:30000/v1",
}
"""Servers on this machine, and where each listens unless it is told otherwise."""
