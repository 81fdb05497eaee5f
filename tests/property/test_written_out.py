"""Loops that are written out mean what the loops mean: random kernels, and their gradients.

`ENGINE_PROGRAMS` sets how many the interpreter runs (default 60), `ENGINE_COMPILED_PROGRAMS` how
many are compiled (default 8), `ENGINE_PROGRAMS_FROM` the first seed.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import ad
from engine.ir import interp
from engine.ir import nodes as n
from engine.ir.verify import verify
from tests.property.through import HEAD, THREADS, WIDTH, program

FIRST = int(os.environ.get("ENGINE_PROGRAMS_FROM", "0"))
COUNT = int(os.environ.get("ENGINE_PROGRAMS", "60"))
unrolling = importlib.import_module("engine.ad.unroll")  # the package has a function of that name
COMPILED = int(os.environ.get("ENGINE_COMPILED_PROGRAMS", "8"))
WRT = frozenset(("a", "p", "out"))
JOURNALED = frozenset(("out",))


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    path = Path(tmp_path_factory.mktemp("written_out")) / "written_out_programs.py"
    seeds = range(FIRST, FIRST + max(COUNT, COMPILED))
    path.write_text(HEAD + "".join(map(program, seeds)))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [getattr(module, f"k{seed}") for seed in seeds]


def start(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1.5, 1.5, (THREADS, WIDTH)), rng.uniform(-1, 1, WIDTH), seed % 3,
            rng.uniform(-1, 1, (THREADS, WIDTH))]  # fmt: skip


def ran(fn: n.Function, args: list[Any], journal: interp.Journal | None = None) -> list[Any]:
    verify(fn)
    own = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
    interp.run(fn, own, THREADS, journal=journal, max_steps=100_000)
    return own


def gradients(fn: n.Function, args: list[Any], cotangent: Any) -> list[Any]:
    """Of the arrays, by the adjoint of a prepared kernel and the journal that it asks for."""
    made = ad.reverse(fn, WRT, JOURNALED)
    journal = interp.Journal()
    left = ran(ad.record(fn, made.sites), args, journal)
    seeds = [np.zeros_like(args[0]), np.zeros_like(args[1]), cotangent]
    return ran(made.fn, [*left, *seeds], journal)[-3:]


def test_interpreted(kernels: list[Any]) -> None:
    written = prepared = taken = 0
    for seed, kernel in enumerate(kernels[:COUNT], FIRST):
        plain, args = kernel.ir, start(seed)
        expected = ran(plain, args)
        out = ad.write_out(plain)
        written += out is not plain
        np.testing.assert_array_equal(ran(out, args)[-1], expected[-1], f"seed {seed}")
        form = ad.prepare(plain)
        other = ad.unroll(form)
        prepared += other is not form
        taken += not unrolling._in_memory(other.body)
        np.testing.assert_array_equal(ran(other, args)[-1], expected[-1], f"seed {seed}")
        cotangent = np.random.default_rng(seed).normal(size=(THREADS, WIDTH))
        for x, y in zip(gradients(form, args, cotangent), gradients(other, args, cotangent),
                        strict=True):  # fmt: skip
            np.testing.assert_allclose(y, x, 1e-11, 1e-11, err_msg=f"seed {seed}")
    # The programs are about what they claim to be about.
    assert min(written, prepared, 2 * taken) > COUNT // 2


def test_compiled(kernels: list[Any]) -> None:
    for seed, kernel in enumerate(kernels[:COMPILED], FIRST):
        args = start(seed)
        expected = ran(kernel.ir, args)[-1]
        cotangent = np.random.default_rng(seed).normal(size=(THREADS, WIDTH))
        exact = gradients(ad.prepare(kernel.ir), args, cotangent)
        a, p, out = (wp.array(x, dtype=wp.float64, requires_grad=True)
                     for x in (args[0], args[1], args[3]))  # fmt: skip
        with wp.Tape() as tape:
            wp.launch(kernel, dim=THREADS, inputs=[a, p, args[2]], outputs=[out])
        np.testing.assert_array_equal(out.numpy(), expected, f"seed {seed}")
        tape.backward(grads={out: wp.array(cotangent, dtype=wp.float64)})
        for x, y in zip((a, p), exact, strict=False):
            np.testing.assert_allclose(x.grad.numpy(), y, 1e-11, 1e-11, err_msg=f"seed {seed}")


@pytest.mark.parametrize("spoiled", ["_folded", "forget"])
def test_a_spoiled_pass_is_seen(
    kernels: list[Any], spoiled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    was = unrolling._folded

    def folded(s: n.Let, args: tuple[n.Atom, ...]) -> n.Const | None:
        found = was(s, args)
        if found is None or s.op != "sub":
            return found
        return n.Const(abs(int(found.value)), found.type)  # type: ignore[arg-type]

    new = {"_folded": folded, "forget": lambda env, block: None}
    monkeypatch.setattr(unrolling, spoiled, new[spoiled])
    with pytest.raises((AssertionError, interp.InterpError)):
        test_interpreted(kernels)
