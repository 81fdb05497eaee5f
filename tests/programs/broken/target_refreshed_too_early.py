"""Track a moving camera: the pose of the next frame is put in before the gradient is taken."""

# expect: exit=1
import numpy as np

import engine as wp

MARKERS = 10


@wp.kernel
def project(
    marker: wp.array(dtype=wp.vec3), pose: wp.array(dtype=float), pixel: wp.array(dtype=wp.vec2)
):
    i = wp.tid()
    p = marker[i]  # expect: G003 a
    c = wp.cos(pose[0])
    s = wp.sin(pose[0])
    q = wp.vec3(c * p[0] + s * p[2], p[1] + pose[1], c * p[2] - s * p[0] + 4.0 + pose[2])
    pixel[i] = wp.vec2(q[0] / q[2], q[1] / q[2])


@wp.kernel
def pixel_error(
    pixel: wp.array(dtype=wp.vec2), seen: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)
):
    i = wp.tid()
    d = pixel[i] - seen[i]
    wp.atomic_add(loss, 0, wp.dot(d, d))


def main():
    rng = np.random.default_rng(16)
    cloud = rng.normal(size=(MARKERS, 3))
    marker = wp.array(cloud, dtype=wp.vec3)
    seen = wp.array(rng.normal(scale=0.3, size=(MARKERS, 2)), dtype=wp.vec2)
    pose = wp.array([0.1, 0.0, 0.2], dtype=float, requires_grad=True)
    for frame in range(4):
        pixel = wp.zeros(MARKERS, dtype=wp.vec2, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(project, MARKERS, [marker, pose], [pixel])  # expect: G003 a
            wp.launch(pixel_error, dim=MARKERS, inputs=[pixel, seen], outputs=[loss])
        # The markers of the next frame: this belongs behind `backward`.
        cloud = cloud + rng.normal(scale=0.8, size=cloud.shape)
        marker.assign(cloud)  # expect: G003 a
        tape.backward(loss)
        pose.assign(pose.numpy() - 0.05 * pose.grad.numpy())
        tape.zero()
        print(frame, loss.numpy()[0], pose.numpy())


if __name__ == "__main__":
    main()
