"""Messages of forward mode about handwritten gradients that are not linear in a cotangent."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape, gradcheck, gradcheck_tape, jacobian, jvp


@wp.struct
class Pair:
    a: float
    v: wp.vec3


@wp.func
def twice(x: float, g: float):
    t = g
    t = t * x
    return t, 2.0 * x


@wp.func_native("return g * 2.0f;")
def native(g: float) -> float: ...


@wp.func_native("return x * x;", adj_snippet="adj_x += adj_ret > 0 ? x * adj_ret : 0;")
def squared(x: float) -> float: ...


TEXT = """
import engine as wp
A = wp.array(dtype=float)

@wp.func
def f({parameters}):
    return {result}

@wp.func_grad(f)
def adj_f({parameters}, {cotangents}):
    {body}

@wp.kernel
def run(x: A, y: A):
    i = wp.tid()
    {call}
"""
ONE = ("x: float", "x", "adj_ret: float", "y[i] = f(x[i]) * (x[i] - 1.0)")
TWO = ("a: float, b: float", "a, b", "p: float, q: float", "s, t = f(x[i], x[1])\n    y[i] = s * t")


def kernel(folder: Path, name: str, form: tuple[str, str, str, str], body: str) -> Any:
    """A kernel that calls a function with this gradient, in a file of its own."""
    parameters, result, cotangents, call = form
    body = body.strip("\n").replace("\n", "\n    ")
    text = TEXT.format(
        parameters=parameters, result=result, cotangents=cotangents, call=call, body=body
    )
    path = folder / f"{re.sub('[^a-z]', '_', name)}.py"
    path.write_text(text)
    known = {"Pair": Pair, "twice": twice, "native": native, "squared": squared}
    space: dict[str, Any] = {"__name__": path.stem, "__file__": str(path), **known}
    exec(compile(text, str(path), "exec"), space)
    return space["run"]


def arrays() -> tuple[wp.array, wp.array]:
    x = wp.array([0.5, 1.5, 2.5], dtype=float, requires_grad=True)
    return x, wp.zeros(3, dtype=float, requires_grad=True)


# ---- linear ones: nothing is said, and both modes agree

LINEAR = {
    "a product": (ONE, "wp.adjoint[x] += 2.0 * x * adj_ret"),
    "a difference and a quotient": (ONE, "wp.adjoint[x] -= adj_ret / (x * x + 1.0) - adj_ret"),
    "several results": (TWO, """
wp.adjoint[a] += p * b + q
wp.adjoint[b] += 2.0 * q - p * a"""),
    "vectors": (ONE, """
v = wp.normalize(wp.vec3(x, 1.0, 2.0)) * adj_ret
v[1] += 2.0 * adj_ret
wp.adjoint[x] += wp.dot(wp.cross(v, wp.vec3(x, 2.0, 1.0)), wp.vec3(1.0, 2.0, x))"""),
    "a vector of a number and a cotangent": (ONE, """
v = wp.vec2(0.0)
v[0] = x
v[1] = adj_ret
wp.adjoint[x] += v[0] * v[1]"""),
    "cotangents that are vectors": (
        ("v: wp.vec3, s: float", "v * s", "adj: wp.vec3",
         "y[i] = wp.dot(f(wp.vec3(x[i], 1.0, x[0]), x[i]), wp.vec3(x[i], -2.0, x[1]))"),
        "wp.adjoint[v] += adj * s\nwp.adjoint[s] += 3.0 * wp.dot(adj, v)",
    ),
    "matrices": (ONE, """
m = wp.inverse(wp.mat22(x, 1.0, 2.0, x + 9.0))
v = wp.transpose(m) * (m * wp.vec2(adj_ret, 0.0))
wp.adjoint[x] += v[0] + wp.trace(m * adj_ret)"""),
    "structs": (
        ("s: Pair", "s.a", "adj_ret: float", "y[i] = f(Pair(x[i], wp.vec3(x[i])))"),
        "wp.adjoint[s].a += adj_ret * s.a\nwp.adjoint[s].v += adj_ret * s.v",
    ),
    "float64 on the way": (ONE, "wp.adjoint[x] += float(wp.float64(adj_ret) * wp.float64(x))"),
    "a loop that carries a cotangent": (ONE, """
