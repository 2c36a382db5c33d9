"""`concertino bench`: generate questions and check them; run systems over tasks and look at what came of it."""

from concertino_bench.toolscale import command as synthesise_command

from ._generate import bench
from ._report import compare_command, pareto_command, report_command
from ._run import graders_command, run_command, tasks_command
from ._study import study_command

for command in (
    run_command, report_command, compare_command, pareto_command, study_command, synthesise_command, tasks_command,
    graders_command,
):  # fmt: skip
    bench.add_command(command)

__all__ = ["bench"]
