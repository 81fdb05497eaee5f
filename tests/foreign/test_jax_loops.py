"""Rules of functions that iterate until a tolerance, which are exact to about that."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from engine.autograd import TapeResult
from engine.foreign import watching
from engine.foreign.watched import ITERATED
from tests.foreign.jax_corpus import HEAD

pytest.importorskip("jax", reason="jax is not installed")

LAYER = """
def solve(g, z):
    def cond(s): return (jnp.linalg.norm(s[0] - s[1]) > 1e-4) & (s[2] < 400)
    def body(s): return s[1], g(s[1]), s[2] + 1
    return jax.lax.while_loop(cond, body, (z, g(z), 0))[1]
@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def layer(f, params, x):
    return solve(lambda z: f(params, x, z), jnp.zeros_like(params["b"]))
def fwd(f, params, x):
    z = layer(f, params, x)
    return z, (params, x, z)
def bwd(f, kept, g):
    params, x, z = kept
    _, by_z = jax.vjp(lambda z: f(params, x, z), z)
    u = solve(lambda u: by_z(u)[0] + g, jnp.zeros_like(g))
    return jax.vjp(lambda p, x: f(p, x, z), params, x)[1](u)
layer.defvjp(fwd, bwd)
def f(p, x, z):
    return jnp.tanh(p["W"] @ z + p["U"] @ x + p["b"])
k = jax.random.split(jax.random.key(3), 4)
params = {"W": jax.random.normal(k[0], (5, 5)) * 0.2, "U": jax.random.normal(k[1], (5, 3)),
          "b": jax.random.normal(k[2], (5,))}
xs = jax.random.normal(k[3], (6, 3))
jax.jit(jax.grad(lambda p, xs: jnp.mean(jax.vmap(lambda x: layer(f, p, x))(xs) ** 2)))(params, xs)
"""

GRADIENTS = """
from jax.scipy.sparse.linalg import cg
M = jax.random.normal(jax.random.key(0), (12, 12))
A = M @ M.T / 12 + 0.3 * jnp.eye(12)
@jax.custom_vjp
def solve(d, s, b):
    return cg(lambda x: s * (A @ x) + d * x, b, tol=1e-5)[0]
def fwd(d, s, b):
    x = solve(d, s, b)
    return x, (d, s, x)
def bwd(kept, g):
    d, s, x = kept
    u = cg(lambda v: s * (A @ v) + d * v, g, tol=1e-5)[0]
    return -u * x, -u @ (A @ x), u
solve.defvjp(fwd, bwd)
b = jax.random.normal(jax.random.key(1), (12,))
loss = lambda d, s, b: jnp.sum(solve(d, s, b) ** 2)
jax.jit(jax.grad(loss, (0, 1, 2)))(jnp.linspace(0.1, 1.0, 12), 1.2, b)
"""

FLAG = """
@jax.custom_vjp
def kepler(m, e):
    def body(s):
        d = s[0] - e * jnp.sin(s[0]) - m
        return s[0] - 0.7 * d, jnp.max(jnp.abs(d)) < 1e-5, s[2] + 1
    start = m, jnp.array(False), 0
    return jax.lax.while_loop(lambda s: ~s[1] & (s[2] < 500), body, start)[0]
def fwd(m, e):
    x = kepler(m, e)
    return x, (x, e)
def bwd(kept, g):
    x, e = kept
    d = 1 - e * jnp.cos(x)
    return g / d, jnp.sum(g * jnp.sin(x) / d)
kepler.defvjp(fwd, bwd)
jax.jit(jax.grad(lambda m, e: kepler(m, e).sum(), (0, 1)))(jnp.linspace(0.2, 3.0, 9), 0.4)
"""

# What is wrong in each by more than the iteration leaves.
SPOILED = {
    "layer": (LAYER, ("(u)\nlayer", "(g)\nlayer"), ("(u)\nlayer", "(u - 0.05 * g)\nlayer")),
    "gradients": (GRADIENTS, ("-u * x", "-u * u"), ("-u @ (A @ x)", "-u @ x")),
    "flag": (FLAG, ("jnp.sin(x) / d", "jnp.sin(x)"), ("g / d,", "0.98 * g / d,")),
}
EXACT = """
@jax.custom_vjp
def root(a):
    go_on = lambda s: jnp.abs(s * s - a) > 1e-9
    return jax.lax.while_loop(go_on, lambda s: 0.5 * (s + a / s), a)
root.defvjp(lambda a: (root(a), a), lambda a, g: (g * slope(a),))
jax.grad(root)(1.7)
"""


def checked(folder: Path, text: str) -> TapeResult:
    file = folder / "program.py"
    file.write_text(HEAD + text)
    with watching() as watched:
        runpy.run_path(str(file), run_name="__main__")
    (result,) = watched.results()
    return result


def verdicts(result: TapeResult) -> set[str]:
    return {p.verdict for x in result.launches for p in x.pairs}


@pytest.mark.parametrize("name", SPOILED)
def test_right(name: str, tmp_path: Path) -> None:
    result = checked(tmp_path, SPOILED[name][0])
    assert verdicts(result) == {"pass"}
    assert {u.reason for u in result.unchecked} == {ITERATED}


def test_what_is_allowed_for_is_told(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(HEAD + LAYER)
    with watching() as watched:
        runpy.run_path(str(file), run_name="__main__")
    (result,) = watched.results()
    (left,) = result.unchecked
    assert left.what == "the gradient of function `layer` below a relative error of 1e-02"
    assert "iterates until a tolerance" in left.reason and left.site.file == str(file)


@pytest.mark.parametrize(("name", "k"), [(n, k) for n in SPOILED for k in (0, 1)])
def test_wrong_by_more_than_is_left(name: str, k: int, tmp_path: Path) -> None:
    text, *spoilers = SPOILED[name]
    before, after = spoilers[k]
    assert text.count(before) == 1
    assert "fail" in verdicts(checked(tmp_path, text.replace(before, after)))


def test_a_tight_tolerance_is_compared_as_closely_as_ever(tmp_path: Path) -> None:
    text = "jax.config.update('jax_enable_x64', True)\n" + EXACT
    right = "slope = lambda a: 0.5 / jnp.sqrt(a)\n"
    assert verdicts(checked(tmp_path, right + text)) == {"pass"}
    assert verdicts(checked(tmp_path, right.replace("0.5", "0.50005") + text)) == {"fail"}
