"""Runs: a question, driven through a strategy's machine, a model and the executor, to an answer.

orchestrator  starts and resumes runs             loop         drives one run
run_input     what a run is given                 run          what a run returns
handle        an active run                       trace_replay a strategy driven from a trace
setup         what a trace keeps of the start     stepped      a run driven by its holder
history       earlier turns of a conversation     session      a conversation that is kept
answer_type   the type of an answer               eager        calls that start while the model still writes
shared_model  a model that several runs use       guards       checks of question, calls, results and answer
options       what an orchestrator is made with   preflight    what is checked before a run begins
registry      runs by id, from any process        run_log      a run as lines of a log
packed        the events of a finished run, until somebody looks at them

They are public as `concertino.Orchestrator`, `concertino.Run` and so on.
"""
