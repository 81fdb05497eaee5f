"""An autoencoder for short signals whose encoder was compiled without a backward pass."""

# expect: exit=1
import warnings

import numpy as np

import engine as wp

warnings.simplefilter("ignore")

SIGNALS = 10
LENGTH = 8
CODE = 3


@wp.kernel(enable_backward=False)  # expect: G004 a
def encode(x: wp.array2d(dtype=float), w: wp.array2d(dtype=float), code: wp.array2d(dtype=float)):
    s, c = wp.tid()
    total = float(0.0)
    for k in range(x.shape[1]):
        total += x[s, k] * w[k, c]
    code[s, c] = wp.tanh(total)


@wp.kernel
def decode(code: wp.array2d(dtype=float), w: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
    s, k = wp.tid()
    total = float(0.0)
    for c in range(code.shape[1]):
        total += code[s, c] * w[k, c]
    y[s, k] = total


@wp.kernel
def distance(y: wp.array2d(dtype=float), x: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    s, k = wp.tid()
    wp.atomic_add(loss, 0, (y[s, k] - x[s, k]) * (y[s, k] - x[s, k]))


def main():
    rng = np.random.default_rng(22)
    phases = rng.uniform(0.0, 6.28, (SIGNALS, 1))
    x = wp.array(np.sin(phases + np.arange(LENGTH)), dtype=float)
    w = wp.array(rng.normal(scale=0.4, size=(LENGTH, CODE)), dtype=float, requires_grad=True)
    for epoch in range(4):
        code = wp.zeros((SIGNALS, CODE), dtype=float, requires_grad=True)
        y = wp.zeros((SIGNALS, LENGTH), dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(encode, (SIGNALS, CODE), inputs=[x, w], outputs=[code])  # expect: G004 a
            wp.launch(decode, (SIGNALS, LENGTH), inputs=[code, w], outputs=[y])
            wp.launch(distance, (SIGNALS, LENGTH), inputs=[y, x], outputs=[loss])
        tape.backward(loss)
        w.assign(w.numpy() - 0.01 * w.grad.numpy())
        tape.zero()
        print(epoch, loss.numpy()[0])


if __name__ == "__main__":
    main()
