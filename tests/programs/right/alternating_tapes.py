"""A game of two players: a pursuer and an evader, each with a tape and a loss of its own."""

# expect: exit=0
import numpy as np

import engine as wp

STEPS = 8


@wp.kernel
def move(p: wp.array(dtype=wp.vec2), plan: wp.array(dtype=wp.vec2), k: int, speed: float,
         out: wp.array(dtype=wp.vec2)):
    direction = plan[k] / wp.sqrt(1.0 + wp.dot(plan[k], plan[k]))
    out[0] = p[0] + speed * direction


@wp.kernel
def gap(a: wp.array(dtype=wp.vec2), b: wp.array(dtype=wp.vec2), sign: float, plan: wp.array(dtype=wp.vec2),
        loss: wp.array(dtype=float)):
    d = a[0] - b[0]
    cost = sign * wp.dot(d, d)
    for k in range(plan.shape[0]):
        cost += 0.01 * wp.dot(plan[k], plan[k])
    loss[0] = cost


def run(start, plan, speed):
    p = wp.array([start], dtype=wp.vec2)
    for k in range(STEPS):
        out = wp.zeros(1, dtype=wp.vec2, requires_grad=True)
        wp.launch(move, dim=1, inputs=[p, plan, k, speed], outputs=[out])
        p = out
    return p


def main():
    rng = np.random.default_rng(81)
    chase = wp.array(rng.normal(size=(STEPS, 2)), dtype=wp.vec2, requires_grad=True)
    flee = wp.array(rng.normal(size=(STEPS, 2)), dtype=wp.vec2, requires_grad=True)
    for turn in range(3):
        pursuer, evader = wp.Tape(), wp.Tape()
        losses = [wp.zeros(1, dtype=float, requires_grad=True) for _ in range(2)]
        there = run((1.0, 1.0), flee, 0.2)
        with pursuer:
            here = run((0.0, 0.0), chase, 0.3)
            wp.launch(gap, dim=1, inputs=[here, there, 1.0, chase], outputs=[losses[0]])
        with evader:
            away = run((1.0, 1.0), flee, 0.2)
            wp.launch(gap, dim=1, inputs=[away, here, -1.0, flee], outputs=[losses[1]])
        pursuer.backward(losses[0])
        chase_grad = chase.grad.numpy().copy()
        pursuer.zero()
        evader.backward(losses[1])
        flee.assign(flee.numpy() - 0.2 * flee.grad.numpy())
        chase.assign(chase.numpy() - 0.2 * chase_grad)
        evader.zero()
        print(turn, losses[0].numpy()[0], losses[1].numpy()[0])


if __name__ == "__main__":
    main()
