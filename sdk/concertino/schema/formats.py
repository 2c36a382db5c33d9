"""The nine formats that are checked, in our own reading; all others are annotations.

Rust's library reads these nine alike and checks them itself; `FORMATS` are for `jsonschema`. `date-time`, `date` and
`time` follow RFC 3339 (a leap second only at 23:59:60 UTC), `email` and `uri` the shape that RFC 5321 and RFC 3986
share with practice, `uuid` RFC 9562, `ipv4` and `ipv6` the standard library, `regex` the syntax of ECMA 262 as far as
`patterns` reads it. Each check takes text and returns a bool, and never raises.
"""

import re
from collections.abc import Callable

from .patterns import Pattern, PatternRefused

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))")
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_ATOM = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_QUOTED = re.compile(r'"(?:[ !#-\[\]-~]|\\[ -~])*"')
_DOMAIN = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)
_ESCAPED = r"%[0-9A-Fa-f]{2}"
_URI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:"
    rf"(?://(?P<authority>(?:[A-Za-z0-9._~!$&'()*+,;=:@\[\]-]|{_ESCAPED})*)(?=[/?#]|\Z))?"
    rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|{_ESCAPED})*"
    rf"(?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|{_ESCAPED})*)?"
    rf"(?:\#(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|{_ESCAPED})*)?"
)
_AUTHORITY = re.compile(r"(?:[^@\[\]]*@)?(?:\[([^\[\]@]*)\]|[^@:\[\]]*)(?::[0-9]*)?")


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    from datetime import date  # imported here, because few schemas have dates

    try:
        # RFC 3339 has a year 0000, a leap year; datetime has not.
        date(int(found[1]) or 4, int(found[2]), int(found[3]))
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    found = _TIME.fullmatch(text)
    if found is None:
        return False
    hour, minute, second = int(found[1]), int(found[2]), int(found[3])
    shift = int(found[5] or 0) * 60 + int(found[6] or 0)
    if hour > 23 or minute > 59 or second > 60 or int(found[5] or 0) > 23 or int(found[6] or 0) > 59:
        return False
    utc = (hour * 60 + minute - (-shift if found[4] == "-" else shift)) % 1440
    # RFC 3339: a leap second stands at 23:59:60 UTC, whatever the local time of the text.
    return second < 60 or utc == 1439


def _is_date_time(text: str) -> bool:
    return text[10:11] in ("T", "t") and _is_date(text[:10]) and _is_time(text[11:])


def _is_ipv4(text: str) -> bool:
    from ipaddress import IPv4Address

    try:
        IPv4Address(text)
    except ValueError:
        return False
    return text.isascii()


def _is_ipv6(text: str) -> bool:
    from ipaddress import IPv6Address

    try:
        IPv6Address(text)
    except ValueError:
        return False
    # Python accepts scope ids (`fe80::1%eth0`), which are no part of an address in JSON Schema.
    return text.isascii() and "%" not in text


def _is_email(text: str) -> bool:
    # From the right: a quoted local part may hold `@` itself.
    local, at, domain = text.rpartition("@")
    if not at or len(local) > 64:
        return False
    if domain.startswith("[") and domain.endswith("]"):
        inner = domain[1:-1]
        known = _is_ipv6(inner[5:]) if inner.startswith("IPv6:") else _is_ipv4(inner)
    else:
        known = _DOMAIN.fullmatch(domain) is not None
    return known and bool(_ATOM.fullmatch(local) or _QUOTED.fullmatch(local))


def _is_uri(text: str) -> bool:
    found = _URI.fullmatch(text)
    if found is None:
        return False
    if found["authority"] is None:
        return True
    authority = _AUTHORITY.fullmatch(found["authority"])
    return authority is not None and (
        authority[1] is None or (authority[1][:1] in "vV" and authority[1] != "") or _is_ipv6(authority[1])
    )


def _is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def _is_regex(text: str) -> bool:
    try:
        re.compile(Pattern.read(text).python)
    except PatternRefused as refusal:
        # What this package refuses for its cost is still a regular expression.
        return refusal.reason != "pattern_syntax"
    except re.error:
        return False
    return True


FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _is_date,
    "date-time": _is_date_time,
    "email": _is_email,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "regex": _is_regex,
    "time": _is_time,
    "uri": _is_uri,
    "uuid": _is_uuid,
}

SAMPLES: dict[str, str] = {
    "date": "2024-05-31",
    "date-time": "2024-05-31T12:00:00Z",
    "email": "name@example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "regex": "^a+$",
    "time": "12:00:00Z",
    "uri": "https://example.com/",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}
