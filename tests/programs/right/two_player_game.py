"""Two strategies play against each other, by gradient descent and ascent in turns.

Each player clears its own gradient just before its own step. A backward pass adds to both players'
gradients all the same: what it leaves in the opponent's is never used, and cleared in time.
"""
# expect: exit=0

import numpy as np

import engine as wp

N = 6
RATE = 0.08
INNER = 2  # steps of the second player for each one of the first


@wp.kernel
def payoff(
    a: wp.array(dtype=float),
    b: wp.array(dtype=float),
    coupling: wp.array2d(dtype=float),
    sign: float,
    out: wp.array(dtype=float),
):
    i, j = wp.tid()
    meeting = a[i] * coupling[i, j] * b[j]
    hold = 0.2 * (a[i] * a[i] - b[j] * b[j])
    wp.atomic_add(out, 0, sign * (meeting + hold) / float(a.shape[0]))


@wp.kernel
def follow(player: wp.array(dtype=float), gradient: wp.array(dtype=float), rate: float):
    i = wp.tid()
    player[i] = player[i] - rate * gradient[i]


rng = np.random.default_rng(4)
coupling = wp.array(rng.normal(size=(N, N)), dtype=float)
first = wp.array(rng.normal(size=N), dtype=float, requires_grad=True)
second = wp.array(rng.normal(size=N), dtype=float, requires_grad=True)


def step(player: wp.array, sign: float) -> float:
    player.grad.zero_()
    value = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(payoff, dim=(N, N), inputs=[first, second, coupling, sign], outputs=[value])
    tape.backward(value)
    wp.launch(follow, dim=N, inputs=[player, player.grad, RATE])
    return sign * value.numpy()[0]


start = np.linalg.norm(first.numpy()) + np.linalg.norm(second.numpy())
for turn in range(40):
    value = step(first, 1.0)
    for _ in range(INNER):
        value = step(second, -1.0)
end = np.linalg.norm(first.numpy()) + np.linalg.norm(second.numpy())
print(f"value {value:.4f}, distance to the equilibrium {start:.3f} -> {end:.3f}")
assert end < 0.5 * start
