"""Prepares a kernel for differentiation: no calls, no jumps, every read numbered.

Functions with a derivative of the user's own stay calls. The forward code that
writes the journal and the adjoint that reads it both start from this one form,
so that their site numbers agree.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace

from engine.ad.cleanup import propagate, remove_dead
from engine.ad.structure import structure
from engine.diagnostics import UNKNOWN, Span
from engine.ir import nodes as n
from engine.ir.builder import Names, const
from engine.ir.rewrite import fresh_copy, map_stmt, names_in, rewrite, with_span
from engine.ir.touched import read_params, written_params


def has_native_replay(fn: n.Function) -> bool:
    """Whether the backward pass runs C++ in place of a function, which may write memory."""
    return fn.replay is not None and fn.replay.native is not None


def _in_calls(
    fn: n.Function, pick: Callable[[n.Function], frozenset[str]],
    known: dict[int, frozenset[str]] | None = None,
) -> frozenset[str]:  # fmt: skip
    """Array parameters that `pick` names in some function that is called, at any depth.

    known: of functions, by identity.
    """
    known = {} if known is None else known
    if id(fn) not in known:
        out: set[str] = set()
        for s in n.walk(fn.body):
            if isinstance(s, n.Call):
                found = pick(s.func) | _in_calls(s.func, pick, known)
                given = zip(s.func.params, s.args, strict=True)
                out.update(a.name for p, a in given if isinstance(a, n.Var) and p.name in found)
        known[id(fn)] = frozenset(out)
    return known[id(fn)]


def replay_read_params(fn: n.Function) -> frozenset[str]:
    """Array parameters that replays (but maybe not the function itself) read."""
    return _in_calls(fn, lambda f: read_params(f.replay) if f.replay else frozenset())


def replay_written_params(fn: n.Function) -> frozenset[str]:
    """Array parameters that native replays write, in the backward pass."""
    return _in_calls(
        fn, lambda f: written_params(f.replay) if f.replay and f.replay.native else frozenset()
    )


def replayed_params(fn: n.Function) -> frozenset[str]:
    """Array parameters that only native functions write, which write them again in the replay.

    The backward pass reads what the replay left there.
    """

    def once(f: n.Function) -> frozenset[str]:
        if f.native is not None:
            again = written_params(f.replay) if has_native_replay(f) and f.replay else frozenset()
            return written_params(f) - again
        return _stored(f)

    return replay_written_params(fn) - _in_calls(fn, once) - _stored(fn)


def _stored(fn: n.Function) -> frozenset[str]:
    """Array parameters that the function's own statements write."""
    stores = (s for s in n.walk(fn.body) if isinstance(s, (n.Store, n.Atomic)))
    return frozenset(s.array.name for s in stores)


def inline(block: n.Block, names: Names) -> n.Block:
    """The block with calls expanded, but for functions with a derivative of the user's own."""

    def step(s: n.Stmt) -> n.Stmt | Iterable[n.Stmt]:
        if isinstance(s, n.Call) and _is_inlined(s.func):
            return _expand(s, names)
        return map_stmt(s, None, lambda b: b)

    return rewrite(block, step)


def _expand(call: n.Call, names: Names) -> list[n.Stmt]:
    f = call.func
    local = Names(names_in(f))
    body, results = structure(f, local)
    given: dict[n.Var, n.Atom] = {}
    out: list[n.Stmt] = []
    for p, a in zip(f.params, call.args, strict=True):
        if isinstance(a, n.Var) and a.mutable:
            # The argument is passed by value: later changes of the variable must not be seen.
            held = n.Var(names.fresh(p.name), p.type)
            out.append(n.Let(held, "copy", (a,), call.span))
            given[p] = held
        else:
            given[p] = a
    for r in results:
        given[r] = n.Var(names.fresh(r.name), r.type, mutable=True)
    if f.span == UNKNOWN:  # a builtin's own code: its place is that of the call
        body = _at(body, call.span)
    copied, table = fresh_copy(body, names, given, mutable=True)
    # The body may run many times: its variables start from zero every time.
    for v in n.set_in(copied):
        out.append(n.Set(v, const(0, v.type), call.span))  # type: ignore[arg-type]
    out += inline(copied, names)
    again: list[n.Atom] = []
    if f.replay is not None and call.dsts:
        # The values that the backward pass goes on with are those of the replay.
        shown = tuple(n.Var(names.fresh(d.name), d.type) for d in call.dsts)
        out += inline((replace(call, dsts=shown, func=f.replay),), names)
        again += shown
    for k, (d, r) in enumerate(zip(call.dsts, results, strict=True)):
        held_result = table[r]
        if again:
            out.append(n.Let(d, "replayed", (held_result, again[k]), call.span))
        else:
            out.append(n.Let(d, "copy", (held_result,), call.span))
    return out


def _at(block: n.Block, span: Span) -> n.Block:
    """The block with a place for the statements that have none."""
    return rewrite(block, lambda s: with_span(s, span) if s.span == UNKNOWN else s)


def _number(block: n.Block, names: Names) -> n.Block:
    counter = itertools.count()

    def step(s: n.Stmt) -> n.Stmt:
        if not isinstance(s, (n.Load, n.Call, n.Atomic)):
            return s
        if isinstance(s, n.Atomic) and s.dst is None and s.kind in ("min", "max", "cas"):
            # The winner is known by the value that it replaced.
            s = replace(s, dst=n.Var(names.fresh("before"), s.value.type))
        return replace(s, site=next(counter))

    return rewrite(block, step)


def inlined_size(fn: n.Function) -> int:
    """Statements of a kernel when its calls are expanded."""
    sizes: dict[int, int] = {}
    for f in (*n.callees(fn), fn):
        sizes[id(f)] = sum(
            sizes[id(s.func)] if isinstance(s, n.Call) and _is_inlined(s.func) else 1
            for s in n.walk(f.body)
        )
    return sizes[id(fn)]


def _is_inlined(f: n.Function) -> bool:
    return f.grad is None and f.native is None and f.kept is None


def prepare(fn: n.Function) -> n.Function:
    """The kernel inlined, structured, simplified and numbered; same meaning as `fn`."""
    names = Names(names_in(fn))
    body, _ = structure(fn, names)
    body = inline(body, names)
    out = replace(fn, body=body, mirrored=any(f.mirrored for f in n.callees(fn)))
    return numbered(remove_dead(propagate(out)))


def numbered(fn: n.Function) -> n.Function:
    """The kernel with its reads numbered, in the order of its text."""
    return replace(fn, body=_number(fn.body, Names(names_in(fn))))
