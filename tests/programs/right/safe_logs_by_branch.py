"""A topic model: counts that are zero are left out by an `if`, so that no log meets zero."""

# expect: exit=0
import numpy as np

import engine as wp

WORDS = 12
TOPICS = 3


@wp.kernel
def mixture(
    weight: wp.array(dtype=float), topic: wp.array2d(dtype=float), p: wp.array(dtype=float)
):
    w = wp.tid()
    norm = float(0.0)
    total = float(0.0)
    for t in range(weight.shape[0]):
        e = wp.exp(weight[t])
        norm += e
        total += e * topic[t, w]
    p[w] = total / norm


@wp.kernel
def log_likelihood(
    p: wp.array(dtype=float), count: wp.array(dtype=int), loss: wp.array(dtype=float)
):
    w = wp.tid()
    if count[w] > 0:
        wp.atomic_add(loss, 0, -float(count[w]) * wp.log(p[w]))
    if p[w] > 0.0:
        wp.atomic_add(loss, 0, 0.1 * p[w] * wp.log(p[w]))


def main():
    rng = np.random.default_rng(91)
    table = rng.dirichlet(np.full(WORDS, 0.3), TOPICS)
    table[:, 5] = 0.0  # a word of no topic
    count = rng.poisson(2.0, WORDS)
    count[5] = 0
    topic = wp.array(np.where(table < 1e-3, 0.0, table) + 1e-3 * (count > 0), dtype=float)
    counts = wp.array(count, dtype=int)
    weight = wp.zeros(TOPICS, dtype=float, requires_grad=True)
    for iteration in range(5):
        p = wp.zeros(WORDS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(mixture, dim=WORDS, inputs=[weight, topic], outputs=[p])
            wp.launch(log_likelihood, dim=WORDS, inputs=[p, counts], outputs=[loss])
        tape.backward(loss)
        weight.assign(weight.numpy() - 0.05 * weight.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0], np.round(weight.numpy(), 3))


if __name__ == "__main__":
    main()
