"""Drive the same strategy from the trace alone: no model, no tool, the same end."""

import concertino as ct

trace = ct.Trace.load("interrupted.trace.jsonl")
end = ct.replay(trace)
print(end.stop, end.answer.replace("\n", " "))

shorter = ct.replay(trace, ct.ParallelRounds(max_rounds=2))
print(f"with two rounds: {shorter.stop}")
