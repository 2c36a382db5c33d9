"""Three hooks around calls: a cache, an approval, a redaction."""

import json
import re
from typing import Any

import concertino as ct

CACHE: dict[tuple[str, str], ct.Observation] = {}
NEEDS_APPROVAL = {"send_mail"}
CARD_NUMBER = re.compile(r"\b\d{4} ?\d{4} ?\d{4} ?\d{4}\b")


def answer_from_cache(spec: ct.ToolSpec, arguments: dict[str, Any], call_id: str) -> ct.Observation | None:
    return CACHE.get((spec.name, json.dumps(arguments, sort_keys=True)))


def ask_for_approval(spec: ct.ToolSpec, arguments: dict[str, Any], call_id: str) -> None:
    if spec.short_name in NEEDS_APPROVAL:
        raise PermissionError(f"{spec.short_name} needs a person's approval, and nobody gave it")


def redact(spec: ct.ToolSpec, observation: ct.Observation) -> ct.Observation | None:
    if isinstance(observation.content, str) and CARD_NUMBER.search(observation.content):
        observation.content = CARD_NUMBER.sub("[card number]", observation.content)
        return observation
    return None
