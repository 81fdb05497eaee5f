"""Forward mode of gradients of arrays that users wrote: <w, J v> = <J' w, v>, or a diagnostic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape, jvp
from engine.diagnostics import KernelError
from tests.corpus import test_custom_gradients as corpus

D = wp.float64
A, M, V = wp.array(dtype=D), wp.array2d(dtype=D), wp.array(dtype=wp.vec3d)


# None of these is the derivative of its function, so that it shows which one is used.


@wp.func
def element(z: A, n: int):
    return z[n]


@wp.func_grad(element)
def adj_element(z: A, n: int, adj_ret: D):
    wp.adjoint[z][n] += D(10.0) * adj_ret


@wp.kernel
def by_element(x: A, y: A):
    i = wp.tid()
    y[i] = wp.sin(element(x, i)) * x[0]


@wp.func
def mixed(m: M, v: V, s: D, i: int):
    return v[i] * s, m[i, 0] * m[i, 1]


@wp.func_grad(mixed)
def adj_mixed(m: M, v: V, s: D, i: int, adj_v: wp.vec3d, adj_m: D):
    wp.atomic_add(wp.adjoint[m], i, 1, D(2.0) * adj_m * m[i, 0] + wp.dot(v[i], adj_v))
    wp.adjoint[v][i] += adj_v * (s * D(3.0)) - v[i] * adj_m
    wp.adjoint[s] += D(5.0) * wp.dot(v[i], adj_v) + adj_m


@wp.kernel
def by_mixed(m: M, v: V, s: A, to_v: V, to_m: A):
    i = wp.tid()
    a, b = mixed(m, v, s[i], i)
    to_v[i] = a * b
    to_m[i] = b + m[i, 1]


@wp.func
def stepped(x: A, y: A, n: int):
    total = D(0.0)
    for k in range(n):
        total += x[k] * x[k]
        y[k] = total


@wp.func_grad(stepped)
def adj_stepped(x: A, y: A, n: int):
    """Loops that carry cotangents, and numbers that they are multiplied with."""
    carried = D(0.0)
    weight = D(1.0)
    k = n - 1
    while k >= 0:
        if x[k] < D(-3.0):
            break
        weight = weight * (D(1.0) + x[k] * D(0.1))
        carried = carried * D(0.5) + wp.adjoint[y][k] * weight
        wp.adjoint[y][k] = D(0.0)
        wp.adjoint[x][k] += D(7.0) * x[k] * carried
        for j in range(k):
            if j == 2:
                continue
            weight = weight * D(1.01)
            wp.adjoint[x][j] += weight * carried
        k -= 1


@wp.kernel
def by_steps(x: A, y: A):
    stepped(x, y, 5)


@wp.func
def scaled(x: A, i: int, by: D):
    x[i] = x[i] * by
    return x[i]


@wp.func
def spread(to: A, i: int, what: D):
    wp.atomic_add(to, i, what * D(2.0))
    wp.atomic_sub(to, i + 1, what)


@wp.func_grad(scaled)
def adj_scaled(x: A, i: int, by: D, adj_ret: D):
    """It replaces what was there, by way of a function of its own."""
    was = wp.adjoint[x][i]
    wp.adjoint[x][i] = (was + adj_ret) * D(3.0)
    spread(wp.adjoint[x], i, was - adj_ret)
    wp.adjoint[by] += was


@wp.kernel
def in_place(x: A, by: A, y: A):
    i = wp.tid()
    y[i] = scaled(x, i * 2, by[i]) * by[i]


@wp.struct
class Body:
    mass: A
    place: V
    scale: D


@wp.func
def energy(b: Body, i: int):
    return b.mass[i] * b.place[i][0] * b.scale


@wp.func_grad(energy)
def adj_energy(b: Body, i: int, adj_ret: D):
    wp.adjoint[b.mass][i] += D(4.0) * b.scale * adj_ret
    wp.adjoint[b.place][i][1] += D(5.0) * b.mass[i] * adj_ret


@wp.kernel
def by_struct(b: Body, y: A):
    i = wp.tid()
    y[i] = energy(b, i)


def numbers(shape: Any, seed: int, dtype: Any = D) -> wp.array:
    data = np.random.default_rng(seed).uniform(0.3, 1.5, shape)
    return wp.array(data, dtype=dtype, requires_grad=True)


def body() -> Any:
    b = Body()
    b.mass, b.place, b.scale = numbers(4, 1), numbers((4, 3), 2, wp.vec3d), 1.7
    return b


CASES = {
    "an element": lambda: (by_element, 4, [numbers(4, 1), numbers(4, 2)]),
    "several arrays": lambda: (
        by_mixed, 4,
        [numbers((4, 2), 1), numbers((4, 3), 2, wp.vec3d), numbers(4, 3),
         numbers((4, 3), 4, wp.vec3d), numbers(4, 5)],
    ),
    "loops": lambda: (by_steps, 1, [numbers(5, 1), numbers(5, 2)]),
    "in place": lambda: (in_place, 3, [numbers(7, 1), numbers(3, 2), numbers(3, 3)]),
    "members of structs": lambda: (by_struct, 4, [body(), numbers(4, 2)]),
    "corpus: gathered": lambda: (
        corpus.gather(corpus.gathered), 4,
        [numbers(5, 1, float), numbers(4, 2, float), numbers(4, 3, float)],
    ),
    "corpus: gathered, wrong": lambda: (
        corpus.gather(corpus.gathered_wrong), 4,
        [numbers(5, 1, float), numbers(4, 2, float), numbers(4, 3, float)],
    ),
    "corpus: sigmoid, float32": lambda: (
        corpus.eval_sigmoid, 4, [numbers(4, 1, float), numbers(4, 2, float)]
    ),
    "corpus: sigmoid, float64": lambda: (
        corpus.eval_sigmoid, 4, [numbers(4, 1), numbers(4, 2)]
    ),
    "corpus: gradients passed on": lambda: (
        corpus.multiply, 1, [numbers(8, 1, float), numbers(12, 2, float), numbers(6, 3, float)]
    ),
}  # fmt: skip


def arrays_of(args: list[Any]) -> list[wp.array]:
    out = []
    for a in args:
        out += [a] if isinstance(a, wp.array) else [a.mass, a.place]
    return out


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize("of_tape", [True, False])
def test_forward_mode_is_the_transpose(case, seed, of_tape) -> None:
    """All arrays move, and all have cotangents: what launches write keeps or loses its tangent."""
    kernel, dim, args = CASES[case]()
    arrays = arrays_of(args)
    rng = np.random.default_rng(100 + seed)
    v = {a: rng.standard_normal(a.numpy().shape).astype(a.numpy().dtype) for a in arrays}
    w = {a: rng.standard_normal(a.numpy().shape).astype(a.numpy().dtype) for a in arrays}
    start = [wp.clone(a) for a in arrays]
    with wp.Tape() as tape:
        wp.launch(kernel, dim, inputs=args)
    tape.backward(grads={a: wp.array(w[a], dtype=a.dtype) for a in arrays})
    if of_tape:
        moved = jvp(tape, tangents=v)
    else:
        for a, was in zip(arrays, start, strict=True):
            wp.copy(a, was)
        moved = jvp(kernel, dim, args, tangents=v)
    single = any(a.numpy().dtype == np.float32 for a in arrays)
    ahead = sum(float((_end(moved, a, v) * w[a]).sum(dtype=np.float64)) for a in arrays)
    back = sum(float((a.grad.numpy() * v[a]).sum(dtype=np.float64)) for a in arrays)
    size = sum(float(np.abs(a.grad.numpy() * v[a]).sum()) for a in arrays)
    assert abs(ahead - back) <= (1e-5 if single else 1e-12) * size


def _end(moved: Any, a: wp.array, v: dict[wp.array, Any]) -> Any:
    try:
        return moved[a].numpy()
    except KeyError:
        return v[a]


def test_the_rule_and_not_the_code() -> None:
    x, y = numbers(3, 1), numbers(3, 2)
    moved = jvp(by_element, 3, [x, y], tangents={x: [0.0, 1.0, 0.0]})[y].numpy()
    slope = 10.0 * np.cos(x.numpy()[1]) * x.numpy()[0]
    np.testing.assert_allclose(moved, [0.0, slope, 0.0], rtol=1e-14)


def test_a_wrong_gradient_is_still_found() -> None:
    x, y = numbers(4, 1), numbers(4, 2)
    with wp.Tape() as tape:
        wp.launch(by_element, 4, [x], [y])
    tape.backward(grads={y: wp.ones_like(y)})
    assert "fail" in {p.verdict for launch in check_tape(tape).launches for p in launch.pairs}


# ---- what has no transpose


def refused(grad_body: str, tmp_path: Any, name: str) -> Any:
    text = f"""
