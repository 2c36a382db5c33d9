"""The database of the ferry company: ports, ships, sailings, customers, bookings, vouchers and lost items.

It is the same in every process. Money is in whole euros, lengths in metres. Today is 10 June 2026.
"""

from __future__ import annotations

from typing import Any

TODAY = "2026-06-10"

_PORTS = {"KEL": "Kelmouth", "ARN": "Arnsund", "VIK": "Vikholm", "OST": "Ostrey", "LUN": "Lunavik"}

_SHIPS = (  # id, name, pets allowed, cabins
    ("aurora", "Aurora", True, 6),
    ("borealis", "Borealis", True, 4),
    ("cirrus", "Cirrus", False, 0),
    ("dorado", "Dorado", True, 8),
)

_SAILINGS = (  # id, from, to, date, departs, arrives, ship, status, places, metres, cabins left, adult, per metre
    ("S101", "KEL", "ARN", "2026-06-11", "08:00", "12:30", "aurora", "open", 80, 60, 2, 40, 8),
    ("S102", "KEL", "ARN", "2026-06-11", "18:00", "22:30", "cirrus", "open", 3, 0, 0, 32, 7),
    ("S103", "KEL", "ARN", "2026-06-14", "08:00", "12:30", "aurora", "open", 120, 90, 5, 40, 8),
    ("S104", "KEL", "ARN", "2026-06-20", "08:00", "12:30", "aurora", "open", 140, 100, 6, 44, 9),
    ("S105", "KEL", "ARN", "2026-06-20", "18:00", "22:30", "cirrus", "open", 60, 20, 0, 36, 7),
    ("S106", "ARN", "KEL", "2026-06-12", "14:00", "18:30", "aurora", "open", 90, 70, 4, 40, 8),
    ("S107", "ARN", "KEL", "2026-06-21", "14:00", "18:30", "aurora", "open", 130, 95, 6, 44, 9),
    ("S108", "ARN", "KEL", "2026-06-28", "14:00", "18:30", "aurora", "open", 140, 100, 6, 44, 9),
    ("S201", "KEL", "VIK", "2026-06-11", "21:00", "07:00", "dorado", "open", 50, 40, 1, 70, 12),
    ("S202", "KEL", "VIK", "2026-06-13", "21:00", "07:00", "dorado", "cancelled", 150, 110, 8, 70, 12),
    ("S203", "KEL", "VIK", "2026-06-15", "21:00", "07:00", "dorado", "open", 100, 85, 5, 70, 12),
    ("S204", "KEL", "VIK", "2026-06-24", "21:00", "07:00", "dorado", "open", 150, 110, 8, 78, 13),
    ("S205", "VIK", "KEL", "2026-06-18", "20:00", "06:00", "dorado", "open", 110, 80, 0, 70, 12),
    ("S206", "VIK", "KEL", "2026-06-30", "20:00", "06:00", "dorado", "open", 150, 110, 8, 78, 13),
    ("S301", "ARN", "OST", "2026-06-11", "09:30", "10:45", "borealis", "open", 70, 30, 4, 18, 5),
    ("S302", "ARN", "OST", "2026-06-12", "09:30", "10:45", "borealis", "cancelled", 90, 50, 4, 18, 5),
    ("S303", "ARN", "OST", "2026-06-13", "09:30", "10:45", "borealis", "open", 90, 6, 4, 18, 5),
    ("S304", "OST", "ARN", "2026-06-13", "17:00", "18:15", "borealis", "open", 90, 50, 4, 18, 5),
    ("S305", "OST", "ARN", "2026-06-19", "17:00", "18:15", "borealis", "open", 90, 50, 4, 18, 5),
    ("S401", "OST", "LUN", "2026-06-17", "11:00", "15:00", "cirrus", "open", 40, 12, 0, 30, 6),
    ("S402", "LUN", "OST", "2026-06-22", "16:00", "20:00", "cirrus", "open", 45, 18, 0, 30, 6),
    ("S403", "OST", "LUN", "2026-06-25", "11:00", "15:00", "cirrus", "open", 0, 18, 0, 30, 6),
)

