"""The prompts of the released Orchestrator-8B, byte for byte: the public checkpoint reads what it was trained on.

Everything else of concertino is worded by concertino. The bytes here are those of NVlabs/ToolOrchestra (Apache-2.0),
the repository of arXiv 2511.21689, with their mistakes:

    train    training/lead_agent/llm_agent/generation_quick3.py   a space after the system sentence, "approriate"
    hle      evaluation/eval_hle.py                               "Choose an appropriate tool.'" with a stray quote
    frames   evaluation/eval_frames.py                            a heading for code also where there is none

Question answering there has no conversation: each turn is a system sentence and one user message made of the problem
and a `Notebook`, cut from the left to a number of tokens; the tools go to the server, whose chat template writes them.
`frames` offers no search once documents are there.

How text is cut decides about bytes as well. A `Cutter` without a tokenizer keeps whole characters and estimates; the
released one (`token_cutter` with the tokenizer of Qwen/Qwen3-8B) decodes token by token, which turns every character
that takes several tokens into U+FFFD, also in a text that is short enough.

The released evaluations sample with `Sampling(temperature=1.0, max_tokens=12_000)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from concertino.core.model import Message
from concertino.text.foreign_text import QUESTION_LINES, quoting

from .notebook import Notebook

_MARKS = (
    *(r"doc \d+\s*:", r"documents\s*:", r"problem\s*:", r"attempt\s?\d* answer\b", r"```\s?output\b"),
    r"python code and execution outputs\s*:",
)
IN_NOTEBOOK = quoting(("message", "preference"), (*QUESTION_LINES, *_MARKS))
"""How a problem, a document and an attempt are quoted: no line of them begins like one of the prompt's own."""

IN_FENCES = quoting(("message", "preference"), (*QUESTION_LINES, *_MARKS, "```"))
"""The same for code and its output, which no fence of their own may end."""

Variant = Literal["train", "hle", "frames"]


class Cut(NamedTuple):
    """The end of a text.

    Attributes:
        tokens: of the whole text, before it was cut.
        text: its last tokens.
    """

    tokens: int
    text: str


Cutter = Callable[[str, int], Cut]
"""Cuts a text to its last so many tokens."""


class BatchTokenizer(Protocol):
    """What `token_cutter` needs of a tokenizer; those of transformers have it."""

    def __call__(self, text: str) -> Mapping[str, Any]:
        """Token ids under `input_ids`."""

    def batch_decode(self, sequences: Any, skip_special_tokens: bool = ...) -> list[str]:
        """One text for each of the sequences."""


_BYTES_PER_TOKEN = 3


