# It runs in a jail, where system calls are what counts: no pathlib; and a value has as many forms as Python has types.
# ruff: noqa: PTH123, SIM105, SIM115
"""The script that tries a program with its tests in a sandbox. This file runs there and imports nothing of ours.

Two processes: the tests run in one, the program in the other, a fresh interpreter. A call of the program's function is
a message, its result plain data. The invariants: neither the tests nor the word of the report is ever in the program's
process, and nothing that it sends is run; so it can only answer, and its answers are compared where it has no say. An
object that is not plain data stays where it is, and does not decide itself what it equals. A test value that cannot be
sent is a fault of neither side: the script reports it.
"""

from __future__ import annotations

import builtins
import collections
import datetime
import decimal
import fractions
import importlib
import inspect
import json
import operator
import os
import signal
import subprocess
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # There the text of that module stands behind this one.
    from .sandbox_hiding import hide, told

# 64 MiB for one line: a program that answers without end must not fill the memory of the tests' process.
_LONGEST = 1 << 26
_LISTS = {each.__name__: each for each in (tuple, set, frozenset, collections.deque)}
_PAIRS = {each.__name__: each for each in (dict, collections.OrderedDict, collections.Counter)}
_WRITTEN: Any = {
    bytes: (bytes.hex, bytes.fromhex),
    bytearray: (bytearray.hex, bytearray.fromhex),
    complex: (lambda value: [value.real, value.imag], lambda parts: complex(*parts)),
    decimal.Decimal: (str, decimal.Decimal),
    fractions.Fraction: (str, fractions.Fraction),
    datetime.datetime: (datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.date: (datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.time: (datetime.time.isoformat, datetime.time.fromisoformat),
    datetime.timedelta: (lambda v: [v.days, v.seconds, v.microseconds], lambda v: datetime.timedelta(*v)),
}
"""How values of one type are written as JSON, and read again."""
_READ = {kind.__name__: read for kind, (_, read) in _WRITTEN.items()}
_BASES: Any = (int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset)
_UNARY = ("abs", "bool", "float", "int", "iter", "len", "next", "repr", "round", "str")
_SIGNS = ("neg", "index")
_ORDER = ("lt", "le", "gt", "ge")
_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
_BINARY = (*_ARITHMETIC, "and_", "or_", "xor", "lshift", "rshift")


def awaited(coroutine: Any) -> Any:
    """The result of a coroutine."""
    import asyncio

    return asyncio.run(coroutine)


def plain(value: Any) -> Any:
    """The plain data of an object whose class is derived from theirs; an empty list if there are none."""
    return next(([base(value)] for base in _BASES if isinstance(value, base)), [])


_OPERATIONS: Any = {
    **{name: getattr(builtins, name) for name in (*_UNARY, "getattr", "setattr", "isinstance")},
    **{name: getattr(operator, name) for name in (*_SIGNS, *_BINARY, *_ORDER)},
    **{name: getattr(operator, name) for name in ("eq", "contains", "getitem", "setitem")},
    "awaited": awaited,
    "plain": plain,
}
"""What the tests may do with an object of the program, apart from calling it."""
_ALIASES = {"np": "numpy", "pd": "pandas"}
_NOTHING: Any = object()


# Not an `Exception`, nor is `Unfit`: an `except Exception` in a test must not swallow either.
class Gone(BaseException):
    """The program's process has ended."""


class Unfit(BaseException):
    """A test hands over what cannot be sent to another process."""


class Wire:
    """Messages, each a line of JSON."""

    def __init__(self, source: int, sink: int) -> None:
        self.source, self.sink = os.fdopen(source, "rb"), os.fdopen(sink, "wb")

    def say(self, *message: Any) -> None:
        """Send a message.

        Raises:
            Gone: the other process has ended.
        """
        line = json.dumps(message).encode() + b"\n"
        try:
            self.sink.write(line)
            self.sink.flush()
        except (OSError, ValueError):
            raise Gone from None

    def hear(self) -> Any:
        """Wait for a message.

        Raises:
            Gone: the other process has ended, or wrote a line that is too long.
        """
        line = self.source.readline(_LONGEST)
        if not line.endswith(b"\n"):
            raise Gone
        return json.loads(line)


def pack(value: Any, own: Any) -> Any:
    """A value as JSON; `own` says what stands for one that is not plain data."""
    # The exact type: an instance of a subclass would arrive as its base, without what the subclass changed.
    kind, name = type(value), type(value).__name__
    if value is None or kind in (bool, str, float):
        return value
    if kind is int:
        # Python refuses to write or read integers of more than 4300 digits as decimals; hexadecimal has no limit.
        return value if -(2**53) < value < 2**53 else {"t": "int", "v": hex(value)}
    if kind is list:
        return [pack(item, own) for item in value]
    if kind is _LISTS.get(name):
        return {"t": name, "v": [pack(item, own) for item in value]}
    if kind is _PAIRS.get(name):
        return {"t": name, "v": [[pack(key, own), pack(item, own)] for key, item in value.items()]}
    if kind in _WRITTEN:
        return {"t": name, "v": _WRITTEN[kind][0](value)}
    if kind is range:
        return {"t": name, "v": [pack(item, own) for item in (value.start, value.stop, value.step)]}
    numpy: Any = sys.modules.get("numpy")
    if kind.__module__ == "numpy" and hasattr(numpy, "dtype") and value.dtype.kind in "biufc":
        return {"t": "numpy", "v": [value.dtype.str, [*value.shape], pack(value.tolist(), own)]}
    called = getattr(value, "__name__", None) if isinstance(value, (type, types.BuiltinFunctionType)) else None
    if isinstance(called, str) and vars(builtins).get(called) is value:
        return {"t": "builtin", "v": called}
    return own(value)


def unpack(data: Any, other: Any) -> Any:
    """The inverse of `pack`; `other` makes what stands for a value that is not plain data."""
    if isinstance(data, list):
        return [unpack(item, other) for item in data]
    if not isinstance(data, dict):
        return data
    kind, value = data["t"], data["v"]
    if kind in _LISTS:
        return _LISTS[kind](unpack(value, other))
    if kind in _PAIRS:
        return _PAIRS[kind]({unpack(key, other): unpack(item, other) for key, item in value})
    if kind in _READ:
        return _READ[kind](value)
    if kind == "int":
        return int(value, 16)
    if kind == "range":
        return range(*unpack(value, other))
    if kind == "builtin":
        return vars(builtins)[value]
    if kind == "numpy":
        import numpy

        made = numpy.array(unpack(value[2], other), dtype=numpy.dtype(value[0])).reshape(value[1])
        return made if value[1] else made[()]
    return other(kind, value)


# -- where the program is ----------------------------------------------------------------------------------------------


class Program:
    """The program's process: it loads the program, then does what the messages ask for."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.objects: list[Any] = []
        self.places: dict[int, int] = {}
        self.space: dict[str, Any] = {}

    def pack(self, value: Any) -> Any:
        """A value for the tests."""
        return pack(value, self.own)

    def own(self, value: Any) -> Any:
        """What stands for an object of the program."""
        if isinstance(value, Borrowed):
            return {"t": "borrowed", "v": object.__getattribute__(value, "number")}
        # By identity: an object may be unhashable, and two equal ones are still two.
        if id(value) not in self.places:
            self.places[id(value)] = len(self.objects)
            # The list keeps every object alive, so no id is ever used for a second one.
            self.objects.append(value)
        kind = "class" if isinstance(value, type) else "later" if inspect.iscoroutine(value) else "object"
        return {"t": kind, "v": self.places[id(value)]}

    def unpack(self, data: Any) -> Any:
        """A value of the tests."""
        return unpack(data, lambda kind, value: Borrowed(self, value) if kind == "borrowed" else self.objects[value])

    def load(self, programs: list[str], prompt: str, entry: str) -> bool:
        """Load the first program that can be compiled; tell what it defines."""
        code = trouble = None
        for program in programs:
            try:
                # Without `dont_inherit` this file's `from __future__` import would hold for the program too.
                code = compile(program, "<program>", "exec", dont_inherit=True)
                break
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                trouble = trouble or told(error)
        if code is None:
            self.wire.say("unread", trouble)
            return False
        # dataclasses look a class's module up by name; and this name keeps `if __name__ == "__main__"` from running.
        module = sys.modules["program"] = types.ModuleType("program")
        self.space = module.__dict__
        try:
            # A prompt may end in the middle of a function; then the program that continues it holds it too.
            exec(compile(prompt, "<prompt>", "exec", dont_inherit=True), self.space)
        except BaseException:
            pass
        try:
            exec(code, self.space)
        except BaseException as error:
            # A `BaseException` too: a program may call `sys.exit` at its end.
            self.wire.say("failed", "the program fails when it is loaded: " + told(error))
            return False
        if entry and entry not in self.space:
            self.wire.say("failed", "the program does not define " + entry)
            return False
        self.wire.say(
            "loaded",
            {name: self.named(name, value) for name, value in [*self.space.items()] if not name.startswith("__")},
        )
        return True

    def named(self, name: str, value: Any) -> Any:
        """What a name of the program means."""
        if isinstance(value, types.ModuleType):
            return ["module", value.__name__]
        home = getattr(value, "__module__", None)
        if isinstance(value, type) and issubclass(value, BaseException) and home == "program":
            return ["error", [each.__name__ for each in value.__mro__]]
        if isinstance(home, str) and home.lstrip("_").partition(".")[0] in sys.stdlib_module_names and callable(value):
            return ["stdlib", home, name]
        return ["value", self.pack(value)]

    def serve(self) -> Any:
        """Do what is asked until a borrowed function's result comes."""
        while True:
            kind, *given = self.wire.hear()
            if kind == "returned":
                return self.unpack(given[0])
            if kind == "raised":
                raise vars(builtins).get(given[0], Exception)(given[1])
            try:
                result = self.pack(getattr(self, "do_" + kind)(*given))
            except Gone:
                raise
            except BaseException as error:
                # All bases by name, so that `except ValueError` in a test catches a subclass that only the program has.
                names = [each.__name__ for each in type(error).__mro__]
                self.wire.say("raised", names, told(error).partition(": ")[2])
            else:
                self.wire.say("value", result, self.changed)

    changed: Any = ()

    def do_call(self, where: int, arguments: Any, keywords: Any) -> Any:
        """Call an object; what it changed in its arguments is told too."""
        given, named = self.unpack(arguments), {name: self.unpack(value) for name, value in keywords.items()}
        result = self.objects[where](*given, **named)
        # Tests may look at what a function did to their own list, of which the program has only a copy.
        self.changed = [
            [place, after]
            for place, (value, before) in enumerate(zip(given, arguments, strict=True))
            if isinstance(value, (list, dict, set, bytearray, collections.deque))
            and (after := self.pack(value)) != before
        ]
        return result

    def do_apply(self, name: str, values: Any) -> Any:
        """An operation on objects."""
        return _OPERATIONS[name](*map(self.unpack, values))


class Borrowed:
    """A function of the tests, as the program sees it: a proxy."""

    def __init__(self, program: Program, number: int) -> None:
        self.program, self.number = program, number

    def __call__(self, *arguments: Any) -> Any:
        """Call the function, in the tests' process."""
        self.program.wire.say("borrowed", self.number, [self.program.pack(each) for each in arguments])
        return self.program.serve()


def serve(source: int, sink: int) -> None:
    """Load the program and do what the tests ask for, until their process ends."""
    program = Program(Wire(source, sink))
    sys.stdout = open(os.devnull, "w")
    try:
        if program.load(*program.wire.hear()):
            program.serve()
    except Gone:
        pass
    # No exit handlers and no waiting for threads: both are the program's, and could hang.
    os._exit(0)


# -- where the tests are -----------------------------------------------------------------------------------------------


class Tests:
    """The tests' process."""

    def __init__(self, wire: Wire, child: Any) -> None:
        self.wire, self.child = wire, child
        self.lent: list[Any] = []
        self.errors: dict[str, Any] = {}
        self.gone = False
        self.unfit = ""

    def hear(self) -> Any:
        """A message of the program's process."""
        try:
            message = self.wire.hear()
            if not isinstance(message, list) or not message:
                raise ValueError
        # A line that is not JSON, or nested without end, can only be the program's doing.
        except (Gone, ValueError, RecursionError, MemoryError):
            self.gone = True
            raise Gone from None
        return message

    def pack(self, value: Any) -> Any:
        """A value for the program."""
        return pack(value, self.own)

    def own(self, value: Any) -> Any:
        """What stands for an object that is not plain data."""
        if isinstance(value, Remote):
            return {"t": "object", "v": value._where}
        if isinstance(value, (types.FunctionType, types.MethodType)):
            # Functions stay here and are called here; the program gets a number for each.
            if value not in self.lent:
                self.lent.append(value)
            return {"t": "borrowed", "v": self.lent.index(value)}
        self.unfit = f"a test hands over a {type(value).__name__}, which cannot be sent to the program's process"
        raise Unfit

    def unpack(self, data: Any, ours: bool = False) -> Any:
        """A value of the program; what cannot be read is as if it had ended."""

        def other(kind: str, value: Any) -> Any:
            if kind == "borrowed":
                return self.lent[value]
            if kind == "later":
                return self.later(int(value))
            return Remote(self, int(value), ours, kind == "class")

        try:
            return unpack(data, other)
        except (LookupError, TypeError, ValueError, ArithmeticError, ImportError, RecursionError):
            self.gone = True
            raise Gone from None

    async def later(self, where: int) -> Any:
        """Await a coroutine of the program, in its process."""
        return self.ask("apply", "awaited", [{"t": "object", "v": where}])

    def apply(self, name: str, *values: Any, ours: bool = False) -> Any:
        """The result of an operation on objects, at least one of them the program's."""
        return self.ask("apply", name, [self.pack(value) for value in values], ours=ours)

    def ask(self, what: str, *given: Any, ours: bool = False, arguments: Any = ()) -> Any:
        """The result of a message; functions that the program borrowed are called meanwhile."""
        if self.gone:
            raise Gone
        self.wire.say(what, *given)
        while True:
            kind, *seen = self.hear()
            if kind == "value" and len(seen) == 2:
                # What the program says that it changed is only data, put into the tests' own objects.
                for place, after in seen[1]:
                    _replace(arguments[place], self.unpack(after, ours))
                return self.unpack(seen[0], ours)
            if kind == "raised" and len(seen) == 2:
                raise self.error(*seen)
            if kind != "borrowed" or len(seen) != 2:
                self.gone = True
                raise Gone
            try:
                result = self.pack(self.lent[int(seen[0])](*self.unpack(seen[1])))
            except Exception as error:
                self.wire.say("raised", type(error).__name__, told(error).partition(": ")[2])
            else:
                self.wire.say("returned", result)

    def error(self, names: Any, text: Any) -> BaseException:
        """An error of the program, of a class that the tests know."""
        for name in map(str, names):
            # Only classes that the tests know by name: what the program sends makes no new one.
            kind = self.errors.get(name) or vars(builtins).get(name)
            if isinstance(kind, type) and issubclass(kind, BaseException):
                try:
                    return kind(str(text))
                except TypeError:
                    continue
        return Exception(str(text))

    def space(self, names: dict[str, Any], prompt: str, entry: str) -> dict[str, Any]:
        """What the tests see: what the prompt defines, and of the program what neither it nor Python defines."""
        module = sys.modules["program"] = types.ModuleType("program")
        space = module.__dict__
        try:
            exec(compile(prompt, "<prompt>", "exec", dont_inherit=True), space)
        except BaseException:
            pass
        # A program that redefines a helper of the prompt, or `len`, must not change what the tests call.
        kept = {name for name in space if name not in _open(prompt)} | {*vars(builtins)}
        for name, (kind, *what) in names.items():
            if name in kept and name != entry:
                continue
            if kind == "error":
                bases = [vars(builtins)[each] for each in what[0] if each in vars(builtins)]
                # A stand-in of that name and nearest builtin base: tests catch it by name, and need none of its code.
                self.errors[name] = space[name] = type(name, (bases[0],), {})
            elif kind == "value":
                space[name] = self.unpack(what[0])
            elif (found := _imported(name, kind, what)) is not _NOTHING:
                space[name] = found
        return space


def _imported(name: str, kind: str, what: list[Any]) -> Any:
    """What a program imported, imported here: only under its own name, so that nothing else passes for it."""
    try:
        if kind == "module":
            right = what[0] in (name, _ALIASES.get(name))
            return importlib.import_module(what[0]) if right else _NOTHING
        home = str(what[0]).partition(".")[0].lstrip("_")
        return getattr(importlib.import_module(str(what[0])), name) if home in sys.stdlib_module_names else _NOTHING
    except (ImportError, AttributeError):
        return _NOTHING


def _open(prompt: str) -> set[str]:
    """The names that a prompt leaves to the program: functions and classes without anything in them."""
    import ast

    def empty(node: Any) -> bool:
        return all(
            isinstance(each, (ast.Pass, ast.Raise))
            or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            or (isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and empty(each))
            for each in node.body
        )

    try:
        tree = ast.parse(prompt)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and empty(node)}


def _replace(value: Any, after: Any) -> None:
    """Give an argument, in place, the content that the program gave its copy."""
    if isinstance(value, (list, bytearray)):
        value[:] = after
        return
    value.clear()
    getattr(value, "extend" if isinstance(value, collections.deque) else "update")(after)


class Remote:
    """An object of the program, as the tests see it: a proxy.

    It may be called, looked at and walked over; but plain data are compared with here, with the plain data that it is
    derived from, if it is. Only objects of classes that the tests themselves call reckon with plain data in their way.
    """

    _slots = ("_tests", "_where", "_ours", "_class")

    def __init__(self, tests: Tests, where: int, ours: bool, kind: bool) -> None:
        for name, value in zip(self._slots, (tests, where, ours, kind), strict=True):
            object.__setattr__(self, name, value)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        packed = {name: self._tests.pack(value) for name, value in keywords.items()}
        given = self._tests.pack([*arguments])
        return self._tests.ask("call", self._where, given, packed, ours=self._ours or self._class, arguments=arguments)

    def __getattr__(self, name: str) -> Any:
        # Python and numpy look for such names (`__array__`, `__deepcopy__`) by themselves, and no test asks for them.
        if name.startswith("__"):
            raise AttributeError(name)
        return self._tests.apply("getattr", self, name, ours=self._ours)

    def __setattr__(self, name: str, value: Any) -> None:
        self._tests.apply("setattr", self, name, value)

    def __getitem__(self, key: Any) -> Any:
        return self._tests.apply("getitem", self, key, ours=self._ours)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._tests.apply("setitem", self, key, value)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Remote) and bool(self._tests.apply("isinstance", value, self))

    def __contains__(self, value: Any) -> bool:
        if self._ours:
            return bool(self._tests.apply("contains", self, value))
        return any(each == value for each in iter(self))

    def __eq__(self, other: object) -> bool:
        # Two objects of the program may say themselves whether they are equal: no plain data of the tests is at stake.
        if isinstance(other, Remote):
            return self._where == other._where or self._binary("eq", self, other) is True
        base = self._base()
        return base is not _NOTHING and bool(base == other)

    def __hash__(self) -> int:
        base = self._base()
        return hash(self._where if base is _NOTHING else base)

    def _base(self) -> Any:
        found = self._tests.apply("plain", self)
        return found[0] if isinstance(found, list) and found and not isinstance(found[0], Remote) else _NOTHING

    def _binary(self, name: str, one: Any, other: Any) -> Any:
        remote = isinstance(one, Remote) and isinstance(other, Remote)
        if remote or self._ours:
            return self._tests.apply(name, one, other, ours=self._ours)
        one, other = (each._base() if isinstance(each, Remote) else each for each in (one, other))
        return NotImplemented if one is _NOTHING or other is _NOTHING else getattr(operator, name)(one, other)


