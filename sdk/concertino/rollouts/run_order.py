"""A run as data: the order that says what to run, and the small result that comes back.

Invariant: both are plain JSON, both ways. An order's id follows from everything that decides its run, so that an order
which is carried out twice is one run, and an order with another condition is another run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from concertino.core.budget import Budget
from concertino.core.errors import UsageError
from concertino.core.model import Sampling
from concertino.core.usage import NOTHING, Usage
from concertino.runs.setup import chosen_sampling

ResultStatus = Literal["done", "failed", "refused"]
"""A run ended, with or without an answer; there is no run, for something broke; the shared budget did not cover it."""


@dataclass(frozen=True)
class RunOrder:
    """One run that is wanted.

    Attributes:
        question: of the run.
        task: what else the work needs to know, as plain JSON data; a task's `id` names the run.
        pool: id of the pool, one of those that the work has; empty for its only one.
        model: who leads, a role or name of the pool.
        strategy: its name and settings, as `Strategy.to_json` gives them; empty for the usual one.
        budget: of this run. A shared budget sets so much aside.
        sampling: how the leader samples, but for the seed.
        seed: of sampling.
        sample: number of the run among those of the same task.
        folder: of the traces; empty keeps none, and a run that is interrupted is then begun anew.
        group: which runs belong together, such as the rollouts of one group.
        priority: an order with a higher one is begun first, where several wait.
        id: of the run, and of its trace; made from the rest where it is empty.
    """

    question: str = ""
    task: Mapping[str, Any] = field(default_factory=dict)
    pool: str = ""
    model: str = "orchestrator"
    strategy: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    sampling: Sampling = field(default_factory=Sampling)
    seed: int | None = None
    sample: int = 0
    folder: str = ""
    group: str = ""
    priority: int = 0
    id: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", self._made_id())

    def _made_id(self) -> str:
        data = self.to_json()
        # Where the trace lies and when its turn comes are nothing of the run.
        decides = {key: value for key, value in data.items() if key not in ("folder", "priority", "id")}
        try:
            text = json.dumps(decides, sort_keys=True)
        except (TypeError, ValueError) as error:
            raise UsageError(f"an order must be plain JSON data, to be sent to another process: {error}") from error
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        readable = re.sub(r"[^\w-]+", "-", str(self.task.get("id") or self.question))[:48].strip("-")
        return f"{readable or 'run'}-{self.sample}-{digest}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; what is as usual is left out."""
        data = {each.name: getattr(self, each.name) for each in fields(self)}
        data |= {"budget": self.budget.to_json(), "sampling": chosen_sampling(self.sampling)}
        return {name: value for name, value in data.items() if value not in ({}, "", None)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunOrder:
        """The inverse of `to_json`.

        Raises:
            UsageError: something that no order has.
        """
        try:
            sampling = dict(data.get("sampling", {}))
            sampling = {**sampling, "stop": tuple(sampling.get("stop", ()))}
            own = {"budget": Budget(**data.get("budget", {})), "sampling": Sampling(**sampling)}
            return cls(**{**data, **own})
        except TypeError as error:
            raise UsageError(f"not an order of a run: {error}") from error


@dataclass(frozen=True)
class RunResult:
    """What came of an order: small, for the record of the run lies in its trace.

    Attributes:
        id: of the order.
        status: `done`, also without an answer: `stop` says why; `failed`: there is no run, `detail` says why;
            `refused`: what was left of the shared budget did not cover it.
        answer: None if there is none.
        stop, detail: why the run ended, and more about it for people.
        usage: what it consumed.
        rewards: by name, where the work gives any.
        trace: path of the trace; empty without one.
        data: what else the work gives, as plain JSON data.
    """

    id: str
    status: ResultStatus = "done"
    answer: str | None = None
    stop: str = ""
    detail: str = ""
    usage: Usage = NOTHING
    rewards: Mapping[str, float] = field(default_factory=dict)
    trace: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; what is as usual is left out."""
        data = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in {**data, "usage": self.usage.to_json()}.items() if value not in ({}, "")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunResult:
        """The inverse of `to_json`."""
        return cls(**{**data, "usage": Usage.from_json(data.get("usage", {}))})
