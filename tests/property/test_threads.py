"""Claims about the threads of a launch agree with their accesses, one by one.

The interpreter runs random kernels, their adjoints and tangents, and notes which thread touches
which element. `ENGINE_PROGRAMS` sets how many kernels run (default 100).
"""

from __future__ import annotations

import collections
import importlib
import importlib.util
import os
from typing import Any

import numpy as np
import pytest

from engine.ad.threads import Classes, Given, apart, classify, collect
from engine.ad.threads.bounds import Bounds
from engine.ir import interp
from engine.ir import nodes as n
from engine.lang.types import ArrayType
from tests.property.indices import HEAD, Writer

# The modules, not the functions of their names.
classifying = importlib.import_module("engine.ad.threads.classify")
collecting = importlib.import_module("engine.ad.threads.collect")
COUNT = int(os.environ.get("ENGINE_PROGRAMS", "100"))
BATCH = 25
SHAPES = {"x": (6,), "y": (7,), "z": (3, 4)}
WRT = frozenset(SHAPES)
N = 4
Touched = dict[str, dict[tuple[int, ...], dict[int, set[str]]]]


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> Touched:
    """Array -> index -> thread -> what it did, of all that the interpreter runs."""
    out: Touched = {}

    def place(self: Any, s: Any) -> tuple[Any, tuple[int, ...]]:
        array = self.value(s.array, s.span)
        at = tuple(int(i) for i in self.values(s.index, s.span))
        kind = s.kind if isinstance(s, n.Atomic) else type(s).__name__
        names = self.names if hasattr(self, "names") else {}
        name = names.get(id(array), str(id(array)))
        seen = out.setdefault(name, {}).setdefault(at, {}).setdefault(self.index, set())
        seen.add(kind)
        # An index outside of the array is one all the same; what is there does not matter.
        return array, tuple(i % size for i, size in zip(at, array.shape, strict=True))

    monkeypatch.setattr(interp._Thread, "place", place)
    return out


def classes_of(fn: n.Function, dim: tuple[int, ...]) -> Classes:
    shapes = {p.name: SHAPES[p.name.removeprefix("adj_").removeprefix("tan_")]
              for p in fn.params if isinstance(p.type, ArrayType)}  # fmt: skip
    given = {Given(a, d): size for a, shape in shapes.items() for d, size in enumerate(shape)}
    given[Given("n")] = N
    return classify(collect(fn), dim, given, {a: k for k, a in enumerate(shapes)})


def interpreted(fn: n.Function, dim: tuple[int, ...], touched: Touched) -> Touched:
    """Runs a kernel; gives what it touched, by names of parameters."""
    touched.clear()
    args: list[Any] = []
    ids = {}
    for p in fn.params:
        if isinstance(p.type, ArrayType):
            shape = SHAPES[p.name.removeprefix("adj_").removeprefix("tan_")]
            args.append(np.ones(shape, np.float32))
            ids[str(id(args[-1]))] = p.name
        else:
            args.append(N)
    interp.run(fn, args, dim, max_steps=5000)
    return {ids[key]: elements for key, elements in touched.items()}


def false_claims(classes: Classes, found: Touched, dim: tuple[int, ...]) -> list[str]:
    """What was said of a launch and is not so."""
    out = []
    axis = next((d for d, size in enumerate(dim) if size > 1), 0)
    said = {name: g for g in classes.groups for name in g.names}
    for name, elements in found.items():
        g = said[name]
        for at, threads in elements.items():
            kinds = set().union(*threads.values())
            rows = [int(np.unravel_index(t, dim)[axis]) for t in threads]
            apart = max(rows) - min(rows)
            if g.sharing == "shared" and kinds != {"Load"}:
                out.append(f"{name}{at} is written")
            if g.sharing == "owned" and kinds != {"Load"} and len(threads) > 1:
                out.append(f"{name}{at} is of threads {sorted(threads)}")
            if g.sharing == "accumulate" and not kinds <= {"add", "sub"}:
                out.append(f"{name}{at}: {kinds}")
            if g.sharing == "replace" and kinds not in ({"max"}, {"min"}):
                out.append(f"{name}{at}: {kinds}")
            if g.sharing == "accumulate" and g.reach is not None and apart > g.reach:
                out.append(f"{name}{at} is of threads {apart} apart, not {g.reach}")
    return out


def load(folder: Any, first: int, writer: type[Writer] = Writer) -> tuple[list[Any], list[Writer]]:
    writers = [writer(seed) for seed in range(first, first + BATCH)]
    text = HEAD + "\n".join(w.kernel(f"kernel_{k}") for k, w in enumerate(writers))
    path = folder / f"indices_{first}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [getattr(module, f"kernel_{k}") for k in range(BATCH)], writers


def check(folder: Any, first: int, touched: Touched) -> collections.Counter[str]:
    """How many arrays of each kind were told of; fails where what was told is not so."""
    kernels, writers = load(folder, first)
    told: collections.Counter[str] = collections.Counter()
    for kernel, w in zip(kernels, writers, strict=True):
        v = kernel.plan.variants
        forms = [v.ir, v.tangent_ir(WRT)]
        if not v.needs_journal(WRT, v.journaled()):
            forms.append(v.adjoint_ir(WRT, v.journaled()).fn)
        for fn in forms:
            classes = classes_of(fn, w.dim)
            try:
                found = interpreted(fn, w.dim, touched)
            except interp.InterpError:
                continue
            wrong = false_claims(classes, found, w.dim)
            assert not wrong, f"{wrong[0]}, dim={w.dim}\n{fn}"
            told.update(g.sharing for g in classes.groups)
    return told


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_what_is_said_of_threads_is_so(first: int, tmp_path: Any, touched: Touched) -> None:
    told = check(tmp_path, first, touched)
    assert told["owned"] > 10 and told["ordered"] > 5 and told["accumulate"] > 5, told


def blind_to_wrapping(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bounds, "holds", lambda self, v, facts=(): True)


def blind_to_other_axes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(apart._Equation, "_width", lambda self, c: 0)


def blind_to_the_rest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(apart._Equation, "_rest", lambda self: (0, 0) if self.usable else None)


def other_branch(patch: pytest.MonkeyPatch) -> None:
    right = collecting.compared

    def wrong(op: str, a: Any, b: Any) -> Any:
        c = right(op, a, b)
        return collecting.Condition(c.false, c.true)

    patch.setattr(collecting, "compared", wrong)


def loops_keep_values(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(collecting.n, "set_in", lambda block: {})


def nearer_than_they_are(patch: pytest.MonkeyPatch) -> None:
    right = classifying._reach
    patch.setattr(classifying, "_reach", lambda n, a: max((right(n, a) or 0) - 1, 0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "fault",
    [blind_to_wrapping, blind_to_other_axes, blind_to_the_rest, other_branch, loops_keep_values,
     nearer_than_they_are],
)  # fmt: skip
def test_a_wrong_proof_is_seen(
    fault: Any, tmp_path: Any, touched: Touched, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    seen = False
    for first in range(0, 4 * BATCH, BATCH):
        try:
            check(tmp_path, first, touched)
        except AssertionError:
            seen = True
            break
    assert seen
