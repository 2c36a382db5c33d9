"""What a stateless orchestrator is shown of a run: documents found, code run with its output, answers tried.

ToolOrchestra's question answering keeps no conversation. Each turn is a fresh prompt built from these three lists, so
they are the whole state of a run. Invariant: a notebook is a value; noting something makes a new one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

Kind = Literal["documents", "code", "answer"]
_TEXTS = ("contents", "content", "text", "passage", "snippet", "body")
_LISTS = ("documents", "results", "search_results_data", "passages", "hits", "result")


@dataclass(frozen=True, slots=True)
class CodeRun:
    """Code, and what it printed."""

    code: str
    output: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """An answer that was tried, and the alias of who gave it."""

    model: str
    answer: str


@dataclass(frozen=True, slots=True)
class Notebook:
    """The three lists."""

    documents: tuple[str, ...] = ()
    code: tuple[CodeRun, ...] = ()
    attempts: tuple[Attempt, ...] = ()

    def with_documents(self, found: Any, *, woven: bool = False) -> Notebook:
        """With the documents in what a search returned, best first; those that are known are left out.

        The best one of a search comes last, as the released code has it: there the context is cut from the left.

        Args:
            woven: spread the new ones among the old ones, as in the released training, in place of at the end.
        """
        new = documents_of(found)[::-1]
        documents = _woven(self.documents, new) if woven else tuple(dict.fromkeys([*self.documents, *new]))
        return replace(self, documents=documents)

    def with_code(self, code: str, output: str) -> Notebook:
        """With code that printed something; code that printed nothing is left out."""
        return replace(self, code=(*self.code, CodeRun(code, output))) if output.strip() else self

    def with_attempt(self, model: str, answer: str) -> Notebook:
        """With an answer that was tried, and the alias of who gave it."""
        return replace(self, attempts=(*self.attempts, Attempt(model, answer)))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "documents": list(self.documents),
            "code": [[run.code, run.output] for run in self.code],
            "attempts": [[attempt.model, attempt.answer] for attempt in self.attempts],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Notebook:
        """The inverse of `to_json`."""
        return cls(
            tuple(data["documents"]),
            tuple(CodeRun(*pair) for pair in data["code"]),
            tuple(Attempt(*pair) for pair in data["attempts"]),
        )


def _woven(old: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    """Each new document before an equal share of the old ones; after the old ones where more are new than known."""
    if not new or len(old) < len(new):
        return (*old, *new)
    share = len(old) // len(new)
    mixed: dict[str, None] = {}
    for place, document in enumerate(new):
        mixed.setdefault(document)
        mixed.update(dict.fromkeys(old[place * share : (place + 1) * share]))
    return (*mixed, *old[share * len(new) :])


def documents_of(content: Any) -> list[str]:
    """The documents in what a search returned: a text, a list of texts or of objects, or an object that holds one."""
    if isinstance(content, Mapping):
        listed = next((content[key] for key in _LISTS if isinstance(content.get(key), (list, tuple))), None)
        if listed is None:
            return [_document(content)]
        content = listed
    if isinstance(content, (list, tuple)):
        return [text for item in content if (text := _document(item))]
    text = _document(content)
    return [text] if text else []


def _document(item: Any) -> str:
    if item is None:
        return ""
    if isinstance(item, str):
        return item
    if isinstance(item, Mapping):
        # Retrieval servers in the style of Search-R1 wrap each hit as `{"document": ..., "score": ...}`.
        inner = item.get("document")
        if isinstance(inner, (Mapping, str)):
            return _document(inner)
        text = next((item[key] for key in _TEXTS if isinstance(item.get(key), str)), None)
        title = item.get("title")
        if text is not None:
            return f"{title}\n{text}" if isinstance(title, str) and title else text
    return json.dumps(item, ensure_ascii=False)


def code_of(content: Any) -> CodeRun | None:
    """The code and its output in what a reasoner returned; `None` if there is no output."""
    if not isinstance(content, Mapping):
        return None
    code = next((content[key] for key in ("code", "generated_code") if isinstance(content.get(key), str)), "")
    output = next(
        (content[key] for key in ("output", "exec_result", "stdout") if isinstance(content.get(key), str)), ""
    )
    return CodeRun(code, output) if output.strip() else None


def answer_of(content: Any) -> str:
    """The text of an answer."""
    if isinstance(content, Mapping):
        for key in ("answer", "pred", "text", "content"):
            if isinstance(content.get(key), str):
                return str(content[key]).strip()
    if content is None:
        return ""
    return content.strip() if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
