"""One tensor, launched many times: what each way to pass it costs.

Convert once where a tensor stays the same. Where each step has tensors of its own, pass them as
they are, or as the structure of C that `return_ctype=True` gives.
"""
# needs: paddle
# check: no tape

from time import perf_counter

import paddle

import engine as wp

SIZE = 1000
LAUNCHES = 2000


@wp.kernel
def saxpy(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


def each_time(x: paddle.Tensor, y: paddle.Tensor) -> None:
    for _ in range(LAUNCHES):
        wp.launch(saxpy, dim=SIZE, inputs=[wp.from_paddle(x), wp.from_paddle(y), 1.0])


def once(x: paddle.Tensor, y: paddle.Tensor) -> None:
    of_x, of_y = wp.from_paddle(x), wp.from_paddle(y)
    for _ in range(LAUNCHES):
        wp.launch(saxpy, dim=SIZE, inputs=[of_x, of_y, 1.0])


def as_structures(x: paddle.Tensor, y: paddle.Tensor) -> None:
    for _ in range(LAUNCHES):
        of_x = wp.from_paddle(x, return_ctype=True)
        of_y = wp.from_paddle(y, return_ctype=True)
        wp.launch(saxpy, dim=SIZE, inputs=[of_x, of_y, 1.0])


def directly(x: paddle.Tensor, y: paddle.Tensor) -> None:
    for _ in range(LAUNCHES):
        wp.launch(saxpy, dim=SIZE, inputs=[x, y, 1.0])


def main() -> None:
    wp.launch(saxpy, dim=SIZE, inputs=[paddle.zeros([SIZE]), paddle.zeros([SIZE]), 1.0])  # compiled
    for way in (each_time, once, as_structures, directly):
        x, y = paddle.arange(SIZE, dtype="float32"), paddle.ones([SIZE])
        start = perf_counter()
        way(x, y)
        print(f"{way.__name__:14} {(perf_counter() - start) / LAUNCHES * 1e6:6.1f} us a launch")
        if not bool(paddle.equal_all(y, 1.0 + LAUNCHES * x)):
            raise SystemExit(f"{way.__name__}: the launches have not changed the tensor")


if __name__ == "__main__":
    main()
