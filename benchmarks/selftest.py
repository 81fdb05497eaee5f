"""The corpus of `adtool selftest`, checked by it and by Warp's gradcheck.

Run with `python -m benchmarks.selftest`; writes SELFTEST.md.
Warp's adjoints cannot be spoiled from outside, so the gradients are, after its backward pass
has computed them: by the same factors, or in one element. A false alarm may also be a right
one: its gradient of some of the kernels (with loops that carry values, with components assigned
more than once) is wrong as it stands.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from adtool.selftest.case import Arr, Case
from adtool.selftest.run import Outcome, corpus, run
from adtool.selftest.score import Score, by, score
from benchmarks.table import table

CORPUS = Path(__file__).parents[1] / "adtool" / "selftest" / "corpus"
LARGEST = 64  # elements of an array; its cost grows with inputs times outputs


def element(k: int, factor: float) -> Callable[[Any], Any]:
    """Spoils one element."""

    def spoil(g: Any) -> Any:
        out = g.copy()
        out.reshape(-1)[k % g.size] *= factor
        return out

    return spoil


SPOILERS: dict[str, Callable[[Any], Any]] = {
    "factor 1.0001": lambda g: g * 1.0001,
    "factor 1.001": lambda g: g * 1.001,
    "factor 1.01": lambda g: g * 1.01,
    "factor 1.5": lambda g: g * 1.5,
    "sign": lambda g: -g,
    "zero": lambda g: g * 0.0,
    "one element": element(1, 1.01),
    "swapped index": lambda g: np.roll(g, 1, axis=0),
}


def cases(folder: Path) -> list[Case]:
    """The corpus with Warp's kernels."""
    out: list[Case] = []
    for name in ("scalars", "arrays", "vectors"):
        text = (
            (CORPUS / f"{name}.py").read_text().replace("import engine as wp", "import warp as wp")
        )
        path = folder / f"warp_{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        out += module.CASES
    return out


def judge(case: Case, spoil: Callable[[Any], Any] | None) -> str:
    """What `warp.autograd.gradcheck` says at its default settings."""
    import warp as wp
    from warp.autograd import gradcheck

    internals: Any = wp._src  # the active tape has no public name

    def made(a: Arr) -> Any:
        dtype = {"float": float, "int": int}.get(a.dtype) or getattr(wp, a.dtype)
        return wp.array(np.asarray(a.values), dtype=dtype, requires_grad=a.dtype != "int")

    inputs, outputs = [made(a) for a in case.inputs], [made(a) for a in case.outputs]
    moving = [a for a, given in zip(inputs, case.inputs, strict=True) if given.dtype != "int"]

    def function(*args: Any) -> Any:
        tape = internals.context.runtime.tape

        def spoiled() -> None:
            assert spoil is not None
            for a in moving:
                a.grad.assign(spoil(a.grad.numpy()).astype(a.grad.numpy().dtype))

        if tape is not None and spoil is not None:
            tape.record_func(spoiled, moving)  # runs last in the backward pass
        for a in outputs:
            a.zero_()
        wp.launch(case.kernel, dim=case.dim, inputs=list(args), outputs=outputs)
        return outputs[0]

    try:
        right = gradcheck(function, inputs=inputs, outputs=outputs, raise_exception=False,
                          show_summary=False)  # fmt: skip
    except Exception:
        if "-v" in sys.argv:
            traceback.print_exc()
        return "error"
    return "pass" if right else "fail"


def outcomes() -> list[Outcome]:
    """What Warp's gradcheck says of the kernels that are small enough for it."""
    import warp as wp

    config: Any = wp.config
    config.quiet = True
    initialise: Any = wp.init
    initialise()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(Path(folder)):
            sizes = [np.asarray(a.values).size for a in (*case.inputs, *case.outputs)]
            if max(sizes) > LARGEST or not case.outputs:
                continue
            name = case.kernel.key
            found.append(Outcome(name, case.kind, "", (judge(case, None),)))
            for kind, spoil in SPOILERS.items():
                found.append(Outcome(name, case.kind, kind, (judge(case, spoil),)))
    return found


def main() -> None:
    """Writes the page."""
    import warp as wp

    start = time.monotonic()
    ours = run(corpus())
    middle = time.monotonic()
    theirs = outcomes()
    times = (middle - start, time.monotonic() - middle)
    page = markdown(ours, theirs, times, f"warp-lang {wp.config.version}")
    print(page)
    (Path(__file__).parent / "SELFTEST.md").write_text(page, encoding="utf-8")


def markdown(
    ours: list[Outcome], theirs: list[Outcome], times: tuple[float, float], peer: str
) -> str:
    """The page: both checkers on the kernels that both checked, and ours on all."""
    small = {o.kernel for o in theirs}
    shared = [o for o in ours if o.kernel in small]

    def rows(key: Callable[[Outcome], str]) -> list[list[str]]:
        found = {s.name: s for s in by(theirs, key)}
        mine = {s.name: s for s in by(shared, key)}
        names = [*mine, *(n for n in found if n not in mine)]
        return [[n, *_cells(mine.get(n)), *_cells(found.get(n))] for n in names]

    alarms = ["", "adtool: caught", "adtool: false alarms", "warp: caught", "warp: false alarms"]
    kinds = rows(lambda o: o.kind)
    total = ["all", *_cells(score("", shared)), *_cells(score("", theirs))]
    mutations = [[r[0], r[1], r[3]] for r in rows(lambda o: o.mutation)]
    every = score("", ours)
    return f"""# How well adtool and Warp find wrong gradients

`python -m benchmarks.selftest` measures this: the corpus of `adtool selftest` under adtool, and the
same kernels under `warp.autograd.gradcheck` of {peer} at its default settings. The tables
cover the {len(small)} kernels whose arrays have at most {LARGEST} elements, because the cost of
Warp's check grows with inputs times outputs. For adtool, the benchmark changes the code of the
adjoint. It cannot change the adjoints of Warp from outside, so it changes Warp's gradients after
the backward pass, by the same factors or in one element. An alarm of Warp on a right kernel may be
justified, because Warp's own gradient of some kernels is wrong.

On all {every.right} kernels, `adtool` caught {every.caught} of {every.mutants} wrong gradients,
with {every.alarms} false alarms, in {times[0]:.0f} s. Warp took {times[1]:.0f} s for its part.

{table(alarms, [*kinds, total])}

{table(["mutation", "adtool: caught", "warp: caught"], mutations)}
"""


def _cells(s: Score | None) -> list[str]:
    if s is None:
        return ["-", "-"]
    return [f"{s.caught} of {s.mutants}", f"{s.alarms} of {s.right}"]


if __name__ == "__main__":
    main()
