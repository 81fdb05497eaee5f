"""Finds the operation, and its operands, where a NaN or Inf first appears in an adjoint.

The compiled adjoint is run on halves of the launch's threads until one thread is
left; the interpreter then runs that thread and watches every operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import ad
from engine.autograd.launch.evaluation import Evaluation
from engine.autograd.launch.source_text import selected, text_of
from engine.autograd.results import NonFinite
from engine.diagnostics import UNKNOWN, Span
from engine.ir import interp
from engine.ir import nodes as n
from engine.ir.ops import OPS, NoDerivative
from engine.lang.types import ArrayType, is_float

Array = NDArray[Any]

# Operations of which an infinite result means that it is too large, and with what they divide by.
_PRODUCTS = frozenset({
    "add", "sub", "mul", "scale", "cw_mul", "dot", "ddot", "length", "length_sq", "matmul",
    "matvec", "vecmat", "outer", "cross", "determinant", "lerp", "lerp_vec", "exp", "sinh", "cosh",
    "cast",
})  # fmt: skip
_QUOTIENTS = frozenset({"div", "unscale", "cw_div"})
_DIVISOR = 1e-3  # a smaller one may be one that should not be zero


def locate(own: Evaluation, output: str, w: Array, source: str) -> NonFinite | None:
    """Where the gradient of `source` is not finite, and why.

    The value is that for a cotangent of ones, whose sign means something to a reader;
    for cotangent w of `output` where ones do not show it.
    """
    for seed in (np.ones_like(w), w):
        gradient = own.vjp({output: seed})[source]
        bad = np.argwhere(~np.isfinite(gradient))
        if len(bad):
            break
    else:
        return None
    element = tuple(int(i) for i in bad[0])
    value = float(gradient[element])
    thread = _thread(own, output, seed, source)
    found = None if thread is None else _origin(own, output, seed, thread)
    if found is None:
        return NonFinite(source, element, value)
    let, operands, overflow = found
    return NonFinite(
        source, element, value, let.span, let.op, operands, text_of(let.span), selected(let.span),
        overflow,
    )  # fmt: skip


def _thread(own: Evaluation, output: str, w: Array, source: str) -> int | None:
    """A thread whose own contribution is not finite."""
    begin, end = 0, own.threads

    def bad(lo: int, hi: int) -> bool:
        return not np.all(np.isfinite(own.vjp({output: w}, (lo, hi))[source]))

    while end - begin > 1:
        middle = (begin + end) // 2
        if bad(begin, middle):
            end = middle
        elif bad(middle, end):
            begin = middle
        else:
            return None  # only the sum over threads overflows
    return begin


class _Watch:
    """Remembers the first operation that makes a non-finite value from finite ones."""

    def __init__(self) -> None:
        self.values: dict[Span, dict[n.Var, Any]] = {}  # of operands, by the place
        self.primal: dict[Any, tuple[n.Let, tuple[Any, ...]]] = {}
        self.first: tuple[n.Let, tuple[Any, ...]] | None = None
        self.overflow = False

    def __call__(self, s: Any, operands: Any, result: Any, thread: Any) -> None:
        if self.first is not None or not isinstance(s, n.Let):
            return
        if s.span != UNKNOWN:
            known = self.values.setdefault(s.span, {})
            known |= {a: v for a, v in zip(s.args, operands, strict=True) if isinstance(a, n.Var)}
        if not _finite(result) and all(_finite(o) for o in operands):
            self.first = (s, tuple(operands))
            self.overflow = _overflows(s.op, operands, result)
        rule = OPS[s.op].derivative
        if self.first is None and not isinstance(rule, NoDerivative) and s.op != "copy":
            self.primal.setdefault((s.span, s.op), (s, tuple(operands)))


def _finite(v: Any) -> bool:
    try:
        return bool(np.all(np.isfinite(v)))
    except TypeError:
        return True


def _overflows(op: str, operands: Any, result: Any) -> bool:
    """Whether a result that is not finite is too large, and no operand a singular point."""
    if np.isnan(result).any():
        return False
    divides = op in _QUOTIENTS and bool(np.all(np.abs(operands[1]) >= _DIVISOR))
    return op in _PRODUCTS or divides


def _origin(
    own: Evaluation, output: str, w: Array, thread: int
) -> tuple[n.Let, tuple[tuple[str, str], ...], bool] | None:
    variants = own.variants
    adjoint = variants.expanded_adjoint(own.wrt, own.journaled)
    watch = _Watch()
    arrays = {k: v.copy() for k, v in own.initial.items()}
    journal = interp.Journal()
    args = [_argument(own, p, arrays, i) for i, p in enumerate(own.params)]
    recorded = ad.record(variants.prepared, adjoint.sites) if adjoint.sites else variants.ir
    with np.errstate(all="ignore"):
        try:
            interp.run(recorded, args, own.dim, threads=[thread], journal=journal)
            grads = {k: np.zeros_like(v) for k, v in own.grads.items()}
            grads[output][...] = w
            extra = [grads[own.owner[p.name]] for p in own.params if p.name in own.wrt]
            interp.run(
                adjoint.fn, args + extra, own.dim, threads=[thread], journal=journal, trace=watch
            )
        except interp.InterpError:
            return None
    if watch.first is None:
        return None
    let, operands = watch.first
    primal = _primal_at(watch, own, let)
    if primal is not None:
        let, operands = primal
    defined = {d: s.span for s in n.walk(variants.prepared.body) for d in n.defs_of(s)}
    return let, _operands(watch, let, operands, defined), watch.overflow


def _operands(
    watch: _Watch, let: n.Let, operands: tuple[Any, ...], defined: dict[n.Var, Span]
) -> tuple[tuple[str, str], ...]:
    """Names and values of what the user's expression at an operation is of.

    An expression may be many operations (`acos(x)`): what they have from one another is not named.
    """
    named = {
        a: v for a, v in watch.values.get(let.span, {}).items()
        if is_float(a.type) and defined.get(a, let.span) != let.span and text_of(defined[a])
    }  # fmt: skip
    if named:
        return tuple((text_of(defined[a]), _show(v)) for a, v in named.items())
    return tuple(
        (_label(a, defined, i), _show(v))
        for i, (v, a) in enumerate(zip(operands, let.args, strict=True))
        if is_float(a.type) and not isinstance(a, n.Const)
    )


def _primal_at(watch: _Watch, own: Evaluation, let: n.Let) -> tuple[n.Let, tuple[Any, ...]] | None:
    """The primal operation on the same piece of source, which means more to a reader."""
    if let.span == UNKNOWN:
        return None
    wanted = {
        s.op for s in n.walk(own.variants.prepared.body)
        if isinstance(s, n.Let) and s.span == let.span
        and not isinstance(OPS[s.op].derivative, NoDerivative) and s.op != "copy"
    }  # fmt: skip
    for op in sorted(wanted):
        if (let.span, op) in watch.primal:
            return watch.primal[let.span, op]
    return None


def _argument(own: Evaluation, p: n.Var, arrays: dict[str, Array], index: int) -> Any:
    if isinstance(p.type, ArrayType):
        return arrays[own.owner[p.name]]
    return own.launch.arguments[index].value


def _label(a: n.Atom, defined: dict[n.Var, Span], position: int) -> str:
    """What the source calls an operand: its text where it fits on one line."""
    span = defined.get(a, UNKNOWN) if isinstance(a, n.Var) else UNKNOWN
    return text_of(span) or f"operand {position + 1}"


def _show(v: Any) -> str:
    # NumPy writes 0 as `0.`, which reads as the end of a sentence.
    return np.array2string(
        np.asarray(v), separator=", ", threshold=16, formatter={"float_kind": "{:.6g}".format}
    )
