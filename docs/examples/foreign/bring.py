"""Functions, bound methods and an OpenAI function object as members of a pool."""

import asyncio

import concertino as ct


class Account:
    def __init__(self, balance: float) -> None:
        self.balance = balance

    def pay(self, amount: float, to: str = "Ada") -> float:
        """Pay somebody; gives the new balance."""
        self.balance -= amount
        return self.balance


def convert(celsius: float) -> float:
    """Celsius to Fahrenheit."""
    return celsius * 9 / 5 + 32


async def weather(city: str) -> str:
    return f"10 C in {city}"


WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}

pool = ct.Pool.of(convert, Account(100).pay, (WEATHER, weather))


async def main() -> None:
    convert_it, pay_it = ct.Call("convert", {"celsius": 10}), ct.Call("pay", {"amount": 30})
    ask_wrongly = ct.Call("weather", {"town": "Oslo"})
    async with ct.Executor() as executor:
        for seen in await executor.run([convert_it, pay_it, ask_wrongly], pool):
            print(seen.name, seen.status, seen.content if seen.ok else seen.error and seen.error.message)


asyncio.run(main())
