"""The script of the application: what the two models say at the desk for returns, and what must have happened.

A customer sends a photo of a broken mug and asks what may be paid back; then says to pay. The leading model looks the
order up and asks the lawyer at the same time, counts the days, and rules; later it pays, once a person has approved.
The ruling is made of what the tools returned, so a result that did not reach the model shows in the answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from scripted_server import Heard, Turn, answering, calling

LEADER, LAWYER = "gpt-5.4-mini", "gpt-5.5"
QUESTIONS = ("Order 7 came like this. What do I get back?", "Please pay it back.")
LAW = "Broken in transit: the whole price, within 30 days."


def script(heard: Heard) -> Turn:
    """What a model says to a request."""
    if heard.model == LAWYER:
        return answering(LAW)
    if heard.question.startswith(QUESTIONS[0]):
        return _ruling(heard)
    if heard.question.startswith(QUESTIONS[1]):
        if "pay_back" not in heard.called:
            return calling(("pay_back", {"order": 7, "amount": 12.5}))
        done = "paid back" if "paid back" in heard.results[-1] else "not paid"
        return answering({"order": 7, "amount": 12.5, "reason": done})
    raise LookupError(f"{heard.question!r} to {heard.model}")


def _ruling(heard: Heard) -> Turn:
    if "find_order" not in heard.called:
        asked = "A mug arrived broken. What is owed?"
        lawyer = next((name for name in heard.tools if "lawyer" in name), "ask_lawyer")
        argument = "input" if heard.api == "responses" and _takes_input(heard, lawyer) else "question"
        return calling(("find_order", {"number": 7}), (lawyer, {argument: asked}))
    if "days_since" not in heard.called:
        return calling(("days_since", {"date": "2026-11-20"}))
    read = "\n".join(heard.results)
    price = re.search(r"price\W+(\d+\.\d+)", read)
    law = LAW if LAW in read else "the lawyer was not heard"
    photo = "" if heard.images else ", no photo"
    return answering({"order": 7, "amount": float(price[1]) if price else 0.0, "reason": law + photo})


def _takes_input(heard: Heard, name: str) -> bool:
    """Whether a tool was made from an agent by its framework, which then names its one argument."""
    tools = heard.body.get("tools") or ()
    return any("input" in tool["parameters"]["properties"] for tool in tools if tool.get("name") == name)


def faults(heard: Sequence[Heard], printed: str) -> list[str]:
    """What a program did not do of all that the application is to do; empty if it did everything."""
    leading = [each for each in heard if each.model == LEADER]
    later = [each for each in leading if each.question.startswith(QUESTIONS[1])]
    told = [each for each in leading if "Rule as the shop" in each.system]
    wanted = {
        "the lawyer's model was asked once": sum(each.model == LAWYER for each in heard) == 1,
        "the instructions are in every request": len(told) == len(leading) > 0,
        "the photo was sent": any(each.images for each in leading),
        "the second question came with the first": bool(later)
        and all(QUESTIONS[0] in str(each.body) for each in later),
        "the second answer was streamed": bool(later) and later[-1].streamed,
        "the ruling is printed": f"amount=12.5, reason='{LAW}'" in printed,
        "a person was asked": "pay_back" in printed and "12.5" in printed,
        "the streamed answer is printed": '"reason": "paid back"' in printed,
        "it was paid once": "paid [(7, 12.5)]" in printed,
    }
    return [what for what, done in wanted.items() if not done]
