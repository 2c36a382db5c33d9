"""The texts that models are shown. Who asks for what is in `methods`; here are only words.

A task that stands alone is a user message of its own, unchanged. Where a message holds several things, each stands in
a block with a name. Invariant: text from elsewhere cannot open or close such a block.
"""

from __future__ import annotations

from concertino.text import Quoting

_BLOCKS = (
    "task",
    "question",
    "record",
    "solution",
    "own_solution",
    "other_solution",
    "attempt",
    "feedback",
    "role",
    "text",
    "wanted",
    "views",
)
# A solution has `<reasoning>` and `<answer>` of its own, which stay.
_QUOTING = Quoting((*_BLOCKS, "think", "tool_calls?", "tool_responses?", "tools"), only=True)

FORMAT = (
    "Write how you get there between <reasoning> and </reasoning>, then the answer alone between <answer> and "
    "</answer>. Put each value that was asked for into its own \\boxed{}, in the order of the question."
)

STEPS = f"Work on the task one step at a time, and finish each step before the next. {FORMAT}"

STANDARD = (
    "You solve one task of a larger work. All you know of it is in the message; nobody answers questions, and there "
    "are no tools. State what you assume, derive the result, and check it once against the task before you answer. "
    + FORMAT
)

APPROACHES = (
    "Derive the result directly, from what is given towards what is asked.",
    "Start from what is asked: find what it rests on, and work back to what is given.",
    "Take the task apart into cases or smaller tasks, solve each, and put the results together.",
    "Form an expectation of the result first; then work it out in another way and settle any difference.",
)
"""One for each path of an ensemble, in turn."""

AGGREGATE = (
    "Several people solved the same task on their own, and they do not agree. Find where their ways part, decide which "
    "step is right there, and give the answer that holds. How many gave an answer does not count; whether it "
    f"follows does. {FORMAT}"
)

REVIEWER = (
    "You review the work of others and you do not repair it. Suppose that there are mistakes in it, and look for "
    "them: steps that do not follow, numbers that are wrong, facts that nothing supports, calls that were wrong or "
    "whose results were misread, conditions of the question that were left out. Judge what the task names; the record "
    "shows what has happened so far, and may be wrong anywhere. Write your checks between <reasoning> and "
    "</reasoning>. Then list between <answer> and </answer> each mistake with its place, its cause and what would "
    'settle it; write "no mistake found" if there is none.'
)

CONCLUDE = (
    "You write the final answer to a question from the record of a group's work on it. What the record says may be "
    "wrong: compare its results, follow those that were checked, and correct what does not hold. " + FORMAT
)

DEBATER = "You take part in a discussion that looks for the right answer to a task, in the role that is given."
DEBATE_FIRST = "Give your own solution, step by step, as someone in this role sees it."
DEBATE_NEXT = (
    "You see the last solutions of the others, and yours if you gave one. Take from theirs what convinces you, say "
    "where they are wrong, and give your solution as it is now."
)
MODERATOR = (
    "You close a discussion about a task. You see the last solution of each of its members. Weigh their reasons, not "
    f"their number, and decide. {FORMAT}"
)

CRITIC = (
    "You check a solution to a task. Look for the step that could be wrong, and try it. Write what is wrong and how it "
    "could be better between <feedback> and </feedback>. Then write <verdict>correct</verdict> if you are certain "
    "that the answer is right, else <verdict>wrong</verdict>."
)
REVISE = (
    "You see a task, your attempts at it so far, and what a critic said to each. Find out where the last attempt goes "
    f"wrong, if it does, and solve the task again, better. {FORMAT}"
)

EXTRACT = (
    'You take one thing out of a text and add nothing of your own. Reply with one JSON object: "found" (whether the '
    'text states it), "value" (what was wanted, as short as it can be said; empty if it is not stated), "quote" '
    "(the passage that states it, word for word; empty if there is none)."
)


def block(tag: str, text: str, **attributes: str) -> str:
    """A named part of a message."""
    said = "".join(f' {name}="{_attribute(value)}"' for name, value in attributes.items())
    return f"<{tag}{said}>\n{_QUOTING.text(text)}\n</{tag}>"


def _attribute(text: str) -> str:
    return " ".join(text.replace('"', "'").replace("<", "(").replace(">", ")").split())
