"""A weighted sum in a function, over a number of terms that the caller gives.

Issue: 140
There: the gradient of the factor was zero: the backward pass had no result of the loop.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.func
def weighted(values: wp.array(dtype=float), weights: wp.array(dtype=float), gain: float, last: int):
    total = float(0.0)
    for k in range(last + 1):
        total = total + weights[k] * values[k]
    return total * gain


@wp.kernel
def blend(
    values: wp.array(dtype=float),
    weights: wp.array(dtype=float),
    gain: wp.array(dtype=float),
    last: int,
    out: wp.array(dtype=float),
):
    i = wp.tid()
    out[i] = weighted(values, weights, gain[0], last)


values = np.array([0.5, -1.0, 2.0, 1.5, 3.0])
weights = np.array([1.0, 2.0, 0.25, -0.5, 4.0])
gain = wp.array([1.3], dtype=float, requires_grad=True)
out = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    arrays = [wp.array(values, dtype=float), wp.array(weights, dtype=float), gain]
    wp.launch(blend, dim=1, inputs=[*arrays, 3], outputs=[out])
tape.backward(out)
print("gradient", *gain.grad.numpy())
print("exact", values[:4] @ weights[:4])
