"""Find a rod's conductivities from data of a run with known ones, while monitors print states."""

# expect: exit=0
import numpy as np

import engine as wp

N, STEPS = 12, 8


@wp.kernel
def diffuse(u: wp.array(dtype=float), k: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    if i == 0 or i == N - 1:
        out[i] = u[i]
    else:
        out[i] = u[i] + 0.2 * (k[i] * (u[i + 1] - u[i]) - k[i - 1] * (u[i] - u[i - 1]))


@wp.kernel
def misfit(u: wp.array(dtype=float), data: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = u[i] - data[i]
    wp.atomic_add(loss, 0, d * d)


def run(start, k, frames=None):
    u = start
    for _ in range(STEPS):
        u1 = wp.zeros(N, dtype=float, requires_grad=True)
        wp.launch(diffuse, dim=N, inputs=[u, k], outputs=[u1])
        u = u1
        if frames is not None:
            frames.append(np.asarray(u))
            print(f"hottest: {u.numpy().max():.3f}")
    return u


start = wp.array(np.sin(np.linspace(0.0, np.pi, N)), dtype=float, requires_grad=True)
true = wp.array(np.linspace(0.5, 1.0, N), dtype=float, requires_grad=True)
data = run(start, true)
copied = wp.array(run(start, true).numpy(), dtype=float)
k = wp.array(np.full(N, 0.7), dtype=float, requires_grad=True)
for target in (data, copied):
    frames = []
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(misfit, dim=N, inputs=[run(start, k, frames), target], outputs=[loss])
    tape.backward(loss)
    k.assign(k.numpy() - 0.5 * k.grad.numpy())
    tape.zero()
