"""Findings about accesses out of bounds name them as the source does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adtool.accesses import told
from engine import Fault
from engine.diagnostics import Span

HEAD = "import engine as wp\n\n"


def said(path: Path, body: str, at: str, **given: Any) -> str:
    """The words for an access that stands in the first line with a text."""
    path.write_text(HEAD + body)
    lines = path.read_text().splitlines()
    number = next(k for k, line in enumerate(lines) if at in line)
    col = lines[number].index(at) + 1
    span = Span(str(path), number + 1, col, number + 1, col + len(at))
    fault: dict[str, Any] = {
        "kind": "outside", "kernel": "k", "span": span, "form": "forward", "access": "component",
        "name": "", "thread": (0,), "index": (3,), "shape": (3,), "count": 1,
    }  # fmt: skip
    return told(Fault(**(fault | given)))


def test_a_component_of_a_vector(tmp_path: Path) -> None:
    body = "def k(p, axis, y):\n    v = p[0] * 2.0\n    y[0] = v[axis[0]] * v[axis[0]]\n"
    assert said(tmp_path / "a.py", body, "v[axis[0]]") == (
        "names component [3] of `v`, a vector of 3 (`v[axis[0]]`)"
    )
    body = body.replace("v[axis[0]] * v[axis[0]]", "v[axis[0], 1]")
    assert "`v`, a matrix of 3 x 3" in said(
        tmp_path / "b.py", body, "v[axis[0], 1]", index=(3, 1), shape=(3, 3)
    )


@pytest.mark.parametrize("maker", ["wp.zeros(shape=(4,), dtype=float)", "wp.zeros(4, float)"])
def test_an_element_of_a_local_array(maker: str, tmp_path: Path) -> None:
    body = f"def k(u):\n    ring = {maker}\n    ring[t % 5] = u[t]\n"
    assert said(
        tmp_path / "a.py", body, "ring[t % 5] = u[t]", name="ring", index=(4,), shape=(4,)
    ) == ("names element [4] of local array `ring`, which has 4 (`ring[t % 5]`)")
    other = body.replace(maker, "wp.vec4(0.0)")
    assert "of `ring`, a vector of 4" in said(
        tmp_path / "b.py", other, "ring[t % 5] = u[t]", name="ring", index=(4,), shape=(4,)
    )


PART = (
    "def cumsum(out):\n    out[k + 1] = s\n\ndef scan(x, y):\n    i = wp.tid()\n    cumsum(y[i])\n"
)
STORE: Any = {"access": "store", "name": "out", "index": (0, 4), "shape": (3, 4)}


def test_a_part_of_an_array_that_a_function_was_given(tmp_path: Path) -> None:
    assert said(tmp_path / "a.py", PART, "out[k + 1] = s", **STORE) == (
        "writes `y[0, 4]` outside of its shape (3, 4), as [4] of its part `out` in `cumsum` "
        "(`out[k + 1]`)"
    )


@pytest.mark.parametrize("call", ["cumsum(y[i])\n    cumsum(x[i])", "cumsum(y[1:3])", "cumsum(z)"])
def test_another_part_is_not_named(call: str, tmp_path: Path) -> None:
    body = PART.replace("cumsum(y[i])", call)
    assert said(tmp_path / "a.py", body, "out[k + 1] = s", **STORE) == (
        "writes `out[0, 4]` outside of its shape (3, 4) (`out[k + 1]`)"
    )


def test_where_the_source_says_nothing(tmp_path: Path) -> None:
    body = "def k(x, y):\n    y[0] = x[5]\n"
    load: Any = {"access": "load", "name": "x", "index": (5,), "shape": (3,)}
    words = "reads `x[5]` outside of its shape (3,)"
    assert said(tmp_path / "a.py", body, "x[5]", **load) == words
    assert said(tmp_path / "b.py", body.replace("def", "def ="), "x[5]", **load) == words
    assert said(tmp_path / "c.py", "def k(m, y):\n    y[0] = m[i][j]\n", "m[i][j]") == (
        "names component [3] of a vector or matrix, which has 3"
    )
