"""A toolkit of two tools: calls, a refusal, going back, a replay, and the three criteria."""

from typing import Any

from concertino_bench.toolkits import ToolError, Toolkit, reads, replay, verify, writes


class Library(Toolkit):
    """A library with one shelf."""

    instructions = "A book is lent to one member at a time."

    @reads
    def get_book(self, book_id: str) -> dict[str, Any]:
        """Look up a book.

        Args:
            book_id: such as 'b1'
        """
        return self.find("books", book_id)

    @writes
    def lend(self, book_id: str, member: str) -> str:
        """Lend a book to a member."""
        book = self.find("books", book_id)
        if book["lent_to"]:
            raise ToolError(f"{book_id} is lent to {book['lent_to']}")
        book["lent_to"] = member
        return "until 24 June"


library = Library({"books": {"b1": {"title": "Emma", "lent_to": ""}, "b2": {"title": "Dracula", "lent_to": "Ben"}}})
before = library.snapshot()
print(library.call("lend", {"book_id": "b1", "member": "Ada"}).content)
print(library.call("lend", {"book_id": "b1", "member": "Cy"}).error)
library.restore(before)
print(library.state()["books"]["b1"])

golden = replay(library, [{"name": "lend", "arguments": {"book_id": "b1", "member": "Ada"}}])
tried = replay(library, [{"name": "get_book", "arguments": {"book_id": "b1"}}])
verified = verify(
    golden.digest,
    golden.operated,
    ["24 June"],
    found_digest=tried.digest,
    found=tried.operated,
    text="It is yours until 24 June.",
)
for criterion in verified.criteria:
    print(criterion.name, criterion.passed, criterion.reason.partition(" 5")[0])
