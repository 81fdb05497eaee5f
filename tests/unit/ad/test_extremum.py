"""Atomic minima and maxima, their adjoints and tangents, beside a simulation of the threads.

NaN counts as missing: any number replaces it, and it replaces none. Of equal values, zeros of both
signs included, the first one stays. Derivatives belong to the value that is there.
"""

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import jvp
from engine.ir import interp

FLOATS = [wp.float16, wp.float32, wp.float64]
INTEGERS = [wp.int8, wp.int16, wp.int32, wp.int64, wp.uint8, wp.uint16, wp.uint32, wp.uint64]
THREADS, CELLS = 40, 6
SEEDS = range(4)
KERNELS: dict[tuple[str, Any], Any] = {}


def _make(kind: str, T: Any) -> Any:
    update = getattr(wp, f"atomic_{kind}")

    @wp.kernel(module="extremum")
    def kernel(
        a: wp.array(dtype=T),
        at: wp.array(dtype=int),
        x: wp.array(dtype=T),
        before: wp.array(dtype=T),
    ):
        i = wp.tid()
        before[i] = update(a, at[i], x[i])

    return kernel


# One module, so that they compile together.
for _kind in ("min", "max"):
    for _T in (*FLOATS, *INTEGERS, wp.vec3):
        KERNELS[_kind, _T] = _make(_kind, _T)


def drawn(T: Any, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells, places and values, few enough to be equal often."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(np.float32) if T is wp.vec3 else np.dtype(wp.dtype_to_numpy(T))
    inner = (3,) if T is wp.vec3 else ()
    pool = np.array([0, 1, 2, 100], dtype)
    if dtype.kind == "f":
        special = [np.nan, np.nan, 0.0, -0.0, 1.0, -1.0, 0.5, -2.0, np.inf, -np.inf]
        pool = np.array(special, dtype)
    elif dtype.kind == "i":
        pool = np.array([0, 1, -1, np.iinfo(dtype).min, np.iinfo(dtype).max, 7], dtype)
    cells, values = (rng.choice(pool, (n, *inner)) for n in (CELLS, THREADS))
    return cells, rng.integers(0, CELLS, THREADS).astype(np.int32), values


class Simulated:
    """The threads one after the other. holders: the number of the thread whose value a cell has
    (-1 at first), for every component; seen: the same before each thread.
    """

    def __init__(self, kind: str, cells: np.ndarray, at: np.ndarray, values: np.ndarray) -> None:
        self.cells, self.before = cells.copy(), np.empty_like(values)
        self.holders = np.full(cells.shape, -1)
        self.seen = np.empty(values.shape, int)
        for i, cell in enumerate(at):
            self.before[i], self.seen[i] = self.cells[cell], self.holders[cell]
            for c in np.ndindex(values.shape[1:]):
                old, new = self.cells[(cell, *c)], values[(i, *c)]
                better = new < old if kind == "min" else new > old
                if better or (old != old and new == new):
                    self.cells[(cell, *c)], self.holders[(cell, *c)] = new, i

    def pushed(self, cells: np.ndarray, values: np.ndarray, at: np.ndarray) -> Any:
        """Tangents of the cells and of what threads saw, from those of cells and values."""

        def of(holders: np.ndarray, cell: Any) -> np.ndarray:
            out = np.empty(holders.shape)
            for place in np.ndindex(holders.shape):
                thread = holders[place]
                at_first = cells[(cell[place[0]], *place[1:])]
                out[place] = at_first if thread < 0 else values[(thread, *place[1:])]
            return out

        return of(self.holders, np.arange(CELLS)), of(self.seen, at)

    def pulled(self, cells: np.ndarray, seen: np.ndarray, at: np.ndarray) -> Any:
        """Gradients by the cells and by the values, for cotangents of the cells and of `before`."""
        by_cells, by_values = np.zeros(cells.shape), np.zeros(seen.shape)
        for holders, cotangents, cell in (
            (self.holders, cells, np.arange(CELLS)),
            (self.seen, seen, at),
        ):
            for place in np.ndindex(holders.shape):
                thread, rest = holders[place], place[1:]
                target = by_cells if thread < 0 else by_values
                target[(cell[place[0]] if thread < 0 else thread, *rest)] += cotangents[place]
        return by_cells, by_values


def assert_bits(got: np.ndarray, expected: np.ndarray) -> None:
    """Equal, NaN to NaN, and zeros by their sign."""
    np.testing.assert_array_equal(got, expected)
    if expected.dtype.kind == "f":
        numbers = expected == expected
        np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(expected[numbers]))


