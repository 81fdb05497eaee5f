"""Finds the variables that can carry a derivative from one differentiated array to another."""

from __future__ import annotations

from collections.abc import Iterable

from engine.ir import nodes as n
from engine.ir.ops import OPS, NoDerivative
from engine.lang.types import ArrayType, is_float


def _float(a: n.Atom) -> bool:
    return isinstance(a, n.Var) and not isinstance(a.type, ArrayType) and is_float(a.type)


def active(
    fn: n.Function, wrt: frozenset[str], inputs: Iterable[n.Var] = (), results: Iterable[n.Var] = ()
) -> frozenset[n.Var]:
    """Variables that depend on an element of `wrt` and that an element of `wrt` depends on.

    Variables of `inputs` count as elements that are read, those of `results` as stored ones.
    Flow-insensitive: a variable counts as one thing through the whole function,
    which can only add variables, never miss one.
    """
    edges: list[tuple[n.Var, n.Var]] = []  # (from, to)
    sources: set[n.Var] = set(inputs)
    sinks: set[n.Var] = set(results)

    def link(origins: Iterable[n.Atom], targets: Iterable[n.Var]) -> None:
        targets = [t for t in targets if _float(t)]
        for o in origins:
            if isinstance(o, n.Var) and _float(o):
                edges.extend((o, t) for t in targets)

    for s in n.walk(fn.body):
        if isinstance(s, n.Let):
            if not isinstance(OPS[s.op].derivative, NoDerivative):
                link(s.args, (s.dst,))
        elif isinstance(s, n.Set):
            link((s.value,), (s.dst,))
        elif isinstance(s, n.Call):
            if s.func.kept is None:
                link(s.args, s.dsts)
            else:
                for d, origins in zip(s.dsts, s.func.kept, strict=False):
                    link([s.args[k] for k in origins], (d,))
            _through_memory(s, wrt, sources, sinks)
        elif isinstance(s, n.Load) and s.array.name in wrt:
            sources.add(s.dst)
        elif isinstance(s, (n.Store, n.Atomic)) and s.array.name in wrt:
            if isinstance(s.value, n.Var):
                sinks.add(s.value)
            if isinstance(s, n.Atomic) and s.dst is not None:
                sources.add(s.dst)
    varied = _reach(sources, edges)
    useful = _reach(sinks, [(b, a) for a, b in edges])
    return frozenset(v for v in varied & useful if _float(v))


def _through_memory(s: n.Call, wrt: frozenset[str], sources: set[n.Var], sinks: set[n.Var]) -> None:
    """A custom gradient of arrays: results may come from elements, and elements from arguments."""
    grad = s.func.grad
    if grad is None or not grad.gradients:
        return
    given = dict(zip((p.name for p in s.func.params), s.args, strict=True))
    if any(isinstance(a := given[k], n.Var) and a.name in wrt for k in grad.gradients):
        sources.update(d for d in s.dsts if _float(d))
        sinks.update(a for a in s.args if isinstance(a, n.Var) and _float(a))


def _reach(start: set[n.Var], edges: list[tuple[n.Var, n.Var]]) -> set[n.Var]:
    after: dict[n.Var, list[n.Var]] = {}
    for a, b in edges:
        after.setdefault(a, []).append(b)
    seen = set(start)
    todo = list(start)
    while todo:
        for b in after.get(todo.pop(), ()):
            if b not in seen:
                seen.add(b)
                todo.append(b)
    return seen
