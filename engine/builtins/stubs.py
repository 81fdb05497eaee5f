"""Builtins as Python objects: names that kernels call, usable on the host with the same meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from engine import hooks
from engine.builtins.argument_names import placed
from engine.builtins.composite import COMPOSITES, choose, with_defaults
from engine.builtins.expectations import EXPECTATIONS, expect
from engine.builtins.generic_constructors import (
    GENERIC_CONSTRUCTORS,
    IDENTITIES,
    make,
    neutral,
    part_names,
)
from engine.builtins.host_calls import MISS, MOST, HostCall, host_call
from engine.builtins.queries import QUERIES
from engine.builtins.resolve import describe, names, resolve, suggest
from engine.builtins.special import SPECIAL, tile_annotation
from engine.diagnostics import Diagnostic, LaunchError
from engine.ir.as_python import Evaluation, as_python, quietly
from engine.ir.interp import evaluate
from engine.ir.ops import OPS
from engine.lang.scalars import host_number
from engine.lang.types import (
    BOOL,
    BY_NAME,
    FLOAT32,
    INT32,
    INT64,
    UINT64,
    ScalarType,
    Type,
    ValueType,
)
from engine.lang.vectors import Components

if TYPE_CHECKING:
    from engine.ir.nodes import Function

KERNEL_ONLY: dict[str, str] = {
    "tid": "tid(): the thread's first coordinate in the launch grid; up to four names on the left "
    "take as many coordinates. Along an axis that the grid does not have, it is 0.",
    "atomic_add": "atomic_add(array, i..., value): adds to an element, returns the old value.",
    "atomic_sub": "atomic_sub(array, i..., value): subtracts from an element, returns the "
    "old value.",
    "atomic_min": "atomic_min(array, i..., value): lowers an element, returns the old value.",
    "atomic_max": "atomic_max(array, i..., value): raises an element, returns the old value.",
    "atomic_and": "atomic_and(array, i..., value): clears the bits of an element that are not "
    "set in value, returns the old value.",
    "atomic_or": "atomic_or(array, i..., value): sets bits of an element, returns the old value.",
    "atomic_xor": "atomic_xor(array, i..., value): flips bits of an element, returns the "
    "old value.",
    "atomic_exch": "atomic_exch(array, i..., value): stores into an element, returns the "
    "old value.",
    "atomic_cas": "atomic_cas(array, i..., compare, value): stores value into an element that "
    "equals compare, returns the old value; vectors and matrices count by component.",
    "expect_eq": "expect_eq(a, b): prints an error where a and b are not equal, and makes the "
    'launch raise one at its end; with `config.expect = "print"` it does not.',
    "expect_neq": "expect_neq(a, b): the same where a and b are equal.",
    "expect_near": "expect_near(a, b, tolerance=1e-6): the same where components of floats differ "
    "by more than the tolerance, or by NaN.",
}


def _fail(code: str, message: str, help: str) -> NoReturn:
    raise LaunchError(Diagnostic(code, message, help=help))


def _integer_type(value: int) -> ScalarType | None:
    for t in (INT32, INT64, UINT64):
        info = np.iinfo(t.numpy)
        if info.min <= value <= info.max:
            return t
    return None


def _type_of(value: object) -> tuple[ValueType, bool] | None:
    """The type of a host value, and whether it is a plain Python number that may adapt."""
    known = getattr(type(value), "__ir_type__", None)
    if known is not None:
        return known, False
    if isinstance(value, (bool, np.bool_)):
        return BOOL, False
    if isinstance(value, np.generic):
        t = BY_NAME.get(value.dtype.name)
        return None if t is None else (t, False)
    if isinstance(value, int):
        t = _integer_type(value)
        return None if t is None else (t, True)
    return (FLOAT32, True) if isinstance(value, float) else None


def _to_numpy(value: Any, t: ValueType) -> Any:
    return np.asarray(value).astype(t.numpy)[()] if isinstance(t, ScalarType) else np.array(value)


def _from_numpy(value: Any, t: Type) -> Any:
    """Numbers for scalars, vector and matrix objects for the rest."""
    from engine.lang.values import value_class

    if isinstance(t, ScalarType):
        return host_number(t, value)
    return value_class(t)(value)  # type: ignore[arg-type]


class Builtin:
    """A function of the kernel language.

    In kernels the compiler recognises it by `__builtin_name__`. On the host a call
    evaluates it on Python and NumPy numbers, vectors and matrices; Python floats
    count as float32 unless another argument is a float64.

    Results are Python numbers, or of the scalar class where that is another type than literals
    have (`float64`, `int8`, ...).

    Raises LaunchError: E104 for types that no overload takes, E106 for a function
    that has no meaning outside a kernel.
    """

    def __init__(self, name: str) -> None:
        self.__builtin_name__ = name
        self.__name__ = name
        self.__qualname__ = name
        special = SPECIAL[name].doc if name in SPECIAL else ""
        told = {**KERNEL_ONLY, **GENERIC_CONSTRUCTORS, **IDENTITIES}.get(name)
        told = QUERIES[name][0].doc if name in QUERIES else told
        self.__doc__ = told or special or "\n".join(describe(name))
        self._known: dict[tuple[type, ...], HostCall] = {}

    def __repr__(self) -> str:
        return f"<engine builtin {self.__builtin_name__}>"

    def __getitem__(self, key: object) -> Any:
        if self.__builtin_name__ == "tile":
            return tile_annotation()
        raise TypeError(f"{self!r} is not subscriptable")

    def __call__(self, *args: Any, **named: Any) -> Any:
        if not named:
            call = self._known.get(tuple(map(type, args)))
            if call is not None and (came := call(args)) is not MISS:
                return came
        name = self.__builtin_name__
        if name in EXPECTATIONS:
            return expect(name, *args, **named)
        if name in KERNEL_ONLY or name in QUERIES:
            _fail(
                "E106",
                f"{name}() was called outside a kernel",
                "call it in a function decorated with @kernel or @func",
            )
        if name in SPECIAL:
            return SPECIAL[name].host(*args, **named)
        if name in IDENTITIES:
            return neutral(name, args, named)
        args = (*args, *(named.pop(k) for k in part_names(name) if k in named))
        if named and name not in GENERIC_CONSTRUCTORS:
            found_names = placed(name, len(args), list(named))
            if found_names is None:
                _fail("E106", f"{name}() takes no argument {next(iter(named))!r} here",
                      self.__doc__ or "")  # fmt: skip
            args += tuple(named[x] if isinstance(x, str) else x for x in found_names)
        found = [_type_of(a) for a in args]
        types: list[Type] = []
        for k, (known, value) in enumerate(zip(found, args, strict=True)):
            if known is None:
                _fail(
                    "E104",
                    f"argument {k + 1} of {name}() is {_describe(value)}, not a value of the "
                    "kernel language",
                    "use Python or NumPy numbers, vectors and matrices",
                )
            types.append(known[0])
        weak = [known is not None and known[1] for known in found]
        if name in GENERIC_CONSTRUCTORS:
            return make(name, args, named, types, weak)
        got = resolve(name, types, weak)
        if got is None and name in COMPOSITES:
            return self._composed(args, types, weak)
        if got is None:
            listed = ", ".join(map(str, types))
            _fail("E104", f"{name}() does not take ({listed})", suggest(name, types))
        op, values = OPS[got.op].numpy, []
        with np.errstate(all="ignore"):
            for t, cast, value in zip(types, got.casts, args, strict=True):
                values.append(_to_numpy(value, cast or t))  # type: ignore[arg-type]
            result = op(*(values[k] for k in got.order))
        straight = got.order == tuple(range(len(args)))
        run = (lambda *v: (op(*v),)) if straight else (lambda *v: (op(*[v[k] for k in got.order]),))
        self._remember(args, types, got.casts, run, [got.result])
        return _from_numpy(result, got.result)

    def _composed(self, args: Sequence[Any], types: list[Type], weak: Sequence[bool]) -> Any:
        """A call of a composite on the host: its IR as Python code, or interpreted.

        One value, or a tuple. Vectors that the call is there to change are changed. All else stays
        as it is: the state of random numbers does not advance on the host.
        """
        name = self.__builtin_name__
        tried = with_defaults(name, list(args), types, list(weak))
        fits = ((v, t, choose(name, t, plain)) for v, t, plain in tried)
        values, kinds, found = next((x for x in fits if x[2] is not None), ([], [], None))
        if found is None:
            _fail("E104", f"{name}() does not take ({', '.join(map(str, types))})",
                  suggest(name, types))  # fmt: skip
        typed = [c or t for c, t in zip(found.casts, kinds, strict=True)]
        assert hooks.instantiate is not None
        fn: Function = hooks.instantiate(found.composite, typed)
        with np.errstate(all="ignore"):
            given = [_to_numpy(v, t) for v, t in zip(values, typed, strict=True)]  # type: ignore[arg-type]
        run = _evaluation(fn)
        results = evaluate(fn, given) if run is None else quietly(run, given)
        count = len(results) - len(found.composite.updates)
        changed = found.composite.updates
        if not count and all(isinstance(args[k], Components) for k in changed):
            # As the kernel changes its variable.
            for k, value in zip(changed, results, strict=True):
                args[k]._data[...] = value
            return None
        if not count:
            _fail(
                "E106",
                f"{name}() was called outside a kernel with variables to set",
                f"leave them out and use the results: ... = {name}(a)",
            )
        found_results = zip(results[:count], fn.results, strict=False)
        if run is not None:
            more = given[len(args) :]  # defaults
            whole = (lambda *v: run(*v, *more)) if more else run
            self._remember(args, types, found.casts[: len(args)], whole, fn.results[:count])
        out = tuple(_from_numpy(v, t) for v, t in found_results)
        return out[0] if len(out) == 1 else out

    def _remember(
        self, args: Sequence[Any], types: Sequence[Type], casts: Sequence[ScalarType | None],
        run: Evaluation, results: Sequence[Type],
    ) -> None:  # fmt: skip
        classes = tuple(map(type, args))
        if len(self._known) < MOST and classes not in self._known:
            found = host_call(args, types, casts, run, results)
            if found is not None:
                self._known[classes] = found


# By identity: each stands for itself as long as its function is kept.
_evaluations: dict[int, tuple[Function, Evaluation | None]] = {}


def _evaluation(fn: Function) -> Evaluation | None:
    """A composite as Python code, written once."""
    known = _evaluations.get(id(fn))
    if known is None:
        known = _evaluations[id(fn)] = (fn, as_python(fn))
    return known[1]


def _describe(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 and "\n" not in text else f"a {type(value).__name__}"


BUILTINS: dict[str, Builtin] = {
    name: Builtin(name)
    for name in sorted(
        {*names(), *KERNEL_ONLY, *QUERIES, *SPECIAL, *GENERIC_CONSTRUCTORS, *IDENTITIES}
    )
}
