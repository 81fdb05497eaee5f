"""`tape.zero()` where it is certain that it clears nothing that is still wanted."""

from __future__ import annotations

import textwrap

import pytest

from adtool.fixes.edits import applied
from adtool.fixes.zeroing import zeroed
from tests.unit.adtool.fixes.conftest import Place

HEAD = "import engine as wp\n"
LOOP = (
    HEAD
    + """
for step in range(3):
    with wp.Tape() as tape:
        wp.launch(f, 3, [x], [loss])
    tape.backward(loss)
    wp.launch(descend, 3, [x, x.grad])  # ö
"""
)


def in_loop(place: Place, text: str) -> str | None:
    site = place(text, "tape.backward(loss)")
    fix = zeroed("values", site, site)
    if fix is None:
        return None
    assert not fix.safe
    return applied(text.encode(), fix.edits).decode()


def test_at_the_end_of_the_loop(place: Place) -> None:
    assert in_loop(place, LOOP) == LOOP + "    tape.zero()\n"


@pytest.mark.parametrize(
    "use",
    ["optimizer.step([x.grad])", "x.assign(x.numpy() - x.grad.numpy())", "adam.step()",
     "if step:\n        wp.launch(descend, 3, inputs=[x, x.grad])\n    done += 1"],
)  # fmt: skip
def test_uses_that_move_parameters(place: Place, use: str) -> None:
    text = LOOP.replace("wp.launch(descend, 3, [x, x.grad])  # ö", use)
    assert in_loop(place, text) == text + "    tape.zero()\n"


def test_a_function_with_tabs_and_no_last_end_of_line(place: Place) -> None:
    body = textwrap.indent(LOOP.split("\n", 1)[1].strip().replace("    ", "\t"), "\t")
    text = f"{HEAD}def train():\n{body}"
    assert in_loop(place, text) == f"{text}\n\t\ttape.zero()"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Nothing is seen to use the gradients: they may be added up on purpose.
        ("wp.launch(descend, 3, [x, x.grad])", "print(x.grad.numpy())"),
        # The next step is begun without coming to the end.
        ("# ö", "\n    if step:\n        continue"),
        ("# ö", "\n    tape = None"),
        # They are used after the loop, or of several passes together.
        ("# ö", "\nprint(x.grad.numpy())"),
        ("tape.backward(loss)", "if step:\n        tape.backward(loss)"),
        ("tape.backward(loss)", "tape.backward(loss); n = 1"),
        ("# ö", "\n    break"),
    ],
)
def test_no_place_is_certain(place: Place, old: str, new: str) -> None:
    assert old in LOOP
    assert in_loop(place, LOOP.replace(old, new)) is None


def test_a_loop_in_a_loop_that_uses_what_is_added_up(place: Place) -> None:
    inner = textwrap.indent(LOOP.split("\n", 1)[1].strip(), "    ")
    text = f"{HEAD}for epoch in range(2):\n{inner}\n    wp.launch(descend, 3, [x, x.grad])\n"
    assert in_loop(place, text) is None


TWICE = (
    HEAD
    + """
tape.backward(loss)
first = x.grad.numpy()
tape.backward(loss)
"""
)


def test_between_two_passes(place: Place) -> None:
    sites = [place(TWICE, "tape.backward(loss)", n) for n in (1, 0)]
    fix = zeroed("twice", *sites)
    assert fix is not None
    changed = TWICE.replace("numpy()\n", "numpy()\ntape.zero()\n")
    assert applied(TWICE.encode(), fix.edits).decode() == changed


@pytest.mark.parametrize(
    ("call", "between"),
    [("tape.backward()", ""), ("tape.backward(loss)", "x.grad = seed\n"),
     ("tape.backward(loss)", "loss.grad.fill_(2.0)\n")],
)  # fmt: skip
def test_a_gradient_to_start_from_is_not_cleared(place: Place, call: str, between: str) -> None:
    text = f"{HEAD}{call}\nfirst = x.grad\n{between}{call}\n"
    assert zeroed("twice", place(text, call, 1), place(text, call, 0)) is None


def test_at_other_values_something_must_be_seen_to_use_them(place: Place) -> None:
    sites = [place(TWICE, "tape.backward(loss)", n) for n in (1, 0)]
    assert zeroed("values", *sites) is None
    assert zeroed("values", None, None) is None