def arrays(T: Any, seed: int, requires_grad: bool = False) -> list[Any]:
    cells, at, values = drawn(T, seed)
    own = {"dtype": T, "requires_grad": requires_grad}
    return [wp.array(cells, **own), wp.array(at, dtype=int), wp.array(values, **own),
            wp.zeros(THREADS, **own)]  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("kind", "T"), KERNELS, ids=lambda v: getattr(v, "__name__", v))
def test_values(kind: str, T: Any, seed: int) -> None:
    cells, at, values = drawn(T, seed)
    expected = Simulated(kind, cells, at, values)
    kernel, args = KERNELS[kind, T], arrays(T, seed)
    wp.launch(kernel, dim=THREADS, inputs=args)
    if wp.get_device().is_cpu:
        assert_bits(args[0].numpy(), expected.cells)
        assert_bits(args[3].numpy(), expected.before)
    else:  # which of two zeros stays, and what threads see, are of their order
        np.testing.assert_array_equal(args[0].numpy(), expected.cells)
    before = np.zeros_like(values)
    interp.run(kernel.ir, [cells, at, values, before], (THREADS,))
    assert_bits(cells, expected.cells)
    assert_bits(before, expected.before)


@pytest.mark.host("what threads see of minima is of their order")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("T", [*FLOATS, wp.vec3], ids=lambda v: v.__name__)
@pytest.mark.parametrize("kind", ["min", "max"])
def test_derivatives(kind: str, T: Any, seed: int) -> None:
    cells, at, values = drawn(T, seed)
    expected, rng = Simulated(kind, cells, at, values), np.random.default_rng(seed + 100)

    def whole(like: np.ndarray) -> np.ndarray:
        """Numbers whose sums are exact in every type."""
        return rng.integers(-4, 5, like.shape).astype(like.dtype)

    kernel, args = KERNELS[kind, T], arrays(T, seed, requires_grad=True)
    a, _, x, before = args
    moved = {a: whole(cells), x: whole(values)}
    found = jvp(kernel, THREADS, args, tangents=moved)
    of_cells, of_before = expected.pushed(moved[a], moved[x], at)
    np.testing.assert_array_equal(found[a].numpy(), of_cells)
    np.testing.assert_array_equal(found[before].numpy(), of_before)

    with wp.Tape() as tape:
        wp.launch(kernel, dim=THREADS, inputs=args)
    weights = {a: whole(cells), before: whole(values)}
    tape.backward(grads=weights)
    by_cells, by_values = expected.pulled(weights[a], weights[before], at)
    np.testing.assert_array_equal(a.grad.numpy(), by_cells)
    np.testing.assert_array_equal(x.grad.numpy(), by_values)


def test_the_draws_have_what_matters() -> None:
    """Ties, NaN and zeros of both signs meet in some cell of some seed, in each direction."""
    kinds = set()
    for seed in SEEDS:
        cells, at, values = drawn(wp.float32, seed)
        for kind in ("min", "max"):
            s = Simulated(kind, cells, at, values)
            for old, new in zip(s.before, values, strict=True):
                kinds.add((kind, "NaN replaced") if old != old and new == new else None)
                kinds.add((kind, "NaN offered") if new != new and old == old else None)
                kinds.add((kind, "tie") if old == new else None)
                signs = np.signbit(old) != np.signbit(new)
                kinds.add((kind, "zeros") if old == new == 0 and signs else None)
    assert len(kinds - {None}) == 8
