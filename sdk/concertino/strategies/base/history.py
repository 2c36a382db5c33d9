"""Keeping what an orchestrator reads short: observations cut to a size, old rounds shortened and then left out.

Sizes are in tokens as `Model.count_tokens` estimates them by default, three bytes each, so that a machine stays plain
data. Invariant: what is cut says how much is missing, and the newest rounds are never touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from concertino.core.model import Message

BYTES_PER_TOKEN = 3
BRIEF = 60
"""Tokens to which each observation of an old round is cut."""
KEPT = 2
"""Rounds that are kept as they are."""
OBSERVED = "\n\nWhat calls returned:\n"
"""What stands between the question of an earlier turn and the results of its calls."""
_LEFT_OUT = re.compile(r"\n\n\[… (\d{1,9}) earlier rounds left out …\]\Z")
_RESPONSE = re.compile(r"(<tool_response>\n)(.*?)(\n</tool_response>)", re.DOTALL)


def count_tokens(text: str) -> int:
    """Tokens of a text, estimated."""
    # `surrogatepass`: JSON escapes can give a text lone surrogates, which plain UTF-8 refuses.
    return len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN + 1


def cut(text: str, tokens: int) -> str:
    """A text of at most so many tokens: its head and its tail, with a note of what is missing between."""
    if count_tokens(text) <= tokens:
        return text
    # 40 bytes for the note between head and tail; 8 so that something is left of the smallest cut.
    room = max(8, tokens * BYTES_PER_TOKEN - 40)
    while count_tokens(text[: room * 2 // 3] + text[len(text) - room // 3 :]) > tokens and room > 8:
        room = room * 3 // 4  # letters of several bytes
    head, tail = text[: room * 2 // 3], text[len(text) - room // 3 :]
    return f"{head} [… {len(text) - len(head) - len(tail)} characters left out …] {tail}"


def compacted(messages: Sequence[Message], tokens: int) -> list[Message]:
    """The conversation in at most so many tokens: old observations are shortened, and then old rounds left out.

    Both begin with the oldest, and the newest rounds stay as they are, whatever they take. It becomes a quarter shorter
    than it must, if it can: so it is rewritten now and then, not in every round, and what a server has cached of it
    serves several requests.

    Args:
        messages: the system message, the question, then texts of the model and observations in turn.
        tokens: the most that all of it should take.
    """
    found = list(messages)
    total, goal = size_of(found), tokens * 3 // 4
    if total <= tokens:
        return found
    # Where rounds begin: with a text of the model.
    rounds = [index for index, message in enumerate(found) if message.role == "assistant"]
    newest = rounds[-KEPT:][0] if rounds else 0
    # The system message and the question come first and are never shortened.
    for index in range(2, newest):
        if total <= goal:
            return found
        if found[index].role in ("user", "tool"):
            brief = _brief(found[index])
            total += count_tokens(brief.text) - count_tokens(found[index].text)
            found[index] = brief
    return _without_oldest(found, rounds, total, goal) if total > tokens else found


def _without_oldest(messages: list[Message], rounds: Sequence[int], total: int, goal: int) -> list[Message]:
    """The conversation without its oldest rounds, as many as must be left out, and with a note behind the question."""
    left_out = 0
    while left_out < len(rounds) - KEPT and total > goal:
        total -= size_of(messages[rounds[left_out] : rounds[left_out + 1]])
        left_out += 1
    if not left_out:
        return messages
    question, earlier = messages[1].text, 0
    if (note := _LEFT_OUT.search(question)) is not None:
        question, earlier = question[: note.start()], int(note[1])
    told = f"{question}\n\n[… {earlier + left_out} earlier rounds left out …]"
    return [messages[0], replace(messages[1], text=told), *messages[rounds[left_out] :]]


def size_of(messages: Iterable[Message]) -> int:
    """Tokens of the texts of some messages, estimated."""
    return sum(count_tokens(message.text) for message in messages)


def compacted_turns(messages: Sequence[Message], tokens: int) -> tuple[Message, ...]:
    """The same turns in at most so many tokens: results are cut first, the oldest first; then old turns left out."""
    found = list(messages)
    sizes = [count_tokens(message.text) for message in found]
    for place, message in enumerate(found):
        if sum(sizes) <= tokens:
            return tuple(found)
        question, mark, observed = message.text.partition(OBSERVED)
        if mark:
            lines = [cut(line, BRIEF) for line in observed.split("\n")]
            found[place] = replace(message, text=question + mark + "\n".join(lines))
            sizes[place] = count_tokens(found[place].text)
    while sum(sizes) > tokens and len(found) > 2:
        del found[:2], sizes[:2]
    return tuple(found)


def _brief(message: Message) -> Message:
    if message.role == "tool":
        return replace(message, text=cut(message.text, BRIEF))
    # Only what stands inside the frame: the budget and the requests around it must stay whole.
    text = _RESPONSE.sub(lambda found: found[1] + _brief_lines(found[2]) + found[3], message.text)
    return replace(message, text=text)


def _brief_lines(block: str) -> str:
    """Each observation of a block, which takes one line."""
    return "\n".join(cut(line, BRIEF) for line in block.split("\n"))
