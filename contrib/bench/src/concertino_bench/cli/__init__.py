"""`concertino bench`: generate questions and check them; run systems over tasks and look at what came of it."""

from ._generate import bench
from ._run import graders_command, run_command, tasks_command

for command in (run_command, tasks_command, graders_command):
    bench.add_command(command)

__all__ = ["bench"]
