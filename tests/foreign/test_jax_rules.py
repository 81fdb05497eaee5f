"""Rules of JAX that were written by hand: right ones pass, wrong ones are caught."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.autograd import TapeResult
from engine.foreign import Watched, watching
from engine.foreign.watched import ITERATED
from tests.foreign.jax_corpus import HEAD, PROGRAMS, Program

jax = pytest.importorskip("jax", reason="jax is not installed")

ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, text: str) -> Watched:
    """Runs a program, and looks on."""
    file = folder / "program.py"
    file.write_text(HEAD + text)
    with watching() as watched:
        runpy.run_path(str(file), run_name="__main__")
    return watched


def checked(folder: Path, text: str) -> TapeResult:
    """The check of a program's rules."""
    (result,) = run(folder, text).results()
    return result


def verdicts(result: TapeResult) -> set[str]:
    return {p.verdict for x in result.launches for p in x.pairs}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_right(program: Program, tmp_path: Path) -> None:
    result = checked(tmp_path, program.text)
    assert result.launches and {u.reason for u in result.unchecked} <= {ITERATED}
    assert verdicts(result) <= {"pass", *program.kinks}
    assert verdicts(result)


# The first of each program always, the others with the large tables.
SPOILED = [
    pytest.param(p, s, id=f"{p.name}-{s[1]}", marks=[pytest.mark.sweep] if k else [])
    for p in PROGRAMS for k, s in enumerate(p.spoilers)
]  # fmt: skip


@pytest.mark.parametrize(("program", "spoiler"), SPOILED)
def test_spoiled(program: Program, spoiler: tuple[str, str], tmp_path: Path) -> None:
    assert program.text.count(spoiler[0]) == 1
    result = checked(tmp_path, program.text.replace(*spoiler))
    assert verdicts(result) & {"fail", "nan"}


RULE = """
@jax.custom_vjp
def f(x, y):
    return jnp.sin(x) * y

def fwd(x, y):
    return {}, (x, y)

def bwd(kept, g):
    x, y = kept
    return {}

f.defvjp(fwd, bwd)
x = jnp.array([1.0, 2.0, 3.0])
"""
FIRST, GRADIENT = "f(x, y)", "g * jnp.cos(x) * y, g * jnp.sin(x)"


@pytest.mark.parametrize(
    ("first", "gradient", "told"),
    [
        (FIRST, "(g * jnp.cos(x) * y).sum(), g * jnp.sin(x)", "the shapes do not match"),
        (FIRST, "(g * jnp.cos(x) * y,)", "same container (pytree) structure"),
        (FIRST, "{'x': g, 'y': g}", "same container (pytree) structure"),
        (FIRST, "g * unknown, g", "NameError: name 'unknown' is not defined"),
        (FIRST, "g * jnp.ones(4), g", "incompatible shapes"),
        ("f(x, y)[:2]", GRADIENT, "the first result of `fwd` has shape (2,)"),
        ("(f(x, y), y)", GRADIENT, "the first result of `fwd` has 2 arrays"),
        ("1.01 * f(x, y)", GRADIENT, "the first result of `fwd` is not that of `f`"),
    ],
)
def test_rules_that_no_run_has_met(first: str, gradient: str, told: str, tmp_path: Path) -> None:
    """The program only calls the function, so JAX has not seen what is wrong with its rule."""
    result = checked(tmp_path, RULE.format(first, gradient) + "f(x, x)")
    (launch,) = result.launches
    assert [p.verdict for p in launch.pairs] == ["fail"]
    assert told in launch.pairs[0].reason
    line = "def fwd" if "first result" in told else "def bwd"
    assert line in (tmp_path / "program.py").read_text().splitlines()[launch.span.line - 1]


@pytest.mark.parametrize(
    ("y", "none", "verdicts_of", "missing"),
    [
        ("x", "None", ["pass", "fail"], ("y",)),
        ("x", "jnp.zeros(3)", ["pass", "fail"], ("y",)),
        ("jnp.ones(3)", "None", ["pass"], ()),  # nobody asks for it
        ("jnp.ones(3)", "jnp.zeros(3)", ["pass"], ()),
        ("jnp.ones(3)", "0.9 * g * jnp.sin(x)", ["pass", "fail"], ()),
        ("jnp.zeros(3)", "jax.lax.stop_gradient(g) * jnp.sin(x)", ["pass", "pass"], ()),
    ],
)
@pytest.mark.parametrize("how", ["jax.grad({})(x)", "jax.grad(jax.jit({}))(x)"])
def test_what_is_asked_for(
    y: str, none: str, verdicts_of: list[str], missing: tuple[str, ...], how: str, tmp_path: Path
) -> None:
    call = how.format(f"lambda x: f(x, {y}).sum()")
    text = RULE.format(FIRST, f"g * jnp.cos(x) * y, {none}") + call
    (launch,) = checked(tmp_path, text).launches
    assert [p.verdict for p in launch.pairs] == verdicts_of
    assert launch.by_hand is not None and launch.by_hand.missing == missing
    assert launch.by_hand.zeros == (missing if "zeros" in none else ())


