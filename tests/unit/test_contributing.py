"""The worked examples of CONTRIBUTING.md are run, so that they stay true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import engine as wp

ROOT = Path(__file__).resolve().parents[2]

DECLARE = """
import sys
import numpy as np
from typing import Any
from engine.builtins import numeric as m, scalars
{meaning}
m.softsign = softsign
exec({declaration!r}, vars(scalars))
from engine.builtins.stubs import Builtin
value = Builtin("softsign")(1.5)
assert abs(value - 0.6) < 1e-6, value
print("declared")
"""


def blocks(language: str) -> list[str]:
    """The fenced blocks of CONTRIBUTING.md in one language."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def block_with(language: str, words: str) -> str:
    """The one block that holds these words."""
    (found,) = (b for b in blocks(language) if words in b)
    return found


def test_the_builtin_example_is_a_whole_declaration() -> None:
    """In a process of its own, since it adds to the table of operations."""
    code = DECLARE.format(
        meaning=block_with("python", "def softsign"),
        declaration=block_with("python", '"softsign",'),
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "declared"


def test_the_finding_example_is_a_whole_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a file beside the other rules it is found, and its manual page is complete."""
    import adtool.rules

    source = block_with("python", "class VanishingGradient")
    name = re.match(r"# adtool/rules/(\w+)\.py\n", source)
    assert name is not None
    (tmp_path / f"{name.group(1)}.py").write_text(source)
    monkeypatch.setattr(adtool.rules, "__path__", [*adtool.rules.__path__, str(tmp_path)])
    adtool.rules.load_rules.cache_clear()
    try:
        rules = {rule.code: rule for rule in adtool.rules.load_rules()}
        assert "vanishing-gradient" in rules["G090"].page()
    finally:
        adtool.rules.load_rules.cache_clear()
        sys.modules.pop(f"adtool.rules.{name.group(1)}", None)


class Grid:
    """An object of the framework in the example."""

    def __init__(self, cells: np.ndarray, frozen: bool = False, compressed: bool = False) -> None:
        self.cells, self.frozen, self.compressed = cells, frozen, compressed


@wp.kernel
def double(x: wp.array(dtype=wp.vec2)):
    x[wp.tid()] *= 2.0


@pytest.mark.host("memory of the host")
def test_the_framework_example_is_a_whole_adapter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a file beside the other adapters it is found by the module of a type."""
    import engine.interop
    from engine.interop import base

    (tmp_path / "gridlib.py").write_text(block_with("python", "class Gridlib"))
    monkeypatch.setattr(engine.interop, "__path__", [*engine.interop.__path__, str(tmp_path)])
    monkeypatch.setattr(Grid, "__module__", "gridlib.grids")
    base.forget()
    try:
        grid = Grid(np.ones((3, 2), np.float32))
        wp.launch(double, dim=3, inputs=[grid])
        assert (grid.cells == 2.0).all()
        assert (wp.zeros_like(grid).numpy() == np.zeros((3, 2))).all()
        assert wp.array(grid).shape == (3, 2)
        with pytest.raises(wp.LaunchError, match="read-only memory"):
            wp.launch(double, dim=3, inputs=[Grid(grid.cells, frozen=True)])
        with pytest.raises(wp.LaunchError, match=r"E202.*a compressed Gridlib grid"):
            wp.launch(double, dim=3, inputs=[Grid(grid.cells, compressed=True)])
        with pytest.raises(wp.LaunchError, match=r"E202.*a Gridlib grid of float64"):
            wp.launch(double, dim=3, inputs=[Grid(np.ones((3, 2)))])
    finally:
        base.forget()
        sys.modules.pop("engine.interop.gridlib", None)