g = adj_ret
for k in range(4):
    g = g * x + adj_ret
wp.adjoint[x] += g"""),
    "a loop that ends early": (ONE, """
g = adj_ret
w = 1.0
while w < 9.0:
    w = w * (x + 1.0)
    if w > 5.0:
        break
    g += w * adj_ret
wp.adjoint[x] += g"""),
    "a variable that holds a number, then a cotangent": (ONE, """
s = 0.0
for k in range(4):
    s += x * float(k)
w = s
s = 0.0
for k in range(4):
    s += w * adj_ret
wp.adjoint[x] += s"""),
    "a number from a loop, times a cotangent in branches": (ONE, """
g = 1.0
for k in range(3):
    g = g * x
if x > 1.0:
    g = g * adj_ret
else:
    g = -g * adj_ret
wp.adjoint[x] += g"""),
    "functions that are called": (ONE, """
a, b = twice(x, adj_ret)
c, d = twice(x, 1.0)
wp.adjoint[x] += a + b * adj_ret + c * adj_ret * d"""),
    "branches by what is differentiated": (ONE, """
if x < 1.0:
    return
wp.adjoint[x] += wp.where(x > 2.0, adj_ret, 0.0)"""),
    "integers that do not depend on it": (ONE, """
n = int(x * 10.0)
for k in range(3):
    wp.adjoint[x] += x * float(n + k) * adj_ret"""),
    "zero": (ONE, "pass"),
    "a sum of none": (ONE, "wp.adjoint[x] += 0.0 * x"),
    "a message": (ONE, "wp.adjoint[x] += x * adj_ret\nassert x < 1000.0"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(LINEAR))
@pytest.mark.parametrize("of_tape", [True, False])
def test_of_linear_gradients_nothing_is_said(case: str, of_tape: bool, tmp_path: Path) -> None:
    """Warnings are errors here. <w, J v> = <J' w, v>."""
    run = kernel(tmp_path, case, *LINEAR[case])
    x, y = arrays()
    rng = np.random.default_rng(3)
    v, w = (rng.standard_normal(3).astype(np.float32) for _ in range(2))
    with wp.Tape() as tape:
        wp.launch(run, 3, [x, y])
    tape.backward(grads={y: wp.array(w, dtype=float)})
    moved = jvp(tape, tangents={x: v}) if of_tape else jvp(run, 3, [x, y], tangents={x: v})
    ahead, back = moved[y].numpy() * w, x.grad.numpy() * v
    assert abs(ahead.sum() - back.sum()) <= 1e-5 * (np.abs(ahead).sum() + np.abs(back).sum())


# ---- others

ONCE = pytest.mark.cold("a warning that is given once")

BENT = {
    "takes 'max' of it": "wp.adjoint[x] += 2.0 * x * wp.max(adj_ret, 0.0)  # HERE",
    "compares it": "if adj_ret > 0.0:  # HERE\n    wp.adjoint[x] += 2.0 * x * adj_ret",
    "takes 'clamp' of it": "wp.adjoint[x] += 2.0 * x * wp.clamp(adj_ret, -1.0, 1.0)  # HERE",
    "multiplies two that depend on it": "wp.adjoint[x] += 2.0 * x * adj_ret * adj_ret  # HERE",
    "returns a value that does not depend on it": "wp.adjoint[x] += 2.0 * x  # HERE",
    "adds a value to it": "wp.adjoint[x] += x * (adj_ret + 1.0)  # HERE",
    "makes an integer of it": "wp.adjoint[x] += 0.5 * x * float(int(adj_ret * 4.0))  # HERE",
    "adds a value": "n = int(x * 0.0) + 1\nwp.adjoint[x] += x * adj_ret + x * float(n)  # HERE",
    "returns a value": "for k in range(2):  # HERE\n    wp.adjoint[x] += 2.0 * x * float(k)",
    "hands it to the native function": "wp.adjoint[x] += x * native(adj_ret)  # HERE",
}


