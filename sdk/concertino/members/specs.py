"""Specs: what a provider publishes. A `ToolSpec`, an `AgentSpec` or a `ModelSpec` is all that a pool ever holds.

A tool and an agent are the same thing to the orchestrator: a name, a description and one JSON schema. An agent is a
tool with its own context: it may call models and other members, and spends from its caller's budget. A tool is a leaf.

The decorators return the *spec*, and the spec is callable: `count_letter("banana", "a")` still works in a test.

    @concertino.tool(timeout=5)
    def count_letter(text: str, letter: str) -> int:
        '''Count how often one letter occurs in a text.'''
        return text.count(letter)
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, overload

from concertino.core.display_text import one_line, without_hidden
from concertino.core.errors import SpecError
from concertino.core.usage import FREE, Cost, Prices

from .signature import Signature, plain_schema, read_signature

if TYPE_CHECKING:
    from concertino.core.model import Model
    from concertino.schema import Validator

Isolation = Literal["loop", "thread", "process"]
"""Where a member runs: on the caller's event loop, on an own loop thread, or in an own process."""

# 64 characters, as many as model servers allow in the name of a function. ASCII alone: no two names look alike.
_NAME = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,63}/)?[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
# Services name models `org/model:variant`; a model is never shown as a function, so its name may be theirs.
_MODEL_NAME = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,63}/)?[A-Za-z0-9][A-Za-z0-9_.:@+/-]{0,127}")
_UNSTRUCTURED = (None, type(None), Any, str, int, float, bool, dict, list)
"""Return annotations that say nothing to be checked; most functions have one of them."""
DESCRIPTION_LIMIT = 2048
"""Characters of a description that the orchestrator may see."""


def canonical_text(data: Any) -> str:
    """JSON data as one text: sorted keys, no spaces; equal data gives equal text in every process."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def function_object(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """An OpenAI-style function object."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _check_positive(label: str, **values: float | None) -> None:
    for name, value in values.items():
        if value is not None and not (isinstance(value, (int, float)) and 0 < value < float("inf")):
            raise SpecError(f"{label}: {name}={value!r}; expected a number > 0, or None for no limit")


def _shown_description(text: str) -> str:
    # Characters that nobody sees can hide instructions from a human reader.
    return without_hidden(text).strip()[:DESCRIPTION_LIMIT]


