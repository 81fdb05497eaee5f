"""One element that every thread changes, from what it was: the CPU runs its threads in order, and
the gradient is that of that order. The oracle is the same text as plain Python, one thread after
another, on complex numbers with a step of 1e-30.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import TapeError, config
from engine.autograd import check_tape, jvp
from tests.backend.cuda.emulated import PLACES as PLACES_OF_GPUS
from tests.backend.cuda.emulated import place as place_of

D = wp.float64
A, M, V = wp.array(dtype=D), wp.array2d(dtype=D), wp.array(dtype=wp.vec3d)
THREADS = 9
STEP = 1e-30


@wp.struct
class Holder:
    y: A


@wp.struct
class Item:
    mass: D
    other: D


# The element, how the kernel declares the array, and the array's shape.
PLACES = {
    "y[0]": ("y: A", (3,)),
    "y[-1]": ("y: A", (3,)),
    "y[y.shape[0] - 2]": ("y: A", (3,)),
    "y[k]": ("y: A", (3,)),
    "y[2, 1]": ("y: M", (4, 2)),
    "y[-3, -1]": ("y: M", (4, 2)),
    "y[1][2]": ("y: V", (3, 3)),
    "y[-2].z": ("y: V", (3, 3)),
    "s.y[-1]": ("s: Holder", (3,)),
    "y[-1].mass": ("y: wp.array(dtype=Item)", (3,)),
}
UPDATES = [
    "{0} -= x[i]", "{0} *= x[i]", "{0} /= x[i]", "{0} = {0} * x[i] + x[i]",
    "{0} = x[i] - {0} * {0}", "{0} = wp.sin({0}) * x[i]", "{0} = x[i] / {0}",
]  # fmt: skip

TEXT = """
@wp.kernel
def update(x: A, {declared}, k: int):
    i = wp.tid()
    {statement}
"""


def cases() -> list[tuple[str, str]]:
    """All places by two operators, all operators at two places."""
    some = [(p, u) for p in PLACES for u in UPDATES[1:4:2]]
    more = [(p, u) for p in ("y[-3, -1]", "y[0]") for u in UPDATES]
    return list(dict.fromkeys([*some, *more]))


def kernel(place: str, update: str, tmp_path: Any) -> Any:
    text = TEXT.format(declared=PLACES[place][0], statement=update.format(place))
    path = tmp_path / f"kernel_{abs(hash((place, update)))}.py"
    path.write_text(text)
    space = dict(globals(), __name__=path.stem, __file__=str(path))
    exec(compile(text, str(path), "exec"), space)
    return space["update"]


def oracle(place: str, update: str, x: Any, y: Any) -> Any:
    """The array afterwards; of complex numbers, with its derivative."""
    y = y.copy()
    code = compile(update.format(place), "oracle", "exec")
    given: Any = y
    if ".z" in place:
        given = [Row(row) for row in y]
    elif ".mass" in place:
        given = [SimpleNamespace(mass=v) for v in y]
    space = {
        "y": given, "x": x, "k": 1, "s": SimpleNamespace(y=y), "wp": SimpleNamespace(sin=np.sin),
    }  # fmt: skip
    for i in range(len(x)):
        exec(code, space, {"i": i})
    return np.array([v.mass for v in given]) if ".mass" in place else y


class Row:
    def __init__(self, row: Any) -> None:
        self.row = row

    @property
    def z(self) -> Any:
        return self.row[2]

    @z.setter
    def z(self, value: Any) -> None:
        self.row[2] = value


def arrays(place: str) -> tuple[wp.array, Any, Any, Any]:
    """x, the kernel's second argument, and the numbers in both."""
    rng = np.random.default_rng(3)
    shape = PLACES[place][1]
    first, before = rng.uniform(0.6, 1.6, THREADS), rng.uniform(0.5, 1.5, shape)
    x = wp.array(first, dtype=D, requires_grad=True)
    dtype = wp.vec3d if PLACES[place][0] == "y: V" else D
    if "Item" in PLACES[place][0]:
        data = np.zeros(shape, dtype=[("mass", "f8"), ("other", "f8")])
        data["mass"] = before
        return x, wp.array(data, dtype=Item, requires_grad=True), first, before
    y: Any = wp.array(before, dtype=dtype, requires_grad=True)
    if "Holder" in PLACES[place][0]:
        holder = Holder()
        holder.y = y
        y = holder
    return x, y, first, before


