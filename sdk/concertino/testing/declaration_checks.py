"""Checks of what a member declares: they need no example and run nothing of it.

What an orchestrator knows of a member is its name, its description and its schema. So the checks require what a model
needs in order to choose and to call: words that say what it does, a description of each parameter, a schema that is
small, closed to arguments that do not exist, and says every rule that the code enforces.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from concertino.core.errors import SpecError
from concertino.core.model import Model
from concertino.core.observation import Observation, Status
from concertino.members.specs import ModelSpec, ToolSpec
from concertino.plugins.import_time import HEAVY_IMPORT, import_seconds
from concertino.pool.pool import Pool

from .calling import run_call
from .check import CheckFailed, CheckSkipped, MemberSubject

MAX_CONTEXT = 1_000
"""Tokens that a tool or agent may take in the orchestrator's context (estimated, 3 bytes each)."""
LEAST_WORDS = 4
"""Words that a description has at least, apart from the member's own name."""
_UNKNOWN = "an_argument_that_does_not_exist"


def its_schema_is_admitted_and_small(subject: MemberSubject) -> None:
    """Its schemas are admitted, and the orchestrator can afford to read it."""
    spec = subject.spec
    try:
        spec.validator  # noqa: B018 - compiling it is the check
        spec.output_validator  # noqa: B018
    except SpecError as error:
        raise CheckFailed(str(error)) from error
    tokens = Pool.of(spec).count_context().total
    if tokens > MAX_CONTEXT:
        raise CheckFailed(
            f"it takes about {tokens:,} tokens of the orchestrator's context; stay below {MAX_CONTEXT:,} with fewer "
            "parameters or shorter descriptions"
        )


def its_description_says_what_it_does(subject: MemberSubject | ModelSpec) -> None:
    """Its description says what it does, in more words than its name."""
    spec = subject.spec if isinstance(subject, MemberSubject) else subject
    words = _new_words(spec.description, spec.short_name)
    if len(words) < LEAST_WORDS:
        raise CheckFailed(
            f"its description is {spec.description!r}; an orchestrator chooses by it, so say in at least "
            f"{LEAST_WORDS} words beyond its name what it does and when to use it"
        )


def every_parameter_is_described(subject: MemberSubject) -> None:
    """Every parameter has a description that says more than its name."""
    bare = [
        name
        for name, schema in _parameters(subject.spec.input_schema)
        if not _new_words(str(schema.get("description", "")), name)
    ]
    if bare:
        raise CheckFailed(
            f"no description of {', '.join(bare)}; write one under Args: in the docstring, or with "
            "Annotated[..., Field(description=...)]"
        )


async def an_unknown_argument_is_refused(subject: MemberSubject) -> None:
    """An argument that does not exist is refused, and the call is not run."""
    schema = subject.spec.input_schema
    if schema.get("additionalProperties") not in (None, False):
        raise CheckSkipped("its schema says that it takes further arguments (additionalProperties)")
    arguments = dict(subject.examples[0][0]) if subject.examples else subject.spec.validator.example()
    seen = await _refusal(subject.spec, {**arguments, _UNKNOWN: 1})
    if seen.status is not Status.PARSE_ERR:
        raise CheckFailed(
            f"it was run with the argument {_UNKNOWN!r}; put additionalProperties: false into its schema, so that a "
            "model is told of a misspelt name"
        )


async def rejected_arguments_are_refused_with_a_reason(subject: MemberSubject) -> None:
    """Wrong arguments are a PARSE_ERR that says where and what was expected, and the call is not run."""
    if not subject.rejected and not subject.spec.input_schema.get("properties"):
        raise CheckSkipped("it takes no arguments")
    for arguments in subject.given("rejected"):
        seen = await _refusal(subject.spec, arguments)
        if seen.status is not Status.PARSE_ERR or seen.error is None:
            raise CheckFailed(f"{arguments} was run ({seen.status}); make the input schema refuse it")
        if not seen.error.expected:
            raise CheckFailed(
                f"{arguments} was refused by code and not by the schema ({seen.error.message}); a model cannot see "
                "that rule: write it into the schema"
            )


