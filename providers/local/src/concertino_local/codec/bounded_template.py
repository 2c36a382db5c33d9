"""A chat template that runs under limits: a file of a stranger, which comes with each model folder.

Jinja's sandbox keeps a template from this process's files and memory, not from its time. Here each pass of a loop, each
call and each filter is a step, and what may make a long text says how long before it makes it. Invariant: a rendering
takes at most `STEPS` steps and `SECONDS` of CPU time, and makes at most `CHARS` characters and list entries, and
`CHARS_EACH` more for each character that it was given; beyond that it ends with `TemplateTooCostly`. What an ordinary
template writes is what transformers' `apply_chat_template` writes of it.
"""

from __future__ import annotations

import functools
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

STEPS = 2_000_000
SECONDS = 10.0
CHARS = 16 * 2**20
CHARS_EACH = 32
TEMPLATE_CHARS = 200_000
"""Characters of a template; the longest of known models have 30,000."""
_WIDTH = 10_000
"""The largest number that a filter or method takes for a width, a count or a precision."""
_BITS = 2**16
_LONG_NUMBER = re.compile(r"\d{5,}|%[-+ #0-9.]*\*|:[^{}]*\{")
"""In a text that formats others: a width of 10,000 or more, or one that is given as a value."""
_WIDTHS = frozenset({"center", "indent", "wordwrap", "truncate", "batch", "slice", "round", "tojson"})
_PADDING = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs"})
_SPLITTING = frozenset({"split", "rsplit", "splitlines"})
_COSTLY = _PADDING | _SPLITTING | {"join", "replace", "translate", "count", "find", "rfind", "index", "rindex"}
"""Methods of texts that may make much of little, or search long; others take as long as their text."""
_SORTING = frozenset({"sort", "unique", "groupby", "min", "max", "string", "tojson", "dictsort", "join", "list"})
_COMPARING = ("eq", "==", "equalto", "ne", "!=", "lt", "<", "lessthan", "le", "<=", "gt", ">", "greaterthan", "in")
_CHECK_EVERY = 1024
_CONTAINERS = (list, tuple, dict)
_SCALARS = frozenset({str, int, float, bool, type(None)})
_REASONING = ("reasoning_content", "thinking", "reasoning")


class TemplateTooCostly(TemplateError):
    """A template needs more than a rendering may; says of what."""


class BoundedTemplate:
    """A template, compiled.

    Args:
        text: its Jinja.

    Raises:
        jinja2.TemplateError: it is not valid, or too long.
    """

    def __init__(self, text: str) -> None:
        if len(text) > TEMPLATE_CHARS:
            raise TemplateTooCostly(f"it has {len(text):,} characters; at most {TEMPLATE_CHARS:,} are run")
        self._environment = _Environment()
        # What a template computes from constants is computed when it is compiled.
        with self._environment.metered(None):
            self._template = self._environment.from_string(text)

    def render(self, messages: Sequence[Mapping[str, Any]], **values: Any) -> str:
        """The text of a conversation.

        Args:
            messages: not empty, as templates know them.
            values: what else the template reads, such as `tools` and special tokens.

        Raises:
            Exception: a template raises what it likes; TemplateTooCostly at a limit.
        """
        return self.spans(messages, **values)[0]

    def spans(self, messages: Sequence[Mapping[str, Any]], **values: Any) -> tuple[str, list[str]]:
        """The text of a conversation, and what its `generation` blocks hold."""
        if not messages:
            raise ValueError("a conversation without messages")
        plain = [{key: value for key, value in message.items() if value is not None} for message in _plain(messages)]
        given = {"documents": None, "tools": None, "add_generation_prompt": False, **_plain(values)}
        with self._environment.metered([plain, given]) as spans:
            return self._template.render(messages=[_with_reasoning(message) for message in plain], **given), spans


