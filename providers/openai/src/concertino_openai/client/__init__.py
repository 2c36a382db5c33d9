"""Clients of one OpenAI-compatible server: chat, embeddings, and the list of its models.

from concertino_openai.client import OpenAIModel

model = OpenAIModel(server="vllm", model="Qwen/Qwen3-8B", base_url="http://127.0.0.1:8000/v1")
"""

from .embeddings import Embedder
from .listing import list_models
from .model import OpenAIModel

__all__ = ["Embedder", "OpenAIModel", "list_models"]