def test_names_of_leaves(tmp_path: Path) -> None:
    text = """
@jax.custom_vjp
def f(params, *rest):
    return {"loss": params["w"][1].sum() * rest[0], "y": params["w"][0]}
def fwd(params, *rest):
    return f(params, *rest), (params, rest)
def bwd(kept, g):
    params, rest = kept
    w = g["loss"] * rest[0] * jnp.ones(2)
    return {"w": [g["y"], w]}, g["loss"] * params["w"][1].sum()
f.defvjp(fwd, bwd)
f({"w": [jnp.ones(2), jnp.array([2.0, 3.0])]}, 4.0)
"""
    (launch,) = checked(tmp_path, text).launches
    assert verdicts(checked(tmp_path, text)) == {"pass"}
    assert {p.input for p in launch.pairs} == {"params['w'][0]", "params['w'][1]", "rest[0]"}
    assert {p.output for p in launch.pairs} == {"result['loss']", "result['y']"}
    (launch,) = checked(tmp_path, text.replace("* params", "* 2.0 * params")).launches
    (worst,) = [p.worst for p in launch.pairs if p.verdict == "fail" and p.worst is not None]
    assert (worst.row_name, worst.col_name) == ("result['loss']", "rest[0]")  # no index of its own


def test_plain_automatic_derivative_is_no_reference(tmp_path: Path) -> None:
    """Where that of the plain function is NaN, and the rule gives what differences give."""
    text = """
@jax.custom_jvp
def sinc(x):
    return jnp.where(x == 0.0, 1.0, jnp.sin(x) / x)
@sinc.defjvp
def rule(primals, tangents):
    (x,), (t,) = primals, tangents
    far = jnp.where(jnp.abs(x) < 1e-2, 1.0, x)
    slope = (far * jnp.cos(far) - jnp.sin(far)) / far**2
    return sinc(x), jnp.where(jnp.abs(x) < 1e-2, -x / 3.0, slope) * t
jax.vmap(jax.grad(sinc))(jnp.array([0.0, 1e-3, 2.0]))
assert np.isnan(jax.grad(sinc.fun)(0.0))
"""
    assert verdicts(checked(tmp_path, text)) == {"pass"}


def test_not_finite_only_where_the_program_is(tmp_path: Path) -> None:
    """A rule that is NaN elsewhere is right; at the program's own values it is G002."""
    text = """
@jax.custom_vjp
def norm(x):
    return jnp.sqrt(jnp.sum(x * x))
norm.defvjp(lambda x: (norm(x), x), lambda x, g: (g * x / norm(x),))
jax.grad(norm)({})
"""
    assert verdicts(checked(tmp_path, text.format("jnp.ones(2)"))) == {"pass"}
    assert verdicts(checked(tmp_path, text.format("jnp.zeros(2)"))) == {"nan"}


def test_second_derivatives(tmp_path: Path) -> None:
    """Of a rule whose own derivative is right, and of one that hides something from JAX."""
    call = "jax.grad(lambda x: f(x, x).sum())(x)"
    for text, expected in (
        (GRADIENT, {"pass"}),
        ("g * jnp.cos(jax.lax.stop_gradient(x)) * y, g * jnp.sin(x)", {"pass", "fail"}),
    ):
        (result,) = run(tmp_path, RULE.format(FIRST, text) + call).results(order=2)
        assert verdicts(result) == expected
        assert {p.output for x in result.launches for p in x.pairs} >= {"adj_x", "adj_y"}


def adtool(folder: Path, text: str, *args: str) -> tuple[int, dict[str, Any]]:
    """`adtool check` of a program: its exit code, and its report."""
    (folder / "program.py").write_text(HEAD + text)
    done = subprocess.run(
        [sys.executable, "-m", "adtool", "check", "--format", "json", *args, "program.py"],
        cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout)


TAPE = """
import engine as wp

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

a = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
b = wp.zeros(2, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(square, dim=2, inputs=[a], outputs=[b])
tape.backward(grads={b: wp.ones(2, dtype=float)})
"""


def test_command_line(tmp_path: Path) -> None:
    """Tapes of the engine and rules of JAX in one table, and the exit codes."""
    call = "jax.jit(jax.grad(lambda x: f(x, x).sum()))(x)\n"
    code, report = adtool(tmp_path, RULE.format(FIRST, GRADIENT) + call + TAPE)
    assert code == 0
    assert [(x["tape"], x["kernel"]) for x in report["launches"]] == [(0, "square"), (1, "f")]
    assert {p["verdict"] for x in report["launches"] for p in x["pairs"]} == {"pass"}

    wrong = RULE.format(FIRST, GRADIENT.replace("jnp.cos", "-jnp.cos")) + call
    code, report = adtool(tmp_path, wrong + TAPE)
    assert code == 1
    (found,) = [f for f in report["findings"] if f["severity"] == "error"]
    assert (found["code"], found["kernel"]) == ("G001", "f")
    assert "custom_vjp `f`" in found["message"]
    source = (tmp_path / "program.py").read_text().splitlines()
    assert source[found["line"] - 1] == "def bwd(kept, g):"

    quiet = wrong.replace("def bwd(kept, g):", "def bwd(kept, g):  # adtool: ignore[G001]")
    code, report = adtool(tmp_path, quiet + TAPE)
    assert code == 0

    code, report = adtool(tmp_path, wrong + TAPE, "--skip-kernel", "f")
    assert code == 0
    assert [x["kernel"] for x in report["launches"]] == ["square"]
