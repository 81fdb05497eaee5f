"""Copies and pickles of what a program defines: kernels, functions, operators made of them."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import engine as wp


@wp.func
def squared(x: float):
    return x * x


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = squared(x[i])


@wp.kernel
def twice(x: wp.array(dtype=wp.Float), y: wp.array(dtype=wp.Float)):
    i = wp.tid()
    y[i] = x[i] + x[i]


twice_double = wp.overload(twice, [wp.array(dtype=wp.float64)] * 2)
DEFINITIONS = {f.__name__: f for f in (squared, square, twice)} | {"instance": twice_double}


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("launched", [False, True])
def test_definitions_are_copied_as_functions_are(name: str, launched: bool) -> None:
    if launched:
        wp.launch(square, 2, [wp.ones(2)], [wp.zeros(2)])
        wp.launch(twice_double, 2, [wp.ones(2, wp.float64)], [wp.zeros(2, wp.float64)])
    one = DEFINITIONS[name]
    assert copy.copy(one) is one and copy.deepcopy({"in": [one]})["in"][0] is one
    assert pickle.loads(pickle.dumps(one)) is one


def test_what_has_no_name_in_its_module_is_told_by_pickle() -> None:
    @wp.kernel
    def local(x: wp.array(dtype=float)):
        x[wp.tid()] = 1.0

    assert copy.deepcopy(local) is local
    with pytest.raises((pickle.PicklingError, AttributeError), match="local"):
        pickle.dumps(local)


def test_modules_of_pytorch_with_an_operator() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
            self.square = wp.torch_kernel(square)

        def forward(self):
            return self.square(self.scale)

    layer = Layer()
    other = copy.deepcopy(layer)
    other().sum().backward()
    assert layer.scale.grad is None and other.scale.grad.tolist() == [4.0, 6.0]
    op = wp.torch_kernel(square, launch_dims=2, output_dims=3)
    again = pickle.loads(pickle.dumps(op))
    assert again.op is op.op and again(torch.ones(3)).tolist() == [1.0, 1.0, 0.0]


def written(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    wp.launch(square, x.shape, [x], [y])


def test_functions_of_jax() -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    for f in (wp.jax_kernel(square, launch_dims=2, output_dims=3), wp.jax_callable(written)):
        assert copy.deepcopy(f) is f and pickle.loads(pickle.dumps(f)) is f
        np.testing.assert_array_equal(f(2 * jax.numpy.ones(3))[0][:2], 4.0)


ELSEWHERE = """
import multiprocessing as mp
import engine as wp

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

def run(kernel, x):
    y = wp.zeros(2)
    wp.launch(kernel, 2, [x], [y])
    return y.numpy()

if __name__ == "__main__":
    with mp.get_context("spawn").Pool(1) as pool:
        print(pool.apply(run, (square, wp.full(2, 3.0))))
"""


def test_a_kernel_is_handed_to_another_process(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.py"
    file.write_text(ELSEWHERE)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["[9.", "9.]"], done.stderr
