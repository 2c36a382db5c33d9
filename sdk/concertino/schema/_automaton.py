"""Linear-time matching of admitted patterns in plain Python.

A tree of `_patterns` becomes a Thompson automaton: a list of *steps*, each a character set, a fork, an anchor
or the end. A *state* of the lazy DFA is the set of steps alive before a character, plus what the previous
character was (none, word, other), which is all that anchors need. Transitions are remembered per character,
so a match costs one dictionary look-up per character and can never backtrack. The memory is thrown away when
it grows past a bound.

The same automaton run forwards from the start yields the shortest text that matches, for generated examples.
"""

from collections.abc import Iterable
from typing import Any

from ._patterns import WORD, Chars, PatternRefused, Tree, parse

MAX_PATTERN_STEPS = 1000
MAX_ALL_STEPS = 20_000  # of all patterns of one schema
_MAX_REMEMBERED = 20_000
_SET, _FORK, _ANCHOR, _END = range(4)
_SAMPLE_CHARS = "a1A0 -_.:/@," + "".join(chr(code) for code in range(33, 127))
_MAX_SAMPLE_WORK = 50_000  # characters tried against steps, some tens of milliseconds

_Step = tuple[int, Any, int]  # (kind, Chars | other step | anchor, next step)
_WORD = Chars(WORD)


class _State:
    __slots__ = ("ends", "next", "previous", "steps")

    def __init__(self, steps: frozenset[int], previous: int) -> None:
        self.steps = steps
        self.previous = previous  # 0: start of text, 1: after a word character, 2: after another
        self.next: dict[str, _State | None] = {}
        self.ends: bool | None = None


