"""`tape.zero()` where it is certain that it clears nothing that is still wanted."""

from __future__ import annotations

import textwrap

import pytest

from adtool.fixes.edits import applied
from adtool.fixes.zeroing import zeroed
from tests.unit.adtool.fixes.conftest import Place

HEAD = """import engine as wp


@wp.kernel
def descend(x: wp.array(dtype=float), g: wp.array(dtype=float)):
    i = wp.tid()
    x[i] -= 0.1 * g[i]

"""
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
     "wp.launch(descend, 3, inputs=[lr, tape.gradients[x]], outputs=[x])",
     "wp.launch(descend, 3, inputs=[state, state.x.grad])",
     "for p in [x]:\n        wp.launch(descend, 3, inputs=[p, p.grad])\n    done = 1",
     "with timer:\n        adam.step()\n    if step % 10 == 0:\n        print(x.grad)\n    n = 1"],
)  # fmt: skip
def test_uses_that_move_parameters(place: Place, use: str) -> None:
    text = LOOP.replace("wp.launch(descend, 3, [x, x.grad])  # ö", use)
    assert in_loop(place, text) == text + "    tape.zero()\n"


def test_a_function_with_tabs_and_no_last_end_of_line(place: Place) -> None:
    body = textwrap.indent(LOOP.removeprefix(HEAD).strip().replace("    ", "\t"), "\t")
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
        ("loss])\n", "loss])\n    x.assign(x.numpy() - x.grad.numpy())\n"),
        ("for step in range(3):", "while np.abs(x.grad.numpy()).max() > 1e-3:"),
        ("tape.backward(loss)", "if step:\n        tape.backward(loss)"),
        ("tape.backward(loss)", "tape.backward(loss); n = 1"),
        ("# ö", "\n    break"),
    ],
)
def test_no_place_is_certain(place: Place, old: str, new: str) -> None:
    assert old in LOOP
    assert in_loop(place, LOOP.replace(old, new)) is None


def test_a_loop_in_a_loop_that_uses_what_is_added_up(place: Place) -> None:
    inner = textwrap.indent(LOOP.removeprefix(HEAD).strip(), "    ")
    text = f"{HEAD}for epoch in range(2):\n{inner}\n    wp.launch(descend, 3, [x, x.grad])\n"
    assert in_loop(place, text) is None


@pytest.mark.parametrize(
    "use",
    [
        "if step % 2:\n        {}",
        "while step < n:\n        {}",
        "for p in [x]:\n        if p is x:\n            {}",
        "try:\n        {}\n    except ValueError:\n        pass",
        "match step:\n        case 1:\n            {}",
        "step % 2 and {}",
        "{} if step % 2 else None",
        "[{} for p in [x] if step % 2]",
        "[{} for p in [x] for q in [p] if step % 2]",
        "later = lambda: {}",
        "def later():\n        {}\n    done = 1",
        "if step % 2:\n        moved()\n    wp.launch(descend, 3, [x, x.grad])",
    ],
)
@pytest.mark.parametrize("update", ["x.assign(x.numpy() - x.grad.numpy())", "adam.step()"])
def test_several_passes_may_be_meant_to_be_added_up(place: Place, use: str, update: str) -> None:
    moved = f"def moved():\n    {update}\n\n\nfor step"
    text = LOOP.replace("for step", moved) if "moved" in use else LOOP
    old = "wp.launch(descend, 3, [x, x.grad])  # ö"
    assert in_loop(place, text.replace(old, use.format(update))) is None


@pytest.mark.parametrize(
    "use",
    ["wp.launch(norm, 3, inputs=[x.grad], outputs=[size])", "size.assign(x.grad)",
     "wp.launch(norm, 3, inputs=[tape.gradients[x], size])"],
)  # fmt: skip
def test_what_only_looks_at_gradients_moves_nothing(place: Place, use: str) -> None:
    assert in_loop(place, LOOP.replace("wp.launch(descend, 3, [x, x.grad])  # ö", use)) is None


def whole(loop: str, *others: str) -> str:
    """A program with the loop in a function, `train`, and other code."""
    body = textwrap.indent(loop.removeprefix(HEAD).strip(), "    ")
    return "\n".join([HEAD, f"def train():\n{body}\n", *others]) + "\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    x[i] -= 0.1 * g[i]", "    if k == 3:\n        x[i] -= 0.1 * g[i]"),
        ("0.1 * g[i]", "wp.where(k == 3, 0.1, 0.0) * g[i]"),
        ("0.1 * g[i]", "0.1 * float(k % 4) * g[i]"),
        ("0.1 * g[i]", "(0.1 if k == 3 else 0.0) * g[i]"),
        ("@wp.kernel\ndef descend", "@wp.kernel\ndef ascend"),  # it is in another file
    ],
)
def test_a_kernel_may_move_nothing(place: Place, old: str, new: str) -> None:
    assert old in LOOP
    assert in_loop(place, LOOP.replace(old, new)) is None


