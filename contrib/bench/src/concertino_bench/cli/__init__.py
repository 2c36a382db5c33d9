"""`concertino bench`: generate questions and check them; run systems over tasks and look at what came of it."""

from ._generate import bench
from ._run import graders_command, run_command, tasks_command
from ._study import study_command

for command in (run_command, study_command, tasks_command, graders_command):
    bench.add_command(command)

__all__ = ["bench"]
