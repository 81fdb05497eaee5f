"""Cases of benchmarks/interop.py: conversions, and kernels that other frameworks call.

Each is written once for `engine` and for Warp; `wp` is either. Frameworks are imported where they
are used. `inner` calls are timed together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import Case, Ready

CONVERSIONS = 10_000_000  # elements
SMALL, LARGE = 1, 10_000_000  # of arrays that kernels get


def _numbers(size: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.linspace(0.0, 1.0, size, dtype=np.float32)


def _array(wp: Any, size: int, grad: bool = False) -> Any:
    return wp.array(_numbers(size), dtype=float, requires_grad=grad)


# ---- conversions: the call alone, over and over, with the same object


def _torch(size: int, grad: bool = False) -> Any:
    import torch

    found = torch.from_numpy(_numbers(size)).clone().requires_grad_(grad)
    if grad:
        found.grad = torch.zeros_like(found)
    return found


def _paddle(size: int, grad: bool = False) -> Any:
    import paddle

    found = paddle.to_tensor(_numbers(size))
    found.stop_gradient = not grad
    return found


def _jax(size: int) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(_numbers(size)).block_until_ready()


def _again(call: Callable[..., Any], *given: Any, **named: Any) -> Ready:
    call(*given, **named)
    return Ready(lambda: call(*given, **named), None)


def _dlpack_torch(wp: Any, size: int) -> Any:
    import torch

    return _again(torch.utils.dlpack.from_dlpack, _array(wp, size))


def _dlpack_jax(wp: Any, size: int) -> Any:
    import jax

    return _again(jax.dlpack.from_dlpack, _array(wp, size))


def _dlpack_jax_alone(size: int) -> Any:
    """What JAX itself takes for an array of its own, with nobody's part in it."""
    import jax

    return _again(jax.dlpack.from_dlpack, _jax(size))


_MADE: list[tuple[str, str, Callable[[Any, int], Ready]]] = [
    ("numpy_out", "`a.numpy()`", lambda wp, n: _again(_array(wp, n).numpy)),
    ("numpy_asarray", "`numpy.asarray(a)`", lambda wp, n: _again(np.asarray, _array(wp, n))),
    ("numpy_in", "`array(numpy_array, copy=False)`",
     lambda wp, n: _again(wp.array, _numbers(n), dtype=float, copy=False)),
    ("torch_in", "`from_torch(t)`", lambda wp, n: _again(wp.from_torch, _torch(n))),
    ("torch_in_grad", "`from_torch(t)`, with a gradient",
     lambda wp, n: _again(wp.from_torch, _torch(n, True))),
    ("torch_in_ctype", "`from_torch(t, return_ctype=True)`",
     lambda wp, n: _again(wp.from_torch, _torch(n), return_ctype=True)),
    ("torch_out", "`to_torch(a)`", lambda wp, n: _again(wp.to_torch, _array(wp, n))),
    ("torch_out_grad", "`to_torch(a)`, with a gradient",
     lambda wp, n: _again(wp.to_torch, _array(wp, n, True))),
    ("jax_in", "`from_jax(x)`", lambda wp, n: _again(wp.from_jax, _jax(n))),
    ("jax_out", "`to_jax(a)`", lambda wp, n: _again(wp.to_jax, _array(wp, n))),
    ("paddle_in", "`from_paddle(t)`", lambda wp, n: _again(wp.from_paddle, _paddle(n))),
    ("paddle_in_ctype", "`from_paddle(t, return_ctype=True)`",
     lambda wp, n: _again(wp.from_paddle, _paddle(n), return_ctype=True)),
    ("paddle_out", "`to_paddle(a)`", lambda wp, n: _again(wp.to_paddle, _array(wp, n))),
    ("dlpack_from_torch", "`from_dlpack(torch_tensor)`",
     lambda wp, n: _again(wp.from_dlpack, _torch(n))),
    ("dlpack_from_jax", "`from_dlpack(jax_array)`", lambda wp, n: _again(wp.from_dlpack, _jax(n))),
    ("dlpack_to_torch", "`torch.utils.dlpack.from_dlpack(a)`", _dlpack_torch),
    ("dlpack_to_jax", "`jax.dlpack.from_dlpack(a)`", _dlpack_jax),
    ("dlpack_made", "`a.__dlpack__()`, which these two call",
     lambda wp, n: _again(_array(wp, n).__dlpack__)),
    ("dlpack_alone_jax", "`jax.dlpack.from_dlpack(jax_array)`: JAX alone",
     lambda wp, n: _dlpack_jax_alone(n)),
    ("dlpack_capsule", "`from_dlpack(to_dlpack(a))`",
     lambda wp, n: _again(lambda a: wp.from_dlpack(wp.to_dlpack(a)), _array(wp, n))),
]  # fmt: skip


def _conversion(make: Callable[[Any, int], Ready]) -> Callable[[Any, Any, int], Ready]:
    return lambda wp, kernels, size: make(wp, size)


# ---- launches of what other frameworks made


