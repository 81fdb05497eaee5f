"""Steer a logistic map: after sixty steps the gradient is huge, and no difference can follow it."""

# expect: exit=0
import engine as wp

STEPS = 60


@wp.kernel
def iterate(
    start: wp.array(dtype=float), r: float, steps: int, out: wp.array(dtype=float)
):  # expect: warning[G006|G011] a
    i = wp.tid()
    x = start[i]
    for _ in range(steps):
        x = r * x * (1.0 - x)
    out[i] = x  # expect: warning[G006|G011] a


@wp.kernel
def error(out: wp.array(dtype=float), goal: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (out[i] - goal) * (out[i] - goal))


def main():
    start = wp.array([0.31, 0.52, 0.77], dtype=float, requires_grad=True)
    out = wp.zeros(3, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(
            iterate, 3, inputs=[start, 3.97, STEPS], outputs=[out]
        )  # expect: warning[G006|G011] a
        wp.launch(error, dim=3, inputs=[out, 0.5], outputs=[loss])
    tape.backward(loss)
    print("end", out.numpy(), "gradient", start.grad.numpy())


if __name__ == "__main__":
    main()
