"""Distance of a probe to a surface: every thread stores its distance if it is the nearest one.

The engine refuses the gradient of this kernel; the check says why.
"""

# expect: exit=1
# expect: plain=1
import numpy as np

import engine as wp

SAMPLES = 30


@wp.kernel
def nearest(
    surface: wp.array(dtype=wp.vec3), probe: wp.array(dtype=wp.vec3), best: wp.array(dtype=float)
):
    i = wp.tid()
    best[0] = wp.length(surface[i] - probe[0])  # expect: G009


@wp.kernel
def clearance(best: wp.array(dtype=float), wanted: float, loss: wp.array(dtype=float)):
    d = best[0] - wanted
    loss[0] = d * d


def main():
    rng = np.random.default_rng(38)
    surface = wp.array(rng.normal(size=(SAMPLES, 3)), dtype=wp.vec3)
    probe = wp.array([[2.0, 0.5, 0.1]], dtype=wp.vec3, requires_grad=True)
    for _ in range(3):
        best = wp.zeros(1, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(nearest, dim=SAMPLES, inputs=[surface, probe], outputs=[best])
            wp.launch(clearance, dim=1, inputs=[best, 1.0], outputs=[loss])
        tape.backward(loss)
        probe.assign(probe.numpy() - 0.1 * probe.grad.numpy())
        tape.zero()
        print(loss.numpy()[0], probe.numpy())


if __name__ == "__main__":
    main()