# Compared by identity, so that a spec can be a key though it holds dicts.
@dataclass(frozen=True, eq=False)
class _NamedSpec:
    """What tools, agents and models have because they have a name."""

    name: str

    kind: ClassVar[str]
    _form: ClassVar[re.Pattern[str]] = _NAME
    _characters: ClassVar[str] = "'_', '-' or '.', at most 64 characters"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self._form.fullmatch(self.name):
            raise SpecError(
                f"{self.kind} name {one_line(repr(self.name))}: expected letters, digits, {self._characters}, "
                "beginning with a letter or digit, optionally after 'provider/'"
            )

    @property
    def provider(self) -> str:
        """The part of the name before the first slash, `""` for a local member."""
        return self.name.partition("/")[0] if "/" in self.name else ""

    @property
    def short_name(self) -> str:
        """The part of the name after the first slash."""
        return self.name.partition("/")[2] or self.name

    @property
    def needs(self) -> tuple[str, ...]:
        """Full names of models that must be in a pool with it."""
        return ()

    @cached_property
    def canonical(self) -> str:
        """`to_json` as one text with sorted keys, which is hashed; made once."""
        return canonical_text(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """What the outside sees of it: everything that can change a run, nothing that is code."""
        raise NotImplementedError

    def with_(self, **changes: Any) -> Self:
        """A copy with some fields changed.

        Raises:
            SpecError: it has no such field, or a value cannot be.
        """
        try:
            return replace(self, **changes)
        except TypeError:
            known = [each.name for each in fields(self) if each.init]
            unknown = next((name for name in changes if name not in known), None)
            if unknown is None:
                raise
            from concertino.schema import suggestion

            raise SpecError(
                f"{self.kind} {self.name!r}: unknown option {unknown!r}; {suggestion(unknown, known)}"
            ) from None


@dataclass(frozen=True, eq=False)
class ToolSpec(_NamedSpec):
    """A tool: anything that maps JSON arguments to a JSON result.

    Attributes:
        name: `name`, or `provider/name` once a plugin has published it.
        description: what the model reads; control characters are dropped, 2,048 characters at most.
        input_schema: JSON schema of the arguments, an object; admitted by `concertino.schema.admit`.
        function: what runs. Called with keyword arguments, or with one dict if `takes_mapping`.
        output_schema: JSON schema of the result, checked when given. Of a decorated function it comes from its return
            annotation: a pydantic model, dataclass, TypedDict, list or union; or from `result=TYPE`.
        cost: what one call costs.
        timeout: seconds for one call with all its attempts; `None` leaves only the run's deadline.
        concurrency: how many calls of it may run at once, `None` for no own limit.
        writes: it changes something; such calls of one plan run one after another, in the plan's order.
        retry_safe: repeating a call that may have been executed does no harm (reads, or an idempotency key is used).
        isolation: where it runs.
        env_from: names of environment variables that its own process is given, keys among them; without, no key is.
        max_chars: observations longer than this are cut in the middle.
        maths_fields: arguments that hold LaTeX, where `\\t` or `\\n` before a letter is taken for a lost backslash.
        approval: a person decides before each call (True), or before those for which a function of the arguments
            returns True.
        dump: turns a result of the declared type into JSON data; None where it is that already.
        source: the file or folder that it was made of (`Pool.of(Path("skills"))`); empty for all others.
    """

    description: str
    input_schema: dict[str, Any]
    function: Callable[..., Any]
    output_schema: dict[str, Any] | None = None
    cost: Cost = FREE
    timeout: float | None = 30.0
    concurrency: int | None = None
    writes: bool = False
    retry_safe: bool = False
    isolation: Isolation = "loop"
    max_chars: int = 16_384
    maths_fields: tuple[str, ...] = ()
    takes_mapping: bool = False
    context: str = ""
    convert: Callable[[Mapping[str, Any]], dict[str, Any]] | None = field(default=None, repr=False)
    approval: bool | Callable[[dict[str, Any]], bool] = False
    dump: Callable[[Any], Any] | None = field(default=None, repr=False)
    source: str = ""
    env_from: tuple[str, ...] = ()

    kind = "tool"

    def __post_init__(self) -> None:
        super().__post_init__()
        label = f"{self.kind} {self.name!r}"
        if not callable(self.function):
            raise SpecError(f"{label}: function={self.function!r} cannot be called")
        if not isinstance(self.input_schema, dict) or self.input_schema.get("type", "object") != "object":
            raise SpecError(f"{label}: input_schema must be a JSON schema of type object")
        if self.output_schema is not None and not isinstance(self.output_schema, dict):
            raise SpecError(
                f"{label}: output_schema={self.output_schema!r}; expected a JSON schema as a dict; a type is declared "
                f"with @{self.kind}(result=...) or as the return annotation"
            )
        if not isinstance(self.description, str) or not self.description.strip():
            raise SpecError(f"{label}: it has no description; write a docstring, the model chooses by it")
        if self.isolation not in ("loop", "thread", "process"):
            raise SpecError(f"{label}: isolation={self.isolation!r}; expected 'loop', 'thread' or 'process'")
        if self.isolation == "process" and self.context:
            raise SpecError(f"{label}: a member in its own process cannot receive a Context; use isolation='thread'")
        if self.env_from and self.isolation != "process":
            raise SpecError(f"{label}: env_from is for a process of its own; add isolation='process'")
        if not isinstance(self.approval, bool) and not callable(self.approval):
            raise SpecError(f"{label}: approval={self.approval!r}; expected True, False or a function of the arguments")
        if not isinstance(self.cost, Cost):
            raise SpecError(f"{label}: cost={self.cost!r}; expected a Cost, such as Cost(units=3)")
        _check_positive(label, timeout=self.timeout, concurrency=self.concurrency, max_chars=self.max_chars)
        object.__setattr__(self, "description", _shown_description(self.description))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, without validation, budget or trace."""
        return self.function(*args, **kwargs)

    @cached_property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        return inspect.iscoroutinefunction(inspect.unwrap(self.function)) or inspect.iscoroutinefunction(
            getattr(self.function, "__call__", None)  # noqa: B004 - an object with an async __call__ counts
        )

    @cached_property
    def validator(self) -> Validator:
        """The compiled input schema.

        Raises:
            SpecError: the schema was refused; says why and where.
        """
        return _compile(self, "input_schema", self.input_schema)

    @cached_property
    def output_validator(self) -> Validator | None:
        """The compiled output schema, None without one."""
        return None if self.output_schema is None else _compile(self, "output_schema", self.output_schema)

    def admit(self, *, keep: bool = True) -> None:
        """Find out before a run what would keep every call from running: a refused schema, a function no worker finds.

        Args:
            keep: the compiled schema, for the first call; without, that call compiles it again.

        Raises:
            SpecError: says which and why.
        """
        if "_admitted" not in self.__dict__:
            validator = self.__dict__.get("validator") or _compile(self, "input_schema", self.input_schema)
            if keep:
                self.__dict__.setdefault("validator", validator)
            _tell_contradiction(self)
            self.__dict__["_admitted"] = True
        if self.isolation == "process":
            from .import_path import import_path

            import_path(self.function, self.name)

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        input_schema: dict[str, Any],
        function: Callable[..., Any],
        **options: Any,
    ) -> Self:
        """A member given as JSON: `function` receives the validated arguments as one dict."""
        return cls(name, description, input_schema, function, takes_mapping=True, **options)

    def to_json(self) -> dict[str, Any]:
        """What the outside sees of it: everything that can change a run, nothing that is code."""
        cost = {k: v for k in ("units", "usd", "usd_per_second", "max_usd") if (v := getattr(self.cost, k))}
        data: dict[str, Any] = {
            "kind": self.kind,
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
            "cost": cost,
            "timeout": self.timeout,
            "writes": self.writes,
            "retry_safe": self.retry_safe,
            "isolation": self.isolation,
            "max_chars": self.max_chars,
        }
        if self.env_from:
            data["env_from"] = list(self.env_from)
        if self.approval:
            data["approval"] = True if self.approval is True else "rule"
        if self.maths_fields:
            data["maths_fields"] = list(self.maths_fields)
        if self.output_schema is not None:
            data["output_schema"] = self.output_schema
        if self.concurrency is not None:
            data["concurrency"] = self.concurrency
        return data


@dataclass(frozen=True, eq=False)
class AgentSpec(ToolSpec):
    """An agent: a tool with its own context. Its function takes a `Context`, through which it calls models and members.

    Attributes:
        models: the roles it asks for with `ctx.model(role)`, bound to real models by the pool, or models by full name,
            `provider/name`.
        toolbox: private tools, which only its own calls find, by their short name.
    """

    timeout: float | None = 120.0
    models: tuple[str, ...] = ()
    toolbox: tuple[ToolSpec, ...] = ()

    kind = "agent"

    def __post_init__(self) -> None:
        super().__post_init__()
        label = f"agent {self.name!r}"
        if not isinstance(self.toolbox, (tuple, list)) or not all(isinstance(tool, ToolSpec) for tool in self.toolbox):
            raise SpecError(
                f"{label}: toolbox={self.toolbox!r}; expected tools made with @tool, such as (search, read)"
            )
        if isinstance(self.models, str) or not all(isinstance(role, str) for role in self.models):
            raise SpecError(f"{label}: models={self.models!r}; expected names of roles, such as ('worker',)")

    @property
    def needs(self) -> tuple[str, ...]:
        """The models that it asks for by full name; its other names are roles."""
        return tuple(name for name in self.models if "/" in name)

    @cached_property
    def own_tools(self) -> dict[str, ToolSpec]:
        """Its private tools by short name.

        Raises:
            SpecError: two have one name.
        """
        found = {tool.short_name: tool for tool in self.toolbox}
        if len(found) < len(self.toolbox):
            raise SpecError(f"agent {self.name!r}: two tools of its toolbox have one name; rename one")
        return found

    def admit(self, *, keep: bool = True) -> None:
        """As for a tool, for each tool of its toolbox too."""
        super().admit(keep=keep)
        for tool in self.own_tools.values():
            tool.admit(keep=keep)

    def to_json(self) -> dict[str, Any]:
        """As for a tool, with the model roles and its toolbox."""
        data = {**super().to_json(), "models": list(self.models)}
        return {**data, "toolbox": [tool.to_json() for tool in self.toolbox]} if self.toolbox else data


@dataclass(frozen=True, eq=False)
class ModelSpec(_NamedSpec):
    """A chat model that a plugin offers.

    Attributes:
        name: `provider/name`.
        factory: makes the `Model`; called once per pool, at first use.
        description: strengths and weaknesses, for the orchestrator that chooses between models.
        prices: $ per million tokens, `None` when unknown.
        context: tokens of the context window, if known.
        concurrency: how many requests may run at once.
        timeout: seconds for one request with all its attempts.
        max_tokens: what a budget reserves for a reply when the request does not say.
        options: what it was declared with in a pool file or `concertino.toml`: plain JSON data, never a key; None for a
            model that was not declared so.
        accepts: kinds of attachments that it takes: `image`, `audio`, `file`; None where that is not known, and then
            all are sent.
        endpoint: the server behind it, in any words. Models of one endpoint share its breaker, its throttling and a
            refused key; by default that is the whole provider.
        lacks: says what keeps it from answering, as far as that is known without asking anybody: a key that is not
            set, a package that is missing; `what; next step`, empty for nothing. None where nobody knows.
    """

    factory: Callable[[], Model]
    description: str = ""
    prices: Prices | None = None
    context: int | None = None
    concurrency: int | None = None
    timeout: float | None = 300.0
    max_tokens: int = 4096
    options: Mapping[str, Any] | None = None
    endpoint: str = ""
    accepts: tuple[str, ...] | None = None
    lacks: Callable[[], str] | None = field(default=None, repr=False)

    kind = "model"
    _form = _MODEL_NAME
    _characters = "'_', '-', '.', ':', '@', '+' or '/', at most 128 characters"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.factory):
            raise SpecError(f"model {self.name!r}: factory={self.factory!r} cannot be called")
        _check_positive(f"model {self.name!r}", timeout=self.timeout, concurrency=self.concurrency)
        object.__setattr__(self, "description", _shown_description(self.description))

    def to_json(self) -> dict[str, Any]:
        """What the outside sees of it."""
        prices = self.prices and {name: value for name, value in asdict(self.prices).items() if value not in (None, "")}
        data: dict[str, Any] = {
            "kind": self.kind,
            "name": self.name,
            "description": self.description,
            "prices": prices,
            "context": self.context,
            "concurrency": self.concurrency,
            "timeout": self.timeout,
            "max_tokens": self.max_tokens,
        }
        if self.accepts is not None:
            data["accepts"] = list(self.accepts)
        return data if self.options is None else {**data, "options": dict(self.options)}


Spec = ToolSpec | AgentSpec | ModelSpec
"""Anything that a pool holds."""

F = TypeVar("F", bound=Callable[..., Any])


@overload
def tool(function: Callable[..., Any], /) -> ToolSpec: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: dict[str, Any] | None = None,
    output_schema: dict[str, Any] | None = None,
    result: Any = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], ToolSpec]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a typed function. Options are the fields of `ToolSpec`.

    Args:
        result: the type of its results, where the return annotation does not say it: a pydantic model, dataclass,
            TypedDict, union or list. Results become JSON data by it, and are checked against its schema.

    Raises:
        SpecError: the function or an option cannot work; says which and why.
    """
    return _declare(ToolSpec, function, options)


@overload
def agent(function: Callable[..., Any], /) -> AgentSpec: ...
@overload
def agent(
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: dict[str, Any] | None = None,
    output_schema: dict[str, Any] | None = None,
    result: Any = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], AgentSpec]: ...
