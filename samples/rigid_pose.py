"""Rigid pose fitting: the rotation and translation that bring one point set onto another.

The rotation is a rotation vector (axis times angle); Rodrigues' formula turns
points with it. Gradient descent fits it to noisy pairs of points.
"""

import numpy as np

import engine as wp

POINTS = 30
ITERATIONS = 60


@wp.func
def skew(a: wp.vec3) -> wp.mat33:
    """The matrix of the cross product with a."""
    return wp.mat33(0.0, -a[2], a[1], a[2], 0.0, -a[0], -a[1], a[0], 0.0)


@wp.func
def rotate(r: wp.vec3, p: wp.vec3) -> wp.vec3:
    """Rodrigues' formula: p turned by the rotation vector r, which must not be zero."""
    angle = wp.length(r)
    k = skew(r / angle)
    kp = k @ p
    return p + kp * wp.sin(angle) + (k @ kp) * (1.0 - wp.cos(angle))


@wp.kernel
def move(
    points: wp.array(dtype=wp.vec3),
    rotation: wp.array(dtype=wp.vec3),
    translation: wp.array(dtype=wp.vec3),
    moved: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    moved[i] = rotate(rotation[0], points[i]) + translation[0]


@wp.kernel
def misfit(
    moved: wp.array(dtype=wp.vec3), seen: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)
):
    i = wp.tid()
    d = moved[i] - seen[i]
    wp.atomic_add(loss, 0, wp.dot(d, d) / float(moved.shape[0]))


@wp.kernel
def descend(p: wp.array(dtype=wp.vec3), gradient: wp.array(dtype=wp.vec3), rate: float):
    i = wp.tid()
    p[i] = p[i] - gradient[i] * rate


def rotation_matrix(r: np.ndarray) -> np.ndarray:
    """The same formula in NumPy, to make the data and to judge the result."""
    angle = float(np.linalg.norm(r))
    x, y, z = r / angle
    k = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k


def main() -> None:
    rng = np.random.default_rng(9)
    cloud = rng.normal(size=(POINTS, 3))
    true_rotation, true_translation = np.array([0.4, -0.9, 0.6]), np.array([0.5, 1.0, -0.3])
    noise = rng.normal(scale=0.01, size=cloud.shape)
    seen_points = cloud @ rotation_matrix(true_rotation).T + true_translation + noise

    points = wp.array(cloud, dtype=wp.vec3, requires_grad=True)
    seen = wp.array(seen_points, dtype=wp.vec3)
    rotation = wp.array([[0.1, 0.1, 0.1]], dtype=wp.vec3, requires_grad=True)
    translation = wp.zeros(1, dtype=wp.vec3, requires_grad=True)

    losses = []
    for iteration in range(ITERATIONS):
        moved = wp.zeros(POINTS, dtype=wp.vec3, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(move, dim=POINTS, inputs=[points, rotation, translation], outputs=[moved])
            wp.launch(misfit, dim=POINTS, inputs=[moved, seen], outputs=[loss])
        tape.backward(loss)
        losses.append(float(loss.numpy()[0]))
        for p in (rotation, translation):
            wp.launch(descend, dim=1, inputs=[p, p.grad, 0.2])
        tape.zero()
        if iteration % 10 == 0:
            print(f"iteration {iteration:3d}  loss {losses[-1]:.6f}")

    difference = rotation_matrix(rotation.numpy()[0]) @ rotation_matrix(true_rotation).T
    cosine = float(np.clip((np.trace(difference) - 1.0) / 2.0, -1.0, 1.0))
    off = np.degrees(np.arccos(cosine))
    print(f"mean squared misfit {losses[0]:.4f} -> {losses[-1]:.6f}, rotation off by {off:.2f} deg")
    if not (losses[-1] < 0.001 and off < 1.0):
        raise SystemExit("the pose was not found")


if __name__ == "__main__":
    main()
