"""Names for arrays that mean them in a function that is running."""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any

import pytest

import engine as wp
from engine.tape.graph.valid_names import ValidNames

seen = wp.zeros(2, dtype=float, requires_grad=True)  # a variable of the module


class Held:
    """An object of a program."""

    def __init__(self, a: Any) -> None:
        self.a = a
        self.some = [wp.zeros(1, dtype=float), a]

    @property
    def asked(self) -> Any:
        raise AssertionError("code of the program must not run")


def here() -> CodeType:
    return sys._getframe(1).f_code


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x", "x"),
        ("states[s]", "x"),  # another array by now
        ("states[0]", "states[0]"),
        ("states[-3]", "states[-3]"),
        ("states[zero]", "states[zero]"),
        ("held.a", "held.a"),
        ("held.some[1]", "held.some[1]"),
        ("named['k']", "named['k']"),
        ("held.asked", "x"),
        ("made()", "x"),
        ("unknown", "x"),
        ("states[9]", "x"),
        ("held[zero]", "x"),
        ("not valid", "x"),
        ("", "x"),
    ],
)
def test_a_text_is_taken_if_it_means_the_array(text: str, found: str) -> None:
    x = wp.zeros(2, dtype=float, requires_grad=True)
    states, zero, s = [x, wp.zeros(2, dtype=float), wp.zeros(2, dtype=float)], 0, 2
    held, named = Held(x), {"k": x}
    assert ValidNames().of(here(), x, text) == found
    assert s != zero and states and held and named


def test_parts_of_arrays() -> None:
    names = ValidNames()
    x, k = wp.zeros((3, 4), dtype=float, requires_grad=True), 1
    for a, text in [
        (x[0], "x[0]"),
        (x[1], "x[k]"),
        (x[1:2], "x[k:2]"),
        (x[:, 1:3], "x[:, k:3]"),
        (x[0, 1:], "x[0][k:]"),
    ]:
        assert names.of(here(), a, text) == text
    assert names.of(here(), x[1:2], "x[0]") == ""
    assert names.of(here(), x[1:2], "x[0, 1]") == ""
    assert k == 1


def test_variables_of_the_function_come_first() -> None:
    names = ValidNames()

    def inner(longer: Any) -> str:
        return names.of(here(), longer, "x")

    assert inner(seen) == "longer"
    assert names.of(here(), seen, "x") == "seen"


def test_a_variable_of_the_module_may_be_hidden() -> None:
    def hides(a: Any) -> str:
        seen = 0
        found = ValidNames().of(here(), box.pop(), "seen")
        return found if seen == 0 else a

    box = [seen]
    assert hides(None) == ""


def test_no_name_where_the_function_does_not_run() -> None:
    assert ValidNames().of(Held.__init__.__code__, seen, "seen") == ""


def test_a_name_is_found_again_without_a_search() -> None:
    names = ValidNames()
    held = Held(wp.zeros(2, dtype=float))
    for _ in range(200):  # more often than all variables are searched
        assert names.of(here(), held.a, "y") == "held.a"
