"""What a training set shares with a test set."""

from concertino_bench import Task
from concertino_bench.loaders import load_toml, overlap

test = list(load_toml("quiz.toml").load())
train = [
    Task("train/1", "How many legs do  two spiders have", ("16",), "number"),
    Task("train/2", "Anna has 3 red apples and 4 green ones, and eats 1. How many apples are left?", ("6",), "number"),
    Task("train/3", "Which river flows through Rome?", ("Tiber",), "text"),
]
report = overlap(train, test)
print(report)

shared = {pair.left for pair in report.pairs}
print([task.id for task in train if task.id not in shared])
