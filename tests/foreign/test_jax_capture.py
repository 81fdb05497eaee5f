"""The watcher sees argument values of JAX programs and changes nothing."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.foreign import Watched, watching
from tests.foreign.jax_corpus import HEAD

jax = pytest.importorskip("jax", reason="jax is not installed")

RULE = """
@jax.custom_vjp
def f(x, y):
    return jnp.sin(x) * y

def fwd(x, y):
    return f(x, y), (x, y)

def bwd(kept, g):
    x, y = kept
    return {}

f.defvjp(fwd, bwd)
x = jnp.array([1.0, 2.0, 3.0])
total = lambda x: f(3.0 * x, x).sum()
"""
RIGHT = RULE.format("g * jnp.cos(x) * y, g * jnp.sin(x)")


def run(folder: Path, text: str) -> Watched:
    file = folder / "program.py"
    file.write_text(HEAD + text)
    with watching() as watched:
        runpy.run_path(str(file), run_name="__main__")
    return watched


def inputs(watched: Watched) -> list[list[Any]]:
    """The values of the inputs of all operations."""
    (c,) = [c for c in watched.collections if c.framework == "JAX"]
    return [[v.value.tolist() for v in op.inputs] for _, op in c.operations]


X = [1.0, 2.0, 3.0]
LOOP = "lambda c, a: (f(2.0 * c, a), c.sum())"
PLACES = {
    "eager": ("f(3.0 * x, x)", [[[3.0, 6.0, 9.0], X]]),
    "grad": ("jax.grad(total)(x)", [[[3.0, 6.0, 9.0], X]]),
    "jit": ("jax.jit(total)(x)", [[[3.0, 6.0, 9.0], X]]),
    "jit of grad": ("jax.jit(jax.grad(total))(x)", [[[3.0, 6.0, 9.0], X]]),
    "grad of jit": ("jax.grad(jax.jit(total))(x)", [[[3.0, 6.0, 9.0], X]]),
    "nested jit": ("jax.jit(lambda x: jax.jit(total)(x + 1.0))(x)",
                   [[[6.0, 9.0, 12.0], [2.0, 3.0, 4.0]]]),
    "vmap": ("jax.vmap(total)(x)", [[3.0, 1.0], [9.0, 3.0], [6.0, 2.0]]),
    "jit of vmap": ("jax.jit(jax.vmap(jax.grad(total)))(x)", [[3.0, 1.0], [9.0, 3.0], [6.0, 2.0]]),
    "vmap in the second": ("jax.vmap(f, in_axes=(None, 1))(x, jnp.arange(6.0).reshape(3, 2))",
                           [[X, [0.0, 2.0, 4.0]], [X, [1.0, 3.0, 5.0]]]),
    "donated": ("jax.jit(lambda x: f(x, x), donate_argnums=0)(jnp.ones(3))", [[[1.0] * 3] * 2]),
    "remat": ("jax.jit(jax.grad(jax.checkpoint(total)))(x)", [[[3.0, 6.0, 9.0], X]]),
    "map": ("jax.lax.map(lambda a: f(a, a), x)", [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]),
    "cond": ("jax.lax.cond(x[0] > 0, lambda x: f(x, x), lambda x: x, x)", [[X, X]]),
    "key words": ("jax.grad(lambda y: f(y=y, x=x).sum())(2.0 * x)", [[X, [2.0, 4.0, 6.0]]]),
    "host arrays": ("f(np.ones(3, np.float32), 2.0)", [[[1.0] * 3, 2.0]]),
    "second": ("jax.jacrev(jax.grad(total))(x)", [[[3.0, 6.0, 9.0], X]]),
    "other rule": ("""
@jax.custom_jvp
def g(x):
    return 2.0 * f(x, x)
