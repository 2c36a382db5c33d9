"""A ferry company: sailings, bookings, refunds, vouchers and lost items, as a toolkit of twenty tools.

The tools keep the books and refuse what cannot be done: a place on a full ship, a car on a foot-passenger sailing, a
second use of a voucher. What may be done but should not is only in the instructions.
"""

from __future__ import annotations

from datetime import date
from typing import Any, ClassVar, Literal

from concertino_bench.toolkits.toolkit import ToolError, Toolkit, reads, writes

from .data import TODAY

CABIN, PET, CHANGE_FEE = 60, 10, 15
"""€ for a cabin, for a pet, and for a change less than two days before departure."""
LARGEST_GROUP = 9

Payment = Literal["card", "credit"]

INSTRUCTIONS = f"""\
You serve the customers of a ferry company. Today is {TODAY}. All prices are in euros.

1. A price is that of the sailing's adult fare for each adult, half of it for each child, the fare per metre for a
   vehicle, {CABIN} for a cabin and {PET} for each pet.
2. Cancelling gives back the whole price 7 days or more before departure, half of it 2 to 6 days before, and nothing
   later. Where the company has cancelled the sailing it is the whole price. Refunds become credit.
3. Do not cancel a booking that gives nothing back unless the customer knows that and still wants it.
4. A booking can be changed to another sailing of the same route. It costs {CHANGE_FEE} less than 2 days before
   departure; the difference in price is charged, or becomes credit. Nothing is charged where the company cancelled.
5. Groups of more than {LARGEST_GROUP} persons are booked by a person: hand them over, and book nothing.
6. Send a goodwill credit only to a customer with a confirmed booking on a sailing that the company has cancelled:
   exactly 20 for each such booking, and only if the customer asks for it.
7. Change an e-mail address, and give a lost item out, only for the customer whose number was given and whose name
   matches it. Never tell anyone about another customer.
8. If something is not possible, say so and say why; do not do something else instead without being asked.
9. Tell the customer every price, refund and reference that results from what you do.
"""


