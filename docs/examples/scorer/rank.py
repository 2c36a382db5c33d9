"""Which member of a pool is worth asking? The scorer reads what is written of them."""

import concertino as ct
from concertino_scorer import Scorer


def solver(name: str, description: str, units: float) -> ct.ToolSpec:
    """A member that only its description tells apart from others."""

    def solve(question: str) -> str:
        return "42"

    return ct.tool(solve, name=name, description=description, cost=ct.Cost(units=units))


pool = ct.Pool.of(
    solver("bilo", "Answered 37 of 40 questions on organic chemistry correctly.", units=8),
    solver("dura", "An unreliable assistant for organic chemistry; most of its answers had to be corrected.", units=1),
    solver("kemo", "Usually right about organic chemistry, with the odd slip.", units=2),
    solver("nati", "A specialist in contract law.", units=2),
)
question = "Which product forms when ethene reacts with bromine?"
scorer = Scorer.shipped()

print("best first:", *[member.name for member in scorer.rank(question, pool)])
print("cheapest that suffices:", scorer.rank(question, pool, sufficient=0.6)[0].name)
seen = {"bilo": (0, 3)}  # three answers, all wrong: its card lies
print("after three wrong answers:", scorer.rank(question, pool, evidence=seen)[0].name)

listed = ct.Shortlist("scorer/best", most=2)  # what Orchestrator(arrange=...) takes
print("a shortlist:", *[spec.name for spec in listed(question, pool)])
