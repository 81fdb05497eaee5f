"""Functions that call two others each, many levels deep: no work is done once for each call."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile import pipeline
from engine.diagnostics import CompilerError

DEEP = 40  # 2 ** 40 calls: what looks at each of them does not end


def module(folder: Path, depth: int) -> Any:
    lines = ["import engine as wp", "F = wp.array(dtype=float)", "", "@wp.func",
             "def f0(a: F, x: float):", "    return a[0] * x"]  # fmt: skip
    for k in range(1, depth + 1):
        lines += ["@wp.func", f"def f{k}(a: F, x: float):",
                  f"    return f{k - 1}(a, x) + f{k - 1}(a, 0.5 * x)"]  # fmt: skip
    lines += ["@wp.kernel", "def kernel(a: F, x: F, y: F):", "    i = wp.tid()",
              f"    y[i] = f{depth}(a, x[i])", ""]  # fmt: skip
    path = folder / f"deep_{depth}.py"
    path.write_text("\n".join(lines))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def arguments() -> list[Any]:
    return [wp.array([v], dtype=float, requires_grad=True) for v in (3.0, 2.0, 0.0)]


def test_what_is_known_of_a_kernel_is_found_function_by_function(tmp_path: Path) -> None:
    kernel = module(tmp_path, DEEP).kernel
    plan = kernel.plan
    v = plan.variants
    assert (v.read, v.written) == ({"a", "x"}, {"y"}) and len(plan.needed) == 3
    assert v.journaled() == frozenset() and v.tangent_ir(frozenset("xy"))
    assert pipeline.ad.inlined_size(v.ir) > 2**DEEP


def test_a_derivative_that_would_not_end_is_refused(tmp_path: Path) -> None:
    kernel = module(tmp_path, DEEP).kernel
    args = arguments()
    kept = [a.numpy().copy() for a in args]
    with pytest.raises(CompilerError, match="E305") as e, wp.Tape() as tape:
        wp.launch(kernel, 1, args)
        tape.backward(grads={args[2]: wp.ones(1, dtype=float)})
    (d,) = e.value.diagnostics
    assert d.span is not None and d.span.file == str(tmp_path / f"deep_{DEEP}.py")
    assert re.search("func_grad", d.help) and "200,000 is the most" in d.notes[0]
    for a, b in zip(args, kept, strict=True):
        np.testing.assert_array_equal(a.numpy(), b)


def test_a_derivative_that_takes_long_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "LONG", 50)
    kernel = module(tmp_path, 5).kernel
    args = arguments()
    with pytest.warns(UserWarning, match=r"it has 1\d\d operations"), wp.Tape() as tape:
        wp.launch(kernel, 1, args)
    tape.backward(grads={args[2]: wp.ones(1, dtype=float)})
    np.testing.assert_allclose(args[1].grad.numpy(), 3.0 * 1.5**5)