def estimating_cutter(text: str, limit: int) -> Cut:
    """Cut by an estimate of one token per 3 bytes, which errs on the high side; characters stay whole."""
    if not text:
        return Cut(0, "")
    data = text.encode("utf-8", "surrogatepass")
    tokens = -(-len(data) // _BYTES_PER_TOKEN)
    if tokens <= limit:
        return Cut(tokens, text)
    end = data[len(data) - max(0, limit) * _BYTES_PER_TOKEN :]
    # The cut may fall inside a character; its continuation bytes (10xxxxxx) are dropped.
    start = next((i for i, byte in enumerate(end) if byte & 0xC0 != 0x80), len(end))
    return Cut(tokens, end[start:].decode("utf-8", "surrogatepass"))


def token_cutter(tokenizer: BatchTokenizer) -> Cutter:
    """Cut as the released code does, with its tokenizer: `AutoTokenizer.from_pretrained("Qwen/Qwen3-8B")`."""

    def cut(text: str, limit: int) -> Cut:
        if not text:
            return Cut(0, "")
        ids = list(tokenizer(text)["input_ids"])
        # Token by token, as the released code does, although that breaks characters of several tokens.
        pieces = tokenizer.batch_decode([[token] for token in ids[-limit:]], skip_special_tokens=True)
        return Cut(len(ids), "".join(pieces))

    return cut


@dataclass(frozen=True, slots=True)
class Wording:
    """The bytes of one variant.

    Attributes:
        system: the system message.
        closing: how the user message ends.
        document: characters of a document that are shown.
        ellipsis: what stands after a document.
        code: tokens of code and attempts together.
        context: tokens of everything.
        less_problem: the tokens of the problem are taken off `context`.
        heading: when a heading stands before the code.
        search_once: no search is offered once documents are there.
    """

    system: str
    closing: str
    document: int
    ellipsis: str
    code: int
    context: int
    less_problem: bool
    heading: Literal["never", "with code", "always"]
    search_once: bool


_ATTEMPTS = 8_000
_HEADING = "\npython code and execution outputs:\n"

VARIANTS: dict[str, Wording] = {
    "train": Wording(
        "You are good at using tools. ",
        "Choose an approriate tool.",
        4_000,
        "",
        24_000,
        24_000,
        False,
        "never",
        False,
    ),
    "hle": Wording(
        "You are good at using tools.",
        "Choose an appropriate tool.'",
        1_200,
        " ...",
        12_000,
        27_000,
        True,
        "with code",
        False,
    ),
    "frames": Wording(
        "You are good at using tools.",
        "Choose an appropriate tool.",
        4_000,
        "",
        12_000,
        24_000,
        False,
        "always",
        True,
    ),
}
"""The released variants."""


def released_prompt(
    variant: Variant, problem: str, notebook: Notebook, cut: Cutter = estimating_cutter
) -> list[Message]:
    """The two messages of a turn."""
    wording = VARIANTS[variant]
    context = _context(wording, problem, notebook, cut)
    return [
        Message("system", wording.system),
        Message("user", f"Problem: {IN_NOTEBOOK.text(problem)}\n\n{context}\n\n{wording.closing}"),
    ]


def offered_tools(
    variant: Variant, tools: Sequence[Mapping[str, Any]], notebook: Notebook, search: Sequence[str]
) -> list[Mapping[str, Any]]:
    """The tools that a turn offers."""
    hidden = VARIANTS[variant].search_once and notebook.documents
    return [tool for tool in tools if not (hidden and tool["function"]["name"] in search)]


def _context(wording: Wording, problem: str, notebook: Notebook, cut: Cutter) -> str:
    """Documents, then code with its output, then attempts; the left end goes first."""
    documents = "".join(
        f"Doc {number}: {IN_NOTEBOOK.text(text[: wording.document])}{wording.ellipsis}\n\n"
        for number, text in enumerate(notebook.documents, 1)
    )
    tokens, work = cut(_code(notebook) + _attempts(notebook, cut), wording.code)
    # Cut from the left, the text may begin inside a code block; as released, the fence is put back.
    if work and not work.startswith("```"):
        work = "```\n" + work
    limit = wording.context - (cut(problem, len(problem) + 1).tokens if wording.less_problem else 0)
    # As released: work that alone fills the context leaves out the documents and stays uncut itself.
    if tokens >= limit:
        return work
    heading = _HEADING if wording.heading == "always" or (wording.heading == "with code" and work) else ""
    context = cut(documents + heading + work, limit).text
    return "Documents:\n" + context if documents else context


def _on_one_line(text: str) -> str:
    return " ".join(IN_NOTEBOOK.text(text).split())


def _code(notebook: Notebook) -> str:
    quote = IN_FENCES.text
    return "".join(
        f"```python\n{quote(run.code)}\n```\n\n```output\n{quote(run.output)}\n```\n\n" for run in notebook.code
    )


def _attempts(notebook: Notebook, cut: Cutter) -> str:
    listed = "".join(
        f"Attempt{number} answer by {_on_one_line(attempt.model)}: {IN_NOTEBOOK.text(attempt.answer)}\n"
        for number, attempt in enumerate(notebook.attempts, 1)
    )
    text = cut(listed, _ATTEMPTS).text
    return "Attempt answer: " + text if text and not text.startswith("Attempt") else text
