"""Particles sorted into cells: gradients flow through gathers and scatters by index arrays."""

# expect: exit=0
import numpy as np

import engine as wp

N = 20


@wp.kernel
def gather(x: wp.array(dtype=float), order: wp.array(dtype=int), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[order[i]]


@wp.kernel
def neighbour_pressure(
    x: wp.array(dtype=float), first: wp.array(dtype=int), p: wp.array(dtype=float)
):
    cell = wp.tid()
    total = float(0.0)
    for i in range(first[cell], first[cell + 1]):
        for j in range(first[cell], first[cell + 1]):
            if i == j:
                continue
            d = x[i] - x[j]
            total += wp.exp(-d * d * 50.0)
    p[cell] = total


@wp.kernel
def scatter_cost(
    p: wp.array(dtype=float), weight: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    cell = wp.tid()
    wp.atomic_add(loss, 0, weight[cell] * p[cell] * p[cell])


def main():
    rng = np.random.default_rng(94)
    cells = 4
    x = wp.array(rng.uniform(0.0, 1.0, N), dtype=float, requires_grad=True)
    weight = wp.array([1.0, 0.5, 2.0, 1.5], dtype=float)
    for step in range(3):
        now = x.numpy()
        order = wp.array(np.argsort(now), dtype=int)
        starts = np.searchsorted(np.sort(now), np.linspace(0.0, 1.0, cells + 1))
        starts[-1] = N
        first = wp.array(starts, dtype=int)
        ordered = wp.zeros(N, dtype=float, requires_grad=True)
        p = wp.zeros(cells, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(gather, dim=N, inputs=[x, order], outputs=[ordered])
            wp.launch(neighbour_pressure, dim=cells, inputs=[ordered, first], outputs=[p])
            wp.launch(scatter_cost, dim=cells, inputs=[p, weight], outputs=[loss])
        tape.backward(loss)
        x.assign(np.clip(now - 1e-5 * x.grad.numpy(), 0.0, 0.999))
        tape.zero()
        print(step, loss.numpy()[0])


if __name__ == "__main__":
    main()
