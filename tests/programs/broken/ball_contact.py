"""Bounce a ball on a floor with a penalty contact and aim it at a target height."""

# expect: exit=1
import engine as wp

STEPS = 40
DT = 0.02


@wp.func
def contact_force(height: float, stiffness: float) -> float:
    if height < 0.0:
        return stiffness * height * height
    return 0.0


@wp.func_grad(contact_force)
def adj_contact_force(height: float, stiffness: float, adj_ret: float):  # expect: G001 a
    if height < 0.0:
        # d/dh of k h^2 is 2 k h; somebody took the absolute value.
        wp.adjoint[height] += -2.0 * stiffness * height * adj_ret  # expect: G001 a
        wp.adjoint[stiffness] += height * height * adj_ret


@wp.kernel
def step(
    y: wp.array(dtype=float),
    v: wp.array(dtype=float),
    y_next: wp.array(dtype=float),
    v_next: wp.array(dtype=float),
):
    i = wp.tid()
    speed = v[i] + DT * (contact_force(y[i], 8000.0) - 9.81)
    v_next[i] = speed
    y_next[i] = y[i] + DT * speed


@wp.kernel
def height_error(y: wp.array(dtype=float), target: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (y[i] - target) * (y[i] - target))


def simulate(speeds):
    y, v = wp.full(3, 0.3, dtype=float, requires_grad=True), speeds
    for _ in range(STEPS):
        y_next, v_next = wp.zeros_like(y), wp.zeros_like(v)
        wp.launch(step, dim=3, inputs=[y, v], outputs=[y_next, v_next])
        y, v = y_next, v_next
    return y


speeds = wp.array([-1.0, -1.5, -2.0], dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
tape = wp.Tape()
with tape:
    final = simulate(speeds)
    wp.launch(height_error, dim=3, inputs=[final, 0.4], outputs=[loss])
tape.backward(loss)
print("heights", final.numpy(), "gradient", speeds.grad.numpy())
