"""Every builtin with a derivative as a call in source text, for random programs."""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.builtins.composite import COMPOSITES
from engine.builtins.stubs import BUILTINS
from engine.frontend import lower_composite
from engine.ir.ops import OPS, Domain, NoDerivative
from engine.lang.types import Type
from tests.property import operations as o

NAMES: dict[Type, str] = {o.F: "F", o.V2: "V2", o.V3: "V3", o.M22: "M22", o.M33: "M33",
                          o.QUAT: "Q", o.TRANSFORM: "X"}  # fmt: skip
# Meant by operators, or written in a way of their own.
_LEFT_OUT = {"select", "copy", "pos", "cast", "vector", "matrix", "quaternion", "transformation"}
# Matrices of these are kept away from singular ones, and from those with equal singular values
# or eigenvalues, where there is no derivative.
_MOVED = {"determinant": "5.0, 5.0, 5.0", "inverse": "5.0, 5.0, 5.0"}
_MOVED |= dict.fromkeys(["svd2", "svd3", "eig3", "qr3"], "2.0, 4.5, 8.0")


@dataclass(frozen=True)
class Call:
    """A builtin for argument types."""

    name: str
    types: tuple[str, ...]
    domain: Domain
    results: tuple[str, ...]


@functools.cache
def calls() -> dict[str, list[Call]]:
    """Those of one result, by its type."""
    out: dict[str, list[Call]] = {t: [] for t in NAMES.values()}
    for call in (*_operations(), *_composites()):
        if len(call.results) == 1:
            out[call.results[0]].append(call)
    return out


@functools.cache
def several() -> list[Call]:
    """Those of more results."""
    return [c for c in _composites() if len(c.results) > 1]


def _operations() -> Iterator[Call]:
    for name, op in sorted(OPS.items()):
        plain = not op.explicit and not isinstance(op.derivative, NoDerivative)
        if not plain or name in COMPOSITES or name in _LEFT_OUT or name not in BUILTINS:
            continue
        for types in o._tried(len(op.domain.intervals)):
            result = op.infer(types)
            if result in NAMES:
                yield Call(name, _named(types), op.domain, _named((result,)))


def _composites() -> Iterator[Call]:
    for name, group in sorted(COMPOSITES.items()):
        for c in group if name in BUILTINS and name.isidentifier() else ():
            arity = len(inspect.signature(c.func).parameters)
            for types in o._tried(arity):
                if c.updates or not c.accepts(types):
                    continue
                results = lower_composite(c, types).results
                if results and all(t in NAMES for t in results):
                    yield Call(name, _named(types), c.domain, _named(results))


def _named(types: Iterable[Type]) -> tuple[str, ...]:
    return tuple(NAMES[t] for t in types)


def spelled(c: Call, args: list[str], r: random.Random) -> str:
    """The call on values between -1 and 1, moved into the domain."""
    moved = []
    for k, (a, t) in enumerate(zip(args, c.types, strict=True)):
        intervals = c.domain.intervals or ((-2.0, 2.0),)
        low, high = intervals[min(k, len(intervals) - 1)]
        middle, half = (low + high) / 2, 0.45 * (high - low)
        text = a if half == 0.9 and r.random() < 0.5 else f"{a} * F({half:.4g})"
        if middle:
            text += f" + {_filled(t, middle)}"
        if c.name in _MOVED:
            parts = _MOVED[c.name].split(", ")[: int(t[-1])]
            text += f" + wp.diag(V{t[-1]}({', '.join(f'F({x})' for x in parts)}))"
        moved.append(text)
    return f"wp.{c.name}({', '.join(moved)})"


def _filled(t: str, x: float) -> str:
    """A constant of a type with all components x."""
    counts = {"F": 1, "V2": 2, "V3": 3, "M22": 4, "M33": 9, "Q": 4, "X": 7}
    number = f"F({x:.4g})"
    return number if t == "F" else f"{t}({', '.join([number] * counts[t])})"