def _declare() -> None:
    """The operators of `Remote`."""
    # Python looks operators up on the class and never through `__getattr__`, so each has to be there.
    for name in (*_BINARY, *_ORDER):
        own = name.rstrip("_")
        setattr(Remote, f"__{own}__", lambda self, other, name=name: self._binary(name, self, other))
        if name in _BINARY:
            setattr(Remote, f"__r{own}__", lambda self, other, name=name: self._binary(name, other, self))
    for name in (*_UNARY, *_SIGNS):
        setattr(Remote, f"__{name}__", lambda self, *_, name=name: self._tests.apply(name, self, ours=self._ours))


def ending(code: int | None) -> str:
    """How the program's process ended, in words."""
    if code == -signal.SIGXCPU:
        return "the program used up its CPU time"
    if code is not None and code < 0:
        return f"the program crashed the interpreter: signal {-code}"
    return "the program ended before its tests were done"


def start(source: str) -> Tests:
    """The program's process.

    Raises:
        OSError: the system refuses it.
    """
    hide()
    (down, ours), (theirs, up) = os.pipe(), os.pipe()
    # -I: no variable of the environment and no file in the folder changes what the child imports.
    command = [sys.executable, "-I", "-c", f"{source}\nserve({down}, {up})"]
    nowhere = subprocess.DEVNULL
    child = subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, pass_fds=(down, up))
    # Without these the pipes never end when the child does, and `hear` would wait for ever.
    os.close(down)
    os.close(up)
    return Tests(Wire(theirs, ours), child)


