"""NumPy arrays are arguments of launches, and arrays of the engine are arrays to NumPy.

A line is fitted to points by gradient descent. The points are NumPy's and are never copied; NumPy
sees the loss and the gradient in the memory that the kernels write.
"""

# needs: numpy
# check: passes
import numpy as np

import engine as wp

RNG = np.random.default_rng(3)


@wp.kernel
def saxpy(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def misfit(
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    line: wp.array(dtype=wp.vec2),
    loss: wp.array(dtype=float),
):
    i = wp.tid()
    r = line[0][0] * x[i] + line[0][1] - y[i]
    wp.atomic_add(loss, 0, r * r / float(x.shape[0]))


def direct() -> None:
    """A launch writes the memory of a NumPy array that it is given, and needs no other."""
    x, y = np.arange(8, dtype=np.float32), np.ones(8, dtype=np.float32)
    wp.launch(saxpy, dim=8, inputs=[x, y, 2.0])
    assert (y == 2.0 * np.arange(8) + 1.0).all()
    wp.launch(saxpy, dim=4, inputs=[x[::2], y[::-2], 1.0])  # every other one, and from the end
    assert y.tolist() == [1.0, 9.0, 5.0, 11.0, 9.0, 13.0, 13.0, 15.0]
    y.flags.writeable = False
    try:
        wp.launch(saxpy, dim=8, inputs=[x, y, 2.0])
    except wp.LaunchError as error:
        assert "read-only" in str(error)
    else:
        raise SystemExit("read-only memory was written")


def both_ways() -> None:
    """Views without a copy, copies where they are asked for, and types."""
    w = wp.array([1.0, 2.0, 3.0], dtype=float)
    view = w.numpy()
    view[0] = 5.0
    assert w.list() == [5.0, 2.0, 3.0]
    assert np.shares_memory(np.asarray(w), view) and not np.shares_memory(np.array(w), view)
    for kind in (wp.float32, wp.int64, wp.bool):
        assert wp.dtype_from_numpy(wp.dtype_to_numpy(kind)) is kind
    rows = np.ones((4, 3), dtype=np.float32)
    copied, shared = wp.from_numpy(rows, dtype=wp.vec3), wp.array(rows, dtype=wp.vec3, copy=False)
    rows[0] = 0.0
    assert copied.numpy()[0].tolist() == [1.0] * 3 and shared.numpy()[0].tolist() == [0.0] * 3


def fit() -> None:
    x = np.linspace(-1.0, 1.0, 64, dtype=np.float32)
    y = (0.7 * x - 0.2 + RNG.normal(0.0, 0.01, 64)).astype(np.float32)
    line = wp.from_numpy(np.zeros((1, 2), np.float32), dtype=wp.vec2, requires_grad=True)
    for step in range(101):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(misfit, dim=len(x), inputs=[x, y, line], outputs=[loss])
        tape.backward(loss)
        line.assign(line.numpy() - 0.5 * line.grad.numpy())
        tape.zero()
        if step % 25 == 0:
            print(f"step {step:3}: loss {loss.numpy()[0]:.2e}")
    slope, offset = np.polyfit(x, y, 1)
    assert np.allclose(line.numpy(), [[slope, offset]], atol=1e-3)
    print("line", *np.round(line.numpy()[0], 3))


direct()
both_ways()
fit()
