"""The retail shop of tau2-bench: fifteen tools over users, products and orders.

Written from the published tasks and from what the published tools do, their order of checks and their oddities
included, so that the states after golden calls are the same: a change of several items gives all of them the price and
options of the last one, and what is paid for a change is not rounded.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, Literal

from .airline import worked_out
from .toolkit import ToolError, Toolkit, reads, writes

Reason = Literal["no longer needed", "ordered by mistake"]


class Retail(Toolkit):
    """The shop. Its database has the tables `products`, `users` and `orders`."""

    name: ClassVar[str] = "retail"

    @reads
    def calculate(self, expression: str) -> str:
        """Work out an expression of numbers, + - * / and brackets.

        Args:
            expression: such as '2 * (3 + 4)'
        """
        return worked_out(expression)

    @writes
    def cancel_pending_order(self, order_id: str, reason: Reason) -> dict[str, Any]:
        """Cancel an order that is pending. What was paid goes back: to a gift card at once, else within days.

        Args:
            order_id: such as '#W0000000', with the '#'
            reason: why
        """
        order = self._order(order_id)
        _expect(order["status"] == "pending", "Only a pending order can be cancelled")
        paid = order["payment_history"]
        refunds = [
            {
                "transaction_type": "refund",
                "amount": each["amount"],
                "payment_method_id": each["payment_method_id"],
            }
            for each in paid
        ]
        for refund in refunds:
            self._pay(order["user_id"], refund["payment_method_id"], -refund["amount"])
        order |= {"status": "cancelled", "cancel_reason": reason, "payment_history": [*paid, *refunds]}
        return order

    @writes
    def exchange_delivered_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> dict[str, Any]:
        """Ask for an exchange of items of a delivered order, each for another one of the same product.

        Args:
            order_id: such as '#W0000000', with the '#'
            item_ids: what goes back; an id may be there more than once
            new_item_ids: what comes for it, in the same order
            payment_method_id: what pays the difference, or takes it
        """
        order = self._order(order_id)
        _expect(order["status"] == "delivered", "Only a delivered order can be exchanged")
        difference = round(self._difference(order, item_ids, new_item_ids), 2)
        self._check_balance(order["user_id"], payment_method_id, difference)
        order |= {
            "status": "exchange requested",
            "exchange_items": sorted(item_ids),
            "exchange_new_items": sorted(new_item_ids),
            "exchange_payment_method_id": payment_method_id,
            "exchange_price_difference": difference,
        }
        return order

    @reads
    def find_user_id_by_email(self, email: str) -> str:
        """Find a user's id by the e-mail address.

        Args:
            email: such as 'someone@example.com'
        """
        return self._user_where(lambda user: user["email"].lower() == email.lower())

    @reads
    def find_user_id_by_name_zip(self, first_name: str, last_name: str, zip: str) -> str:
        """Find a user's id by name and zip code.

        Args:
            first_name: such as 'John'
            last_name: such as 'Doe'
            zip: such as '12345'
        """
        name = (first_name.lower(), last_name.lower(), zip)
        return self._user_where(
            lambda user: (
                name == (user["name"]["first_name"].lower(), user["name"]["last_name"].lower(), user["address"]["zip"])
            )
        )

    @reads
    def get_item_details(self, item_id: str) -> dict[str, Any]:
        """Look up one variant of a product.

        Args:
            item_id: such as '6086499569'; not the id of a product
        """
        for product in self.db["products"].values():
            if item_id in product["variants"]:
                found: dict[str, Any] = product["variants"][item_id]
                return found
        raise ToolError("Item not found")

    @reads
    def get_order_details(self, order_id: str) -> dict[str, Any]:
        """Look up an order.

        Args:
            order_id: such as '#W0000000', with the '#'
        """
        return self._order(order_id)

    @reads
    def get_product_details(self, product_id: str) -> dict[str, Any]:
        """Look up a product with its variants.

        Args:
            product_id: such as '6086499569'; not the id of an item
        """
        return self._known("products", product_id, "Product")

    @reads
    def get_user_details(self, user_id: str) -> dict[str, Any]:
        """Look up a user, with payment methods and orders.

        Args:
            user_id: such as 'sara_doe_000'
        """
        return self._known("users", user_id, "User")

    @reads
    def list_all_product_types(self) -> str:
        """List the names and ids of all products."""
        products = self.db["products"].values()
        return json.dumps({product["name"]: product["product_id"] for product in products}, sort_keys=True)

    @writes
    def modify_pending_order_address(
        self, order_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str
    ) -> dict[str, Any]:
        """Change where a pending order is sent.

        Args:
            order_id: such as '#W0000000', with the '#'
            address1: street and number
            address2: such as 'Apt 1'
            city: such as 'San Francisco'
            state: such as 'CA'
            country: such as 'USA'
            zip: such as '12345'
        """
        order = self._modifiable(order_id)
        order["address"] = _address(address1, address2, city, state, country, zip)
        return order

    @writes
    def modify_pending_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> dict[str, Any]:
        """Change items of a pending order for others of the same product. It can be done once for an order.

        Args:
            order_id: such as '#W0000000', with the '#'
            item_ids: what is taken out; an id may be there more than once
            new_item_ids: what comes for it, in the same order
            payment_method_id: what pays the difference, or takes it
        """
        order = self._order(order_id)
        _expect(order["status"] == "pending", "Only a pending order can be modified")
        same = any(old == new for old, new in zip(item_ids, new_item_ids, strict=False))
        _expect(not same, "The item is exchanged for itself: name another one")
        difference = self._difference(order, item_ids, new_item_ids)
        self._check_balance(order["user_id"], payment_method_id, difference)
        order["payment_history"].append(
            {
                "transaction_type": "payment" if difference > 0 else "refund",
                "amount": abs(difference),
                "payment_method_id": payment_method_id,
            }
        )
        self._pay(order["user_id"], payment_method_id, difference)
        last: dict[str, Any] = {}
        if new_item_ids:
            last = self._variant(_item(order, item_ids[-1])["product_id"], new_item_ids[-1])
        for old, new in zip(item_ids, new_item_ids, strict=True):
            # As published: every changed item is given what the last one costs and has.
            _item(order, old).update({"item_id": new, "price": last["price"], "options": dict(last["options"])})
        order["status"] = "pending (item modified)"
        return order

    @writes
    def modify_pending_order_payment(self, order_id: str, payment_method_id: str) -> dict[str, Any]:
        """Let another payment method pay a pending order.

        Args:
            order_id: such as '#W0000000', with the '#'
            payment_method_id: of the user, such as 'gift_card_0000000'
        """
        order = self._modifiable(order_id)
        history, user = order["payment_history"], order["user_id"]
        self._method(user, payment_method_id)
        once = len(history) == 1 and history[0]["transaction_type"] == "payment"
        _expect(once, "The order has several payments, so none can take its place")
        before, amount = history[0]["payment_method_id"], history[0]["amount"]
        _expect(before != payment_method_id, "The order is paid in this way already")
        self._check_balance(user, payment_method_id, amount)
        history += [
            {"transaction_type": "payment", "amount": amount, "payment_method_id": payment_method_id},
            {"transaction_type": "refund", "amount": amount, "payment_method_id": before},
        ]
        self._pay(user, payment_method_id, amount)
        self._pay(user, before, -amount)
        return order

    @writes
    def modify_user_address(
        self, user_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str
    ) -> dict[str, Any]:
        """Change a user's own address.

        Args:
            user_id: such as 'sara_doe_000'
            address1: street and number
            address2: such as 'Apt 1'
            city: such as 'San Francisco'
            state: such as 'CA'
            country: such as 'USA'
            zip: such as '12345'
        """
        user = self._known("users", user_id, "User")
        user["address"] = _address(address1, address2, city, state, country, zip)
        return user

    @writes
    def return_delivered_order_items(
        self, order_id: str, item_ids: list[str], payment_method_id: str
    ) -> dict[str, Any]:
        """Ask for a return of items of a delivered order.

        Args:
            order_id: such as '#W0000000', with the '#'
            item_ids: what goes back; an id may be there more than once
            payment_method_id: what takes the refund: the one that paid, or a gift card
        """
        order = self._order(order_id)
        _expect(order["status"] == "delivered", "Only a delivered order can be returned")
        method = self._method(order["user_id"], payment_method_id)
        paid = payment_method_id == order["payment_history"][0]["payment_method_id"]
        _expect(paid or _is_card(method), "Money goes back to how it was paid, or to a gift card")
        _check_items(order, item_ids)
        order |= {
            "status": "return requested",
            "return_items": sorted(item_ids),
            "return_payment_method_id": payment_method_id,
        }
        return order

    @reads(ends=True)
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the user over to a human agent, if the user asks for one or the tools cannot solve the matter.

        Args:
            summary: what the matter is
        """
        return "Transfer successful"

    # -- what the tools share ------------------------------------------------------------------------------------------

    def _known(self, table: str, key: str, what: str) -> dict[str, Any]:
        found: dict[str, Any] | None = self.db[table].get(key)
        if found is None:
            raise ToolError(f"{what} not found")
        return found

    def _order(self, order_id: str) -> dict[str, Any]:
        return self._known("orders", order_id, "Order")

    def _modifiable(self, order_id: str) -> dict[str, Any]:
        order = self._order(order_id)
        _expect("pending" in order["status"], "Only a pending order can be modified")
        return order

    def _user_where(self, wanted: Any) -> str:
        # Walked through without copying: hundreds of users are compared, and none is changed.
        users = dict.items(self.db["users"])
        found: str | None = next((key for key, user in users if wanted(user)), None)
        if found is None:
            raise ToolError("User not found")
        return found

    def _variant(self, product_id: str, item_id: str) -> dict[str, Any]:
        variants = self._known("products", product_id, "Product")["variants"]
        if item_id not in variants:
            raise ToolError("Variant not found")
        found: dict[str, Any] = variants[item_id]
        return found

    def _method(self, user_id: str, payment_method_id: str) -> dict[str, Any]:
        methods = self._known("users", user_id, "User")["payment_methods"]
        if payment_method_id not in methods:
            raise ToolError("Payment method not found")
        found: dict[str, Any] = methods[payment_method_id]
        return found

    def _difference(self, order: dict[str, Any], item_ids: list[str], new_item_ids: list[str]) -> float:
        """What the new items cost more than the old ones, in $ and unrounded."""
        _check_items(order, item_ids)
        _expect(len(item_ids) == len(new_item_ids), "Name as many new items as old ones")
        difference = 0.0
        for old, new in zip(item_ids, new_item_ids, strict=True):
            item = _item(order, old)
            variant = self._variant(item["product_id"], new)
            _expect(variant["available"], f"Item {new} cannot be had")
            difference += variant["price"] - item["price"]
        return difference

    def _check_balance(self, user_id: str, payment_method_id: str, amount: float) -> None:
        method = self._method(user_id, payment_method_id)
        enough = not _is_card(method) or method["balance"] >= amount
        _expect(enough, "The gift card has not enough money")

    def _pay(self, user_id: str, payment_method_id: str, amount: float) -> None:
        """Take $ from a gift card; a negative amount is given back. Other methods keep no balance."""
        method = self._method(user_id, payment_method_id)
        if _is_card(method):
            method["balance"] = round(method["balance"] - amount, 2)


def _expect(right: bool, refusal: str) -> None:
    if not right:
        raise ToolError(refusal)


def _is_card(method: dict[str, Any]) -> bool:
    return bool(method["source"] == "gift_card")


def _item(order: dict[str, Any], item_id: str) -> dict[str, Any]:
    found: dict[str, Any] | None = next((item for item in order["items"] if item["item_id"] == item_id), None)
    if found is None:
        raise ToolError(f"Item {item_id} not found")
    return found


def _check_items(order: dict[str, Any], item_ids: list[str]) -> None:
    has = [item["item_id"] for item in order["items"]]
    for item_id in item_ids:
        _expect(item_ids.count(item_id) <= has.count(item_id), f"{item_id} not found, or not so often")


def _address(address1: str, address2: str, city: str, state: str, country: str, zip: str) -> dict[str, str]:
    return {"address1": address1, "address2": address2, "city": city, "state": state, "country": country, "zip": zip}
