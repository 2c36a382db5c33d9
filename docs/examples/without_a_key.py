import concertino as ct
from concertino.testing import ScriptedModel

@ct.tool(timeout=5, cost=ct.Cost(units=1))
def count_letter(text: str, letter: str) -> int:
    """Count how often one letter occurs in a text."""
    return text.count(letter)

calls = [("count_letter", {"text": "banana", "letter": "a"}), ("count_leter", {"text": "kiwi", "letter": "i"})]
leader = ScriptedModel(calls, "<answer>3</answer>")  # or a name of the pool
run = ct.Orchestrator(leader).run_sync("How many a's are in banana?", pool=ct.Pool.of(count_letter))

print(run.answer, [str(seen.status) for seen in run.observations])
print(run.observations[1].error.message)
