"""A service that continues while its models are exchanged."""

import asyncio

import concertino as ct


class Expert(ct.Model):
    """Stands for a model server."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        await asyncio.sleep(0.05)
        return ct.Reply(f"as {self.name} says", usage=ct.Usage(input_tokens=1000, output_tokens=100))

    async def close(self) -> None:
        print(f"{self.name} is closed")


class Leader(ct.Model):
    """Asks the expert, then answers; a trained orchestrator stands here in earnest."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        if len(request.messages) == 2:
            call = '<tool_call>{"name": "ask_expert", "arguments": {"task": "the question"}}</tool_call>'
            return ct.Reply(f"<reasoning>The expert knows.</reasoning>{call}")
        return ct.Reply(f"<answer>{request.messages[-1].text.partition('as ')[2].partition(' says')[0]}</answer>")


def expert(name: str, price: float) -> ct.ModelSpec:
    return ct.ModelSpec(name, lambda: Expert(name), prices=ct.Prices(price, price))


async def main() -> None:
    leader = ct.ModelSpec("lab/leader", Leader, prices=ct.Prices(0, 0))
    pool = ct.Pool.of(leader, expert("lab/expert", 1.0), orchestrator="lab/leader").offering("lab/expert")
    live = ct.LivePool(pool)
    async with ct.Executor() as executor:
        orchestrator = ct.Orchestrator(executor=executor)

        before = orchestrator.start("Who are you?", pool=live)
        await asyncio.sleep(0.02)  # the first question is under way
        print(live.swap(live.current.replace("lab/expert", expert("lab/successor", 2.0))))
        after = orchestrator.start("Who are you?", pool=live)
        for run in (await before, await after):
            print(run.answer, f"${run.usage.usd:.4f}")
        print("two pools:", (await before).pool_id != (await after).pool_id)
    print("done")


asyncio.run(main())
