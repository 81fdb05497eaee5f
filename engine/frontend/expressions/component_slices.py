"""Slices of vectors and matrices: `v[1:3]`, `m[:, 0]`, `m[1:, :2]`, and `t.p`, `t.q` of transforms.

A region is an lvalue like a single component: it is read, written and indexed further
without a copy of the whole value. Its bounds are known while compiling, since its length
is part of its type.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from engine.frontend.context.context import Context
from engine.frontend.operands.lvalues import Element, Part, Region, Run, component_indices
from engine.frontend.operands.operand import Bad, Value, literal, number
from engine.ir.nodes import Atom, Const
from engine.lang.types import ArrayType, MatrixType, ScalarType, Tag, VectorType, shape_of

# Reads an expression as an index into `size` components: the checked, non-negative atom.
Index = Callable[[ast.expr, int], Atom | None]


def region_of(base: Element | Part | Value) -> Region | None:
    """The whole of a vector or matrix, or the row of it that was named, as a region."""
    given: tuple[Atom, ...] = ()
    if isinstance(base, Value):
        t, root = base.type, base.atom
    elif isinstance(base, Part):
        t, given, root = base.base.type, base.index, base.base
    else:
        t, given = base.element, base.path
    if not isinstance(t, (VectorType, MatrixType)) or len(given) == len(shape_of(t)):
        return None
    whole = tuple(Run(0, 1, n) for n in shape_of(t)[len(given) :])
    tag = t.tag if isinstance(t, VectorType) else ""
    if isinstance(base, Element):
        return Region(Element(base.array, base.index), given + whole, tag)
    return Region(root, given + whole, tag)


def part_of_region(
    cx: Context, base: Region, nodes: Sequence[ast.expr], index: Index
) -> Region | Element | Part | None:
    """`region[i, a:b]`. None where something is wrong, which has been reported.

    There are no more nodes than the region has runs.
    """
    axes: list[Atom | Run] = []
    left = list(nodes)
    for axis in base.axes:
        if not isinstance(axis, Run) or not left:
            axes.append(axis)
            continue
        node = left.pop(0)
        if isinstance(node, ast.Slice):
            run = _run(cx, node, axis)
            if run is None:
                return None
            axes.append(run)
        else:
            at = index(node, axis.count)
            if at is None:
                return None
            axes.append(_inside(cx, axis, at))
    return narrowed(base, tuple(axes))


def narrowed(base: Region, axes: tuple[Atom | Run, ...], tag: Tag = "") -> Region | Element | Part:
    """A region with other axes; a component or row where it is no more than that."""
    shape = shape_of(base.whole)
    path = tuple(a for a in axes if not isinstance(a, Run))
    rest = axes[len(path) :]
    whole = tuple(Run(0, 1, n) for n in shape[len(path) :])
    if path and rest == whole and axes[: len(path)] == path:
        if isinstance(base.base, Element):
            return Element(base.base.array, base.base.index, path)
        return Part(base.base, path)
    return Region(base.base, axes, tag)


def named_part(base: Region, start: int, stop: int, tag: Tag = "") -> Region:
    """Components `start` to `stop` of a region of one axis, as a quaternion if `tag` says so."""
    (axis,) = base.runs
    run = Run(axis.start + start * axis.step, axis.step, stop - start)
    return Region(base.base, tuple(run if isinstance(a, Run) else a for a in base.axes), tag)


def component_of_region(cx: Context, base: Region, k: int) -> Region | Element | Part:
    """Component k of a region of one axis."""
    at = literal(k).atom
    axes = tuple(_inside(cx, a, at) if isinstance(a, Run) else a for a in base.axes)
    return narrowed(base, axes)


def _inside(cx: Context, axis: Run, at: Atom) -> Atom:
    """The index in the whole value that an index into a run means."""
    if isinstance(at, Const):
        assert isinstance(at.value, int)
        return literal(axis.start + axis.step * at.value).atom
    t = at.type
    assert isinstance(t, ScalarType)
    if axis.step != 1:
        at = cx.b.op("mul", at, Const(axis.step, t))
    return cx.b.op("add", at, Const(axis.start, t)) if axis.start else at


def chosen_items(cx: Context, node: ast.Slice, count: int) -> range | None:
    """What a slice selects of `count` items, as Python does; None where that is reported."""
    bounds: list[int | None] = []
    for part in (node.lower, node.upper, node.step):
        if part is None:
            bounds.append(None)
            continue
        got = cx.value(part, "the bound of a slice")
        n = number(got) if isinstance(got, Value) else None
        if isinstance(got, Bad):
            return None
        if not isinstance(n, int) or isinstance(n, bool):
            cx.error(
                "E104",
                part,
                "the bounds of a slice of a vector, matrix or tuple are constant integers",
                "write the numbers themselves, or read the components one by one in a loop",
            )
            return None
        bounds.append(n)
    if bounds[2] == 0:
        cx.error("E104", node.step or node, "the step of a slice is 0", "use 1, 2 or -1")
        return None
    return range(count)[slice(*bounds)]


def _run(cx: Context, node: ast.Slice, axis: Run) -> Run | None:
    """What a slice selects of a run."""
    chosen = chosen_items(cx, node, axis.count)
    if chosen is None:
        return None
    return Run(axis.start + chosen.start * axis.step, axis.step * chosen.step, len(chosen))


def read_region(cx: Context, got: Region) -> Atom:
    """The value of a region."""
    scalar = got.whole.scalar
    if isinstance(got.base, Element):
        at = got.base
        parts = [cx.b.load(at.array, at.index, path, scalar) for path in got.paths()]
    else:
        if got.axes == tuple(Run(0, 1, n) for n in shape_of(got.whole)) and got.type == got.whole:
            return got.base
        parts = [cx.b.op("extract", got.base, *path) for path in got.paths()]
    return cx.b.op("construct", *parts, result=got.type)


def components_of(cx: Context, value: Atom) -> list[Atom]:
    """The components of a vector or matrix, in the order of `Region.paths`."""
    assert not isinstance(value.type, ArrayType)
    return [cx.b.op("extract", value, *index) for index in component_indices(value.type)]


def written(cx: Context, got: Region, value: Atom) -> list[tuple[tuple[Atom, ...], Atom]]:
    """What each component of a region becomes: its index, and the value. A number fills."""
    parts = components_of(cx, value)
    return [(path, parts[k] if parts else value) for k, path in enumerate(got.paths())]
