"""A provider of chat models: one class that talks to the server, and two hooks."""

import aiohttp
import concertino as ct


class ChatServer(ct.Model):
    """A model behind an OpenAI-style chat endpoint."""

    def __init__(self, url: str, model: str) -> None:
        self._url, self._model = url, model
        self._session: aiohttp.ClientSession | None = None

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        self._session = self._session or aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=5)
        )
        body = {
            "model": self._model,
            "messages": [{"role": message.role, "content": message.text} for message in request.messages],
            "max_tokens": request.sampling.max_tokens or 256,
        }
        headers = {"Idempotency-Key": request.idempotency_key}
        async with self._session.post(self._url, json=body, headers=headers) as response:
            if response.status != 200:
                after = response.headers.get("Retry-After", "")
                seconds = float(after) if after.replace(".", "").isdigit() else None
                raise ct.ProviderError.from_http(response.status, (await response.text())[:200], seconds)
            data = await response.json()
        choice, usage = data["choices"][0], data["usage"]
        return ct.Reply(
            choice["message"]["content"],
            usage=ct.Usage(input_tokens=usage["prompt_tokens"], output_tokens=usage["completion_tokens"]),
            finish_reason=choice["finish_reason"],
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


@ct.hookimpl
def concertino_models() -> list[ct.ModelSpec]:
    """What is there without any declaration."""
    small = lambda: ChatServer("http://127.0.0.1:8000/v1/chat/completions", "small")  # noqa: E731
    return [ct.ModelSpec("small", small, prices=ct.Prices(0.10, 0.40, as_of="2026-01-15"), concurrency=8)]


@ct.hookimpl
def concertino_declare_model(name: str, options: dict) -> ct.ModelSpec:
    """What a pool file declares: [models."mine/name"] with the key `url`."""
    url = options.get("url")
    if options.keys() != {"url"} or not str(url).startswith("http"):
        raise ct.SpecError(f'{options}: expected url = "http://…/v1/chat/completions" and nothing else')
    return ct.ModelSpec(name, lambda: ChatServer(url, name))
