"""The airline of tau-bench: fourteen tools over flights, reservations and users.

Written from the published schemas and from what the published tools do, their arithmetic and their refusals included,
so that states recorded there are reproduced: money is never rounded, seats are not counted down, a cancelled
reservation keeps its history with the payments reversed, and new ids come from fixed lists.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from .toolkit import ToolError, Toolkit, reads, writes

NOW = "2024-05-15T15:00:00"
"""What time it is in this domain."""
RESERVATION_IDS = ("HATHAT", "HATHAU", "HATHAV")
CERTIFICATE_IDS = ("certificate_3221322", "certificate_3221323", "certificate_3221324")
INSURANCE, BAG = 30, 50
"""$ for the insurance of a passenger, and for a bag that is not free."""
AIRPORTS = {
    "SFO": "San Francisco",
    "JFK": "New York",
    "LAX": "Los Angeles",
    "ORD": "Chicago",
    "DFW": "Dallas",
    "DEN": "Denver",
    "SEA": "Seattle",
    "ATL": "Atlanta",
    "MIA": "Miami",
    "BOS": "Boston",
    "PHX": "Phoenix",
    "IAH": "Houston",
    "LAS": "Las Vegas",
    "MCO": "Orlando",
    "EWR": "Newark",
    "CLT": "Charlotte",
    "MSP": "Minneapolis",
    "DTW": "Detroit",
    "PHL": "Philadelphia",
    "LGA": "LaGuardia",
}

Cabin = Literal["basic_economy", "economy", "business"]
_OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


class Leg(TypedDict):
    """One flight of a reservation."""

    flight_number: str
    date: str


class Passenger(TypedDict):
    """A passenger; `dob` is the date of birth."""

    first_name: str
    last_name: str
    dob: str


class Payment(TypedDict):
    """A payment in $."""

    payment_id: str
    amount: float


class Airline(Toolkit):
    """The airline. Its database has the tables `flights`, `reservations` and `users`."""

    name: ClassVar[str] = "airline"

    @writes
    def book_reservation(
        self,
        user_id: str,
        origin: str,
        destination: str,
        flight_type: Literal["one_way", "round_trip"],
        cabin: Cabin,
        flights: list[Leg],
        passengers: list[Passenger],
        payment_methods: list[Payment],
        total_baggages: int,
        nonfree_baggages: int,
        insurance: Literal["yes", "no"],
    ) -> dict[str, Any]:
        """Book a reservation.

        Args:
            user_id: id of the user, such as 'sara_doe_496'
            origin: IATA code of the first airport, such as 'SFO'
            destination: IATA code of the last airport, such as 'JFK'
            flight_type: there only, or there and back
            cabin: the cabin of all flights
            flights: flight numbers and dates in order, such as 'HAT001' and '2024-05-01'
            passengers: names and dates of birth
            payment_methods: ids of the user's payment methods, with the $ that each pays
            total_baggages: how many bags
            nonfree_baggages: how many of them are paid for
            insurance: whether every passenger is insured
        """
        user = self.get_user_details(user_id)
        taken = self.db["reservations"]
        # As published: a fourth booking takes the third id again.
        reservation_id = next((new for new in RESERVATION_IDS[:2] if new not in taken), RESERVATION_IDS[2])
        legs = [self._priced(leg, cabin, len(passengers)) for leg in flights]
        price = sum(leg["price"] * len(passengers) for leg in legs) + BAG * nonfree_baggages
        price += INSURANCE * len(passengers) if insurance == "yes" else 0
        self._check_payments(user["payment_methods"], payment_methods, price)
        for payment in payment_methods:
            _pay(user["payment_methods"], payment["payment_id"], payment["amount"])
        taken[reservation_id] = reservation = {
            "reservation_id": reservation_id,
            "user_id": user_id,
            "origin": origin,
            "destination": destination,
            "flight_type": flight_type,
            "cabin": cabin,
            "flights": legs,
            "passengers": passengers,
            "payment_history": payment_methods,
            "created_at": NOW,
            "total_baggages": total_baggages,
            "nonfree_baggages": nonfree_baggages,
            "insurance": insurance,
        }
        user["reservations"].append(reservation_id)
        return reservation

    @reads
    def calculate(self, expression: str) -> str:
        """Work out an expression of numbers, + - * / and brackets.

        Args:
            expression: such as '2 * (3 + 4)'
        """
        return worked_out(expression)

    @writes
    def cancel_reservation(self, reservation_id: str) -> dict[str, Any]:
        """Cancel a whole reservation; what was paid goes back to the methods that paid.

        Args:
            reservation_id: such as 'ZFA04Y'
        """
        reservation = self._reservation(reservation_id)
        history = reservation["payment_history"]
        history += [{"payment_id": paid["payment_id"], "amount": -paid["amount"]} for paid in history]
        reservation["status"] = "cancelled"
        return reservation

    @reads
    def get_reservation_details(self, reservation_id: str) -> dict[str, Any]:
        """Look up a reservation.

        Args:
            reservation_id: such as '8JX2WO'
        """
        return self._reservation(reservation_id, "user not found")

    @reads
    def get_user_details(self, user_id: str) -> dict[str, Any]:
        """Look up a user, with payment methods and reservations.

        Args:
            user_id: such as 'sara_doe_496'
        """
        found: dict[str, Any] | None = self.db["users"].get(user_id)
        return found if found is not None else _refuse("user not found")

    @reads
    def list_all_airports(self) -> dict[str, str]:
        """List the airports and their cities."""
        return AIRPORTS

    @reads
    def search_direct_flight(self, origin: str, destination: str, date: str) -> list[dict[str, Any]]:
        """Search flights between two airports on a date, without a stop.

        Args:
            origin: such as 'JFK'
            destination: such as 'LAX'
            date: such as '2024-05-01'
        """
        return [
            _shown(flight, date)
            for flight in self.db["flights"].values()
            if flight["origin"] == origin and flight["destination"] == destination and _flies(flight, date)
        ]

    @reads
    def search_onestop_flight(self, origin: str, destination: str, date: str) -> list[list[dict[str, Any]]]:
        """Search pairs of flights between two airports on a date, with one stop.

        Args:
            origin: such as 'JFK'
            destination: such as 'LAX'
            date: such as '2024-05-01'
        """
        flights = list(self.db["flights"].values())
        onward: dict[str, list[Any]] = {}
        for flight in flights:
            if flight["destination"] == destination:
                onward.setdefault(flight["origin"], []).append(flight)
        found = []
        for first in (flight for flight in flights if flight["origin"] == origin):
            arrival = first["scheduled_arrival_time_est"]
            # As published, unpadded: after an overnight flight of the 1st to the 8th no second flight is found.
            next_date = f"2024-05-{int(date[-2:]) + 1}" if "+1" in arrival else date
            for second in onward.get(first["destination"], ()):
                fits = arrival <= second["scheduled_departure_time_est"]
                if fits and _flies(first, date) and _flies(second, next_date):
                    pair = _shown(first, date) | {"date": date}, _shown(second, date) | {"date": next_date}
                    found.append([*pair])
        return found

    @writes
    def send_certificate(self, user_id: str, amount: float) -> str:
        """Send a user a certificate. Be careful: it is money.

        Args:
            user_id: such as 'sara_doe_496'
            amount: its value in $
        """
        methods = self.get_user_details(user_id)["payment_methods"]
        payment_id = next((new for new in CERTIFICATE_IDS if new not in methods), "")
        if not payment_id:
            raise ToolError(f"user {user_id} has {len(CERTIFICATE_IDS)} new certificates; no more can be sent")
        methods[payment_id] = {"source": "certificate", "amount": amount, "id": payment_id}
        return f"Certificate {payment_id} added to user {user_id} with amount {amount}."

    @reads
    def think(self, thought: str) -> str:
        """Write a thought down. It finds nothing out and changes nothing.

        Args:
            thought: the thought
        """
        return ""

    @reads(ends=True)
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the user over to a human agent, if the user asks for one or the tools cannot solve the matter.

        Args:
            summary: what the matter is
        """
        return "Transfer successful"

    @writes
    def update_reservation_baggages(
        self, reservation_id: str, total_baggages: int, nonfree_baggages: int, payment_id: str
    ) -> dict[str, Any]:
        """Change the bags of a reservation.

        Args:
            reservation_id: such as 'ZFA04Y'
            total_baggages: how many bags from now on
            nonfree_baggages: how many of them are paid for
            payment_id: the user's payment method for what is added
        """
        reservation = self._reservation(reservation_id)
        price = BAG * max(0, nonfree_baggages - reservation["nonfree_baggages"])
        self._charge(reservation, payment_id, price)
        reservation |= {"total_baggages": total_baggages, "nonfree_baggages": nonfree_baggages}
        return reservation

    @writes
    def update_reservation_flights(
        self, reservation_id: str, cabin: Cabin, flights: list[Leg], payment_id: str
    ) -> dict[str, Any]:
        """Change the flights of a reservation.

        Args:
            reservation_id: such as 'ZFA04Y'
            cabin: the cabin of all flights from now on
            flights: all flights from now on, also those that stay
            payment_id: the user's payment method for the difference, which may be a refund
        """
        reservation = self._reservation(reservation_id)
        people, before = len(reservation["passengers"]), reservation["flights"]
        # Reversed, so that of equal legs the first wins, as in the published tool.
        kept = {(leg["flight_number"], leg["date"]): leg for leg in reversed(before)}
        # A flight that stays keeps the price that was paid for it, but not in another cabin.
        kept = kept if cabin == reservation["cabin"] else {}
        legs = []
        for leg in flights:
            same = kept.get((leg["flight_number"], leg["date"]))
            known = {key: same[key] for key in ("price", "origin", "destination")} if same else None
            legs.append({**leg, **known} if known else self._priced(leg, cabin, people))
        price = sum(leg["price"] for leg in legs) * people - sum(leg["price"] for leg in before) * people
        self._charge(reservation, payment_id, price)
        reservation["flights"] = legs
        return reservation

    @writes
    def update_reservation_passengers(self, reservation_id: str, passengers: list[Passenger]) -> dict[str, Any]:
        """Change the passengers of a reservation, but not how many there are.

        Args:
            reservation_id: such as 'ZFA04Y'
            passengers: all passengers from now on
        """
        reservation = self._reservation(reservation_id)
        if len(passengers) != len(reservation["passengers"]):
            raise ToolError("number of passengers does not match")
        reservation["passengers"] = passengers
        return reservation

    # -- what the tools share ------------------------------------------------------------------------------------------

    def _reservation(self, reservation_id: str, refusal: str = "reservation not found") -> dict[str, Any]:
        found: dict[str, Any] | None = self.db["reservations"].get(reservation_id)
        return found if found is not None else _refuse(refusal)

    def _priced(self, leg: Leg, cabin: str, people: int) -> dict[str, Any]:
        """A leg with the price of a seat, if there are seats enough."""
        number, date = leg["flight_number"], leg["date"]
        flight = self.db["flights"].get(number)
        if flight is None:
            raise ToolError(f"flight {number} not found")
        day = flight["dates"].get(date)
        if day is None:
            raise ToolError(f"flight {number} not found on date {date}")
        if day["status"] != "available":
            raise ToolError(f"flight {number} not available on date {date}")
        if day["available_seats"][cabin] < people:
            raise ToolError(f"not enough seats on flight {number}")
        return {**leg, "price": day["prices"][cabin], "origin": flight["origin"], "destination": flight["destination"]}

    def _check_payments(self, methods: Mapping[str, Any], payments: Sequence[Payment], price: float) -> None:
        for payment in payments:
            method = methods.get(payment["payment_id"])
            if method is None:
                raise ToolError(f"payment method {payment['payment_id']} not found")
            if method["source"] in ("gift_card", "certificate") and method["amount"] < payment["amount"]:
                raise ToolError(f"not enough balance in payment method {payment['payment_id']}")
        paid = sum(payment["amount"] for payment in payments)
        # Exactly, and unrounded, as in the published tool: the recorded states depend on it.
        if paid != price:
            raise ToolError(f"payment amount does not add up, total price is {price}, but paid {paid}")

    def _charge(self, reservation: dict[str, Any], payment_id: str, price: float) -> None:
        """Take the price of a change from one payment method; a negative one is given back."""
        method = self.db["users"][reservation["user_id"]]["payment_methods"].get(payment_id)
        if method is None:
            raise ToolError("payment method not found")
        if method["source"] == "certificate":
            raise ToolError("certificate cannot be used to update reservation")
        if method["source"] == "gift_card":
            if method["amount"] < price:
                raise ToolError("gift card balance is not enough")
            method["amount"] -= price
        # A change that costs nothing leaves no entry in the published states.
        if price != 0:
            reservation["payment_history"].append({"payment_id": payment_id, "amount": price})


