"""Score two rollouts of one question with a reward from a file, and see what it refuses."""

from concertino import UsageError
from concertino_train.episodes import Called, Episode, EpisodeRound, Totals
from concertino_train.rewards import Reward

reward = Reward.load("frugal.yaml")
rounds = (EpisodeRound(calls=(Called("search"), Called("solve"))), EpisodeRound("final"))
group = [
    Episode("a", "q", 0, 1.0, "right", rounds=rounds, totals=Totals(units=2, usd=0.02)),
    Episode("b", "q", 1, 0.0, "wrong", rounds=rounds, totals=Totals(units=2, usd=0.004)),
]
for episode, scored in zip(group, reward.score(group), strict=True):
    parts = {name: round(value, 2) for name, value in scored.components.items()}
    print(reward.name, episode.id, f"{scored.total:.2f}", parts)

try:
    Reward.from_json({"preset": "paramanager", "terms": {"efficiency": {"cost_taget": 4}}})
except UsageError as error:
    print(error)

unpriced = Episode("b", "q", 1, rounds=rounds, totals=Totals(usd=0.004, unpriced=3), unpriced=("openai/gpt-x",))
try:
    reward.score([group[0], unpriced])
except UsageError as error:
    print(error)
