"""Copies, layouts and values of PyTorch tensors for a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.foreign.operation import Array


def copied(tensor: Any) -> Any:
    """A tensor's values in memory of its own, laid out alike, without history."""
    return tensor.detach().clone()


def again(a: Any, lifted: bool = False) -> Any:
    """A tensor, or what else it is, in memory of its own, and what lists and tuples hold.

    lifted: tensors of a float type below float64 become float64.
    """
    import torch

    if isinstance(a, torch.Tensor):
        coarse = a.dtype in (torch.float32, torch.float16, torch.bfloat16)
        return copied(a).double() if lifted and coarse else copied(a)
    if type(a) in (list, tuple):
        return type(a)(again(x, lifted) for x in a)
    return a


def numbers(tensor: Any) -> Array:
    """A tensor's values in float64."""
    import torch

    found = tensor.detach().to("cpu", torch.float64)
    return np.array(found.numpy(), np.float64, copy=True)


def tensor_of(values: Array, like: Any, lifted: bool) -> Any:
    """A new tensor of these values, laid out as another one, of its type or of float64."""
    import torch

    dtype = torch.float64 if lifted else like.dtype
    out = torch.empty_like(like, dtype=dtype, memory_format=torch.preserve_format)
    return out.copy_(torch.from_numpy(np.array(values, np.float64, order="C")))


def name_of(dtype: Any) -> str:
    """`float32` for torch.float32."""
    return str(dtype).removeprefix("torch.")


def expanded(t: Any) -> Any:
    """One element that stands for all of them, as cotangents of sums are."""
    if not t.numel():
        return t
    return t.reshape(-1)[0].expand(t.shape)


def strided(t: Any) -> Any:
    """The same numbers, every other element of memory, with the dimensions the other way round."""
    import torch

    if not t.dim():
        return t
    wide = torch.zeros((*reversed(t.shape), 2), dtype=t.dtype, device=t.device)
    out = wide[..., 0].permute(*reversed(range(t.dim())))
    return out.copy_(t)


def equal(a: Any, b: Any) -> bool:
    """Whether two tensors hold the same numbers."""
    import torch

    return bool(torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)))


def differ(now: Array | None, then: Array | None, epsilon: float) -> bool:
    """Whether two gradients differ by more than sums in another order."""
    if now is None or then is None:
        return (now is None) != (then is None) and bool(np.any(then if now is None else now))
    with np.errstate(all="ignore"):
        off = np.where(now == then, 0.0, np.abs(now - then))
        off = np.where(np.isnan(now) & np.isnan(then), 0.0, off)
        size = np.max(np.abs(now), where=np.isfinite(now), initial=0.0)
    return not float(np.max(off, initial=0.0)) <= 1e3 * epsilon * float(size)


def all_numbers(tensors: Sequence[Any]) -> list[Array | None]:
    """The values of each; None where there is no tensor."""
    return [None if t is None else numbers(t) for t in tensors]
