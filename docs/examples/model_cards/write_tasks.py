"""A task file for the simulated models: questions in their grammar, in three kinds."""

import json
from pathlib import Path
from random import Random

from concertino_toy.problems import make_question

SIZES = {
    "short": {"depth": 1, "breadth": 1},
    "long": {"depth": 8, "breadth": 2},
    "false note": {"depth": 3, "breadth": 1, "lure": True},
}

lines = []
for kind, sizes in SIZES.items():
    for number in range(8):
        question, answers = make_question(Random(f"{kind} {number}"), 1, **sizes)
        lines.append({"question": question, "answer": answers[0], "kind": kind})
Path("tasks.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
print(len(lines), "tasks")
