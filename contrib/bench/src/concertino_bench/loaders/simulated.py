"""What BFCL's memory and web-search functions act on, simulated: nothing is fetched, and no model is asked.

`Memory` is one of three stores (`kv`: values by key, `vector`: texts by number, `rec_sum`: one text), each with a core
and an archival part but the last. It begins with what the user said in the earlier conversations, in the archival
part. `Web` knows the pages that the published gold names, and finds them by words. A search by similarity is one by
shared words here: there are no embeddings.

The invariants: a call answers with JSON text and never raises, and two worlds of one task share nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

BACKENDS = ("kv", "vector", "rec_sum")
"""The stores that BFCL's memory functions exist for."""

# What the published stores hold: entries and characters of each.
_CORE, _ARCHIVAL, _WHOLE = (7, 300), (50, 2000), 10_000
_KEY = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")


class Memory:
    """The state behind the memory functions of one backend.

    Args:
        backend: one of `BACKENDS`.
        said: what the user said before, in order.
    """

    def __init__(self, backend: str, said: Sequence[str] = ()) -> None:
        if backend not in BACKENDS:
            raise ValueError(f"the memory backend {backend!r} is unknown; expected {', '.join(BACKENDS)}")
        self._text = "\n".join(said) if backend == "rec_sum" else ""
        make: type[_Pairs | _Texts] = _Pairs if backend == "kv" else _Texts
        self._parts = {} if backend == "rec_sum" else {"core": make(*_CORE), "archival": make(*_ARCHIVAL)}
        if self._parts:
            self._parts["archival"].fill(said)

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The answer of a function, as JSON."""
        part, _, verb = name.partition("_memory_")
        if part in self._parts:
            return _answer(lambda: getattr(self._parts[part], f"on_{verb}")(**arguments))
        return _answer(lambda: getattr(self, f"on_{name.removeprefix('memory_')}")(**arguments))

    def state(self) -> dict[str, Any]:
        """What is kept, as JSON data."""
        return {name: part.kept for name, part in self._parts.items()} if self._parts else {"memory": self._text}

    def on_append(self, text: str) -> dict[str, Any]:
        """Add to the end of the one text."""
        return self.on_update(f"{self._text}\n{text}" if self._text else text)

    def on_update(self, text: str) -> dict[str, Any]:
        """Put another text in place of the one text."""
        if len(text) > _WHOLE:
            raise _RefusedError(f"The memory holds at most {_WHOLE} characters.")
        self._text = text
        return {"status": "Memory updated."}

    def on_replace(self, old_text: str, new_text: str) -> dict[str, Any]:
        """Put other words in place of some of the one text."""
        if old_text not in self._text:
            raise _RefusedError("The old text is not in the memory.")
        return self.on_update(self._text.replace(old_text, new_text))

    def on_clear(self) -> dict[str, Any]:
        """Forget the one text."""
        return self.on_update("")

    def on_retrieve(self) -> dict[str, Any]:
        """The one text."""
        return {"memory_content": self._text}


class Web:
    """A search engine and pages that exist only here.

    Args:
        pages: `{"subquestion", "answer", "source"}` each, as the published gold has them; `source` is the address.
        snippets: a result shows the page's text.
    """

    def __init__(self, pages: Iterable[Mapping[str, Any]] = (), *, snippets: bool = True) -> None:
        self._snippets = snippets
        self._pages = [
            {
                "title": str(page.get("subquestion", "")),
                "href": str(page.get("source", "")),
                "body": f"{page.get('subquestion', '')}: {page.get('answer', '')}",
            }
            for page in pages
        ]

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The answer of a function, as JSON."""
        return _answer(lambda: getattr(self, f"on_{name}")(**arguments))

    def state(self) -> dict[str, Any]:
        """Nothing that calls could change."""
        return {}

    def on_search_engine_query(self, keywords: str, max_results: int = 10, region: str = "") -> Any:
        """The pages that share words with a query, best first."""
        found = _ranked(keywords, [page["body"] for page in self._pages], max_results)
        shown = ("title", "href", "body") if self._snippets else ("title", "href")
        return [{name: self._pages[place][name] for name in shown} for place, _ in found]

    def on_fetch_url_content(self, url: str, mode: str = "raw") -> Any:
        """The text of a page."""
        body = next((page["body"] for page in self._pages if page["href"] == url), None)
        if body is None:
            raise _RefusedError(f"{url} cannot be fetched: only pages that the simulated search finds exist.")
        return {"content": body}


class _RefusedError(Exception):
    """A call that a store refuses; the text is for the model."""


