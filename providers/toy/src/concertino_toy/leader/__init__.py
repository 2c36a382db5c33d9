"""The scripted leader: an orchestrator for all five strategies that is a fixed policy, written by hand.

conversation       the conversation as it reads it: members, question, calls, responses, budget
evidence         who answered which part of the question, and what the checks said
policy           which calls come next
repair           how a refused call is corrected
rounds           turns of parallel rounds and of serial calls
dependency_plan  turns of dependency plans
agent_graph      graphs of agents
notebook         the stateless prompts of serial calls
scripted         the model, which chooses among these
"""

from .scripted import ScriptedLeader

__all__ = ["ScriptedLeader"]
