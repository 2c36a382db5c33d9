"""A toolkit: a database, which is plain JSON data, and typed functions that look things up in it or change it.

    class Library(Toolkit):
        '''Members borrow books.'''

        @reads
        def get_book(self, book_id: str) -> dict[str, Any]:
            '''Look up a book.'''
            return self.find("books", book_id)

        @writes
        def return_book(self, book_id: str) -> str:
            '''Take a book back.'''
            self.find("books", book_id)["lent_to"] = None
            return "returned"

The invariants: the database that a toolkit is made from never changes, whatever its functions do; a call that fails
leaves the state as it was; and a function marked `reads` cannot change it. A state is a value: a snapshot costs
nothing, and going back to one is as cheap, so many runs and branches of runs share one database.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MethodType
from typing import Any, ClassVar, Literal, Self, TypeAlias, TypeVar, cast, overload

from concertino import CallFailed, ErrorInfo, Observation, Status, ToolSpec, tool
from concertino.schema import near_names

from .digests import Digester
from .drafts import Draft, Entry, changed_entries, plain, records, seen_entries

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__concertino_bench_tool__"
_NOTHING: frozenset[Entry] = frozenset()
Caller: TypeAlias = Literal["agent", "user", "nobody"]
"""Who may call a function in a run: the one who is tested, the simulated user, or nobody. What nobody may call makes a
task's first state, or checks the last one."""


class ToolError(Exception):
    """A function refuses: the text is what the caller reads. Nothing of the call's changes stays."""


@dataclass(frozen=True)
class CallOutcome:
    """The result of one call.

    Attributes:
        content: its result, plain JSON data; None if it failed.
        error: why it failed, in the words that the caller reads; empty if it did not.
        read: records that it looked up by key. Of a failed call: none.
        written: records that it changed, made or removed.
        broken: it failed for a fault of the function and not because the function refused.
        name, arguments: of the call, where it came through `tools()`.
    """

    content: Any = None
    error: str = ""
    read: frozenset[Entry] = _NOTHING
    written: frozenset[Entry] = _NOTHING
    broken: bool = False
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return not self.error


@dataclass(frozen=True)
class Function:
    """A function of a toolkit.

    Attributes:
        spec: name, description and input schema.
        writes: whether it may change the state.
        ends: whether nothing can be called after it, such as handing a case over to a person.
        method: what runs, called with the toolkit and the arguments.
        by: who may call it in a run.
    """

    spec: ToolSpec
    writes: bool
    ends: bool
    method: Callable[..., Any]
    by: Caller = "agent"

    @property
    def name(self) -> str:
        """Its name."""
        return self.spec.name


@dataclass(frozen=True)
class _Marks:
    writes: bool
    ends: bool
    by: Caller
    options: Mapping[str, Any]


@overload
def reads(method: F, /) -> F: ...
@overload
def reads(*, ends: bool = False, by: Caller = "agent", **options: Any) -> Callable[[F], F]: ...
def reads(method: Any = None, /, *, ends: bool = False, by: Caller = "agent", **options: Any) -> Any:
    """Mark a method as a tool that changes nothing. Its docstring and annotations give the schema.

    Args:
        method: the method, where the decorator is used without brackets.
        ends: nothing can be called after it.
        by: who may call it in a run.
        options: fields of `ToolSpec`, such as `description` and `input_schema`.
    """
    return _mark(method, _Marks(False, ends, by, options))


@overload
def writes(method: F, /) -> F: ...
@overload
def writes(*, ends: bool = False, by: Caller = "agent", **options: Any) -> Callable[[F], F]: ...
def writes(method: Any = None, /, *, ends: bool = False, by: Caller = "agent", **options: Any) -> Any:
    """Mark a method as a tool that may change the state; otherwise like `reads`."""
    return _mark(method, _Marks(True, ends, by, options))


def _mark(method: Any, marks: _Marks) -> Any:
    def declare(function: Any) -> Any:
        setattr(function, _MARK, marks)
        return function

    return declare if method is None else declare(method)


