"""A snake robot: forward kinematics along its joints, angles fitted to a head position."""

# expect: exit=1
import engine as wp

JOINTS = 8


@wp.kernel
def accumulate_angles(
    bend: wp.array(dtype=float), stiffness: wp.array(dtype=float), smooth: wp.array(dtype=float)
):
    i = wp.tid()
    # The last joint has nothing after it.
    after = bend[i + 1]  # expect: G008
    smooth[i] = 0.8 * bend[i] + 0.2 * after * stiffness[i]


@wp.kernel
def head_error(smooth: wp.array(dtype=float), goal: wp.vec2, loss: wp.array(dtype=float)):
    heading = float(0.0)
    p = wp.vec2(0.0, 0.0)
    for i in range(smooth.shape[0]):
        heading += smooth[i]
        p += 0.2 * wp.vec2(wp.cos(heading), wp.sin(heading))
    d = p - goal
    loss[0] = wp.dot(d, d)


def main():
    # All parameters of the robot are in one array: stiffness first, then the bends.
    parameters = wp.array([1.0] * JOINTS + [0.1] * JOINTS, dtype=float, requires_grad=True)
    stiffness, bend = parameters[:JOINTS], parameters[JOINTS:]
    for iteration in range(5):
        smooth = wp.zeros(JOINTS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(accumulate_angles, JOINTS, inputs=[bend, stiffness], outputs=[smooth])
            wp.launch(head_error, 1, inputs=[smooth, wp.vec2(0.9, 0.9)], outputs=[loss])
        tape.backward(loss)
        parameters.assign(parameters.numpy() - 0.2 * parameters.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()
