"""Tensors are passed to launches as they are: the masses of a lever that is to be in balance.

A tensor that a launch on a tape gets has its gradient in `tensor.grad`, as an array of it would,
unless it says `stop_gradient`. Tensors can also be the loss, and cotangents.
"""
# needs: paddle
# check: passes

import paddle

import engine as wp

MASSES = 12
ITERATIONS = 150


@wp.kernel
def torque(mass: wp.array(dtype=float), place: wp.array(dtype=float), sum_: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(sum_, 0, mass[i] * place[i])


@wp.kernel
def squared(sum_: wp.array(dtype=float), loss: wp.array(dtype=float)):
    loss[0] = sum_[0] * sum_[0]


def main() -> None:
    paddle.seed(3)
    place = paddle.linspace(-1.0, 1.2, MASSES)
    mass = 1.0 + paddle.rand([MASSES])
    mass.stop_gradient = False
    optimizer = paddle.optimizer.SGD(learning_rate=0.02, parameters=[mass])

    losses = []
    for _ in range(ITERATIONS):
        optimizer.clear_grad()
        sum_, loss = paddle.zeros([1]), paddle.zeros([1])
        sum_.stop_gradient = loss.stop_gradient = False
        with wp.Tape() as tape:
            wp.launch(torque, dim=MASSES, inputs=[mass, place], outputs=[sum_])
            wp.launch(squared, dim=1, inputs=[sum_], outputs=[loss])
        tape.backward(loss)
        optimizer.step()
        losses.append(loss.item())

    print(f"squared torque {losses[0]:.4f} -> {losses[-1]:.2e}")
    if not losses[-1] < 1.0e-6 * losses[0]:
        raise SystemExit("the lever is not in balance")


if __name__ == "__main__":
    main()