def _launch(wp: Any, kernels: Any, make: Callable[[int], Any], size: int) -> Ready:
    x, y, z = make(size), make(size), _array(wp, size)
    given = [2.5, x, y]
    return _again(wp.launch, kernels.saxpy, dim=size, inputs=given, outputs=[z])


def _descriptors(wp: Any) -> Callable[[int], Any]:
    """Of tensors, which are kept: an engine's descriptor does so itself."""
    kept: list[Any] = []

    def make(size: int) -> Any:
        kept.append(_torch(size))
        return wp.from_torch(kept[-1], return_ctype=True)

    make.kept = kept  # type: ignore[attr-defined]
    return make


def _launches(make: Callable[[Any], Callable[[int], Any]]) -> Callable[[Any, Any, int], Ready]:
    return lambda wp, kernels, size: _launch(wp, kernels, make(wp), size)


# ---- kernels inside of frameworks


def _jax_forward(wp: Any, kernels: Any, size: int) -> Ready:
    import jax

    called = jax.jit(lambda x: wp.jax_kernel(kernels.elementwise)(x)[0])
    x = _jax(size)
    return _again(lambda: called(x).block_until_ready())


def _jax_grad(wp: Any, kernels: Any, size: int) -> Ready:
    """`grad` of a sum of a kernel's output, so that the cotangent is made by JAX."""
    import jax

    one = wp.jax_kernel(kernels.elementwise, enable_backward=True)
    called = jax.jit(jax.grad(lambda x: one(x)[0].sum()))
    x = _jax(size)
    return _again(lambda: called(x).block_until_ready())


def _tape_grad(wp: Any, kernels: Any, size: int) -> Ready:
    """What `_jax_grad` has to be measured by: the same by a tape that is made anew each time."""
    x = _array(wp, size, True)
    y = wp.zeros(size, dtype=float, requires_grad=True)
    seed = wp.ones_like(y, requires_grad=False)

    def call() -> None:
        with wp.Tape() as tape:
            wp.launch(kernels.elementwise, dim=size, inputs=[x], outputs=[y])
        tape.backward(grads={y: seed})
        tape.zero()

    return _again(call)


def _torch_function(wp: Any, kernels: Any, size: int) -> Ready:
    """A torch.autograd.Function around a launch and its adjoint, as programs write it by hand."""
    import torch

    class Wave(torch.autograd.Function):  # type: ignore[misc]  # has no types here
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.x = wp.from_torch(x, requires_grad=True)
            ctx.y = wp.zeros(size, dtype=float, requires_grad=True)
            wp.launch(kernels.elementwise, dim=size, inputs=[ctx.x], outputs=[ctx.y])
            return wp.to_torch(ctx.y, requires_grad=False)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            ctx.y.grad = wp.from_torch(grads[0].contiguous())
            wp.launch(
                kernels.elementwise, dim=size, inputs=[ctx.x], outputs=[ctx.y],
                adj_inputs=[ctx.x.grad], adj_outputs=[ctx.y.grad], adjoint=True,
            )  # fmt: skip
            return wp.to_torch(ctx.x.grad)

    return _torch_step(Wave.apply, size)


def _torch_step(apply: Callable[[Any], Any], size: int) -> Ready:
    import torch

    x = _torch(size, True)
    seed = torch.ones(size)

    def call() -> None:
        x.grad = None
        apply(x).backward(seed)

    return _again(call)


INTEROP = [
    *(Case(name, title, CONVERSIONS, 1000, _conversion(make), inner=200)
      for name, title, make in _MADE),
    Case("launch_numpy", "launch with two NumPy arrays", SMALL, SMALL,
         _launches(lambda wp: _numbers), inner=200),
    Case("launch_torch", "launch with two tensors", SMALL, SMALL,
         _launches(lambda wp: _torch), inner=200),
    Case("launch_ctype", "launch with two descriptors of tensors", SMALL, SMALL,
         _launches(_descriptors), inner=200),
    Case("jax_forward_small", "`jit` of a `jax_kernel`", SMALL, SMALL, _jax_forward, inner=100),
    Case("jax_forward_large", "`jit` of a `jax_kernel`", LARGE, 1000, _jax_forward),
    Case("jax_grad_small", "`jit(grad)` of a `jax_kernel`", SMALL, SMALL, _jax_grad, inner=100),
    Case("jax_grad_large", "`jit(grad)` of a `jax_kernel`", LARGE, 1000, _jax_grad),
    Case("tape_grad_small", "the same gradient by a fresh tape", SMALL, SMALL, _tape_grad,
         inner=100),
    Case("tape_grad_large", "the same gradient by a fresh tape", LARGE, 1000, _tape_grad),
    Case("torch_function_small", "a `torch.autograd.Function` with a launch and its adjoint",
         SMALL, SMALL, _torch_function, inner=100),
    Case("torch_function_large", "a `torch.autograd.Function` with a launch and its adjoint",
         LARGE, 1000, _torch_function),
]  # fmt: skip
