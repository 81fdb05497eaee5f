"""Tensors that a PyTorch function holds beside its arguments, and their earlier values."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

# Bytes of copies that checks of one program may ask for; what is beyond that is not copied.
LIMIT = 256 << 20
_DEPTH = 4
_spent = 0


def held_by(function: Any) -> list[Any]:
    """Tensors of modules, closures, arguments that are bound, and globals that are named."""
    found: dict[int, Any] = {}
    for t in _tensors(function, _DEPTH, set()):
        found[id(t)] = t
    return list(found.values())


def copies(tensors: list[Any]) -> list[tuple[Any, Any]]:
    """Each with a copy; one copy as long as a tensor stays as it is."""
    global _spent
    known, out = _known(), []
    for t in tensors:
        version = t._version
        found = known.get(t)
        if found is None or found[0] != version:
            size = t.numel() * t.element_size()
            if _spent + size > LIMIT:
                continue
            _spent += size
            found = known[t] = version, t.detach().clone()
        out.append((t, found[1]))
    return out


@cache
def _known() -> Any:
    from torch.utils.weak import WeakIdKeyDictionary

    return WeakIdKeyDictionary()


def _tensors(x: Any, depth: int, seen: set[int]) -> Iterator[Any]:
    import torch

    if isinstance(x, torch.Tensor):
        yield x
        return
    if depth == 0 or id(x) in seen or isinstance(x, (str, bytes, int, float, types.ModuleType)):
        return
    seen.add(id(x))
    if isinstance(x, torch.nn.Module):
        yield from x.parameters()
        yield from x.buffers()
        return
    for y in _parts(x):
        yield from _tensors(y, depth - 1, seen)


def _parts(x: Any) -> Iterator[Any]:
    if isinstance(x, (list, tuple)):
        yield from x
    elif isinstance(x, dict):
        yield from x.values()
    elif isinstance(x, types.MethodType):
        yield x.__self__
        yield x.__func__
    elif isinstance(x, types.FunctionType):
        for cell in x.__closure__ or ():
            with suppress(ValueError):  # not assigned yet
                yield cell.cell_contents
        yield from x.__defaults__ or ()
        for name in _names(x.__code__):
            if name in x.__globals__:
                yield x.__globals__[name]
    elif hasattr(x, "func") and hasattr(x, "args"):  # functools.partial
        yield from (x.func, *x.args, *x.keywords.values())


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _names(c)
