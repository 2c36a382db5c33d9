"""The simulated travel agency of BFCL: a login, cards, flights, insurance.

Fares, airports and rates of exchange are data of the published program; they are read from there, never kept here.

The invariant: tokens and ids come from a seeded series, and no clock is read, so the same calls give the same answers.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from .brokerage import NOW
from .machine import Machine, State, error
from .published import NOTHING, Published

_CLASSES = {"economy": 1, "business": 2, "first": 5}
_ADULT = 18
_FORM = "%Y-%m-%d"


class Travel(Machine):
    """A travel agency."""

    first: ClassVar[Mapping[str, Any]] = {
        "credit_card_list": {},
        "booking_record": {},
        "access_token": None,
        "token_type": None,
        "token_expires_in": None,
        "token_scope": None,
        "user_first_name": None,
        "user_last_name": None,
        "budget_limit": None,
    }

    def __init__(self, config: Mapping[str, Any], published: Published = NOTHING) -> None:
        super().__init__(config, published)
        self._random = random.Random(config.get("random_seed", 141053))
        for kept, more in (
            ("credit_card_list", "CREDIT_CARD_EXTENSION"),
            ("booking_record", "BOOKING_RECORD_EXTENSION"),
        ):
            self.kept[kept] = {**copy.deepcopy(self.longer(more, otherwise={})), **self.kept[kept]}

    # -- who one is ----------------------------------------------------------------------------------------------------

    def on_authenticate_travel(
        self,
        client_id: str,
        client_secret: str,
        refresh_token: str,
        grant_type: str,
        user_first_name: str,
        user_last_name: str,
    ) -> State:
        token = self._drawn(6)
        self.kept |= {
            "access_token": token,
            "token_type": "Bearer",
            "token_expires_in": 2,
            "token_scope": grant_type,
            "user_first_name": user_first_name,
            "user_last_name": user_last_name,
        }
        return {"expires_in": 2, "access_token": token, "token_type": "Bearer", "scope": grant_type}

    def on_travel_get_login_status(self) -> State:
        return {"status": bool(self.kept["token_expires_in"])}

    def on_verify_traveler_information(
        self, first_name: str, last_name: str, date_of_birth: str, passport_number: str
    ) -> State:
        why = self._unknown(first_name, last_name, date_of_birth, passport_number)
        return {"verification_status": False, "verification_failure": why} if why else {"verification_status": True}

    # -- money ---------------------------------------------------------------------------------------------------------

    def on_get_budget_fiscal_year(
        self,
        lastModifiedAfter: str | None = None,  # noqa: N803 - the published name
        includeRemoved: str | None = None,  # noqa: N803 - the published name
    ) -> State:
        return {"budget_fiscal_year": "2018"}

    def on_set_budget_limit(self, access_token: str, budget_limit: float) -> State:
        if why := self._refused(access_token):
            return error(why)
        self.kept["budget_limit"] = float(budget_limit)
        return {"budget_limit": float(budget_limit)}

    def on_register_credit_card(
        self,
        access_token: str,
        card_number: str,
        expiration_date: str,
        cardholder_name: str,
        card_verification_number: int,
    ) -> State:
        if self.kept["token_expires_in"] is None:
            return error("There is no login yet.")
        if why := self._refused(access_token):
            return error(why)
        if card_number in self._cards:
            return error("This card is registered already.")
        card = self._drawn(12)
        self._cards[card] = {
            "card_number": card_number,
            "expiration_date": expiration_date,
            "cardholder_name": cardholder_name,
            "card_verification_number": card_verification_number,
            "balance": int(self._drawn(5)),
        }
        return {"card_id": card}

    def on_get_credit_card_balance(self, access_token: str, card_id: str) -> State:
        if why := self._refused(access_token):
            return error(why)
        if card_id not in self._cards:
            return error(f"There is no card {card_id}; there are {', '.join(self._cards)}")
        return {"card_balance": self._cards[card_id]["balance"]}

    def on_get_all_credit_cards(self) -> State:
        return {"credit_card_list": self._cards}

    def on_compute_exchange_rate(self, base_currency: str, target_currency: str, value: float) -> State:
        rates = self.published.constant("exchange_rates")
        if (rate := rates.get((base_currency, target_currency))) is not None:
            return {"exchanged_value": float(value * rate)}
        if (rate := rates.get((target_currency, base_currency))) is not None:
            return {"exchanged_value": round(value / rate, 2)}
        return error(f"There is no rate from {base_currency} to {target_currency}.")

    # -- flights -------------------------------------------------------------------------------------------------------

    def on_list_all_airports(self) -> list[str]:
        return [*self.published.constant("airport_map").values()]

    def on_get_nearest_airport_by_city(self, location: str) -> State:
        return {"nearest_airport": self.published.constant("airport_map").get(location, "Unknown")}

    def on_get_flight_cost(self, travel_from: str, travel_to: str, travel_date: str, travel_class: str) -> State:
        fare = self._fare(travel_from, travel_to, travel_date, travel_class)
        if isinstance(fare, str):
            return error(fare)
        # As published, a long answer lists what every route costs on this day in this class.
        if self.published.long:
            times = fare / self.published.constant("base_costs")[travel_from, travel_to]
            return {
                "travel_cost_list": [float(each * times) for each in self.published.constant("base_costs").values()]
            }
        return {"travel_cost_list": [fare]}

    def on_book_flight(
        self, access_token: str, card_id: str, travel_date: str, travel_from: str, travel_to: str, travel_class: str
    ) -> State:
        fare = self._fare(travel_from, travel_to, travel_date, travel_class)
        why = self._refused(access_token) or self._no_card(card_id) or _no_date(travel_date)
        why = why or (fare if isinstance(fare, str) else "")
        if why or isinstance(fare, str):
            return {"booking_status": False, **error(why)}
        balance, limit = self._cards[card_id]["balance"], self.kept["budget_limit"]
        if balance < fare:
            return {"booking_status": False, **error(f"The card has {balance}, and the flight costs {fare}.")}
        # As published, the limit is compared with the money on the card.
        if limit is not None and balance < limit:
            return {"booking_status": False, **error(f"The card has {balance}, less than the budget limit {limit}.")}
        self._cards[card_id]["balance"] -= fare
        booking, transaction = self._drawn(7), self._drawn(8)
        self._bookings[booking] = {
            "card_id": card_id,
            "travel_date": travel_date,
            "travel_from": travel_from,
            "travel_to": travel_to,
            "travel_class": travel_class,
            "travel_cost": fare,
            "transaction_id": transaction,
        }
        told = {"booking_id": booking, "transaction_id": transaction, "booking_status": True}
        return {**told, "booking_history": self._bookings if self.published.long else {}}

    def on_cancel_booking(self, access_token: str, booking_id: str) -> State:
        if why := self._refused(access_token) or self._no_booking(booking_id):
            return {"cancel_status": False, **error(why)}
        booking = self._bookings.pop(booking_id)
        self._cards[booking["card_id"]]["balance"] += booking["travel_cost"]
        return {"cancel_status": True}

    def on_retrieve_invoice(
        self, access_token: str, booking_id: str | None = None, insurance_id: str | None = None
    ) -> State:
        if why := self._refused(access_token) or self._no_booking(booking_id):
            return error(why)
        booking = {key: value for key, value in self._bookings[str(booking_id)].items() if key != "card_id"}
        return {"invoice": {"booking_id": booking_id, **booking}}

    def on_get_booking_history(self, access_token: str) -> State:
        return error(why) if (why := self._refused(access_token)) else {"booking_history": self._bookings}

    def on_purchase_insurance(
        self, access_token: str, insurance_type: str, booking_id: str, insurance_cost: float, card_id: str
    ) -> State:
        limit = self.kept["budget_limit"]
        why = self._refused(access_token)
        if not why and limit is not None and limit < insurance_cost:
            why = f"It costs more than the budget limit {limit}."
        if why := why or self._no_booking(booking_id) or self._no_card(card_id):
            return {"insurance_status": False, **error(why)}
        self._cards[card_id]["balance"] -= insurance_cost
        return {"insurance_id": self._drawn(9), "insurance_status": True}

    def on_contact_customer_support(self, booking_id: str, message: str) -> State:
        if why := self._no_booking(booking_id):
            return error(why)
        return {"customer_support_message": "We have your message and will answer soon."}

    # -- what the functions share --------------------------------------------------------------------------------------

    @property
    def _cards(self) -> State:
        cards: State = self.kept["credit_card_list"]
        return cards

    @property
    def _bookings(self) -> State:
        bookings: State = self.kept["booking_record"]
        return bookings

    def _drawn(self, digits: int) -> str:
        """A number of so many digits, as text."""
        return str(self._random.randint(10 ** (digits - 1), 10**digits - 1))

    def _refused(self, token: str) -> str:
        """Why a token does not let one in; empty if it does."""
        if self.kept["token_expires_in"] == 0:
            return "The token has expired."
        return "" if token == self.kept["access_token"] else "The token is not valid."

    def _no_card(self, card: str) -> str:
        if card not in self._cards:
            return f"There is no card {card}."
        return "" if "balance" in self._cards[card] else f"The card {card} has no balance."

    def _no_booking(self, booking: str | None) -> str:
        return "" if booking in self._bookings else f"There is no booking {booking}."

    def _fare(self, start: str, end: str, date: str, travel_class: str) -> float | str:
        """What a flight costs; or why there is none."""
        fares = self.published.constant("base_costs")
        if (start, end) not in fares:
            return f"There is no flight from {start} to {end}."
        if travel_class not in _CLASSES:
            return f"There is no class {travel_class!r}; there are {', '.join(_CLASSES)}."
        # As published, a day whose digits have an even sum costs twice as much.
        double = 2 - sum(int(each) for each in date if each.isdigit()) % 2
        return float(fares[start, end] * _CLASSES[travel_class] * double)

    def _unknown(self, first: str, last: str, born: str, passport: str) -> str:
        """Why a traveller cannot be confirmed; empty if it can."""
        if (first, last) != (self.kept["user_first_name"], self.kept["user_last_name"]):
            return f"{first} {last} is not who is logged in."
        if why := _no_date(born):
            return why
        day = datetime.strptime(born, _FORM).replace(tzinfo=UTC)
        if NOW.year - day.year - ((NOW.month, NOW.day) < (day.month, day.day)) < _ADULT:
            return f"A traveller is at least {_ADULT} years old."
        return "" if passport.startswith("US") else "Only passports of the United States are taken."


def _no_date(text: str) -> str:
    """Why a text is not a date; empty if it is one."""
    try:
        datetime.strptime(text, _FORM).replace(tzinfo=UTC)
    except ValueError:
        return f"{text!r} is not a date; write it as 2024-12-31."
    return ""