_CUSTOMERS = (  # id, name, e-mail, credit, points
    ("C01", "Ida Holm", "ida.holm@example.org", 0, 40),
    ("C02", "Jonas Brandt", "jonas.brandt@example.org", 150, 220),
    ("C03", "Mara Petit", "mara.petit@example.org", 20, 95),
    ("C04", "Owen Achterberg", "owen.a@example.org", 0, 0),
    ("C05", "Selma Aksoy", "selma.aksoy@example.org", 75, 510),
    ("C06", "Tomas Reyes", "tomas.reyes@example.org", 5, 12),
    ("C07", "Ida Holmberg", "ida.holmberg@example.org", 0, 300),
    ("C08", "Yuki Tanabe", "yuki.tanabe@example.org", 30, 130),
    ("C09", "Pavel Novak", "pavel.novak@example.org", 400, 60),
    ("C10", "Grace Okafor", "grace.okafor@example.org", 0, 18),
)

_BOOKINGS = (  # id, customer, sailing, adults, children, metres, cabin, pets, price, paid by, status
    ("B001", "C01", "S104", 2, 1, 5, False, 0, 155, "card", "confirmed"),
    ("B002", "C01", "S107", 2, 1, 5, False, 0, 155, "card", "confirmed"),
    ("B003", "C02", "S103", 1, 0, 0, True, 0, 100, "card", "confirmed"),
    ("B004", "C02", "S101", 2, 0, 6, False, 1, 138, "credit", "confirmed"),
    ("B005", "C03", "S202", 2, 2, 5, True, 0, 330, "card", "confirmed"),
    ("B006", "C04", "S301", 4, 2, 0, False, 0, 90, "card", "confirmed"),
    ("B007", "C05", "S204", 1, 0, 0, False, 0, 78, "credit", "confirmed"),
    ("B008", "C05", "S206", 1, 0, 0, False, 0, 78, "credit", "confirmed"),
    ("B009", "C06", "S302", 1, 0, 4, False, 0, 38, "card", "confirmed"),
    ("B010", "C07", "S106", 2, 0, 0, False, 0, 80, "card", "checked_in"),
    ("B011", "C08", "S203", 2, 1, 5, False, 1, 245, "card", "confirmed"),
    ("B012", "C08", "S205", 2, 1, 5, False, 1, 245, "card", "confirmed"),
    ("B013", "C09", "S201", 3, 0, 0, True, 0, 270, "card", "confirmed"),
    ("B014", "C10", "S305", 2, 3, 0, False, 0, 63, "card", "confirmed"),
    ("B015", "C03", "S105", 1, 0, 4, False, 0, 64, "card", "cancelled"),
    ("B016", "C10", "S401", 2, 3, 5, False, 0, 135, "card", "confirmed"),
)

_VOUCHERS = (("V-ALPHA", 25, ""), ("V-BRAVO", 40, ""), ("V-CHARLIE", 15, "C05"), ("V-DELTA", 60, ""))

_ITEMS = (  # id, what, where it was found, sailing, claimed by
    ("L01", "red umbrella", "deck 5", "S301", ""),
    ("L02", "black umbrella", "lounge", "S301", ""),
    ("L03", "child's blue rucksack", "play room", "S101", ""),
    ("L04", "reading glasses", "restaurant", "S103", "C02"),
    ("L05", "silver laptop", "cabin 214", "S201", ""),
)


def database() -> dict[str, Any]:
    """The database, each time anew."""
    sailing = (
        "from",
        "to",
        "date",
        "departs",
        "arrives",
        "ship",
        "status",
        "places",
        "metres",
        "cabins",
        "fare_adult",
        "fare_metre",
    )
    booking = (
        "customer_id",
        "sailing_id",
        "adults",
        "children",
        "metres",
        "cabin",
        "pets",
        "price",
        "paid_by",
        "status",
    )
    return {
        "ports": {code: {"name": name} for code, name in _PORTS.items()},
        "ships": _table(_SHIPS, ("name", "pets", "cabins")),
        "sailings": _table(_SAILINGS, sailing),
        "customers": {
            row[0]: {**record, "bookings": [each[0] for each in _BOOKINGS if each[1] == row[0]]}
            for row, record in zip(_CUSTOMERS, _rows(_CUSTOMERS, ("name", "email", "credit", "points")), strict=True)
        },
        "bookings": _table(_BOOKINGS, booking),
        "vouchers": _table(_VOUCHERS, ("amount", "used_by")),
        "lost_items": _table(_ITEMS, ("what", "where", "sailing_id", "claimed_by")),
        "desk": {"colleagues": {"cases": 0}},
    }


def _table(rows: tuple[tuple[Any, ...], ...], fields: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    return {row[0]: record for row, record in zip(rows, _rows(rows, fields), strict=True)}


def _rows(rows: tuple[tuple[Any, ...], ...], fields: tuple[str, ...]) -> list[dict[str, Any]]:
    return [dict(zip(fields, row[1:], strict=True)) for row in rows]