def agent(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make an agent of a typed function with a `Context` parameter. Options are the fields of `AgentSpec`.

    Args:
        result: the type of its results, where the return annotation does not say it: a pydantic model, dataclass,
            TypedDict, union or list. Results become JSON data by it, and are checked against its schema.

    Raises:
        SpecError: the function or an option cannot work; says which and why.
    """
    return _declare(AgentSpec, function, options)


def _declare(kind: type[ToolSpec], function: Callable[..., Any] | None, options: dict[str, Any]) -> Any:
    if function is not None:
        return _build(kind, function, options)
    unknown = set(options) - {each.name for each in fields(kind)} - {"result"}
    if unknown:
        raise SpecError(f"@{kind.kind}: unknown option {sorted(unknown)[0]!r}; known: {_known_options(kind)}")
    return lambda function: _build(kind, function, options)


def _known_options(kind: type[ToolSpec]) -> str:
    hidden = ("function", "convert", "context", "dump", "source")
    names = [each.name for each in fields(kind) if each.name not in hidden]
    return ", ".join([*names, "result"])


def _build(kind: type[ToolSpec], function: Callable[..., Any], options: dict[str, Any]) -> ToolSpec:
    if not callable(function):
        raise SpecError(f"@{kind.kind} takes a function, or options by name: got {function!r}")
    from concertino.members.context import Context

    # None stands for "not given", but of a timeout it lifts the limit.
    given = {key: value for key, value in options.items() if value is not None or key == "timeout"}
    read: Signature = read_signature(function, Context)
    name = given.pop("name", None) or function.__name__
    given.update(_results(f"{kind.kind} {name!r}", given, read.result))
    return kind(
        name=name,
        description=given.pop("description", None) or read.description,
        input_schema=given.pop("input_schema", None) or read.schema,
        function=function,
        context=read.context,
        convert=read.convert,
        **given,
    )


def _results(label: str, given: dict[str, Any], annotation: Any) -> dict[str, Any]:
    """What the options and the return annotation say about results; takes `result` out of the options."""
    declared, schema = given.pop("result", None), given.get("output_schema")
    if schema is not None and not isinstance(schema, dict):
        declared, schema = schema, None  # a type; what is none is refused below
    if schema is not None or (declared is None and annotation in _UNSTRUCTURED):
        return {}
    from .value_type import ValueType, is_record, is_structured

    if declared is not None:
        if isinstance(declared, dict):
            return {"output_schema": declared}
        found = ValueType(declared, f"{label}: result")
        return {"output_schema": found.result_schema, "dump": found.dump}
    if not is_structured(annotation):
        return {}
    if (plain := plain_schema(annotation)) is not None:
        return {"output_schema": plain}
    try:
        found = ValueType(annotation, f"{label}: its return annotation")
        return {"output_schema": found.result_schema, "dump": found.dump}
    except SpecError as error:
        # Other code may have been written before annotations meant anything here, so it goes on unchecked.
        if is_record(annotation):
            from concertino.core.logs import logger

            logger.warning("%s; its results are not checked", error)
        return {}


def _tell_contradiction(spec: ToolSpec) -> None:
    """Warn of a schema that no arguments can meet; it is not refused, for other members are none the worse."""
    from concertino.schema.contradictions import contradiction

    # Arguments are always an object, whether a schema says so or not.
    if found := contradiction({"type": "object", **spec.input_schema}):
        from concertino.core.logs import logger

        logger.warning("%s %r: no call can ever fit its input_schema: %s; correct it", spec.kind, spec.name, found)


def _compile(spec: ToolSpec, which: str, schema: dict[str, Any]) -> Validator:
    from concertino.schema import SchemaRefused, compile_schema

    try:
        return compile_schema(schema)
    except SchemaRefused as error:
        raise SpecError(f"{spec.kind} {spec.name!r}: its {which} was refused: {error}") from error
