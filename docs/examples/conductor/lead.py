"""A tiny trained model leads a pool of two members; one fails at first."""

import concertino as ct
from concertino_toy.conductor import strategy

ANSWERS = {"Aurora": "17", "quay": "4"}
asked: list[str] = []


def told(question: str) -> str:
    return f"By my count, the answer is {next(ANSWERS[word] for word in ANSWERS if word in question)}."


@ct.tool
def pilot(question: str) -> str:
    """Answers questions of every kind, cheap and quick."""
    return told(question)


@ct.tool
def warden(question: str) -> str:
    """Answers questions of every kind, slow but careful."""
    asked.append(question)
    if "quay" in question and sum("quay" in each for each in asked) == 1:
        raise ConnectionError("the line is dead")
    return told(question)


leader = ct.Orchestrator("toy/conductor", strategy())
pool = ct.Pool.of(pilot, warden, *ct.Pool.installed("toy/conductor").members)
run = leader.run_sync(
    "Problem 1: How many sails has the Aurora?\n\nProblem 2: How deep is the quay, in metres?", pool=pool
)
for turn in run.rounds:
    print(turn.text)
    for seen in turn.observations:
        print("  ", seen.call_id, seen.name, seen.status)
print(run.answer)
