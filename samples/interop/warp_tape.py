"""Real Warp: the stiffness of springs is found from how far a chain of masses has moved.

`adtool check` looks at Warp's own tapes: each launch is run again by the engine, from the same
kernel, and Warp's gradients are compared with what the engine's float64 form of it says.
"""

# needs: warp
# check: passes
import numpy as np
import warp as wp

STEPS, MASSES, DT = 12, 6, 0.1


@wp.kernel
def move(
    x: wp.array(dtype=float),
    v: wp.array(dtype=float),
    stiffness: wp.array(dtype=float),
    x_next: wp.array(dtype=float),
    v_next: wp.array(dtype=float),
):
    i = wp.tid()
    n = x.shape[0]
    force = -stiffness[i] * x[i]
    if i > 0:
        force += stiffness[i - 1] * (x[i - 1] - x[i])
    if i + 1 < n:
        force += stiffness[i] * (x[i + 1] - x[i])
    v_next[i] = v[i] + DT * force
    x_next[i] = x[i] + DT * v_next[i]


@wp.kernel
def misfit(x: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - seen[i]
    wp.atomic_add(loss, 0, d * d)


def floats(values: object) -> wp.array:
    return wp.array(values, dtype=float, device="cpu", requires_grad=True)


def simulate(stiffness: wp.array) -> wp.array:
    """Where the masses are in the end. Each step has arrays of its own."""
    x, v = floats(np.linspace(0.5, 1.5, MASSES)), floats(np.zeros(MASSES))
    for _ in range(STEPS):
        x_next, v_next = floats(np.zeros(MASSES)), floats(np.zeros(MASSES))
        wp.launch(move, dim=MASSES, inputs=[x, v, stiffness], outputs=[x_next, v_next])
        x, v = x_next, v_next
    return x


def main() -> None:
    seen = simulate(floats(np.linspace(1.0, 2.0, MASSES)))
    guess, losses = np.full(MASSES, 1.5), []
    for _ in range(20):
        stiffness, loss = floats(guess), floats([0.0])
        with wp.Tape() as tape:
            wp.launch(misfit, dim=MASSES, inputs=[simulate(stiffness), seen], outputs=[loss])
        tape.backward(loss)
        guess = guess - 1.0 * stiffness.grad.numpy()
        losses.append(float(loss.numpy()[0]))
    print(f"misfit {losses[0]:.4f} -> {losses[-1]:.6f}")
    if not losses[-1] < 0.2 * losses[0]:
        raise SystemExit("the misfit did not fall")


main()
