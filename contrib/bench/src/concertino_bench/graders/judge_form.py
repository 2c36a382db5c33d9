"""What a judge is told, as data: a TOML file for each published way of judging, in our own words.

The idea: benchmarks that are judged by a model differ in what counts as right, in their verdicts, and in whether they
ask how sure an answer is. All of that is data, so a further way of judging is one file.

The invariant: a reply that lacks anything that its form asks for gives no verdict.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class JudgeForm:
    """One way of judging.

    Attributes:
        instructions: what the judge is told.
        verdicts: what it can say; the first is right, all others are not.
        confidence: it also says how sure the answer is, in percent.
    """

    instructions: str
    verdicts: tuple[str, ...] = ("right", "wrong")
    confidence: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """What the judge's reply has to look like."""
        properties: dict[str, Any] = {"reason": {"type": "string"}, "verdict": {"enum": [*self.verdicts]}}
        if self.confidence:
            properties["confidence"] = {"type": "number", "minimum": 0, "maximum": 100}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def fits(self, data: Any) -> bool:
        """Whether a reply is a verdict of this form."""
        return (
            isinstance(data, Mapping)
            and data.get("verdict") in self.verdicts
            and isinstance(data.get("reason"), str)
            and (not self.confidence or _is_percent(data.get("confidence")))
        )

    def values(self, data: Mapping[str, Any]) -> dict[str, float]:
        """What a verdict says beside right and wrong, each 0 to 1: `confidence`, and `attempted` of three verdicts."""
        values = {"attempted": float(data["verdict"] in self.verdicts[:2])} if len(self.verdicts) > 2 else {}
        return values | ({"confidence": data["confidence"] / 100} if self.confidence else {})


@cache
def judge_form(name: str) -> JudgeForm:
    """The form in `judge_forms/NAME.toml`."""
    text = files(__package__).joinpath("judge_forms", f"{name}.toml").read_text("utf-8")
    data = tomllib.loads(text)
    return JudgeForm(data["instructions"].strip(), tuple(data["verdicts"]), data["confidence"])


def _is_percent(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 100
