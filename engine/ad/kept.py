"""Functions that stay calls in the adjoint of a large kernel; each has its own adjoint.

Reverse mode expands calls, so that a function that a kernel calls thirty times is there thirty
times, forward and in reverse, and compilers take as long. Functions of numbers, without arrays,
loops and jumps into memory, need no expansion: the forward sweep calls them, and the reverse sweep
calls their adjoint, which runs the function's own forward sweep once more and then its reverse.

A kept function ends with its only return; `Function.kept` says for each result on which parameters
(by number) it depends by a derivative, and is empty for the adjoint of such a function. So what is
active is followed through calls as exactly as if they were expanded, and an adjoint is made for
each set of parameters that vary and results that matter: a gradient has the terms that it has in
the expanded form, added in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from engine.ad.activity import active
from engine.ad.cleanup import propagate, remove_dead
from engine.ad.prepare import inline
from engine.ad.structure import structure
from engine.ir import nodes as n
from engine.ir.builder import Names, const
from engine.ir.rewrite import Rewriter, names_in
from engine.lang.types import ArrayType

# Statements of a kernel with its calls expanded from which on functions are kept; what keeping
# one has to save.
LARGE = 1000
SAVED = 40

# Statements that a kept function may have.
_PLAIN = (n.Let, n.Set, n.If, n.Return, n.Call)
# Operations that belong to the kernel around.
_PLACED = ("tid", "thread", "within", "replayed")

# From the adjoints of a body without loops: its code, and the adjoints of its variables.
Backward = Callable[
    [n.Function, Names, frozenset[n.Var], Sequence[tuple[n.Var, n.Atom]]],
    tuple[n.Block, Mapping[n.Var, n.Var]],
]


def keep(fn: n.Function) -> n.Function:
    """The kernel with those functions marked that are to be kept; itself where there are none."""
    functions = [*n.callees(fn), fn]
    size: dict[int, int] = {}
    fits: dict[int, bool] = {}
    for f in functions:
        size[id(f)] = sum(size[id(s.func)] if isinstance(s, n.Call) else 1 for s in n.walk(f.body))
        fits[id(f)] = _fits(f) and all(
            fits[id(s.func)] for s in n.walk(f.body) if isinstance(s, n.Call)
        )
    if size[id(fn)] <= LARGE:
        return fn
    times = Counter({id(fn): 1})
    chosen: set[int] = set()
    for f in reversed(functions):  # callers first
        many = times[id(f)]
        if fits[id(f)] and (many - 1) * size[id(f)] >= SAVED:
            chosen.add(id(f))
            many = 1  # what it calls is there once
        for s in n.walk(f.body):
            if isinstance(s, n.Call):
                times[id(s.func)] += many
    return _Keeper(chosen).function(fn) if chosen else fn


def _fits(f: n.Function) -> bool:
    """Whether a function can be kept, as far as its own statements go."""
    return (
        f.native is None and f.grad is None and f.replay is None and not f.is_kernel
        and len(f.results) > 0
        and not any(isinstance(p.type, ArrayType) for p in f.params)
        and all(
            isinstance(s, _PLAIN) and not (isinstance(s, n.Let) and s.op in _PLACED)
            for s in n.walk(f.body)
        )
    )  # fmt: skip


class _Keeper(Rewriter):
    custom = False

    def __init__(self, chosen: set[int]) -> None:
        super().__init__()
        self.chosen = chosen

    def change(self, fn: n.Function) -> n.Function:
        if id(fn) not in self.chosen:
            return super().change(fn)
        names = Names(names_in(fn))
        body, results = structure(replace(fn, body=self.body(fn)), names)
        body = (*inline(body, names), n.Return(results, fn.span))
        out = remove_dead(propagate(replace(fn, body=body)))
        return replace(out, kept=_depends(out), mirrored=True)


def _depends(fn: n.Function) -> tuple[frozenset[int], ...]:
    """For each result of a function that ends with its return, the parameters with a derivative."""
    moving = [active(fn, frozenset(), (p,), _values(fn)) for p in fn.params]
    last = fn.body[-1]
    assert isinstance(last, n.Return)
    return tuple(frozenset(k for k, found in enumerate(moving) if v in found) for v in last.values)


def _values(fn: n.Function, chosen: Sequence[bool] | None = None) -> list[n.Var]:
    """Variables that a function returns."""
    last = fn.body[-1]
    assert isinstance(last, n.Return)
    some = (
        last.values
        if chosen is None
        else [v for v, c in zip(last.values, chosen, strict=True) if c]
    )
    return [v for v in some if isinstance(v, n.Var)]


class KeptAdjoints:
    """Adjoints of kept functions, each made once."""

    def __init__(self, backward: Backward) -> None:
        self.backward = backward
        self.made: dict[tuple[int, tuple[bool, ...], tuple[bool, ...]], n.Function] = {}

    def function(
        self, fn: n.Function, varied: tuple[bool, ...], useful: tuple[bool, ...]
    ) -> n.Function:
        """What makes adjoints of the varied parameters of the cotangents of the useful results.

        It takes the parameters of `fn` and those cotangents.
        """
        key = (id(fn), varied, useful)
        if key not in self.made:
            self.made[key] = self.written(fn, varied, useful)
        return self.made[key]

    def written(
        self, fn: n.Function, varied: tuple[bool, ...], useful: tuple[bool, ...]
    ) -> n.Function:
        names = Names(names_in(fn))
        inputs = [p for p, v in zip(fn.params, varied, strict=True) if v]
        last = fn.body[-1]
        assert isinstance(last, n.Return)
        cts = [
            (v, n.Var(names.fresh("ct"), v.type))
            for v, u in zip(last.values, useful, strict=True) if u
        ]  # fmt: skip
        straight = replace(fn, body=fn.body[:-1], results=())
        moving = active(straight, frozenset(), inputs, _values(fn, useful))
        seeds = [(v, ct) for v, ct in cts if isinstance(v, n.Var)]
        code, adjoints = self.backward(straight, names, moving, seeds)
        found = tuple(adjoints.get(p, const(0, p.type)) for p in inputs)  # type: ignore[arg-type]
        out = n.Function(
            name=f"{fn.name}_adjoint",
            params=(*fn.params, *(ct for _, ct in cts)),
            results=tuple(p.type for p in inputs),  # type: ignore[misc]
            body=(*code, n.Return(found, fn.span)),
            span=fn.span,
            mirrored=True,
            kept=(),
        )
        return remove_dead(propagate(out))