def test_a_step_of_the_file_may_be_none(place: Place) -> None:
    loop = LOOP.replace("wp.launch(descend, 3, [x, x.grad])  # ö", "adam.step()")
    steady = "class Adam:\n    def step(self):\n        self.n += 1\n        {}\n\n"
    every = "if self.n < 4:\n            return"
    for body, fixed in (("pass", True), (every, False)):
        text = loop.replace("\nfor step", steady.format(body) + "for step")
        assert (in_loop(place, text) is not None) is fixed


@pytest.mark.parametrize(
    ("keep", "use"),
    [
        ("g = x.grad.numpy()", "print(g)"),
        ("g: object = x.grad", "print(g)"),
        ("a, g = 1, x.grad", "print(g)"),
        ("g = x.grad\n    h = g.numpy()", "print(h)"),
        ("history.append(x.grad)", "print(history)"),
        ("kept['g'] = x.grad", "print(kept)"),
        ("state.total = x.grad", "wp.launch(descend, 3, [x, state.total])"),
        ("print(g := x.grad)", "print(g)"),
        ("for g in [x.grad]:\n        pass", "print(g)"),
        ("pass", "print(getattr(x, 'grad'))"),
        ("pass", "from operator import attrgetter\nshow = attrgetter('grad')"),
    ],
)
def test_gradients_by_other_names(place: Place, keep: str, use: str) -> None:
    text = LOOP.replace("  # ö", f"\n    {keep}\n    n = 1")
    assert in_loop(place, text) is not None or "getattr" in use or "attrgetter" in use
    assert in_loop(place, f"{text}{use}\n") is None


@pytest.mark.parametrize(
    "keep",
    ["g = x.grad.numpy().tolist()", "g = float(x.grad.numpy().max())", "g = x.grad.numpy().copy()",
     "g = 0.5 * x.grad.numpy()", "kept.append(np.linalg.norm(x.grad.numpy()))",
     "g = wp.clone(x.grad)"],
)  # fmt: skip
def test_copies_of_gradients_may_be_used(place: Place, keep: str) -> None:
    text = LOOP.replace("  # ö", f"\n    {keep}\n    n = 1") + "print(g, kept)\n"
    assert in_loop(place, text) is not None


SHOW = "def show():\n    print(x.grad)\n"
ADAM = "class Adam:\n    def step(self):\n        self.x.assign(self.x.grad)\n"


@pytest.mark.parametrize(
    ("others", "fixed"),
    [
        (["train()"], True),
        ([ADAM, "adam = Adam()", "train()"], True),
        (["train()", "print(x.grad)"], False),
        (["train()", "done = abs(x.grad.numpy()).max() < 1e-3"], False),
        ([SHOW, "train()", "show()"], False),
        ([SHOW, "def main():\n    train()\n    show()\n", "main()"], False),
        ([SHOW], False),  # other files may call it
        (["def main():\n    train()\n    return x.grad\n", "main()"], False),
        (["shown = lambda: x.grad", "train()"], False),
        (
            ["class Model:\n    def __init__(self):\n        self.g = x.grad\n", "m = Model()"],
            False,
        ),
    ],
)
def test_uses_in_the_rest_of_the_file(place: Place, others: list[str], fixed: bool) -> None:
    loop = LOOP.replace("wp.launch(descend, 3, [x, x.grad])  # ö", "adam.step()")
    text = whole(loop, *others)
    new = text.replace("adam.step()\n", "adam.step()\n        tape.zero()\n", 1)
    assert in_loop(place, text) == (new if fixed else None)


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


def test_what_the_second_tape_adds_to_is_cleared(place: Place) -> None:
    text = TWICE.replace("numpy()\ntape", "numpy()\nother").replace(
        "first", "x.assign(x.grad)\nfirst"
    )
    fix = zeroed("values", place(text, "other.backward(loss)"), place(text, "tape.backward(loss)"))
    assert fix is not None
    assert applied(text.encode(), fix.edits).decode() == text.replace(
        "numpy()\n", "numpy()\nother.zero()\n"
    )


@pytest.mark.parametrize("call", ["penalty.backward(size)", "if n:\n    penalty.backward(size)"])
def test_the_share_of_other_passes_is_not_cleared(place: Place, call: str) -> None:
    for text in (TWICE.replace("\ntape", f"\n{call}\ntape", 1), TWICE + f"{call}\n"):
        sites = [place(text, "tape.backward(loss)", n) for n in (1, 0)]
        assert zeroed("twice", *sites) is None


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
