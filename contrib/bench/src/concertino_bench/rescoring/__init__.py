"""Old results graded anew: other graders and rewards over the traces that are there, without asking anybody.

recorded_run   the run that a trace is the record of, as the object that graders and rewards read
rewarding      what a reward is given of a finished run, and the rewards that are installed
rescore        from a results file and its traces to another results file
"""
