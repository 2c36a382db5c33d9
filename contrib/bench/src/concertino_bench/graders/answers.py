r"""Where the answer stands in what a solver said.

A solver marks its answer in one of a few ways: `<answer>…</answer>`, `<solution>…</solution>`, `finish[…]`,
`\boxed{…}`, or a sentence such as "So the answer is: X.". The invariants: what another one wrote into the text
(retrieved documents) and what was thought before it (`<think>`) is never the answer; and every function here reads a
text once, so its time grows with the length, whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# Characters of one answer: a reply may have megabytes without a line break.
_LONGEST = 4000
# Marks of retrieval-trained models (R1-Searcher, Search-R1, GAP) and of chat templates (Hermes, Qwen).
_FOREIGN = (
    ("<|begin_of_documents|>", "<|end_of_documents|>"),
    ("<information>", "</information>"),
    ("<documents>", "</documents>"),
    ("<observation>", "</observation>"),
    ("<tool_response>", "</tool_response>"),
)
_TAG = re.compile(r"<(/?)(answer|solution)>", re.IGNORECASE)
_BRACKET = re.compile(r"\bfinish\[|[\[\]]", re.IGNORECASE)
_BRACE = re.compile(
    r"\\{1,2}(?:boxed|fbox)\s{0,8}\{|"
    r"\\{1,2}boxed\s{1,8}(?P<bare>[+-]?(?:\d[\d.,]{0,40}(?<![.,])|\\[A-Za-z]{1,20}(?:\{[^{}]{0,80}\}){0,4}))|"
    r"\\\\|\\[{}]|[{}]"
)
_ENGLISH = (
    r"\b(?:final[ \t]{1,4})?answer(?:[ \t]{1,4}to[ \t]{1,4}(?:the|this)[ \t]{1,4}question)?"
    r"(?:[ \t]{1,4}(?:is|was|are|would[ \t]be)\b|[ \t]{0,4}(?::|=))"
)
# The same words in other languages: what stands before the answer, and the verb or the colon behind it.
_ELSEWHERE = (
    ("答案|最终答案|最終答案|答", "应该是|應該是|是|为|為"),
    ("答え|解答|正解|回答", "は"),
    ("(?<![가-힣])(?:정답|답)", "은|는"),
    ("r[ée]ponse(?: finale| correcte)?", "est|serait"),
    ("(?:respuesta|opción)(?: final| correcta)?", "es"),
    ("(?:resposta|opção)(?: final| correta| certa)?", "é|e"),
    ("risposta(?: finale| corretta)?", "è|e"),
    ("antwort|lösung|antwoord|svaret|svar", "ist|lautet|is|luidt|är|er"),
    ("правильный ответ|ответ|відповідь", "равен|является|это|—|–|-"),
    ("odpowied[źz]|odpověď", "to|brzmi|je|jest"),
    ("cevap|yanıt", "şudur"),
    ("đáp án|câu trả lời", "là"),
    ("jawaban(?:nya)?", "adalah|ialah"),
    ("الجواب|الإجابة", "هو|هي"),
    ("उत्तर|जवाब", "है"),
    ("คำตอบ", "คือ"),
)
# A verb in Latin letters ends with its word; letters behind a Chinese or Korean one may be the answer.
_VERB_END = r"(?:(?<![a-zà-ÿ])|\b)"
_SAID = re.compile(
    rf"(?:{_ENGLISH}"
    + "".join(rf"|(?:{noun})[ \t]{{0,4}}(?:(?:{verb}){_VERB_END}|[:：=])" for noun, verb in _ELSEWHERE)
    + r")[ \t]{0,8}[:：]?",
    re.IGNORECASE,
)
_FINAL = re.compile("final|最终|最終", re.IGNORECASE)
_QUOTES = " \t\r\n*`\"'“”‘’"


class Marked(NamedTuple):
    """A marked answer.

    Attributes:
        text: what stands in the mark, blanks stripped.
        marker: `<answer>`, `finish[]`, `\\boxed{}`, `final answer is` or `answer is`; empty where nothing is marked.
        start, end: where it stands in the text that `spoken` gives.
    """

    text: str
    marker: str
    start: int
    end: int


def spoken(text: str) -> str:
    """What the solver itself says: without documents that were put in, and from behind its thoughts on."""
    for opened, closed in _FOREIGN:
        text = _without(text, opened, closed)
    # The opening tag is often part of the prompt, so only the closing one can be relied on.
    said = text.rpartition("</think>")[2]
    # A solver that thought to its end and said no more may still have marked an answer there.
    return said if said.strip() else text


def marked(text: str) -> list[Marked]:
    """Every marked answer but sentences, in the order in which they begin."""
    return sorted([*_tags(text), *_finishes(text), *boxes(text)], key=lambda found: found.start)


def sentences(text: str) -> list[Marked]:
    """Every "the answer is …", in many languages, up to the next one or the end of its line.

    It is the next line if its own has nothing.
    """
    found: list[Marked] = []
    for match, limit in followed(text, _SAID):
        start, end = match.end(), limit
        # Models write "The answer is:" and put the answer on a line of its own.
        if text[end : end + 1] == "\n" and not text[start:end].strip(_QUOTES):
            start = end
            # 200 characters of blanks at most, so a text of blank lines is not walked through once per sentence.
            while start < len(text) and start - end < 200 and text[start].isspace():
                start += 1
            end = _line_end(text, start)
        marker = "final answer is" if _FINAL.search(match[0]) else "answer is"
        found.append(Marked(text[start:end].strip(), marker, match.start(), end))
    return found


def followed(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], int]]:
    """Every match with the place where what follows it ends: at the next match, or with the line."""
    last: re.Match[str] | None = None
    line = -1
    for match in pattern.finditer(text):
        if last:
            line = line if line >= last.end() else _line_end(text, last.end())
            yield last, min(line, match.start())
        last = match
    if last:
        yield last, _line_end(text, last.end())


def final_answer(text: str) -> Marked:
    """The answer of a text: the last mark if there is one, else the last sentence, else the whole text."""
    text = spoken(text)
    places = marked(text) or sentences(text)
    if places:
        last = max(places, key=lambda place: place.start)
        return last._replace(text=bare(last.text))
    return Marked(bare(text), "", 0, len(text))


def bare(text: str) -> str:
    r"""A text without the quotes, the emphasis, the `\text{}` and the full stop around it."""
    text = text.strip(_QUOTES)
    wrapped = re.fullmatch(r"\\(?:text|textbf|mathrm|mathbf)\{([^{}]*)\}", text)
    text = wrapped[1] if wrapped else text
    return text.removesuffix(".").strip(_QUOTES)


def boxes(text: str) -> list[Marked]:
    r"""What stands in each `\boxed{}` or `\fbox{}` whose braces are closed; of a box in a box, the inner one.

    TeX takes `\boxed 7` too: there it is a number, or a command with its braces, that stands in the box.
    """
    if "boxed" not in text and "fbox" not in text:
        return []
    found: list[Marked] = []
    opened: list[tuple[int, int] | None] = []
    for match in _BRACE.finditer(text):
        token = match[0]
        if match["bare"] is not None:
            found.append(Marked(match["bare"], "\\boxed{}", match.start(), match.end()))
        elif token.endswith("{") and token != "\\{":
            # Plain braces are kept too, as None: they must be closed before the box is.
            opened.append((match.start(), match.end()) if token != "{" else None)
        elif token == "}" and opened:
            place = opened.pop()
            # A box whose inside was taken already is the outer one of two.
            if place and (not found or found[-1].start < place[0]):
                found.append(Marked(text[place[1] : match.start()].strip(), "\\boxed{}", place[0], match.end()))
    return found


def _tags(text: str) -> list[Marked]:
    """What stands in `<answer>` and `<solution>`; one that is never closed extends to the end of the text."""
    found: list[Marked] = []
    opened: tuple[int, int] | None = None
    for match in _TAG.finditer(text):
        if not match[1]:
            opened = (match.start(), match.end())
        elif opened:
            found.append(Marked(text[opened[1] : match.start()].strip(), "<answer>", opened[0], match.end()))
            opened = None
    if opened:
        found.append(Marked(text[opened[1] :].strip(), "<answer>", opened[0], len(text)))
    return found


def _finishes(text: str) -> list[Marked]:
    """What stands in `finish[…]`; one that is never closed extends to the end of its line."""
    if "finish[" not in text.lower():
        return []
    found: list[Marked] = []
    opened: list[tuple[int, int] | None] = []
    for match in _BRACKET.finditer(text):
        if match[0] == "]":
            place = opened.pop() if opened else None
            if place:
                found.append(Marked(text[place[1] : match.start()].strip(), "finish[]", place[0], match.end()))
        else:
            opened.append((match.start(), match.end()) if len(match[0]) > 1 else None)
    last = next((place for place in reversed(opened) if place), None)
    if last and (not found or found[-1].start < last[0]):
        end = _line_end(text, last[1])
        found.append(Marked(text[last[1] : end].strip(), "finish[]", last[0], end))
    return found


def _without(text: str, opened: str, closed: str) -> str:
    """The text without everything between two marks. What is never closed stays."""
    if opened not in text:
        return text
    kept, at = [], 0
    while (start := text.find(opened, at)) >= 0 and (end := text.find(closed, start)) >= 0:
        kept.append(text[at:start])
        at = end + len(closed)
    return " ".join([*kept, text[at:]])


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start, start + _LONGEST)
    return min(len(text), start + _LONGEST) if end < 0 else end
