"""Rules of functions that compute a part in another precision than the rest."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from engine.foreign import watching
from tests.foreign.jax_corpus import HEAD
from tests.sweeps import reduced

pytest.importorskip("jax", reason="jax is not installed")

# What it gives by `g` is smooth in float64, what it gives by `x` has steps of float32.
NORM = """
jax.config.update("jax_enable_x64", OUTER == "float64")
@jax.custom_vjp
def norm(x, g):
    y = x.astype("float32")
    r = jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6)
    return (y * r * g).astype(x.dtype)
def fwd(x, g):
    return norm(x, g), (x, g)
def bwd(kept, w):
    x, g = kept
    y, w = x.astype("float32"), w.astype("float32")
    r = jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6)
    d = w * g
    dx = r * (d - y * r * r * jnp.mean(d * y, -1, keepdims=True))
    return dx.astype(x.dtype), (w * y * r).sum(0).astype(g.dtype)
norm.defvjp(fwd, bwd)
x = jax.random.normal(jax.random.key(0), (4, 8)).astype(OUTER)
g = jnp.linspace(0.5, 1.5, 8)
loss = lambda x, g: jnp.sum(jnp.tanh(norm(x, g).astype("float32")))
jax.jit(jax.grad(loss, (0, 1)))(x, g)
"""
SPOILED = ("y * r * r * jnp", "y * r * jnp"), ("w * y * r)", "w * y)")


def verdicts(folder: Path, text: str, outer: str) -> set[str]:
    file = folder / "program.py"
    file.write_text(f"OUTER = {outer!r}\n{HEAD}{text}")
    with watching() as watched:
        runpy.run_path(str(file), run_name="__main__")
    (result,) = watched.results()
    assert not result.unchecked
    return {p.verdict for x in result.launches for p in x.pairs}


TYPES = ["bfloat16", "float16", "float32", "float64"]


@pytest.mark.parametrize("outer", reduced(TYPES, {"bfloat16", "float64"}.__contains__))
def test_rounded_inside_beside_what_is_not(outer: str, tmp_path: Path) -> None:
    assert verdicts(tmp_path, NORM, outer) == {"pass"}


@pytest.mark.parametrize("outer", ["bfloat16", "float64"])
@pytest.mark.parametrize("spoiler", SPOILED)
def test_wrong_ones_are_caught(outer: str, spoiler: tuple[str, str], tmp_path: Path) -> None:
    assert NORM.count(spoiler[0]) == 1
    assert "fail" in verdicts(tmp_path, NORM.replace(*spoiler), outer)