g.defjvps(lambda t, y, x: 2.0 * t * (jnp.sin(x) + x * jnp.cos(x)))
jax.jit(g)(x)""", [[X], [X, X]]),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_values(place: str, tmp_path: Path) -> None:
    text, expected = PLACES[place]
    watched = run(tmp_path, RIGHT + text)
    assert inputs(watched) == expected
    (c,) = [c for c in watched.collections if c.framework == "JAX"]
    assert not c.unchecked
    assert not c.notes


def test_values_in_loops(tmp_path: Path) -> None:
    """Of a scan and of a while loop: the first turn, the second and the fourth."""
    scan = f"jax.grad(lambda c: jax.lax.scan({LOOP}, c, jnp.ones((9, 3)))[1].sum())(x)"
    loop = "jax.lax.while_loop(lambda c: c[0] < 50.0, lambda c: f(c, c) * 0.0 + 2.0 * c, x)"
    c = np.float32(X)
    turns = []
    for _ in range(4):
        turns.append((2 * c).tolist())
        c = np.sin(2 * c)
    found = [op[0] for op in inputs(run(tmp_path, RIGHT + scan))]
    assert np.allclose(found, [turns[k] for k in (0, 1, 3)], atol=1e-6)
    found = [op[0] for op in inputs(run(tmp_path, RIGHT + loop))]
    assert found == [X, [2.0, 4.0, 6.0], [8.0, 16.0, 24.0]]


@pytest.mark.parametrize("call", ["jax.vmap(total)", "jax.jit(jax.vmap(jax.grad(total)))"])
def test_extreme_members_of_a_batch(call: str, tmp_path: Path) -> None:
    """They are looked at, beside the first, the last and the one in the middle."""
    watched = run(tmp_path, RIGHT + f"{call}(jnp.ones(9).at[5].set(-2.0).at[6].set(4.0))\n")
    assert [[12.0, 4.0], [-6.0, -2.0]] == sorted(inputs(watched), reverse=True)[::2]


def test_later_calls_of_a_compiled_program(tmp_path: Path) -> None:
    """JAX goes past Python from the second one on; the first few are seen all the same."""
    text = RIGHT + "go = jax.jit(jax.grad(total))\nfor i in range(9):\n    go(i * jnp.ones(1))\n"
    assert inputs(run(tmp_path, text)) == [[[0.0], [0.0]], [[9.0], [3.0]], [[3.0], [1.0]]]


def test_repeated_calls_are_sampled(tmp_path: Path) -> None:
    watched = run(tmp_path, RIGHT + "for k in range(30): f(x + k, x)")
    assert [op[0][0] for op in inputs(watched)] == [1.0, 2.0, 5.0, 17.0]


@pytest.mark.parametrize("call", [
    "jax.make_jaxpr(f)(x, x)",
    "jax.jit(f).lower(x, x).compile()(x, x)",
    "mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ('i',)); spec = jax.P('i')\n"
    "jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)(x, x)",
])  # fmt: skip
def test_made_up_values(call: str, tmp_path: Path) -> None:
    """What is traced and never run where it can be seen has values that are good for most."""
    watched = run(tmp_path, RIGHT + call)
    values = np.array(inputs(watched))
    assert values.shape == (1, 2, 3)
    assert values.min() > 0.1 and values.max() < 0.9
    (result,) = watched.results()
    (left,) = result.unchecked
    assert left.what.endswith("at the values of the program") and "random values" in left.reason
    assert {p.verdict for x in result.launches for p in x.pairs} == {"pass"}
    wrong = run(tmp_path, RULE.format("g * jnp.cos(x), g * jnp.sin(x)") + call)
    (result,) = wrong.results()
    assert "fail" in {p.verdict for x in result.launches for p in x.pairs}


def test_what_needs_other_devices_is_told(tmp_path: Path) -> None:
    text = """
@jax.custom_vjp
def mean(x):
    return jax.lax.pmean(x, "i")
mean.defvjp(lambda x: (mean(x), None), lambda kept, g: (g,))
jax.vmap(mean, axis_name="i")(jnp.ones((2, 2)))
"""
    (result,) = run(tmp_path, text).results()
    assert not result.launches
    (left,) = result.unchecked
    assert "mean" in left.what
    assert "unbound axis name" in left.reason


def test_rules_of_libraries_are_left_alone(tmp_path: Path) -> None:
    text = "jax.grad(lambda x: jax.nn.relu(x).sum() + jax.nn.logsumexp(x))(jnp.ones(3))"
    watched = run(tmp_path, text)
    assert not watched.found
    assert not watched.names


def test_complex_numbers_are_skipped_in_words(tmp_path: Path) -> None:
    text = """
@jax.custom_vjp
def turn(z):
    return 1j * z
