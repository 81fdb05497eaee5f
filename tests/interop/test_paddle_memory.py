"""Memory of tensors of Paddle as other tensors of Paddle: freed in any order, it frees itself."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import engine as wp

paddle = pytest.importorskip("paddle", reason="paddle is not installed")

# Paddle holds a lock while it frees what came by DLPack: a process that waits for itself is ended.
NESTED = """
import numpy as np, paddle
import engine as wp

def run(grad):
    block = np.arange(6, dtype=np.float32).__dlpack__()
    p = paddle.utils.dlpack.from_dlpack(block)
    p.stop_gradient = not grad
    a = wp.from_paddle(p)
    t = wp.to_paddle(a[2:5])
    with paddle.no_grad():
        a[2:3].fill_(7.0)
    assert p.numpy().tolist() == [0, 1, 7, 3, 4, 5]
    if grad:
        a.grad.fill_(2.0)
        t.clear_gradient()
    return t

for grad in (False, True):
    kept = run(grad)
    assert kept.numpy().tolist() == [7, 3, 4]
    del kept
print("fine")
"""


def test_blocks_that_came_by_dlpack_are_freed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NESTED], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stdout.endswith("fine\n"), done.stderr


@pytest.mark.parametrize("part", [
    np.s_[:], np.s_[1:3], np.s_[::2], np.s_[:, 1], np.s_[1:, 1:3], np.s_[2:2], np.s_[1],
])  # fmt: skip
@pytest.mark.parametrize("begin", [0, 2])
def test_parts_of_a_tensor(part: object, begin: int) -> None:
    """Also of a tensor that does not lie where its block begins."""
    whole = paddle.arange(20, dtype="float32")
    seen = np.arange(20, dtype=np.float32)[begin : begin + 12].reshape(3, 4)
    a = wp.from_paddle(whole[begin : begin + 12].reshape([3, 4]))
    t = wp.to_paddle(a[part])
    assert t.numpy().tolist() == seen[part].tolist()
    assert t.stop_gradient and t.is_leaf
    if 0 not in t.shape:
        t.fill_(-1.0)
        assert (a[part].numpy() == -1.0).all() and (a.numpy() == -1.0).sum() == t.size
