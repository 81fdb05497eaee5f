"""The scalars that each thread reads and writes, and the dependencies between them."""

from __future__ import annotations

import numpy as np

import engine as wp
from engine import ad
from engine.ir import interp
from engine.ir import nodes as n
from tests.unit.ad.kernels import prepared, statements


@wp.kernel
def stencil(x: wp.array(dtype=float), z: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    lost = wp.floor(z[i])
    y[i] = x[i + 1] * x[i] + lost


@wp.kernel
def parts(u: wp.array2d(dtype=wp.vec3), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    y[i] = u[i, 1]
    y[i][2] = 0.0


@wp.func
def through(a: wp.array(dtype=float), i: int):
    return a[i]


@wp.func_grad(through)
def adj_through(a: wp.array(dtype=float), i: int, adj_ret: float):
    wp.adjoint[a][i] += adj_ret


@wp.kernel
def by_hand(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = through(x, i)


def recorded(kernel, dim: int, *args: np.ndarray) -> tuple[ad.Accesses, list[tuple[str, int]]]:
    """The accesses of a kernel, and (array, first scalar) of each word that a run writes."""
    found = ad.accesses(prepared(kernel))
    assert found is not None
    journal = interp.run(found.fn, list(args), dim)
    words = [-1 - int(w) for w in journal.slots if w is not None and w < 0]
    count = len(found.sites)
    return found, [(found.sites[w % count].array, w // count) for w in words]


def test_sites_name_arrays_directions_and_sources() -> None:
    found = ad.accesses(prepared(stencil))
    assert found is not None
    reads = {s.array: k for k, s in enumerate(found.sites) if s.reads}
    (write,) = [s for s in found.sites if s.writes]
    assert write.array == "y" and not write.reads and reads.keys() == {"x", "z"}
    sources = {found.sites[k].array for k in write.sources}
    assert sources == {"x"}, "no derivative flows through floor"
    assert len(write.sources) == 2
    assert len(statements(found.fn, n.JournalWrite)) == len(found.sites) == 4


def test_words_say_which_scalar() -> None:
    x, z, y = np.ones(4, np.float32), np.ones(3, np.float32), np.zeros(3, np.float32)
    _, words = recorded(stencil, 3, x, z, y)
    assert sorted(words) == sorted(
        [("x", k) for k in (0, 1, 1, 2, 2, 3)] + [(a, k) for a in "zy" for k in range(3)]
    )


def test_components_and_dimensions_are_counted_row_major() -> None:
    u, y = np.ones((2, 4, 3), np.float32), np.zeros((2, 3), np.float32)
    found, words = recorded(parts, 2, u, y)
    assert {(s.array, s.width) for s in found.sites} == {("u", 3), ("y", 3), ("y", 1)}
    assert {k for a, k in words if a == "u"} == {3, 15}
    assert {k for a, k in words if a == "y"} == {0, 2, 3, 5}


def test_gradients_of_arrays_by_hand_cannot_be_told() -> None:
    assert ad.accesses(prepared(by_hand)) is None
