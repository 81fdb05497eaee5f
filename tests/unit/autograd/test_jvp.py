"""`jvp` of launches and tapes: what moves, what stays, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import EngineError, LaunchError, TapeError, config
from engine.autograd import jvp

T = wp.float64


@wp.kernel
def multiply(x: wp.array(dtype=T), w: wp.array(dtype=T), y: wp.array(dtype=T)):
    i = wp.tid()
    y[i] = x[i] * w[i]


@wp.kernel
def accumulate(x: wp.array(dtype=T), y: wp.array(dtype=T)):
    i = wp.tid()
    y[i] += x[i] * x[i]


@wp.kernel
def in_place(x: wp.array(dtype=T)):
    i = wp.tid()
    x[i] = x[i] * x[i]


@wp.kernel
def gathered(x: wp.array(dtype=T), index: wp.array(dtype=int), y: wp.array(dtype=T)):
    i = wp.tid()
    y[i] = x[index[i]] * T(3.0)
    index[i] = 0


@wp.kernel
def optional(x: wp.array(dtype=T), bias: wp.array(dtype=T), y: wp.array(dtype=T)):
    i = wp.tid()
    y[i] = x[i]
    if bias:
        y[i] = y[i] + bias[i]


@wp.kernel(enable_backward=False)
def forward_only(x: wp.array(dtype=T), y: wp.array(dtype=T)):
    i = wp.tid()
    y[i] = wp.exp(x[i])


@wp.kernel
def shift(x: wp.array(dtype=T), y: wp.array(dtype=T)):
    i = wp.tid()
    y[i] = x[i] * T(2.0)


def floats(*values: float, grad: bool = True) -> Any:
    return wp.array(values, dtype=T, requires_grad=grad)


def equal(a: Any, expected: Any) -> None:
    np.testing.assert_allclose(a.numpy(), np.asarray(expected, float), rtol=1e-14)


def code(of: Any) -> str:
    return of.value.diagnostics[0].code


# ---- launches


@pytest.mark.parametrize("key", ["array", "name", "position"])
def test_keys_of_a_launch(key: str) -> None:
    x, w, y = floats(1, 2, grad=False), floats(3, 4, grad=False), floats(0, 0, grad=False)
    of = {"array": (x, y), "name": ("x", "y"), "position": (0, 2)}[key]
    moved = jvp(multiply, dim=2, inputs=[x, w], outputs=[y], tangents={of[0]: [1.0, 10.0]})
    equal(moved[of[1]], [3, 40])
    assert list(moved) == [y] and len(moved) == 1
    assert "nothing" not in moved


def test_a_launch_changes_nothing_of_the_user() -> None:
    x, y = floats(1, 2), floats(5, 6)
    x.grad.fill_(7.0)
    with wp.Tape() as tape:
        equal(jvp(accumulate, 2, [x], [y], tangents={x: [1, 1], y: [0.5, 0.5]})[y], [2.5, 4.5])
        jvp(in_place, 2, [x], tangents={x: [1, 1]})
    assert not tape.records
    equal(x, [1, 2])
    equal(y, [5, 6])
    equal(x.grad, [7, 7])


def test_several_arrays_move() -> None:
    x, w, y = floats(1, 2), floats(3, 4), floats(0, 0)
    moved = jvp(multiply, 2, [x, w, y], tangents={x: [1, 1], w: wp.array([2, 2], dtype=T)})
    equal(moved[y], [5, 8])


def test_one_memory_has_one_tangent() -> None:
    x, y = floats(1, 2, 3, 4), floats(0, 0)
    equal(jvp(multiply, 2, [x[:2], x[1:3], y], tangents={0: [1, 10]})[2], [2 + 10, 30])
    equal(jvp(multiply, 2, [x, x, x], tangents={x: [1, 10, 0, 0]})["y"], [2, 40, 0, 0])


def test_views_of_every_layout() -> None:
    x, y = floats(*range(1, 13)), floats(*[0] * 12)
    backwards, grid = x[::-3], y.reshape((3, 4)).transpose()
    moved = jvp(multiply, 4, [backwards, backwards, grid[:, 1]],
                tangents={backwards: [1, 1, 1, 1]})  # fmt: skip
    equal(moved["y"], 2 * np.arange(1, 13)[::-3])
    equal(y, np.zeros(12))


def test_integers_are_private_too() -> None:
    x, y = floats(1, 2, 3), floats(0, 0)
    index = wp.array([2, 0], dtype=int)
    equal(jvp(gathered, 2, [x, index, y], tangents={x: [1, 10, 100]})[y], [300, 3])
    assert index.numpy().tolist() == [2, 0]


def test_missing_arrays() -> None:
    x, y = floats(1, 2), floats(0, 0)
    equal(jvp(optional, 2, [x, None, y], tangents={x: [1, 2]})[y], [1, 2])
    equal(jvp(optional, 2, [x, x, y], tangents={x: [1, 2]})[y], [2, 4])


@pytest.mark.host("launches of memory of the host")
def test_numpy_arguments() -> None:
    x, y = np.array([1.0, 2.0]), np.zeros(2)
    equal(jvp(multiply, 2, [x, x.copy(), y], tangents={"x": [1, 1], "w": [0, 1]})["y"], [1, 4])
    assert not y.any()


def test_two_tangents_of_one_element() -> None:
    x, y = floats(1, 2, 3), floats(0, 0)
    same = {0: [1, 10], 1: [10, 100]}
    equal(jvp(multiply, 2, [x[:2], x[1:], y], tangents=same)[y], [2 + 10, 30 + 200])
    with pytest.raises(TapeError) as caught:
        jvp(multiply, 2, [x[:2], x[1:], y], tangents={0: [1, 1], 1: [10, 100]})
    assert code(caught) == "E406" and "same memory" in str(caught.value)


def test_no_threads() -> None:
    x, y = floats(1, 2), floats(0, 0)
    equal(jvp(shift, 0, [x], [y], tangents={x: [1, 1], y: [3, 4]})[y], [3, 4])


@pytest.mark.parametrize(
    ("tangents", "expected", "says"),
    [
        ({"z": [1, 1]}, "E406", "has no array argument 'z'"),
        ({0: [1, 1, 1]}, "E406", "expected shape (2,) of float64, got shape (3,)"),
        ({0: "text"}, "E406", "does not fit"),
        ({1: [1, 1]}, "E406", "elements of type int32 have no tangent"),
        ([1, 1], "E406", "must be a dictionary"),
        ({2.5: [1]}, "E406", "no array argument"),
    ],
)
def test_bad_tangents_of_a_launch(tangents: Any, expected: str, says: str) -> None:
    args = [floats(1, 2), wp.zeros(2, dtype=int), floats(0, 0)]
    with pytest.raises(TapeError) as caught:
        jvp(gathered, 2, args, tangents=tangents)
    assert code(caught) == expected and says in str(caught.value)
    assert "test_jvp.py" in str(caught.value)


def test_arguments_are_checked_as_by_launch() -> None:
    with pytest.raises(LaunchError) as caught:
        jvp(shift, 2, [floats(1, 2)], tangents={})
    assert code(caught) == "E201"
    with pytest.raises(EngineError) as caught:
        jvp(print, tangents={})  # type: ignore[arg-type]
    assert code(caught) == "E202"


@wp.kernel
def talkative(x: wp.array(dtype=T), y: wp.array(dtype=T)):
    i = wp.tid()
    print(x[i])
    y[i] = x[i] * x[i]


def test_nothing_is_printed(capfd: Any) -> None:
    x, y = floats(1, 2), floats(0, 0)
    equal(jvp(talkative, 2, [x, y], tangents={x: [1, 1]})[y], [2, 4])
    assert capfd.readouterr().out == ""


@wp.struct
class Particle:
    mass: T
    tag: int
    place: wp.vec3d


@wp.struct
class Scene:
    weights: wp.array(dtype=T)
    scale: T


@wp.kernel
def moved_particles(p: wp.array(dtype=Particle), s: Scene, q: wp.array(dtype=Particle)):
    i = wp.tid()
    q[i].place = p[i].place * p[i].mass * s.weights[i] * s.scale
    q[i].tag = p[i].tag + 1


def test_structs() -> None:
    dtype = Particle.numpy_dtype()
    data = np.array([(2.0, 5, (1, 2, 3)), (3.0, 6, (4, 5, 6))], dtype)
    p = wp.array(data, dtype=Particle)
    q = wp.zeros(2, dtype=Particle)
    s = Scene()
    s.weights, s.scale = floats(1.0, 10.0), 2.0
    step = np.array([(1.0, 99, (0, 0, 1)), (0.0, 99, (1, 0, 0))], dtype)
    moved = jvp(moved_particles, 2, [p, s, q], tangents={"p": step, s.weights: [0.5, 0.0]})
    assert list(moved) == [q] and moved[2].dtype is Particle
    got = moved["q"].numpy()
    base, to = data["place"], step["place"]
    weights = np.array([[1.0], [10.0]])
    expected = 2 * (to * data["mass"][:, None] + base * step["mass"][:, None]) * weights
    expected[0] += 2 * base[0] * 2.0 * 0.5
    np.testing.assert_allclose(got["place"], expected)
    assert not got["tag"].any() and not got["mass"].any()
    np.testing.assert_array_equal(p.numpy(), data)
    assert not q.numpy()["tag"].any()
    with pytest.raises(TapeError, match="does not fit"):
        jvp(moved_particles, 2, [p, s, q], tangents={p: [1.0, 2.0]})
    with pytest.raises(TapeError, match="no array argument 's'"):
        jvp(moved_particles, 2, [p, s, q], tangents={"s": [1.0, 2.0]})


# ---- tapes


def test_a_tape_is_replayed_in_order() -> None:
    x, w, y, z = floats(1, 2), floats(3, 4), floats(0, 0), floats(0, 0)
    with wp.Tape() as tape:
        wp.launch(multiply, 2, [x, w, y])
        wp.launch(multiply, 2, [y, y, z])
        wp.launch(shift, 2, [z], [y])
    before = {id(a): a.numpy().copy() for a in (x, w, y, z)}
    moved = jvp(tape, tangents={x: [1, 10]})
    equal(moved[z], [2 * 3 * 3, 2 * 8 * 40])
    equal(moved[y], [36, 1280])
    equal(moved[x], [1, 10])
    equal(moved[y[1:]], [1280])
    assert {id(a) for a in moved} == {id(y), id(z)}
    for a in (x, w, y, z):
        np.testing.assert_array_equal(a.numpy(), before[id(a)])


def test_overwritten_inputs_count_as_they_were() -> None:
    x, y = floats(1, 2), floats(0, 0)
    with wp.Tape() as tape:
        wp.launch(in_place, 2, [x])
        wp.launch(in_place, 2, [x])
        wp.launch(shift, 2, [x], [y])
    x.fill_(100.0)
    y.numpy()[:] = 5.0
    equal(jvp(tape, tangents={x: [1, 1]})[y], [8, 64])


def test_copies_and_overwrites() -> None:
    x, y = floats(1, 2, 3), floats(0, 0, 0)
    with wp.Tape() as tape:
        c = wp.clone(x)
        wp.copy(y, c, dest_offset=1, src_offset=0, count=2)
        d = wp.zeros_like(x)
        d.assign(y)
        c.zero_()
        y[0] = 7.0
    moved = jvp(tape, tangents={x: [1, 10, 100]})
    equal(moved[y], [0, 1, 10])
    equal(moved[d], [0, 1, 10])
    equal(moved[c], [0, 0, 0])


def test_copies_between_precisions() -> None:
    x = floats(1, 2)
    single = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(single, x)
    moved = jvp(tape, tangents={x: [1, 10]})[single]
    assert moved.dtype is wp.float32
    equal(moved, [1, 10])


def test_derivatives_flow_through_arrays_with_gradients_alone() -> None:
    x, cut, y = floats(1, 2), floats(0, 0, grad=False), floats(0, 0)
    with wp.Tape() as tape:
        wp.launch(shift, 2, [x], [cut])
        wp.launch(shift, 2, [cut], [y])
    moved = jvp(tape, tangents={x: [1, 1]})
    equal(moved[y], [0, 0])
    with pytest.raises(KeyError):
        moved[cut]
    with pytest.raises(TapeError) as caught:
        jvp(tape, tangents={cut: [1, 1]})
    assert code(caught) == "E406" and "requires_grad=True" in str(caught.value)


def test_forward_mode_needs_no_adjoint() -> None:
    x, y = floats(0.0, 1.0), floats(0, 0)
    with wp.Tape() as tape:
        wp.launch(forward_only, 2, [x], [y])
    equal(jvp(tape, tangents={x: [1, 1]})[y], np.exp([0.0, 1.0]))


def test_what_a_recorded_function_does_is_not_known() -> None:
    x, y = floats(1, 2), floats(0, 0)
    with wp.Tape() as tape:
        wp.launch(shift, 2, [x], [y])
        tape.record_func(lambda: None, [x, y])
    with pytest.raises(TapeError) as caught:
        jvp(tape, tangents={x: [1, 1]})
    (problem,) = caught.value.diagnostics
    assert problem.code == "E401" and problem.span is not None and "record_func" in problem.help


@pytest.mark.parametrize("how", ["off", "limit"])
def test_contents_that_were_not_kept(how: str, monkeypatch: Any) -> None:
    if how == "off":
        monkeypatch.setattr(config, "tape_snapshots", "off")
    else:
        monkeypatch.setattr(config, "snapshot_limit_bytes", 0)
    x, y = floats(1, 2), floats(0, 0)
    with wp.Tape() as tape:
        wp.launch(multiply, 2, [x, x], [y])
    x.fill_(3.0)
    with pytest.raises(TapeError) as caught:
        jvp(tape, tangents={x: [1, 1]})
    assert code(caught) == "E401" and "argument 'x'" in str(caught.value)
    assert "config." in str(caught.value)


def test_arrays_that_are_not_on_the_tape() -> None:
    x, y = floats(1, 2), floats(0, 0)
    with wp.Tape() as tape:
        wp.launch(shift, 2, [x], [y])
    with pytest.raises(TapeError, match="not on the tape"):
        jvp(tape, tangents={floats(1, 2): [1, 1]})
    with pytest.raises(TapeError, match="not an array"):
        jvp(tape, tangents={"x": [1, 1]})
    with pytest.raises(KeyError):
        jvp(tape, tangents={x: [1, 1]})[floats(1, 2)]


def test_part_of_an_array_moves() -> None:
    x, y = floats(1, 2, 3), floats(0, 0, 0)
    with wp.Tape() as tape:
        wp.launch(shift, 3, [x], [y])
    equal(jvp(tape, tangents={x[1:]: [1, 10]})[y], [0, 2, 20])


def test_arrays_of_which_views_alone_are_on_the_tape() -> None:
    x = wp.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], dtype=wp.float64, requires_grad=True)
    y, rest = wp.zeros_like(x), wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.copy(y[::2], x[4:1:-1])
        wp.copy(y[5:], x[:1])
        wp.copy(rest[1:3], y[4:])
    v = np.array([0.5, -1.0, 2.0, 3.0, -4.0, 7.0])
    moved = jvp(tape, tangents={x: v})
    assert moved[y].list() == [-4.0, 0.0, 3.0, 0.0, 2.0, 0.5]
    assert moved[rest].list() == [0.0, 2.0, 0.5, 0.0, 0.0, 0.0]
    assert moved[rest[::-2]].list() == [0.0, 0.0, 2.0]
    assert moved[x].list() == v.tolist()
    with pytest.raises(KeyError):
        moved[wp.zeros_like(x)]
    of_launch = jvp(accumulate, 2, [x[1::2]], [y[3:]], tangents={x: v})
    assert of_launch[y].list() == [0.0, 0.0, 0.0, 2 * 2 * v[1], 2 * 4 * v[3], 0.0]


def test_captured_tapes() -> None:
    x, y = floats(1, 2), floats(0, 0)
    with wp.capturing() as capture:
        with wp.Tape() as tape:
            wp.launch(shift, 2, [x], [y])
        tape.reset()
    with pytest.raises(TapeError, match="captured tape are gone"):
        jvp(capture.tapes[0], tangents={x: [1, 10]})


# ---- the user's own derivatives


@wp.func
def wrong(v: wp.vec3d, s: T):
    return v * s, wp.dot(v, v)


@wp.func_grad(wrong)
def adj_wrong(v: wp.vec3d, s: T, adj_scaled: wp.vec3d, adj_size: T):
    # Not the derivative, so that it shows which one is used.
    wp.adjoint[v] += adj_scaled * (s * T(5.0)) + v * (adj_size * T(7.0))
    wp.adjoint[s] += T(11.0) * wp.dot(v, adj_scaled)


@wp.kernel
def use_wrong(v: wp.array(dtype=wp.vec3d), s: wp.array(dtype=T), y: wp.array(dtype=wp.vec3d),
              z: wp.array(dtype=T)):  # fmt: skip
    i = wp.tid()
    scaled, size = wrong(v[i], s[i])
    y[i] = scaled * size
    z[i] = size


def test_forward_mode_is_the_transpose_of_a_custom_gradient() -> None:
    rng = np.random.default_rng(5)
    v = wp.array(rng.standard_normal((4, 3)), dtype=wp.vec3d, requires_grad=True)
    s = wp.array(rng.standard_normal(4), dtype=T, requires_grad=True)
    y, z = wp.zeros_like(v), wp.zeros_like(s)
    with wp.Tape() as tape:
        wp.launch(use_wrong, 4, [v, s], [y, z])
    to = {y: rng.standard_normal((4, 3)), z: rng.standard_normal(4)}
    of = {v: rng.standard_normal((4, 3)), s: rng.standard_normal(4)}
    tape.backward(grads=to)
    moved = jvp(tape, tangents=of)
    ahead = sum(float((moved[a].numpy() * w).sum()) for a, w in to.items())
    back = sum(float((a.grad.numpy() * t).sum()) for a, t in of.items())
    assert ahead == pytest.approx(back, rel=1e-12)
    # d size = 7 v . dv by the user's word, not 2 v . dv.
    expected = 7 * (v.numpy() * of[v]).sum(-1)
    np.testing.assert_allclose(jvp(tape, tangents={v: of[v]})[z].numpy(), expected, rtol=1e-12)
