"""Kernels whose scalars are read from arrays of one element, so that JAX can compute them."""

from __future__ import annotations

from dataclasses import replace

from engine.compile.pipeline import Variants
from engine.ir import nodes as n
from engine.ir.builder import Names
from engine.ir.rewrite import map_block, names_in
from engine.lang.types import INT32, ArrayType
from engine.runtime.annotation import array_type


def loaded(variants: Variants, scalars: frozenset[str]) -> Variants:
    """The kernel with the parameters of these names as arrays of one element."""
    if not scalars:
        return variants
    key = ("loaded", scalars)
    found = variants.derived.get(key)
    if found is None:
        found = Variants(_loaded(variants.ir, scalars))
        found.name, found.debug = variants.name, variants.debug
        variants.derived[key] = found
    return found


def _loaded(fn: n.Function, scalars: frozenset[str]) -> n.Function:
    names = Names(names_in(fn))
    params: list[n.Var] = []
    begin: list[n.Stmt] = []
    values: dict[n.Atom, n.Atom] = {}
    for p in fn.params:
        if p.name not in scalars:
            params.append(p)
            continue
        assert not isinstance(p.type, ArrayType)
        source = n.Var(p.name, array_type(p.type, 1))
        value = n.Var(names.fresh(f"{p.name}_value"), p.type)
        params.append(source)
        values[p] = value
        begin.append(n.Load(value, source, (n.Const(0, INT32),), span=fn.span))
    body = map_block(fn.body, lambda a: values.get(a, a))
    return replace(fn, params=tuple(params), body=(*begin, *body), arguments=())
