"""The memory of vectors and matrices: one that NumPy and ctypes see."""

from __future__ import annotations

import copy
import ctypes
import pickle

import numpy as np
import pytest

import engine as wp


@pytest.mark.parametrize("cls", [wp.vec3, wp.vec2i, wp.mat22d, wp.transformd, wp.quat, wp.vec4ub])
def test_memory_is_shared_with_numpy_and_ctypes(cls):
    """As in Warp: `numpy.asarray` sees the components, and `from_buffer` takes memory."""
    v = cls(*range(1, 1 + int(np.prod(cls._shape_))))
    seen = np.asarray(v)
    assert seen.shape == cls._shape_
    assert seen.dtype == wp.dtype_to_numpy(cls._wp_scalar_type_)
    copied = np.array(v)
    seen[...] = 0
    assert np.all(np.asarray(v) == 0)
    assert not np.any(copied == 0)
    memory = copied.copy()
    over = cls.from_buffer(memory)
    apart = cls.from_buffer_copy(memory)
    memory[...] = 9
    assert np.all(np.asarray(over) == 9)
    np.testing.assert_array_equal(np.asarray(apart), copied)
    assert b"".join([over, apart]) == memory.tobytes() + copied.tobytes()
    ctypes.byref(apart)._obj[0] = cls(9)[0]
    assert apart[0] == over[0]
    assert copy.deepcopy(over) == over
    assert pickle.loads(pickle.dumps(over)) == over


def test_halves_hold_components_of_their_own():
    v = wp.vec3h(1.0, 2.0, 3.0)
    np.asarray(v)[1] = 5.0
    assert v == wp.vec3h(1.0, 5.0, 3.0)
    assert copy.deepcopy(v) == v


@pytest.mark.parametrize(
    ("cls", "count", "of"),
    [(wp.vec3, 3, ctypes.c_float), (wp.mat22d, 4, ctypes.c_double), (wp.quat, 4, ctypes.c_float),
     (wp.vec2h, 2, ctypes.c_uint16), (wp.types.matrix((2, 3), wp.int8), 6, ctypes.c_int8)],
)  # fmt: skip
def test_classes_know_their_components(cls, count, of):
    """`_length_` and `_type_`, which programs for Warp ask for, count all of them."""
    assert (cls._length_, cls._type_) == (count, of)

    class Own(cls):
        pass

    values = np.arange(1, count + 1).reshape(cls._shape_)
    np.testing.assert_array_equal(np.array(Own(*values.ravel().tolist())).ravel(), values.ravel())
    assert Own(*values.ravel().tolist()) == cls(*values.ravel().tolist())
