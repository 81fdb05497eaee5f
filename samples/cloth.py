"""A cloth in the wind: find the wind from where the cloth ended up.

The cloth is a grid of particles. One thread a spring computes its force and
scatters it to both ends with atomics. The top row is pinned. The wind is one
unknown vector for each row of particles, fitted to the final shape.
"""

import numpy as np

import engine as wp

SIDE = 6
STEPS = 10
ITERATIONS = 20
DT = 0.02
SPACING = 0.1
STIFFNESS = 60.0


@wp.kernel
def springs(
    x: wp.array(dtype=wp.vec3),
    first: wp.array(dtype=int),
    second: wp.array(dtype=int),
    rest: wp.array(dtype=float),
    stiffness: float,
    force: wp.array(dtype=wp.vec3),
):
    s = wp.tid()
    i = first[s]
    j = second[s]
    d = x[j] - x[i]
    length = wp.length(d)
    f = d * (stiffness * (length - rest[s]) / length)
    wp.atomic_add(force, i, f)
    wp.atomic_sub(force, j, f)


@wp.kernel
def integrate(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    force: wp.array(dtype=wp.vec3),
    wind: wp.array(dtype=wp.vec3),
    side: int,
    dt: float,
    x_next: wp.array(dtype=wp.vec3),
    v_next: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    row = i // side
    if row == 0:
        x_next[i] = x[i]
        v_next[i] = wp.vec3(0.0, 0.0, 0.0)
    else:
        drag = (wind[row] - v[i]) * 2.0
        moved = v[i] + (force[i] + drag + wp.vec3(0.0, -9.81, 0.0)) * dt
        v_next[i] = moved
        x_next[i] = x[i] + moved * dt


@wp.kernel
def mismatch(
    x: wp.array(dtype=wp.vec3), seen: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)
):
    i = wp.tid()
    d = x[i] - seen[i]
    wp.atomic_add(loss, 0, wp.dot(d, d))


@wp.kernel
def descend(p: wp.array(dtype=wp.vec3), gradient: wp.array(dtype=wp.vec3), rate: float):
    i = wp.tid()
    p[i] = p[i] - gradient[i] * rate


class Cloth:
    """Start positions and springs (structural and shear) of a SIDE x SIDE cloth."""

    def __init__(self) -> None:
        grid = [(row, col) for row in range(SIDE) for col in range(SIDE)]
        points = np.array([(c * SPACING, 0.0, r * SPACING) for r, c in grid])
        ends = [
            (r * SIDE + c, (r + dr) * SIDE + c + dc)
            for r, c in grid
            for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1))
            if r + dr < SIDE and 0 <= c + dc < SIDE
        ]
        first, second = np.array(ends).T
        self.points = points
        self.first = wp.array(first, dtype=int)
        self.second = wp.array(second, dtype=int)
        self.rest = wp.array(np.linalg.norm(points[first] - points[second], axis=1), dtype=float)

    def simulate(self, wind: wp.array) -> wp.array:
        """Positions after STEPS steps in this wind (one vector a row)."""
        x = wp.array(self.points, dtype=wp.vec3, requires_grad=True)
        v = wp.zeros_like(x)
        for _ in range(STEPS):
            force, x_next, v_next = wp.zeros_like(x), wp.zeros_like(x), wp.zeros_like(x)
            wp.launch(
                springs,
                dim=len(self.first),
                inputs=[x, self.first, self.second, self.rest, STIFFNESS],
                outputs=[force],
            )
            wp.launch(
                integrate,
                dim=len(x),
                inputs=[x, v, force, wind, SIDE, DT],
                outputs=[x_next, v_next],
            )
            x, v = x_next, v_next
        return x


def main() -> None:
    rng = np.random.default_rng(3)
    cloth = Cloth()
    true_wind = np.array([1.0, 0.5, 3.0]) + rng.normal(scale=0.5, size=(SIDE, 3))
    seen = cloth.simulate(wp.array(true_wind, dtype=wp.vec3))
    wind = wp.zeros(SIDE, dtype=wp.vec3, requires_grad=True)

    losses = []
    for iteration in range(ITERATIONS):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(mismatch, dim=len(seen), inputs=[cloth.simulate(wind), seen], outputs=[loss])
        tape.backward(loss)
        losses.append(float(loss.numpy()[0]))
        wp.launch(descend, dim=SIDE, inputs=[wind, wind.grad, 90.0])
        tape.zero()
        if iteration % 5 == 0:
            print(f"iteration {iteration:3d}  loss {losses[-1]:.6f}")

    error = np.abs(wind.numpy() - true_wind)[1:].mean()
    print(f"mismatch {losses[0]:.5f} -> {losses[-1]:.7f}, mean error of the wind {error:.3f} m/s")
    if not losses[-1] < 0.02 * losses[0]:
        raise SystemExit("the wind was not found")


if __name__ == "__main__":
    main()
