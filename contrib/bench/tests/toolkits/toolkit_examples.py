"""A small toolkit for tests: books that are lent."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from concertino_bench.toolkits import ToolError, Toolkit, reads, writes


class Books(Toolkit):
    """Books."""

    name: ClassVar[str] = "books"
    instructions = "A book is lent once."

    @reads
    def get_book(self, book_id: str) -> dict[str, Any]:
        """Look up a book.

        Args:
            book_id: such as 'b1'
        """
        return self.find("books", book_id)

    @reads
    def titles(self) -> list[str]:
        """List all titles."""
        return [book["title"] for book in self.db["books"].values()]

    @reads
    def spoil(self, book_id: str) -> str:
        """A reading tool that tries to change what it reads."""
        self.find("books", book_id)["title"] = "spoilt"
        return "read"

    @writes
    def lend(self, book_id: str, member_id: str, weeks: Literal[1, 2] = 2) -> dict[str, Any]:
        """Lend a book."""
        book = self.find("books", book_id)
        book["log"].append(member_id)
        if book["lent_to"]:
            raise ToolError(f"{book_id} is lent to {book['lent_to']}")
        book["lent_to"] = member_id
        book["weeks"] = weeks
        return book

    @writes
    def give_back(self, book_id: str) -> str:
        """Take a book back."""
        self.find("books", book_id)["lent_to"] = None
        return "thanks"

    @writes
    def add(self, book_id: str, title: Any) -> Any:
        """Add a book; a title that is not a text is a fault of this tool."""
        self.db["books"][book_id] = {"title": title.strip(), "lent_to": None, "log": [], "weeks": 0}
        return object() if book_id == "odd" else None

    @writes
    def corrupt(self, how: Literal["set", "cycle", "nan", "key", "table"]) -> str:
        """Leave something in the state that is not JSON data."""
        record = self.db["books"]["b1"]
        odd: dict[str, Any] = {"set": {1}, "cycle": record, "nan": float("nan"), "key": {1: 2}}
        if how == "table":
            self.db["more"] = object()
        else:
            record["odd"] = odd[how]
        return "done"

    @writes
    def drop(self, book_id: str) -> None:
        """Remove a book."""
        if self.db["books"].pop(book_id, None) is None:
            raise ToolError("no such book")

    @reads(ends=True, description="Hand over to a person.")
    def hand_over(self, summary: str) -> str:
        return "done"


def data() -> dict[str, Any]:
    """The database."""
    return {
        "books": {
            f"b{n}": {"title": f"Book {n}", "lent_to": "m9" if n == 3 else None, "log": [], "weeks": 0}
            for n in (1, 2, 3)
        }
    }


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A call as JSON."""
    return {"name": name, "arguments": arguments}