def bent(folder: Path, why: str) -> Any:
    return kernel(folder, why, ONE, BENT[why])


@ONCE
@pytest.mark.parametrize("why", list(BENT))
@pytest.mark.parametrize("of_tape", [True, False])
def test_what_is_not_linear_is_told_of_once(why: str, of_tape: bool, tmp_path: Path) -> None:
    run = bent(tmp_path, why)
    x, y = arrays()
    with wp.Tape() as tape:
        wp.launch(run, 3, [x, y])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        moved = [
            jvp(tape, tangents={x: np.ones(3)}) if of_tape
            else jvp(run, 3, [x, y], tangents={x: np.ones(3)})
            for _ in range(2)
        ]  # fmt: skip
    (one,) = told
    line = next(k for k, t in enumerate(Path(one.filename).read_text().split("\n"), 1)
                if "# HERE" in t)  # fmt: skip
    assert (Path(one.filename).parent, one.lineno) == (tmp_path, line)
    text = str(one.message)
    assert text.startswith("forward mode takes gradient `adj_f` of `f` at cotangents of one")
    assert f"{why}" in text and f"{one.filename}:{line}" in text and "reverse mode" in text
    # The product rule, with a derivative of f that is the gradient of a cotangent of one.
    at = x.numpy()
    expected = 2 * at * (at - 1) + at
    for m in moved:
        np.testing.assert_allclose(m[y].numpy(), expected, rtol=1e-6)


@ONCE
def test_the_filter_that_the_text_names(tmp_path: Path) -> None:
    run = bent(tmp_path, "compares it")
    x, y = arrays()
    with pytest.raises(UserWarning) as told:
        jvp(run, 3, [x, y], tangents={x: np.ones(3)})
    (name,) = re.findall(r'filterwarnings\("ignore", "(.*)"\)', str(told.value))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", name)
        jvp(run, 3, [x, y], tangents={x: np.ones(3)})


def test_only_where_it_is_asked(tmp_path: Path) -> None:
    """Nothing moves that the function takes; then only the backward pass uses the gradient."""
    run = bent(tmp_path, "compares it")
    x, y = arrays()
    jvp(run, 3, [x, y], tangents={y: np.ones(3)})
    with wp.Tape() as tape:
        wp.launch(run, 3, [x, y])
    tape.backward(grads={y: wp.ones(3, dtype=float)})
    assert x.grad.numpy().any()


def test_of_cpp_nothing_is_known(tmp_path: Path) -> None:
    run = kernel(tmp_path, "native", ("x: float", "x", "adj_ret: float", "y[i] = squared(x[i])"),
                 "wp.adjoint[x] += adj_ret")  # fmt: skip
    x, y = arrays()
    moved = jvp(run, 3, [x, y], tangents={x: np.ones(3)})
    assert moved[y].list() == x.list()  # its gradient for a cotangent of 1, without a warning


def test_jacobians_are_those_of_reverse_mode(tmp_path: Path) -> None:
    """Forward mode would take one column for what takes reverse mode a row for each element."""
    call = "y[i] = -f(x[0]) * float(i + 1)"
    run = kernel(tmp_path, "jacobians", ("x: float", "x", "adj_ret: float", call),
                 BENT["takes 'max' of it"])  # fmt: skip
    x = wp.array([1.5], dtype=float, requires_grad=True)
    y = wp.zeros(50, dtype=float, requires_grad=True)
    for sparse in (True, False):
        (found,) = jacobian(run, 50, [x], [y], sparse=sparse).values()
        dense = found.toarray() if sparse else found.numpy()
        assert not np.any(dense)  # each cotangent of `f` is negative


@wp.func
def positive(x: float):
    return x * x


