"""The expressions that a call was made with."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from engine.diagnostics.callers import argument_list, call_at, copied, text
from engine.diagnostics.site import Site

NAMES = ("", "dim", "inputs", "outputs")


def site_of(source: str, path: Path) -> Site:
    """The place at which the function `here` is called in a text."""
    path.write_text(source, encoding="utf-8")
    found: list[Any] = []

    def here(*args: Any, **kwargs: Any) -> None:
        import sys

        frame = sys._getframe(1)
        found.append(Site(frame.f_code, frame.f_lasti, frame.f_lineno))

    exec(compile(source, str(path), "exec"), {"here": here, "make": Any_})
    (site,) = found
    return site


def call_of(source: str, tmp_path: Path) -> str:
    call = call_at(site_of(source, tmp_path / "program.py"))
    return "" if call is None else ast.unparse(call)


@pytest.mark.parametrize(
    ("source", "call"),
    [("here(1, 2)", "here(1, 2)"),
     ("x = [3]\nhere(\n    x,\n    y=[1,\n       2],\n)", "here(x, y=[1, 2])"),
     ("str(1); here('a'); str(2)", "here('a')"),
     ("str(here(len([1])))", "here(len([1]))"),
     ("for k in range(1):\n    here(k)", "here(k)")],
)  # fmt: skip
def test_the_call_at_a_place(source: str, call: str, tmp_path: Path) -> None:
    assert call_of(source, tmp_path) == call


class Any_:
    """Something with every method."""

    def __init__(self, here: Any) -> None:
        self.assign = self.clone = self.copy = self.array = here

    def numpy(self) -> list[float]:
        return []


@pytest.mark.parametrize(
    ("source", "names"),
    [("h = wp.array(o.numpy(), 1)", ("h", "o")),
     ("h = here(o.numpy())", ("h", "o")),
     ("here(o.numpy() * 2)", ("", "")),
     ("h.assign(o.numpy())", ("h", "o")),
     ("wp.copy(h, o)", ("h", "o")),
     ("h = o.clone()", ("h", "o")),
     ("h = str(here(o))", ("", "o"))],
)  # fmt: skip
def test_what_is_copied_to_what(source: str, names: tuple[str, str], tmp_path: Path) -> None:
    head = "h, o, wp = make(here), make(here), make(here)\n"
    assert copied(site_of(head + source, tmp_path / "program.py")) == names


def test_there_is_no_text(tmp_path: Path) -> None:
    assert call_at(None) is None
    site = site_of("here(1)", tmp_path / "gone.py")
    (tmp_path / "gone.py").unlink()
    assert call_at(site) is None


def test_a_text_that_is_no_python_any_more(tmp_path: Path) -> None:
    path = tmp_path / "changed.py"
    site = site_of("here(1)", path)
    path.write_text("here(1", encoding="utf-8")
    assert call_at(site) is None


def test_only_the_line_is_known(tmp_path: Path) -> None:
    """As before Python 3.11."""
    site = site_of("str(1)\nhere(2)", tmp_path / "line.py")

    class Lines:
        span = type(site.span)(site.span.file, 2, 1, 2, 1)

    call = call_at(Lines())  # type: ignore[arg-type]
    assert call is not None and ast.unparse(call) == "here(2)"


def parsed(source: str) -> ast.Call:
    call = ast.parse(source, mode="eval").body
    assert isinstance(call, ast.Call)
    return call


@pytest.mark.parametrize(
    ("source", "found"),
    [("f(k, 3, [a, b], [c])", ["a", "b", "c"]), ("f(k, dim=3, inputs=(a,))", ["a"]),
     ("f(k, 3, outputs=[c], inputs=[a])", ["a", "c"]), ("f(k, 3, [a[1:], s.x])", ["a[1:]", "s.x"]),
     ("f(k, 3)", []), ("f(k, 3, [])", [])],
)  # fmt: skip
def test_elements_of_lists(source: str, found: list[str]) -> None:
    elements = argument_list(parsed(source), ("", "", "inputs", "outputs"))
    assert elements is not None and [text(e) for e in elements] == found


@pytest.mark.parametrize(
    "source", ["f(k, 3, some)", "f(k, 3, [*some])", "f(*some)", "f(k, 3, [a], outputs=some)"]
)
def test_lists_that_the_text_does_not_tell(source: str) -> None:
    assert argument_list(parsed(source), ("", "", "inputs", "outputs")) is None


def test_text_is_one_line_and_short() -> None:
    assert text(parsed("f(\n  'a',\n\n  b)")) == "f('a', b)"
    assert text(parsed(f"f({'a' * 60})")) == ""