import engine as wp
A = wp.array(dtype=float)
@wp.func
def f(x: A, i: int): return x[i] * x[i]
@wp.func_grad(f)
def adj_f(x: A, i: int, adj_ret: float):
{grad_body}
@wp.kernel
def k(x: A, y: A):
    i = wp.tid()
    y[i] = f(x, i)
"""
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    space: dict[str, Any] = {"__name__": name, "__file__": str(path)}
    exec(compile(text, str(path), "exec"), space)
    return space["k"]


REFUSED = {
    "compares it": "    if adj_ret > 0.0:  # HERE\n        wp.adjoint[x][i] += adj_ret",
    "takes 'clamp' of it": "    wp.adjoint[x][i] += wp.clamp(adj_ret, -1.0, 1.0)  # HERE",
    "multiplies two": "    wp.adjoint[x][i] += adj_ret * adj_ret  # HERE",
    "divides by it": "    wp.adjoint[x][i] += 1.0 / adj_ret  # HERE",
    "returns a value": "    wp.adjoint[x][i] += 2.0  # HERE",
    "adds a value": "    wp.adjoint[x][i] += adj_ret + 2.0  # HERE",
    "by an atomic max": "    wp.atomic_max(wp.adjoint[x], i, adj_ret)  # HERE",
    "which is no gradient": "    wp.adjoint[x][i] += adj_ret\n    x[i] = 0.0  # HERE",
    "takes 'sign' of it": "    wp.adjoint[x][i] += wp.sign(adj_ret)  # HERE",
}


@pytest.mark.parametrize("why", list(REFUSED))
def test_what_is_not_linear_is_refused(why, tmp_path) -> None:
    kernel = refused(REFUSED[why], tmp_path, "refused_" + str(list(REFUSED).index(why)))
    x, y = numbers(3, 1, float), numbers(3, 2, float)
    with pytest.raises(KernelError, match="E110") as caught:
        jvp(kernel, 3, [x, y], tangents={x: np.ones(3)})
    (d,) = caught.value.diagnostics
    assert "no derivative in forward mode" in d.message and why in d.message
    assert "reverse mode" in d.help
    text = REFUSED[why]
    assert d.span.line == 9 + text[: text.index("# HERE")].count("\n") - 1
    # Where no array that the gradient is of moves, it is not asked for.
    assert jvp(kernel, 3, [x, y], tangents={y: np.ones(3)})[y].numpy().tolist() == [0.0] * 3
