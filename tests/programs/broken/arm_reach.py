"""Inverse kinematics of a two-link arm in closed form, for a target that it can just reach."""

# expect: exit=1
import engine as wp

UPPER = 1.0
LOWER = 1.0


@wp.kernel
def elbow_angle(target: wp.array(dtype=wp.vec2), elbow: wp.array(dtype=float)):
    i = wp.tid()
    reach = wp.dot(target[i], target[i])
    cosine = (reach - UPPER * UPPER - LOWER * LOWER) / (2.0 * UPPER * LOWER)
    elbow[i] = wp.acos(cosine)  # expect: G002


@wp.kernel
def effort(elbow: wp.array(dtype=float), comfortable: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    d = elbow[i] - comfortable
    wp.atomic_add(loss, 0, d * d)


def main():
    # The second target is at full stretch, where the elbow is straight.
    target = wp.array([[1.2, 0.4], [0.0, 2.0], [-0.6, 0.9]], dtype=wp.vec2, requires_grad=True)
    elbow = wp.zeros(3, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(elbow_angle, dim=3, inputs=[target], outputs=[elbow])
        wp.launch(effort, dim=3, inputs=[elbow, 1.2], outputs=[loss])
    tape.backward(loss)
    print("elbow", elbow.numpy())
    print("where to move the targets\n", -target.grad.numpy())


if __name__ == "__main__":
    main()
