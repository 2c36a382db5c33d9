"""A model of your own: one method, and a spec that says what it costs."""

import asyncio
import json
import urllib.error
import urllib.request

import concertino as ct


class ChatServer(ct.Model):
    """Talks to a server with an OpenAI-style chat endpoint."""

    def __init__(self, url: str, model: str) -> None:
        self._url, self._model = url, model

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        body = {
            "model": self._model,
            "messages": [{"role": message.role, "content": message.text} for message in request.messages],
            "max_tokens": request.sampling.max_tokens,
        }
        data = await asyncio.to_thread(self._post, body, request.idempotency_key)
        choice, usage = data["choices"][0], data["usage"]
        return ct.Reply(
            choice["message"]["content"],
            usage=ct.Usage(input_tokens=usage["prompt_tokens"], output_tokens=usage["completion_tokens"]),
            finish_reason=choice["finish_reason"],
        )

    def _post(self, body: dict, key: str) -> dict:
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        post = urllib.request.Request(self._url, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(post, timeout=60) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            after = error.headers.get("Retry-After")
            raise ct.ProviderError.from_http(error.code, error.reason, float(after) if after else None) from error


def chat_server(url: str, model: str) -> ct.ModelSpec:
    """The spec that a pool holds; a plugin returns it from `concertino_models`."""
    return ct.ModelSpec(
        "my-server/small",
        lambda: ChatServer(url, model),
        description="Quick; good at short questions, weak at arithmetic.",
        prices=ct.Prices(input=0.10, output=0.40, as_of="2026-01-15"),
        context=32_768,
        concurrency=8,
    )