class Database:
    """A database that many toolkits start from. It takes the data over: do not change them afterwards."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = dict(data)
        self._digester = Digester(self.data)
        self._digest = ""

    def digest(self, state: Mapping[str, Any] | None = None) -> str:
        """The digest of a state that began as this database; without one, of the database itself."""
        if state is not None and state is not self.data:
            return self._digester.digest(state)
        self._digest = self._digest or self._digester.digest(self.data)
        return self._digest


class Snapshot:
    """A state to go back to."""

    def __init__(self, state: Any, ended: str) -> None:
        self._state, self._ended = state, ended


class Toolkit:
    """A domain: subclass it and mark methods with `reads` and `writes`.

    Args:
        database: what it starts from: JSON data, or a `Database` shared with other toolkits.

    Attributes:
        name: of the domain; by default the class's name in small letters.
        instructions: the policy, which the one who calls the tools is to follow.
        outcomes: of the calls that came through `tools()`, in the order in which they ended.
    """

    name: ClassVar[str] = ""
    instructions: str = ""
    _declared: ClassVar[Mapping[str, Function]]

    def __init__(self, database: Database | Mapping[str, Any]) -> None:
        self.database = database if isinstance(database, Database) else Database(plain(database))
        self._state: Mapping[str, Any] = self.database.data
        self._draft: Draft | None = None
        self._ended = ""
        self.outcomes: list[CallOutcome] = []

    # -- for functions -------------------------------------------------------------------------------------------------

    @property
    def db(self) -> dict[str, Any]:
        """The state as the running call sees it; between calls a copy, changes of which are lost."""
        # Outside of a call a change would escape the undoing and the record of what was written.
        return Draft(self._state) if self._draft is None else self._draft

    def find(self, table: str, key: str, what: str = "") -> dict[str, Any]:
        """A record.

        Raises:
            ToolError: there is none.
        """
        found = self.db[table].get(key)
        if found is None:
            raise ToolError(f"{what or table.removesuffix('s')} {key!r} not found")
        return cast("dict[str, Any]", found)

    def synchronise(self) -> None:
        """Override it to bring parts of the state in line after each writing call, as part of that call."""

    # -- for callers ---------------------------------------------------------------------------------------------------

    def functions(self) -> Mapping[str, Function]:
        """Its functions by name."""
        return declared(type(self))

    def call(self, name: str, arguments: Mapping[str, Any], *, checked: bool = True) -> CallOutcome:
        """Call a function. Never raises for what a function does.

        Args:
            checked: refuse arguments that the function's schema does not allow.
        """
        function, refusal = self._admit(name, arguments, checked)
        if function is None:
            return CallOutcome(error=refusal)
        return self._settle(function, self._perform(function, plain(dict(arguments))))

    async def use(self, name: str, arguments: Mapping[str, Any], *, checked: bool = True) -> CallOutcome:
        """As `call`; also for toolkits whose functions run elsewhere, such as in a sandbox."""
        return self.call(name, arguments, checked=checked)

    def ask(self, name: str, arguments: Mapping[str, Any]) -> CallOutcome:
        """Call a reading function, also after the end: for what is to be the case then."""
        ended, self._ended = self._ended, ""
        try:
            function = self.functions().get(name)
            if function is not None and function.writes:
                return CallOutcome(error=f"{name} writes; expected a function that only reads")
            return self.call(name, arguments)
        finally:
            self._ended = ended

    def end(self, why: str) -> None:
        """Let nothing be called any more.

        Args:
            why: what it is after, such as "the end of the conversation".
        """
        self._ended = why

    def _admit(self, name: str, arguments: Mapping[str, Any], checked: bool) -> tuple[Function | None, str]:
        """The function to run; or None, and why none is run."""
        if self._ended:
            return None, f"nothing can be called after {self._ended}"
        function = self.functions().get(name)
        if function is None:
            # A model that misspells a tool's name mends it from here.
            near = near_names(name, [*self.functions()])
            return None, f"there is no tool {name!r}" + (f"; did you mean {' or '.join(near)}?" if near else "")
        violations = function.spec.validator.check(plain(dict(arguments))) if checked else ()
        if violations:
            from concertino.schema import explain

            return None, explain(violations, function.spec.validator)
        return function, ""

    def _perform(self, function: Function, arguments: dict[str, Any]) -> CallOutcome:
        """Run a function on a draft; keep the draft if it may be kept."""
        # The draft is forgotten unless it becomes the state below, which is what undoes a failed call.
        draft = self._draft = Draft(self._state)
        try:
            content = _as_json(function.method(self, **arguments))
            if function.writes:
                self.synchronise()
            outcome = CallOutcome(content, read=seen_entries(draft))
            # A reading function's draft is never kept, so a wrong mark cannot change the state.
            if function.writes:
                outcome = replace(outcome, written=changed_entries(self._state, draft))
                # Before the draft becomes the state: what is not JSON data could not be compared, or graded.
                _check_written(draft, outcome.written)
                self._state = draft
        except ToolError as error:
            return CallOutcome(error=str(error) or "refused")
        except Exception as error:  # whatever a function does wrong is this call's failure
            return CallOutcome(error=f"{type(error).__name__}: {error}", broken=True)
        finally:
            self._draft = None
        return outcome

    def _settle(self, function: Function, outcome: CallOutcome) -> CallOutcome:
        # A refused hand-over ends nothing.
        if function.ends and outcome.ok:
            self._ended = function.name
        return outcome

    # -- the state -----------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The state now, as plain JSON data of its own."""
        return cast("dict[str, Any]", plain(self._state))

    def view(self) -> Mapping[str, Any]:
        """The state now, to be looked at and not changed. Nothing is copied; later calls leave it as it is."""
        return self._state

    def digest(self) -> str:
        """The digest of the state."""
        return self.database.digest(self._state)

    def changes(self) -> frozenset[Entry]:
        """The records in which the state differs from the database."""
        return changed_entries(self.database.data, self._state)

    def snapshot(self) -> Snapshot:
        """The state, to go back to. Taking one copies nothing."""
        return Snapshot(self._state, self._ended)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot of this toolkit, or of another one with the same database."""
        self._state, self._ended = snapshot._state, snapshot._ended

    def fresh(self) -> Self:
        """Another one of the same database, in its first state."""
        # Not through `__init__`: a subclass may take other arguments, and the database is shared, not copied.
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._state, other._draft, other._ended = self.database.data, None, ""
        other.outcomes = []
        return other

    # -- in a pool -----------------------------------------------------------------------------------------------------

    def tools(self, by: Caller = "agent") -> list[ToolSpec]:
        """Functions as tools that act on this toolkit, for a pool. A refusal is an EXEC_ERR with the text.

        Args:
            by: whose.
        """
        return [self._tool(function) for function in self.functions().values() if function.by == by]

    def _tool(self, function: Function) -> ToolSpec:
        async def act(arguments: dict[str, Any]) -> Any:
            outcome = await self.use(function.name, arguments, checked=False)  # the executor has checked them
            # The grader reads from here which records were operated, by whichever member called.
            self.outcomes.append(replace(outcome, name=function.name, arguments=arguments))
            if outcome.ok:
                return outcome.content
            # A refusal is the domain's answer to a wrong request; a broken tool is nobody's mistake in the run.
            code = "tool_broken" if outcome.broken else "tool_refused"
            told = f"Error: {outcome.error}"
            raise CallFailed(
                Observation("", function.name, Status.EXEC_ERR, told, ErrorInfo(code, outcome.error[:200]))
            )

        return function.spec.with_(
            function=act, takes_mapping=True, convert=None, writes=function.writes, retry_safe=not function.writes
        )


def declared(kind: type[Toolkit]) -> Mapping[str, Function]:
    """The functions that a class declares, in the order of its methods, those of its bases first.

    Raises:
        SpecError: a method cannot be a tool; says why.
    """
    if "_declared" not in vars(kind):  # what a base class declares is not all that its subclass does
        known: dict[str, Function] = {}
        for base in reversed(kind.__mro__):
            for attribute, method in vars(base).items():
                marks = getattr(method, _MARK, None)
                if marks is not None:
                    function = _function(kind, getattr(kind, attribute), marks)
                    known[function.name] = function
        kind._declared = known
    return kind._declared


def _function(kind: type[Toolkit], method: Callable[..., Any], marks: _Marks) -> Function:
    spec = tool(**{"writes": marks.writes, **marks.options})(MethodType(method, kind))
    return Function(spec, marks.writes, marks.ends, method, marks.by)


def _check_written(state: Mapping[str, Any], written: Iterable[Entry]) -> None:
    """Make sure that what a function left in the state is JSON data.

    Raises:
        TypeError: a record is none; names it.
        ValueError: a record contains itself, or a number that JSON has not.
    """
    for table, key in written:
        record = plain(records(state.get(table)).get(key))
        # JSON turns a key such as 1 into "1", so it comes back unequal.
        if json.loads(json.dumps(record, allow_nan=False)) != record:
            raise TypeError(f"{table}/{key} is not JSON data; keys must be texts")


def _as_json(value: Any) -> Any:
    """A result in containers of its own.

    Raises:
        ValueError: it is not JSON data.
    """
    value = plain(value)
    json.dumps(value, allow_nan=False)
    return value
