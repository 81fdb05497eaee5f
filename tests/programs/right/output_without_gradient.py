"""Rows of a Jacobian by cotangents for an array that was made without requires_grad.

A cotangent for an array makes it one with a gradient. The arrays live in a function, so that they
are gone when the program ends.
"""
# expect: exit=0

import numpy as np

import engine as wp


@wp.kernel
def lift(angle: wp.array(dtype=float), speed: float, force: wp.array(dtype=float)):
    i = wp.tid()
    force[i] = speed * speed * wp.sin(2.0 * angle[i]) * (1.0 + 0.1 * float(i))


def rows(angles: np.ndarray, speed: float) -> np.ndarray:
    angle = wp.array(angles, dtype=float, requires_grad=True)
    force = wp.zeros(len(angles), dtype=float)
    with wp.Tape() as tape:
        wp.launch(lift, dim=len(angles), inputs=[angle, speed], outputs=[force])
    out = []
    for i in range(len(angles)):
        e = np.zeros(len(angles))
        e[i] = 1.0
        tape.backward(grads={force: wp.array(e, dtype=float)})
        out.append(angle.grad.numpy().copy())
        tape.zero()
    return np.array(out)


found = rows(np.linspace(0.1, 0.6, 5), 3.0)
expected = np.diag(9.0 * 2.0 * np.cos(2.0 * np.linspace(0.1, 0.6, 5)) * (1.0 + 0.1 * np.arange(5)))
assert np.allclose(found, expected, rtol=1e-4, atol=1e-5)
print(found.diagonal())
