"""Two thousand tools in one pool: a run lists the few that fit its question."""

import concertino as ct

THINGS = ("timetable", "ferry", "weather", "museum", "hotel")


def tool_of(town: str, thing: str) -> ct.ToolSpec:
    """One of many tools that differ in what they are for."""

    def look_up(day: str = "today") -> str:
        return f"the {thing} of {town}, {day}"

    return ct.tool(look_up, name=f"{town}/{thing}", description=f"Looks up the {thing} of {town}.")


pool = ct.Pool.of(*(tool_of(f"town{n}", thing) for n in range(400) for thing in THINGS))
print("tokens of the whole list:", round(pool.count_context().total, -4))

# What a run on a question would list; `Orchestrator.run` does this by itself.
searched = pool.searched
assert searched is not None
question = "When does the ferry of town77 leave, and what is the weather of town12?"
found = searched.find(question)
print("found first:", *found[:2])
tokens = pool.arranged(found).count_context().total
print("tokens of what is found:", round(tokens, -2))

always = pool.with_search(ct.ToolSearch(above=0, most=5, always=("town0/*",)))
assert always.searched is not None
print("listed:", *[tool["function"]["name"] for tool in always.searched.listing([])])
