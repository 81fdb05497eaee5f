"""An auto-encoder whose encoder and decoder are on tapes of their own; only one runs backward."""

# expect: exit=1
import numpy as np

import engine as wp

N = 6


@wp.kernel
def encode(x: wp.array(dtype=float), w: wp.array(dtype=float), code: wp.array(dtype=float)):
    i = wp.tid()
    code[i] = wp.tanh(w[i] * x[i])


@wp.kernel
def decode(
    code: wp.array(dtype=float),
    v: wp.array(dtype=float),
    x: wp.array(dtype=float),
    loss: wp.array(dtype=float),
):
    i = wp.tid()
    d = v[i] * code[i] - x[i]
    wp.atomic_add(loss, 0, d * d)


rng = np.random.default_rng(12)
x = wp.array(rng.uniform(-1.0, 1.0, N), dtype=float)
w = wp.array(rng.uniform(0.5, 1.0, N), dtype=float, requires_grad=True)
v = wp.array(rng.uniform(0.5, 1.0, N), dtype=float, requires_grad=True)
for epoch in range(4):
    code = wp.zeros(N, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    encoder, decoder = wp.Tape(), wp.Tape()
    with encoder:
        wp.launch(encode, dim=N, inputs=[x, w], outputs=[code])
    with decoder:
        wp.launch(decode, dim=N, inputs=[code, v, x], outputs=[loss])
    decoder.backward(loss)  # expect: G004
    # The mistake: encoder.backward(grads={code: code.grad}) is missing.
    for p in (w, v):
        p.assign(p.numpy() - 0.1 * p.grad.numpy())
    decoder.zero()
    encoder.zero()
    print(epoch, loss.numpy()[0], w.numpy()[0])
