"""Three hooks around calls: a cache, a quota, a redaction."""

import json
import re
from typing import Any

import concertino as ct

CACHE: dict[tuple[str, str], ct.Observation] = {}
LEFT_TODAY = {"send_mail": 1}
CARD_NUMBER = re.compile(r"\b\d{4} ?\d{4} ?\d{4} ?\d{4}\b")


def answer_from_cache(spec: ct.ToolSpec, arguments: dict[str, Any], call_id: str) -> ct.Observation | None:
    return CACHE.get((spec.name, json.dumps(arguments, sort_keys=True)))


def keep_the_quota(spec: ct.ToolSpec, arguments: dict[str, Any], call_id: str) -> None:
    left = LEFT_TODAY.get(spec.short_name)
    if left == 0:
        raise PermissionError(f"the quota of {spec.short_name} is used up for today")
    if left is not None:
        LEFT_TODAY[spec.short_name] = left - 1


def redact(spec: ct.ToolSpec, observation: ct.Observation) -> ct.Observation | None:
    if isinstance(observation.content, str) and CARD_NUMBER.search(observation.content):
        observation.content = CARD_NUMBER.sub("[card number]", observation.content)
        return observation
    return None