def importing_its_module_is_quick(subject: MemberSubject | ModelSpec) -> None:
    """Importing its module takes little time, so that listing a pool does too."""
    function = subject.spec.function if isinstance(subject, MemberSubject) else subject.factory
    module = str(getattr(inspect.unwrap(function), "__module__", "") or type(function).__module__)
    if not _importable(module):
        raise CheckSkipped(f"its module {module!r} cannot be imported by name in another process")
    if (measured := _as_it_is(module)) in _QUICK:
        return
    seconds = [import_seconds(module)]
    while seconds[-1] is not None and seconds[-1] > HEAVY_IMPORT and len(seconds) < 3:
        seconds.append(import_seconds(module))  # a busy machine is not the module's fault
    known = [value for value in seconds if value is not None]
    if not known:
        raise CheckFailed(f"{module} cannot be imported in a process of its own; python -c 'import {module}' shows why")
    # The quickest of the tries: other programs can only make an import slower.
    if min(known) > HEAVY_IMPORT:
        raise CheckFailed(
            f"importing {module} takes {min(known):.2f} s, more than {HEAVY_IMPORT:g} s; import heavy libraries "
            f"inside functions (python -X importtime -c 'import {module}' shows which)"
        )
    _QUICK.add(measured)


_QUICK: set[tuple[str, ...]] = set()
"""Modules that were found quick. A module is measured for one of its members: each measure is a process."""


def _as_it_is(module: str) -> tuple[str, ...]:
    """A module, where it is looked for, and when it was written."""
    file = getattr(sys.modules.get(module), "__file__", None)
    written = str(Path(file).stat().st_mtime_ns) if file and Path(file).is_file() else ""
    return (module, written, *sys.path)


def its_factory_makes_a_model(spec: ModelSpec) -> None:
    """Its factory makes a model, without asking anything of a server."""
    model = spec.factory()
    if not isinstance(model, Model):
        raise CheckFailed(f"its factory gives {type(model).__name__}; expected a subclass of concertino.Model")


DECLARATION_CHECKS = (
    its_schema_is_admitted_and_small,
    its_description_says_what_it_does,
    every_parameter_is_described,
    an_unknown_argument_is_refused,
    rejected_arguments_are_refused_with_a_reason,
    importing_its_module_is_quick,
)
MODEL_DECLARATION_CHECKS = (
    its_description_says_what_it_does,
    importing_its_module_is_quick,
    its_factory_makes_a_model,
)


def _new_words(text: str, name: str) -> list[str]:
    """The words of a text that are not in a name, without articles."""
    return [word for word in _words(text) if word not in (*_words(name), "a", "an", "the")]


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())


def _parameters(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The parameters with their schemas; where one only refers to a definition, the definition's words count."""
    for name, parameter in schema.get("properties", {}).items():
        reference = parameter.get("$ref", "") if isinstance(parameter, Mapping) else ""
        target: Any = schema
        for step in reference.removeprefix("#/").split("/") if reference.startswith("#/") else ():
            target = target.get(step, {})
        referred = target if reference.startswith("#/") else {}
        yield name, {**referred, **parameter} if isinstance(parameter, Mapping) else {}


async def _refusal(spec: ToolSpec, arguments: Mapping[str, Any]) -> Observation:
    """What a call gives before its function would run; the function itself never does."""
    harmless = spec.with_(function=_nothing, takes_mapping=True, context="", isolation="loop", output_schema=None)
    return await run_call(harmless, arguments)


async def _nothing(arguments: Mapping[str, Any]) -> None:
    """Stands where the function was."""


def _importable(module: str) -> bool:
    if not module or module == "__main__":
        return False
    try:
        # It imports the parent package, which may fail, and refuses modules without a spec.
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
