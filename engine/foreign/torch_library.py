"""Operators of `torch.library` with `register_autograd`, for which PyTorch makes functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.foreign.places import definition
from engine.foreign.torch_call import Called
from engine.itself import is_of_engine


def called_operator(cls: Any, args: Sequence[Any]) -> Called | None:
    """What the function that PyTorch made for an operator calls; None where that is not known.

    args: what it is called with, of which the last is PyTorch's own. Where the operator takes or
    returns lists of tensors, these are flat, and one more of PyTorch's own says of what form.
    """
    cells = _cells(cls.forward)
    lists = "orig_forward" in cells
    if lists:
        cells = _cells(cells["orig_forward"])
    op, info = cells.get("op"), cells.get("info")
    backward = getattr(info, "_backward_fn", None)
    if op is None or backward is None:
        return None
    schema = op._schema
    names = [a.name for a in schema.arguments]
    if lists:
        names = _names(names, len(args) - 1, args[-1].input_spec)
    names += [f"argument {k}" for k in range(len(names), len(args))]
    name = str(op._qualified_op_name) if hasattr(op, "_qualified_op_name") else str(schema.name)
    gradient = getattr(backward, "__qualname__", "backward").rpartition("<locals>.")[2]

    def call(*given: Any) -> Any:
        from torch._library.autograd import not_list_of_tensor
        from torch.utils import _pytree

        if lists:
            *flat, form = given
            given = _pytree.tree_unflatten(flat, form.input_spec)
        *own, metadata = given
        out = op(*own, **metadata.keyword_only_args)
        if not lists:
            return out
        return tuple(_pytree.tree_flatten(out, not_list_of_tensor)[0])

    def results(n: int) -> list[str]:
        given = [r.name for r in schema.returns]
        plain = ["out"] if n == 1 else [f"out{k}" for k in range(n)]
        return given if len(given) == n and all(given) else plain

    if (formula := formula_of(backward)) is not None:
        return of_kernel(formula, call, names, results)
    codes = (backward, getattr(info, "_setup_context_fn", None))
    return Called(
        name, "custom op", gradient, definition(backward), call, names, results, codes=codes
    )


def formula_of(backward: Any) -> Any:
    """The engine's own derivative of an operator; None for one that a user wrote."""
    if not is_of_engine(type(getattr(backward, "__self__", None))):
        return None
    from engine.foreign import torch_kernels  # late: few programs have one

    return torch_kernels.formula_of(backward)


def of_kernel(
    formula: Any, call: Callable[..., Any], names: Sequence[str],
    results: Callable[[int], list[str]],
) -> Called | None:  # fmt: skip
    """A call of an operator that `torch_kernel` made, which is told of as the kernel.

    None for those that the engine made of it, its adjoint and its tangents.
    """
    from engine.foreign.launched import kernel_place
    from engine.foreign.torch_kernels import is_derived

    if is_derived(formula):
        return None
    kernel = formula.of.program.plan.kernel
    name, place = kernel.key, kernel_place(kernel)
    return Called(name, "torch_kernel", "adjoint", place, call, names, results, formula=formula)


def _names(names: Sequence[str], count: int, form: Any) -> list[str]:
    """Names of flat arguments, as `xs[1]` for one that is in a list. form: PyTorch's `TreeSpec`."""
    from torch.utils import _pytree

    out = [""] * count
    for k, part in enumerate(_pytree.tree_unflatten(range(count), form)):
        name = names[k] if k < len(names) else f"argument {k}"
        if isinstance(part, int):
            out[part] = name
        else:
            for n, place in enumerate(part):
                out[place] = f"{name}[{n}]"
    return out


def _cells(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function captures."""
    code, cells = function.__code__, function.__closure__ or ()
    return {
        name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True)
    }  # fmt: skip
