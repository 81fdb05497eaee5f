"""PyTorch's tensors and the engine's arrays by DLPack: objects, and capsules for older versions."""

# needs: torch
# check: no tape
import torch
import torch.utils.dlpack

import engine as wp


@wp.kernel
def add(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0


t = torch.arange(6, dtype=torch.float32)
for a in (wp.from_dlpack(t), wp.from_dlpack(torch.utils.dlpack.to_dlpack(t))):
    assert a.ptr == t.data_ptr()
    wp.launch(add, dim=6, inputs=[a])
assert t.tolist() == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]

w = wp.zeros(4, dtype=wp.vec3)
for seen in (torch.from_dlpack(w), torch.utils.dlpack.from_dlpack(wp.to_dlpack(w))):
    assert seen.data_ptr() == w.ptr and seen.shape == (4, 3)
    seen += 1.0
assert w.numpy().tolist() == [[2.0] * 3] * 4

halves = torch.tensor([1.5, 2.5], dtype=torch.bfloat16)
assert wp.from_dlpack(halves).dtype is wp.bfloat16
pairs = wp.from_dlpack(torch.ones(3, 2), dtype=wp.vec2)
assert (pairs.shape, pairs.dtype) == ((3,), wp.vec2)

a = wp.from_dlpack(torch.full((1000,), 3.0))  # the tensor is gone, its memory is not
assert float(a.numpy().sum()) == 3000.0
print("tensors and arrays share memory by DLPack")
