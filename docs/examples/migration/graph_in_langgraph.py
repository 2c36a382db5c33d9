"""A graph of fixed steps in LangGraph: two at the same time, then one that needs both."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph

DEGREES = {"Oslo": 4, "Rome": 18}


class State(TypedDict, total=False):
    oslo: int
    rome: int
    warmer: str


def oslo(state: State) -> State:
    return {"oslo": DEGREES["Oslo"]}


def rome(state: State) -> State:
    return {"rome": DEGREES["Rome"]}


def warmer(state: State) -> State:
    return {"warmer": f"warmer in {'Oslo' if state['oslo'] > state['rome'] else 'Rome'}"}


graph = StateGraph(State)
for step in (oslo, rome, warmer):
    graph.add_node(step)
graph.add_edge(START, "oslo")
graph.add_edge(START, "rome")
graph.add_edge(["oslo", "rome"], "warmer")
graph.add_edge("warmer", END)
print(graph.compile().invoke({})["warmer"])
