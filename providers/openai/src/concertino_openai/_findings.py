"""What a probe found about a server, feature by feature, and the options that follow from it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Verdict = Literal["yes", "no", "ignored", "refused", "unsure"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one feature.

    Attributes:
        feature: which.
        verdict: whether it is there; `ignored`: asked for, answered 200, and nothing of it seen.
        detail: what was seen.
    """

    feature: str
    verdict: Verdict
    detail: str = ""


@dataclass
class Probed:
    """What was found about a server.

    Attributes:
        base_url: where it is.
        model: which model was asked.
        findings: one per feature.
        options: what a model there should be declared with.
    """

    base_url: str
    model: str
    findings: list[Finding] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)

    def to_toml(self, name: str) -> str:
        """The table of a pool file that declares the model under this name."""
        lines = [f"[models.{json.dumps(f'openai/{name}')}]"]
        return "\n".join([*lines, *(f"{key} = {json.dumps(value)}" for key, value in self.options.items())])