turn.defvjp(lambda z: (1j * z, None), lambda kept, g: (1j * g,))
turn(jnp.array([1.0 + 2.0j]))
"""
    (result,) = run(tmp_path, text).results()
    assert not result.launches
    assert ["complex" in u.reason for u in result.unchecked] == [True]


def test_nothing_stays_behind(tmp_path: Path) -> None:
    from jax._src import pjit
    from jax._src.custom_derivatives import custom_vjp_call_p
    from jax._src.lax.control_flow.loops import scan_p

    def state() -> list[object]:
        return [
            jax.custom_vjp.__call__, jax.custom_jvp.__call__, pjit._pjit_call_impl_python,
            vars(pjit.jit_p).get("bind"), vars(scan_p).get("bind"),
            vars(custom_vjp_call_p).get("bind_with_trace"), jax.config.jax_enable_x64,
            jax.config.jax_debug_nans,
        ]  # fmt: skip

    before = state()
    watched = run(tmp_path, RIGHT + "jax.jit(jax.grad(total))(x)")
    list(watched.results())
    assert state() == before


def test_the_program_runs_as_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same output, traces and compiled functions, bit for bit."""
    text = (
        RIGHT
        + """
traced = []
def step(x):
    traced.append(1)
    print("traced")
    jax.debug.print("x {}", x)
    return jax.grad(total)(x)
quick = jax.jit(step)
for k in range(3):
    x = x - 0.1 * quick(x)
jax.effects_barrier()
print(np.asarray(x).tobytes().hex(), len(traced), quick._cache_size(), jax.config.jax_enable_x64)
print(jax.random.normal(jax.random.key(0), ()), jax.make_jaxpr(total)(x))
try:
    f(x)
except TypeError as error:
    print(error)
try:
    jax.grad(f)(x, x)
except TypeError as error:
    print(error)
"""
    )
    file = tmp_path / "program.py"
    file.write_text(HEAD + text)
    runpy.run_path(str(file), run_name="__main__")
    plain = capsys.readouterr()
    watched = run(tmp_path, text)
    assert capsys.readouterr() == plain
    list(watched.results())
    assert capsys.readouterr() == ("", "")


def test_tracebacks_are_the_same(tmp_path: Path) -> None:
    import traceback

    text = RULE.format("g, 1.0 / 0.0") + "jax.jit(jax.grad(total))(x)"

    def told() -> str:
        try:
            runpy.run_path(str(file), run_name="__main__")
        except ZeroDivisionError as error:
            lines = traceback.extract_tb(error.__traceback__)
            return "".join(f"{x.filename}:{x.lineno} {x.name}\n" for x in lines)
        raise AssertionError("it is to raise")

    file = tmp_path / "program.py"
    file.write_text(HEAD + text)
    plain = told()
    with watching():
        assert told() == plain
    assert "engine" not in plain


KERNEL = """
import engine as wp

@wp.func
def cube(x: float):
    return x * x * x

@wp.func_grad(cube)
def adj_cube(x: float, adj_ret: float):
    wp.adjoint[x] += {} * x * x * adj_ret

@wp.kernel
def scaled(x: wp.array(dtype=wp.vec2), s: float, y: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    y[i] = s * wp.vec2(cube(x[i][0]), x[i][0] * x[i][1])

f = wp.jax_kernel(scaled, enable_backward=True)
x = jnp.arange(1.0, 7.0).reshape(3, 2)
jax.jit(jax.grad(lambda x, s: f(2.0 * x, s)[0].sum()))(x, 3.0)
"""


def test_kernels_are_checked_like_launches(tmp_path: Path) -> None:
    """At the values that they were called with; what is wrong inside is told as on a tape."""
    watched = run(tmp_path, KERNEL.format("3.0"))
    (c,) = watched.found
    (operation,) = [op for _, op in c.operations]
    assert [np.asarray(a).tolist() for a in operation._args] == [
        [[2.0, 4.0], [6.0, 8.0], [10.0, 12.0]], 3.0
    ]  # fmt: skip
    (result,) = watched.results()
    (launch,) = result.launches
    assert launch.kernel == "scaled"
    assert [(p.input, p.verdict) for p in launch.pairs] == [("x", "pass")]

    (result,) = run(tmp_path, KERNEL.format("2.0")).results()
    (launch,) = result.launches
    assert [p.verdict for p in launch.pairs] == ["fail"]
    assert [b.derivative for b in launch.blame] == ["adj_cube"]


def test_a_kernel_without_values_is_told(tmp_path: Path) -> None:
    call = "jax.make_jaxpr(lambda x: f(x, 1.0))(x)"
    text = "\n".join(KERNEL.format("3.0").splitlines()[:-1]) + "\n" + call
    (result,) = run(tmp_path, text).results()
    assert not result.launches
    assert ["could not be seen" in u.reason for u in result.unchecked] == [True]
