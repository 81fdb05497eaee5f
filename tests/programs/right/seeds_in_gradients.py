"""A periodic smoothing step by a function of the user's own, whose seed is written into a gradient.

As programs do that carry gradients from one segment of a long simulation to the one before: the
tape gets neither a loss nor cotangents, only gradients that lie there when it runs backward. One
of them follows from the values themselves.
"""
# expect: exit=0

import numpy as np

import engine as wp

N = 12
F = wp.array(dtype=float)


@wp.kernel
def smooth(x: F, out: F):
    i = wp.tid()
    out[i] = 0.5 * x[i] + 0.25 * (x[(i + 1) % N] + x[(i + N - 1) % N])


@wp.kernel
def smooth_back(adj_out: F, adj_x: F):
    i = wp.tid()
    adj_x[i] += 0.5 * adj_out[i] + 0.25 * (adj_out[(i + 1) % N] + adj_out[(i + N - 1) % N])


@wp.kernel
def energy(x: F, total: F):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i] * x[i])


@wp.kernel
def heat(x: F, out: F):
    i = wp.tid()
    out[i] = x[i] + 0.1 * x[i] * (1.0 - x[i])


def step(tape: wp.Tape, x: wp.array, out: wp.array) -> None:
    wp.launch(smooth, N, inputs=[x], outputs=[out], record_tape=False)

    def back() -> None:
        wp.launch(smooth_back, N, inputs=[out.grad], outputs=[x.grad], record_tape=False)

    tape.record_func(back, arrays=[x, out])


def main() -> None:
    rng = np.random.default_rng(4)
    x = wp.array(rng.normal(size=N), dtype=float, requires_grad=True)
    warm, out = wp.zeros_like(x), wp.zeros_like(x)

    # Every element counts once: the gradient is that of the sum.
    with wp.Tape() as tape:
        wp.launch(heat, N, inputs=[x], outputs=[warm])
        step(tape, warm, out)
    out.grad.fill_(1.0)
    tape.backward()
    expected = 1.1 - 0.2 * x.numpy()
    assert np.allclose(x.grad.numpy(), expected, atol=1e-5), x.grad

    # The energy of what comes out, by the adjoint of its kernel.
    start, end = wp.clone(x, requires_grad=True), wp.zeros_like(x)
    total = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as segment:
        wp.launch(heat, N, inputs=[start], outputs=[warm])
        step(segment, warm, end)
    segment.zero()
    wp.launch(energy, N, inputs=[end], outputs=[total])
    total.grad.fill_(1.0)
    wp.launch(energy, N, inputs=[end], outputs=[total], adj_inputs=[end.grad],
              adj_outputs=[total.grad], adjoint=True)  # fmt: skip
    segment.backward()
    print("gradient of the energy:", start.grad.numpy()[:3])


main()
