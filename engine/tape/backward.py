"""The backward pass: seeds, then every record from the last to the first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.classes import dataclass
from engine.compile.pipeline import prefetch
from engine.diagnostics import Diagnostic, TapeError
from engine.diagnostics.site import Site, call_span
from engine.lang.numbers import number_kind
from engine.lang.types import ScalarType
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.foreign import plain, shared
from engine.runtime.guards import Guard
from engine.runtime.leaves import without_integers
from engine.runtime.transfer import VAST, check_writable
from engine.tape.records import Record
from engine.tape.restoration import Restoration


@dataclass(frozen=True, slots=True)
class Pass:
    """A backward pass that is about to run, on the user's own arrays.

    seeds: arrays with their cotangents, NumPy arrays or a number for all elements. restored: what
    it restores, by position among the records. mixed: what the tape warns of, if it does.
    """

    records: Sequence[Record]
    seeds: Sequence[tuple[array, np.ndarray[Any, Any] | float]]
    restored: Mapping[int, Sequence[Restoration]]
    mixed: str | None
    site: Site | None


def seed_error(message: str, *notes: str, help: str = "") -> TapeError:
    """An E402 at the user's call."""
    return TapeError(Diagnostic("E402", message, call_span(), help, notes))


def check_loss(loss: object) -> array:
    """A loss that can be differentiated. Raises TapeError (E402)."""
    if loss.__class__ is not array:
        loss = shared(loss)
    if not isinstance(loss, array):
        raise seed_error("the loss must be an array of one element", f"got {type(loss).__name__}")
    if loss.size != 1 or not isinstance(loss._ir.element, ScalarType):
        raise seed_error(
            "only a loss of one number can be differentiated",
            f"got shape {loss.shape} of {loss.dtype.__name__}",
            help="pass a cotangent for every element instead: backward(grads={array: cotangent})",
        )
    if not loss.requires_grad:
        raise seed_error("the loss does not require a gradient", help=grad_help(loss))
    return loss


def check_seeds(
    loss: array | None, grads: Mapping[array, Any] | None, seen: bool = True
) -> list[tuple[array, Any]]:
    """Arrays with their cotangents, mostly as NumPy copies, last a loss with 1.0.

    seen: whether anybody else looks at them; else one alone, those of a GPU and large ones may stay
    in arrays. Raises TapeError (E402).
    """
    if grads is None:
        return [] if loss is None else [(loss, 1.0)]
    if grads.__class__ is not dict and not isinstance(grads, Mapping):
        raise seed_error("grads must be a dictionary of arrays and cotangents",
                         f"got {type(grads).__name__}")  # fmt: skip
    out: list[tuple[array, Any]] = []
    lying = False
    for key, g in grads.items():
        a = key if key.__class__ is array else shared(key)
        if not isinstance(a, array):
            raise seed_error("a key of grads is not an array", f"got {type(a).__name__}")
        if g is None:
            continue
        if g.__class__ is array and g._ir is a._ir and g.shape == a.shape and _plain(a):
            if events.everywhere:
                events.reading((g,))
            backend = g.device.backend
            few = backend.on_host and g.hi - g.lo < VAST
            if few and len(grads) == 1 and not seen and g.device is a.device:
                out.append((a, g))  # nothing else is written before; NumPy sees where both meet
                continue
            if seen or few or g.device is not a.device:
                out.append((a, backend.to_host(g._parts).copy()))
            else:
                out.append((a, g))
                lying = True
            continue
        if not a._info.floating:
            message = "a cotangent was given for an array that cannot have a gradient"
            raise seed_error(message, f"shape {a.shape} of {a.dtype.__name__}", help=grad_help(a))
        out.append((a, fitted(a, g, "cotangent")))
    for a, _ in out:
        if not a.requires_grad:
            a.requires_grad = True
    if lying:
        out = _lasting(out)
    return out if loss is None else [*out, (loss, 1.0)]


def _lasting(seeds: list[tuple[array, Any]]) -> list[tuple[array, Any]]:
    """Cotangents that lie in arrays, copied where a gradient that is set would change them."""
    written = [g for a, _ in seeds if (g := a.existing_grad) is not None]
    return [(a, c) if c.__class__ is not array
            else (a, c._parts.copy() if meets(c.lo, c.hi, written) else c._parts)
            for a, c in seeds]  # fmt: skip


def meets(lo: int, hi: int, arrays: Iterable[array]) -> bool:
    """Whether addresses from lo to hi are among those of arrays."""
    return any(lo < a.hi and a.lo < hi for a in arrays)


def _plain(a: array) -> bool:
    """Whether elements are floats, or vectors or matrices of them."""
    info = a._info
    return info.floating and info.numpy.names is None


