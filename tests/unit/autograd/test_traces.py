"""Traces: names, times, norms of gradients around every operation, and memory."""

import gc
import math
import weakref
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import GraphOptions, dot, graph, trace
from engine.tape.tracing import length
from tests.unit.tape.kernels import (
    double,
    no_backward,
    source,
    square,
    square_in_place,
    total,
)


def traced(run, **options):
    with wp.capturing(**({"traces": 1000} | options)) as capture:
        run()
    return [trace(t) for t in capture.tapes]


def norms(t):
    """For each operation: incoming, outgoing and added, without what there is none of."""
    out = []
    for o in t.operations:
        f = o.flow
        out.append(
            tuple(tuple(x for x in g if x is not None) for g in (f.incoming, f.outgoing, f.added))
        )
    return out


def chain():
    x, y, loss = source(), wp.zeros(3, requires_grad=True), wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape, wp.ScopedTimer("all", print=False):
        wp.launch(square, 3, [x], [y])
        wp.launch(total, 3, [y, loss])
    tape.backward(loss)
    return x


def test_norms_are_those_of_the_backward_pass():
    (t,) = traced(chain)
    size = math.sqrt(4 + 16 + 36)
    assert norms(t) == [
        ((pytest.approx(math.sqrt(3)),), (pytest.approx(size),), (pytest.approx(size),)),
        ((1.0,), (pytest.approx(math.sqrt(3)),), (pytest.approx(math.sqrt(3)),)),
    ]
    assert all(o.forward > 0 and o.backward > 0 for o in t.operations)
    assert t.ran
    assert [a.name for a in t.listing.arrays] == ["x", "y", "loss"]
    assert [s.name for s in t.listing.scopes] == ["all"]
    assert [t.listing.arrays[a].name for a in t.listing.seeded] == ["loss"]


def test_the_gradient_is_the_same_with_and_without():
    plain = chain().grad.list()
    found = []
    traced(lambda: found.append(chain().grad.list()))
    assert found == [plain]


def test_what_a_launch_added_is_told_from_what_was_there():
    x, y, z = source(), wp.zeros(3, requires_grad=True), wp.zeros(3, requires_grad=True)

    def run():
        x.grad.fill_(5.0)  # never cleared
        with wp.Tape() as tape:
            wp.launch(double, 3, [x], [y])
            wp.launch(double, 3, [x], [z])
        tape.backward(grads={y: np.ones(3, np.float32), z: np.full(3, 3, np.float32)})

    (t,) = traced(run)
    first, second = (o.flow for o in t.operations)
    assert second.added == (pytest.approx(6 * math.sqrt(3)), None)
    assert second.outgoing == (pytest.approx(11 * math.sqrt(3)), None)
    assert first.added == (pytest.approx(2 * math.sqrt(3)), None)


def test_in_place_copies_and_functions():
    x, y = source(), wp.zeros(3, requires_grad=True)

    def run():
        with wp.Tape() as tape:
            wp.launch(square_in_place, 3, [x])
            wp.copy(y, x)
            tape.record_func(lambda: None, [y])
            y.zero_()
        tape.backward(grads={y: np.ones(3, np.float32)})

    (t,) = traced(run)
    kinds = [t.listing.kernels[o.kernel].kind for o in t.listing.operations]
    assert kinds == ["launch", "copy", "function", "write"]
    assert norms(t)[3][0] == (pytest.approx(math.sqrt(3)),)
    assert norms(t)[2] == ((), (0.0,), (0.0,))
    assert norms(t)[0] == ((0.0,), (0.0,), (0.0,))
    assert t.memory.journals > 0


def test_not_finite():
    x, y = wp.zeros(2, requires_grad=True), wp.zeros(2, requires_grad=True)

    def run():
        with wp.Tape() as tape:
            wp.launch(double, 2, [x], [y])
        tape.backward(grads={y: np.array([np.inf, 1], np.float32)})

    (t,) = traced(run)
    assert t.operations[0].flow.incoming == (None, math.inf)


