"""Functions that are defined again: overloads of one text, and new versions from another.

A model says which definition a call means; histories of modules that are edited and reloaded, and
of cells in a notebook, are drawn.
"""

import importlib
import linecache
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine as wp
from engine.frontend import lower_kernel
from engine.ir.interp import evaluate

# What each signature takes: exactly, or as anything of a kind.
TAKES = {"float": {"float"}, "int": {"int"}, "wp.Float": {"float"}, "Any": {"float", "int"}}
OPEN = {"wp.Float", "Any"}
_count = iter(range(10**9))

# A definition: its signature and the number that it adds.
Definition = tuple[str, int]
_texts = st.lists(
    st.tuples(st.sampled_from(list(TAKES)), st.integers(0, 9)), min_size=1, max_size=3
)


def text_of(definitions: list[Definition]) -> str:
    return "import engine as wp\nfrom typing import Any\n" + "".join(
        f"@wp.func\ndef f(x: {kind}):\n    return float(x) + {10.0 * n}\n"
        for kind, n in definitions
    )


def meant(live: list[Definition], argument: str) -> int | None:
    """The most specific definition that takes an argument, of equals the last."""
    fits = [d for d in live if argument in TAKES[d[0]]]
    best = [d for d in fits if d[0] not in OPEN] or fits
    return best[-1][1] if best else None


def results(f: Any) -> dict[str, float | None]:
    """What kernels and Python get from calls with 1.0 and with 1."""
    out: dict[str, float | None] = {}
    for kind, value in (("float", 1.0), ("int", 1)):

        @wp.kernel
        def k(y: wp.array(dtype=float), a: type(value)):  # type: ignore[valid-type]
            y[0] = f(a)

        y = np.zeros(1, dtype=np.float32)
        try:
            evaluate(lower_kernel(k.func), (y, value))
            out[kind] = float(y[0])
            assert f(value) == out[kind]
        except wp.KernelError as error:
            assert error.diagnostics[0].code == "E104"
            out[kind] = None
    return out


def expected(live: list[Definition]) -> dict[str, float | None]:
    found = {kind: meant(live, kind) for kind in ("float", "int")}
    return {kind: None if n is None else 1.0 + 10.0 * n for kind, n in found.items()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


def test_a_module_has_the_functions_of_its_text(folder: Path) -> None:
    @settings(max_examples=40, deadline=None, database=None)
    @given(st.lists(_texts, min_size=1, max_size=4))
    def histories(texts: list[list[Definition]]) -> None:
        name = f"redefined_{next(_count)}"
        path = folder / f"{name}.py"
        module = None
        for k, definitions in enumerate(texts):
            path.write_text(text_of(definitions))
            os.utime(path, (time.time() + 10 * k,) * 2)
            importlib.invalidate_caches()
            module = importlib.import_module(name) if k == 0 else importlib.reload(module)
            assert results(module.f) == expected(definitions)
            module = importlib.reload(module)  # the same text once more
            assert results(module.f) == expected(definitions)
        del sys.modules[name]

    histories()


@settings(max_examples=60, deadline=None, database=None)
@given(st.lists(st.tuples(_texts, st.booleans()), min_size=1, max_size=4))
def test_cells_replace_what_they_cover(cells: list[tuple[list[Definition], bool]]) -> None:
    """A cell is a text of its own. One that runs again, as it is, defines its functions again."""
    space: dict[str, Any] = {"__name__": "notebook"}
    live: list[tuple[int, Definition]] = []
    for definitions, twice in cells:
        number = next(_count)
        name, text = f"<cell {number}>", text_of(definitions)
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        for _ in range(1 + twice):
            exec(compile(text, name, "exec", dont_inherit=True), space)
            live = [d for d in live if d[0] != number]
            for new in definitions:
                takes = TAKES[new[0]]
                live = [
                    (cell, old)
                    for cell, old in live
                    if not (old[0] == new[0] or (cell != number and TAKES[old[0]] <= takes and (
                        new[0] in OPEN and (old[0] not in OPEN or new[0] == "Any"))))
                ]  # fmt: skip
                live.append((number, new))
        assert results(space["f"]) == expected([d for _, d in live])


@pytest.mark.parametrize("kinds", [["float", "Any"], ["Any", "float"]])
def test_in_one_text_the_order_does_not_matter(kinds: list[str]) -> None:
    text = text_of([(kind, 1 + (kind == "Any")) for kind in kinds])
    name = f"<cell {next(_count)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"__name__": "notebook"}
    exec(compile(text, name, "exec", dont_inherit=True), space)
    assert results(space["f"]) == {"float": 11.0, "int": 21.0}


def test_overloads_from_a_generator_of_programs() -> None:
    """Programs that are run one after the other under one name, each from a text of its own."""
    space: dict[str, Any] = {"__name__": "generated"}
    for kind, n in (("int", 1), ("float", 2)):
        text = text_of([(kind, n)])
        linecache.cache["<generated>"] = (len(text), None, text.splitlines(True), "<generated>")
        exec(compile(text, "<generated>", "exec", dont_inherit=True), space)
    assert results(space["f"]) == {"float": 21.0, "int": 11.0}


def test_overloads_from_a_loop() -> None:
    for t in (int, float, wp.vec2):

        @wp.func
        def f(x: t):
            return 10.0

    assert len(f.overloads) == 3
    assert results(f) == {"float": 10.0, "int": 10.0}
