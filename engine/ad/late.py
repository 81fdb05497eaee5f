"""Custom gradients that read an array after the kernel has overwritten it.

Such a function is not differentiated, so what it read is not saved: its gradient, which runs in the
backward pass, reads arrays as the launch left them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.ad.activity import active
from engine.classes import dataclass
from engine.diagnostics import Span
from engine.ir import nodes as n
from engine.ir.touched import read_params, written_params
from engine.lang.types import ArrayType, is_float


@dataclass(frozen=True, slots=True)
class Late:
    """A call whose own gradient reads an array that its kernel may overwrite after the call.

    function: its name. array: the kernel's parameter. call, store: their places.
    """

    function: str
    array: str
    call: Span
    store: Span


# Where a statement stands: loops, and sides of branches, from the outermost.
_Path = tuple[tuple[int, int], ...]
_LOOP = -1


def late(
    fn: n.Function, wrt: frozenset[str], shared: frozenset[str] = frozenset()
) -> tuple[Late, ...]:
    """The calls of a prepared kernel, for gradients of `wrt`; each with one array.

    shared: parameters that share memory with one that the kernel writes. What a call itself writes
    in a loop is taken to be another element in each round where it is given an index.
    """
    placed = list(_placed(fn.body, ()))
    if not any(isinstance(s, n.Call) and s.func.grad is not None for s, _ in placed):
        return ()
    moving = active(fn, wrt)
    writes = [(k, s, path, found) for k, (s, path) in enumerate(placed) if (found := _written(s))]
    out: list[Late] = []
    for k, (s, path) in enumerate(placed):
        if not isinstance(s, n.Call) or (grad := s.func.grad) is None:
            continue
        if not (grad.gradients or any(d in moving for d in s.dsts)):
            continue
        read = _arrays(s, _read(grad))
        for j, store, where, names in writes:
            hit = read & (names | shared)
            if hit and _follows(k, path, j, where) and not (j == k and _has_index(s)):
                out.append(Late(s.func.name, min(hit), s.span, store.span))
                break
    return tuple(out)


def _placed(block: n.Block, path: _Path) -> Iterator[tuple[n.Stmt, _Path]]:
    for s in block:
        yield s, path
        loop = isinstance(s, (n.For, n.While))
        for side, inner in enumerate(n.blocks_of(s)):
            yield from _placed(inner, (*path, (id(s), _LOOP if loop else side)))


def _written(s: n.Stmt) -> frozenset[str]:
    if isinstance(s, n.Call):
        return _arrays(s, written_params(s.func))
    return frozenset({s.array.name}) if isinstance(s, (n.Store, n.Atomic)) else frozenset()


def _read(grad: n.Function) -> frozenset[str]:
    """Array parameters that a gradient reads; in native text, that it names."""
    words = None if grad.native is None else set(re.findall(r"\w+", grad.native.text))
    return frozenset(k for k in read_params(grad) if words is None or k in words)


def _arrays(s: n.Call, names: frozenset[str]) -> frozenset[str]:
    """The caller's arrays for parameters of a function."""
    given = zip(s.func.params, s.args, strict=True)
    return frozenset(a.name for p, a in given if p.name in names and isinstance(a, n.Var))


def _follows(k: int, call: _Path, j: int, store: _Path) -> bool:
    """Whether a store may run after a call: it stands behind it, or both are in one loop."""
    for a, b in zip(call, store, strict=False):
        if a[0] != b[0]:
            break
        if a[1] == _LOOP:
            return True
        if a[1] != b[1]:
            return False  # the other side of a branch
    return j > k


def _has_index(s: n.Call) -> bool:
    """Whether what a call writes may be another element in each round of a loop."""
    indices = (a for a in s.args if isinstance(a, n.Var) and not isinstance(a.type, ArrayType))
    return any(not is_float(a.type) for a in indices)
