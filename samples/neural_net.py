"""A small neural network, trained to tell the inside of a circle from the outside.

Two dense layers written as kernels: one thread a unit and sample. The loss is
the logistic loss; momentum descent updates weights and biases.
"""

import numpy as np

import engine as wp

SAMPLES = 48
HIDDEN = 8
ITERATIONS = 80
RATE = 0.4


@wp.kernel
def hidden_layer(
    x: wp.array2d(dtype=float),
    weight: wp.array2d(dtype=float),
    bias: wp.array(dtype=float),
    out: wp.array2d(dtype=float),
):
    sample, unit = wp.tid()
    total = bias[unit]
    for k in range(x.shape[1]):
        total += x[sample, k] * weight[k, unit]
    out[sample, unit] = wp.tanh(total)


@wp.kernel
def output_layer(
    hidden: wp.array2d(dtype=float),
    weight: wp.array(dtype=float),
    bias: wp.array(dtype=float),
    logit: wp.array(dtype=float),
):
    sample = wp.tid()
    total = bias[0]
    for k in range(hidden.shape[1]):
        total += hidden[sample, k] * weight[k]
    logit[sample] = total


@wp.kernel
def logistic_loss(
    logit: wp.array(dtype=float), label: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    sample = wp.tid()
    # label is +1 or -1: log(1 + exp(-label * logit)) is small where the signs agree.
    margin = label[sample] * logit[sample]
    wp.atomic_add(loss, 0, wp.log(1.0 + wp.exp(-margin)) / float(logit.shape[0]))


@wp.kernel
def descend(
    p: wp.array(dtype=float),
    velocity: wp.array(dtype=float),
    gradient: wp.array(dtype=float),
    rate: float,
):
    i = wp.tid()
    velocity[i] = 0.9 * velocity[i] - rate * gradient[i]
    p[i] = p[i] + velocity[i]


def make_data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points in a square; label +1 inside a circle around its middle, -1 outside."""
    points = rng.uniform(-1.2, 1.2, size=(SAMPLES, 2))
    return points, np.where(np.linalg.norm(points, axis=1) < 0.8, 1.0, -1.0)


def main() -> None:
    rng = np.random.default_rng(2)
    points, labels = make_data(rng)
    x = wp.array(points, dtype=float)
    label = wp.array(labels, dtype=float)

    w1 = wp.array(rng.normal(size=(2, HIDDEN)), dtype=float, requires_grad=True)
    b1 = wp.array(rng.normal(scale=0.5, size=HIDDEN), dtype=float, requires_grad=True)
    w2 = wp.array(rng.normal(scale=0.5, size=HIDDEN), dtype=float, requires_grad=True)
    b2 = wp.zeros(1, dtype=float, requires_grad=True)
    parameters = [w1.flatten(), b1, w2, b2]
    velocities = [wp.zeros(p.size, dtype=float) for p in parameters]

    losses = []
    logit = wp.zeros(SAMPLES, dtype=float)
    for iteration in range(ITERATIONS):
        hidden = wp.zeros((SAMPLES, HIDDEN), dtype=float, requires_grad=True)
        logit = wp.zeros(SAMPLES, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(hidden_layer, dim=hidden.shape, inputs=[x, w1, b1], outputs=[hidden])
            wp.launch(output_layer, dim=SAMPLES, inputs=[hidden, w2, b2], outputs=[logit])
            wp.launch(logistic_loss, dim=SAMPLES, inputs=[logit, label], outputs=[loss])
        tape.backward(loss)
        losses.append(float(loss.numpy()[0]))
        for p, velocity in zip(parameters, velocities, strict=True):
            wp.launch(descend, dim=p.size, inputs=[p, velocity, p.grad, RATE])
        tape.zero()
        if iteration % 10 == 0:
            print(f"iteration {iteration:3d}  loss {losses[-1]:.5f}")

    accuracy = np.mean(np.sign(logit.numpy()) == labels)
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, accuracy {accuracy:.0%}")
    if not (losses[-1] < 0.3 * losses[0] and accuracy > 0.9):
        raise SystemExit("the network did not learn")


if __name__ == "__main__":
    main()
