from pathlib import Path

import concertino as ct
from concertino.testing import ScriptedModel
from concertino_view import write_page


@ct.tool
def price(fruit: str) -> float:
    """What a kilo costs."""
    return {"kiwi": 4.0, "pear": 3.0}[fruit]


calls = [("price", {"fruit": "kiwi"}), ("price", {"fruit": "plum"})]
leader = ScriptedModel(calls, "<answer>A kilo of kiwis costs $4; nobody sells plums.</answer>")
trace = Path("fruit.trace.jsonl")
ct.Orchestrator(leader).run_sync("What do kiwis and plums cost?", pool=ct.Pool.of(price), trace=trace)

page = write_page(trace, "fruit.html")
print(page, "plum" in page.read_text())
