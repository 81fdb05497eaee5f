"""Random kernels in source text: compiled code, the interpreter, Python, and both modes.

For each program: the compiled kernel leaves what the interpreter of its IR leaves, and
what Python makes of the text; <J v, w> = <v, J' w>; and that is the float64 difference
along v, where no branch lies within the step. In single precision the same, but for
differences. `ENGINE_SOURCES` sets how many programs run (default 6).
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import jvp
from engine.compile.pipeline import prefetch
from engine.diagnostics import EngineError
from engine.frontend.lowering.handlers import EXPRESSIONS, STATEMENTS
from engine.ir import interp
from engine.ir.nodes import Break
from engine.ir.ops import OPS, Elementwise
from tests.corpus import compound as c
from tests.property.meaning import Meaning
from tests.property.modules import module

COUNT = int(os.environ.get("ENGINE_SOURCES", "6"))
FIRST = int(os.environ.get("ENGINE_SOURCES_FROM", "0"))
SEEDS = range(FIRST, FIRST + COUNT)
READ = int(os.environ.get("ENGINE_SOURCES_READ", "8"))  # programs that are not compiled
READ_FROM = 100_000
SINGLE = SEEDS[::6]  # those that run in single precision, too
BATCH = 20  # kernels of a module, compiled together
DIRECTIONS = 2
FORMS = ("forward", "recorded", "adjoint")
Module = Any


class Loaded:
    """A module of text as the compiler sees it, and as Python sees it."""

    def __init__(self, folder: Path, seeds: list[int], scalar: str, ahead: bool = True) -> None:
        text = module(seeds, scalar)
        path = folder / f"sources_{scalar}_{seeds[0]}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        self.names: Module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.names)
        self.meaning = Meaning(text, self.names) if scalar == "float64" else None
        self.scalar = getattr(wp, scalar)
        if ahead:
            self.compile(seeds)

    def compile(self, seeds: list[int]) -> None:
        """Compiles all that the checks need of all kernels, together."""
        found = [(s, getattr(self.names, f"kernel_{s}")) for s in seeds]
        requests = []
        for seed, kernel in found:
            plan = kernel.plan
            values = plan.split(arguments(seed, self))
            wrt = kernel.variants.differentiable
            journaled = kernel.variants.journaled(plan.aliased(values))
            requests += [(plan.backend, kernel.variants, form, wrt, journaled) for form in FORMS]
            requests.append((plan.backend, kernel.variants, "tangent", wrt, frozenset()))
        prefetch(requests)


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, str], Loaded]:
    made: dict[tuple[int, str], Loaded] = {}
    folder = tmp_path_factory.mktemp("sources")

    def get(seed: int, scalar: str = "float64") -> Loaded:
        seeds = SEEDS if scalar == "float64" else SINGLE
        at = seeds.index(seed) // BATCH * BATCH
        if (at, scalar) not in made:
            made[at, scalar] = Loaded(folder, list(seeds[at : at + BATCH]), scalar)
        return made[at, scalar]

    return get


def arguments(seed: int, m: Loaded) -> list[Any]:
    """Arguments with random contents; in some programs two of them share memory."""
    rng = np.random.default_rng(seed)
    t, T = m.names, m.scalar

    def numbers(*shape: int) -> np.ndarray:
        return rng.uniform(-1.5, 1.5, shape).astype(np.float32).astype(np.float64)

    def floats(*shape: int, element: Any = None) -> Any:
        return wp.array(numbers(*shape), dtype=element or T, requires_grad=True)

    def records(cls: Any, count: int) -> Any:
        data = np.zeros(count, cls.numpy_dtype())
        for _, part in c.fields_of(data):
            whole = part.dtype.kind != "f"
            part[...] = rng.integers(0, 2, part.shape) if whole else numbers(*part.shape)
        return wp.array(data, dtype=cls, requires_grad=True)

    a, grid, u = floats(4), floats(4, 4), floats(4, 3, element=t.V3)
    net = t.Net(w=floats(4), t=floats(4, 4), c=records(t.Pair, 4),
                p=t.Pair(rng.uniform(-1, 1), t.V3(*numbers(3))))  # fmt: skip
    if seed % 5 == 0:
        net.w = a
    if seed % 7 == 0:
        net.t = grid
    ix = wp.indexedarray(floats(6), [wp.array([4, 0, 5, 2], dtype=int)])
    return [a, grid, u, records(t.Node, 3), net, ix, 3]


def on_the_host(seed: int, m: Loaded) -> list[Any]:
    """The same where Python can write them: for what means a text without the compiler."""
    with wp.ScopedDevice("cpu"):
        return arguments(seed, m)


def launch(kernel: Any, dim: int, args: list[Any]) -> list[Any]:
    """The arguments after a launch on copies."""
    own = copy.deepcopy(args)
    wp.launch(kernel, dim=dim, inputs=own)
    return own


def interpreted(kernel: Any, dim: int, args: list[Any]) -> list[Any]:
    own = copy.deepcopy(args)
    values = [v.numpy() if isinstance(v, wp.array) else v for v in kernel.plan.split(own)]
    interp.run(kernel.ir, values, dim)
    return own


def contents(args: list[Any]) -> dict[str, np.ndarray]:
    return {k: a.numpy() for k, a in c.differentiable(args).items()}


def assert_same(got: list[Any], expected: list[Any], rtol: float) -> None:
    for (name, x), y in zip(contents(got).items(), contents(expected).values(), strict=True):
        for (path, p), (_, q) in zip(c.fields_of(x), c.fields_of(y), strict=True):
            np.testing.assert_allclose(
                p.astype(np.float64), q.astype(np.float64), rtol, rtol, err_msg=name + path
            )


def dot(x: dict[str, np.ndarray], y: dict[str, np.ndarray]) -> tuple[float, float]:
    """The inner product over all float fields, and the sum of the sizes of its terms."""
    terms = [p * q for k in x for p, q in zip(c.parts(x[k]), c.parts(y[k]), strict=True)]
    return sum(float(t.sum()) for t in terms), sum(float(np.abs(t).sum()) for t in terms)


def moved(args: list[Any], direction: dict[str, np.ndarray], h: float) -> list[Any]:
    own = copy.deepcopy(args)
    for name, a in c.differentiable(own).items():
        data = a.numpy()
        for p, v in zip(c.parts(data), c.parts(direction[name]), strict=True):
            p += h * v
        if not a.device.is_cpu:
            a.assign(data)
    return own


def slope(kernel: Any, dim: int, args: list[Any], v: Any, w: Any) -> tuple[float, float]:
    """d <w, outputs> along v by differences, and how far two steps disagree."""

    def loss(h: float) -> float:
        return dot(contents(launch(kernel, dim, moved(args, v, h))), w)[0]

    found = [(loss(h) - loss(-h)) / (2 * h) for h in (4e-6, 2e-6)]
    return (4 * found[1] - found[0]) / 3, abs(found[1] - found[0])


class Differentiated:
    """J' w and J v of a kernel at its arguments. `dim` is 1 where more threads would clash."""

    def __init__(self, kernel: Any, args: list[Any], seed: int) -> None:
        self.kernel, self.args, self.dim = kernel, args, 2
        self.weights = c.weights_of(args, f"w{seed}")
        try:
            self.grads = self._grads()
        except EngineError as e:
            assert "E407" in str(e)
            self.dim = 1
            self.grads = self._grads()
        self.after = self.own

    def _grads(self) -> dict[str, np.ndarray]:
        self.own = copy.deepcopy(self.args)
        with wp.Tape() as tape:
            wp.launch(self.kernel, dim=self.dim, inputs=self.own)
        found = c.differentiable(self.own)
        tape.backward(grads={a: self.weights[k] for k, a in found.items()})
        return {k: a.grad.numpy() for k, a in found.items()}

    def pushed(self, v: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = c.differentiable(self.args)
        out = jvp(self.kernel, self.dim, self.args, tangents={a: v[k] for k, a in found.items()})
        return {k: out[a].numpy() if a in out else v[k] for k, a in found.items()}


def check(seed: int, m: Loaded) -> bool:
    """Checks one program in double precision. True where differences could be trusted."""
    kernel, args = getattr(m.names, f"kernel_{seed}"), arguments(seed, m)
    d = Differentiated(kernel, args, seed)
    after = launch(kernel, d.dim, args)
    assert_same(after, interpreted(kernel, d.dim, on_the_host(seed, m)), 1e-11)
    assert_same(d.after, after, 0.0 if wp.get_device().is_cpu else 1e-14)  # sums have no order
    assert m.meaning is not None
    told = on_the_host(seed, m)
    m.meaning.run(f"kernel_{seed}", d.dim, told)
    assert_same(after, told, 1e-9)
    if not all(np.isfinite(p).all() for x in contents(after).values() for p in c.parts(x)):
        return False  # such as the rotation of a quaternion that is zero
    trusted = False
    for k in range(DIRECTIONS):
        v = c.weights_of(args, f"v{seed}{k}")
        ahead, size = dot(d.pushed(v), d.weights)
        back, other = dot(v, d.grads)
        assert abs(ahead - back) <= 1e-11 * (size + other + 1.0)
        expected, apart = slope(kernel, d.dim, args, v, d.weights)
        if apart < 1e-5 * (1.0 + abs(expected)):
            trusted = True
            assert abs(expected - back) <= 2e-6 * (1.0 + abs(expected)), (expected, back)
    return trusted


@pytest.mark.parametrize("seed", SEEDS)
def test_compiled_source_is_right_in_both_modes(seed: int, load: Any) -> None:
    if not check(seed, load(seed)):
        pytest.skip("a branch lies within the difference step, or a result is not finite")


def agrees(seed: int, m: Loaded) -> bool:
    """Whether Python and the interpreter, which compiles nothing, make the same of a text."""
    args = on_the_host(seed, m)
    after, told = interpreted(getattr(m.names, f"kernel_{seed}"), 2, args), copy.deepcopy(args)
    assert m.meaning is not None
    m.meaning.run(f"kernel_{seed}", 2, told)
    try:
        assert_same(after, told, 1e-9)
    except AssertionError:
        return False
    return True


def test_interpreted_source_means_what_python_says(tmp_path: Path) -> None:
    seeds = list(range(READ_FROM, READ_FROM + READ))
    m = Loaded(tmp_path, seeds, "float64", ahead=False)
    assert [seed for seed in seeds if not agrees(seed, m)] == []


@pytest.mark.parametrize("seed", SINGLE)
def test_single_precision_agrees_with_itself(seed: int, load: Any) -> None:
    m = load(seed, "float32")
    kernel, args = getattr(m.names, f"kernel_{seed}"), arguments(seed, m)
    d = Differentiated(kernel, args, seed)
    v = c.weights_of(args, f"v{seed}")
    ahead, size = dot(d.pushed(v), d.weights)
    back, other = dot(v, d.grads)
    assert abs(ahead - back) <= 1e-4 * (size + other + 1.0)


# ---- these tests see what is wrong

SMALL = 55  # a program that is short and uses what is spoiled here


def caught(folder: Path) -> bool:
    try:
        return not check(SMALL, Loaded(folder, [SMALL], "float64"))
    except AssertionError:
        return True


def scaled(rule: Any, factor: float) -> Any:
    return lambda *a: [None if x is None else x * factor for x in rule(*a)]


def test_a_wrong_partial_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both modes use it, so that only differences can tell."""
    op = OPS["sin"]
    wrong = Elementwise(scaled(op.derivative.partials, 1.0001))
    monkeypatch.setitem(OPS, "sin", replace(op, derivative=wrong))
    assert caught(tmp_path)


def test_a_wrong_forward_rule_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    op = OPS["extract"]
    right = op.derivative.jvp
    wrong = replace(op.derivative, jvp=lambda *a: None if right(*a) is None else right(*a) * 1.001)
    monkeypatch.setitem(OPS, "extract", replace(op, derivative=wrong))
    assert caught(tmp_path)


def _break(cx: Any, node: ast.Continue) -> None:
    """`continue` taken for `break`."""
    cx.b.add(Break(cx.b.span))


def _or_equal(cx: Any, node: ast.Compare) -> Any:
    """`<` taken for `<=`."""
    ops = [ast.LtE() if isinstance(op, ast.Lt) else op for op in node.ops]
    other = ast.Compare(node.left, ops, node.comparators)
    return EXACT[ast.Compare](cx, ast.copy_location(other, node))


def _truncated(cx: Any, node: ast.BinOp) -> Any:
    """`a // b` rounded towards zero."""
    if isinstance(node.op, ast.FloorDiv):
        text = f"int(float({ast.unparse(node.left)}) / float({ast.unparse(node.right)}))"
        made = ast.parse(text, mode="eval").body
        for inner in ast.walk(made):
            ast.copy_location(inner, node)
        return cx.lowering.expressions[ast.Call](cx, made)
    return EXACT[ast.BinOp](cx, node)


def _one_by_one(cx: Any, node: ast.Assign) -> None:
    """`x, y = y, x` as two assignments, the second of which sees the first."""
    target = node.targets[0]
    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        for place, value in zip(target.elts, node.value.elts, strict=True):
            EXACT[ast.Assign](cx, ast.copy_location(ast.Assign([place], value), node))
    else:
        EXACT[ast.Assign](cx, node)


EXACT: dict[type[ast.AST], Any] = {**EXPRESSIONS, **STATEMENTS}
# What a frontend might take a node for, and a program that shows it.
WRONG = [
    (ast.Continue, _break, 116),
    (ast.Compare, _or_equal, 100),
    (ast.BinOp, _truncated, 101),
    (ast.Assign, _one_by_one, 108),
]


@pytest.mark.parametrize(("node", "wrong", "seed"), WRONG, ids=[w.__name__ for _, w, _ in WRONG])
def test_a_wrong_meaning_is_seen(
    node: Any, wrong: Any, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every mode would follow a frontend that reads a node wrong; Python does not."""
    assert agrees(seed, Loaded(tmp_path, [seed], "float64", ahead=False))
    table: Any = EXPRESSIONS if node in EXPRESSIONS else STATEMENTS
    monkeypatch.setitem(table, node, wrong)
    again = tmp_path / "again"
    again.mkdir()
    assert not agrees(seed, Loaded(again, [seed], "float64", ahead=False))
