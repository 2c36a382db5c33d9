"""The simulated stock account of BFCL: orders, a balance and a watch list.

The published tasks bring their stocks with them. The invariant: times of transactions are drawn from a seeded series in
UTC, so the same calls give the same history on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from .machine import Machine, State, error
from .published import NOTHING, Published

NOW = datetime(2024, 9, 1, 10, 30, tzinfo=UTC)
"""What time it is in this program."""
_LOGGED_OUT = "Nobody is logged in."
_SYMBOLS = {
    "Apple": "AAPL",
    "Google": "GOOG",
    "Tesla": "TSLA",
    "Microsoft": "MSFT",
    "Nvidia": "NVDA",
    "Zeta Corp": "ZETA",
    "Alpha Tech": "ALPH",
    "Omega Industries": "OMEG",
    "Quasar Ltd.": "QUAS",
    "Neptune Systems": "NEPT",
    "Synex Solutions": "SYNX",
    "Amazon": "AMZN",
    "Gorilla": "GORI",
}
_SECTORS = {"Technology": ["AAPL", "GOOG", "MSFT", "NVDA"], "Automobile": ["TSLA", "F", "GM"]}
_FORM = "%Y-%m-%d %H:%M:%S"


class Trading(Machine):
    """A stock account."""

    first: ClassVar[Mapping[str, Any]] = {
        # Some published tasks leave the orders out and ask for these.
        "orders": {
            str(number): {
                "id": number,
                "order_type": kind,
                "symbol": symbol,
                "price": price,
                "amount": amount,
                "status": status,
            }
            for number, kind, symbol, price, amount, status in (
                (12345, "Buy", "AAPL", 210.65, 10, "Completed"),
                (12446, "Sell", "GOOG", 2840.56, 5, "Pending"),
            )
        },
        "account_info": {"account_id": 12345, "balance": 10000.0, "binding_card": 1974202140965533},
        "authenticated": False,
        "market_status": "Closed",
        "order_counter": 12446,
        "stocks": {},
        "watch_list": ["NVDA"],
        "transaction_history": [],
    }

    def __init__(self, config: Mapping[str, Any], published: Published = NOTHING) -> None:
        super().__init__(config, published)
        self._random = random.Random(config.get("random_seed", 1053520))

    def on_get_current_time(self) -> State:
        return {"current_time": NOW.strftime("%I:%M %p")}

    def on_get_symbol_by_name(self, name: str) -> State:
        return {"symbol": _SYMBOLS.get(name, "Stock not found")}

    def on_get_stock_info(self, symbol: str) -> State:
        found: State | None = self.kept["stocks"].get(symbol)
        if found is None:
            return error(f"There is no stock '{symbol}'.")
        averages = (("MA(5)", "MA_5_EXTENSION"), ("MA(20)", "MA_20_EXTENSION"))
        return {**found, **{shown: self.published.constant(name) for shown, name in averages if self.published.long}}

    def on_get_order_details(self, order_id: int) -> State:
        found: State | None = self.kept["orders"].get(str(order_id))
        if found is None:
            return self._no_order(order_id)
        more = self.longer("ORDER_DETAIL_EXTENSION", otherwise={})
        told = {key: text.replace("{symbol}", str(found["symbol"])) for key, text in more.items()}
        return {**found, "metadata": told} if told else found

    def on_cancel_order(self, order_id: int) -> State:
        order = self.kept["orders"].get(str(order_id))
        if order is None:
            return self._no_order(order_id)
        if order["status"] == "Completed":
            return error(f"Order {order_id} is completed and cannot be cancelled.")
        order["status"] = "Cancelled"
        return {"order_id": order_id, "status": "Cancelled"}

    def on_place_order(self, order_type: str, symbol: str, price: float, amount: int) -> State:
        if not self.kept["authenticated"]:
            return error(_LOGGED_OUT)
        if symbol not in self.kept["stocks"]:
            return error(f"Invalid stock symbol: {symbol}")
        if price <= 0 or amount <= 0:
            return error("Price and amount have to be above 0.")
        balance = self.kept["account_info"].get("balance", 0)
        if order_type.lower() == "buy" and float(price) * int(amount) > balance:
            return error(f"Insufficient funds: ${float(price) * int(amount):.2f} of ${balance:.2f}.")
        number = self.kept["order_counter"]
        placed = {"order_type": order_type, "symbol": symbol, "price": float(price), "amount": amount}
        self.kept["orders"][str(number)] = {"id": number, **placed, "status": "Open"}
        self.kept["order_counter"] += 1
        # As published: what was just placed is pending in the answer, and open when it is looked up.
        return {
            "order_id": number,
            "order_type": order_type,
            "status": "Pending",
            "price": float(price),
            "amount": amount,
        }

    def on_fund_account(self, amount: float) -> State:
        if not self.kept["authenticated"]:
            return error(_LOGGED_OUT)
        if amount <= 0:
            return error("Funding amount must be positive.")
        return self._move(amount, "deposit", "Account funded successfully")

    def on_withdraw_funds(self, amount: float) -> State:
        if not self.kept["authenticated"]:
            return error(_LOGGED_OUT)
        if self.kept["market_status"] != "Open":
            return error("The market is closed: nothing can be withdrawn.")
        if amount <= 0:
            return error("Transaction amount must be positive.")
        if amount > self.kept["account_info"]["balance"]:
            return error("Insufficient funds for withdrawal.")
        return self._move(-amount, "withdrawal", "Withdrawal successful")

    def on_get_account_info(self) -> State:
        return self._private(self.kept["account_info"])

    def on_trading_login(self, username: str, password: str) -> State:
        was, self.kept["authenticated"] = self.kept["authenticated"], True
        return {"status": "Already logged in" if was else "Logged in successfully"}

    def on_trading_get_login_status(self) -> State:
        return {"status": bool(self.kept["authenticated"])}

    def on_trading_logout(self) -> State:
        was, self.kept["authenticated"] = self.kept["authenticated"], False
        return {"status": "Logged out successfully" if was else "Nobody was logged in"}

    def on_get_watchlist(self) -> State:
        more = self.longer("WATCH_LIST_EXTENSION", otherwise=[])
        return self._private({"watchlist": [*self.kept["watch_list"], *more]})

    def on_add_to_watchlist(self, stock: str) -> State:
        if stock not in self.kept["watch_list"] and stock in self.kept["stocks"]:
            self.kept["watch_list"].append(stock)
        return {"watchlist": self.kept["watch_list"]}

    def on_remove_stock_from_watchlist(self, symbol: str) -> State:
        if not self.kept["authenticated"]:
            return error(_LOGGED_OUT)
        if symbol not in self.kept["watch_list"]:
            return error(f"{symbol} is not on the watch list.")
        self.kept["watch_list"].remove(symbol)
        return {"status": f"{symbol} is off the watch list."}

    def on_get_order_history(self) -> State:
        return self._private({"history": [order.get("id") for order in self.kept["orders"].values()]})

    def on_get_transaction_history(self, start_date: str | None = None, end_date: str | None = None) -> State:
        first, last = _day(start_date, datetime.min), _day(end_date, datetime.max)
        history = self.kept["transaction_history"]
        found = [each for each in history if first <= _time(each["timestamp"]) <= last]
        more = self.longer("TRANSACTION_HISTORY_EXTENSION", otherwise=[])
        return self._private({"transaction_history": [*found, *more]})

    def on_get_available_stocks(self, sector: str) -> State:
        more = self.longer(f"{sector.upper()}_EXTENSION", otherwise=[]) if sector in _SECTORS else []
        return {"stock_list": [*_SECTORS.get(sector, []), *more]}

    def on_filter_stocks_by_price(self, stocks: list[str], min_price: float, max_price: float) -> State:
        prices = {symbol: self.kept["stocks"].get(symbol, {}).get("price", 0) for symbol in stocks}
        return {"filtered_stocks": [symbol for symbol in stocks if min_price <= prices[symbol] <= max_price]}

    def on_notify_price_change(self, stocks: list[str], threshold: float) -> State:
        known = self.kept["stocks"]
        moved = [each for each in stocks if each in known and abs(known[each]["percent_change"]) >= threshold]
        told = f"Moved by the threshold or more: {', '.join(moved)}."
        return {"notification": told if moved else "No stock moved so far."}

    def _private(self, answer: State) -> State:
        return answer if self.kept["authenticated"] else error(_LOGGED_OUT)

    def _no_order(self, order_id: int) -> State:
        return error(f"There is no order {order_id}. There are: {', '.join(self.kept['orders'])}")

    def _move(self, amount: float, kind: str, told: str) -> State:
        self.kept["account_info"]["balance"] += amount
        second = self._random.randint(int(NOW.timestamp()), int((NOW + timedelta(days=1)).timestamp()))
        when = datetime.fromtimestamp(second, UTC).strftime(_FORM)
        self.kept["transaction_history"].append({"type": kind, "amount": abs(amount), "timestamp": when})
        return {"status": told, "new_balance": self.kept["account_info"]["balance"]}


def _time(text: str) -> datetime:
    return datetime.strptime(text, _FORM).replace(tzinfo=UTC)


def _day(text: str | None, otherwise: datetime) -> datetime:
    return (datetime.strptime(text, "%Y-%m-%d") if text else otherwise).replace(tzinfo=UTC)
