"""Near names: "did you mean ...?" for tools, properties and enum values.

Names are compared by their *key*: case and separators (`_ - . / space`) do not count, so `getWeather`,
`get_weather` and `GET-WEATHER` are the same. A pool name `provider/name` is also compared by its last
segment. Exact keys come first, then keys that contain one another, then the closest spellings; ties keep
alphabetical order, so the answer is deterministic. Cheap set and length bounds discard most names before any
spelling is compared.
"""

from collections.abc import Iterable
from functools import lru_cache

_SEPARATORS = "_-. :"
# At the 0.6 of `difflib.get_close_matches`, `weather` would mean `debate`.
_CLOSE = 0.65
# How much further from the name than the closest one a spelling may be.
_BEHIND = 0.2
# Spellings are compared in quadratic time, and a pool may have ten thousand names.
_COMPARED = 24
_TOLD = 12


# The names of a pool are compared again with every misspelt one.
@lru_cache(maxsize=8192)
def _keys(name: str) -> tuple[str, str, frozenset[str]]:
    folded = name.casefold()
    for sign in _SEPARATORS:
        folded = folded.replace(sign, "")
    last = folded.rpartition("/")[2]
    return folded.replace("/", ""), last, frozenset(last)


def suggestion(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """The end of a message about an unknown name: the names that were probably meant, else another step.

    Args:
        otherwise: the step, by default what there is, at most twelve names.
    """
    known = list(known)
    if near := near_names(name, known):
        return f"did you mean {' or '.join(map(repr, near))}?"
    more = f", and {len(known) - _TOLD} more" if len(known) > _TOLD else ""
    return otherwise or f"there are {', '.join(known[:_TOLD]) or 'none'}{more}"


def near_names(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """The known names closest to `name`, best first, at most `limit`, none if nothing is close."""
    whole, last, letters = _keys(name[:200])
    if not last or limit < 1:
        return []
    scored: list[tuple[float, str]] = []
    rough: list[tuple[float, str, str]] = []
    for candidate in known:
        other_whole, other_last, other_letters = _keys(candidate)
        if whole == other_whole:
            scored.append((-3.0, candidate))
        elif last == other_last:
            scored.append((-2.0, candidate))
        elif other_last:
            shared = 2.0 * len(letters & other_letters) / (len(letters) + len(other_letters))
            bound = 2.0 * min(len(last), len(other_last)) / (len(last) + len(other_last))
            contained = len(last) > 2 and (last in other_last or (len(other_last) > 2 and other_last in last))
            if contained or (shared > 0.5 and bound >= _CLOSE):
                rough.append((-shared - bound - contained, candidate, other_last))
    rough.sort()
    from difflib import SequenceMatcher  # imported here, because names are compared only for an error

    # `autojunk` drops frequent letters of long texts; `seq2` stays, because the matcher keeps an index of it.
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(last)
    for _, candidate, other in rough[:_COMPARED]:
        matcher.set_seq1(other)
        ratio = matcher.ratio()
        if other in last or last in other:
            ratio = max(ratio, _CLOSE)
        if ratio >= _CLOSE:
            scored.append((-ratio, candidate))
    scored.sort()
    return [candidate for score, candidate in scored[:limit] if score <= scored[0][0] + _BEHIND or score < -1]
