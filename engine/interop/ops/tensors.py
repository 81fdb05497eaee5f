"""Tensors of PyTorch as kernels read them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from engine.interop.ops.program import Program
from engine.lang.strided import row_major
from engine.lang.types import ArrayType, ScalarType, scalar_of, shape_of
from engine.runtime.base import HEADER
from engine.runtime.pack import Mismatch
from engine.runtime.plan_parts import Param

# PyTorch has little for unsigned integers but bytes: they are taken for signed ones, and back.
_SIGNED = {"uint16": "int16", "uint32": "int32", "uint64": "int64"}


@lru_cache(None)
def torch_dtype(kind: ScalarType) -> Any:
    """The dtype of tensors for elements of a scalar type."""
    import torch

    return getattr(torch, _SIGNED.get(kind.name, kind.name))


@lru_cache(None)
def _accepted(kind: ScalarType) -> frozenset[Any]:
    import torch

    names = {kind.name, _SIGNED.get(kind.name, kind.name)}
    return frozenset(getattr(torch, k) for k in names if hasattr(torch, k))


def inner_of(kind: ArrayType) -> tuple[int, ...]:
    """The axes of components of an element, which are a tensor's last ones."""
    return tuple(shape_of(kind.element))


def fitting(t: Any, kind: ArrayType) -> None:
    """Raises Mismatch (E202, E203, E204) for what is no tensor that an argument can be."""
    import torch

    scalar, inner = scalar_of(kind.element), inner_of(kind)
    if not isinstance(t, torch.Tensor):
        raise Mismatch("E202", type(t).__name__, "pass a tensor")
    if t.device.type not in ("cpu", "meta"):
        raise Mismatch("E204", f"a tensor on device {str(t.device)!r}", "copy it: .cpu()")
    if t.layout is not torch.strided:
        raise Mismatch("E202", f"a tensor of layout {t.layout}", "make it dense: .to_dense()")
    if t.dtype not in _accepted(scalar):
        name = str(torch_dtype(scalar))
        raise Mismatch("E202", f"a tensor of {t.dtype}", f"convert it: .to({name})")
    ndim = kind.ndim + len(inner)
    if t.dim() != ndim or tuple(t.shape[kind.ndim :]) != inner:
        last = f", the last of them {inner}" if inner else ""
        raise Mismatch("E203", f"a tensor of shape {tuple(t.shape)}", f"it takes {ndim} axes{last}")


def checked(program: Program, p: Param, t: Any) -> None:
    """Raises LaunchError (E202, E203, E204) for a tensor that is not one for a parameter."""
    try:
        fitting(t, array_of(p))
    except Mismatch as e:
        raise program.plan.mismatch(p, e) from None


def number(program: Program, p: Param, value: Any) -> bytes:
    """A number as an argument. Raises LaunchError (E202), also for tensors: no derivative."""
    import torch

    try:
        parts = value if isinstance(value, (list, tuple)) else (value,)
        if any(isinstance(v, torch.Tensor) for v in parts):
            raise Mismatch("E202", "a tensor", "pass t.tolist(), which has no derivative, or make "
                           "the parameter an array of one element, which has")  # fmt: skip
        return p.packed(value)
    except Mismatch as e:
        raise program.plan.mismatch(p, e) from None


def array_of(p: Param) -> ArrayType:
    assert p.array_kind is not None
    return p.array_kind


def packable(t: Any, kind: ArrayType) -> Any:
    """The tensor, or a copy of it whose elements lie in one piece each."""
    t = t.detach().resolve_neg()
    inner = inner_of(kind)
    if inner and t.stride()[kind.ndim :] != row_major(inner, 1):
        return t.contiguous()
    return t


def packed(t: Any, kind: ArrayType) -> bytes:
    """A tensor that is `packable`, as an argument. It must be kept alive."""
    size = t.element_size()
    ndim = kind.ndim
    steps = [s * size for s in t.stride()[:ndim]]
    return HEADER[ndim](t.data_ptr(), *t.shape[:ndim], *steps)


# PyTorch fills and copies with threads of its own, which go on waiting for work afterwards, beside
# those of the launch that follows. So this is done by NumPy.


def zeros(shape: tuple[int, ...], kind: ScalarType) -> Any:
    """A new tensor of zeros."""
    import torch

    made = torch.empty(shape, dtype=torch_dtype(kind))
    _bytes(made).fill(0)
    return made


def copied(t: Any) -> Any:
    """A contiguous copy of a tensor."""
    import torch

    if not t.is_contiguous() or t.is_neg():
        return t.detach().clone(memory_format=torch.contiguous_format).resolve_neg()
    made = torch.empty(t.shape, dtype=t.dtype)
    _bytes(made)[...] = _bytes(t)
    return made


def _bytes(t: Any) -> Any:
    import torch

    # Of axes of one element, strides mean nothing, and may be anything.
    flat = t.detach().as_strided((t.numel(),), (1,))
    return flat.view(torch.uint8).numpy()
