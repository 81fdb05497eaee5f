"""Streams, sizes of blocks, repeated launches and captured graphs of a GPU, real or emulated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import config
from tests.backend.cuda.emulated import PLACES, emulated, place
from tests.backend.cuda.fake_cupy import FakeCupy
from tests.backend.cuda.test_running import ordered, overwriting, saxpy, says, total


@pytest.fixture(params=PLACES)
def there(request: Any) -> Iterator[Any]:
    with place(request.param) as device, wp.ScopedDevice(device):
        yield device


def floats(values: Any) -> Any:
    return wp.array(np.asarray(values, np.float32), requires_grad=True)


# ---- launches


def test_launches_that_are_alike_take_their_arguments_as_they_come(there: Any) -> None:
    x, y, z = floats([1, 2, 3]), floats([1, 1, 1]), floats([0, 0, 0])
    for k in range(5):
        wp.launch(saxpy, dim=3, inputs=[float(k), x, y], outputs=[z], device=there)
        assert z.numpy().tolist() == [1 + k, 1 + 2 * k, 1 + 3 * k]
    for device in (there, str(there), None):
        wp.launch(saxpy, dim=3, inputs=[1.0, z, y], outputs=[z], device=device)
    assert z.numpy().tolist() == [8, 12, 16]
    with pytest.raises(wp.LaunchError, match="E204"):
        wp.launch(saxpy, dim=3, inputs=[1.0, x, wp.ones(3, dtype=float, device="cpu")], outputs=[z])
    wp.launch(saxpy, dim=3, inputs=[1.0, *[wp.ones(3, dtype=float, device="cpu")] * 2],
              outputs=[wp.ones(3, dtype=float, device="cpu")], device="cpu")  # fmt: skip
    for _ in range(4):  # what no launch may do, none after the first may
        s = floats([5])
        with wp.Tape() as tape:
            wp.launch(ordered, dim=3, inputs=[x], outputs=[s, z])
        with pytest.raises(wp.LaunchError, match="E407"):
            tape.backward(s)


def test_blocks_have_the_size_that_is_asked_for() -> None:
    cupy = FakeCupy()
    with emulated(cupy) as (device, *_), wp.ScopedDevice(device):
        x, s = floats(np.ones(1000)), floats([0])
        for more in ({}, {"block_dim": 100}, {"max_blocks": 2}, {"block_dim": 1, "max_blocks": 3}):
            wp.launch(total, dim=1000, inputs=[x], outputs=[s], **more)
        assert [g[:2] for g in cupy.grids] == [(4, 256), (8, 128), (2, 256), (3, 32)]
        assert s.numpy().tolist() == [4000]
        for wrong in ({"block_dim": 0}, {"block_dim": 1025}, {"max_blocks": -1}):
            with pytest.raises(wp.LaunchError, match="E205"):
                wp.launch(total, dim=1000, inputs=[x], outputs=[s], **wrong)


def test_recorded_launches_keep_their_shape() -> None:
    cupy = FakeCupy()
    with emulated(cupy) as (device, *_), wp.ScopedDevice(device):
        x, s, g, seed = (floats(v) for v in (np.ones(1000), [0], np.zeros(1000), [1]))
        side, other = wp.Stream(device), wp.Stream(device)
        cupy.grids.clear()
        made = [
            wp.launch(total, dim=1000, inputs=[x], outputs=[s], record_cmd=True, **more)
            for more in (
                {}, {"block_dim": 100}, {"max_blocks": 2}, {"stream": side},
                {"adjoint": True, "block_dim": 64, "stream": side, "adj_inputs": [g],
                 "adj_outputs": [seed]},
            )
        ]  # fmt: skip
        assert cupy.grids == []
        for _ in range(3):  # short ways come later
            cupy.grids.clear()
            for one in made:
                one.launch()
            made[1].launch(stream=other)
            made[3].launch(stream=other)
            mine, others = side.cuda_stream, other.cuda_stream
            assert cupy.grids == [
                (4, 256, 0), (8, 128, 0), (2, 256, 0), (4, 256, mine), (16, 64, mine),
                (8, 128, others), (4, 256, others),
            ]  # fmt: skip
        for stream in (side, other):
            wp.synchronize_stream(stream)
        assert s.numpy().tolist() == [3 * 6 * 1000] and g.numpy().tolist() == [3 * 2] * 1000
        direct = wp.Launch(total, device, params=[x, s], bounds=1000, block_dim=32)
        direct.launch()
        assert cupy.grids[-1][:2] == (32, 32)
        for wrong in ({"block_dim": 0}, {"max_blocks": -1}):
            with pytest.raises(wp.LaunchError, match="E205"):
                wp.launch(total, dim=9, inputs=[x], outputs=[s], record_cmd=True, **wrong)
    x, s = (wp.array(v, dtype=float, device="cpu") for v in (np.ones(9), [0.0]))
    on_host = wp.launch(total, 9, [x], [s], device="cpu", record_cmd=True, block_dim=64)
    on_host.launch(stream=None)
    assert s.numpy().tolist() == [9] and on_host.block_dim == 64


# ---- streams


def test_streams_and_events(there: Any) -> None:
    one, two = wp.Stream(there), wp.Stream(there)
    assert one != two and wp.get_stream(there) != one
    x, y, z = floats([1, 2, 3]), floats([1, 1, 1]), floats([0, 0, 0])
    start, end = (wp.Event(there, enable_timing=True) for _ in range(2))
    with wp.ScopedStream(one):
        assert wp.get_stream() == one
        wp.record_event(start)
        wp.launch(saxpy, dim=3, inputs=[2.0, x, y], outputs=[z])
        wp.record_event(end)
    assert wp.get_stream(there) != one
    two.wait_event(end)
    wp.launch(saxpy, dim=3, inputs=[2.0, z, y], outputs=[z], stream=two)
    wp.synchronize_stream(two)
    assert z.numpy().tolist() == [7, 11, 15]
    assert wp.get_event_elapsed_time(start, end) > 0 and end.is_complete
    three = wp.Stream(there)
    three.wait_stream(two)
    wp.set_stream(wp.get_stream(there))
    wp.synchronize_device(there)
    assert three.is_complete


def test_memory_that_other_streams_use_is_waited_for() -> None:
    cupy = FakeCupy()
    with emulated(cupy) as (device, *_), wp.ScopedDevice(device):
        x = floats([1, 2, 3])
        wp.launch(saxpy, dim=3, inputs=[2.0, x, x], outputs=[x])
        del x
        assert not cupy.told  # there was one stream
        side = wp.Stream(device)
        y = wp.ones(3, dtype=float)
        wp.launch(saxpy, dim=3, inputs=[2.0, y, y], outputs=[y], stream=side)
        cupy.told.clear()
        del y
        assert cupy.told == [("wait", 0, side.cuda_stream)]


# ---- graphs


def test_a_captured_step_runs_on_the_device() -> None:
    cupy = FakeCupy()
    with emulated(cupy) as (device, *_), wp.ScopedDevice(device):
        x, y, s = floats([1, 2, 3]), floats([0, 0, 0]), floats([0])
        ones = wp.ones(3, dtype=float)
        with wp.ScopedCapture() as capture:
            tape = wp.Tape()
            s.zero_()
            with tape:
                wp.launch(saxpy, dim=3, inputs=[2.0, x, ones], outputs=[y])
                wp.launch(total, dim=3, inputs=[y], outputs=[s])
            tape.backward(s)
        for k in range(5):
            x.assign(np.float32([k, 1, 2]))
            launches = cupy.launches
            wp.capture_launch(capture.graph)
            assert s.numpy().tolist() == [(2 * k + 1) ** 2 + 9 + 25]
            assert x.grad.numpy().tolist() == [4 * (2 * k + 1), 12, 20]
            assert capture.graph.left_to_python == ""
            assert (cupy.launches > launches) is (k < 2)  # by Python at first, then captured
            tape.zero()
            assert not x.grad.numpy().any()
        assert capture.graph.left_to_python == ""
        with pytest.raises(wp.LaunchError, match="E213"):
            tape.backward(s)
        config.device_graphs = False
        try:
            wp.capture_launch(capture.graph)
        finally:
            config.device_graphs = True
        tape.zero()
        tape.backward(s)
        assert x.grad.numpy().tolist() == [4 * 9, 12, 20]


def test_graphs_of_the_device(there: Any) -> None:
    x, y, n = floats([0.5, 1, 2]), floats([1, 1, 1]), wp.array([2, 1, 0], dtype=int)
    with wp.ScopedCapture() as capture:
        for _ in range(10):
            wp.launch(saxpy, dim=3, inputs=[2.0, x, y], outputs=[y])
        wp.copy(x, y)
        y.fill_(1.0)
    want, got = np.float32([0.5, 1, 2]), []
    side = wp.Stream(there)
    for _ in range(4):
        side.wait_stream(wp.get_stream(there))
        wp.capture_launch(capture.graph, stream=side)
        wp.synchronize_stream(side)
        got.append(x.numpy())
        want = 1 + 20 * want
        assert (got[-1] == want).all()
    assert capture.graph.left_to_python == ""
    x.assign(np.float32([0.5, 1, 2]))
    with wp.ScopedCapture() as capture:  # loops of unknown length save in journals that may grow
        tape = wp.Tape()
        with tape:
            wp.launch(overwriting, dim=3, inputs=[x, n])
        tape.backward(grads={x: y})
    for _ in range(3):
        x.assign(np.float32([0.5, 1, 2]))
        wp.capture_launch(capture.graph)
        assert np.allclose(x.grad.numpy(), [4 * 0.5 * 0.35, 2, 1])
    assert capture.graph.left_to_python


def test_what_the_host_has_to_do_is_left_to_python(there: Any) -> None:
    x, y, host = floats([1, 3]), floats([1, 1]), wp.zeros(2, dtype=float, device="cpu")
    calls: list[int] = []

    def launch(with_tape: bool) -> None:
        with wp.Tape() as tape:
            wp.launch(saxpy, dim=2, inputs=[2.0, x, y], outputs=[y])
            tape.record_func(lambda: calls.append(1), [x])
        if with_tape:
            tape.backward(grads={y: x})

    works = [
        (lambda: wp.copy(host, x), "cpu"),
        (lambda: wp.copy(x, host), "gives"),
        (lambda: host.fill_(2.0), "cpu"),
        (lambda: wp.launch(says, dim=2, inputs=[x]), "reads"),
        (lambda: wp.record_event(), "must run in Python"),
        (lambda: launch(True), "must run in Python"),
        (lambda: wp.capture_while(wp.zeros(1, dtype=int), lambda: None), "must run in Python"),
    ]
    for work, why in works:
        with wp.ScopedCapture() as capture:
            work()
        for _ in range(3):
            wp.capture_launch(capture.graph)
        assert why in capture.graph.left_to_python, capture.graph.left_to_python
    assert calls == [1, 1, 1]
    tape = wp.Tape()
    with tape:
        tape.record_func(lambda: calls.append(2), [x])
    with wp.ScopedCapture() as capture:
        tape.backward()
    for _ in range(3):
        wp.capture_launch(capture.graph)
    assert calls == [1, 1, 1, 2, 2, 2] and "Python function" in capture.graph.left_to_python
    assert x.numpy().tolist() == [1, 3]
