"""The telephone company of tau2-bench: thirteen tools over customers, lines, plans, bills and devices.

Written from the published tasks and from what the published tools do. The customer's phone belongs to the same state
(`phone`), because what the company changes shows there: a line that is suspended has no service, a bill that waits for
payment is a request on the phone. The invariant: after each writing call of either side, the phone shows what the
company's records say. Ids of new bills are counted, so that the same calls give the same state.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, ClassVar

from .phone import Phone
from .toolkit import ToolError, reads, writes

TODAY = date(2025, 2, 25)
"""Which day it is in this domain."""
KEYS = {
    "plans": "plan_id",
    "customers": "customer_id",
    "lines": "line_id",
    "bills": "bill_id",
    "devices": "device_id",
}
"""The tables, and what their records are found by."""
_TABLES_BY_LETTER = {"L": "lines", "D": "devices", "B": "bills", "C": "customers", "P": "plans"}


class Telecom(Phone):
    """The company, with the phone of the customer who calls. Its tables are those of `KEYS`, by id."""

    name: ClassVar[str] = "telecom"

    # -- looking up ----------------------------------------------------------------------------------------------------

    @reads
    def get_customer_by_phone(self, phone_number: str) -> dict[str, Any]:
        """Find a customer by the number of the account or of one of its lines.

        Args:
            phone_number: such as '555-123-0000'
        """
        for customer in self.db["customers"].values():
            numbers = {self._line(line_id)["phone_number"] for line_id in customer["line_ids"]}
            if phone_number in {customer["phone_number"], *numbers}:
                found: dict[str, Any] = customer
                return found
        raise ToolError(f"Customer with phone number {phone_number} not found")

    @reads
    def get_customer_by_id(self, customer_id: str) -> dict[str, Any]:
        """Look up a customer.

        Args:
            customer_id: such as 'C0000'
        """
        return self._known("customers", customer_id)

    @reads
    def get_customer_by_name(self, full_name: str, dob: str) -> list[dict[str, Any]]:
        """Find customers by name and date of birth.

        Args:
            full_name: first and last name
            dob: date of birth, as YYYY-MM-DD
        """
        return [
            customer
            for customer in self.db["customers"].values()
            if customer["full_name"].lower() == full_name.lower() and customer["date_of_birth"] == dob
        ]

    @reads
    def get_details_by_id(self, id: str) -> dict[str, Any]:
        """Look up a customer, line, device, bill or plan.

        Args:
            id: begins with C, L, D, B or P
        """
        table = _TABLES_BY_LETTER.get(id[:1])
        if table is None:
            raise ToolError(f"Unknown ID format or type: {id}")
        return self._known(table, id)

    @reads
    def get_bills_for_customer(self, customer_id: str, limit: int = 12) -> list[dict[str, Any]]:
        """List a customer's bills, the newest first.

        Args:
            customer_id: such as 'C0000'
            limit: at most so many
        """
        bills = [self._known("bills", bill_id) for bill_id in self.get_customer_by_id(customer_id)["bill_ids"]]
        return sorted(bills, key=lambda bill: str(bill["issue_date"]), reverse=True)[:limit]

    @reads
    def get_data_usage(self, customer_id: str, line_id: str) -> dict[str, Any]:
        """Look up how much data a line has used and may use until the month ends.

        Args:
            customer_id: whose line it is
            line_id: such as 'L0000'
        """
        line = self._line_of(customer_id, line_id)
        return {
            "line_id": line_id,
            "data_used_gb": line["data_used_gb"],
            "data_limit_gb": self._known("plans", line["plan_id"])["data_limit_gb"],
            "data_refueling_gb": line["data_refueling_gb"],
            "cycle_end_date": (_first_of_next_month(TODAY) - timedelta(days=1)).isoformat(),
        }

    # -- changing ------------------------------------------------------------------------------------------------------

    @writes
    def suspend_line(self, customer_id: str, line_id: str, reason: str) -> dict[str, Any]:
        """Suspend an active line, for at most six months.

        Args:
            customer_id: whose line it is
            line_id: such as 'L0000'
            reason: why
        """
        line = self._line_of(customer_id, line_id)
        if line["status"] != "Active":
            raise ToolError("Only an active line can be suspended")
        line |= {"status": "Suspended", "suspension_start_date": TODAY.isoformat()}
        return {"message": "Line suspended. A holding fee of $5 a month applies.", "line": line}

    @writes
    def resume_line(self, customer_id: str, line_id: str) -> dict[str, Any]:
        """Make a line active that is suspended or waits for its activation.

        Args:
            customer_id: whose line it is
            line_id: such as 'L0000'
        """
        line = self._line_of(customer_id, line_id)
        if line["status"] not in ("Suspended", "Pending Activation"):
            raise ToolError("Only a suspended line can be resumed")
        line |= {"status": "Active", "suspension_start_date": None}
        return {"message": "Line resumed", "line": line}

    @writes
    def send_payment_request(self, customer_id: str, bill_id: str) -> str:
        """Ask a customer to pay a bill. Look first whether it is paid: this tool does not.

        Args:
            customer_id: whose bill it is
            bill_id: such as 'B0000'
        """
        customer = self.get_customer_by_id(customer_id)
        if self._awaiting(customer):
            raise ToolError("The customer has a bill that is awaiting payment")
        if bill_id not in customer["bill_ids"]:
            raise ToolError(f"Bill {bill_id} not found for customer {customer_id}")
        self._known("bills", bill_id)["status"] = "Awaiting Payment"
        return f"Payment request sent to the customer for bill {bill_id}"

    @writes
    def enable_roaming(self, customer_id: str, line_id: str) -> str:
        """Let a line roam abroad.

        Args:
            customer_id: whose line it is
            line_id: such as 'L0000'
        """
        return self._set_roaming(customer_id, line_id, True)

    @writes
    def disable_roaming(self, customer_id: str, line_id: str) -> str:
        """Let a line not roam any more.

        Args:
            customer_id: whose line it is
            line_id: such as 'L0000'
        """
        return self._set_roaming(customer_id, line_id, False)

    @writes
    def refuel_data(self, customer_id: str, line_id: str, gb_amount: float) -> dict[str, Any]:
        """Add data to a line; the next bill charges it at the plan's price.

        Args:
            customer_id: whose line it is
            line_id: such as 'L0000'
            gb_amount: how many GB, more than 0
        """
        line = self._line_of(customer_id, line_id)
        if gb_amount <= 0:
            raise ToolError("Refuel amount must be positive")
        price = self._known("plans", line["plan_id"])["data_refueling_price_per_gb"]
        line["data_refueling_gb"] += gb_amount
        self._charge(customer_id, gb_amount * price, f"Data refueling: {gb_amount} GB at ${price}/GB")
        return {
            "message": f"Added {gb_amount} GB of data to line {line_id} for ${gb_amount * price:.2f}",
            "new_data_refueling_gb": line["data_refueling_gb"],
            "charge": gb_amount * price,
        }

    @reads(ends=True)
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the user over to a human agent, if the user asks for one or the tools cannot solve the matter.

        Args:
            summary: what the matter is
        """
        return "Transfer successful"

    # -- for first states, and what is to be the case in the end -------------------------------------------------------

    @writes(by="nobody")
    def set_data_usage(self, customer_id: str, line_id: str, data_used_gb: float) -> None:
        """Say how much data a line has used, in GB."""
        self._line_of(customer_id, line_id)["data_used_gb"] = data_used_gb

    @writes(by="nobody")
    def suspend_line_for_overdue_bill(
        self, customer_id: str, line_id: str, new_bill_id: str, contract_ended: bool
    ) -> None:
        """Suspend an active line because last month's bill, which is made here, is overdue."""
        line, customer = self._known("lines", line_id), self.get_customer_by_id(customer_id)
        if line["status"] != "Active":
            raise ToolError("Only an active line can be suspended for a bill")
        if any(self._known("bills", bill_id)["status"] == "Overdue" for bill_id in customer["bill_ids"]):
            raise ToolError("Customer already has an overdue bill")
        last = TODAY.replace(day=1) - timedelta(days=1)
        bill = self._new_bill(customer, new_bill_id, last.replace(day=1), last, "Overdue")
        _add(bill, self._known("plans", line["plan_id"])["price_per_month"], f"Charge for line {line_id}")
        line |= {"status": "Suspended", "suspension_start_date": TODAY.isoformat()}
        if contract_ended:
            line["contract_end_date"] = last.isoformat()

    @reads(by="nobody")
    def assert_data_refueling_amount(self, customer_id: str, line_id: str, expected_amount: float) -> bool:
        """Whether so many GB were added to a line."""
        return bool(abs(self._line_of(customer_id, line_id)["data_refueling_gb"] - expected_amount) < 1e-6)

    @reads(by="nobody")
    def assert_line_status(self, customer_id: str, line_id: str, expected_status: str) -> bool:
        """Whether a line has a status."""
        return bool(self._line_of(customer_id, line_id)["status"] == expected_status)

    @reads(by="nobody")
    def assert_overdue_bill_exists(self, customer_id: str, overdue_bill_id: str) -> bool:
        """Whether a customer's bill is overdue."""
        mine = overdue_bill_id in self.get_customer_by_id(customer_id)["bill_ids"]
        return bool(mine and self._known("bills", overdue_bill_id)["status"] == "Overdue")

    @reads(by="nobody")
    def assert_no_overdue_bill(self, overdue_bill_id: str) -> bool:
        """Whether a bill is paid, or does not exist."""
        bill = self.db["bills"].get(overdue_bill_id)
        return bill is None or bill["status"] == "Paid"

    # -- what the tools share ------------------------------------------------------------------------------------------

    def synchronise(self) -> None:
        """Bring the phone in line with what the company's records say of its number."""
        around = self.db["surroundings"]
        number = around.get("phone_number")
        if number is None:
            return
        line = next((each for each in self.db["lines"].values() if each["phone_number"] == number), None)
        if line is None:
            raise ToolError(f"Line with phone number {number} not found")
        limit = self._known("plans", line["plan_id"])["data_limit_gb"] + line["data_refueling_gb"]
        around |= {
            "line_active": line["status"] == "Active",
            "roaming_allowed": bool(line["roaming_enabled"]),
            "mobile_data_usage_exceeded": line["data_used_gb"] >= limit,
        }
        request = around["payment_request"]
        if request is not None and request["paid"]:
            self._known("bills", request["bill_id"])["status"] = "Paid"
            request = None
        if request is None:
            bill = next(iter(self._awaiting(self.get_customer_by_phone(number))), None)
            request = bill and {"bill_id": bill["bill_id"], "amount_due": bill["total_due"], "paid": False}
        around["payment_request"] = request

    def _known(self, table: str, key: str) -> dict[str, Any]:
        found: dict[str, Any] | None = self.db[table].get(key)
        if found is None:
            raise ToolError(f"{table.removesuffix('s').capitalize()} with ID {key} not found")
        return found

    def _line(self, line_id: str) -> dict[str, Any]:
        return self._known("lines", line_id)

    def _line_of(self, customer_id: str, line_id: str) -> dict[str, Any]:
        if line_id not in self.get_customer_by_id(customer_id)["line_ids"]:
            raise ToolError(f"Line {line_id} not found for customer {customer_id}")
        return self._line(line_id)

    def _awaiting(self, customer: dict[str, Any]) -> list[dict[str, Any]]:
        bills = (self._known("bills", bill_id) for bill_id in customer["bill_ids"])
        return [bill for bill in bills if bill["status"] == "Awaiting Payment"]

    def _set_roaming(self, customer_id: str, line_id: str, on: bool) -> str:
        line, word = self._line_of(customer_id, line_id), "enabled" if on else "disabled"
        if bool(line["roaming_enabled"]) is on:
            return f"Roaming was already {word}"
        line["roaming_enabled"] = on
        return f"Roaming {word} successfully"

    def _charge(self, customer_id: str, amount: float, why: str) -> None:
        """Put an amount in $ on the customer's next bill, which is made if there is none."""
        customer = self.get_customer_by_id(customer_id)
        bills = [self._known("bills", bill_id) for bill_id in customer["bill_ids"]]
        draft = next((bill for bill in bills if bill["status"] == "Draft"), None)
        if draft is None:
            begins = _first_of_next_month(TODAY)
            ends = _first_of_next_month(begins) - timedelta(days=1)
            draft = self._new_bill(customer, f"B_new_{len(self.db['bills']) + 1}", begins, ends, "Draft")
        _add(draft, amount, why)

    def _new_bill(
        self, customer: dict[str, Any], bill_id: str, begins: date, ends: date, status: str
    ) -> dict[str, Any]:
        self.db["bills"][bill_id] = {
            "bill_id": bill_id,
            "customer_id": customer["customer_id"],
            "period_start": begins.isoformat(),
            "period_end": ends.isoformat(),
            "issue_date": begins.isoformat(),
            "total_due": 0.0,
            "due_date": (begins + timedelta(days=14)).isoformat(),
            "line_items": [],
            "status": status,
        }
        customer["bill_ids"].append(bill_id)
        made: dict[str, Any] = self.db["bills"][bill_id]
        return made


def _add(bill: dict[str, Any], amount: float, why: str) -> None:
    kind = "Credit" if amount < 0 else "Charge"
    bill["line_items"].append({"description": why, "amount": amount, "date": TODAY.isoformat(), "item_type": kind})
    bill["total_due"] += amount


def _first_of_next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
