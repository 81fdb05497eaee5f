"""The CUDA text of every kernel of the corpus in every form, without a compiler."""

from __future__ import annotations

import re

import pytest

import engine as wp
from engine.codegen import cuda, headers
from engine.codegen.literals import literal
from engine.ir.nodes import Const, callees
from engine.lang.types import FLOAT32
from tests.backend.cuda.kernels import GROUPS, kernels, made
from tests.backend.test_loops import functions

# What a device compiler has not: files, a heap that grows, and GCC's own functions.
FORBIDDEN = re.compile(
    r"realloc|malloc|stdint|math\.h|__builtin_(?!assume_aligned)|#\s*include|__attribute__|std::"
)
REFUSED = {
    "files": {
        # That they are refused is what their tests are about.
        *(f"test_grad.{k}" for k in ("writing", "stopping", "counting", "by_arrays", "native_twice",
                                     "of_a_value", "with_two", "too_few")),
        "test_native_checks.passes_a_pair", "test_native_checks.passes_a_row",
        *(f"test_tiles.{k}" for k in ("by_components", "of_no_function", "of_no_tile", "shared",
                                      "passes_a_tile")),
        "test_native_structs.wrong",
        # Their snippets have no derivative in forward mode.
        *(f"test_{k} tangent" for k in ("grad.mixed", "grad.native", "native.saxpy_kernel",
                                        "native.log_square", "native.values", "native.row_sums",
                                        "native_checks.pick", "native_checks.ends",
                                        "native_structs.energies")),
    },
}  # fmt: skip


@pytest.mark.parametrize("snippets", [False, True], ids=["engine", "snippets"])
def test_the_preamble_needs_no_file_and_no_heap(snippets: bool) -> None:
    name = headers.SNIPPET if snippets else headers.ENGINE
    text = headers.in_one(headers.CUDA, name)
    assert not FORBIDDEN.search(text), FORBIDDEN.search(text)
    assert text.count("typedef long long int64_t;") == 1
    assert ("namespace wp" in text) is snippets


@pytest.mark.parametrize("group", GROUPS)
def test_every_form_of_every_kernel_is_written(group: str) -> None:
    assert len(kernels(group)) >= {"cases": 128, "compounds": 38, "files": 81, "selftest": 71,
                                   "samples": 39}[group]  # fmt: skip
    assert made(group).refused == REFUSED.get(group, set())
    forms = {symbol.partition("_")[2] for symbol, _ in made(group).functions}
    assert forms >= {"forward", "adjoint", "checkpointed", "tangent"}
    for symbol, fn in made(group).functions:
        text = cuda.emit(fn, symbol)
        own = text
        for f in callees(fn):  # the user's words are the user's
            for line in f.native.text.splitlines() if f.native else ():
                own = own.replace(line, "")
        assert not FORBIDDEN.search(own), (symbol, FORBIDDEN.search(own))
        assert text.count("__global__") == 1
        assert f'extern "C" __global__ void {symbol}(' in text
        assert "ENG_" not in own  # qualifiers are the dialect's, not the preamble's


def test_forms_save_to_frames_and_to_the_journal() -> None:
    texts = {symbol: cuda.emit(fn, symbol) for symbol, fn in made("cases").functions}
    recorded = [t for s, t in texts.items() if s.endswith("_recorded")]
    assert recorded
    assert all("eng::leave<true>" in t for t in recorded)
    adjoints = [t for s, t in texts.items() if s.endswith("_adjoint")]
    assert any("eng::enter<true>" in t for t in adjoints)
    assert any("eng::push(ctx" in t for t in adjoints)


def test_gradients_are_added_atomically() -> None:
    found = dict(made("cases").functions)
    written = [cuda.emit(fn, s) for s, fn in found.items() if s.endswith("_adjoint")]
    assert sum("eng::atomic_add(v_adj_" in text for text in written) > len(written) / 2


def test_what_constants_cannot_write_is_a_function_of_the_preamble() -> None:
    said = literal(Const(float("inf"), FLOAT32))
    assert said == "eng::infinity<float>()"
    assert "T infinity()" in headers.in_one(headers.CUDA, headers.ENGINE)


def test_sums_of_what_many_threads_mean_are_marked() -> None:
    @wp.kernel
    def pairs(x: wp.array(dtype=wp.vec3), n: int, y: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        for j in range(n):
            y[i] += wp.cross(x[j], x[i])

    text = cuda.emit(functions(pairs)[2], "pairs_adjoint")
    assert re.search(r"atomic_add_even\(v_adj_x, v_adj_x\.at\(v_t", text)
    assert re.search(r"atomic_add\(v_adj_x, v_adj_x\.at\(k0", text)
