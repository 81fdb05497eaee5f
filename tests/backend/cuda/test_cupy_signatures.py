"""The engine calls CuPy with arguments that CuPy takes, and the stand-in takes no others."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from tests.backend.cuda import cupy_signatures as cupy
from tests.backend.cuda import fake_cupy
from tests.backend.cuda.cupy_signatures import Parameter, Use, fits

# What the stand-in has not: other libraries' arrays and what CuPy's runtime is of; the compiler has
# a stand-in of its own.
LEFT_OUT = {
    "ndarray", "from_dlpack", "cuda.UnownedMemory", "cuda.MemoryPointer",
    "cuda.runtime.driverGetVersion", "cuda.runtime.runtimeGetVersion",
}  # fmt: skip
CLASSES = {
    "cuda.Stream": fake_cupy.Stream, "cuda.Event": fake_cupy.Event,
    "cuda.graph.Graph": fake_cupy.Graph, "cuda.MemoryPointer": fake_cupy.MemoryPointer,
    "cuda.PinnedMemoryPointer": fake_cupy.PinnedMemoryPointer,
}  # fmt: skip


def differs(fake: Any, real: list[Parameter]) -> str:
    """Why a function of the stand-in does not stand for one of CuPy; nothing where it does.

    It may leave out what has a default, and takes then what follows by name alone.
    """
    known = {p.name: p for p in real}
    mine = [p for p in inspect.signature(fake).parameters.values() if p.name != "self"]
    for k, p in enumerate(mine):
        if p.name not in known:
            return f"{p.name} is none of its parameters"
        if (p.default is p.empty) == known[p.name].optional:
            return f"{p.name} has a default in one of them alone"
        if p.kind is not p.KEYWORD_ONLY and real[k].name != p.name:
            return f"{p.name} stands in another place"
    there = {p.name for p in mine}
    left = [p.name for p in real if not (p.optional or p.kind or p.name in there)]
    return f"{left[0]} is missing" if left else ""


def stand_ins() -> Iterator[tuple[str, Any]]:
    """All that the stand-in has by names of CuPy."""
    made = fake_cupy.FakeCupy()
    for room in ("cuda", "cuda.runtime", "cuda.driver"):
        there: Any = made
        for part in room.split("."):
            there = getattr(there, part)
        for name, value in vars(there).items():
            if name not in ("runtime", "driver"):
                yield f"{room}.{name}", value
    for name, of in CLASSES.items():
        for each in vars(of):
            if not each.startswith("_") and f"{name}.{each}" in cupy.kept()[1]:
                yield f"{name}.{each}", getattr(of, each)


def test_the_table_has_all_that_is_used() -> None:
    """Else: python -m tests.backend.cuda.cupy_signatures"""
    used = cupy.uses()
    assert len(used) > 60 and {u.place.partition(":")[0] for u in used} == set(cupy.FILES)
    assert {u.name for u in used} == set(cupy.kept()[1])


@pytest.mark.parametrize("use", cupy.uses(), ids=lambda u: f"{u.name}-{u.place.rpartition('/')[2]}")
def test_calls_are_those_that_cupy_takes(use: Use) -> None:
    takes = cupy.kept()[1][use.name]
    assert takes is None or fits(use, takes), (use, takes)


def test_the_stand_in_takes_what_cupy_takes() -> None:
    table = cupy.kept()[1]
    seen = set()
    for name, value in stand_ins():
        assert name in table, f"nothing uses {name}"
        seen.add(name)
        takes = table[name]
        if takes is not None and callable(value):
            assert not differs(value, takes), (name, differs(value, takes))
    attributes = {name for name in table if name.endswith(".ptr") or "Attributes." in name}
    needed = {name for name in table if not name.startswith("nvrtc.")}
    assert needed - seen - attributes == LEFT_OUT - attributes


def test_the_table_is_that_of_the_cupy_that_is_installed() -> None:
    """Another version may take more, but has to take what the engine gives."""
    pytest.importorskip("cupy", reason="CuPy is not installed")
    version, table = cupy.kept()
    found = cupy.read()
    if found["cupy"] == version:
        again = {k: None if v is None else list(map(cupy._of, v))
                 for k, v in found["names"].items()}  # fmt: skip
        assert again == table
    for use in cupy.uses():
        takes = found["names"][use.name]
        assert takes is None or fits(use, list(map(cupy._of, takes))), (use, takes)


@pytest.mark.parametrize(
    ("given", "named", "fitting"),
    [(2, (), True), (1, ("b",), True), (3, (), True), (2, ("c",), True), (1, (), False),
     (4, (), False), (2, ("d",), False), (1, ("c",), False)],
)  # fmt: skip
def test_what_fits(given: int, named: tuple[str, ...], fitting: bool) -> None:
    takes = [Parameter("a"), Parameter("b"), Parameter("c", True)]
    assert fits(Use("f", "", given, named), takes) is fitting


def test_what_differs_is_seen() -> None:
    takes = [Parameter("a"), Parameter("b", True)]
    assert not differs(lambda a: 0, takes) and not differs(lambda a, *, b=1: 0, takes)
    for wrong in (lambda: 0, lambda a, b: 0, lambda b=0, a=1: 0, lambda a, c=0: 0, lambda b: 0):
        assert differs(wrong, takes)
