"""Builtins that only kernels have, and those that the frontend makes itself, of every type.

Values against plain loops over NumPy values; both modes against float64 differences of the same
loops. All kernels are recorded on one tape, so that they compile together.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import jvp
from engine.builtins.generic_constructors import GENERIC_CONSTRUCTORS, IDENTITIES
from engine.builtins.special import SPECIAL
from engine.builtins.stubs import KERNEL_ONLY
from engine.lang.types import scalar_of
from tests.sweeps import reduced, selected

N, CELLS = 7, 3  # threads, and the elements that they share
ULONG = wp.types.vector(2, wp.uint64)
FLOATS = [wp.float16, wp.float32, wp.float64]
INTEGERS = [wp.int8, wp.uint8, wp.int16, wp.uint16, wp.int32, wp.uint32, wp.int64, wp.uint64]
OF_FLOATS = [wp.vec2h, wp.vec3, wp.vec2d, wp.mat22h, wp.mat22, wp.mat22d, wp.quatd, wp.transform]
OF_INTEGERS = [wp.vec3i, wp.vec2ub, ULONG]
PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "atomic_add": np.add,
    "atomic_sub": np.subtract,
    "atomic_min": np.minimum,
    "atomic_max": np.maximum,
    "atomic_exch": lambda old, v: v,
    "atomic_and": np.bitwise_and,
    "atomic_or": np.bitwise_or,
    "atomic_xor": np.bitwise_xor,
}
BITS = ("atomic_and", "atomic_or", "atomic_xor")
UNORDERED = (wp.quatd, wp.transform)  # have no minimum
MESSAGES = "tests/unit/runtime/test_messages.py"
TILES = "tests/corpus/test_tiles.py"
# Tested in files of their own: what they do is no value.
ELSEWHERE = {
    "tid": "tests/unit/runtime/test_launch.py",
    **dict.fromkeys(("print", "printf", "expect_eq", "expect_neq", "expect_near"), MESSAGES),
    **dict.fromkeys(("tile", "untile", "block_dim"), TILES),
    **dict.fromkeys(("tile_reduce", "tile_sum", "tile_min", "tile_max"), TILES),
}

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """A kernel, the element type of its arrays, their contents, and what it makes of them."""

    name: str
    dtype: Any
    kernel: Any
    arrays: tuple[Array, ...]
    dim: int
    model: Callable[..., tuple[Array, ...]]
    # The model with its tests and bytes as they are for these arrays, where that matters.
    smooth: Callable[..., Any] | None = None

    def __str__(self) -> str:
        return f"{self.name}-{self.dtype.__name__}"

    @property
    def scalar(self) -> Any:
        return scalar_of(self.dtype.__ir_type__)

    def on_device(self, grad: bool = False) -> list[Any]:
        return [wp.array(a, dtype=self.dtype, requires_grad=grad) for a in self.arrays]


# ---- atomic updates


def updating(f: Any, T: Any) -> Any:
    @wp.kernel
    def update(x: wp.array(dtype=T), v: wp.array(dtype=T), old: wp.array(dtype=T)):
        i = wp.tid()
        old[i] = f(x, i % 3, v[i])

    return update


def swapping(f: Any, T: Any) -> Any:
    @wp.kernel
    def swap(x: wp.array(dtype=T), v: wp.array(dtype=T), old: wp.array(dtype=T)):
        i = wp.tid()
        old[i] = f(x, i % 3, v[(i + 3) % 7], v[i])

    return swap


def plain(f: Callable[[Any, Any], Any]) -> Callable[..., tuple[Array, ...]]:
    def model(x: Array, v: Array, old: Array) -> tuple[Array, ...]:
        for i in range(N):
            old[i] = x[i % CELLS]
            x[i % CELLS] = f(old[i], v[i])
        return x, v, old

    return model


def swapped(x: Array, v: Array, old: Array, same: Any = None) -> tuple[Array, ...]:
    for i in range(N):
        old[i] = x[i % CELLS]
        equal = old[i] == v[(i + 3) % N] if same is None else same[i]
        x[i % CELLS] = np.where(equal, v[i], old[i])
    return x, v, old


def swapped_alike(*arrays: Array) -> Any:
    old = swapped(*(a.copy() for a in arrays))[2]
    same = [old[i] == arrays[1][(i + 3) % N] for i in range(N)]
    assert 0 < np.sum(same) < np.size(same)
    return lambda x, v, old: swapped(x, v, old, same)


def updates() -> list[Case]:
    out = []
    for name in (*PLAIN, "atomic_cas"):
        integers = [*INTEGERS, *OF_INTEGERS]
        for dtype in integers if name in BITS else [*integers, *FLOATS, *OF_FLOATS]:
            if name in ("atomic_min", "atomic_max") and dtype in UNORDERED:
                continue
            rng = np.random.default_rng(zlib.crc32(f"{name}{dtype.__name__}".encode()))
            t = dtype.__ir_type__
            shape = getattr(dtype, "_shape", ())
            scalar = scalar_of(t).numpy
            if scalar.kind == "f":  # few digits, so that sums are exact
                size = max(1, int(np.prod(shape)))
                drawn = rng.permutation(np.arange(-40, 40))[: (CELLS + N) * size] / 8
                x, v = np.split(drawn.reshape(-1, *shape), [CELLS])
            else:
                info = np.iinfo(scalar)
                x, v = (rng.integers(info.min, info.max, (n, *shape), scalar, endpoint=True)
                        for n in (CELLS, N))  # fmt: skip
            if name == "atomic_cas":
                x = v[3 : 3 + CELLS].copy()  # the first round swaps, the second does not
                x[1] = v[0]
            arrays = tuple(a.astype(scalar) for a in (x, v, np.zeros_like(v)))
            make = swapping if name == "atomic_cas" else updating
            model = swapped if name == "atomic_cas" else plain(PLAIN[name])
            smooth = swapped_alike if name == "atomic_cas" else None
            kernel = make(getattr(wp, name), dtype)
            out.append(Case(name, dtype, kernel, arrays, N, model, smooth))
    return out


# ---- what the frontend makes


def making(T: Any, whole: Any) -> Any:
    @wp.kernel
    def make(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        a = wp.vector(x[0], x[1], x[2])
        b = wp.vector(x[3], length=3)
        m = wp.matrix_from_rows(a, b)
        n = wp.matrix_from_cols(a, b)
        r = wp.matrix(x[0], x[1], x[2], x[3], shape=(2, 2))
        f = wp.matrix(x[4], shape=(2, 3))
        q = wp.quaternion(x[5], x[6], x[7], x[8])
        p = wp.quaternion(a, x[5])
        t = wp.transformation(b, q)
        e = wp.identity(n=3, dtype=T)
        k = 0
        for i in range(3):
            y[k] = m[1, i] * m[0, i]
            y[k + 1] = n[i, 0] + n[i, 1] * x[9]
            y[k + 2] = f[1, i] * e[i, i] + e[0, 2]
            y[k + 3] = a[i] * b[i]
            k += 4
        for i in range(4):
            y[k] = q[i] * p[i]
            y[k + 1] = r[i // 2, i % 2] * x[9]
            y[k + 2] = wp.quat_identity(dtype=T)[i]
            k += 3
        for i in range(7):
            y[k] = t[i] * x[i]
            y[k + 1] = wp.transform_identity(dtype=T)[i]
            k += 2
        y[k] = T(len(x)) * x[0]
        y[k + 1] = T(len(a) + 10 * len(m) + 100 * len(n) + 1000 * len(t))
        y[k + 2] = T(wp.vector(length=4, dtype=T)[3])
        y[k + 3] = wp.cast(wp.cast(x[0], whole), T)

    return make


def made(x: Array, y: Array, bits: Any = None) -> tuple[Array, ...]:
    a, b = x[:3], np.full(3, x[3])
    q, p = x[5:9], np.append(a, x[5])
    t = np.concatenate([b, q])
    out: list[float] = []
    for i in range(3):
        out += [a[i] * b[i], a[i] + b[i] * x[9], x[4], a[i] * b[i]]
    for i in range(4):
        out += [q[i] * p[i], x[i] * x[9], float(i == 3)]
    for i in range(7):
        out += [t[i] * x[i], float(i == 6)]
    return x, np.array([*out, 10 * x[0], 7323.0, 0.0, x[0] if bits is None else bits])


SAME_SIZE = {wp.float16: wp.int16, wp.float32: wp.uint32, wp.float64: wp.int64}


def makers() -> list[Case]:
    x = np.array([0.5, -1.25, 2.0, 0.75, 1.5, -0.5, 3.0, 1.125, -2.5, 0.25])
    return [
        Case(
            "made",
            T,
            making(T, whole),
            (x.astype(n), np.zeros(42, n)),
            1,
            made,
            lambda x, y: lambda u, w: made(u, w, bits=float(x[0])),
        )
        for T, whole in SAME_SIZE.items()
        for n in [scalar_of(T.__ir_type__).numpy]
    ]


CASES = [*updates(), *makers()]
SMOOTH = [c for c in CASES if c.scalar.kind == "f"]
USUAL = {wp.int32, wp.uint64, *FLOATS, wp.vec2h, wp.vec3, wp.mat22d, wp.quatd, wp.vec3i}


# What atomics return is of the order of threads, and so are gradients by it.
ORDERED = pytest.mark.host("the order of threads", only=(*PLAIN, "atomic_cas"))


def here(cases: list[Case]) -> list[Case]:
    """Those that mean one thing on the device."""
    ordered = wp.get_device().is_cpu
    return [c for c in cases if ordered or not c.name.startswith("atomic")]


def tried(cases: list[Case]) -> list[Any]:
    return reduced(cases, lambda c: c.dtype in USUAL)


def test_every_one_is_here() -> None:
    names = {c.name for c in CASES} | set(ELSEWHERE)
    assert set(KERNEL_ONLY) <= names
    inside = (*making(wp.float32, wp.uint32).func.__code__.co_names, *ELSEWHERE)
    assert {*SPECIAL, *GENERIC_CONSTRUCTORS, *IDENTITIES} <= set(inside)
    root = Path(__file__).parents[2]
    for name, path in ELSEWHERE.items():
        assert f"wp.{name}(" in (root / path).read_text()


# ---- one launch and one tape of all


@pytest.fixture(scope="module")
def launched(request: pytest.FixtureRequest) -> dict[str, list[Any]]:
    """The arrays after each launch; those of floats are on the tape, which is kept too."""
    out: dict[str, list[Any]] = {}
    with wp.Tape() as tape:
        for c in here(selected(request, CASES)):
            arrays = c.on_device(grad=c in SMOOTH)
            wp.launch(c.kernel, dim=c.dim, inputs=arrays)
            out[str(c)] = arrays
    out["tape"] = [tape]
    return out


def weights(c: Case, what: str) -> list[Array]:
    rng = np.random.default_rng(zlib.crc32(f"{c}{what}".encode()))
    return [rng.choice([-1.0, -0.5, 0.5, 1.0, 2.0], a.shape) for a in c.arrays]


@pytest.fixture(scope="module")
def pulled(request: pytest.FixtureRequest, launched: Any) -> dict[str, list[Array]]:
    (tape,) = launched["tape"]
    smooth = here(selected(request, SMOOTH))
    pushed_first = jvp(tape, tangents={
        a: v for c in smooth for a, v in zip(launched[str(c)], weights(c, "v"), strict=True)
    })  # fmt: skip
    tape.backward(grads={
        a: wp.array(g, dtype=c.dtype)
        for c in smooth for a, g in zip(launched[str(c)], weights(c, "g"), strict=True)
    })  # fmt: skip
    out = {str(c): [a.grad.numpy().astype(float) for a in launched[str(c)]] for c in smooth}
    for c in smooth:
        out[f"{c} forward"] = [pushed_first[a].numpy().astype(float) for a in launched[str(c)]]
    return out


@ORDERED
@pytest.mark.parametrize("case", tried(CASES), ids=str)
def test_value(case: Case, launched: Any) -> None:
    with np.errstate(over="ignore"):
        want = case.model(*(a.copy() for a in case.arrays))
    for got, w in zip(launched[str(case)], want, strict=True):
        np.testing.assert_array_equal(got.numpy(), w.astype(case.scalar.numpy))


@ORDERED
@pytest.mark.parametrize("case", tried(SMOOTH), ids=str)
def test_derivatives(case: Case, pulled: Any) -> None:
    """Reverse mode entry by entry, and forward mode along a direction."""
    at = [a.astype(float) for a in case.arrays]
    g, v = weights(case, "g"), weights(case, "v")
    close = max(1e-6, 64 * float(np.finfo(case.scalar.numpy).eps))
    model = case.model if case.smooth is None else case.smooth(*at)

    def weighed(arrays: list[Array]) -> float:
        results = model(*(a.copy() for a in arrays))
        return sum(float(np.sum(r * w)) for r, w in zip(results, g, strict=True))

    h = 1e-6
    for k, a in enumerate(at):
        want = np.zeros(a.shape)
        for j in np.ndindex(a.shape):
            ends = []
            for step in (h, -h):
                moved = [b.copy() for b in at]
                moved[k][j] += step
                ends.append(weighed(moved))
            want[j] = (ends[0] - ends[1]) / (2 * h)
        np.testing.assert_allclose(pulled[str(case)][k], want, rtol=close, atol=close)
    left = sum(float(np.sum(r * w)) for r, w in zip(pulled[f"{case} forward"], g, strict=True))
    right = sum(float(np.sum(r * w)) for r, w in zip(pulled[str(case)], v, strict=True))
    np.testing.assert_allclose(left, right, rtol=16 * close, atol=16 * close)
