"""Simulated models, some of which fail on purpose, and a question of four problems."""

import concertino as ct
from concertino_toy.demo import demo_members, demo_question

QUESTION, ANSWERS = demo_question()

pool = ct.Pool(demo_members()).bind(orchestrator="toy/leader")

if __name__ == "__main__":
    for member in pool.members:
        print(f"{member.kind:<5} {member.name:<16} {member.description.splitlines()[0][:50]}")
    print(f"{len(ANSWERS)} problems, answers {ANSWERS}")
