"""fill_, zero_, assign, copy, clone off the tape."""

import numpy as np
import pytest

import engine as wp
from engine import LaunchError
from engine.runtime import transfer


def code(error):
    return error.value.diagnostics[0].code


def test_fill():
    a = wp.zeros((2, 2), dtype=wp.vec2)
    a.fill_(1.0)
    assert (a.numpy() == 1).all()
    a.fill_((1, 2))
    assert a[0, 1] == wp.vec2(1, 2)
    a[:, 1].zero_()
    assert a.numpy()[:, 0].any()
    assert not a.numpy()[:, 1].any()


@pytest.mark.parametrize(("dtype", "value"), [(int, 1.5), (float, "a"), (wp.vec3, (1, 2))])
def test_fill_refuses(dtype, value):
    with pytest.raises(LaunchError) as e:
        wp.zeros(2, dtype=dtype).fill_(value)
    assert code(e) == "E202"


@pytest.mark.host("memory of the host")
def test_assign_of_numpy_arrays_as_of_arrays(monkeypatch):
    """Numbers as the array has them are copied as they are: the same as by an array of them."""
    kinds = [wp.float32, wp.float64, wp.float16, wp.int8, wp.uint64, wp.bool, wp.vec3, wp.mat22]
    found = []
    for plain in (True, False):
        if plain:
            monkeypatch.setattr(transfer, "take", lambda dest, src: False)
        else:
            monkeypatch.undo()
        for kind in kinds:
            for n, step in ((0, 1), (1, 1), (7, 1), (7, 3)):
                whole = wp.zeros(n * step + 2, dtype=kind)
                a = whole[1 : 1 + n * step : step] if step > 1 else whole[1 : 1 + n]
                hold, version = a.storage.hold(a.lo, a.hi), a.storage.version
                shape = a._parts.shape
                data = (np.arange(2 * np.prod(shape)) % 5 - 1).astype(a._parts.dtype)
                a.assign(data[::2].reshape(shape))
                found.append((whole.numpy().tobytes(), a.storage.version - version))
                was = hold.read(a.ptr, a.shape, a.strides, np.uint8)
                found.append((was.tobytes(), hold.storage is None))
                values = a.numpy()
                a.assign(values[::-1])  # of its own memory
                found.append(whole.numpy().tobytes())
        x = wp.zeros(3, requires_grad=True)
        new = np.array([np.nan, -0.0, np.inf], np.float32)
        with wp.Tape() as tape:
            x.assign(new)
        found.append(([r.name for r in tape.records], x.numpy().tobytes()))
        with wp.ScopedCapture() as capture:
            x.assign(new[::-1])
        found.append(x.numpy().tobytes())
        wp.capture_launch(capture.graph)
        found.append(x.numpy().tobytes())
        frozen = np.ones(3, np.float32)
        frozen.flags.writeable = False
        for dest in (
            wp.array(frozen, copy=False),
            wp.array(np.broadcast_to(new[:1], 3), copy=False),
        ):
            with pytest.raises(LaunchError) as e:
                dest.assign(new)
            found.append(e.value.diagnostics[0].message)
    half = len(found) // 2
    assert found[:half] == found[half:]


def test_assign():
    a = wp.zeros((2, 2))
    a.assign([[1, 2], [3, 4]])
    assert a.list() == [1, 2, 3, 4]
    a.assign([4, 3, 2, 1])  # any shape of the same size
    assert a.list() == [4, 3, 2, 1]
    a.assign(np.ones((2, 2)))
    a.assign(wp.full((2, 2), 5, dtype=wp.float64))
    assert a.list() == [5, 5, 5, 5]
    with pytest.raises(LaunchError):
        a.assign([1, 2, 3, 4, 5])


def test_copy_parts():
    a = wp.array([1, 2, 3, 4], dtype=float)
    b = wp.zeros(4)
    wp.copy(b, a, dest_offset=1, src_offset=2, count=2)
    assert b.list() == [0, 3, 4, 0]
    wp.copy(b, wp.array([9, 8], dtype=float))
    assert b.list() == [9, 8, 4, 0]
    wp.copy(b.reshape((2, 2)), a)
    assert b.list() == [1, 2, 3, 4]


def test_copy_overlapping_parts():
    a = wp.array([1, 2, 3, 4], dtype=float)
    wp.copy(a, a, dest_offset=1, count=3)
    assert a.list() == [1, 1, 2, 3]