def test_the_first_backward_pass_counts_and_none_is_told():
    x, y = source(), wp.zeros(3, requires_grad=True)

    def run():
        with wp.Tape() as tape:
            wp.launch(double, 3, [x], [y])
        for k in (1.0, 100.0):
            tape.backward(grads={y: np.full(3, k, np.float32)})
        with wp.Tape():
            wp.launch(double, 3, [x], [y])

    first, second = traced(run)
    assert first.operations[0].flow.incoming == (None, pytest.approx(math.sqrt(3)))
    assert second.operations[0].flow is None
    assert not second.ran


def test_nothing_is_traced_unless_asked_for_and_no_more_than_asked_for():
    (t,) = traced(chain, traces=0)
    assert t.operations[0].flow is None
    assert t.listing.arrays[0].name == ""
    assert len(t.listing.operations) == 2

    def many():
        for _ in range(3):
            chain()

    three = traced(many, traces=3)
    assert [x.operations[0].flow is not None for x in three] == [True, True, False]


def test_a_long_tape_is_cut_in_the_middle():
    x, y = source(), wp.zeros(3, requires_grad=True)
    with wp.capturing(traces=100) as capture, wp.Tape():
        for _ in range(20):
            wp.launch(double, 3, [x], [y])
    t = trace(capture.tapes[0], 6)
    assert [o.index for o in t.listing.operations] == [0, 1, 2, 17, 18, 19]
    assert [o.launch for o in t.listing.operations] == [0, 1, 2, 17, 18, 19]
    assert t.listing.records == 20
    assert "14 operations in the middle were not kept" in dot(graph(t.listing, GraphOptions()))


def test_no_memory_is_kept_alive():
    x = source()
    gone = []

    def run():
        big = wp.zeros(3, requires_grad=True)
        gone.append(weakref.ref(big))
        with wp.Tape() as tape:
            wp.launch(double, 3, [x], [big])
            tape.record_func(lambda: None, [big])
        tape.backward(grads={big: np.ones(3, np.float32)})

    with wp.capturing(traces=100) as capture:
        run()
        gc.collect()
        assert gone[0]() is None
    assert [a.name for a in trace(capture.tapes[0]).listing.arrays] == ["x", "big"]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([np.array([3e200, 4e200])], 5e200),
        ([np.array([3e-200, 4e-200])], 5e-200),
        ([np.array([3e-30, 4e-30], np.float32)], 5e-30),
        ([np.full(4, 3e38, np.float32)], 6e38),
        ([np.array([np.nan, np.inf])], math.nan),
        ([np.array([np.inf, 1.0]), np.array([np.nan])], math.nan),
        ([np.array([1.0, -np.inf])], math.inf),
        ([np.full((200, 200), 3, np.float32).T, np.full(7, 3, np.float16)], 3 * math.sqrt(40007)),
        ([np.zeros(0)], 0.0),
        ([], 0.0),
    ],
)
def test_length(parts, expected):
    assert length(parts) == pytest.approx(expected, rel=1e-6, nan_ok=True)


def test_of_a_long_tape_the_middle_is_not_followed():
    x, y = source(), wp.zeros(3, requires_grad=True)
    with wp.capturing(traces=6) as capture:
        with wp.Tape() as tape:
            for _ in range(20):
                wp.launch(double, 3, [x], [y])
        tape.backward(grads={y: np.ones(3, np.float32)})
    t = trace(capture.tapes[0])
    followed = [
        o.index
        for o, s in zip(t.listing.operations, t.operations, strict=True)
        if s.flow is not None
    ]
    assert followed == [0, 1, 2, 17, 18, 19]
    assert all(o.forward is not None for o in t.operations)


def test_warnings_of_a_backward_pass_point_to_the_user_as_ever():
    x, y = source(), wp.zeros(3, requires_grad=True)

    def run():
        with wp.Tape() as tape:
            wp.launch(no_backward, 3, [x], [y])
        with pytest.warns(UserWarning, match="no gradient flows") as seen:
            tape.backward(grads={y: np.ones(3, np.float32)})
        return [w.filename for w in seen]

    plain = run()
    with wp.capturing(traces=10):
        assert run() == plain == [__file__]