def worked_out(expression: str) -> str:
    """The value of an expression of numbers, + - * / and brackets, to two digits.

    Raises:
        ToolError: it is none, or has no value.
    """
    # The published tool evaluates such texts as Python; here they are read, and nothing is executed.
    if set(expression) - set("0123456789+-*/(). "):
        raise ToolError("invalid characters in expression")
    try:
        return str(round(float(_value(ast.parse(expression.strip(), mode="eval").body)), 2))
    except (SyntaxError, ArithmeticError, RecursionError, ValueError) as error:
        raise ToolError(str(error)) from error


def _refuse(text: str) -> Any:
    raise ToolError(text)


def _pay(methods: dict[str, Any], payment_id: str, amount: float) -> None:
    source = methods[payment_id]["source"]
    if source == "gift_card":
        methods[payment_id]["amount"] -= amount
    elif source == "certificate":
        del methods[payment_id]


def _flies(flight: Mapping[str, Any], date: str) -> bool:
    return date in flight["dates"] and flight["dates"][date]["status"] == "available"


def _shown(flight: Mapping[str, Any], date: str) -> dict[str, Any]:
    """A flight as it is on a date."""
    return {key: value for key, value in flight.items() if key != "dates"} | dict(flight["dates"][date])


def _value(node: ast.AST) -> Any:
    """The value of an arithmetic expression.

    Raises:
        ValueError: it is not one.
        ArithmeticError: it has no value.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.operand))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, exponent = _value(node.left), _value(node.right)
        # `9**9**9` would keep the process busy for ever.
        if abs(exponent) > 64:
            raise ValueError("the exponent is too large")
        return float(base) ** exponent
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left), _value(node.right))
    raise ValueError("not an arithmetic expression")
