"""Orbits in a struct of arrays: burn a thruster so that the satellites meet a height."""

# expect: exit=1
import engine as wp

wp.config.overwrites = "present"

COUNT = 4
STEPS = 8
DT = 0.05


@wp.struct
class State:
    position: wp.array(dtype=wp.vec2)
    gravity: wp.array(dtype=wp.vec2)


@wp.kernel
def compute_gravity(state: State, mass: wp.array(dtype=float)):
    i = wp.tid()
    r = wp.length(state.position[i])
    state.gravity[i] = -mass[0] * state.position[i] / (r * r * r)  # expect: G003 a


@wp.kernel
def drift(
    now: State,
    v: wp.array(dtype=wp.vec2),
    thrust: wp.array(dtype=float),
    later: State,
    v_next: wp.array(dtype=wp.vec2),
):
    i = wp.tid()
    v_next[i] = v[i] + DT * thrust[i] * now.gravity[i]  # expect: G003 a
    later.position[i] = now.position[i] + DT * v_next[i]


@wp.kernel
def height_error(state: State, height: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    d = wp.length(state.position[i]) - height
    wp.atomic_add(loss, 0, d * d)


def make_state(gravity):
    state = State()
    state.position = wp.zeros(COUNT, dtype=wp.vec2, requires_grad=True)
    state.gravity = gravity
    return state


gravity = wp.zeros(COUNT, dtype=wp.vec2, requires_grad=True)
mass = wp.array([1.0], dtype=float)
thrust = wp.array([0.8, 0.9, 1.1, 1.3], dtype=float, requires_grad=True)
now = make_state(gravity)
now.position.assign([[1.0, 0.0], [0.0, 1.1], [-1.2, 0.1], [0.2, -1.0]])
v = wp.array([[0.0, 1.0], [-1.0, 0.1], [0.0, -0.8], [1.0, 0.0]], dtype=wp.vec2)
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    for _ in range(STEPS):
        later = make_state(gravity)  # every state has the same gravity array
        v_next = wp.zeros(COUNT, dtype=wp.vec2, requires_grad=True)
        wp.launch(compute_gravity, dim=COUNT, inputs=[now, mass])  # expect: G003 a
        wp.launch(drift, COUNT, inputs=[now, v, thrust], outputs=[later, v_next])  # expect: G003 a
        now, v = later, v_next
    wp.launch(height_error, dim=COUNT, inputs=[now, 1.1], outputs=[loss])
tape.backward(loss)
print("loss", loss.numpy()[0], "gradient", thrust.grad.numpy())
