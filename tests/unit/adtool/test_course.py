"""The places where a gradient dies or explodes, its growth, and the health of operations."""

import numpy as np
import pytest

import engine as wp
from adtool.commands.trace import Sort, sorted_rows
from adtool.course import beside_first, course, growth_words
from adtool.figures.norms import plot
from adtool.health import health, path_of
from adtool.last import Last
from adtool.report import Finding
from adtool.traces import Traces
from engine.autograd import trace


@wp.kernel
def scale(x: wp.array(dtype=float), by: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * by


@wp.kernel
def add(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
    i = wp.tid()
    c[i] = a[i] + b[i]


@wp.kernel
def mix(a: wp.array(dtype=float), by: float, b: wp.array(dtype=float), c: wp.array(dtype=float)):
    i = wp.tid()
    c[i] = by * a[i] + 0.4 * b[i]


@wp.kernel
def total(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i])


def array(grad=True):
    return wp.array(np.ones(4), dtype=float, requires_grad=grad)


def traced(factors, grads=(), side=False):
    """A chain of launches `scale` with these factors, and a sum at its end."""
    states = [array() for _ in range(len(factors) + 1)]
    for k in grads:
        states[k].requires_grad = False
    loss = wp.zeros(1, requires_grad=True)
    weight, extra = array(), array()
    with wp.capturing(traces=1000, wants=lambda kernel: False) as capture:
        with wp.Tape() as tape:
            for i, f in enumerate(factors):
                wp.launch(scale, 4, [states[i], f], [states[i + 1]])
            if side:
                wp.launch(scale, 4, [weight, 0.0], [extra])
                wp.launch(total, 4, [extra], [loss])
            wp.launch(total, 4, [states[-1]], [loss])
        tape.backward(loss)
    return trace(capture.tapes[0])


def last(t, findings=()):
    return Last("x.py", tuple(findings), (), Traces((t,), 1))


def test_growth_is_per_operation():
    assert course(traced([2.0] * 10)).growth == pytest.approx(2.0, rel=1e-5)
    c = course(traced([0.5] * 10))
    assert c.growth == pytest.approx(0.5, rel=1e-5)
    assert c.along == "scale"
    assert c.dies is None
    assert c.explodes is None
    assert course(traced([2.0])).growth is None


def test_it_explodes_at_the_first_array_that_is_too_large():
    c = course(traced([10.0] * 12))
    assert c.explodes is not None
    # |d loss / d states[k]| = 2 * 10^(12 - k); the first norm is that of the loss, 1.
    assert (c.explodes.launch, c.explodes.array) == (6, "states[6]")
    assert c.explodes.norm == pytest.approx(2e6)
    assert c.dies is None
    assert course(traced([10.0] * 12), explodes=1e20).explodes is None


def test_it_explodes_where_it_is_not_finite():
    c = course(traced([1.0, 1.0, 1e30, 1e30, 1.0]))
    assert c.explodes is not None
    assert course(traced([1.0, 1e30, 1e30, 1.0]), explodes=1e300).explodes.launch == 1
    assert "not finite" in course(traced([1.0, 1e30, 1e30]), explodes=1e300).explodes.why


def test_it_vanishes_where_too_little_is_left():
    c = course(traced([0.1] * 12))
    assert c.dies is not None
    # |d loss / d states[k]| = 2 * 10^(k - 12) is below 1e-6 from k = 5 on.
    assert (c.dies.launch, c.dies.array) == (5, "states[5]")
    assert course(traced([0.1] * 12), vanishes=1e-20).dies is None


def test_it_dies_where_nothing_goes_on():
    c = course(traced([1.0, 1.0, 0.0, 1.0]))
    assert (c.dies.launch, c.dies.kernel, c.dies.array) == (2, "scale", "states[2]")
    assert "is zero" in c.dies.why
    c = course(traced([1.0] * 4, grads=[2]))
    assert (c.dies.launch, c.dies.array) == (2, "states[2]")
    assert "no requires_grad" in c.dies.why


def test_one_branch_may_be_zero():
    t = traced([1.0, 2.0], side=True)
    assert course(t).dies is None
    assert health(last(t), t).first is None


def test_a_gradient_that_reaches_its_leaf_has_not_died():
    for factors in ([1.0], [0.5, 2.0], [1.0] * 5):
        assert course(traced(factors)).dies is None


def mixing(count, by, source=True, first=True):
    """A chain `c = by * a + 0.4 b` with one b for all, as iterations of a linear solver are.

    source, first: whether that b, and the array where the chain begins, require a gradient.
    """
    states = [array(first), *(array() for _ in range(count))]
    b, loss = array(source), wp.zeros(1, requires_grad=True)
    with wp.capturing(traces=1000, wants=lambda kernel: False) as capture:
        with wp.Tape() as tape:
            for k in range(count):
                wp.launch(mix, 4, [states[k], by, b], [states[k + 1]])
            wp.launch(total, 4, [states[-1]], [loss])
        tape.backward(loss)
    return trace(capture.tapes[0]), b


def test_a_leaf_that_other_launches_reach_keeps_its_gradient_alive():
    """Along the chain, the gradient shrinks to 2e-12; |d loss / d b| is 0.8 / 0.9."""
    for by in (0.1, 0.0):
        t, b = mixing(12, by, first=False)
        assert np.linalg.norm(b.grad.numpy()) == pytest.approx(0.8 / (1.0 - by), rel=1e-5)
        assert course(t).dies is None and health(last(t), t).first is None


def test_a_leaf_that_nothing_else_reaches_starves_and_is_named():
    c = course(mixing(12, 0.1)[0])
    # |d loss / d states[k]| = 2 * 10^(k - 12), as in a chain without b.
    assert (c.dies.launch, c.dies.array) == (5, "states[5]")
    assert "the gradient that reaches `states[5]` is 2e-07, 2e-07 of the first" in c.dies.why
    c = course(mixing(12, 0.1, source=False)[0])
    assert (c.dies.launch, c.dies.array) == (5, "states[5]")


def test_health_marks_operations_and_arrays():
    t = traced([1.0, 1.0, 0.0, 1.0])
    h = health(last(t), t)
    assert [h.operations[i].level for i in range(5)] == [
        "unreached", "unreached", "gradient", "gradient", "gradient",
    ]  # fmt: skip
    assert h.first == 2
    names = {a.name: i for i, a in enumerate(t.listing.arrays)}
    assert h.arrays[names["states[0]"]].level == "unreached"
    assert h.arrays[names["states[3]"]].value == pytest.approx(2.0)


def test_findings_come_first():
    t = traced([1.0, 1.0, 0.0, 1.0])
    f = Finding("G001", "wrong-gradient", "error", "m", "h", "scale", 0, 3, "f", 1, 1, 1, 1)
    h = health(last(t, [f]), t)
    assert (h.first, h.why) == (3, "G001 wrong-gradient")
    assert h.operations[3].level == "error"
    other = Finding("G001", "wrong-gradient", "error", "m", "h", "scale", 1, 3, "f", 1, 1, 1, 1)
    assert health(last(t, [other]), t).operations[3].level == "gradient"
    note = Finding("G005", "kink", "note", "m", "h", "scale", 0, 3, "f", 1, 1, 1, 1)
    assert health(last(t, [note]), t).operations[3].level == "gradient"


def without_a_launch(code="G013", severity="warning", line=900, tape=0, **given):
    return Finding(code, "n", severity, "m", "h", "", tape, -1, "f", line, 1, 1, 1, **given)


def test_findings_that_name_an_array_colour_it_and_begin_where_it_is_used():
    t = traced([1.0, 1.0, 1.0, 1.0])
    h = health(last(t, [without_a_launch(arrays=("states[2]",))]), t)
    (position,) = [i for i, a in enumerate(t.listing.arrays) if a.name == "states[2]"]
    assert h.arrays[position].level == "warning" and h.arrays[position].text == "G013 n"
    assert (h.first, h.why, h.array, h.homeless) == (1, "G013 n", position, ())
    assert h.operations[1].level == "gradient"


def test_findings_that_name_a_call_on_the_tape_are_there():
    t = traced([1.0, 1.0, 1.0, 1.0])
    place = t.listing.sites[t.listing.operations[4].site]
    h = health(last(t, [without_a_launch("G004", "error", near=(place,), arrays=("w",))]), t)
    assert (h.first, h.why, h.array, h.homeless) == (4, "G004 n", None, ())
    assert h.operations[4].level == "error"


def test_findings_without_a_place_are_told():
    t = traced([1.0, 1.0, 1.0, 1.0])
    nowhere, off = without_a_launch(arrays=("elsewhere",)), without_a_launch("G008", tape=-1)
    h = health(last(t, [nowhere, off]), t)
    assert (h.first, h.array, h.homeless) == (None, None, (nowhere, off))
    others = [without_a_launch(tape=1), without_a_launch(severity="note")]
    assert health(last(t, others), t).homeless == ()


def test_the_path_has_what_leads_there_and_on_to_the_loss():
    x, y, z, w = (array() for _ in range(4))
    out, loss = array(), wp.zeros(1, requires_grad=True)
    with wp.capturing(traces=1000) as capture:
        with wp.Tape() as tape:
            wp.launch(scale, 4, [x, 1.0], [y])  # 0: leads there
            wp.launch(scale, 4, [x, 1.0], [w])  # 1: does not
            wp.launch(scale, 4, [y, 1.0], [z])  # 2: there
            wp.launch(scale, 4, [z, 1.0], [w])  # 3: leads on, to nothing
            wp.launch(add, 4, [z, x], [out])  # 4: leads on
            wp.launch(total, 4, [out], [loss])  # 5: leads on
        tape.backward(loss)
    t = trace(capture.tapes[0])
    assert path_of(t.listing, 2) == {0, 2, 4, 5}


@pytest.mark.parametrize(
    ("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_plots(kind, start):
    c = course(traced([2.0, 0.0, 1e38, 1.0]))
    data = plot(c, kind, "a $strange$ title")
    assert data.startswith(start)
    if kind != "pdf":
        assert plot(c, kind, "a $strange$ title") == data


def test_rows_are_sorted_by_what_is_known():
    found = course(traced([1.0, 2.0, 4.0])).rows
    by_norm = sorted_rows(found, [], Sort.gradient, False)
    assert [r.gradient for r in by_norm] == [16.0, 8.0, 2.0, 1.0]
    assert sorted_rows(found, ["tot*"], Sort.order, False) == [found[-1]]
    assert sorted_rows(found, [], Sort.kernel, True)[0].kernel == "total"


@pytest.mark.parametrize(
    ("growth", "words"),
    [
        (1.0, "stays the same"), (0.99999999, "stays the same"),
        (1.06, "grows by a factor of 1.06 per operation"),
        (0.5, "shrinks by a factor of 2 per operation"),
        (0.945, "shrinks by a factor of 1.058 per operation"),
        (0.0, "shrinks by a factor of inf per operation"),
    ],
)  # fmt: skip
def test_what_grows_by_less_than_one_shrinks(growth: float, words: str) -> None:
    assert growth_words(growth) == words


@pytest.mark.parametrize(
    ("start", "words"),
    [(2.0, ", 2 times the first"), (8.0, ", 0.5 of the first"), (float("nan"), ""), (0.0, ""),
     (float("inf"), ""), (None, "")],
)  # fmt: skip
def test_a_norm_is_told_beside_the_first_where_that_is_a_size(
    start: float | None, words: str
) -> None:
    assert beside_first(4.0, start) == words
