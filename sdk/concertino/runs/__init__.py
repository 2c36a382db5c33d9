"""Runs: a question, driven through a strategy's machine, a model and the executor, to an answer.

orchestrator   starts, resumes and replays runs      loop      drives one run
stepped        a run driven by its holder            eager     calls that start while the model still writes
run            what a run returns                    shared_model   a model that several runs use

They are public as `concertino.Orchestrator`, `concertino.Run` and so on.
"""
