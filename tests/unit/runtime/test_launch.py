"""launch: arguments, grids, errors."""

import numpy as np
import pytest

import engine as wp
from engine import KernelError, LaunchError


@wp.kernel
def scale(x: wp.array(dtype=float), s: float, n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    if i < n:
        y[i] = x[i] * s


@wp.kernel
def shift(x: wp.array(dtype=wp.vec3), v: wp.vec3, y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    y[i] = x[i] + v


@wp.kernel
def rotate(m: wp.mat22d, x: wp.array(dtype=wp.vec2d)):
    i = wp.tid()
    x[i] = m * x[i]


@wp.kernel
def grid_sum(x: wp.array2d(dtype=float), out: wp.array(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(out, i, x[i, j])


@wp.kernel
def small_types(
    a: wp.int8, b: wp.uint16, c: wp.int64, d: wp.float64, e: bool, out: wp.array(dtype=wp.float64)
):
    out[0] = wp.float64(a)
    out[1] = wp.float64(b)
    out[2] = wp.float64(c)
    out[3] = d
    if e:
        out[4] = wp.float64(1.0)


@wp.kernel
def coordinates(out: wp.array4d(dtype=int)):
    i, j, k, m = wp.tid()
    out[i, j, k, m] = i * 1000 + j * 100 + k * 10 + m


@wp.kernel
def wrong(x: wp.array(dtype=float)):
    x[0] = undefined_name  # noqa: F821


@wp.kernel
def square_in_place(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] * x[i]


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def diagnostic(error):
    return error.value.diagnostics[0]


def arrays():
    return wp.array([1, 2, 3], dtype=float), wp.zeros(3)


# ---- what runs


def test_launch():
    x, y = arrays()
    wp.launch(scale, 3, [x, 2.0, 3], [y])
    assert y.list() == [2, 4, 6]
    wp.launch(scale, dim=(3,), inputs=[x, 3.0, 2, y])
    assert y.list() == [3, 6, 6]
    wp.launch(scale, [3], inputs=(x, 1.0), outputs=(3, y), device=x.device, block_dim=64)
    assert y.list() == [1, 2, 3]


@pytest.mark.parametrize("dim", [np.int64(3), np.array([3]), [np.int32(3)]])
def test_numpy_dimensions(dim):
    x, y = arrays()
    wp.launch(scale, dim, [x, 2.0, 3], [y])
    assert y.list() == [2, 4, 6]


@wp.kernel
def counted_1(seen: wp.array4d(dtype=int)):
    i = wp.tid()
    wp.atomic_add(seen, i, 0, 0, 0, 1)


@wp.kernel
def counted_2(seen: wp.array4d(dtype=int)):
    i, j = wp.tid()
    wp.atomic_add(seen, i, j, 0, 0, 1)


@wp.kernel
def counted_3(seen: wp.array4d(dtype=int)):
    i, j, k = wp.tid()
    wp.atomic_add(seen, i, j, k, 0, 1)


@wp.kernel
def counted_4(seen: wp.array4d(dtype=int)):
    i, j, k, m = wp.tid()
    wp.atomic_add(seen, i, j, k, m, 1)


@pytest.mark.parametrize("dim", [(3,), (2, 3), (2, 1, 4), (3, 2, 2, 2), (1, 5)])
@pytest.mark.parametrize(
    ("arity", "kernel"), [(1, counted_1), (2, counted_2), (3, counted_3), (4, counted_4)]
)
def test_as_many_coordinates_as_are_asked_for(arity, kernel, dim):
    """The first ones; 0 along an axis that the grid has not."""
    seen = wp.zeros((5, 5, 5, 5), dtype=int)
    wp.launch(kernel, dim, [seen])
    want = np.zeros((5, 5, 5, 5), int)
    for at in np.ndindex(*dim):
        want[tuple((*at, 0, 0, 0)[:arity]) + (0,) * (4 - arity)] += 1
    assert np.array_equal(seen.numpy(), want)


def test_coordinates():
    out = wp.zeros((2, 3, 4, 5), dtype=int)
    wp.launch(coordinates, out.shape, [out])
    i, j, k, m = np.indices(out.shape)
    assert np.array_equal(out.numpy(), i * 1000 + j * 100 + k * 10 + m)


def test_no_threads():
    x, y = arrays()
    for dim in (0, (0,), (3, 0)):
        wp.launch(scale, dim, [x, 2.0, 3], [y])
    assert y.list() == [0, 0, 0]


def test_strided_arguments():
    x = wp.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    y = wp.zeros((3, 2))
    wp.launch(scale, 3, [x[1], 10.0, 3], [y[:, 1]])
    assert y.numpy()[:, 1].tolist() == [30, 40, 50]
    wp.launch(scale, 3, [x[1][::-1], 1.0, 3], [y[:, 0]])
    assert y.numpy()[:, 0].tolist() == [5, 4, 3]
    out = wp.zeros(3)
    wp.launch(grid_sum, (3, 2), [x.transpose()], [out])
    assert out.list() == [3, 5, 7]


@pytest.mark.host("launches of memory of the host")
def test_broadcast_reading():
    x = wp.array(np.broadcast_to(np.float32(4.0), (3,)), copy=False)
    y = wp.zeros(3)
    wp.launch(scale, 3, [x, 2.0, 3], [y])
    assert y.list() == [8, 8, 8]


@pytest.mark.host("launches of memory of the host")
def test_numpy_arguments():
    x, y = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
    wp.launch(scale, 3, [x, 2.0, 3], [y])
    assert y.tolist() == [0, 2, 4]
    v = np.zeros((2, 3), np.float32)
    wp.launch(shift, 2, [v, wp.vec3(1, 2, 3)], [v])
    assert v.tolist() == [[1, 2, 3], [1, 2, 3]]


@pytest.mark.parametrize(
    "s", [2, 2.0, True, np.float64(2), np.int8(2), np.array(2.0), wp.float64(2)]
)
def test_numbers_for_a_float(s):
    x, y = arrays()
    wp.launch(scale, 3, [x, s, 3], [y])
    assert y.list() == [float(s) * v for v in (1, 2, 3)]


@pytest.mark.parametrize("s", [1e300, -1e300, float("inf"), float("nan")])
def test_floats_beyond_the_range(s):
    x, y = arrays()
    wp.launch(scale, 3, [x, s, 3], [y])
    with np.errstate(over="ignore"):
        assert np.array_equal(y.numpy(), np.float32(s) * np.float32([1, 2, 3]), equal_nan=True)


@pytest.mark.parametrize(
    "v", [wp.vec3(1, 2, 3), (1, 2, 3), [1.0, 2, 3], np.arange(1, 4), wp.vec3d(1, 2, 3)]
)
def test_values_for_a_vector(v):
    x, y = wp.zeros(1, dtype=wp.vec3), wp.zeros(1, dtype=wp.vec3)
    wp.launch(shift, 1, [x, v], [y])
    assert y[0] == wp.vec3(1, 2, 3)


@pytest.mark.parametrize("m", [wp.mat22d(0, 1, 2, 0), [[0, 1], [2, 0]], np.array([[0, 1], [2, 0]])])
def test_values_for_a_matrix(m):
    x = wp.array([[3, 4]], dtype=wp.vec2d)
    wp.launch(rotate, 1, [m, x])
    assert x[0] == wp.vec2d(4, 6)


def test_every_width():
    out = wp.zeros(5, dtype=wp.float64)
    wp.launch(small_types, 1, [-128, 65535, 1 << 53, 0.1, True], [out])
    assert out.list() == [-128, 65535, 2.0**53, 0.1, 1]
    wp.launch(
        small_types, 1, [np.int8(1), np.uint8(2), 3, 4, np.bool_(False)], [wp.zeros_like(out)]
    )


def test_none_for_an_array():
    x, _ = arrays()
    before = x.list()
    wp.launch(scale, 3, [x, 2.0, 0, None])  # n = 0: never touched
    assert x.list() == before


def test_command():
    x, y = arrays()
    command = wp.launch(scale, 3, [x, 2.0, 3], [y], record_cmd=True)
    assert y.list() == [0, 0, 0]
    command.launch()
    command.set_param_at_index(1, 5.0)
    command.set_param_by_name("n", 2)
    command.launch()
    assert y.list() == [5, 10, 6]


# ---- what is refused


@pytest.mark.parametrize(
    ("args", "code", "got"),
    [
        (lambda x, y: [x, 2.0, 3], "E201", "got 3"),
        (lambda x, y: [x, 2.0, 3, y, y], "E201", "got 5"),
        (
            lambda x, y: [wp.zeros(3, dtype=int), 2.0, 3, y],
            "E202",
            "but got array(dtype=int32, ndim=1)",
        ),
        (lambda x, y: [wp.zeros(3, dtype=wp.vec3), 2.0, 3, y], "E202", "vec3f"),
        (
            lambda x, y: [wp.zeros((3, 3)), 2.0, 3, y],
            "E203",
            "but got array(dtype=float32, ndim=2)",
        ),
        (lambda x, y: [np.zeros(3), 2.0, 3, y], "E202", "float64"),
        (lambda x, y: [np.zeros((3, 3), np.float32), 2.0, 3, y], "E203", "(3, 3)"),
        (lambda x, y: [[1.0, 2.0, 3.0], 2.0, 3, y], "E202", "list"),
        (lambda x, y: [x, "2", 3, y], "E202", "str"),
        (lambda x, y: [x, 2.0, 3.0, y], "E202", "3.0 of type float"),
        (lambda x, y: [x, 2.0, np.float32(3), y], "E202", "float32"),
        (lambda x, y: [x, 2.0, 1 << 40, y], "E202", "outside"),
        (lambda x, y: [x, None, 3, y], "E202", "None"),
        (lambda x, y: [x, wp.vec3(), 3, y], "E202", "vec3f"),
    ],
)
def test_wrong_arguments(args, code, got):
    x, y = arrays()
    with pytest.raises(LaunchError) as e:
        wp.launch(scale, 3, args(x, y))
    d = diagnostic(e)
    assert d.code == code
    assert "'scale'" in d.message
    text = str(e.value)
    assert got in text
    assert "expect" in text
    assert f"--> {__file__}:" in text
    assert "^" in text
    assert y.list() == [0, 0, 0]


def test_error_names_the_argument():
    x, y = arrays()
    with pytest.raises(LaunchError, match="argument 'n'"):
        wp.launch(scale, 3, [x, 2.0, "n", y])


@pytest.mark.parametrize("v", [2.0, (1, 2), "abc", [(1, 2, 3), (4, 5)]])
def test_wrong_vectors(v):
    with pytest.raises(LaunchError) as e:
        wp.launch(shift, 1, [wp.zeros(1, dtype=wp.vec3), v], [wp.zeros(1, dtype=wp.vec3)])
    assert diagnostic(e).code == "E202"


@pytest.mark.parametrize("dim", [-1, (2, -1), 2.0, (2.0, 3), (1, 1, 1, 1, 1), "3", None, 1 << 40])
def test_wrong_dimensions(dim):
    x, y = arrays()
    with pytest.raises(LaunchError) as e:
        wp.launch(scale, dim, [x, 2.0, 3], [y])
    assert diagnostic(e).code == "E205"


@wp.kernel
def note_thread(count: wp.array(dtype=int)):
    wp.atomic_add(count, wp.tid(), 1)


@pytest.mark.parametrize("dim", [(), [], np.zeros(0, int), wp.zeros(1).shape[1:]])
def test_no_dimensions_are_one_thread(dim):
    count = wp.zeros(2, dtype=int)
    wp.launch(note_thread, dim, [count])
    wp.launch(note_thread, dim, [count], record_cmd=True).launch()
    wp.Launch(note_thread, params=[count], bounds=dim).launch()
    assert count.numpy().tolist() == [3, 0]


@pytest.mark.parametrize(
    ("dim", "words"),
    [
        ((2, -1), "launch dimensions must be non-negative"),
        ((1, 1, 1, 1, 1), "a launch has at most 4 dimensions"),
        (1 << 40, "launch dimensions are too large"),
        (2.5, "launch dimensions must be integers"),
    ],
)
def test_what_is_wrong_with_dimensions(dim, words):
    x, y = arrays()
    with pytest.raises(LaunchError) as e:
        wp.launch(scale, dim, [x, 2.0, 3], [y])
    assert words in diagnostic(e).message
    assert repr(dim) in diagnostic(e).notes[0]


def test_an_array_in_place_of_a_list():
    x, y = arrays()
    with pytest.raises(LaunchError, match=r"inputs=\[x\]"):
        wp.launch(scale, 3, x, [y])
    with pytest.raises(LaunchError):
        wp.launch(scale, 3, inputs=x)


def test_not_a_kernel():
    with pytest.raises(LaunchError):
        wp.launch("scale", 3)
    with pytest.raises(LaunchError):
        wp.launch(lambda: None, 3)


def test_unknown_device():
    x, y = arrays()
    with pytest.raises(LaunchError) as e:
        wp.launch(scale, 3, [x, 2.0, 3], [y], device="cuda")
    assert diagnostic(e).code == "E208"


def test_memory_of_a_gpu():
    class OnGpu:
        __cuda_array_interface__ = {  # noqa: RUF012
            "version": 3, "shape": (3,), "typestr": "<f4", "data": (4096, False),
        }  # fmt: skip

    x, _ = arrays()
    with pytest.raises(LaunchError) as e:
        wp.launch(scale, 3, [x, 2.0, 3, OnGpu()])
    assert diagnostic(e).code == "E204"


def test_kernels_cannot_be_called():
    with pytest.raises(LaunchError, match="launch"):
        scale(1)


@pytest.mark.host("launches of memory of the host")
def test_overlapping_elements_cannot_be_written():
    x, _ = arrays()
    y = wp.array(np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (3,), (0,)), copy=False)
    with pytest.raises(LaunchError, match="overlap"):
        wp.launch(scale, 3, [x, 2.0, 3], [y])
    assert y.list() == [0, 0, 0]


@pytest.mark.host("launches of memory of the host")
def test_read_only_memory_cannot_be_written():
    x, _ = arrays()
    y = np.zeros(3, np.float32)
    y.flags.writeable = False
    with pytest.raises(LaunchError, match="read-only"):
        wp.launch(scale, 3, [x, 2.0, 3], [y])
    wp.launch(scale, 3, [y, 2.0, 3], [x])  # reading is fine
    assert x.list() == [0, 0, 0]


def test_a_bad_kernel_fails_at_its_own_launch_only():
    x, y = arrays()
    wp.launch(scale, 3, [x, 2.0, 3], [y])
    for _ in range(2):
        with pytest.raises(KernelError, match="undefined_name"):
            wp.launch(wrong, 1, [x])
    assert x.list() == [1, 2, 3]


# ---- adjoint launches


def test_adjoint_launch():
    x = wp.array([1, 2, 3], dtype=float)
    y, gx, gy = wp.zeros(3), wp.zeros(3), wp.ones(3)
    wp.launch(square, 3, [x], [y], adj_inputs=[gx], adj_outputs=[gy], adjoint=True)
    assert gx.list() == [2, 4, 6]
    assert y.list() == [0, 0, 0]


@wp.kernel
def weighted(x: wp.array(dtype=float), w: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] * w[0]


@pytest.mark.parametrize("inputs", ["given", "none", "left out"])
@pytest.mark.parametrize("outputs", ["given", "none", "left out"])
def test_adjoints_of_a_launch_are_given_or_the_arguments_own(inputs, outputs):
    """What the outputs have there stays, unless it is their own gradient: that is consumed."""
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    w = wp.array([2.0], dtype=float, requires_grad=True)
    y = wp.zeros(3, dtype=float, requires_grad=True)
    y.grad.assign([1.0, 10.0, 100.0])
    gx = wp.ones(3) if inputs == "given" else x.grad
    gy = wp.array([1.0, 2.0, 3.0], dtype=float) if outputs == "given" else y.grad
    start, cotangent = gx.numpy().copy(), gy.numpy().copy()
    words = {}
    if inputs != "left out":
        words["adj_inputs"] = [gx if inputs == "given" else None, None]
    if outputs != "left out":
        words["adj_outputs"] = [gy if outputs == "given" else None]
    wp.launch(weighted, 3, [x, w], [y], adjoint=True, **words)
    assert np.allclose(gx.numpy(), start + cotangent * 2 * x.numpy() * 2.0)
    assert np.allclose(w.grad.numpy(), np.sum(cotangent * x.numpy() ** 2))
    given = outputs == "given"
    assert np.array_equal(gy.numpy(), cotangent if given else np.zeros(3))
    assert y.grad.list() == ([1, 10, 100] if given else [0, 0, 0])
    assert inputs != "given" or not x.grad.numpy().any()


def test_adjoint_launch_checks():
    x, y = arrays()
    with pytest.raises(LaunchError) as e:
        wp.launch(square, 3, [x], [y], adj_inputs=[x, x, x], adjoint=True)
    assert diagnostic(e).code == "E201"
    with pytest.raises(LaunchError) as e:
        wp.launch(square, 3, [x], [y], adj_inputs=[wp.zeros(2)], adj_outputs=[y], adjoint=True)
    assert diagnostic(e).code == "E207"
    with pytest.raises(LaunchError, match="tape"):
        wp.launch(square_in_place, 3, [x], adj_inputs=[wp.ones(3)], adjoint=True)
