"""Minimise Himmelblau's function from many starts; the tape is recorded a single time."""

# expect: exit=0
import numpy as np

import engine as wp

STARTS = 16


@wp.func
def himmelblau(p: wp.vec2) -> float:
    a = p[0] * p[0] + p[1] - 11.0
    b = p[0] + p[1] * p[1] - 7.0
    return a * a + b * b


@wp.kernel
def total_value(p: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, himmelblau(p[i]))


@wp.kernel
def descend(p: wp.array(dtype=wp.vec2), g: wp.array(dtype=wp.vec2), rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * g[i]


def main():
    rng = np.random.default_rng(63)
    p = wp.array(rng.uniform(-3.0, 3.0, (STARTS, 2)), dtype=wp.vec2, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(total_value, dim=STARTS, inputs=[p], outputs=[loss])
    for iteration in range(30):
        tape.zero()
        tape.backward(loss)  # needs nothing but the present points
        wp.launch(descend, dim=STARTS, inputs=[p, p.grad, 0.005])
        if iteration % 10 == 0:
            loss.zero_()
            wp.launch(total_value, dim=STARTS, inputs=[p], outputs=[loss])
            print(iteration, loss.numpy()[0])
    print(p.numpy().round(2)[:4])


if __name__ == "__main__":
    main()
