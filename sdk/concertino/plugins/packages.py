"""Packages of concertino that may be missing: which one brings a provider, and the key that it needs.

Only messages read this table. A provider of anybody else's package is unknown here, and loses nothing by it.
"""

from __future__ import annotations

_KEYS = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY and AZURE_OPENAI_ENDPOINT",
    "bedrock": "AWS_BEARER_TOKEN_BEDROCK and AWS_REGION",
    "deepseek": "DEEPSEEK_API_KEY",
    "google": "GEMINI_API_KEY",
    "groq": "GROQ_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "together": "TOGETHER_API_KEY",
    "llama.cpp": "",
    "lmstudio": "",
    "ollama": "",
    "sglang": "",
    "vllm": "",
    "local": "",
    "code": "",
    "mcp": "",
    "reasoning": "",
    "replay": "",
    "scorer": "",
    "search": "",
    "toy": "",
}
"""Providers, and the variables with the keys of those that have one."""


def install_provider(name: str) -> str:
    """What brings a provider, as the rest of a sentence; empty if nobody knows."""
    if name not in _KEYS:
        return ""
    key = f", and set {_KEYS[name]}" if _KEYS[name] else ""
    return f"install it: pip install 'concertino[{name.replace('.', '-')}]'{key}"
