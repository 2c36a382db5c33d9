"""What every part of the bench shares: a task, the grade of an answer, a system, and the item that is kept of a run.

task        a question with its right answers, and a named source of them
grade       a verdict with its reason, and what a grader is
system      what is compared: a strategy, who leads it, which members it may use
unseen      pools whose names, order, wording, prices and members are random for each task
item        what one system did with one task: the line of a results file
installed   the task sets and graders of all installed distributions

Their names are offered by `concertino_bench` itself.
"""
