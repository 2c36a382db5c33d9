"""The refusals of this package, and JSON pointers.

`SchemaRefused` is raised at registration: the schema itself is unfit, whatever the arguments.
`InstanceRefused` is raised at a call: the value is not JSON, or costs too much to check.
A *violation* is neither: a fit value does not match a fit schema. It is returned, never raised (see `violations`).

Both refusals carry a stable `reason` code for programs, and a message that names the place and the next step for
people. A *path* is a tuple of keys and indexes; a *pointer* is the same thing as RFC 6901 text ("" is the whole value).
"""

from collections.abc import Iterable

Path = tuple[str | int, ...]


def pointer_of(path: Iterable[str | int]) -> str:
    """Write a path as a JSON pointer (RFC 6901): `("a/b", 0)` becomes `/a~1b/0`."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


class BackendMissing(RuntimeError):
    """The back end that was asked for is not installed."""


class SchemaRefused(ValueError):
    """A schema that must not be registered.

    `reason` is a stable code such as `remote_ref`, `pointer` the place inside the schema.
    """

    def __init__(self, reason: str, path: Iterable[str | int], message: str) -> None:
        self.reason = reason
        self.pointer = pointer_of(path)
        super().__init__(f"schema refused at {self.pointer or '(root)'}: {message}")


class InstanceRefused(ValueError):
    """A value that must not be validated: not JSON, beyond the limits of `guard_instance`, or too costly to check.

    `reason` is a stable code such as `too_deep`, `pointer` the place inside the value.
    """

    def __init__(self, reason: str, path: Iterable[str | int], message: str) -> None:
        self.reason = reason
        self.pointer = pointer_of(path)
        super().__init__(f"value refused at {self.pointer or '(root)'}: {message}")