@functools.lru_cache(maxsize=32)
def compiled(text: str) -> BoundedTemplate:
    """A template, compiled once for all that use it; see `BoundedTemplate`."""
    return BoundedTemplate(text)


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with a meter. One rendering at a time."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        self.spans: list[str] = []
        self._lock = threading.RLock()
        self._steps = self._check_at = self._chars = 0
        self._ends = 0.0
        self._given: Any = None
        extensions = [_Generation, "jinja2.ext.loopcontrols"]
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=extensions, finalize=self._finalized)
        self.code_generator_class = _Generator
        vars(self)["concat"] = self._concatenated
        for unneeded in ("urlize", "pprint", "xmlattr"):
            del self.filters[unneeded]
        del self.globals["lipsum"]
        self.filters["tojson"] = _to_json
        self.filters |= {name: self._bounded_filter(name, made) for name, made in self.filters.items()}
        self.tests |= {name: self._bounded_test(vars(self)["tests"][name]) for name in _COMPARING}
        self.globals |= {
            "raise_exception": _raise,
            "strftime_now": _now,
            "dict": _Dict(),
            "namespace": _Namespace,
        }

    # -- the meter -----------------------------------------------------------------------------------------------------

    def metered(self, given: Any) -> _Metered:
        """A rendering of such data; gives the list of its `generation` blocks."""
        return _Metered(self, given)

    def begin(self, given: Any) -> None:
        """Set the meter."""
        self._lock.acquire()
        self.spans = []
        self._steps, self._check_at = STEPS, STEPS - _CHECK_EVERY
        self._chars, self._given = CHARS, given
        self._ends = time.thread_time() + SECONDS

    def end(self) -> None:
        """Let the next rendering begin."""
        self._given = None
        self._lock.release()

    def tick(self, steps: int = 1) -> None:
        """Count steps."""
        self._steps -= steps
        if self._steps < self._check_at:
            self._check()

    def _check(self) -> None:
        if self._steps < 0:
            raise TemplateTooCostly(f"it takes more than {STEPS:,} steps")
        if time.thread_time() > self._ends:
            raise TemplateTooCostly(f"it takes more than {SECONDS:g} s")
        self._check_at = self._steps - _CHECK_EVERY

    def spend(self, chars: int) -> None:
        """Count characters, or entries of lists, that are about to be made; reading them again costs steps."""
        self._chars -= chars
        if self._chars < 0:
            self._extend()
        self.tick(1 + (chars >> 8))

    def _extend(self) -> None:
        """Allow what the data that was given adds. It is weighed only here, for most renderings stay far below."""
        self._allow_given()
        if self._chars < 0:
            raise TemplateTooCostly(f"it makes more than {CHARS:,} characters")

    def _allow_given(self) -> None:
        if self._given is not None:
            self._chars += CHARS_EACH * _weight(self._given)
            self._given = None

    def _heft(self, value: Any) -> int:
        """The weight of a value, or more than what is left."""
        weight = _weight(value, self._chars)
        if weight > self._chars and self._given is not None:
            # Counted only so far; what the data that was given adds may make room for the rest, or not.
            self._allow_given()
            weight = _weight(value, self._chars)
        return weight

    def weighed(self, value: Any) -> Any:
        """A value that is about to be compared, hashed or written as a text; lists may hold one list many times."""
        if type(value) is str:
            self.tick(1 + (len(value) >> 8))
        elif isinstance(value, _CONTAINERS):
            weight = self._heft(value)
            if weight > self._chars:
                raise TemplateTooCostly(f"it makes lists of more than {CHARS:,} characters")
            self.tick(1 + (weight >> 4))
        else:
            self.tick()
        return value

    # -- called by compiled templates ----------------------------------------------------------------------------------

    def step_over(self, values: Iterable[Any]) -> _Steps:
        """The values of a loop; each costs a step."""
        return _Steps(self, values)

    def joined(self, parts: Sequence[Any]) -> str:
        """What `~` makes of them."""
        texts = [each if type(each) is str else str(self._finalized(each)) for each in parts]
        self.spend(sum(map(len, texts)))
        return "".join(texts)

    def sliced(self, value: Any) -> Any:
        """What `[a:b]` made. Counted afterwards: it is no longer than what there was."""
        if isinstance(value, (str, *_CONTAINERS)):
            self.spend(len(value))
        return value

    def getitem(self, obj: Any, argument: Any) -> Any:
        """An entry; as Jinja's, but a tuple is not hashed before it is weighed."""
        if type(argument) is tuple:
            self.weighed(argument)
        try:
            return obj[argument]
        except (TypeError, LookupError):
            return super().getitem(obj, argument)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """The result of an operator, where its size is within the limits."""
        if operator == "+":
            if type(left) is str and type(right) is str:
                self.spend(len(left) + len(right))
                return left + right
            if isinstance(left, (str, list, tuple)) and isinstance(right, (str, list, tuple)):
                self.spend(len(left) + len(right))
        elif operator == "*":
            self._check_product(left, right)
        elif operator == "**":
            if isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > _BITS:
                raise TemplateTooCostly("it computes a power of too many digits")
        elif isinstance(left, str):
            return self._formatted(left, right)
        return self.binop_table[operator](left, right)

    def _check_product(self, left: Any, right: Any) -> None:
        if isinstance(left, int) and isinstance(right, int):
            if left.bit_length() + right.bit_length() > _BITS:
                raise TemplateTooCostly("it computes a product of too many digits")
            self.tick()
        else:
            many, times = (left, right) if isinstance(right, int) else (right, left)
            if isinstance(times, int) and isinstance(many, (str, list, tuple)):
                self.spend(len(many) * max(0, times))

    def _formatted(self, text: str, values: Any) -> str:
        self._check_format(text)
        for each in values if isinstance(values, tuple) else (values,):
            self.spend(len(self._finalized(each)) if isinstance(each, str) else self._heft(each))
        made: str = text % values
        self.spend(len(made))
        return made

    def _check_format(self, text: str) -> None:
        if _LONG_NUMBER.search(text):
            raise TemplateTooCostly("it formats a text with a width that is too large, or that is a value")

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - as in Jinja
        """Call what a template calls."""
        self = __self
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str) and __obj.__name__ in _COSTLY:
            args = self._check_method(owner, __obj.__name__, args, kwargs)
        elif isinstance(owner, _CONTAINERS):
            for each in args:
                self.weighed(each)
        elif __obj is self.globals["dict"]:
            for each in args:
                self.spend(self._heft(each))
        self.tick(1 + (len(owner) >> 8) if isinstance(owner, str) else 1)
        made = super().call(__context, __obj, *args, **kwargs)
        if isinstance(made, (str, list, tuple)):
            self.spend(len(made))
        return made

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """The method `format` of a text, as Jinja's sandbox gives it, within the limits."""
        made = super().wrap_str_format(value)
        if made is None:
            return None
        text = value.__self__

        def bounded(*args: Any, **kwargs: Any) -> str:
            self._check_format(text)
            self.spend(self._heft([*args, kwargs]) * (1 + text.count("{")))
            return made(*args, **kwargs)

        return bounded

    def _check_method(self, text: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of a method of a text, once its result is known to be within the limits."""
        if name in _PADDING:
            self._check_widths(name, [*args, *kwargs.values()])
            if name == "expandtabs":
                self.spend(len(text) * max((each for each in args if isinstance(each, int)), default=8))
        elif name == "join" and args:
            return (self._to_join(text, args[0]), *args[1:])
        elif name == "replace" and len(args) > 1:
            self._check_replacing(text, args[0], args[1])
        elif name == "translate":
            raise TemplateTooCostly("it calls translate, which is not offered")
        elif name in _SPLITTING:
            separator = next((each for each in (*args, kwargs.get("sep")) if isinstance(each, str) and each), None)
            self.spend(16 * (text.count(separator) if separator else 1 + len(text) // 2))
        return args

    def _check_widths(self, name: str, numbers: Iterable[Any]) -> None:
        if any(isinstance(each, (int, float)) and abs(each) > _WIDTH for each in numbers):
            raise TemplateTooCostly(f"it gives {name} a number above {_WIDTH:,}")

    def _to_join(self, between: str, values: Iterable[Any]) -> list[Any]:
        parts = [*_Steps(self, values)]
        self.spend(sum(len(each) if isinstance(each, str) else self._heft(each) for each in parts))
        self.spend(len(between) * len(parts))
        return parts

    def _check_replacing(self, text: str, old: Any, new: Any) -> None:
        if isinstance(old, str) and isinstance(new, str):
            self.spend(len(text) + max(0, len(new) - len(old)) * text.count(old))

    def _finalized(self, value: Any) -> Any:
        """A value that is about to be written out."""
        if type(value) is not str and isinstance(value, _CONTAINERS):
            self.spend(self._heft(value))
        return value

    def _concatenated(self, parts: Iterable[str]) -> str:
        kept = list(parts)  # each has been made already
        self.spend(sum(map(len, kept)))
        return "".join(kept)

    # -- filters and tests ---------------------------------------------------------------------------------------------

    def _bounded_filter(self, name: str, made: Callable[..., Any]) -> Callable[..., Any]:
        # Jinja passes the context or the environment first to those that ask for it.
        place = 1 if hasattr(made, "jinja_pass_arg") else 0

        @functools.wraps(made)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            value, rest = args[place] if len(args) > place else None, list(args[place + 1 :])
            args = (*args[:place], self._check_filter(name, value, [*rest, *kwargs.values()]), *rest)
            found = made(*args, **kwargs)
            if isinstance(found, (str, list, tuple)):
                self.spend(len(found))
            return found

        return bounded

    def _check_filter(self, name: str, value: Any, rest: list[Any]) -> Any:
        """What a filter is applied to, once its result is known to be within the limits."""
        self.tick(1 + (len(value) >> 8) if isinstance(value, (str, *_CONTAINERS)) else 1)
        if name in _WIDTHS:
            self._check_widths(name, rest)
            if any(isinstance(each, str) and len(each) > 100 for each in rest):
                raise TemplateTooCostly(f"it gives {name} a text of more than 100 characters")
            lines = value.count("\n") + 1 if isinstance(value, str) else 1
            self.spend(lines * max((int(each) for each in rest if isinstance(each, (int, float))), default=8))
        if name == "replace" and len(rest) > 1:
            self._check_replacing(str(value), rest[0], rest[1])
        elif name == "format" and isinstance(value, str):
            self._check_format(value)
            self.spend(self._heft(rest) * (1 + value.count("%")))
        elif name == "sum" and any(isinstance(each, (str, *_CONTAINERS)) for each in rest[1:] or rest):
            raise TemplateTooCostly("it adds up what are not numbers")
        if name in _SORTING:
            if isinstance(value, (str, *_CONTAINERS)):
                self.spend(self._heft(value) * (8 if name == "list" and isinstance(value, str) else 1))
            elif isinstance(value, Iterator):
                value = [*_Steps(self, value)]
                self.spend(self._heft(value))
            if name == "join":
                self.spend(sum(len(each) for each in rest if isinstance(each, str)) * len(value or ()))
        return value

    def _bounded_test(self, made: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(made)
        def bounded(value: Any, *args: Any) -> Any:
            return made(self.weighed(value), *args)

        return bounded

    def call_filter(self, *args: Any, **kwargs: Any) -> Any:
        """Apply a filter by its name, as `map` does for each value."""
        self.tick()
        return super().call_filter(*args, **kwargs)

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        for loop in [*source.find_all(nodes.For)]:
            stepped = nodes.Call(nodes.EnvironmentAttribute("step_over"), [loop.iter], [], None, None)
            loop.iter = stepped.set_lineno(loop.lineno).set_environment(self)
            if loop.recursive:  # its inner passes do not go through `iter`
                tick = nodes.Call(nodes.EnvironmentAttribute("tick"), [], [], None, None)
                loop.body.insert(0, nodes.ExprStmt(tick).set_lineno(loop.lineno).set_environment(self))
        return super()._generate(source, *args, **kwargs)


class _Metered:
    """The time of one rendering."""

    def __init__(self, environment: _Environment, given: Any) -> None:
        self._environment, self._given = environment, given

    def __enter__(self) -> list[str]:
        self._environment.begin(self._given)
        return self._environment.spans

    def __exit__(self, *raised: object) -> None:
        self._environment.end()


class _Steps:
    """Values of which each costs a step."""

    __slots__ = ("_tick", "_values")

    def __init__(self, environment: _Environment, values: Any) -> None:
        self._tick, self._values = environment.tick, values

    def __iter__(self) -> Iterator[Any]:
        tick = self._tick
        for each in self._values:
            tick()
            yield each

    def __len__(self) -> int:
        return len(self._values)


class _Generator(CodeGenerator):
    """Jinja's compiler, with a word to the meter where an operation may be long."""

    def _compare(self, node: nodes.Compare, frame: Any) -> None:
        # `role == "user"` is quick, whatever the role.
        if all(operand.op not in ("in", "notin") and isinstance(operand.expr, nodes.Const) for operand in node.ops):
            super().visit_Compare(node, frame)
            return
        self.write("(environment.weighed(")
        self.visit(node.expr, frame)
        self.write(")")
        for operand in node.ops:
            self.visit(operand, frame)
        self.write(")")

    def _concat(self, node: nodes.Concat, frame: Any) -> None:
        self.write("environment.joined((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")

    def _getitem(self, node: nodes.Getitem, frame: Any) -> None:
        sliced = isinstance(node.arg, nodes.Slice)
        self.write("environment.sliced(" if sliced else "")
        super().visit_Getitem(node, frame)
        self.write(")" if sliced else "")

    def _dict(self, node: nodes.Dict, frame: Any) -> None:
        self.write("{")
        for item in node.items:
            self.write("environment.weighed(")
            self.visit(item.key, frame)
            self.write("): ")
            self.visit(item.value, frame)
            self.write(", ")
        self.write("}")


# Jinja finds them by the names of its nodes.
for _name in ("Compare", "Concat", "Getitem", "Dict"):
    setattr(_Generator, f"visit_{_name}", vars(_Generator)[f"_{_name.lower()}"])


class _Generation(Extension):
    """`{% generation %}`: what the assistant writes, for those who train on it."""

    tags = {"generation"}  # noqa: RUF012 - as in Jinja

    def parse(self, parser: Parser) -> nodes.Node:
        """The block as a call of `_noted`."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_noted"), [], [], body).set_lineno(line)

    def _noted(self, caller: Callable[[], str]) -> str:
        text = caller()
        assert isinstance(self.environment, _Environment)
        self.environment.spans.append(text)
        return text


class _Dict:
    """`dict` without what a class offers beside it."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)


class _Namespace(Namespace):
    """Variables that loops may set; none with a name that begins with `_`."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, args = args[0], args[1:]
        values = dict(*args, **kwargs)
        for name in values:
            _check_name(name)
        Namespace.__init__(self, values)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace cannot hold {name!r}: names that begin with _ are not offered")


def _raise(message: str) -> None:
    raise TemplateError(str(message)[:1000])


def _now(form: str) -> str:
    if len(form) > 200 or re.search(r"\d{3}", form):
        raise TemplateTooCostly("it formats the time with a text that is too long, or a width")
    return datetime.now().strftime(form)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _weight(value: Any, most: int = 2**60) -> int:
    """Characters and entries in a value, each as often as it would be written out; counted no further than `most`."""
    weight, open_values = 0, [value]
    while open_values and weight <= most:
        each = open_values.pop()
        if isinstance(each, str):
            weight += len(each) + 1
        elif isinstance(each, dict):
            weight += 4 * len(each) + 8
            open_values += each.keys()
            open_values += each.values()
        elif isinstance(each, (list, tuple)):
            weight += 4 * len(each) + 8
            open_values += each
        else:
            weight += 8
    return weight


def _plain(value: Any) -> Any:
    """A copy of plain JSON types: other objects have methods that the sandbox does not know."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return f"<{type(value).__name__}>"


def _with_reasoning(message: dict[str, Any]) -> dict[str, Any]:
    """A message with its reasoning under the names that templates read."""
    known = next((message[key] for key in _REASONING if message.get(key) is not None), None)
    return message if known is None else {"thinking": known, **message, "reasoning_content": known}
