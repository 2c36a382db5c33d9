"""What papers pay for, and what the code that was published with them pays for."""

from concertino_bench.metrics import Preference
from concertino_train.episodes import Episode, RoleTurn, Totals
from concertino_train.rewards import PRESETS, Reward


def episode(name: str, right: bool = True, **more) -> Episode:
    totals = Totals(usd=more.pop("usd", 0.0), seconds=more.pop("seconds", 0.0))
    return Episode(name, "q", correct=float(right), verdict="right" if right else "wrong", totals=totals, **more)


def show(preset: str, group: list[Episode]) -> None:
    scores = PRESETS[preset].score(group)
    print(f"{preset:<26}", {each.id: round(scored.total, 2) for each, scored in zip(group, scores, strict=True)})


little_cost = Preference(usd=1)
group = [episode(f"${usd}", usd=usd, preference=little_cost) for usd in (1, 2, 4)]
show("toolorchestra", group)
show("toolorchestra-as-released", group)

use_search = Preference({"search": 1})
group = [episode(f"{n} searches", uses={"search": n} if n else {}, preference=use_search) for n in (0, 1, 3)]
show("toolorchestra", group)
show("toolorchestra-as-released", group)
share = {"preset": "toolorchestra", "terms": {"preference": {"tools": "share"}}}
print(f"{'with tools: share':<26}", [scored.total for scored in Reward.from_json(share).score(group)])

group = [episode("right"), episode("any text", right=False, answer="?")]
show("mas-orchestra", group)
show("mas-orchestra-as-released", group)

group = [episode("Paris|City of Light", right=False, answer="Paris|City of Light", expected=("Paris", "City of Light"))]
show("gap", group)
show("gap-as-released", group)

scores = {"format": 1.0, "legal": 1.0, "shortest": 0.0}
turn = RoleTurn(1, "planner", team=0.5, scores=scores, facts={"environment": -0.1})
group = [episode("a step", domain="plan-path", turns=(turn,))]
for preset in ("at-grpo", "at-grpo-lambda", "at-grpo-as-released"):
    show(preset, group)
