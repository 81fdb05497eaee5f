"""Points are drawn to a circle: Paddle's Adam moves tensors, a kernel gives their gradients.

`from_paddle` makes arrays of the tensors' memory, with the tensors' gradients. What a tape adds to
an array's gradient is in `tensor.grad`, and what the optimizer does to a tensor, the next launch
sees.
"""
# needs: paddle
# check: passes

import paddle

import engine as wp

POINTS = 100
ITERATIONS = 400


@wp.kernel
def misfit(xs: wp.array2d(dtype=float), total: wp.array(dtype=float)):
    """The sum of squares of the distances from the unit circle, squared."""
    i = wp.tid()
    off = xs[i, 0] * xs[i, 0] + xs[i, 1] * xs[i, 1] - 1.0
    wp.atomic_add(total, 0, off * off)


def main() -> None:
    paddle.seed(1)
    xs = paddle.randn([POINTS, 2])
    total = paddle.zeros([1])
    xs.stop_gradient = total.stop_gradient = False
    optimizer = paddle.optimizer.Adam(learning_rate=0.05, parameters=[xs])

    points, sum_ = wp.from_paddle(xs), wp.from_paddle(total)
    with wp.Tape() as tape:
        wp.launch(misfit, dim=POINTS, inputs=[points], outputs=[sum_])
    first = total.item()

    for _ in range(ITERATIONS):
        tape.zero()
        tape.backward(loss=sum_)
        optimizer.step()

    sum_.zero_()
    wp.launch(misfit, dim=POINTS, inputs=[points], outputs=[sum_])
    print(f"misfit {first:.4f} -> {total.item():.2e}")
    if not total.item() < 1.0e-3:
        raise SystemExit("the points are not on the circle")


if __name__ == "__main__":
    main()
