"""A Python function that launches kernels, with its arguments in their roles."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from engine.autograd.function.private_tape import PrivateTape
from engine.autograd.launch.call import LaunchCall
from engine.autograd.variables.roles import Roles
from engine.autograd.variables.variable import Variable, variable
from engine.classes import dataclass
from engine.lang.structs import Argument
from engine.runtime.arguments import Arguments
from engine.runtime.array import array
from engine.runtime.indexed import indexedarray
from engine.runtime.launch_errors import fail
from engine.runtime.structs import Struct


@dataclass(frozen=True)
class FunctionCall:
    """A function with its arguments. declared: arrays to take where it returns none.

    inputs: name, type and variable of each argument. named: names of outputs.
    """

    function: Callable[..., Any]
    key: str
    given: Sequence[Any]
    declared: Sequence[Any]
    inputs: dict[int, tuple[str, Any, Variable | None]]
    named: dict[int, str] = field(default_factory=dict)

    def run(self) -> tuple[PrivateTape, list[Any]]:
        """Calls the function on a tape of its own. Gives that, and the arrays that came out.

        Raises LaunchError (E202) for no array.
        """
        tape = PrivateTape()
        with tape:
            out = self.function(*self.given)
        return tape, self._results(out)

    def _results(self, out: Any) -> list[Any]:
        found = self.declared if out is None else out
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        if not any(isinstance(a, (array, Struct, indexedarray)) for a in found):
            raise fail(
                "E202", f"function {self.key!r} returns no array",
                "it returned " + ("None" if out is None else type(out).__name__),
                help="return the arrays to differentiate, or name them in outputs=",
            )  # fmt: skip
        return found

    def roles(self, results: Sequence[Any]) -> Roles:
        """Inputs and outputs by index. results: what a run gave."""
        outputs: dict[int, tuple[str, Any, Variable | None]] = {}
        for k, a in enumerate(results):
            name = self.named.get(k, f"output_{k}")
            outputs[k] = (name, _dtype(a), _variable(k, name, a))
        return Roles(self.key, self.inputs, outputs)


def function_call(
    function: Any, inputs: Any, outputs: Any, labels: Sequence[str] = ()
) -> FunctionCall:
    """A call of a function. Raises LaunchError (E201, E202) for what cannot be called."""
    if not callable(function):
        raise fail("E202", f"expected a kernel or a function, got {function!r}")
    given = _listed("inputs", inputs)
    declared = [outputs] if isinstance(outputs, (array, Struct)) else _listed("outputs", outputs)
    key = getattr(function, "__name__", type(function).__name__)
    if not labels:
        _check_call(function, key, given)
        labels = parameter_names(function, len(given))
    named = {
        k: (label, _dtype(a), _variable(k, label, a))
        for k, (label, a) in enumerate(zip(labels, given, strict=True))
    }
    return FunctionCall(function, key, given, declared, named)


def _listed(name: str, given: Any) -> list[Any]:
    """A list of arguments. Raises LaunchError (E201) for one argument without a list."""
    single = isinstance(given, (array, Struct, np.ndarray))
    if single or not isinstance(given, Iterable | None):
        raise fail("E201", f"{name} is a list of arguments", f"got {given!r:.80}",
                   help=f"write {name}=[x]")  # fmt: skip
    return [] if given is None else list(given)


def relaunched(call: LaunchCall) -> FunctionCall:
    """A launch as a function of its arguments, run on the user's own arrays."""
    roles, given = call.roles, call.given
    count = max(roles.inputs, default=-1) + 1
    explicit = len(given) > count
    outs = {k: given[count + k] if explicit else given[k] for k in roles.outputs}

    def run(*_: Any) -> Any:
        assert call.relaunch is not None
        call.relaunch()
        return [outs.get(k) for k in range(max(outs) + 1)]

    run.__name__ = roles.key
    labels = [roles.inputs[k][0] for k in range(count)]
    found = function_call(run, given[:count], list(outs.values()), labels)
    return replace(found, named={k: label for k, (label, _, _) in roles.outputs.items()})


def _check_call(function: Any, key: str, given: Sequence[Any]) -> None:
    """Raises LaunchError (E201) for arguments that the function does not take."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C do not tell
        return
    try:
        signature.bind(*given)
    except TypeError as error:
        raise fail("E201", f"function {key!r} cannot be called with these inputs", str(error),
                   help=f"it is {key}{signature}: inputs= has one for each parameter",
        ) from None  # fmt: skip


def _dtype(value: Any) -> Any:
    """The type of an array's elements, or of a struct; None for what is neither."""
    if _kind(value) is None:
        return None
    return getattr(value, "dtype", type(value))


def leaves_of(value: Any) -> list[Any]:
    """The arrays and values that an argument stands for."""
    kind = _kind(value)
    if kind is None:
        return []
    return list(Arguments([Argument("", kind)]).split(0, value))


def _kind(value: Any) -> Any:
    if isinstance(value, (array, indexedarray)):
        return value._ir
    return type(value).__ir_type__ if isinstance(value, Struct) else None


def _variable(index: int, label: str, value: Any) -> Variable | None:
    kind = _kind(value)
    if kind is None:
        return None
    leaves = [v if isinstance(v, array) else None for v in leaves_of(value)]
    return variable(index, label, kind, leaves)


def arrays_of(values: Sequence[Any]) -> list[array]:
    """All arrays among arguments, once each."""
    found = [v for a in values for v in leaves_of(a) if isinstance(v, array)]
    whole = [v._whole or v for v in found]
    return list({id(a): a for a in whole}.values())


def parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    """Names for positional arguments of a function."""
    names: list[str] = []
    try:
        for p in inspect.signature(function).parameters.values():
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
            elif p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}_{i}" for i in range(count - len(names))]
    except (TypeError, ValueError):
        pass
    return [*names, *(f"input_{i}" for i in range(len(names), count))][:count]
