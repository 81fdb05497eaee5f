"""Operators of `torch.library` with `register_autograd`, for which PyTorch makes functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.foreign.places import definition
from engine.foreign.torch_call import Called


def called_operator(cls: Any, count: int) -> Called | None:
    """What the function that PyTorch made for an operator calls; None where that is not known.

    count: of its arguments, of which the last is PyTorch's own.
    """
    cells = _cells(cls.forward)
    op, info = cells.get("op"), cells.get("info")
    backward = getattr(info, "_backward_fn", None)
    if op is None or backward is None:
        return None
    schema = op._schema
    names = [a.name for a in schema.arguments]
    names += [f"argument {k}" for k in range(len(names), count)]
    name = str(op._qualified_op_name) if hasattr(op, "_qualified_op_name") else str(schema.name)
    gradient = getattr(backward, "__qualname__", "backward").rpartition("<locals>.")[2]

    def call(*args: Any) -> Any:
        *own, metadata = args
        return op(*own, **metadata.keyword_only_args)

    def results(n: int) -> list[str]:
        given = [r.name for r in schema.returns]
        plain = ["out"] if n == 1 else [f"out{k}" for k in range(n)]
        return given if len(given) == n and all(given) else plain

    return Called(name, "custom op", gradient, definition(backward), call, names, results)


def _cells(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function captures."""
    code, cells = function.__code__, function.__closure__ or ()
    return {
        name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True)
    }  # fmt: skip
