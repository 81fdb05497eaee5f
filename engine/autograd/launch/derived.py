"""Kernels derived from another one for its check: in float64, or without recording."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import lru_cache

from engine import ad
from engine.compile.pipeline import Variants
from engine.ir.nodes import Block, Call, Function, Stmt, walk
from engine.ir.rewrite import map_stmt
from engine.ir.unassigned import UnassignedRead
from engine.runtime.device import HOST
from engine.runtime.kernel import Kernel
from engine.runtime.plan import Plan

_ASTRAY = "astray"


def derived(
    variants: Variants, key: Hashable, make: Callable[[], Variants | None]
) -> Variants | None:
    """What is made of a kernel under some key; made once."""
    if key not in variants.derived:
        variants.derived[key] = make()
    return variants.derived[key]


@lru_cache(256)
def planned(kernel: Kernel, variants: Variants) -> Plan:
    """The plan of a kernel for its checks, which run on the host. variants: made of the kernel."""
    return Plan(kernel, variants, HOST.backend)


def lifted(variants: Variants) -> Variants:
    """The float64 form of a kernel's variants, with guarded accesses; made once.

    A kernel that has none (see `can_lift`) is guarded only.
    """
    lifts = can_lift(variants)

    def make() -> Variants:
        return Variants(ad.guard_accesses(ad.lift(variants.ir) if lifts else variants.ir))

    return derived(variants, "lifted" if lifts else "guarded", make) or variants


def can_lift(variants: Variants) -> bool:
    """Whether a kernel has a float64 form that does what the kernel does, as far as is known."""
    return variants.can_lift and _ASTRAY not in variants.derived


def leave_unlifted(variants: Variants) -> None:
    """Its float64 form was seen to take another path: from now on it has none."""
    variants.derived[_ASTRAY] = None


def deciding(variants: Variants) -> tuple[Variants, Variants] | None:
    """The kernel that says what its floats decide, and its float64 form; None where nothing.

    See `ad.decisions`. The kernel's own code counts, whatever derivatives its user wrote.
    """

    def make() -> Variants | None:
        found = ad.decisions(plain(variants).prepared)
        return None if found is None else Variants(found)

    own = derived(variants, "deciding", make)
    return None if own is None else (own, lifted(own))


def steering(variants: Variants) -> tuple[Variants, Variants, ad.Steering] | None:
    """The kernel that writes down what its floats decide, and the one that is told, in float64.

    See `ad.steering`. None where they decide nothing, and where there is no float64 form.
    """
    if not variants.can_lift:
        return None
    found = _steering(variants)
    if found is None:
        return None
    scout = derived(variants, "scout", lambda: Variants(found.scout))
    steered = derived(variants, "steered", lambda: lifted(Variants(found.steered)))
    assert scout is not None and steered is not None
    return scout, steered, found


@lru_cache(256)
def _steering(variants: Variants) -> ad.Steering | None:
    return ad.steering(variants.prepared)


def plain(variants: Variants) -> Variants:
    """The kernel without derivatives written by hand; itself where it has none. Made once."""

    def make() -> Variants | None:
        without = without_custom(variants.ir, lambda f: True)
        return None if without is variants.ir else Variants(without)

    return derived(variants, "plain", make) or variants


def watching(variants: Variants) -> tuple[Variants, tuple[UnassignedRead, ...]] | None:
    """The kernel that says what it reads without a value; see `ad.watched`. None where nothing."""
    found = _watching(variants)
    if found is None:
        return None
    made = derived(variants, "watching", lambda: Variants(found[0]))
    assert made is not None
    return made, found[1]


@lru_cache(256)
def _watching(variants: Variants) -> tuple[Function, tuple[UnassignedRead, ...]] | None:
    return ad.watched(variants.ir)


def called(fn: Function) -> list[Function]:
    """All functions that a kernel calls, and those that these do."""
    found: dict[int, Function] = {}
    todo = [fn]
    while todo:
        for s in walk(todo.pop().body):
            if isinstance(s, Call) and id(s.func) not in found:
                found[id(s.func)] = s.func
                todo.append(s.func)
    return list(found.values())


@lru_cache(256)
def generated(variants: Variants) -> bool:
    """Whether all derivatives that a kernel uses are generated, none written by hand.

    Replays may be: what the adjoint makes of their values, forward mode makes of the code itself.
    """
    return all(f.native is None and f.grad is None for f in (*called(variants.ir), variants.ir))


def without_custom(fn: Function, which: Callable[[Function], bool]) -> Function:
    """The function, and those that it calls, without the derivatives that some were given."""

    def strip(f: Function) -> Function:
        given = f.grad is not None or f.replay is not None
        return replace(f, grad=None, replay=None) if given and which(f) else f

    return with_functions(fn, strip)


def with_functions(
    fn: Function, change: Callable[[Function], Function], done: dict[int, Function] | None = None
) -> Function:
    """The function with `change` applied to it and to all functions that it calls."""
    done = {} if done is None else done
    if id(fn) not in done:
        calls = {id(s.func): s.func for s in walk(fn.body) if isinstance(s, Call)}
        inner = {k: with_functions(f, change, done) for k, f in calls.items()}
        out = change(fn)
        if any(inner[k] is not f for k, f in calls.items()):
            out = replace(out, body=_recalled(fn.body, inner))
        done[id(fn)] = out
    return done[id(fn)]


def _recalled(block: Block, inner: Mapping[int, Function]) -> Block:
    def one(s: Stmt) -> Stmt:
        s = map_stmt(s, lambda a: a, lambda b: _recalled(b, inner))
        return replace(s, func=inner[id(s.func)]) if isinstance(s, Call) else s

    return tuple(one(s) for s in block)