def test_names_survive_objects_that_do_not_want_to_be_looked_at():
    class Rude:
        @property
        def __class__(self):
            raise RuntimeError("no")

    x, y, rude = source(), wp.zeros(3, requires_grad=True), Rude()
    with wp.capturing(traces=10) as capture, wp.Tape():
        wp.launch(double, 3, [x], [y])
    assert rude is not None
    assert [a.name for a in trace(capture.tapes[0]).listing.arrays] == ["x", "y"]


def test_arrays_of_each_of_many_tapes_are_named_beside_much_data():
    class Sample:
        def __init__(self):
            self.label = "cat"

    def run():
        data = [Sample() for _ in range(5000)]
        for _ in range(150):
            x, y = source(), wp.zeros(3, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(square, 3, [x], [y])
            tape.backward(grads={y: y})
        return data

    def elsewhere():
        data = [source()]
        with wp.Tape():
            wp.launch(square, 3, [data[0]], [wp.zeros(3, requires_grad=True)])

    traced(elsewhere)  # a variable of the same name that leads to an array
    names = [[a.name for a in t.listing.arrays] for t in traced(run)]
    assert names == [["x", "y"]] * 150


def test_what_a_notebook_has_shown_gives_no_names():
    cell = """
{0}, {1} = source(), wp.zeros(3, requires_grad=True)
Out, _3, _hidden = {{3: {0}, 4: {1}}}, {0}, [{1}]
with wp.capturing(traces=10) as capture, wp.Tape():
    wp.launch(square, 3, [{0}], [{1}])
"""
    cases: list[Any] = [
        (["here", "there"], {}, ["Out[3]", "_hidden[0]"]),
        (["seen", "shown"], {"get_ipython": print}, ["seen", "shown"]),
    ]
    for variables, shell, found in cases:
        names = {"wp": wp, "source": source, "square": square, "__name__": "__main__", **shell}
        exec(compile(cell.format(*variables), "<cell>", "exec"), names)
        arrays = trace(names["capture"].tapes[0]).listing.arrays
        assert [a.name for a in arrays] == found


def test_variables_of_a_running_function_are_let_go():
    x = source()
    with wp.capturing(traces=10) as capture:
        y = wp.zeros(3, requires_grad=True)
        with wp.Tape():
            wp.launch(double, 3, [x], [y])
        gone = weakref.ref(y)
        del y
        gc.collect()
        assert gone() is None
    assert [a.name for a in trace(capture.tapes[0]).listing.arrays] == ["x", "y"]


def test_locals_that_the_program_asked_for_stay():
    x, y = source(), wp.zeros(3, requires_grad=True)
    mine = locals()
    with wp.capturing(traces=10) as capture, wp.Tape():
        wp.launch(double, 3, [x], [y])
    assert mine["x"] is x
    assert capture.tapes


@pytest.mark.parametrize("overwrites", ["restore", "present"])
def test_memory_is_the_programs_own_whether_or_not_a_check_copies(overwrites, monkeypatch):
    """Of a sum, a chain, what is overwritten on the tape and what is after it."""
    monkeypatch.setattr(wp.config, "overwrites", overwrites)

    def run():
        x, y = source(), wp.zeros(3, requires_grad=True)
        wide, loss = wp.ones(50, requires_grad=True), wp.zeros(1, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(square_in_place, 3, [x])
            wp.copy(y, x)
            wp.launch(total, 50, [wide, loss])
            wp.launch(total, 3, [y, loss])
            y.zero_()
        tape.backward(loss)

    copied, plain = (traced(run, wants=w)[0].memory for w in (None, lambda _: False))
    assert copied == plain
    # x, y and twice the sum, but not the 200 bytes that nothing has changed.
    assert copied.inputs == (32 if overwrites == "restore" else 0)