class Matcher:
    """A compiled pattern: `matches` searches anywhere in a text, `sample` invents a short text that matches."""

    __slots__ = ("_first", "_remembered", "_samples", "_start", "_states", "_steps", "pattern", "tree")

    def __init__(self, pattern: str) -> None:
        """Raises `PatternRefused` where the pattern is refused or too large."""
        self.pattern = pattern
        self.tree: Tree = parse(pattern)
        self._steps: list[_Step] = [(_END, None, 0)]
        self._start = self._build(self.tree, 0)
        self._samples: dict[int, str | None] = {}
        self._forget()

    @property
    def steps(self) -> int:
        """How large the automaton is; bounds the time of a match together with the text's length."""
        return len(self._steps)

    def _forget(self) -> None:
        self._states: dict[tuple[frozenset[int], int], _State] = {}
        self._remembered = 0
        self._first = self._state(frozenset((self._start,)), 0)

    def _add(self, kind: int, value: Any, following: int) -> int:
        if len(self._steps) >= MAX_PATTERN_STEPS:
            text = f"repeat counts that unfold to more than {MAX_PATTERN_STEPS} steps; use minLength or maxLength"
            raise PatternRefused("pattern_too_large", text)
        self._steps.append((kind, value, following))
        return len(self._steps) - 1

    def _build(self, tree: Tree, following: int) -> int:
        kind = tree[0]
        if kind == "set":
            return self._add(_SET, tree[1], following)
        if kind == "at":
            return self._add(_ANCHOR, tree[1], following)
        if kind == "seq":
            for part in reversed(tree[1]):
                following = self._build(part, following)
            return following
        if kind == "alt":
            options = [self._build(option, following) for option in tree[1]]
            entry = options[-1]
            for option in reversed(options[:-1]):
                entry = self._add(_FORK, option, entry)
            return entry
        return self._build_repeat(tree, following)

    def _build_repeat(self, tree: Tree, following: int) -> int:
        _, inner, low, high = tree
        if max(low, high or 0) > MAX_PATTERN_STEPS:
            self._steps.extend([(_END, None, 0)] * MAX_PATTERN_STEPS)  # `_add` words the refusal
        entry = following
        if high is None:
            entry = self._add(_FORK, following, following)
            body = self._build(inner, entry)
            self._steps[entry] = (_FORK, body, following)
        else:
            for _ in range(high - low):
                entry = self._add(_FORK, self._build(inner, entry), following)
        for _ in range(low):
            entry = self._build(inner, entry)
        return entry

    def _state(self, steps: frozenset[int], previous: int) -> _State:
        key = (steps, previous)
        return self._states.get(key) or self._states.setdefault(key, _State(*key))

    def _closure(self, steps: Iterable[int], previous: int, char: str | None) -> set[int]:
        """Every step reachable without a character, knowing the characters on both sides."""
        at_word = previous == 1
        before_word = char is not None and _WORD.has(char)
        open_anchors = {"^"} if previous == 0 else set()
        if char is None:
            open_anchors.add("$")
        open_anchors.add("b" if at_word != before_word else "B")
        reached: set[int] = set()
        pending = list(steps)
        while pending:
            step = pending.pop()
            if step in reached:
                continue
            reached.add(step)
            kind, value, following = self._steps[step]
            if kind == _FORK:
                pending += (value, following)
            elif kind == _ANCHOR and value in open_anchors:
                pending.append(following)
        return reached

    def _advance(self, state: _State, char: str) -> _State | None:
        """The state after one more character; None once the pattern has matched."""
        reached = self._closure(state.steps, state.previous, char)
        following: _State | None = None
        if 0 not in reached:
            alive = self._moved(reached, char) | {self._start}
            following = self._state(frozenset(alive), 1 if _WORD.has(char) else 2)
        state.next[char] = following
        self._remembered += 1
        if self._remembered > _MAX_REMEMBERED:
            self._forget()
        return following

    def _moved(self, reached: set[int], char: str) -> set[int]:
        return {
            self._steps[step][2] for step in reached if self._steps[step][0] == _SET and self._steps[step][1].has(char)
        }

    def matches(self, text: str) -> bool:
        """Does the pattern match anywhere in the text? Linear in its length."""
        state = self._first
        for char in text:
            following = state.next[char] if char in state.next else self._advance(state, char)
            if following is None:
                return True
            state = following
        if state.ends is None:
            state.ends = 0 in self._closure(state.steps, state.previous, None)
        return state.ends

    def sample(self, min_length: int = 0) -> str | None:
        """A short text, not below `min_length` characters, that matches; None if none was found."""
        if min_length not in self._samples:
            self._samples[min_length] = self._sampled(min_length)
        return self._samples[min_length]

    def _sampled(self, min_length: int) -> str | None:
        alphabet = self._alphabet()
        frontier: dict[tuple[frozenset[int], int], str] = {(frozenset((self._start,)), 0): ""}
        shorter: str | None = None
        work = 0
        while frontier and work < _MAX_SAMPLE_WORK:
            longer: dict[tuple[frozenset[int], int], str] = {}
            for (steps, previous), text in frontier.items():
                if 0 in self._closure(steps, previous, None):
                    if len(text) >= min_length:
                        return text
                    shorter = shorter or text
                for char in alphabet:
                    reached = self._closure(steps, previous, char)
                    work += len(reached)
                    moved = self._moved(reached, char)
                    if moved:
                        longer.setdefault((frozenset(moved), 1 if _WORD.has(char) else 2), text + char)
            frontier = longer
        padded = None if shorter is None else shorter + " " * (min_length - len(shorter))
        return padded if padded is not None and self.matches(padded) else None

    def _alphabet(self) -> list[str]:
        """One character for each way in which the sets of the pattern tell characters apart."""
        sets = list(dict.fromkeys(value for kind, value, _ in self._steps if kind == _SET))
        named = "".join(chr(low) for chars in sets for low, _ in chars.ranges if low > 126 and not chars.negated)
        apart: dict[tuple[bool, ...], str] = {}
        for char in _SAMPLE_CHARS + named:
            apart.setdefault((_WORD.has(char), *(chars.has(char) for chars in sets)), char)
        return list(apart.values())
