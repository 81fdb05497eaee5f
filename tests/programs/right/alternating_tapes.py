"""Two robots planned at once: each has a tape and a loss of its own, recorded alternately."""

# expect: exit=0
import numpy as np

import engine as wp

STEPS = 8


@wp.kernel
def move(
    p: wp.array(dtype=wp.vec2),
    plan: wp.array(dtype=wp.vec2),
    k: int,
    speed: float,
    out: wp.array(dtype=wp.vec2),
):
    direction = plan[k] / wp.sqrt(1.0 + wp.dot(plan[k], plan[k]))
    out[0] = p[0] + speed * direction


@wp.kernel
def stage_cost(
    p: wp.array(dtype=wp.vec2),
    plan: wp.array(dtype=wp.vec2),
    k: int,
    goal: wp.vec2,
    loss: wp.array(dtype=float),
):
    d = p[0] - goal
    loss[0] += wp.dot(d, d) + 0.01 * wp.dot(plan[k], plan[k])


class Robot:
    def __init__(self, rng, start, goal):
        self.start, self.goal = start, wp.vec2(*goal)
        self.plan = wp.array(rng.normal(size=(STEPS, 2)), dtype=wp.vec2, requires_grad=True)

    def begin(self):
        self.tape = wp.Tape()
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.p = wp.array([self.start], dtype=wp.vec2)

    def advance(self, k):
        out = wp.zeros(1, dtype=wp.vec2, requires_grad=True)
        with self.tape:
            wp.launch(move, dim=1, inputs=[self.p, self.plan, k, 0.3], outputs=[out])
            wp.launch(stage_cost, dim=1, inputs=[out, self.plan, k, self.goal, self.loss])
        self.p = out

    def improve(self, rate):
        self.tape.backward(self.loss)
        self.plan.assign(self.plan.numpy() - rate * self.plan.grad.numpy())
        self.tape.zero()
        return float(self.loss.numpy()[0])


rng = np.random.default_rng(81)
robots = [Robot(rng, (0.0, 0.0), (1.0, 1.0)), Robot(rng, (1.0, 0.0), (0.0, 1.5))]
for turn in range(4):
    for robot in robots:
        robot.begin()
    for k in range(STEPS):
        for robot in robots:
            robot.advance(k)
    print(turn, [robot.improve(0.1) for robot in reversed(robots)])