def test_copy_strided():
    a = wp.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    b = wp.zeros((3, 2))
    wp.copy(b, a.transpose())
    assert np.array_equal(b.numpy(), a.numpy().T)
    wp.copy(b[:, 0], a[1])
    assert b.numpy()[:, 0].tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    ("dest", "src", "kwargs", "expected"),
    [
        ((2, float), (3, float), {}, "E207"),
        ((4, float), (4, float), {"dest_offset": 2, "count": 3}, "E207"),
        ((4, float), (4, float), {"src_offset": 2, "count": 3}, "E207"),
        ((4, float), (4, float), {"count": -1}, "E206"),
        ((3, int), (3, wp.float64), {}, "E206"),
        ((4, float), (4, float), {"count": 2.0}, "E206"),
        ((3, wp.vec3), (9, float), {}, "E206"),
        ((3, bool), (3, int), {}, "E206"),
    ],
)
def test_copy_refuses(dest, src, kwargs, expected):
    a, b = wp.zeros(dest[0], dtype=dest[1]), wp.ones(src[0], dtype=src[1])
    with pytest.raises(LaunchError) as e:
        wp.copy(a, b, **kwargs)
    assert code(e) == expected
    assert not a.numpy().any()


def test_copy_refuses_other_things():
    with pytest.raises(LaunchError, match="assign"):
        wp.copy(wp.zeros(3), np.zeros(3))
    for data in (3, "x", [1.0], None, np.zeros(3)):
        with pytest.raises(LaunchError, match="clone takes an array"):
            wp.clone(data)


def parts(rng, requires_grad):
    """An array of vectors whose elements lie in memory in some order, maybe with gaps."""
    shape = tuple(rng.integers(1, 5, rng.integers(1, 4)))
    a = wp.array(rng.normal(size=(*(2 * n for n in shape), 2)), dtype=wp.vec2d,
                 requires_grad=requires_grad)  # fmt: skip
    a = a[tuple(slice(None, None, int(rng.choice([1, 2, -1]))) for _ in shape)]
    return a.transpose() if rng.integers(2) else a


@pytest.mark.parametrize("seed", range(60))
def test_parts_of_arrays_in_any_layout(seed):
    """Elements count in row-major order, however they lie; gradients follow."""
    rng = np.random.default_rng(seed)
    flags = rng.integers(0, 2, 2).astype(bool)
    dest, src = (parts(rng, bool(f)) for f in flags)
    src_offset, dest_offset = (int(rng.integers(0, a.size)) for a in (src, dest))
    most = min(src.size - src_offset, dest.size - dest_offset)
    count = int(rng.integers(1, most + 1))
    want = dest.numpy().reshape(-1, 2).copy()
    want[dest_offset : dest_offset + count] = src.numpy().reshape(-1, 2)[
        src_offset : src_offset + count
    ]
    with wp.Tape() as tape:
        wp.copy(dest, src, dest_offset, src_offset, count)
    assert np.array_equal(dest.numpy().reshape(-1, 2), want)
    if not flags[0]:
        return
    cotangent = rng.normal(size=dest.numpy().shape)
    tape.backward(grads={dest: cotangent})
    flat = cotangent.reshape(-1, 2).copy()
    moved = flat[dest_offset : dest_offset + count].copy()
    flat[dest_offset : dest_offset + count] = 0
    assert np.array_equal(dest.grad.numpy().reshape(-1, 2), flat)
    if flags[1]:
        got = src.grad.numpy().reshape(-1, 2)
        assert np.array_equal(got[src_offset : src_offset + count], moved)
        assert np.count_nonzero(got) == np.count_nonzero(moved)


@pytest.mark.parametrize(("dest", "src", "words"), [
    (3, 5, {"src_offset": 6}), (3, 5, {"count": 4}), (3, 5, {"dest_offset": 2}),
    (3, 5, {"count": 1, "dest_offset": 3}), (3, 5, {"src_offset": 4, "count": 2}),
])  # fmt: skip
def test_parts_that_do_not_fit(dest, src, words):
    for step in (1, 2):
        a, b = wp.zeros(dest * step)[::step], wp.ones(src * step)[::step]
        with pytest.raises(LaunchError, match=r"exceeds the (source|destination) size"):
            wp.copy(a, b, **words)
        assert not a.numpy().any()


