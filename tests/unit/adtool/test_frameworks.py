"""Which frameworks a program uses in place of the engine."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

import engine
from adtool import endings
from adtool.frameworks import in_place_of_engine
from adtool.job import STDIN, Target

NONE = "import torch\n"


def of(text: str, alias: str | None = None) -> tuple[str, ...]:
    return in_place_of_engine(Target(STDIN, text=text), alias)


@pytest.fixture(autouse=True)
def only_torch(monkeypatch: Any) -> None:
    """The program has imported PyTorch, and no module of these tests counts as one of its files."""
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    for name in ("jax", "warp"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr("adtool.frameworks.texts_of", lambda target: [str(target.text)])


def test_frameworks_that_were_imported(monkeypatch: Any) -> None:
    assert of(NONE) == ("PyTorch",)
    monkeypatch.setitem(sys.modules, "jax", ModuleType("jax"))
    assert of(NONE) == ("PyTorch", "JAX")
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.delitem(sys.modules, "jax")
    assert of(NONE) == ()


@pytest.mark.parametrize(
    "line", ["import engine", "import engine as wp", "from engine import Tape",
             "    import engine.autograd", "\tfrom  engine.foreign import watching"],
)  # fmt: skip
def test_a_program_that_imports_the_engine(line: str) -> None:
    assert of(f"{NONE}{line}\n") == ()


@pytest.mark.parametrize("line", ["import engines", "# import engine", "from .engine import x"])
def test_what_is_no_import_of_it(line: str) -> None:
    assert of(f"{NONE}{line}\n") == ("PyTorch",)


def test_the_engine_by_another_name(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "warp", engine)
    assert of(NONE + "import warp as wp\n", "warp") == ()
    assert of(NONE, "warp") == ("PyTorch",)
    monkeypatch.setitem(sys.modules, "warp", ModuleType("warp"))
    assert of(NONE + "import warp as wp\n") == ("PyTorch", "Warp")


def test_words() -> None:
    assert "made no tape" in endings.uncalled((), "script").message
    assert "made no tape" in endings.uncalled(("Warp",), "script").message
    assert "of PyTorch and JAX itself" not in endings.uncalled(("PyTorch", "JAX"), "script").help
    message, help = endings.no_launch("trace", ("PyTorch", "Warp"))
    assert "a tape of the engine" in message and "--alias warp" in help
