"""One answer for each grader. The sandbox is the pool's own; the judge is scripted, so no model is needed."""

import asyncio
from collections.abc import Mapping
from typing import Any

import concertino as ct
from concertino_bench import Submission, Task
from concertino_bench.graders import all_graders
from concertino_bench.toolkits import digest

FUNCTION = {"name": "weather.at", "parameters": {"properties": {"city": {"type": "string"}}}}
DOUBLE = {"tests": ["assert double(2) == 4", "assert double(-1) == -2"], "entry_point": "double"}
TASKS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "exact-match": (("Tisch",), {"aliases": ["Tisch School of the Arts"]}),
    "token-f1": (("19 June 2013",), {}),
    "verbatim": (('{"a": 1, "b": [2]}',), {}),
    "contains": (("Ben",), {}),
    "numeric": (("70,000",), {}),
    "math": ((r"\frac{1}{2}",), {}),
    "choice": (("B",), {"choices": ["Rome", "Paris", "Oslo"]}),
    "multi-answer": (("7", "12"), {}),
    "drop": (("3",), {}),
    "unit-tests": ((), DOUBLE),
    "input-output": ((), {"tests": [{"input": "2 2\n", "output": "4\n"}, {"input": "2 3\n", "output": "5\n"}]}),
    "call-match": ((), {"functions": [FUNCTION], "ground_truth": [{"weather.at": {"city": ["Bern", "Berne"]}}]}),
    "call-match-official": (
        (),
        {
            "functions": [FUNCTION],
            "ground_truth": [{"weather.at": {"city": ["Bern", "Berne"]}}],
            "category": "simple_python",
        },
    ),
    "call-states": (
        (),
        {
            "involved_classes": ["MathAPI"],
            "turn_calls": [[{"name": "add", "arguments": {"a": 1, "b": 2}}]],
        },
    ),
    "final-state": ((), {"digest": digest({"doors": {"red": "open"}})}),
    "judged-state": (
        (),
        {"digest": digest({"lamp": "on"}), "statements": ["The agent named the city with its state."]},
    ),
    "environment": ((), {}),
    "workflow-match": ((), {"nodes": {"1": "boil water", "2": "pour it"}, "edges": [["1", "2"]]}),
    "llm-judge": (("Louisville",), {}),
    "judge-simpleqa": (("Louisville",), {}),
    "judge-hle": (("Louisville",), {}),
    "judge-browsecomp-plus": (("Louisville",), {}),
    "judge-frames": (("Louisville",), {}),
}
SUBMISSIONS = {
    "exact-match": Submission("So the answer is: the Tisch School of the Arts."),
    "token-f1": Submission("<answer>June 19th, 2013</answer>"),
    "verbatim": Submission('Answer: {"b": [2.0], "a": 1}'),
    "contains": Submission("The last one was Ben, after Cleo."),
    "numeric": Submission("She has <<80000-10000=70000>>70000 left.\n#### $70,000.00"),
    "math": Submission(r"Hence $x = \boxed{0.5}$."),
    "choice": Submission("None of them fits. The answer is (None of the above)."),
    "multi-answer": Submission(r"\boxed{7}, \boxed{12} and, to be safe, \boxed{13}"),
    "drop": Submission("The answer is 4 yards."),
    "unit-tests": Submission("```python\ndef double(x):\n    return abs(2 * x)\n```"),
    "input-output": Submission("```python\na, b = map(int, input().split())\nprint(a * b)\n```"),
    "call-match": Submission("", calls=[{"name": "weather_at", "arguments": {"city": "bern"}, "status": "OK"}]),
    "call-match-official": Submission("```python\n[weather.at(city='Bern')]\n```"),
    "call-states": Submission("", state=[{"name": "add", "arguments": {"a": 2, "b": b}} for b in (2, 1)]),
    "final-state": Submission("Done.", state={"doors": {"red": "open"}}),
    "judged-state": Submission("Louisville, Kentucky: the lamp is on.", state={"lamp": "on"}),
    "environment": Submission("I am there!", state={"reached": False, "reason": "a wall is in the way"}),
    "workflow-match": Submission("Node:\n1: boil the water\n2: pour it\nEdge: (1,2) (2,END)"),
    "llm-judge": Submission("Louisville, Kentucky"),
    "judge-simpleqa": Submission("Kentucky, I think. I do not know the city."),
    "judge-hle": Submission("Louisville, Kentucky. Confidence: 80 %"),
    "judge-browsecomp-plus": Submission("Louisville, Kentucky. Confidence: 80 %"),
    "judge-frames": Submission("Louisville, Kentucky"),
}


class Services:
    """What graders may use: tools through the executor, and a judge."""

    def __init__(self, pool: ct.Pool, executor: ct.Executor) -> None:
        self.pool, self.executor = pool, executor

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ct.Observation:
        (seen,) = await self.executor.run([ct.Call(name, dict(arguments))], self.pool)
        return seen

    async def ask(self, role: str, request: ct.ChatRequest) -> ct.Reply:
        verdicts = (request.schema or {})["properties"]["verdict"]["enum"]
        if "not attempted" in verdicts:
            return ct.Reply('{"reason": "the city is missing", "verdict": "not attempted"}')
        return ct.Reply('{"reason": "the same city, with its state", "verdict": "right", "confidence": 80}')


async def main() -> None:
    async with ct.Executor() as executor:
        services = Services(ct.Pool.installed("code/python"), executor)
        for grader in all_graders():
            answers, metadata = TASKS[grader.name]
            task = Task(f"example/{grader.name}", "?", answers, "example", metadata=metadata)
            seen = await grader.grade(task, SUBMISSIONS[grader.name], services)
            print(f"{grader.name}: {seen.verdict}, {seen.reason}")


asyncio.run(main())