def test_nothing_is_left_after_the_last_element():
    a, b = wp.zeros(3), wp.ones(5)
    wp.copy(a, b, src_offset=5)
    assert not a.numpy().any()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"src_offset": -1}, "the source offset of a copy must be non-negative, but src_offset"),
        ({"dest_offset": -2}, "the destination offset of a copy must be non-negative"),
        ({"count": -3}, "the count of a copy must be non-negative, but count is -3"),
        ({"src_offset": 1.5}, "must be integers, but src_offset is 1.5"),
        ({"dest_offset": "x"}, "must be integers, but dest_offset is 'x'"),
        ({"count": 2.0}, "must be integers, but count is 2.0"),
        ({"src_offset": 2, "count": 4}, "a copy of 4 elements from 2 on exceeds the source size"),
        ({"count": 5}, "a copy of 5 elements exceeds the source size"),
        ({"dest_offset": 3}, "a copy of 4 elements from 3 on exceeds the destination size"),
        ({"src": [1.0]}, "copy takes arrays, but src is [1.0]"),
        ({"dest": None}, "copy takes arrays, but dest is None"),
        ({"src": wp.zeros(4, dtype=wp.vec2)}, "destination dtype=float32, source dtype=vec2f"),
        ({"src": wp.zeros(8)[wp.array([1, 3], dtype=int)], "count": 1},
         "a copy from or to an indexed array takes no offsets and no count"),
        ({"src": wp.zeros(8)[wp.array([1, 3], dtype=int)]},
         "destination shape=(4,), source shape=(2,)"),
    ],
    ids=[*"abcdefghijklmn"],
)  # fmt: skip
def test_copy_names_the_argument_and_its_value(words, told):
    dest = wp.zeros(4)
    given = {"dest": dest, "src": wp.ones(4), **words}
    with pytest.raises(LaunchError) as e:
        wp.copy(**given)
    found = e.value.diagnostics[0]
    assert told in found.message
    assert found.span.file == __file__
    assert not dest.numpy().any()


@pytest.mark.host("memory of the host")
def test_read_only_memory():
    n = np.arange(3, dtype=np.float32)
    n.flags.writeable = False
    a = wp.array(n, copy=False)
    for write in (lambda: a.fill_(1), lambda: a.assign([1, 2, 3]), lambda: wp.copy(a, a)):
        with pytest.raises(LaunchError, match="read-only"):
            write()
    assert not a.numpy().flags.writeable


def test_clone():
    a = wp.array([1, 2, 3], dtype=float, requires_grad=True)
    b = wp.clone(a)
    assert b.requires_grad
    assert b.list() == [1, 2, 3]
    assert b.ptr != a.ptr
    assert not wp.clone(a, requires_grad=False).requires_grad
    assert wp.clone(a[::2]).is_contiguous
    assert wp.clone(wp.array([1, 2])).list() == [1, 2]


def test_copies_of_types_of_one_size_are_of_bytes():
    numbers = wp.array([1.5, -2.0], dtype=float)
    bits = wp.zeros(2, dtype=wp.uint32)
    wp.copy(bits, numbers)
    assert np.array_equal(bits.numpy(), numbers.numpy().view(np.uint32))
    back = wp.zeros(2)
    wp.copy(back, bits, count=1)
    assert back.list() == [1.5, 0.0]
    q, v = wp.array([[1, 2, 3, 4]], dtype=wp.quat), wp.zeros((1, 2), dtype=wp.vec4)
    wp.copy(v[:, 1], q)
    assert v[0, 1] == wp.vec4(1, 2, 3, 4)


def test_gradients_of_such_copies():
    q = wp.array([[1, 2, 3, 4]], dtype=wp.quat, requires_grad=True)
    m = wp.zeros(1, dtype=wp.mat22, requires_grad=True)
    x = wp.array([1.0], dtype=float, requires_grad=True)
    bits = wp.zeros(1, dtype=int)
    with wp.Tape() as tape:
        wp.copy(m, q)
        with pytest.warns(UserWarning, match="takes float32 as int32, byte by byte"):
            wp.copy(bits, x)
    tape.backward(grads={m: np.array([[[1, 2], [3, 4]]], np.float32)})
    assert q.grad[0] == wp.quat(1, 2, 3, 4)
    assert bits[0] == np.float32(1.0).view(np.int32)
