"""A domain as a plugin: a repair shop with tools for the agent, and a bicycle that only the customer can touch."""

from typing import Any

import concertino as ct
from concertino_bench import TaskSet
from concertino_bench.toolkits import Domain, ToolError, Toolkit, reads, writes


class Repairs(Toolkit):
    """A shop. Its database has the tables `orders` and `bicycle`."""

    @reads
    def get_order(self, order_id: str) -> dict[str, Any]:
        """Look up an order.

        Args:
            order_id: such as 'R1'
        """
        return self.find("orders", order_id)

    @writes
    def close_order(self, order_id: str) -> str:
        """Close an order whose repair the customer has confirmed.

        Args:
            order_id: such as 'R1'
        """
        order = self.find("orders", order_id)
        if order["status"] != "open":
            raise ToolError(f"{order_id} is {order['status']}")
        order["status"] = "closed"
        return "closed"

    @reads(by="user")
    def look_at_brake(self) -> str:
        """Look at the brake of your bicycle."""
        return "the cable is loose" if self.db["bicycle"]["brake"] == "loose" else "the brake holds"

    @writes(by="user")
    def tighten_cable(self) -> str:
        """Tighten the cable of the brake."""
        self.db["bicycle"]["brake"] = "tight"
        return "the cable is tight"

    @writes(by="nobody")
    def loosen_cable(self) -> None:
        """Make a first state in which the brake does not hold."""
        self.db["bicycle"]["brake"] = "loose"

    @reads(by="nobody")
    def assert_brake(self, expected: str) -> bool:
        """Whether the brake is as expected."""
        return bool(self.db["bicycle"]["brake"] == expected)


REPAIRS = Domain("own/repairs", Repairs)


@ct.hookimpl
def concertino_tasks() -> list[TaskSet]:
    return [REPAIRS.task_set("A repair shop that talks with its customers.")]
