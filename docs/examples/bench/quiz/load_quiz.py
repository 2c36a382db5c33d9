"""Load a declared file: with three lines, and with more keys."""

from pathlib import Path

from concertino_bench import DataError
from concertino_bench.loaders import load_toml, subset

for task in load_toml("quiz.toml").load():
    print(task.id, task.kind, task.answers)

(task,) = subset(load_toml("quiz_more.toml").load(), 1, seed=3)
print(task)

Path("broken.toml").write_text('path = "questions.jsonl"\nquestion = "txt"\nanswer = "gold"\n', encoding="utf-8")
try:
    list(load_toml("broken.toml").load())
except DataError as error:
    print(error)
