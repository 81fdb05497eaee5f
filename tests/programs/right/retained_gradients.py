"""A tone-shaping network: gradients of the layers in between are kept and printed."""

# expect: exit=0
import numpy as np

import engine as wp

WIDTH = 6


@wp.kernel
def layer(x: wp.array(dtype=float), w: wp.array2d(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    total = float(0.0)
    for k in range(x.shape[0]):
        total += w[i, k] * x[k]
    y[i] = wp.sin(total)


@wp.kernel
def distance(y: wp.array(dtype=float), goal: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (y[i] - goal[i]) * (y[i] - goal[i]))


def main():
    rng = np.random.default_rng(83)
    x = wp.array(rng.normal(size=WIDTH), dtype=float)
    goal = wp.array(rng.uniform(-0.5, 0.5, WIDTH), dtype=float)
    weights = [
        wp.array(rng.normal(scale=0.5, size=(WIDTH, WIDTH)), dtype=float, requires_grad=True)
        for _ in range(3)
    ]
    for epoch in range(3):
        values = [x]
        loss = wp.zeros(1, dtype=float, requires_grad=True, retain_grad=True)
        with wp.Tape() as tape:
            for w in weights:
                y = wp.zeros(WIDTH, dtype=float, requires_grad=True, retain_grad=True)
                wp.launch(layer, dim=WIDTH, inputs=[values[-1], w], outputs=[y])
                values.append(y)
            wp.launch(distance, dim=WIDTH, inputs=[values[-1], goal], outputs=[loss])
        tape.backward(loss)
        norms = [float(np.linalg.norm(v.grad.numpy())) for v in values[1:]]
        print(epoch, loss.numpy()[0], "gradient norms", np.round(norms, 4))
        for w in weights:
            w.assign(w.numpy() - 0.1 * w.grad.numpy())
        tape.zero()


if __name__ == "__main__":
    main()
