"""Independent scenes are fitted in threads, each with arrays and tapes of its own."""

# expect: exit=0
import threading

import numpy as np

import engine as wp

SCENES, N = 4, 8


@wp.kernel
def shade(albedo: wp.array(dtype=float), light: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = albedo[i] * light[0] + 0.1 * albedo[i] * albedo[i]


@wp.kernel
def error(a: wp.array(dtype=float), b: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = a[i] - b[i]
    wp.atomic_add(loss, 0, d * d)


def fit(seed: int, losses: list) -> None:
    rng = np.random.default_rng(seed)
    seen = wp.array(rng.uniform(0.5, 1.5, N), dtype=float)
    albedo = wp.array(np.full(N, 0.5), dtype=float, requires_grad=True)
    light = wp.array([0.8], dtype=float, requires_grad=True)
    for _ in range(10):
        out = wp.zeros(N, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(shade, dim=N, inputs=[albedo, light], outputs=[out])
            wp.launch(error, dim=N, inputs=[out, seen], outputs=[loss])
        tape.backward(loss)
        for a in (albedo, light):
            a.assign(a.numpy() - 0.02 * a.grad.numpy())
        tape.zero()
        losses.append(float(loss.numpy()[0]))


results: list = [[] for _ in range(SCENES)]
threads = [threading.Thread(target=fit, args=(k, results[k])) for k in range(SCENES)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert all(len(r) == 10 and r[-1] < r[0] for r in results)
print([round(r[-1], 3) for r in results])
