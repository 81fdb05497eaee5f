"""Paddle's tensors and the engine's arrays by DLPack: objects, and capsules."""

# needs: paddle
# check: no tape
import paddle
import paddle.utils.dlpack

import engine as wp


@wp.kernel
def add(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0


t = paddle.arange(6, dtype=paddle.float32)
a = wp.from_dlpack(paddle.utils.dlpack.to_dlpack(t))
assert a.ptr == t.data_ptr()
wp.launch(add, dim=6, inputs=[a])
assert t.numpy().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]

w = wp.zeros((2, 3), dtype=float)
for seen in (paddle.utils.dlpack.from_dlpack(w), paddle.utils.dlpack.from_dlpack(wp.to_dlpack(w))):
    assert seen.data_ptr() == w.ptr and list(seen.shape) == [2, 3]
    paddle.assign(seen + 1.0, seen)
assert w.numpy().tolist() == [[2.0] * 3] * 2
print("Paddle's tensors and the engine's arrays share memory by DLPack")
