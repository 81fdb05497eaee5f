"""Smooth a path of camera poses; the pose of the frame before is a detached clone."""

# expect: exit=1
import numpy as np

import engine as wp

FRAMES = 6


@wp.kernel
def predict_pose(
    before: wp.array(dtype=wp.vec3),
    step: wp.array(dtype=wp.vec3),
    k: int,
    pose: wp.array(dtype=wp.vec3),
):
    turned = wp.vec3(before[0][0] * 0.9, wp.sin(before[0][1]), before[0][2])
    pose[0] = turned + step[k]


@wp.kernel
def observe(
    pose: wp.array(dtype=wp.vec3),
    seen: wp.array(dtype=wp.vec3),
    k: int,
    loss: wp.array(dtype=float),
):
    d = pose[0] - seen[k]
    wp.atomic_add(loss, 0, wp.dot(d, d))


def track(step, seen, loss):
    before = wp.zeros(1, dtype=wp.vec3, requires_grad=True)
    for k in range(FRAMES):
        pose = wp.zeros(1, dtype=wp.vec3, requires_grad=True)
        wp.launch(predict_pose, dim=1, inputs=[before, step, k], outputs=[pose])  # expect: G004 a
        wp.launch(observe, dim=1, inputs=[pose, seen, k], outputs=[loss])
        # `requires_grad=False` is what a detach is: the frames before get nothing.
        before = wp.clone(pose, requires_grad=False)  # expect: G004 a


def main():
    rng = np.random.default_rng(26)
    seen = wp.array(np.cumsum(rng.normal(scale=0.3, size=(FRAMES, 3)), axis=0), dtype=wp.vec3)
    step = wp.zeros(FRAMES, dtype=wp.vec3, requires_grad=True)
    for iteration in range(4):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            track(step, seen, loss)
        tape.backward(loss)
        step.assign(step.numpy() - 0.1 * step.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()