@wp.func_grad(positive)
def adj_positive(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * wp.max(adj_ret, 0.0)


@wp.func
def cube(x: float):
    return x * x * x


@wp.func_grad(cube)
def adj_cube(x: float, adj_ret: float):
    wp.adjoint[x] += 3.0 * x * x * adj_ret


@ONCE
@pytest.mark.parametrize("inner", [positive, cube])
@pytest.mark.parametrize("rounds", [0, 2])
def test_the_derivative_of_a_function_in_a_kernel(inner: Any, rounds: int) -> None:
    """It is by forward mode where the function has loops, and by its adjoint elsewhere."""
    if rounds:

        @wp.func
        def below(x: float):
            s = 0.0
            for k in range(rounds):
                s -= inner(x)
            return s
    else:

        @wp.func
        def below(x: float):
            return -inner(x)

    @wp.kernel(module="unique")
    def slopes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = wp.grad(below)(x[i])

    x, y = arrays()
    wanted = rounds and inner is positive
    with pytest.warns(UserWarning, match="`adj_positive`.*So `grad`") if wanted else nullcontext():
        wp.launch(slopes, 3, [x, y])
    wp.launch(slopes, 3, [x, y])
    if inner is cube:
        np.testing.assert_allclose(y.numpy(), -max(rounds, 1) * 3 * x.numpy() ** 2, rtol=1e-6)


@ONCE
def test_checks_say_it_themselves(tmp_path: Path) -> None:
    """They use forward mode, too, and tell of what is not linear as a wrong gradient."""
    run = bent(tmp_path, "takes 'max' of it")
    x, y = arrays()
    with wp.Tape() as tape:
        wp.launch(run, 3, [x], [y])
    assert "fail" in {p.verdict for launch in check_tape(tape).launches for p in launch.pairs}
    quiet: dict[str, Any] = {"raise_exception": False, "show_summary": False}
    assert not gradcheck(run, 3, [x], [y], **quiet)
    assert not gradcheck_tape(tape, **quiet)
    with pytest.raises(UserWarning, match="forward mode"):  # it was not told before
        jvp(run, 3, [x, y], tangents={x: np.ones(3)})


PROGRAM = TEXT.format(parameters="x: float", result="x", cotangents="adj_ret: float",
                      body=BENT["compares it"].replace("\n", "\n    "), call=ONE[3]) + """
@wp.func
def summed(x: float):
    s = 0.0
    for k in range(2):
        s += f(x)
    return s

@wp.kernel(module="unique")
def slope(x: A, y: A):
    y[0] = wp.grad(summed)(x[0])

import sys
x, y = wp.array([0.5], dtype=float), wp.zeros(1, dtype=float)
if "grad" in sys.argv:
    wp.launch(slope, 1, [x, y])
else:
    y = wp.autograd.jvp(run, 1, [x, y], tangents={x: [1.0]})[y]
print(y.numpy().tolist(), "engine.frontend.lowering" in sys.modules)
"""  # fmt: skip


@pytest.mark.cold("an empty cache of the test's own")
@pytest.mark.host("kernels of GPUs are lowered in each process")
@pytest.mark.parametrize(
    ("how", "printed"),
    [("jvp", ["[0.0] True\n", "[0.0] False\n"]), ("grad", ["[2.0] True\n", "[2.0] True\n"])],
)
def test_a_kernel_that_an_earlier_process_compiled(how: str, printed: Any, tmp_path: Path) -> None:
    """It is not lowered again for `jvp`; kernels whose `grad` may be another are not kept."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    env = {**os.environ, "ENGINE_CACHE_DIR": str(tmp_path / "cache"), "ENGINE_VERIFY_IR": "0"}

    def started() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-W", "default", str(path), how], env=env,
                              text=True, capture_output=True, timeout=600)  # fmt: skip

    cold, warm = started(), started()
    assert cold.returncode == warm.returncode == 0, cold.stderr + warm.stderr
    assert [cold.stdout, warm.stdout] == printed
    for p in (cold, warm):
        assert p.stderr.count("UserWarning: forward mode takes gradient `adj_f` of `f`") == 1