def lying_seeds(records: Sequence[Record]) -> list[tuple[array, np.ndarray[Any, Any]]]:
    """What a pass without a loss and cotangents begins with: gradients that lie there already.

    Of arrays that the records write; of those of functions, where it is one. Nothing where that
    is not certain.
    """
    launched = {id(a): a for r in records for a in r.written}
    given = {id(a): a for r in records for a in r.declared}
    lying = [a for a in launched.values() if _has_cotangent(a)]
    loose = [a for k, a in given.items() if k not in launched and _has_cotangent(a)]
    if len(loose) > 1 or any(_has_cotangent(a) for a in _only_read(records, launched)):
        return []
    return [(a, g._host().copy()) for a in (*lying, *loose) if (g := a.existing_grad) is not None]


def _has_cotangent(a: array) -> bool:
    g = a.existing_grad if a._info.floating and a._info.numpy.names is None else None
    return g is not None and bool(np.any(g._host()))


def _only_read(records: Sequence[Record], written: Mapping[int, array]) -> list[array]:
    read = {id(a): a for r in records if r.function is None for a in r.arrays}
    return [a for k, a in read.items() if k not in written]


def grad_help(a: array) -> str:
    if not a._info.floating:
        return "only arrays with float elements can have a gradient"
    return "make it with requires_grad=True, before the launches are recorded"


def fitted(a: array, g: Any, what: str, code: str = "E402") -> np.ndarray[Any, Any]:
    """A cotangent or tangent (`what`) of an array as a NumPy copy. Raises TapeError (`code`)."""
    if isinstance(g, array):
        events.reading((g,))
        fits = g.shape == a.shape and g._ir.element == a._ir.element
        found = g._host()
    else:
        try:
            found = np.asarray(plain(g))
        except ValueError:
            found = np.asarray(None)
        numbers = number_kind(found.dtype) in "iuf" and a._info.numpy.names is None
        fits = (numbers or found.dtype == a._info.numpy) and found.shape == a._parts.shape
    if not fits:
        of = (g.shape, g.dtype.__name__) if isinstance(g, array) else (found.shape, found.dtype)
        got = f"shape {of[0]} of {of[1]}"
        note = f"expected shape {a.shape} of {a.dtype.__name__}, got {got}"
        message = f"a {what} does not fit its array"
        raise TapeError(Diagnostic(code, message, call_span(), notes=(note,)))
    if a._info.numpy.names is not None:
        return without_integers(a, found)
    if found.dtype == a._parts.dtype:
        same: np.ndarray[Any, Any] = found.copy()
        return same
    with np.errstate(all="ignore"):
        return found.astype(a._parts.dtype)


def _check_gradients(records: Sequence[Record]) -> None:
    """Raises LaunchError (E206) for a gradient in memory that others take to be immutable."""
    if not Guard.made:
        return
    for a in (a for r in records for a in r.arrays):
        grad = a.existing_grad if a.requires_grad else None
        if grad is not None and grad.storage.guard is not None:
            check_writable(grad)


def reverse(run: Pass, tape: object = None, followers: Sequence[events.Observer] = ()) -> None:
    """Runs every record of a pass backward, on restored contents where its number has some.

    followers: of the tape, are told of each record before it runs and after it.

    An array made with retain_grad keeps the gradient of its last value: it is set
    aside before the record that wrote that value consumes it, and put back at the end.
    """
    records = [*run.records]  # other threads may forget them
    _check_gradients(records)
    waiting = _retained(records) if array.retains else []
    requests = [x for r in records if not r.is_ready() for x in r.requests()]
    if requests:
        prefetch(requests)
    kept: list[tuple[array, np.ndarray[Any, Any]]] = []
    try:
        for number in range(len(records) - 1, -1, -1):
            record = records[number]
            if waiting:
                waiting = _set_aside(record, waiting, kept)
            for o in followers:
                o.record_reversing(tape, number, record)
            record.reverse(run.restored.get(number, ()))
            for o in followers:
                o.record_reversed(tape)
    finally:
        for grad, value in kept:
            grad.storage.before_write(grad.lo, grad.hi)
            grad._parts[...] = value


def _retained(records: Iterable[Record]) -> list[array]:
    found = {id(a): a for r in records for a in r.arrays if a.retain_grad and a.requires_grad}
    return list(found.values())


def _set_aside(
    record: Record, waiting: list[array], kept: list[tuple[array, np.ndarray[Any, Any]]]
) -> list[array]:
    written = record.written
    left = []
    for a in waiting:
        if meets(a.lo, a.hi, written):
            grad = a.grad
            if grad is not None:
                kept.append((grad, grad._parts.copy()))
        else:
            left.append(a)
    return left
