"""Light transport between patches; scratch arrays are cleared before each recording."""

# expect: exit=0
import numpy as np

import engine as wp

PATCHES = 9
BOUNCES = 3


@wp.kernel
def gather(
    radiosity: wp.array(dtype=float),
    form: wp.array2d(dtype=float),
    albedo: wp.array(dtype=float),
    emitted: wp.array(dtype=float),
    out: wp.array(dtype=float),
):
    p, q = wp.tid()
    wp.atomic_add(out, p, albedo[p] * form[p, q] * radiosity[q])
    if p == q:
        wp.atomic_add(out, p, emitted[p])


@wp.kernel
def compare(out: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    p = wp.tid()
    wp.atomic_add(loss, 0, (out[p] - seen[p]) * (out[p] - seen[p]))


class Room:
    def __init__(self, rng):
        form = rng.uniform(0.0, 1.0, (PATCHES, PATCHES))
        np.fill_diagonal(form, 0.0)
        self.form = wp.array(form / form.sum(axis=1, keepdims=True), dtype=float)
        self.emitted = wp.array([1.0] + [0.0] * (PATCHES - 1), dtype=float)
        self.albedo = wp.full(PATCHES, 0.5, dtype=float, requires_grad=True)
        self.light = [
            wp.zeros(PATCHES, dtype=float, requires_grad=True) for _ in range(BOUNCES + 1)
        ]
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def step(self, seen, rate):
        for scratch in (*self.light, self.loss):
            scratch.zero_()
            scratch.grad.zero_()
        self.light[0].assign(self.emitted)
        with wp.Tape() as tape:
            for k in range(BOUNCES):
                inputs = [self.light[k], self.form, self.albedo, self.emitted]
                wp.launch(gather, (PATCHES, PATCHES), inputs=inputs, outputs=[self.light[k + 1]])
            wp.launch(compare, PATCHES, inputs=[self.light[BOUNCES], seen], outputs=[self.loss])
        tape.backward(self.loss)
        self.albedo.assign(self.albedo.numpy() - rate * self.albedo.grad.numpy())
        tape.zero()
        return float(self.loss.numpy()[0])


rng = np.random.default_rng(79)
room = Room(rng)
seen = wp.array(rng.uniform(0.05, 0.3, PATCHES), dtype=float)
print(np.round([room.step(seen, 0.3) for _ in range(5)], 5))
