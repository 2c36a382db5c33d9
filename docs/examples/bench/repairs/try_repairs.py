"""Try a domain before it is installed: models that follow a script play the agent and the customer."""

import asyncio
import tempfile
from pathlib import Path

import concertino_repairs
from concertino.plugins import PluginManager
from concertino.testing import ScriptedModel, make_pool
from concertino_bench import System, installed_graders, installed_task_sets
from concertino_bench.runner import Evaluation, Selection, evaluate

manager = PluginManager(installed=False)
manager.register(concertino_repairs, "repairs")
repairs = installed_task_sets(manager)["own/repairs"]


def say(text: str) -> list[tuple[str, dict[str, str]]]:
    return [("talk_to_user", {"message": text})]


agent = ScriptedModel(
    say("Hello. How can I help?"),
    say("Please tighten the cable, and then look at the brake."),
    [("close_order", {"order_id": "R1"})],
    say("Your order is closed."),
    "<answer>The brake holds, and R1 is closed.</answer>",
)
customer = ScriptedModel(
    "My brake does not hold. My order is R1.",
    [("tighten_cable", {})],
    [("look_at_brake", {})],
    "Now it holds.",
    "Thank you! ###STOP###",
    native=True,
)

options = {"path": Path(__file__).parent, "user": "customer"}
evaluation = Evaluation([Selection(repairs, options)], [System("agent")])
with tempfile.TemporaryDirectory() as folder:
    pool = make_pool(orchestrator=agent, customer=customer)
    outcome = asyncio.run(evaluate(evaluation, pool, Path(folder) / "r.jsonl", graders=installed_graders()))
for item in outcome.items:
    print(f"{item.key.task}: {item.verdict}, {item.reason}")
    print({name: use.calls for name, use in item.members.items() if use.kind != "model"})
