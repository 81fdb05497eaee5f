"""The table of pure operations: meaning, spelling and derivative of each.

This module holds the shape of the table; `engine.builtins` fills it. Everything
else (verify, interpreter, code generators, AD passes, host-side calls, docs)
reads it. An entry with a part left out is an error when it is registered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from engine.classes import dataclass
from engine.lang.types import Type

if TYPE_CHECKING:
    from engine.ir.builder import E

# infer(argument types) -> result type, or None where the types do not fit.
Infer = Callable[[Sequence[Type]], Type | None]
# fits(argument types, result type): whether an explicit operation gives that type.
Fits = Callable[[Sequence[Type], Type], bool]
# spell(argument types, result type) -> a C expression with {0}, {1}, ... for operands.
Spell = Callable[[Sequence[Type], Type], str]


@dataclass(frozen=True, slots=True)
class Elementwise:
    """A scalar function given by its partial derivatives: rule(args, out) -> d out / d arg."""

    partials: Callable[[Sequence[E], E], Sequence[E | None]]


@dataclass(frozen=True, slots=True)
class Vjp:
    """A rule that builds the adjoints of the arguments: rule(cotangent, args, out).

    None for an argument that has no derivative. `kind` tells forward mode what it
    may assume: `linear` (the tangent is the operation on tangents), `multilinear`
    (the sum over arguments, each replaced by its tangent in turn), or `general`,
    which needs `jvp(tangents, args, out)`; a tangent of None is zero.
    """

    rule: Callable[[E, Sequence[E], E], Sequence[E | None]]
    kind: str = "general"
    jvp: Callable[[Sequence[E | None], Sequence[E], E], E | None] | None = None


@dataclass(frozen=True, slots=True)
class NoDerivative:
    """The result carries no derivative, and why (integers, booleans, steps)."""

    reason: str


Derivative = Elementwise | Vjp | NoDerivative


@dataclass(frozen=True, slots=True)
class Domain:
    """Where to test: one open interval for each argument, and points to stay away from.

    `kinks` are argument values at which one-sided derivatives differ, `singular`
    those at which the derivative is not finite.
    """

    intervals: tuple[tuple[float, float], ...] = ()
    kinks: tuple[float, ...] = ()
    singular: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Op:
    """One operation.

    name: unique name in the IR. user: the name in kernels (`sin`), shared by
    overloads; empty for operations that only syntax or passes make. infer: result
    type; None from it means that the overload does not apply; `explicit` operations
    (casts, constructors) take the result type from their destination instead, which
    `fits` checks.
    c: the spelling shared by C++ and CUDA; cuda: where it differs. numpy: meaning
    on NumPy values, as numpy(*args), or numpy(result_type, *args) if `explicit`.
    """

    name: str
    doc: str
    infer: Infer
    c: str | Spell
    numpy: Callable[..., Any]
    derivative: Derivative
    user: str = ""
    cuda: str | Spell | None = None
    explicit: bool = False
    fits: Fits | None = None
    domain: Domain = Domain()

    def spelling(self, args: Sequence[Type], result: Type, cuda: bool = False) -> str:
        text = self.cuda if cuda and self.cuda is not None else self.c
        return text if isinstance(text, str) else text(args, result)


OPS: dict[str, Op] = {}
OVERLOADS: dict[str, list[Op]] = {}


def register(op: Op) -> Op:
    """Adds an operation to the table. Raises ValueError for a duplicate or a missing part."""
    if op.name in OPS:
        raise ValueError(f"operation {op.name!r} is registered twice")
    if not op.doc:
        raise ValueError(f"operation {op.name!r} has no doc")
    if isinstance(op.derivative, Vjp) and op.derivative.kind == "general" and not op.derivative.jvp:
        raise ValueError(f"operation {op.name!r} has no forward-mode rule")
    if isinstance(op.derivative, NoDerivative) and not op.derivative.reason:
        raise ValueError(f"operation {op.name!r} does not say why it has no derivative")
    OPS[op.name] = op
    if op.user:
        OVERLOADS.setdefault(op.user, []).append(op)
    return op