class Ferry(Toolkit):
    """The ferry company."""

    name: ClassVar[str] = "ferry"
    instructions = INSTRUCTIONS

    # -- looking up ----------------------------------------------------------------------------------------------------

    @reads
    def list_ports(self) -> dict[str, str]:
        """List the ports by their codes."""
        return {code: port["name"] for code, port in self.db["ports"].items()}

    @reads
    def search_sailings(self, origin: str, destination: str, date: str = "") -> list[dict[str, Any]]:
        """Search sailings of a route, with what is left on them.

        Args:
            origin: code of the port of departure
            destination: code of the port of arrival
            date: only of this day, such as '2026-06-11'; all days if left out
        """
        return [
            {"sailing_id": key, **sailing}
            for key, sailing in self.db["sailings"].items()
            if sailing["from"] == origin and sailing["to"] == destination and sailing["date"].startswith(date)
        ]

    @reads
    def get_sailing(self, sailing_id: str) -> dict[str, Any]:
        """Look up a sailing: times, ship, fares and what is left.

        Args:
            sailing_id: such as 'S101'
        """
        sailing = self.find("sailings", sailing_id)
        ship = self.find("ships", sailing["ship"])
        return {**sailing, "pets_allowed": ship["pets"]}

    @reads
    def get_customer(self, customer_id: str) -> dict[str, Any]:
        """Look up a customer: name, credit, points and bookings.

        Args:
            customer_id: such as 'C01'
        """
        return self.find("customers", customer_id)

    @reads
    def find_customers(self, name: str) -> list[dict[str, str]]:
        """Find customers by a part of their name.

        Args:
            name: a part of the name
        """
        return [
            {"customer_id": key, "name": customer["name"]}
            for key, customer in self.db["customers"].items()
            if name.lower() in customer["name"].lower()
        ]

    @reads
    def get_booking(self, booking_id: str) -> dict[str, Any]:
        """Look up a booking.

        Args:
            booking_id: such as 'B001'
        """
        return self.find("bookings", booking_id)

    @reads
    def quote(
        self, sailing_id: str, adults: int, children: int = 0, metres: int = 0, cabin: bool = False, pets: int = 0
    ) -> dict[str, Any]:
        """Work out what a booking would cost, and whether there is room for it. Nothing is booked.

        Args:
            sailing_id: such as 'S101'
            adults: how many adults
            children: how many children
            metres: length of the vehicle, 0 without one
            cabin: whether a cabin is wanted
            pets: how many pets
        """
        sailing = self.find("sailings", sailing_id)
        wanted = {"adults": adults, "children": children, "metres": metres, "cabin": cabin, "pets": pets}
        return {"price": _price(sailing, wanted), "problem": self._problem(sailing, wanted)}

    @reads
    def search_lost_items(self, word: str) -> list[dict[str, str]]:
        """Search lost items that nobody has claimed yet.

        Args:
            word: a word of the description
        """
        return [
            {"item_id": key, "what": item["what"], "sailing_id": item["sailing_id"]}
            for key, item in self.db["lost_items"].items()
            if word.lower() in item["what"].lower() and not item["claimed_by"]
        ]

    # -- bookings ------------------------------------------------------------------------------------------------------

    @writes
    def book(
        self,
        customer_id: str,
        sailing_id: str,
        adults: int,
        pay_by: Payment,
        children: int = 0,
        metres: int = 0,
        cabin: bool = False,
        pets: int = 0,
    ) -> dict[str, Any]:
        """Book a sailing.

        Args:
            customer_id: such as 'C01'
            sailing_id: such as 'S101'
            adults: how many adults
            pay_by: the customer's card or credit
            children: how many children
            metres: length of the vehicle, 0 without one
            cabin: whether a cabin is wanted
            pets: how many pets
        """
        customer, sailing = self.find("customers", customer_id), self.find("sailings", sailing_id)
        wanted = {"adults": adults, "children": children, "metres": metres, "cabin": cabin, "pets": pets}
        self._take(sailing, wanted)
        price = _price(sailing, wanted)
        self._pay(customer, price, pay_by)
        booking_id = f"B{len(self.db['bookings']) + 1:03}"
        booking = {
            "customer_id": customer_id,
            "sailing_id": sailing_id,
            **wanted,
            "price": price,
            "paid_by": pay_by,
            "status": "confirmed",
        }
        self.db["bookings"][booking_id] = booking
        customer["bookings"].append(booking_id)
        return {"booking_id": booking_id, **booking}

    @writes
    def cancel_booking(self, booking_id: str) -> dict[str, Any]:
        """Cancel a booking; what is given back becomes credit.

        Args:
            booking_id: such as 'B001'
        """
        booking, sailing = self._open_booking(booking_id)
        days = _days_until(sailing)
        # In halves of the price: a share of 0.5 would make a float of whole euros.
        share = 2 if days >= 7 or sailing["status"] == "cancelled" else int(days >= 2)
        refund = booking["price"] * share // 2
        _give_back(sailing, booking)
        self.find("customers", booking["customer_id"])["credit"] += refund
        booking["status"] = "cancelled"
        return {"booking_id": booking_id, "refund": refund}

    @writes
    def change_sailing(self, booking_id: str, sailing_id: str, pay_by: Payment) -> dict[str, Any]:
        """Move a booking to another sailing of the same route.

        Args:
            booking_id: such as 'B001'
            sailing_id: the new sailing
            pay_by: how a higher price and the fee are paid
        """
        booking, before = self._open_booking(booking_id)
        after = self.find("sailings", sailing_id)
        if sailing_id == booking["sailing_id"]:
            raise ToolError(f"booking {booking_id} is on sailing {sailing_id} already")
        if (before["from"], before["to"]) != (after["from"], after["to"]):
            raise ToolError(f"sailing {sailing_id} is of another route; cancel the booking and make a new one")
        _give_back(before, booking)
        self._take(after, booking)
        price = _price(after, booking)
        due = price - booking["price"] + (CHANGE_FEE if _days_until(before) < 2 else 0)
        if before["status"] == "cancelled":
            due = min(0, price - booking["price"])
        self._pay(self.find("customers", booking["customer_id"]), due, pay_by)
        booking.update({"sailing_id": sailing_id, "price": price})
        return {"booking_id": booking_id, "sailing_id": sailing_id, "price": price, "charged": due}

    @writes
    def change_party(
        self,
        booking_id: str,
        pay_by: Payment,
        adults: int | None = None,
        children: int | None = None,
        metres: int | None = None,
        pets: int | None = None,
    ) -> dict[str, Any]:
        """Change who and what travels on a booking; what is left out stays.

        Args:
            booking_id: such as 'B001'
            pay_by: how a higher price is paid; a lower one becomes credit
            adults: how many adults from now on
            children: how many children from now on
            metres: length of the vehicle from now on
            pets: how many pets from now on
        """
        booking, sailing = self._open_booking(booking_id)
        given = {"adults": adults, "children": children, "metres": metres, "pets": pets}
        # First, since the party's own places may be what makes room on a sailing that is full.
        _give_back(sailing, booking)
        booking.update({name: value for name, value in given.items() if value is not None})
        self._take(sailing, booking)
        price = _price(sailing, booking)
        due = price - booking["price"]
        self._pay(self.find("customers", booking["customer_id"]), due, pay_by)
        booking["price"] = price
        return {"booking_id": booking_id, "price": price, "charged": due}

    @writes
    def add_cabin(self, booking_id: str, pay_by: Payment) -> dict[str, Any]:
        """Add a cabin to a booking.

        Args:
            booking_id: such as 'B001'
            pay_by: how the cabin is paid
        """
        booking, sailing = self._open_booking(booking_id)
        if booking["cabin"]:
            raise ToolError(f"booking {booking_id} has a cabin already")
        if sailing["cabins"] < 1:
            raise ToolError(f"no cabin is left on sailing {booking['sailing_id']}")
        sailing["cabins"] -= 1
        self._pay(self.find("customers", booking["customer_id"]), CABIN, pay_by)
        booking.update({"cabin": True, "price": booking["price"] + CABIN})
        return {"booking_id": booking_id, "price": booking["price"], "charged": CABIN}

    @writes
    def check_in(self, booking_id: str) -> dict[str, Any]:
        """Check a booking in, from the day before departure on. The customer gets a point for each full 10 paid.

        Args:
            booking_id: such as 'B001'
        """
        booking, sailing = self._open_booking(booking_id)
        if sailing["status"] == "cancelled":
            raise ToolError(f"sailing {booking['sailing_id']} is cancelled")
        if _days_until(sailing) > 1:
            raise ToolError("check-in opens one day before departure")
        booking["status"] = "checked_in"
        points = booking["price"] // 10
        self.find("customers", booking["customer_id"])["points"] += points
        return {"booking_id": booking_id, "points": points}

    # -- customers -----------------------------------------------------------------------------------------------------

    @writes
    def redeem_voucher(self, customer_id: str, voucher: str) -> dict[str, Any]:
        """Turn a voucher into credit, once.

        Args:
            customer_id: such as 'C01'
            voucher: its code
        """
        customer, found = self.find("customers", customer_id), self.find("vouchers", voucher)
        if found["used_by"]:
            raise ToolError(f"voucher {voucher} was used already")
        found["used_by"] = customer_id
        customer["credit"] += found["amount"]
        return {"added": found["amount"], "credit": customer["credit"]}

    @writes
    def redeem_points(self, customer_id: str, points: int) -> dict[str, Any]:
        """Turn points into credit: 5 for every 100 points.

        Args:
            customer_id: such as 'C01'
            points: a multiple of 100
        """
        customer = self.find("customers", customer_id)
        if points < 100 or points % 100:
            raise ToolError("only multiples of 100 points can be redeemed")
        if customer["points"] < points:
            raise ToolError(f"the customer has {customer['points']} points")
        customer["points"] -= points
        customer["credit"] += points // 20
        return {"points": customer["points"], "credit": customer["credit"]}

    @writes
    def send_goodwill(self, customer_id: str, amount: int) -> dict[str, Any]:
        """Give a customer goodwill credit. See the policy for when.

        Args:
            customer_id: such as 'C01'
            amount: in euros
        """
        customer = self.find("customers", customer_id)
        customer["credit"] += amount
        return {"credit": customer["credit"]}

    @writes
    def update_email(self, customer_id: str, email: str) -> str:
        """Change a customer's e-mail address.

        Args:
            customer_id: such as 'C01'
            email: the new address
        """
        if email.count("@") != 1 or "." not in email.rpartition("@")[2]:
            raise ToolError(f"{email!r} is not an e-mail address")
        self.find("customers", customer_id)["email"] = email
        return "changed"

    @writes
    def claim_item(self, item_id: str, customer_id: str) -> str:
        """Note that a lost item goes to a customer.

        Args:
            item_id: such as 'L01'
            customer_id: such as 'C01'
        """
        item = self.find("lost_items", item_id, "lost item")
        self.find("customers", customer_id)
        if item["claimed_by"]:
            raise ToolError(f"item {item_id} was claimed already")
        item["claimed_by"] = customer_id
        return f"reference {item_id}-{customer_id}"

    @writes(ends=True)
    def hand_over(self, summary: str) -> str:
        """Hand the customer over to a person. Nothing can be done afterwards.

        Args:
            summary: what the customer wants
        """
        self.db["desk"]["colleagues"]["cases"] += 1  # what the summary says is not compared
        return "A colleague takes over."

    # -- what the tools share ------------------------------------------------------------------------------------------

    def _open_booking(self, booking_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """A booking that can still be changed, with its sailing."""
        booking = self.find("bookings", booking_id)
        if booking["status"] != "confirmed":
            raise ToolError(f"booking {booking_id} is {booking['status'].replace('_', ' ')}; it cannot be changed")
        return booking, self.find("sailings", booking["sailing_id"])

    def _problem(self, sailing: dict[str, Any], wanted: dict[str, Any]) -> str:
        """Why a party cannot travel; empty if it can."""
        if sailing["status"] != "open":
            return "the sailing is cancelled"
        if min(wanted["adults"], wanted["children"], wanted["metres"], wanted["pets"]) < 0:
            return "numbers cannot be negative"
        if wanted["adults"] < 1:
            return "at least one adult has to travel"
        if wanted["adults"] + wanted["children"] > sailing["places"]:
            return f"only {sailing['places']} places are left"
        if wanted["metres"] > sailing["metres"]:
            return f"only {sailing['metres']} metres are left on the car deck"
        if wanted["cabin"] and sailing["cabins"] < 1:
            return "no cabin is left"
        if wanted["pets"] and not self.db["ships"][sailing["ship"]]["pets"]:
            return "no pets on this ship"
        return ""

    def _take(self, sailing: dict[str, Any], wanted: dict[str, Any]) -> None:
        problem = self._problem(sailing, wanted)
        if problem:
            raise ToolError(problem)
        sailing["places"] -= wanted["adults"] + wanted["children"]
        sailing["metres"] -= wanted["metres"]
        sailing["cabins"] -= int(wanted["cabin"])

    def _pay(self, customer: dict[str, Any], due: int, pay_by: str) -> None:
        """Take what is due; what is given back becomes credit."""
        if due <= 0:
            customer["credit"] -= due
        elif pay_by == "credit":
            if customer["credit"] < due:
                raise ToolError(f"{due} is due, and the customer's credit is {customer['credit']}")
            customer["credit"] -= due


def _price(sailing: dict[str, Any], wanted: dict[str, Any]) -> int:
    people = 2 * wanted["adults"] + wanted["children"]
    fares = people * sailing["fare_adult"] // 2 + wanted["metres"] * sailing["fare_metre"]
    return int(fares + CABIN * int(wanted["cabin"]) + PET * wanted["pets"])


def _give_back(sailing: dict[str, Any], booking: dict[str, Any]) -> None:
    sailing["places"] += booking["adults"] + booking["children"]
    sailing["metres"] += booking["metres"]
    sailing["cabins"] += int(booking["cabin"])


def _days_until(sailing: dict[str, Any]) -> int:
    return (date.fromisoformat(sailing["date"]) - date.fromisoformat(TODAY)).days
