"""Two dense layers that share one scratch array, cleared before each of them."""

# expect: exit=1
import numpy as np

import engine as wp

wp.config.overwrites = "present"

WIDTH = 6
BATCH = 8


@wp.kernel
def accumulate(
    x: wp.array2d(dtype=float), w: wp.array2d(dtype=float), total: wp.array2d(dtype=float)
):
    b, f, k = wp.tid()
    wp.atomic_add(total, b, f, x[b, k] * w[k, f])


@wp.kernel
def activate(total: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    b, f = wp.tid()
    s = total[b, f]  # expect: G003 a
    out[b, f] = s / (1.0 + wp.exp(-s))  # expect: G003 a


@wp.kernel
def error(a: wp.array2d(dtype=float), y: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    b, f = wp.tid()
    wp.atomic_add(loss, 0, (a[b, f] - y[b, f]) * (a[b, f] - y[b, f]))


def layer(x, w, scratch):
    out = wp.zeros((BATCH, WIDTH), dtype=float, requires_grad=True)
    scratch.zero_()  # expect: G003 a
    wp.launch(accumulate, dim=(BATCH, WIDTH, WIDTH), inputs=[x, w], outputs=[scratch])
    wp.launch(activate, dim=(BATCH, WIDTH), inputs=[scratch], outputs=[out])  # expect: G003 a
    return out


rng = np.random.default_rng(15)
x = wp.array(rng.normal(size=(BATCH, WIDTH)), dtype=float)
y = wp.array(rng.normal(size=(BATCH, WIDTH)), dtype=float)
w1 = wp.array(rng.normal(scale=0.6, size=(WIDTH, WIDTH)), dtype=float, requires_grad=True)
w2 = wp.array(rng.normal(scale=0.6, size=(WIDTH, WIDTH)), dtype=float, requires_grad=True)
scratch = wp.zeros((BATCH, WIDTH), dtype=float, requires_grad=True)
for epoch in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        hidden = layer(x, w1, scratch)
        output = layer(hidden, w2, scratch)
        wp.launch(error, dim=(BATCH, WIDTH), inputs=[output, y], outputs=[loss])
    tape.backward(loss)
    for w in (w1, w2):
        w.assign(w.numpy() - 0.01 * w.grad.numpy())
    tape.zero()
    print(epoch, loss.numpy()[0])
