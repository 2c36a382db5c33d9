"""Hook implementations: found in a plugin, checked against `hookspecs`, and called so that a fault has a
name.

pluggy gives the decorators and the specifications; what it accepts silently is refused here, because an
author would look for it for hours: a misspelt hook, an argument that the hook does not have, a function
without the decorator, a wrapper. A `Hook` is one implementation of one plugin: it takes all arguments of the
hook by name, passes on those that the implementation takes, and turns what it raises into a `PluginError`
that names the plugin.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, ClassVar

import pluggy

from concertino.core.errors import PluginError

from . import hookspecs
from .guard import PluginFault, describe_error

HOOK_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    name: tuple(inspect.signature(function).parameters)
    for name, function in vars(hookspecs).items()
    if name.startswith("concertino_")
}
"""The hooks of concertino and their arguments."""


class Implementations:
    """The hook functions of one plugin, each under the name of its hook, as pluggy registers them."""


def read_hooks(pluggy_manager: pluggy.PluginManager, target: object) -> Implementations:
    """The hook implementations in a module or object.

    Raises:
        PluginFault: one of them cannot work, or there is none; says what to write instead.
    """
    found = Implementations()
    for name in sorted(vars(target) if isinstance(target, ModuleType) else dir(target)):
        options: Mapping[str, Any] | None = pluggy_manager.parse_hookimpl_opts(target, name)
        if options is None:
            _check_undecorated(target, name)
            continue
        hook = options.get("specname") or name
        # With pluggy's `optionalhook`, the plugin's author says that this hook may not exist here.
        if hook not in HOOK_ARGUMENTS and options.get("optionalhook"):
            continue
        function = getattr(target, name)
        _check_hook(hook, function, options)
        setattr(found, hook, function)
    if not vars(found):
        raise PluginFault(
            f"{show_target(target)} holds no hook; decorate a function such as concertino_tools with "
            "@concertino.hookimpl"
        )
    return found


def show_target(target: object) -> str:
    """A module or object in a message."""
    return f"module {target.__name__}" if isinstance(target, ModuleType) else type(target).__name__


def _check_undecorated(target: object, name: str) -> None:
    if name not in HOOK_ARGUMENTS:
        return
    # Static, so that looking runs no property of the plugin.
    function = inspect.getattr_static(target, name)
    # A function that the module only imported is somebody else's.
    elsewhere = isinstance(target, ModuleType) and getattr(function, "__module__", "") != target.__name__
    if inspect.isroutine(function) and not elsewhere:
        raise PluginFault(f"{name} is not decorated; write @concertino.hookimpl above it")


def _check_hook(hook: str, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    if hook not in HOOK_ARGUMENTS:
        from concertino.schema import near_names

        near = near_names(hook, HOOK_ARGUMENTS, limit=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(HOOK_ARGUMENTS)}"
        raise PluginFault(f"{hook} is not a hook of concertino; {hint}")
    if options.get("wrapper") or options.get("hookwrapper"):
        raise PluginFault(f"{hook} is a wrapper; write a plain function, wrappers are not called")
    signature = inspect.signature(function)
    allowed = HOOK_ARGUMENTS[hook]
    for argument in signature.parameters.values():
        if _needed(argument) and (argument.name not in allowed or argument.kind is argument.POSITIONAL_ONLY):
            raise PluginFault(
                f"{hook}{signature}: it is never given {argument.name!r}; "
                f"allowed arguments, by name: {', '.join(allowed) or 'none'}"
            )


def _needed(argument: inspect.Parameter) -> bool:
    return argument.default is argument.empty and argument.kind not in (
        argument.VAR_POSITIONAL,
        argument.VAR_KEYWORD,
    )


@dataclass(frozen=True)
class Hook:
    """One implementation of a hook around calls or rendering.

    Attributes:
        plugin: the provider's name, its distribution and version.
        name: of the hook.
        function: the plugin's.
        package: the plugin's top-level package.
        provider: the provider's name alone.
    """

    plugin: str
    name: str
    function: Callable[..., Any]
    package: str
    provider: str = ""
    leaves_out: ClassVar[bool] = True
    """It may be called with all arguments of its specification; the function is given those that it takes."""

    def __call__(self, **arguments: Any) -> Any:
        """What the implementation returns; an awaitable where it does.

        Raises:
            PermissionError: `concertino_before_call` raised it, which is how it refuses a call.
            PluginError: it raised anything else; names the plugin, its error and its line.
        """
        try:
            result = self.function(**{name: arguments[name] for name in self._taken & arguments.keys()})
        except (Exception, SystemExit) as error:
            # SystemExit too, since no hook may end the process; Ctrl-C and cancellation pass.
            raise self._attributed(error) from error
        return self._awaited(result) if inspect.isawaitable(result) else result

    async def _awaited(self, result: Awaitable[Any]) -> Any:
        try:
            return await result
        except (Exception, SystemExit) as error:
            raise self._attributed(error) from error

    def _attributed(self, error: BaseException) -> BaseException:
        if isinstance(error, PermissionError) and self.name == "concertino_before_call":
            return error
        return PluginError(f"{self.plugin}: {self.name} raised {describe_error(error, self.package)}")

    @cached_property
    def _taken(self) -> frozenset[str]:
        return taken_arguments(self.name, self.function)


def taken_arguments(hook: str, function: Callable[..., Any]) -> frozenset[str]:
    """The arguments of a hook that an implementation takes."""
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return frozenset(HOOK_ARGUMENTS[hook])
    return frozenset(parameters) & frozenset(HOOK_ARGUMENTS[hook])