class _Pairs:
    """Values by key."""

    def __init__(self, entries: int, length: int) -> None:
        self._entries, self._length = entries, length
        self.kept: dict[str, str] = {}

    def fill(self, said: Sequence[str]) -> None:
        self.kept = {f"user_said_{number}": text for number, text in enumerate(said, 1)}

    def on_add(self, key: str, value: str) -> Any:
        if not _KEY.fullmatch(key):
            raise _RefusedError("A key is written in snake_case, such as `first_name`.")
        if key in self.kept:
            raise _RefusedError(f"The key {key!r} exists; replace its value instead.")
        if len(self.kept) >= self._entries:
            raise _RefusedError(f"The memory is full: it holds {self._entries} entries.")
        self._put(key, value)
        return {"status": "Added."}

    def on_replace(self, key: str, value: str) -> Any:
        self._known(key)
        self._put(key, value)
        return {"status": "Replaced."}

    def on_remove(self, key: str) -> Any:
        self._known(key)
        del self.kept[key]
        return {"status": "Removed."}

    def on_clear(self) -> Any:
        self.kept.clear()
        return {"status": "Cleared."}

    def on_retrieve(self, key: str) -> Any:
        return {"value": self._known(key)}

    def on_retrieve_all(self) -> Any:
        return dict(self.kept)

    def on_list_keys(self) -> Any:
        return {"keys": list(self.kept)}

    def on_key_search(self, query: str, k: int = 5) -> Any:
        keys = list(self.kept)
        found = _ranked(query, [key.replace("_", " ") for key in keys], k)
        return {"ranked_results": [[score, keys[place]] for place, score in found]}

    def _known(self, key: str) -> str:
        if key not in self.kept:
            raise _RefusedError(f"The key {key!r} does not exist.")
        return self.kept[key]

    def _put(self, key: str, value: str) -> None:
        if len(value) > self._length:
            raise _RefusedError(f"A value has at most {self._length} characters.")
        self.kept[key] = value


class _Texts:
    """Texts by number."""

    def __init__(self, entries: int, length: int) -> None:
        self._entries, self._length = entries, length
        self._next = 0
        self.kept: dict[int, str] = {}

    def fill(self, said: Sequence[str]) -> None:
        self.kept, self._next = dict(enumerate(said)), len(said)

    def on_add(self, text: str) -> Any:
        if len(self.kept) >= self._entries:
            raise _RefusedError(f"The memory is full: it holds {self._entries} entries.")
        self._put(self._next, text)
        self._next += 1
        return {"id": self._next - 1}

    def on_update(self, vec_id: int, new_text: str) -> Any:
        self._known(vec_id)
        self._put(vec_id, new_text)
        return {"status": "Updated."}

    def on_remove(self, vec_id: int) -> Any:
        self._known(vec_id)
        del self.kept[vec_id]
        return {"status": "Removed."}

    def on_clear(self) -> Any:
        self.kept.clear()
        return {"status": "Cleared."}

    def on_retrieve(self, query: str, top_k: int = 5) -> Any:
        numbers = list(self.kept)
        found = _ranked(query, list(self.kept.values()), top_k)
        return {
            "result": [
                {"id": numbers[place], "similarity_score": score, "text": self.kept[numbers[place]]}
                for place, score in found
            ]
        }

    def on_retrieve_all(self) -> Any:
        return {"result": [{"id": number, "text": text} for number, text in self.kept.items()]}

    def _known(self, number: int) -> None:
        if number not in self.kept:
            raise _RefusedError(f"The entry {number} does not exist.")

    def _put(self, number: int, text: str) -> None:
        if len(text) > self._length:
            raise _RefusedError(f"An entry has at most {self._length} characters.")
        self.kept[number] = text


def _answer(ask: Callable[[], Any]) -> str:
    try:
        return json.dumps(ask(), ensure_ascii=False)
    except _RefusedError as error:
        return json.dumps({"error": str(error)}, ensure_ascii=False)
    # Arguments that the schema let through, such as a number for a text.
    except (TypeError, AttributeError) as error:
        return json.dumps({"error": f"The call does not fit: {error}"}, ensure_ascii=False)


def _ranked(query: str, texts: Sequence[str], count: int) -> list[tuple[int, float]]:
    """The places of the texts that share words with a query, with the share of its words; best first."""
    words = _words(query)
    scores = [(place, round(len(words & _words(text)) / max(len(words), 1), 4)) for place, text in enumerate(texts)]
    return sorted((each for each in scores if each[1] > 0), key=lambda each: -each[1])[: max(count, 0)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