def numbers(value: Any) -> Any:
    """What an argument has, or its gradient."""
    value = value.y if hasattr(value, "y") else value
    found = value.numpy()
    return found["mass"] if found.dtype.names else found


def gradient(value: Any) -> Any:
    found = (value.y if hasattr(value, "y") else value).grad.numpy()
    return found["mass"] if found.dtype.names else found


@pytest.mark.host("the order of threads")
@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize(("place", "update"), cases())
def test_the_gradient_is_that_of_the_order(place, update, threads, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(config, "num_threads", threads)
    run = kernel(place, update, tmp_path)
    x, y, first, before = arrays(place)
    rng = np.random.default_rng(5)
    w = rng.standard_normal(before.shape)
    with wp.Tape() as tape:
        wp.launch(run, dim=THREADS, inputs=[x, y, 1])
    np.testing.assert_allclose(numbers(y), oracle(place, update, first, before), rtol=1e-13)

    whole = y.y if hasattr(y, "y") else y
    seed: Any = w
    if ".mass" in place:
        seed = np.zeros(before.shape, dtype=[("mass", "f8"), ("other", "f8")])
        seed["mass"] = w
    tape.backward(grads={whole: wp.array(seed, dtype=whole.dtype)})
    to_x = np.array([
        np.sum(w * oracle(place, update, first + 1j * STEP * unit, before + 0j).imag) / STEP
        for unit in np.eye(THREADS)
    ])  # fmt: skip
    to_y = np.zeros(before.shape)
    for at in np.ndindex(*before.shape):
        moved = before + 0j
        moved[at] += 1j * STEP
        to_y[at] = np.sum(w * oracle(place, update, first + 0j, moved).imag) / STEP
    np.testing.assert_allclose(x.grad.numpy(), to_x, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(gradient(y), to_y, rtol=1e-11, atol=1e-13)

    v = rng.standard_normal(THREADS)
    ahead = jvp(tape, tangents={x: v})[whole].numpy()
    ahead = ahead["mass"] if ahead.dtype.names else ahead
    assert np.sum(ahead * w) == pytest.approx(float(v @ to_x), rel=1e-10)


@pytest.mark.host("the order of threads")
def test_the_check_of_a_tape(tmp_path) -> None:
    run = kernel("y[-3, -1]", "{0} /= x[i]", tmp_path)
    x, y, _, _ = arrays("y[-3, -1]")
    with wp.Tape() as tape:
        wp.launch(run, dim=THREADS, inputs=[x, y, 1])
    tape.backward(grads={y: wp.ones_like(y)})
    assert check_tape(tape).passed


# ---- what goes on from another element, or from nothing, is refused as ever


@wp.kernel
def of_another(x: A, y: A):
    i = wp.tid()
    y[0] = y[1] * x[i]


@wp.kernel
def of_another_component(x: A, y: V):
    i = wp.tid()
    y[0][1] = y[0][0] * x[i]


@wp.kernel
def of_another_array(x: A, y: A):
    i = wp.tid()
    y[0] = x[0] * x[i]


@pytest.mark.parametrize("run", [of_another, of_another_component, of_another_array])
def test_refused(run) -> None:
    x = wp.ones(3, dtype=D, requires_grad=True)
    y = wp.ones(2, dtype=wp.vec3d if run is of_another_component else D, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(run, dim=3, inputs=[x, y])
    with pytest.raises(TapeError, match="E407"):
        tape.backward(grads={y: wp.ones_like(y)})


# ---- GPUs have no order


@wp.kernel
def shrunk(x: A, y: M):
    i = wp.tid()
    y[-3, -1] /= x[i]


@pytest.mark.parametrize("where", PLACES_OF_GPUS)
def test_gpus_refuse_it_as_ever(where) -> None:
    with place_of(where) as device, wp.ScopedDevice(device):
        x = wp.ones(3, dtype=D, requires_grad=True)
        y = wp.ones((4, 2), dtype=D, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(shrunk, dim=3, inputs=[x, y])
        with pytest.raises(TapeError) as caught:
            tape.backward(grads={y: wp.ones_like(y)})
        (problem,) = caught.value.diagnostics
        assert problem.code == "E407" and "'shrunk' store different values" in problem.message
