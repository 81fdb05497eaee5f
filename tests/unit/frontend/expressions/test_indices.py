"""Indices that are known at run time alone."""

from __future__ import annotations

from typing import Any

import pytest

import engine as wp


@wp.kernel
def _negative_component(x: wp.array(dtype=float), y: wp.array(dtype=float), o: int):
    v = wp.vec3(x[0], x[1], x[2])
    y[0] = v[o]


@wp.kernel
def _negative_index(x: wp.array(dtype=float), y: wp.array(dtype=float), o: int):
    y[0] = x[o]


@pytest.mark.parametrize("kernel", [_negative_index, _negative_component])
def test_negative_index_at_run_time(kernel: Any) -> None:
    # The view starts inside its memory, so that a read before it stays harmless.
    x = wp.array([9.0, 9.0, 2.0, 3.0, 4.0], dtype=float)[2:]
    y = wp.zeros(1, dtype=float)
    wp.launch(kernel, dim=1, inputs=[x, y, -1])
    assert y.numpy()[0] == 4.0


@wp.kernel
def unsigned(x: wp.array(dtype=float), y: wp.array2d(dtype=float), n: wp.uint32):
    x[wp.uint8(0)] = 1.0
    x[wp.uint32(2)] = 2.0
    wp.atomic_add(x, wp.uint64(3), 3.0)
    y[wp.uint16(1), n] = x[wp.uint8(2)]
    x[-3] = 5.0


def test_unsigned_indices_are_places(monkeypatch):
    monkeypatch.setattr(wp.config, "mode", "debug")
    x, y = wp.zeros(4), wp.zeros((2, 2))
    wp.launch(unsigned, 1, [x, y, 1])
    assert x.list() == [1.0, 5.0, 2.0, 3.0]
    assert y.list() == [0.0, 0.0, 0.0, 2.0]
