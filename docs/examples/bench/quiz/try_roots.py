"""Try a plugin before it is installed: its task set by name, and its grader on three texts."""

import concertino_roots
from concertino.plugins import PluginManager
from concertino_bench import installed_graders, installed_task_sets

manager = PluginManager(installed=False)
manager.register(concertino_roots, "roots")
roots = installed_task_sets(manager)["roots"]
print([grader.name for grader in installed_graders(manager)])

(task,) = roots.load(count=1)
print(task.question)
for text in ("It is about 1.42.", "It is 1.5", "I do not know."):
    graded = concertino_roots.grade(task, text)
    print(f"{graded.verdict}: {graded.reason}")
