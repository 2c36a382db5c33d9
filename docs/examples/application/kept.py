"""A conversation that is kept, with a picture in it."""

import asyncio
import tempfile

import concertino as ct
from concertino.testing import ScriptedModel

PICTURE = b"\x89PNG\r\n\x1a\n..."  # or a path: ct.Image("cat.png")


@ct.tool
def look_up(name: str) -> str:
    """Look up a name."""
    return f"{name}: a cat"


async def main(folder: str) -> None:
    pool = ct.Pool.of(look_up)
    session = ct.Session("ada", folder, budget=ct.Budget(calls=20))
    leader = ct.Orchestrator(ScriptedModel("<answer>Tom.</answer>", "<answer>Grey.</answer>"))

    await leader.run(["Who is this?", ct.Image(PICTURE, name="cat.png")], pool=pool, history=session)
    await leader.run("And the colour?", pool=pool, history=ct.Session("ada", folder))

    for turn in session.turns:
        print(turn.question.replace("\n", " "), "-", turn.answer)
    print([image.name for image in session.attachments()], session.usage.calls, "calls")


with tempfile.TemporaryDirectory() as chosen:
    asyncio.run(main(chosen))
