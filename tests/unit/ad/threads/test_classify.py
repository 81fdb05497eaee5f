"""Accesses of launches to their arrays: one kernel for each kind, as users write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import engine as wp
from engine.ad.threads import Classes
from engine.compile.threads import Threads
from engine.ir import nodes as n

F = wp.array(dtype=float)
F2 = wp.array2d(dtype=float)


def classes(kernel: Any, dim: Any, args: list[Any], adjoint: bool = False) -> dict[str, Any]:
    """Array parameter -> its group, of a launch or of its adjoint."""
    dim = dim if isinstance(dim, tuple) else (dim,)
    v = kernel.plan.variants
    fn = v.ir
    if adjoint:
        wrt = frozenset(p.name for p in kernel.plan.floats)
        fn = v.adjoint_ir(wrt, v.journaled()).fn
        args = args + [wp.zeros_like(args[p.index]) for p in kernel.plan.floats]
        blob = b"".join(a._packed if isinstance(a, wp.array) else a for a in packed(kernel, args))
    else:
        _, blob = kernel.plan.bind(list(args), dim)
    threads = Threads(fn)
    found = threads.classes(dim, blob, threads.arrays(blob))
    return {name: g for g in found.groups for name in g.names}


def packed(kernel: Any, args: list[Any]) -> list[Any]:
    params = kernel.plan.params
    return [p.packed(a) if p.array_kind is None else a
            for p, a in zip(params, args, strict=False)] + args[len(params) :]  # fmt: skip


@wp.kernel
def each(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[0]


@wp.kernel
def total(x: F, y: F):
    i = wp.tid()
    wp.atomic_add(y, 0, x[i])


@wp.kernel
def scatter(at: wp.array(dtype=int), x: F, y: F):
    i = wp.tid()
    y[at[i]] = x[i]


@wp.kernel
def shifted(x: F):
    i = wp.tid()
    x[i] = x[i + 1]


@wp.kernel
def taken(x: F, y: F):
    i = wp.tid()
    y[i] = wp.atomic_add(x, 0, 1.0)


@wp.kernel
def extremes(x: F, y: F):
    i = wp.tid()
    wp.atomic_max(y, i / 2, x[i])


@wp.kernel
def rows(x: F2, y: F, n: int):
    i = wp.tid()
    for j in range(n):
        y[i * n + j] = x[i, j]


@wp.kernel
def interleaved(x: F, y: F):
    i = wp.tid()
    y[2 * i] = x[i]
    y[2 * i + 1] = -x[i]


@wp.kernel
def unflattened(x: F, y: F2):
    k = wp.tid()
    y[k // y.shape[1], k % y.shape[1]] = x[k]


@wp.kernel
def first_only(x: F, y: F):
    i = wp.tid()
    if i == 0:
        y[0] = x[0]


@wp.kernel
def reversed_in_place(x: F, n: int):
    i = wp.tid()
    if i < n / 2:
        a = x[i]
        x[i] = x[n - 1 - i]
        x[n - 1 - i] = a


@wp.kernel
def narrow(x: F, y: F):
    i = wp.tid()
    y[int(wp.int8(i))] = x[i]


@wp.kernel
def plane(x: F2, y: F2):
    i, j = wp.tid()
    y[j, i] = x[i, j]


@wp.kernel
def half_plane(x: F2, y: F2):
    i = wp.tid()
    y[0, i] = x[i, 0]


@wp.kernel
def smooth(x: F, y: F):
    i = wp.tid()
    if i > 0 and i < x.shape[0] - 1:
        y[i] = x[i - 1] - 2.0 * x[i] + x[i + 1]


@wp.kernel
def clamped(x: F, y: F):
    i = wp.tid()
    y[i] = x[wp.max(i - 3, 0)] + x[wp.min(i + 2, x.shape[0] - 1)]


@wp.kernel
def chosen(how: int, x: F, y: F):
    i = wp.tid()
    if how == 0:
        y[i] = x[i]
    elif how == 1:
        y[i] = wp.sin(x[i])
    elif how < y.shape[0] - 20:
        y[0] = x[i]
    elif how > 3:
        y[i + 1] = wp.cos(x[i])
        y[i] = x[i]
    else:
        y[i] = 2.0 * x[i]


def arrays(*sizes: Any) -> list[Any]:
    return [wp.zeros(s, dtype=float) for s in sizes]


CASES = [
    (each, 8, arrays(8, 8), "y", "owned"),
    (each, 8, arrays(8, 8), "x", "shared"),
    (each, (4, 2), arrays(8, 8), "y", "ordered"),
    (total, 8, arrays(8, 1), "y", "accumulate"),
    (total, 1, arrays(8, 1), "y", "owned"),
    (scatter, 8, [wp.zeros(8, dtype=int), *arrays(8, 8)], "y", "unproven"),
    (shifted, 8, arrays(9), "x", "ordered"),
    (taken, 8, arrays(8, 8), "x", "ordered"),
    (extremes, 8, arrays(8, 8), "y", "replace"),
    (rows, 8, [*arrays((8, 4), 32), 4], "y", "owned"),
    (interleaved, 8, arrays(8, 16), "y", "owned"),
    (unflattened, 12, arrays(12, (3, 4)), "y", "owned"),
    (first_only, 8, arrays(8, 8), "y", "owned"),
    (reversed_in_place, 8, [*arrays(8), 8], "x", "owned"),
    (narrow, 100, arrays(100, 100), "y", "owned"),
    (narrow, 200, arrays(200, 200), "y", "unproven"),  # 8 bits wrap
    (plane, (3, 4), arrays((3, 4), (4, 3)), "y", "owned"),
    (half_plane, (3, 4), arrays((3, 4), (4, 3)), "y", "ordered"),
]


@pytest.mark.parametrize(
    "kernel, dim, args, name, sharing", CASES, ids=lambda v: getattr(v, "key", "")
)
def test_what_a_launch_does(
    kernel: Any, dim: Any, args: list[Any], name: str, sharing: str
) -> None:
    assert classes(kernel, dim, args)[name].sharing == sharing


@pytest.mark.parametrize(
    "how, n, sharing",
    [(-1, 9, "owned"), (0, 9, "owned"), (1, 9, "owned"), (2, 9, "owned"), (3, 9, "owned"),
     (4, 9, "ordered"), (2, 30, "ordered")],
)  # fmt: skip
def test_branches_that_an_argument_chooses(how: int, n: int, sharing: str) -> None:
    """What another argument would do does not matter: facts about no thread exclude it."""
    args = [how, *arrays(8, n)]
    assert classes(chosen, 8, args)["y"].sharing == sharing
    adjoint = classes(chosen, 8, args, adjoint=True)["adj_y"].sharing
    assert adjoint == ("take" if sharing == "ordered" else "owned")


@pytest.mark.parametrize("kernel, reach", [(smooth, 2), (clamped, 5)])
def test_how_far_apart_threads_are_that_add_to_one_element(kernel: Any, reach: int) -> None:
    found = classes(kernel, 20, arrays(20, 20), adjoint=True)
    assert found["adj_x"].sharing == "accumulate" and found["adj_x"].reach == reach
    assert found["adj_y"].sharing == "owned"


@wp.kernel
def highest(x: F, y: F):
    i = wp.tid()
    wp.atomic_max(y, 0, x[i])


@wp.kernel
def highest_before(x: F, y: F):
    i = wp.tid()
    x[i] = wp.atomic_max(y, 0, x[i])


def test_what_replaces_values_needs_no_order_with_its_adjoint() -> None:
    args = arrays(8, 1)
    v = highest.plan.variants
    fn = v.recorded_ir(frozenset("xy"), v.journaled())
    assert fn is not None and any(isinstance(s, n.JournalWrite) for s in n.walk(fn.body))
    _, blob = highest.plan.bind(list(args), (8,))
    threads = Threads(fn)
    recorded = threads.classes((8,), blob, threads.arrays(blob))
    assert recorded.order_free and recorded.groups[-1].sharing == "replace"
    found = classes(highest, 8, args, adjoint=True)
    assert found["adj_y"].sharing == "take" and found["adj_x"].sharing == "owned"
    assert found["adj_y"].why[0].kind == "take"
    all_of_them = Classes(tuple(found.values()), True, False, 1)
    assert not all_of_them.order_free
    assert all_of_them.order_free_but_for(frozenset(["adj_y"]))
    assert classes(highest_before, 8, args)["y"].sharing == "ordered"


def test_the_accesses_that_decide_are_named() -> None:
    (why,) = {a.span.line: a for a in classes(shifted, 8, arrays(9))["x"].why}.values()
    assert why.span.file.endswith("test_classify.py") and why.kind in ("read", "store")


def test_many_stores_take_no_time(tmp_path: Path) -> None:
    lines = "\n".join(f"    y[i * 300 + {k}] = x[i]" for k in range(300))
    path = tmp_path / "many.py"
    path.write_text(f"@wp.kernel\ndef many(x: F, y: F):\n    i = wp.tid()\n{lines}\n")
    names: dict[str, Any] = {"wp": wp, "F": F}
    exec(compile(path.read_text(), str(path), "exec"), names)
    found = classes(names["many"], 100, arrays(100, 30_000))
    assert found["y"].sharing == "owned"  # 45,150 pairs would be given up


def test_one_array_in_two_places() -> None:
    (x,) = arrays(9)
    found = classes(each, 8, [x, x])
    assert found["x"] is found["y"] and found["x"].sharing == "ordered"  # x[0] is read by all


def test_parts_of_one_array() -> None:
    (x,) = arrays(16)
    assert classes(each, 8, [x[:8], x[8:]])["y"].sharing == "owned"
    assert classes(each, 8, [x[:8], x[4:12]])["y"].sharing == "unproven"
    assert classes(each, 8, [x[::2], x[1::2]])["y"].sharing == "owned"


def test_an_array_whose_elements_share_memory() -> None:
    x = wp.zeros(1, dtype=float)
    wide = wp.array(ptr=x.ptr, shape=(8,), strides=(0,), dtype=float)
    (y,) = arrays(8)
    assert classes(each, 8, [wide, y])["x"].sharing == "shared"
    assert classes(each, 8, [y, wide])["y"].sharing == "unproven"


@wp.struct
class Body:
    pos: wp.vec3
    mass: float


@wp.kernel
def weigh(bodies: wp.array(dtype=Body)):
    i = wp.tid()
    bodies[i].mass = wp.length(bodies[i].pos)


def test_fields_of_structs_do_not_meet() -> None:
    bodies = wp.zeros(8, dtype=Body)
    v = weigh.plan.variants
    args, blob = weigh.plan.bind([bodies], (8,))
    threads = Threads(v.ir)
    found = threads.classes((8,), blob, threads.arrays(blob))
    assert found.order_free and {g.sharing for g in found.groups} == {"shared", "owned"}


def test_layouts_that_are_equal_lie_alike() -> None:
    """What is remembered by `apart` holds for all launches that share it, and for no others."""
    long, other = wp.zeros(100, dtype=float), wp.zeros(100, dtype=float)

    def seen(x: Any, y: Any) -> tuple[object, bool]:
        _, blob = each.plan.bind([x, y], (8,))
        threads = Threads(each.plan.variants.ir)
        found = threads.classes((8,), blob, threads.arrays(blob))
        return threads.apart(blob), found.order_free

    launches = {
        "apart": [(long[:8], other[:8]), (other[8:16], long[40:48]), (long[:8], long[8:16])],
        "same": [(long[:8], long[:8]), (other[50:58], other[50:58])],
        "behind": [(long[:8], long[3:11]), (other[9:17], other[12:20])],
        "before": [(long[3:11], long[:8]), (other[12:20], other[9:17])],
        "further": [(long[:8], long[4:12])],
        "longer": [(long[:8], long[3:12])],
    }
    keys = {}
    for name, some in launches.items():
        found = {seen(x, y) for x, y in some}
        assert len(found) == 1, name
        keys[name] = found.pop()
    assert len({key for key, _ in keys.values()}) == len(launches)
    assert [name for name, (_, free) in keys.items() if free] == ["apart"]
