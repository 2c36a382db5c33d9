"""Several models under one name: the cheapest first, the next when it fails."""

import asyncio

import concertino as ct


class Server(ct.Model):
    """Stands for a server; one that is down refuses every request."""

    def __init__(self, answer: str, down: bool = False) -> None:
        self.answer, self.down = answer, down

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        if self.down:
            raise ct.ProviderError.from_http(500, "the server is down")
        return ct.Reply(self.answer, usage=ct.Usage(input_tokens=200, output_tokens=50))


@ct.agent
async def answer(question: str, *, ctx: ct.Context) -> str:
    """Answer a question with the worker model."""
    return (await ctx.model("worker").chat(question)).text


async def main() -> None:
    pool = ct.Pool.of(
        answer,
        ct.ModelSpec("near/small", lambda: Server("Oslo", down=True), prices=ct.Prices(0.1, 0.4)),
        ct.ModelSpec("far/small", lambda: Server("Oslo"), prices=ct.Prices(0.2, 0.6)),
        ct.ModelSpec("far/large", lambda: Server("Oslo, of course"), prices=ct.Prices(3, 15)),
        ct.router("cheap", "near/small", "far/small", "far/large", policy="lowest-cost", cooldown=60),
        worker="cheap",
    )
    async with ct.Executor() as executor:
        for number in (1, 2):
            asked: list[str] = []

            def note(event: object, asked: list[str] = asked) -> None:
                data = event.to_json()
                if data["t"] == "intent" and data["kind"] == "model":
                    asked.append(data["name"])

            (seen,) = await executor.run([ct.Call("answer", {"question": "Norway?"})], pool, listeners=[note])
            print(number, seen.status, seen.content, f"${seen.usage.usd:.6f}", "asked", " then ".join(asked))


asyncio.run(main())