def run(side: Tests, tests: list[str], space: dict[str, Any]) -> tuple[list[bool], str | None]:
    """Which tests pass, and why the first that fails does; once the program's process is gone, none does."""
    passed: list[bool] = []
    trouble = None
    for number, test in enumerate(tests, 1):
        try:
            if side.gone:
                raise Gone
            exec(compile(test, "<test>", "exec", dont_inherit=True), space)
            # A bare `except:` in a test swallows even `Gone`, so ending without an error proves nothing.
            passed.append(not side.gone)
        except BaseException as error:
            passed.append(False)
            if not side.gone:
                trouble = trouble or f"test {number} fails: {told(error)}"
    return passed, trouble


def main(source: str, word: str, programs: list[str], tests: list[str], entry: str, prompt: str) -> None:
    """Run tests on the first program that can be compiled, and print a report behind `word`."""
    # Tests print too; only the report may reach the real output.
    out = os.fdopen(os.dup(1), "w")
    sys.stdout = open(os.devnull, "w")

    def say(**data: Any) -> None:
        out.write("\n" + word + json.dumps(data) + "\n")
        out.flush()
        os._exit(0)

    try:
        side = start(source)
    except OSError as error:
        say(unfit=f"this sandbox gives the program no process of its own: {told(error)}")
    _declare()
    space: dict[str, Any] = {}
    try:
        side.wire.say(programs, prompt, entry)
        kind, what = side.hear()
        if kind == "unread":
            say(unread=what)
        if kind == "failed":
            say(passed=[False] * len(tests), trouble=str(what))
        space = side.space(what, prompt, entry)
    except (Gone, TypeError, ValueError, LookupError, AttributeError):
        side.gone = True
    passed, trouble = run(side, tests, space)
    if side.unfit:
        say(unfit=side.unfit)
    if side.gone:
        # The end of its input lets the child end, if it has not; its exit code then says why.
        side.wire.sink.close()
        try:
            code = side.child.wait(2)
        except subprocess.TimeoutExpired:
            code = None
        trouble = trouble or ending(code)
    say(passed=passed, trouble=None if all(passed) else trouble)
